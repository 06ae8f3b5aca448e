"""The command line of the data sets: `isotherm data get`, `check` and `list`."""

import dataclasses
import pathlib
import sys
from typing import Annotated, ClassVar

import tyro
from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Get:
    """Download a data set from its publisher, check it, and write it as NAME.npz."""

    name: tyro.conf.Positional[str]
    """A data set that `isotherm data list` shows."""
    dir: pathlib.Path = pathlib.Path("data")
    """Folder for the data sets."""
    mirror: str | None = None
    """An address that holds files of the same names."""

    def run(self, console: Console) -> None:
        """Download."""
        from isotherm_thesis.data import get

        path = get(self.name, self.dir, mirror=self.mirror, progress=console.is_terminal)
        console.print(f"{path} is complete.", soft_wrap=True)


@dataclasses.dataclass(frozen=True)
class Check:
    """Check the data sets in a folder. Ends with status 1 if one is damaged."""

    dir: tyro.conf.Positional[pathlib.Path]
    """Folder of the data sets."""

    def run(self, console: Console) -> None:
        """Check."""
        from isotherm_thesis.data import check

        found = check(self.dir)
        if not found:
            console.print(f"No data set is in {self.dir}.")
        for name, problem in found.items():
            console.print(
                problem or f"{name} is complete.", style="red" if problem else "green", soft_wrap=True, markup=False
            )
        if any(found.values()):
            sys.exit(1)


@dataclasses.dataclass(frozen=True)
class ListData:
    """List the data sets."""

    def run(self, console: Console) -> None:
        """Print the catalog."""
        from rich.table import Table

        from isotherm_thesis.data import CATALOG

        table = Table("data set", "content", "download", "license")
        for dataset in CATALOG.values():
            sizes = [file.num_bytes for file in dataset.downloads]
            size = f"{sum(filter(None, sizes)) / 1e6:,.1f} MB" if all(sizes) else "below 1 MB"
            table.add_row(dataset.name, dataset.description, size, dataset.license)
        console.print(table)


@dataclasses.dataclass(frozen=True)
class Data:
    """Download, check and list data sets."""

    # Nothing is compiled, and JAX need not be imported.
    compiles: ClassVar[bool] = False

    command: tyro.conf.OmitSubcommandPrefixes[
        tyro.conf.OmitArgPrefixes[
            Annotated[Get, tyro.conf.subcommand("get")]
            | Annotated[Check, tyro.conf.subcommand("check")]
            | Annotated[ListData, tyro.conf.subcommand("list")]
        ]
    ]

    def run(self, console: Console) -> None:
        """Run the one that was chosen."""
        self.command.run(console)
