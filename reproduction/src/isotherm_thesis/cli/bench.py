"""`isotherm bench`."""

import dataclasses
import pathlib
from typing import ClassVar

from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure speed."""

    # Programs that are kept would hide how long compiling takes.
    compiles: ClassVar[bool] = False

    peers: bool = False
    """Beside other libraries; needs BlackJAX and TensorFlow Probability."""
    out: pathlib.Path | None = None
    """A JSON file for the numbers."""

    def run(self, console: Console) -> None:
        """Measure."""
        from isotherm_thesis.bench import run_bench

        run_bench(self.peers, self.out, console)
