"""`isotherm sample`, `resume` and `show`."""

import dataclasses
import json
import math
import pathlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from isotherm.cli.counts import Count
from isotherm.cli.processes import Processes
from isotherm.foundation.errors import check_folder, refuse

if TYPE_CHECKING:
    from isotherm.cli.user_file import UserFile
    from isotherm.run.run import Run


@dataclasses.dataclass(frozen=True)
class Sample:
    """Sample an energy function of your own."""

    potential: tyro.conf.Positional[str]
    """FILE.py:NAME, an energy function or a potential. The file is run."""
    out: pathlib.Path
    """A new folder for draws, checkpoints and pictures."""
    method: str | None = None
    """A method that `isotherm list` shows; without one, rounds of short runs find everything."""
    budget: str | None = None
    """Without a method: gradients to spend, or a time such as "60 s"; by default 1,000,000 gradients."""
    num_effective: Count | None = None
    """Without a method: effective draws at which the run ends before its budget is spent."""
    num_steps: Count | None = None
    """Iterations; needed with a method."""
    init: tuple[float, ...] = ()
    """Coordinates of the start, such as --init 0 0; by default the potential's own, which networks have."""
    step_size: float | Literal["auto"] | None = None
    """Step size of the method, or "auto" for a pilot that finds it; for a ladder, --set "step_size=(0.003, 0.6)" gives several."""
    temperature: float | None = None
    """Temperature; by default the method's."""
    num_chains: Count | None = None
    """Chains; by default what the method needs, or 1."""
    num_runs: Count | None = None
    """Independent repeats."""
    num_ladders: Count | None = None
    """Independent ladders of a method that exchanges replicas."""
    seed: int = 0
    """Seed of all randomness."""
    thinning: Count = 1
    """Iterations between two draws."""
    burn_in: Count = 0
    """Iterations before the first draw."""
    spread: float = 0.0
    """Standard deviation of the starts around `init`."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="NAME=VALUE")] = ()
    """Further options of the method."""
    resume: bool = False
    """Continue the run in --out, if there is one, so that the same command can be run again after it was stopped."""
    processes: Annotated[Processes, tyro.conf.arg(name="")] = dataclasses.field(default_factory=Processes)

    def run(self, console: Console) -> None:
        """Start the run."""
        is_first = self.processes.connect()

        from isotherm.api import sample
        from isotherm.api.sample import read_configuration
        from isotherm.cli.user_file import build_sampler, parse_options, read_file
        from isotherm.samplers.sampler import as_potential

        given = {"step_size": self.step_size, "temperature": self.temperature}
        options = {name: value for name, value in given.items() if value is not None} | parse_options(self.set)
        out = check_folder("--out", self.out, "Write --out my-run, say.")
        if self.method is None and options:
            refuse(
                "--method",
                "given with options of a sampler",
                "nothing",
                "Add --method resghmc, say, or leave them out.",
            )
        sampler = None if self.method is None else build_sampler(self.method, options)
        file = read_file(self.potential, "potential")
        if self.resume and (out / "run.json").exists():
            _check_file(file, read_configuration(out)[0]["source"], "--out")
        potential = as_potential(file.load())
        run = sample(
            potential,
            sampler,
            budget=_budget(self.budget),
            num_effective=self.num_effective,
            num_steps=self.num_steps,
            num_chains=self.num_chains,
            num_runs=self.num_runs,
            num_ladders=self.num_ladders,
            seed=self.seed,
            thinning=self.thinning,
            burn_in=self.burn_in,
            init=self._starts(potential.init),
            out=out,
            resume=self.resume,
            source={**file.source, "method": self.method, "options": options},
        )
        if is_first:
            _show(run, out, console)

    def _starts(self, own: Any) -> Any:
        import jax
        import jax.numpy as jnp

        if not self.init:
            if own is None:
                refuse("--init", "given for an energy function", "nothing", "Add --init 0 0 for two coordinates, say.")
            if self.spread:
                refuse("--spread", "given together with --init", self.spread, "The potential has its own starts.")
            return own
        center, spread = jnp.asarray(self.init), self.spread
        return lambda key: center + spread * jax.random.normal(key, center.shape)


def _budget(text: str | None) -> int | str | None:
    digits = (text or "").replace("_", "")
    return int(digits) if digits.isdigit() else text


@dataclasses.dataclass(frozen=True)
class Resume:
    """Continue a run of `isotherm sample` that was stopped. Runs its file again, if that has not changed."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""
    num_steps: Count | None = None
    """A new, larger number of iterations."""
    processes: Annotated[Processes, tyro.conf.arg(name="")] = dataclasses.field(default_factory=Processes)

    def run(self, console: Console) -> None:
        """Continue the run."""
        is_first = self.processes.connect()

        from isotherm.api import resume
        from isotherm.api.sample import read_configuration
        from isotherm.cli.user_file import build_sampler, read_file
        from isotherm.samplers.sampler import as_potential

        folder = check_folder("folder", self.folder, "Give the folder that was passed as --out.")
        config, _ = read_configuration(folder)
        source = config["source"]
        if source is None:
            refuse("folder", "a run of `isotherm sample`", str(folder), "It was started in Python: use iso.resume.")
        kinds = {"file": str, "name": str, "sha256": str, "method": (str, type(None)), "options": dict}
        if not isinstance(source, dict) or not all(isinstance(source.get(name), kind) for name, kind in kinds.items()):
            rule, remedy = "a run of `isotherm sample`", "Its run.json is damaged: start a new run."
            refuse("folder", rule, f"{folder}, whose run.json names no file and method", remedy)
        file = read_file(f"{source['file']}:{source['name']}", "potential")
        _check_file(file, source, "folder")
        options = {name: tuple(v) if isinstance(v, list) else v for name, v in source["options"].items()}
        sampler = None if source["method"] is None else build_sampler(source["method"], options)
        # The folder names the file: users who resume a folder from elsewhere see it before it runs.
        if is_first:
            console.print(f"Running {file.path} for `{file.name}`, as {folder / 'run.json'} says.", soft_wrap=True)
        run = resume(folder, as_potential(file.load()), sampler, num_steps=self.num_steps)
        if is_first:
            _show(run, folder, console)


def _check_file(file: "UserFile", source: Any, argument: str) -> None:
    """Refuse to continue a run whose file has changed."""
    if isinstance(source, dict) and file.source["sha256"] != source.get("sha256"):
        remedy = "The file has changed since the run was started: put it back, or start a new run."
        refuse(argument, f"one whose {source.get('file')} is unchanged", "another checksum", remedy)


@dataclasses.dataclass(frozen=True)
class Show:
    """Print a run and its summary, whether it has ended or not."""

    folder: tyro.conf.Positional[pathlib.Path]
    """The folder that was given as --out."""
    json: bool = False
    """Print the summary and its checks as JSON, with numbers that are not finite as null."""

    def run(self, console: Console) -> None:
        """Print it."""
        from isotherm.run.run import Run

        found = Run.load(self.folder)
        if self.json:
            sys.stdout.write(json.dumps(_finite(found.summary().as_json()), allow_nan=False) + "\n")
            return
        console.print(repr(found))
        console.print(str(found.summary()))


def _finite(value: Any) -> Any:
    """JSON data with None in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _show(run: "Run", out: pathlib.Path, console: Console) -> None:
    """Print the summary of a run, and write its pictures to its folder."""
    console.print(str(run.summary()))
    try:
        for name in ("trace", "density", "energy"):
            getattr(run, f"plot_{name}")().savefig(out / f"{name}.png", dpi=110)
    except ImportError as error:
        console.print(f"Wrote draws to {out}. No pictures: {error}", soft_wrap=True)
    else:
        console.print(f"Wrote draws and pictures to {out}.", soft_wrap=True)
