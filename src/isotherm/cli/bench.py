"""`isotherm bench`."""

import dataclasses
import pathlib

from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure speed."""

    peers: bool = False
    """Beside other libraries; needs BlackJAX and TensorFlow Probability."""
    out: pathlib.Path | None = None
    """A JSON file for the numbers."""

    def run(self, console: Console) -> None:
        """Measure."""
        from isotherm.bench import run_bench

        run_bench(self.peers, self.out, console)
