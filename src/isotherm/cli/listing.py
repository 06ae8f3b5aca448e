"""`isotherm list`."""

import dataclasses
import json
import sys

from rich.console import Console


@dataclasses.dataclass(frozen=True)
class List:
    """List the methods and experiments."""

    json: bool = False
    """Print JSON with the lists `methods` and `experiments`."""

    def run(self, console: Console) -> None:
        """Print the lists."""
        from isotherm.experiments import EXPERIMENTS
        from isotherm.samplers import METHODS

        if self.json:
            sys.stdout.write(json.dumps({"methods": list(METHODS), "experiments": list(EXPERIMENTS)}) + "\n")
            return
        console.print("methods", style="bold")
        for name, constructor in METHODS.items():
            summary = (constructor.__doc__ or "").splitlines()[0]
            console.print(f"  {name:10} {summary}", highlight=False)
        console.print("experiments", style="bold")
        for name in EXPERIMENTS:
            console.print(f"  {name}", highlight=False)
