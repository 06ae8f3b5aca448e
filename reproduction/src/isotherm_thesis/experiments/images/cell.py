"""One method with one seed at one setting: run or resumed in a folder, judged, and written as `cell.json`.

    python -m isotherm_thesis.experiments.images.cell --experiment cifar-icsghmc --method "ICSGHMC x P4" --seed 0 --scale 0.2
        --data-dir DIR --out DIR --seconds 500 [--set zeta=1e6 num_held_out=5000 ...]

It stops after the seconds and goes on where it was when it is called again. The last line that it prints is the cell as JSON,
without its curves.
"""

import argparse
import ast
import dataclasses
import importlib
import itertools
import json
import pathlib
import re
import shutil
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import isotherm as iso
from isotherm.driver.describe import environment
from isotherm.foundation.errors import check_choice
from isotherm.predictive import fit_swag
from isotherm.run.run import Run
from isotherm.run.storage.json_files import write_json
from isotherm_thesis.experiments import EXPERIMENTS
from isotherm_thesis.experiments.images.averages import (
    Averages,
    average,
    block_size,
    in_blocks,
    networks_of,
    networks_of_run,
    weights_from,
)
from isotherm_thesis.experiments.images.coupling_report import coupling_report
from isotherm_thesis.experiments.images.judging import curves, entropy_curves, judge
from isotherm_thesis.experiments.images.plan import Arm, Frame, Plan
from isotherm_thesis.experiments.images.problem import ImageData, Problem, problem_of
from isotherm_thesis.experiments.images.setting import Setting, digest
from isotherm_thesis.experiments.images.stages import costs, run_stage

_SWAG_BLOCK = 20


@dataclasses.dataclass(frozen=True)
class Cell:
    """One method with one seed at one setting.

    Attributes:
        experiment: its name.
        label: of the method.
        arm: the method.
        setting: data, network and budget.
        seed: of all randomness.
        knobs: numbers of the method that are set otherwise.
    """

    experiment: str
    label: str
    arm: Arm
    setting: Setting
    seed: int
    knobs: dict[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of its folder."""
        words = re.sub(r"[^A-Za-z0-9.*]+", "-", self.label).strip("-").replace("*", "star")
        return f"{words}-seed{self.seed}-{digest(self.label, self.setting.of_result(), self.arm.knobs, self.knobs)}"

    def frame(self, num_data: int) -> Frame:
        """What its schedules depend on."""
        setting = self.setting
        return Frame(num_data, -(-num_data // setting.batch_size), setting.scale, setting.data_set)


def run_cell(
    cell: Cell, folder: pathlib.Path, make_problem: Callable[[Setting], Problem] = problem_of
) -> dict[str, Any]:
    """The record of a cell, which is run, or resumed, in a folder of its own below `folder`, unless it is there already.

    Cells with one and the same problem share compiled programs. A record of a cell that was stopped holds no scores, and says
    `"is_finished": false`.
    """
    own = folder / cell.name
    if (own / "cell.json").exists():
        return json.loads((own / "cell.json").read_text())
    setting = cell.setting
    until = None if setting.seconds is None else time.monotonic() + setting.seconds
    data, potential = make_problem(setting)
    plan = cell.arm.plan(cell.frame(potential.num_data), **cell.knobs)
    record = _described(cell, plan)
    start = _start(cell, plan, potential, folder, until)
    if plan.pretraining is not None and start is None:
        return record
    init = _init(plan, potential, start, cell.seed)
    run = run_stage(own / "run", plan, potential, init, cell.seed, setting.chain_mode, until)
    if run is None:
        return record
    began = time.perf_counter()
    averages, epochs = _averaged(plan, potential, data, run, start)
    record |= {
        "is_finished": True,
        "scores": judge(averages, data),
        "parts": _parts(cell, plan, potential, data, run),
        "coupling": coupling_report(run, plan),
        "curves": curves(averages, epochs),
        "entropies": entropy_curves(averages),
        "cost": costs(own / "run", plan, potential.num_data) | {"judge_seconds": time.perf_counter() - began},
        "environment": environment(),
    }
    write_json(own / "cell.json", record)
    if not setting.keeps_draws:
        shutil.rmtree(own / "run")
    return record


def _described(cell: Cell, plan: Plan) -> dict[str, Any]:
    clock = plan.clock
    return {
        "experiment": cell.experiment,
        "method": cell.label,
        "seed": cell.seed,
        "setting": cell.setting.of_result(),
        "knobs": {**cell.arm.knobs, **cell.knobs},
        "chains": plan.chains,
        "epochs": clock.num_epochs,
        "thesis_epochs": clock.thesis_epochs,
        "steps_per_epoch": clock.steps_per_epoch,
        "average_from_epoch": plan.average_from / clock.steps_per_epoch,
        "is_finished": False,
    }


def _start(cell: Cell, plan: Plan, potential: Any, folder: pathlib.Path, until: float | None) -> Run | None:
    """The run that pretrains, which all methods of a seed and setting share; None where there is none, or where it was stopped."""
    if plan.pretraining is None:
        return None
    name = f"pretrained-{plan.pretraining.chains}-seed{cell.seed}-{digest(cell.setting.of_result())}"
    mode = cell.setting.chain_mode
    return run_stage(folder / name, plan.pretraining, potential, potential.init, cell.seed, mode, until)


def _init(plan: Plan, potential: Any, start: Run | None, seed: int) -> Any:
    if start is not None:
        return iso.per_chain({name: np.asarray(leaf)[:, -1] for name, leaf in start.draws.items()})
    return potential.init if plan.starts_apart else potential.init(jax.random.key(seed))


def _averaged(plan: Plan, potential: Any, data: ImageData, run: Run, start: Run | None) -> tuple[Averages, np.ndarray]:
    """The averages of a run's networks, or of those that SWAG draws, and the epoch of each network."""
    clock = plan.clock
    if plan.swag is not None:
        kept = dataclasses.replace(
            run, **{name: jax.tree.map(np.asarray, getattr(run, name)) for name in ("draws", "model_state")}
        )
        fitted = fit_swag(kept, rank=plan.swag.rank, cycle_length=plan.swag.cycle_length)
        drawn = fitted.sample(plan.swag.num_drawn, potential=potential)
        networks = networks_of(drawn.draws, drawn.model_state, np.ones(drawn.log_weights.shape))
        cycles = np.arange(len(networks.weights)) // plan.swag.num_drawn + 1
        epochs = cycles * plan.swag.cycle_length // clock.steps_per_epoch
        return average(potential, data, in_blocks(networks, min(_SWAG_BLOCK, len(networks.weights)))), epochs
    weights = weights_from(run, plan.first_averaged)
    epochs = np.broadcast_to((run.iterations + 1) / clock.steps_per_epoch, weights.shape).T[weights.T > 0]
    blocks = networks_of_run(run, weights)
    if start is not None:
        # Relative to the mean weight of the run's own networks.
        weight = plan.pretrained_weight / len(epochs)
        before = networks_of(start.draws, start.model_state, np.full(start.log_weights.shape, weight))
        blocks = itertools.chain(in_blocks(before, block_size(run, weights)), blocks)
        epochs = np.concatenate([np.zeros(len(before.weights)), epochs])
    return average(potential, data, blocks), epochs


def _parts(cell: Cell, plan: Plan, potential: Any, data: ImageData, run: Run) -> dict[str, Any]:
    """Scores of parts of the average."""
    weights = weights_from(run, plan.first_averaged)
    found = {}
    for name, part_of in cell.arm.parts.items():
        part = part_of(weights)
        networks = networks_of_run(run, (part / part.sum()).astype(np.float32))
        found[name] = judge(average(potential, data, networks), data)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run or resume one cell, and print its record in one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--method", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float)
    parser.add_argument("--data-dir", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE")
    given = parser.parse_args(arguments)
    check_choice("experiment", given.experiment, tuple(EXPERIMENTS))
    module: Any = importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[given.experiment]}")
    arm = module.ARMS[check_choice("method", given.method, tuple(module.ARMS))]
    changes = dict(_parsed(text) for text in given.set)
    fields = {field.name for field in dataclasses.fields(Setting)}
    own = {name: value for name, value in changes.items() if name in fields}
    own |= {"data_dir": given.data_dir, "seconds": given.seconds}
    own |= {} if given.scale is None else {"scale": given.scale}
    setting = dataclasses.replace(module.FULL, **{**arm.changes, **own})
    knobs = {name: value for name, value in changes.items() if name not in fields}
    record = run_cell(Cell(given.experiment, given.method, arm, setting, given.seed, knobs), given.out)
    shown = {name: value for name, value in record.items() if name not in ("curves", "entropies")}
    shown["coupling"] = {
        name: value for name, value in record.get("coupling", {}).items() if not name.endswith("over time")
    }
    print(json.dumps(shown), flush=True)


def _parsed(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


if __name__ == "__main__":
    main()
