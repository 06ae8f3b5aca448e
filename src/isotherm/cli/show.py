"""`isotherm show`, and a run on the terminal with its pictures in its folder."""

import dataclasses
import pathlib
from typing import TYPE_CHECKING

import tyro
from rich.console import Console

if TYPE_CHECKING:
    from isotherm.run.run import Run


@dataclasses.dataclass(frozen=True)
class Show:
    """Print what a run is and its summary, whether it has ended or not."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""

    def run(self, console: Console) -> None:
        """Print it."""
        from isotherm.run.run import Run

        found = Run.load(self.folder)
        console.print(repr(found))
        console.print(str(found.summary()))


def show(run: "Run", out: pathlib.Path, console: Console) -> None:
    """Print the summary of a run, and write its pictures."""
    console.print(str(run.summary()))
    try:
        for name in ("trace", "density", "energy"):
            getattr(run, f"plot_{name}")().savefig(out / f"{name}.png", dpi=110)
    except ImportError as error:
        console.print(f"Wrote draws to {out}. No pictures: {error}", soft_wrap=True)
    else:
        console.print(f"Wrote draws and pictures to {out}.", soft_wrap=True)
