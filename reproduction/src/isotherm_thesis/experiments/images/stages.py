"""One run in a folder that may be stopped after any minute, and its costs over all of its stretches."""

import dataclasses
import json
import pathlib
import time
from typing import Any

import jax

import isotherm as iso
from isotherm.run.run import Run
from isotherm.run.storage.json_files import write_json
from isotherm_thesis.experiments.images.plan import Plan

_CHECKPOINT_SECONDS = 60.0


@dataclasses.dataclass
class Deadline:
    """Stops a run when its time is up, and remembers when it was where.

    Attributes:
        until: of `time.monotonic()`; None never stops.
        marks: times and iterations of the first and the last look.
        is_over: whether it stopped a run.
    """

    until: float | None
    marks: list[tuple[float, int]] = dataclasses.field(default_factory=list)
    is_over: bool = False

    def __call__(self, status: Any) -> bool:
        """Whether to stop; called by the run after every block."""
        self.marks = [*self.marks[:1], (time.monotonic(), status.iteration)]
        self.is_over = self.until is not None and time.monotonic() > self.until
        return self.is_over


def run_stage(
    folder: pathlib.Path, plan: Plan, potential: Any, init: Any, seed: int, chain_mode: str, until: float | None
) -> Run | None:
    """The finished run of a plan, started or resumed in `folder`; None where it was stopped before its end."""
    if (folder / "finished.json").exists():
        run = iso.load(folder)
        if run.num_steps == plan.clock.num_steps:
            return run
    if until is not None and time.monotonic() > until:
        return None
    deadline, began = Deadline(until), time.perf_counter()
    options: dict[str, Any] = {
        "checkpoint_every": _CHECKPOINT_SECONDS,
        "progress": False,
        "callback": deadline,
        "measure_bias": False,
    }
    try:
        if (folder / "run.json").exists():
            run = iso.resume(folder, potential, plan.sampler, **options)
        else:
            run = iso.sample(
                potential,
                plan.sampler,
                num_steps=plan.clock.num_steps,
                num_chains=plan.num_chains,
                num_ladders=1,
                thinning=plan.thinning,
                burn_in=plan.first_record,
                init=init,
                seed=seed,
                out=folder,
                chain_mode=chain_mode,
                **options,
            )
    except ValueError:
        # A stop before the first draw leaves a checkpoint and no run.
        if not deadline.is_over:
            raise
        run = None
    compile_seconds = 0.0 if run is None else run.compile_seconds
    _note(folder, deadline, time.perf_counter() - began, compile_seconds)
    return run if run is not None and run.num_steps == plan.clock.num_steps else None


def costs(folder: pathlib.Path, plan: Plan, num_data: int) -> dict[str, Any]:
    """Seconds in all, and images per second once everything was compiled, over the stretches of a run."""
    path = folder / "stretches.json"
    stretches = json.loads(path.read_text()) if path.exists() else []
    seconds = sum(stretch["steady_seconds"] for stretch in stretches)
    steps = sum(stretch["steady_steps"] for stretch in stretches)
    images = plan.chains * num_data / plan.clock.steps_per_epoch
    return {
        "seconds": sum(stretch["seconds"] for stretch in stretches),
        "compile_seconds": max((stretch["compile_seconds"] for stretch in stretches), default=0.0),
        "images": plan.chains * num_data * plan.clock.num_epochs,
        "images_per_second": images * steps / seconds if seconds > 0 else None,
        "stretches": len(stretches),
        "peak_bytes": max((stretch["peak_bytes"] or 0 for stretch in stretches), default=0) or None,
    }


def _note(folder: pathlib.Path, deadline: Deadline, seconds: float, compile_seconds: float) -> None:
    path = folder / "stretches.json"
    known = json.loads(path.read_text()) if path.exists() else []
    first, last = (deadline.marks[0], deadline.marks[-1]) if deadline.marks else ((0.0, 0), (0.0, 0))
    stats = jax.local_devices()[0].memory_stats() or {}
    stretch = {
        "seconds": seconds,
        "compile_seconds": compile_seconds,
        "steady_seconds": last[0] - first[0],
        "steady_steps": last[1] - first[1],
        "peak_bytes": stats.get("peak_bytes_in_use"),
    }
    write_json(path, [*known, stretch])
