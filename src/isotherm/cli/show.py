"""A finished run on the terminal, and its pictures in its folder."""

import pathlib

from rich.console import Console

from isotherm.runs.run import Run


def show(run: Run, out: pathlib.Path, console: Console) -> None:
    """Print the summary of a run, and write its pictures."""
    console.print(str(run.summary()), highlight=False, markup=False)
    for name in ("trace", "density", "energy"):
        getattr(run, f"plot_{name}")().savefig(out / f"{name}.png", dpi=110)
    console.print(f"Wrote draws and pictures to {out}.", highlight=False)
