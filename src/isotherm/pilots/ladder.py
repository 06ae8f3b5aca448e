"""A ladder from pilot runs: the temperature at which overdispersed chains agree, and the rungs up to it."""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import ndtr

from isotherm.diagnostics.bias_checks import advised_step
from isotherm.driver.progress import say
from isotherm.driver.settings import Settings
from isotherm.engine.program import identity
from isotherm.exchange import Corrected, Exchange, Ladder, LadderSearch
from isotherm.foundation.errors import refuse
from isotherm.kernels import GHMC, MALA, SGHMC
from isotherm.kernels.wrapped import innermost_kernel
from isotherm.pilots.watch import has_diverged, watch
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential
from isotherm.run.run import Run
from isotherm.samplers.sampler import Choice, Sampler, Specification

# Temperatures of the pilots over that of the target, and chains at each.
_FACTORS = 2.0 ** np.arange(11)
_NUM_CHAINS = 8
# Overdispersed chains agree below this R-hat, of so many coordinates.
_MAX_R_HAT, _MAX_COORDINATES = 1.1, 64
# Disagreement within this factor of the smallest of all temperatures counts as equal to it.
_MAX_EXCESS = 1.3
# Swap rate of a pair, and number of rungs.
_MIN_ACCEPTANCE, _MAX_RUNGS = 0.3, 24


@dataclasses.dataclass(frozen=True, eq=False)
class _Unconstrained(WrappedPotential):
    """A constrained potential in unconstrained coordinates, at any temperature."""

    @property
    def space(self) -> None:
        return None

    def check_temperature(self, temperature: float | None) -> None:
        pass

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return self.inner.draw(key_shared, key_own, iterations, position)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        return self.inner.evaluate(position, batch, noise, model_state)


class FoundLadder(NamedTuple):
    """A ladder from the target to the temperature at which chains mix.

    Attributes:
        ladder: with rungs of equal rejection.
        barrier: the sum of rejections of a ladder of very many rungs, from the target to the hottest one.
        r_hats: R-hat of overdispersed chains, by temperature.
        is_mixing: whether chains agree at the hottest rung.
        better_step: a step size with little bias on the target; None if the given one has little.
        plain_name: the sampler without replicas that suffices, where chains agree at the target; else None.
    """

    ladder: Ladder
    barrier: float
    r_hats: dict[float, float]
    is_mixing: bool
    better_step: float | None
    plain_name: str | None = None

    def __str__(self) -> str:
        temperatures = ", ".join(f"{value:.4g}" for value in self.ladder.temperatures)
        step_size = self.ladder.step_sizes[0]
        shape = f"{self.ladder.num_rungs} rungs, temperatures=({temperatures}), step size {step_size:.4g} on all"
        if self.is_mixing:
            barrier = f"The barrier to where chains mix is {self.barrier:.3g}."
            lines = [f"- Proposed ladder, for equal rejection: {shape}. {barrier}"]
        else:
            remedy = "Give more `num_steps`, or a larger step size. The ladder with the least disagreement has"
            lines = [f"- Chains mix at none of the temperatures. {remedy} {shape}."]
        if self.better_step is not None:
            lines.append(f"- The step size is too large for the target. Try {self.better_step:.2g}.")
        if self.plain_name is not None:
            call = f"`iso.{self.plain_name}({step_size:.4g})`"
            lines.append(f"- One temperature suffices: overdispersed chains agree at the target. Use {call}.")
        return "\n".join(lines)


def find_ladder_of(
    potential: Potential, specification: Specification, settings: Settings, position: Any, progress: bool | None
) -> tuple[Ladder, Choice]:
    """The ladder of a specification, from the first of the starts (run, chain, ...)."""
    search = specification.search
    assert isinstance(search, LadderSearch)
    say(
        f"Looking for a ladder: {_NUM_CHAINS} chains at each of {len(_FACTORS)} temperatures, {search.num_steps:,} iterations, "
        "twice. Change this with `ladder=iso.exchange.LadderSearch(num_steps)`.",
        progress,
    )
    start = jax.tree.map(lambda leaf: leaf[0, 0], position)
    found = find_ladder(potential, specification.example(), start, search.num_steps, settings.seed, progress)
    say(str(found), progress)
    return found.ladder, Choice("ladder", found.ladder.as_json(), str(found))


def find_ladder(
    potential: Potential, sampler: Sampler, start: Any, num_steps: int, seed: Any, progress: bool | None
) -> FoundLadder:
    """A ladder for the target of an exchange sampler, by plain chains from `start` at many temperatures.

    Chains run at all temperatures, then again from the last positions of the hottest ones. The hottest rung is the coolest at which
    chains agree. The local barrier is half the mean difference of two energies (Syed et al. 2022, section 3.3); its integral over
    the inverse temperature is cut into equal parts, about two for every unit, and more where noise prevents swaps.
    """
    coupling = sampler.coupling
    assert isinstance(coupling, Exchange)
    rolled = identity
    if potential.space is not None:
        # Angles that wander over periods would never agree.
        potential, rolled = _Unconstrained(potential), potential.space.rolled
    target, step_size = float(sampler.temperature), float(sampler.step_size)  # pyright: ignore[reportArgumentType]
    settings = Settings(num_steps, _NUM_CHAINS, seed=seed, thinning=max(num_steps // 1_000, 1), burn_in=num_steps // 4)

    def run_at(temperatures: list[float], starts: Any, part: int) -> dict[float, Run]:
        named = dataclasses.replace(sampler, step_size=step_size, name=f"ladder, {part} of 2")
        runs = watch(potential, named, temperatures, settings, starts, progress)
        if any(run.num_steps < num_steps and not np.all(has_diverged(run)) for run in runs):
            raise KeyboardInterrupt
        return dict(zip(temperatures, runs, strict=True))

    starts = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (_NUM_CHAINS, *np.shape(leaf))), start)
    first = run_at([float(factor * target) for factor in _FACTORS], starts, 1)
    alive = _survivors(first, sampler, step_size)
    runs = run_at(alive, jax.tree.map(lambda leaf: np.asarray(leaf[:, -1]), first[alive[-1]].draws), 2)
    alive = _survivors(runs, sampler, step_size)
    r_hats = {temperature: _disagreement(runs[temperature], rolled) for temperature in alive}
    hottest, is_mixing = _where_chains_mix(r_hats)
    kept = [t for t in alive if t <= hottest]
    barriers = np.array([_local_barrier(runs[t]) for t in kept])
    factor = coupling.rule.correction_factor if isinstance(coupling.rule, Corrected) else None
    variance = 0.0
    if factor is not None and not callable(factor):
        # Of the difference of two energies with independent noise, as far as swaps correct it.
        variance = 2.0 * float(np.mean(runs[kept[0]].stats["variance"])) / factor
    temperatures, barrier = place_rungs(np.array(kept), barriers, np.sqrt(variance))
    ladder = Ladder((step_size,) * len(temperatures), tuple(float(value) for value in temperatures))
    plain_name = _plain_name(sampler) if r_hats[alive[0]] < _MAX_R_HAT else None
    return FoundLadder(ladder, barrier, r_hats, is_mixing, advised_step(runs[kept[0]].bias), plain_name)


def _survivors(runs: dict[float, Run], sampler: Sampler, step_size: float) -> list[float]:
    """The temperatures at which no chain diverged: the target's, and at least one above it."""
    alive = [temperature for temperature, run in runs.items() if not np.any(has_diverged(run))]
    if alive[:1] != list(runs)[:1]:
        refuse("step_size", "small enough for finite energies at the target's temperature", step_size, "Lower it.")
    if len(alive) < 2:
        remedy = f"Lower it, or stay at one temperature with `iso.{_plain_name(sampler)}({step_size:.4g})`."
        refuse("step_size", "small enough for finite energies at twice the temperature", step_size, remedy)
    return alive


def _plain_name(sampler: Sampler) -> str:
    kernel = innermost_kernel(sampler.kernel)
    names = {MALA: "mala", GHMC: "ghmc", SGHMC: "sghmc"}
    return next((name for kind, name in names.items() if isinstance(kernel, kind)), "sgld")


def _where_chains_mix(r_hats: dict[float, float]) -> tuple[float, bool]:
    """The coolest temperature above the target's from which on chains agree, and whether they do.

    Where chains agree at none, the temperature from which on their disagreement no longer falls.
    """
    between = {temperature: value**2 - 1.0 for temperature, value in r_hats.items()}
    least = min(between.values())
    limit = max(_MAX_R_HAT**2 - 1.0, _MAX_EXCESS * least)
    temperatures = sorted(between)
    mixing = [t for t in temperatures[1:] if max(between[other] for other in temperatures if other >= t) <= limit]
    return (mixing or temperatures[-1:])[0], least < _MAX_R_HAT**2 - 1.0


def place_rungs(temperatures: np.ndarray, barriers: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Temperatures of rungs of equal rejection, and the barrier between their ends.

    Args:
        temperatures: rising; the first and the last are the ends.
        barriers: the local barrier at each, in units of the energy.
        noise: the standard deviation of a measured difference of energies.
    """
    inverse = 1.0 / temperatures[::-1]
    fine = np.geomspace(inverse[0], inverse[-1], 2_000)
    local = np.exp(np.interp(np.log(fine), np.log(inverse), np.log(np.maximum(barriers[::-1], 1e-30))))
    passed = np.concatenate([[0.0], np.cumsum(0.5 * (local[1:] + local[:-1]) * np.diff(fine))])
    total = float(passed[-1])
    number = int(np.clip(np.ceil(2.0 * total) + 1, 2, _MAX_RUNGS))
    while True:
        places = np.interp(np.linspace(total, 0.0, number), passed, fine)
        # The acceptance at equal energies with a correction for noise.
        acceptance = 2.0 * ndtr(-0.5 * noise * np.max(-np.diff(places)))
        if (1.0 - total / (number - 1)) * acceptance >= _MIN_ACCEPTANCE or number >= _MAX_RUNGS:
            return 1.0 / places, total
        number += 1


def _disagreement(run: Run, rolled: Callable[[Any], Any]) -> float:
    """The largest R-hat of the coordinates of `rolled` positions, or of some of large ones."""
    size = sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(run.draws))
    compared = np.unique(np.linspace(0, size - 1, min(size, _MAX_COORDINATES)).astype(int))

    def coordinates(x):
        return jnp.concatenate([leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(rolled(x))])[compared]

    return float(np.max(dataclasses.replace(run, bias_probe=None, parts=None).estimate(coordinates).r_hat))


def _local_barrier(run: Run) -> float:
    """Half the mean absolute difference of the energies of two independent draws."""
    energies = np.sort(np.asarray(run.energies, np.float64).reshape(-1))
    number = len(energies)
    # The mean difference of all pairs, from the order statistics.
    return float(np.sum((2 * np.arange(number) - number + 1) * energies) / (number * (number - 1)))
