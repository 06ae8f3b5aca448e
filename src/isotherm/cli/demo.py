"""`isotherm demo`."""

import dataclasses
import pathlib

from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Demo:
    """Sample the 25-mode landscape with several methods and compare them with the truth."""

    out: pathlib.Path = pathlib.Path("demo")
    """Folder for report.html, landscape.png and result.json."""
    seed: int = 0
    """Seed of all randomness."""

    def run(self, console: Console) -> None:
        """Run the demonstration."""
        from isotherm.demo.demo import run_demo

        run_demo(self.out.expanduser(), seed=self.seed, console=console)
