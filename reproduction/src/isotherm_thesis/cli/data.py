"""The command line of the data sets: `isotherm data get`, `check` and `list`."""

import dataclasses
import pathlib
import sys
from typing import Annotated, ClassVar

import tyro
from rich.console import Console


@dataclasses.dataclass(frozen=True)
class Get:
    """Download a data set from its publisher and check it. A download that broke off is continued."""

    name: tyro.conf.Positional[str]
    """A data set that `isotherm data list` shows."""
    dir: pathlib.Path = pathlib.Path("data")
    """Folder for the files."""
    mirror: str | None = None
    """An address that holds files of the same names."""

    def run(self, console: Console) -> None:
        """Download."""
        from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TransferSpeedColumn

        from isotherm_thesis.data.download import get

        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        with Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[str, TaskID] = {}

            def show(file: str, done: int, total: int | None) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(file)
                bars.update(tasks[file], completed=done, total=total)

            def log(line: str) -> None:
                console.print(line, soft_wrap=True)

            try:
                get(self.name, self.dir, urls=self.mirror, progress=show, log=log)
            except KeyboardInterrupt:
                log("Stopped. The same command goes on where it stopped.")
                sys.exit(130)


@dataclasses.dataclass(frozen=True)
class Check:
    """Check the data sets in a folder. Ends with status 1 if a file is damaged."""

    dir: tyro.conf.Positional[pathlib.Path]
    """Folder of the files."""

    def run(self, console: Console) -> None:
        """Check."""
        from rich.table import Table
        from rich.text import Text

        from isotherm_thesis.data.checking import check

        colors = {"right": "green", "damaged": "red", "missing": "yellow", "not checked": "yellow"}
        found = check(self.dir)
        if not found:
            console.print(f"No data set is in {self.dir}.")
            return
        table = Table("data set", "file", "state", "detail")
        for status in found:
            table.add_row(status.dataset, status.file, Text(status.state, colors[status.state]), status.detail)
        console.print(table)
        if any(status.state == "damaged" for status in found):
            sys.exit(1)


@dataclasses.dataclass(frozen=True)
class ListData:
    """List the data sets."""

    def run(self, console: Console) -> None:
        """Print the catalog."""
        from rich.table import Table

        from isotherm_thesis.data.catalog import CATALOG

        table = Table("data set", "content", "download", "license")
        for dataset in CATALOG.values():
            sizes = [file.num_bytes for file in dataset.files]
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
