"""The command line: `isotherm demo`, `list`, `sample`, `resume`, `show`, `minimize`, `reproduce`, `bench`, `data`; `--version`."""

import sys
import warnings
from typing import Annotated

import tyro

from isotherm.cli.bench import Bench
from isotherm.cli.data import Data
from isotherm.cli.demo import Demo
from isotherm.cli.listing import List
from isotherm.cli.minimize import Minimize
from isotherm.cli.reproduce import Reproduce
from isotherm.cli.resume import Resume
from isotherm.cli.sample import Sample
from isotherm.cli.show import Show
from isotherm.foundation.errors import DivergenceError
from isotherm.foundation.terminal import PlainConsole

Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Sample, tyro.conf.subcommand("sample")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Show, tyro.conf.subcommand("show")]
    | Annotated[Minimize, tyro.conf.subcommand("minimize")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of `isotherm`. Wrong input ends with its message and status 2."""
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        from isotherm import __version__

        print(f"isotherm {__version__}")
        return
    command = tyro.cli(Command, prog="isotherm", description=__doc__, args=arguments)  # pyright: ignore[reportCallIssue, reportArgumentType]
    console, errors = PlainConsole(), PlainConsole(stderr=True)
    warnings.showwarning = lambda message, *_, **__: errors.print(f"Warning: {message}", style="yellow", soft_wrap=True)
    # A benchmark tells how long compiling takes; lists and data sets compile nothing, and need not wait for JAX.
    if not isinstance(command, (Bench, Data, List)):
        from isotherm.foundation.compilation_cache import use_compilation_cache

        use_compilation_cache()
    try:
        command.run(console)  # pyright: ignore[reportAttributeAccessIssue]
    except (ValueError, OSError, DivergenceError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        has_folder = isinstance(command, (Sample, Resume))
        errors.print("Stopped." + " A run with --out goes on with `isotherm resume DIR`." * has_folder)
        sys.exit(130)
