"""The command line: `isotherm demo`, `list`, `sample`, `resume`, `reproduce`, `bench`, `data`."""

import dataclasses
import json
import pathlib
import sys
import warnings
from typing import Annotated

import tyro
from rich.console import Console

from isotherm.data.commands import Data
from isotherm.errors import DivergenceError, refuse


@dataclasses.dataclass(frozen=True)
class Demo:
    """Sample the 25-mode landscape with several methods and compare them with the truth."""

    out: pathlib.Path = pathlib.Path("demo")
    """Folder for report.html, landscape.png and result.json."""
    seed: int = 0
    """Seed of all randomness."""

    def run(self, console: Console) -> None:
        """Run the demonstration."""
        from isotherm.experiments.demo import run_demo

        run_demo(self.out, seed=self.seed, console=console)


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


@dataclasses.dataclass(frozen=True)
class Sample:
    """Sample an energy function of your own."""

    potential: tyro.conf.Positional[str]
    """FILE.py:NAME, an energy function or a potential. The file is run."""
    method: str
    """A method that `isotherm list` shows."""
    out: pathlib.Path
    """A new folder for draws, checkpoints and pictures."""
    num_steps: int
    """Iterations."""
    init: tuple[float, ...]
    """Coordinates of the start, such as --init 0 0."""
    step_size: float | None = None
    """Step size of the method; for a ladder of several, use --set "step_size=(0.003, 0.6)"."""
    temperature: float | None = None
    """Temperature; by default the method's."""
    num_chains: int | None = None
    """Chains; by default what the method needs, or 1."""
    num_runs: int = 1
    """Independent repeats."""
    seed: int = 0
    """Seed of all randomness."""
    thinning: int = 1
    """Iterations between two draws."""
    burn_in: int = 0
    """Iterations before the first draw."""
    spread: float = 0.0
    """Standard deviation of the starts around `init`."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Further options of the method."""

    def run(self, console: Console) -> None:
        """Start the run."""
        from isotherm.sampling import sample
        from isotherm.userfile import build_sampler, load_potential, parse_options

        given = {"step_size": self.step_size, "temperature": self.temperature}
        options = {name: value for name, value in given.items() if value is not None} | parse_options(self.set)
        sampler = build_sampler(self.method, options)
        potential, source = load_potential(self.potential)
        run = sample(
            potential,
            sampler,
            num_steps=self.num_steps,
            num_chains=self.num_chains,
            num_runs=self.num_runs,
            seed=self.seed,
            thinning=self.thinning,
            burn_in=self.burn_in,
            init=_starts(self.init, self.spread, sampler.kernel.is_stack),
            out=self.out,
            source={**source, "method": self.method, "options": options},
        )
        _show(run, self.out, console)


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run of `isotherm sample` that was stopped. Runs the file it was started with, if that has not changed."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""
    num_steps: int | None = None
    """A new, larger number of iterations."""

    def run(self, console: Console) -> None:
        """Go on."""
        from isotherm.sampling import resume
        from isotherm.sampling.resume import read_configuration
        from isotherm.userfile import build_sampler, load_potential

        config, _ = read_configuration(self.folder)
        source = config["source"]
        if source is None:
            refuse(
                "folder", "a run of `isotherm sample`", str(self.folder), "It was started in Python: use iso.resume."
            )
        potential, now = load_potential(f"{source['file']}:{source['name']}")
        if now["sha256"] != source["sha256"]:
            remedy = "The file has changed since the run was started: put it back, or start a new run."
            refuse("folder", f"one whose {source['file']} is unchanged", "another checksum", remedy)
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in source["options"].items()}
        sampler = build_sampler(source["method"], options)
        _show(resume(self.folder, potential, sampler, num_steps=self.num_steps), self.folder, console)


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """Run an experiment of the thesis, and print its numbers beside ours."""

    name: tyro.conf.Positional[str]
    """An experiment that `isotherm list` shows."""
    quick: bool = False
    """A small version that ends in about a minute."""
    seeds: int | None = None
    """Independent repeats; by default the experiment's own number."""
    data_dir: pathlib.Path | None = None
    """Where data sets lie, for experiments that need them."""
    out: pathlib.Path | None = None
    """Folder for result.json and figures; by default reproduced/NAME."""
    seed: int = 0
    """Seed of all randomness."""

    def run(self, console: Console) -> None:
        """Run it."""
        from isotherm.experiments.reproduce import reproduce

        reproduce(self.name, self.out, self.quick, self.seeds, self.data_dir, self.seed, console)


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure speed."""

    peers: bool = False
    """Beside other libraries; needs the extra `peers`."""
    out: pathlib.Path | None = None
    """A JSON file for the numbers."""

    def run(self, console: Console) -> None:
        """Measure."""
        from isotherm.bench import run_bench

        run_bench(self.peers, self.out, console)


Command = (
    Annotated[Demo, tyro.conf.subcommand("demo")]
    | Annotated[List, tyro.conf.subcommand("list")]
    | Annotated[Sample, tyro.conf.subcommand("sample")]
    | Annotated[Resume, tyro.conf.subcommand("resume")]
    | Annotated[Reproduce, tyro.conf.subcommand("reproduce")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Data, tyro.conf.subcommand("data")]
)


def main(arguments: list[str] | None = None) -> None:
    """Entry point of `isotherm`. Wrong input ends with its message and status 2."""
    command = tyro.cli(Command, prog="isotherm", description=__doc__, args=arguments)  # pyright: ignore[reportCallIssue, reportArgumentType]
    console = Console()
    warnings.showwarning = lambda message, *_, **__: Console(stderr=True).print(f"Warning: {message}", style="yellow")
    try:
        command.run(console)  # pyright: ignore[reportAttributeAccessIssue]
    except (ValueError, DivergenceError) as error:
        Console(stderr=True).print(f"Error: {error}", style="red", highlight=False, markup=False)
        sys.exit(2)
    except KeyboardInterrupt:
        Console(stderr=True).print("Stopped. A run with --out goes on with `isotherm resume DIR`.")
        sys.exit(130)


def _starts(init: tuple[float, ...], spread: float, is_stack: bool):
    import jax
    import jax.numpy as jnp

    centre = jnp.asarray(init)
    if is_stack and spread == 0.0:
        refuse("spread", "above 0 for a method of many particles", spread, "Add --spread 1, say.")
    return lambda key: centre + spread * jax.random.normal(key, centre.shape)


def _show(run, out: pathlib.Path, console: Console) -> None:
    console.print(str(run.summary()), highlight=False, markup=False)
    for name in ("trace", "density", "energy"):
        getattr(run, f"plot_{name}")().savefig(out / f"{name}.png", dpi=110)
    console.print(f"Wrote draws and pictures to {out}.", highlight=False)
