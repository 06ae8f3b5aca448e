"""The command line: `isotherm demo`, `list`, `sample`, `resume`, `show`, `minimize`, `launch`, `slurm`; `--version`.

The package isotherm-thesis adds `reproduce`, `bench` and `data`.
"""

import dataclasses
import importlib.metadata
import pathlib
import sys
import warnings
from typing import Annotated, Any, Union

import tyro
from rich.console import Console

from isotherm.cli.launch import Launch
from isotherm.cli.listing import List
from isotherm.cli.minimize import Minimize
from isotherm.cli.runs import Resume, Sample, Show
from isotherm.cli.slurm import Slurm
from isotherm.foundation.errors import DeviceMemoryError, DivergenceError
from isotherm.foundation.terminal import PlainConsole


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


_OWN = {
    "demo": Demo,
    "list": List,
    "sample": Sample,
    "resume": Resume,
    "show": Show,
    "minimize": Minimize,
    "launch": Launch,
    "slurm": Slurm,
}
# Commands of the package isotherm-thesis, listed even if it is not installed.
_THESIS = {
    "reproduce": "Run an experiment of the thesis, and print its numbers beside ours.",
    "bench": "Measure speed.",
    "data": "Download, check and list data sets.",
}


def main(arguments: list[str] | None = None, extra: dict[str, Any] | None = None) -> None:
    """Entry point of `isotherm`. Wrong input ends with a message and status 2.

    `extra` are commands beside those of the library; by default, those of installed packages.
    """
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        from isotherm import __version__

        print(f"isotherm {__version__}")
        return
    commands = _OWN | (_extra_commands() if extra is None else extra)
    every = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in commands.items())]  # noqa: UP007
    command: Any = tyro.cli(every, prog="isotherm", description=__doc__, args=arguments)  # pyright: ignore[reportCallIssue, reportArgumentType]
    console, errors = PlainConsole(), PlainConsole(stderr=True)
    warnings.showwarning = lambda message, *_, **__: errors.print(f"Warning: {message}", style="yellow", soft_wrap=True)
    if getattr(command, "compiles", True):
        from isotherm.foundation.compilation_cache import use_compilation_cache

        use_compilation_cache()
    try:
        command.run(console)
    except (ValueError, OSError, DivergenceError, DeviceMemoryError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True)
        _tell_others(str(error), 2)
        sys.exit(2)
    except KeyboardInterrupt:
        has_folder = isinstance(command, (Sample, Resume))
        errors.print("Stopped." + " Continue a run with --out by `isotherm resume DIR`." * has_folder)
        _tell_others("stopped by Ctrl-C", 130)
        sys.exit(130)


def _tell_others(message: str, status: int) -> None:
    """End the other processes of the run, if it has several."""
    distributed = sys.modules.get("isotherm.distributed")
    if distributed is not None:
        distributed.fail(message, status)


def _extra_commands() -> dict[str, Any]:
    """Commands of other packages: entry points of the group `isotherm.commands`."""
    installed = {one.name: one.load() for one in importlib.metadata.entry_points(group="isotherm.commands")}
    return {name: _missing(name, text) for name, text in _THESIS.items()} | installed


def _missing(name: str, text: str) -> Any:
    @dataclasses.dataclass(frozen=True)
    class Missing:
        arguments: tyro.conf.Positional[tuple[str, ...]] = ()

        def run(self, console: Console) -> None:
            raise ValueError(f"`isotherm {name}` is in the package isotherm-thesis: `pip install isotherm-thesis`.")

    Missing.__doc__ = f"{text} Requires the package isotherm-thesis."
    return Missing
