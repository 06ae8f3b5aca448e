"""Where the time of a traced program goes on a GPU, from the file that JAX's profiler writes."""

import collections
import gzip
import json
import pathlib
from typing import Any

# Parts of the names of kernels, in the order in which they are looked for.
_KINDS = (
    ("convolutions", ("conv", "xmma", "cudnn", "cutlass", "wgrad", "dgrad", "fprop")),
    ("sums", ("reduce",)),
    ("copies", ("memcpy", "memset", "copy")),
    ("elementwise", ("fusion", "loop_", "wrapped")),
)
_NUM_NAMED = 12


def kernel_times(folder: pathlib.Path) -> dict[str, Any]:
    """Microseconds by kind of kernel, those of the longest kernels, and for how long the device did anything at all."""
    events = [event for path in sorted(folder.rglob("*.trace.json.gz")) for event in _events(path)]
    names = {(e["pid"], e.get("tid")): e["args"]["name"] for e in events if e.get("name") == "thread_name"}
    devices = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    kernels = [
        e
        for e in events
        if e.get("ph") == "X" and e["pid"] in devices and names.get((e["pid"], e["tid"]), "").startswith("Stream")
    ]
    by_kind, by_name = collections.Counter(), collections.Counter()
    for kernel in kernels:
        by_kind[_kind(kernel["name"])] += kernel["dur"]
        by_name[kernel["name"][:60]] += kernel["dur"]
    return {
        "num_kernels": len(kernels),
        "busy_us": busy([(kernel["ts"], kernel["ts"] + kernel["dur"]) for kernel in kernels]),
        "kernel_us": dict(by_kind.most_common()),
        "longest_us": dict(by_name.most_common(_NUM_NAMED)),
    }


def busy(spans: list[tuple[float, float]]) -> float:
    """The length of the union of spans.

    Example:
        >>> busy([(0.0, 2.0), (1.0, 3.0), (5.0, 6.0)])
        4.0
    """
    total, end = 0.0, float("-inf")
    for first, last in sorted(spans):
        total += max(last - max(first, end), 0.0)
        end = max(end, last)
    return total


def _events(path: pathlib.Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return json.load(file)["traceEvents"]


def _kind(name: str) -> str:
    lowered = name.lower()
    return next((kind for kind, parts in _KINDS if any(part in lowered for part in parts)), "others")
