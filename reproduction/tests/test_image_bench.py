"""The bench of networks on images: what it measures, and how it reads the profiler's file."""

import argparse
import gzip
import json

from isotherm_thesis.bench.images import rows_asked, sampler_of
from isotherm_thesis.bench.kernel_times import kernel_times
from isotherm_thesis.experiments.images.plan import Frame


def asked(**changes):
    given = {
        "networks": ["resnet20", "resnet56"],
        "chains": [1, 4],
        "methods": ["M-SGD", "DEO*"],
        "num_images": 512,
        "seconds": 1.0,
        "profile": True,
        "stops": True,
    }
    return rows_asked(argparse.Namespace(**{**given, **changes}))


def test_rows_are_networks_by_chains_then_methods_then_stops():
    rows = asked()
    found = [(row["kind"], row["network"], row["num_chains"], row["method"], row["is_profiled"]) for row in rows]
    assert found == [
        ("speed", "resnet20", 1, "SGHMC", True),
        ("speed", "resnet20", 4, "SGHMC", True),
        ("speed", "resnet56", 1, "SGHMC", False),
        ("speed", "resnet56", 4, "SGHMC", False),
        ("speed", "resnet20", 4, "M-SGD", False),
        ("speed", "resnet20", 10, "DEO*", False),
        ("stops", "resnet20", 4, "SGHMC", False),
    ]
    assert not any(row["is_profiled"] for row in asked(profile=False))


def test_couplings_work_from_the_first_iteration_on():
    frame = Frame(50_000, 196, 1.0, "cifar100")
    assert sampler_of("reSGHMC", frame).coupling.rule.start == 0
    assert sampler_of("ICSGHMC", frame).coupling.warm_up == 0
    assert sampler_of("DEO*", frame).coupling.traits.num_chains == 10


def test_times_of_kernels_are_those_of_streams_of_the_device(tmp_path):
    def kernel(name, pid, thread, start, duration):
        return {"ph": "X", "name": name, "pid": pid, "tid": thread, "ts": start, "dur": duration}

    events = [
        {"name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
        {"name": "process_name", "pid": 2, "args": {"name": "/host:CPU"}},
        {"name": "thread_name", "pid": 1, "tid": 5, "args": {"name": "Stream #5(Compute)"}},
        {"name": "thread_name", "pid": 1, "tid": 6, "args": {"name": "Stream #6(Compute)"}},
        {"name": "thread_name", "pid": 1, "tid": 7, "args": {"name": "XLA Ops"}},
        kernel("sm90_xmma_fprop_tiles", 1, 5, 0.0, 10.0),
        kernel("input_reduce_fusion_3", 1, 6, 5.0, 10.0),
        kernel("loop_add_fusion", 1, 5, 20.0, 2.0),
        kernel("MemcpyD2H", 1, 5, 30.0, 1.0),
        kernel("fusion", 1, 7, 0.0, 100.0),
        kernel("python", 2, 5, 0.0, 100.0),
    ]
    folder = tmp_path / "plugins" / "profile"
    folder.mkdir(parents=True)
    with gzip.open(folder / "host.trace.json.gz", "wt") as file:
        json.dump({"traceEvents": events}, file)
    found = kernel_times(tmp_path)
    assert found["num_kernels"] == 4
    assert found["busy_us"] == 18.0
    assert found["kernel_us"] == {"convolutions": 10.0, "sums": 10.0, "elementwise": 2.0, "copies": 1.0}
