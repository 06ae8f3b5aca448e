"""From the name of an experiment to a table, figures and `result.json`."""

import dataclasses
import importlib
import pathlib
import time
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from isotherm.demo.result import Row, write_result
from isotherm.foundation.errors import check_choice, check_integer, refuse, short
from isotherm.foundation.terminal import PlainConsole
from isotherm_thesis.experiments import EXPERIMENTS
from isotherm_thesis.experiments.parts import num_parts
from isotherm_thesis.part_progress import PartProgress


class Outcome(NamedTuple):
    """What an experiment found.

    Attributes:
        rows: of its table.
        figures: by name.
        environment: where it was run; None is here.
        seconds: that it took in all; None is what it took now. Parts may have been run before, and elsewhere.
    """

    rows: list[Row]
    figures: dict[str, Figure]
    environment: dict[str, Any] | None = None
    seconds: float | None = None


def reproduce(
    name: str,
    out: pathlib.Path | None = None,
    is_quick: bool = False,
    seed: int = 0,
    console: Console | None = None,
    **changes: Any,
) -> list[Row]:
    """Run an experiment of the thesis; print its numbers beside ours; write them and the figures to `out`.

    Args:
        name: of the experiment, as `isotherm list` shows it.
        out: a folder; None is `reproduced/NAME`.
        is_quick: a small version that ends in about a minute.
        seed: of all randomness.
        console: where to print.
        **changes: settings of the experiment that are other ones than its own, where they are not None: `num_runs`, independent
            repeats; `data_dir`, where data sets lie; and of experiments with images `scale`, the fraction of the thesis' epochs,
            `methods` and `data_set`.
    """
    check_choice("name", name, tuple(EXPERIMENTS))
    experiment: Any = importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[name]}")
    config = _changed(name, experiment, experiment.QUICK if is_quick else experiment.FULL, changes)
    console = console or PlainConsole()
    out = out or pathlib.Path("reproduced") / name
    out.mkdir(parents=True, exist_ok=True)
    if hasattr(config, "cells") and config.cells is None:
        # Long runs that are stopped go on when the same command is given again.
        config = dataclasses.replace(config, cells=str(out / "cells"))
    began = time.perf_counter()
    with PartProgress(console, num_parts(name, config)) as log:
        outcome: Outcome = experiment.run(config, seed, log)
    seconds = outcome.seconds or time.perf_counter() - began
    console.print(table_of(experiment.TITLE, outcome.rows))
    for figure_name, figure in outcome.figures.items():
        figure.savefig(out / f"{figure_name}.png", dpi=110)
    stored = {name: _without_folder(value) for name, value in dataclasses.asdict(config).items()}
    length = length_of(config, is_quick)
    write_result(out / "result.json", name, length, outcome.rows, stored, seed, seconds, outcome.environment)
    wrote = ", ".join(["result.json", *(f"{figure}.png" for figure in outcome.figures)])
    console.print(f"{seconds:.1f} s. Wrote {wrote} to {out}.", soft_wrap=True)
    return outcome.rows


def length_of(config: Any, is_quick: bool) -> str:
    """How long the runs of a record are: `quick`, `full`, or a fraction of the thesis' epochs."""
    if is_quick:
        return "quick"
    fraction = getattr(config, "scale", 1.0)
    return "full" if fraction == 1.0 else f"{fraction:g} of the thesis' epochs"


def _without_folder(value: Any) -> Any:
    """A setting as in the record, which does not say where folders lie on a machine."""
    is_path = isinstance(value, str) and pathlib.Path(value).is_absolute()
    return pathlib.Path(value).name if is_path else value


# What to do where an experiment has no such setting.
_REMEDIES = {
    "data_dir": "This experiment needs no data.",
    "scale": "This experiment has one length; --quick is a small version.",
    "data_set": "This experiment has its own data.",
    "methods": "This experiment runs all of its methods.",
}


def _changed(name: str, experiment: Any, config: Any, changes: dict[str, Any]) -> Any:
    """The settings of an experiment with some changed, after they were checked."""
    given = {field: value for field, value in changes.items() if value is not None}
    for field, value in given.items():
        if not hasattr(config, field) or (field == "methods" and not hasattr(experiment, "ARMS")):
            refuse(
                field,
                f"left out for {name}",
                short(value),
                _REMEDIES.get(field, "It is no setting of this experiment."),
            )
    if "num_runs" in given:
        check_integer("seeds", given["num_runs"], 1, "Give a number of repeats.")
    if "data_dir" in given:
        if not pathlib.Path(given["data_dir"]).is_dir():
            refuse("data_dir", "a folder that is there", str(given["data_dir"]), "`isotherm data` fills one.")
        given["data_dir"] = str(given["data_dir"])
    for method in given.get("methods", ()):
        check_choice("methods", method, tuple(experiment.ARMS))
    return dataclasses.replace(config, **given)


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
