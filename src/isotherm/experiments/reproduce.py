"""From the name of an experiment to a table, figures and `result.json`."""

import dataclasses
import importlib
import pathlib
import time
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from isotherm.experiments import EXPERIMENTS
from isotherm.experiments.parts import num_parts
from isotherm.experiments.result import Row, write_result
from isotherm.foundation.errors import check_choice, check_integer, refuse
from isotherm.sampling.part_progress import PartProgress


class Outcome(NamedTuple):
    """What an experiment found: rows of its table, and its figures by name."""

    rows: list[Row]
    figures: dict[str, Figure]


def reproduce(
    name: str,
    out: pathlib.Path | None = None,
    is_quick: bool = False,
    num_runs: int | None = None,
    data_dir: pathlib.Path | None = None,
    seed: int = 0,
    scale: float | None = None,
    console: Console | None = None,
) -> list[Row]:
    """Run an experiment of the thesis; print its numbers beside ours; write them and the figures to `out`.

    Args:
        name: of the experiment, as `isotherm list` shows it.
        out: a folder; None is `reproduced/NAME`.
        is_quick: a small version that ends in about a minute.
        num_runs: independent repeats; None is the experiment's own number.
        data_dir: where data sets lie, for experiments that need them.
        seed: of all randomness.
        scale: the fraction of the thesis' epochs, for experiments with images; None is the experiment's own.
        console: where to print.
    """
    check_choice("name", name, tuple(EXPERIMENTS))
    experiment: Any = importlib.import_module(f"isotherm.experiments.{EXPERIMENTS[name]}")
    config = experiment.QUICK if is_quick else experiment.FULL
    if num_runs is not None:
        config = dataclasses.replace(config, num_runs=check_integer("seeds", num_runs, 1, "Give a number of repeats."))
    if data_dir is not None:
        if not hasattr(config, "data_dir"):
            refuse("data_dir", f"left out for {name}", str(data_dir), "This experiment needs no data.")
        config = dataclasses.replace(config, data_dir=str(data_dir))
    if scale is not None:
        if not hasattr(config, "scale"):
            refuse(
                "scale", f"left out for {name}", scale, "This experiment has one length; --quick is a small version."
            )
        config = dataclasses.replace(config, scale=scale)
    console = console or Console()
    out = out or pathlib.Path("reproduced") / name
    out.mkdir(parents=True, exist_ok=True)
    if hasattr(config, "cells") and config.cells is None:
        # Long runs that are stopped go on when the same command is given again.
        config = dataclasses.replace(config, cells=str(out / "cells"))
    began = time.perf_counter()
    with PartProgress(console, num_parts(name, config)) as log:
        outcome: Outcome = experiment.run(config, seed, log)
    seconds = time.perf_counter() - began
    console.print(table_of(experiment.TITLE, outcome.rows))
    for figure_name, figure in outcome.figures.items():
        figure.savefig(out / f"{figure_name}.png", dpi=110)
    version = "quick" if is_quick else "full"
    write_result(out / "result.json", name, version, outcome.rows, dataclasses.asdict(config), seed, seconds)
    wrote = ", ".join(["result.json", *(f"{figure}.png" for figure in outcome.figures)])
    console.print(f"{seconds:.1f} s. Wrote {wrote} to {out}.", highlight=False)
    return outcome.rows


def table_of(title: str, rows: list[Row]) -> Table:
    """Rows as a table for the terminal."""
    table = Table(title=title)
    for column in ("method", "metric", "thesis", "ours", "runs"):
        table.add_column(column, justify="left" if column in ("method", "metric") else "right")
    for row in rows:
        table.add_row(
            row.method, row.metric, "" if row.thesis is None else f"{row.thesis:.4g}", row.text, str(row.runs)
        )
    return table
