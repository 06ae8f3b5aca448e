"""The command line: `isotherm demo`, `list`, `sample`, `resume`, `show`, `minimize`, `reproduce`, `bench`, `data`; `--version`."""

import sys
import warnings
from typing import Annotated, Any, Union

import tyro

from isotherm.cli.demo import Demo
from isotherm.cli.extras import extra_commands
from isotherm.cli.listing import List
from isotherm.cli.minimize import Minimize
from isotherm.cli.resume import Resume
from isotherm.cli.sample import Sample
from isotherm.cli.show import Show
from isotherm.foundation.errors import DivergenceError
from isotherm.foundation.terminal import PlainConsole

_OWN = {"demo": Demo, "list": List, "sample": Sample, "resume": Resume, "show": Show, "minimize": Minimize}


def main(arguments: list[str] | None = None, extra: dict[str, Any] | None = None) -> None:
    """Entry point of `isotherm`. Wrong input ends with its message and status 2.

    `extra` are commands beside those of the library; by default those that installed packages add.
    """
    if (sys.argv[1:] if arguments is None else arguments) == ["--version"]:
        from isotherm import __version__

        print(f"isotherm {__version__}")
        return
    commands = _OWN | (extra_commands() if extra is None else extra)
    every = Union[tuple(Annotated[kind, tyro.conf.subcommand(name)] for name, kind in commands.items())]  # noqa: UP007
    command: Any = tyro.cli(every, prog="isotherm", description=__doc__, args=arguments)  # pyright: ignore[reportCallIssue, reportArgumentType]
    console, errors = PlainConsole(), PlainConsole(stderr=True)
    warnings.showwarning = lambda message, *_, **__: errors.print(f"Warning: {message}", style="yellow", soft_wrap=True)
    if getattr(command, "compiles", True):
        from isotherm.foundation.compilation_cache import use_compilation_cache

        use_compilation_cache()
    try:
        command.run(console)
    except (ValueError, OSError, DivergenceError) as error:
        errors.print(f"Error: {error}", style="red", soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        has_folder = isinstance(command, (Sample, Resume))
        errors.print("Stopped." + " A run with --out goes on with `isotherm resume DIR`." * has_folder)
        sys.exit(130)
