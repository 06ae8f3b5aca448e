"""Networks on images, as runs of the library: images per second, memory, waits for the compiler, and what a stop changes.

    python -m isotherm_thesis.bench.images --out FILE [--networks resnet20 resnet56 wrn-16-8] [--chains 1 4 10]
        [--methods M-SGD ICSGHMC reSGHMC DEO*] [--profile] [--stops]

Every row has a process of its own, so that its peak of memory is its own, and a compiler that nothing disturbs: on a GPU the
compiler tries algorithms of convolutions against the clock. Rows that FILE has already are not measured again. Images are random:
no rate depends on what they show. Batches hold 256 images, augmented as in the thesis; networks compute in bfloat16.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax
import numpy as np

import isotherm as iso
from isotherm.driver.describe import environment
from isotherm.run.storage.json_files import write_json
from isotherm_thesis.bench.kernel_times import kernel_times
from isotherm_thesis.experiments.images import ladders, parallel
from isotherm_thesis.experiments.images.plan import Frame
from isotherm_thesis.experiments.images.problem import ImageData, potential_of
from isotherm_thesis.experiments.images.setting import Setting

NUM_IMAGES, NUM_CLASSES, REPEATS = 50_000, 100, 3
STOPS = "stops"
# What a row is of; it is measured once.
_NAMES = ("kind", "network", "num_chains", "method", "num_images", "xla_flags")
_PROFILED_STEPS = 30


def sampler_of(method: str, frame: Frame) -> Any:
    """A method whose coupling works from the first iteration on, so that a short run has all of its cost."""
    makers = {
        "M-SGD": lambda: parallel.msgd(frame),
        "SGHMC": lambda: parallel.sghmc(frame),
        "reSGHMC": lambda: parallel.resghmc(frame, swap_from=0.0, refresh_epochs=0),
        "VR-reSGHMC": lambda: parallel.resghmc(frame, swap_from=0.0, refresh_epochs=2),
        "ICSGHMC": lambda: parallel.icsghmc(frame, warm_up=0.0, refresh_epochs=0),
        "VR-ICSGHMC": lambda: parallel.icsghmc(frame, warm_up=0.0, refresh_from=0.0),
        "DEO*": lambda: ladders.deo_msgd(frame),
    }
    return makers[method]().sampler


def problem(network: str, num_images: int) -> tuple[Any, Frame]:
    """A network on random images with random labels."""
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (num_images, 32, 32, 3), dtype=np.uint8)
    labels = rng.integers(0, NUM_CLASSES, num_images).astype(np.int32)
    setting = Setting(methods=(), network=network, batch_size=min(Setting.batch_size, num_images))
    data = ImageData((images, labels), (images[:0], labels[:0]), (images, labels), images, NUM_CLASSES)
    frame = Frame(num_images, -(-num_images // setting.batch_size), 1.0, "cifar100")
    return potential_of(setting, data), frame


class Timed:
    """Runs of one method on one network, whose program is compiled once."""

    def __init__(self, network: str, num_chains: int, method: str, num_images: int = NUM_IMAGES):
        self.potential, self.frame = problem(network, num_images)
        self.sampler = sampler_of(method, self.frame)
        self.num_chains = num_chains

    def run(self, num_steps: int, **options: Any) -> Any:
        """A run that records once an epoch."""
        is_ladder = self.sampler.coupling.traits.num_chains is not None
        return iso.sample(
            self.potential,
            self.sampler,
            num_steps=num_steps,
            num_chains=None if is_ladder else self.num_chains,
            num_ladders=1,
            thinning=min(self.frame.steps_per_epoch, num_steps),
            init=self.potential.init,
            progress=False,
            measure_bias=False,
            **options,
        )


def speed(timed: Timed, seconds: float, is_profiled: bool) -> dict[str, Any]:
    """Images per second of all chains together, medians of runs of about so many seconds after one that compiles.

    With control variates runs are of whole periods between refreshes, each of which costs a pass over the data.
    """
    images = timed.num_chains * timed.potential.batch_size
    period = getattr(timed.sampler.estimator, "refresh_every", 1)
    few = max(timed.frame.steps_per_epoch // 4, 1) if period == 1 else period
    first = timed.run(few)
    num_steps = max(round(few * seconds / first.seconds / period), 1) * period
    rates = [images * num_steps / timed.run(num_steps).seconds for _ in range(REPEATS)]
    stats = jax.local_devices()[0].memory_stats() or {}
    found = {
        "images_per_second": statistics.median(rates),
        "all_rates": rates,
        "num_steps": num_steps,
        "compile_seconds": first.compile_seconds,
        "peak_bytes": stats.get("peak_bytes_in_use"),
        "num_weights": sum(leaf.size for leaf in jax.tree.leaves(timed.potential.init(jax.random.key(0)))),
    }
    if is_profiled:
        found["profile"] = profile(timed)
    return found


def profile(timed: Timed) -> dict[str, Any]:
    """Where the time of a few iterations goes on the device."""
    timed.run(_PROFILED_STEPS)
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            timed.run(_PROFILED_STEPS)
        return {"num_steps": _PROFILED_STEPS, **kernel_times(pathlib.Path(folder))}


def stops(timed: Timed, num_steps: int) -> dict[str, Any]:
    """Whether a run that stops in the middle of an epoch ends where two that do not stop end, which may differ themselves."""
    with tempfile.TemporaryDirectory() as folder:
        whole = [timed.run(num_steps, out=pathlib.Path(folder) / f"whole{k}") for k in range(2)]
        path = pathlib.Path(folder) / "stopped"
        seen: list[int] = []

        def is_half_way(status: Any) -> bool:
            seen.append(status.iteration)
            return status.iteration >= num_steps // 2

        timed.run(num_steps, out=path, callback=is_half_way)
        resumed = iso.resume(path, timed.potential, timed.sampler, progress=False, measure_bias=False)
        same = [_are_equal(whole[0].draws, other.draws) for other in (whole[1], resumed)]
    return {"num_steps": num_steps, "stopped_at": seen[-1], "repeat_is_equal": same[0], "stopped_is_equal": same[1]}


def _are_equal(one: Any, other: Any) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(np.asarray(left), np.asarray(right)) for left, right in pairs)


def measure(row: dict[str, Any]) -> dict[str, Any]:
    """One row, in this process."""
    began = time.perf_counter()
    timed = Timed(row["network"], row["num_chains"], row["method"], row["num_images"])
    if row["kind"] == STOPS:
        found = stops(timed, 2 * timed.frame.steps_per_epoch + timed.frame.steps_per_epoch // 2)
    else:
        found = speed(timed, row["seconds"], row["is_profiled"])
    return {**row, **found, "seconds_in_all": time.perf_counter() - began, "environment": environment()}


def rows_asked(given: argparse.Namespace) -> list[dict[str, Any]]:
    """What is measured, in order: networks by chains of SGHMC, then methods on the first network, then stops."""
    shared = {"kind": "speed", "num_images": given.num_images, "seconds": given.seconds, "is_profiled": False}
    rows = [
        {**shared, "network": network, "num_chains": number, "method": "SGHMC"}
        for network in given.networks
        for number in given.chains
    ]
    rows += [
        {**shared, "network": given.networks[0], "num_chains": 10 if method == "DEO*" else 4, "method": method}
        for method in given.methods
    ]
    if given.stops:
        rows.append({**shared, "kind": STOPS, "network": given.networks[0], "num_chains": 4, "method": "SGHMC"})
    for row in rows:
        row["xla_flags"] = os.environ.get("XLA_FLAGS", "")
        is_first = row["network"] == given.networks[0] and row["method"] == "SGHMC"
        is_speed = row["kind"] != STOPS
        row["is_profiled"] = given.profile and is_speed and is_first and row["num_chains"] <= 4
    return rows


def main() -> None:
    """Measure the rows that are not there yet, and write the record after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--networks", nargs="+", default=["resnet20", "resnet56", "wrn-16-8"])
    parser.add_argument("--chains", nargs="*", type=int, default=[1, 4, 10])
    parser.add_argument("--methods", nargs="*", default=["M-SGD", "reSGHMC", "VR-reSGHMC", "ICSGHMC", "DEO*"])
    parser.add_argument("--num-images", type=int, default=NUM_IMAGES)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--stops", action="store_true")
    parser.add_argument("--row", type=json.loads, help="One row, as JSON, that is measured in this process.")
    given = parser.parse_args()
    if given.row is not None:
        print(json.dumps(measure(given.row)), flush=True)
        return
    if given.out is None:
        parser.error("--out is missing: name the file of the record, such as --out images.json")
    rows = json.loads(given.out.read_text()) if given.out.exists() else []
    for row in rows_asked(given):
        if any(all(known[name] == row[name] for name in _NAMES) for known in rows):
            continue
        command = [sys.executable, "-m", "isotherm_thesis.bench.images", "--row", json.dumps(row)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            print(f"failed: {row}", flush=True)
            continue
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        write_json(given.out, rows)
        print({name: rows[-1].get(name) for name in (*row, "images_per_second", "compile_seconds")}, flush=True)


if __name__ == "__main__":
    main()
