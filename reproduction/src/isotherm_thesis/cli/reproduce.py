"""`isotherm reproduce`."""

import dataclasses
import pathlib

import tyro
from rich.console import Console

from isotherm.cli.counts import Count


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Run an experiment of the thesis, and print its numbers beside ours."""

    name: tyro.conf.Positional[str]
    """An experiment that `isotherm list` shows."""
    quick: bool = False
    """A small version that ends in about a minute."""
    seeds: Count | None = None
    """Independent repeats; by default the experiment's own number."""
    data_dir: pathlib.Path | None = None
    """Where data sets lie, for experiments that need them."""
    out: pathlib.Path | None = None
    """Folder for result.json and figures; by default reproduced/NAME."""
    seed: int = 0
    """Seed of all randomness."""
    scale: float | None = None
    """Fraction of the thesis' epochs, for experiments with images; all schedules shrink with it."""
    methods: tuple[str, ...] | None = None
    """Which methods, for experiments with images; by default those of the thesis' table."""
    data_set: str | None = None
    """"cifar100" or "cifar10", for experiments with images."""

    def run(self, console: Console) -> None:
        """Run it."""
        from isotherm_thesis.experiments.reproduce import reproduce

        reproduce(
            self.name,
            None if self.out is None else self.out.expanduser(),
            self.quick,
            self.seed,
            console,
            num_runs=self.seeds,
            data_dir=self.data_dir,
            scale=self.scale,
            methods=self.methods,
            data_set=self.data_set,
        )
