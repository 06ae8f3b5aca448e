"""`isotherm sample`."""

import dataclasses
import pathlib
from typing import Annotated, Any

import tyro
from rich.console import Console

from isotherm.cli.counts import Count
from isotherm.cli.show import show
from isotherm.foundation.errors import check_folder


@dataclasses.dataclass(frozen=True)
class Sample:
    """Sample an energy function of your own."""

    potential: tyro.conf.Positional[str]
    """FILE.py:NAME, an energy function or a potential. The file is run."""
    method: str
    """A method that `isotherm list` shows."""
    out: pathlib.Path
    """A new folder for draws, checkpoints and pictures."""
    num_steps: Count
    """Iterations."""
    init: tuple[float, ...] = ()
    """Coordinates of the start, such as --init 0 0; by default where the potential starts, as those of networks do."""
    step_size: float | None = None
    """Step size of the method; for a ladder of several, use --set "step_size=(0.003, 0.6)"."""
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

    def run(self, console: Console) -> None:
        """Start the run."""
        from isotherm.api import sample
        from isotherm.cli.user_file import build_sampler, load_potential, parse_options

        given = {"step_size": self.step_size, "temperature": self.temperature}
        options = {name: value for name, value in given.items() if value is not None} | parse_options(self.set)
        out = check_folder("--out", self.out, "Write --out my-run, say.")
        sampler = build_sampler(self.method, options)
        potential, source = load_potential(self.potential)
        run = sample(
            potential,
            sampler,
            num_steps=self.num_steps,
            num_chains=self.num_chains,
            num_runs=self.num_runs,
            num_ladders=self.num_ladders,
            seed=self.seed,
            thinning=self.thinning,
            burn_in=self.burn_in,
            init=_starts(self.init, self.spread, potential.init),
            out=out,
            source={**source, "method": self.method, "options": options},
        )
        show(run, out, console)


def _starts(init: tuple[float, ...], spread: float, own: Any) -> Any:
    import jax
    import jax.numpy as jnp

    from isotherm.foundation.errors import refuse

    if not init:
        if own is None:
            refuse("--init", "given for an energy function", "nothing", "Add --init 0 0 for two coordinates, say.")
        if spread:
            refuse("--spread", "given together with --init", spread, "The potential has starts of its own.")
        return own
    center = jnp.asarray(init)
    return lambda key: center + spread * jax.random.normal(key, center.shape)
