"""A ladder from a pilot: how hot it must be for chains to forget where they started, and how many rungs lead there."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.special import ndtr

from isotherm.api.sweep import sweep
from isotherm.diagnostics.bias_notes import advised_step
from isotherm.driver.progress import say
from isotherm.exchange import Exchange, Ladder
from isotherm.exchange.ladder import PilotLadder
from isotherm.exchange.rules import Corrected
from isotherm.foundation.errors import DivergenceWarning, refuse
from isotherm.pilots.energies import Watching
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential
from isotherm.potentials.start import per_chain
from isotherm.run.run import Run
from isotherm.samplers.sampler import Sampler

# Temperatures that are looked at, over that of the target, and chains at each.
_FACTORS = 2.0 ** np.arange(11)
_NUM_CHAINS = 8
# Chains that started apart agree below this R-hat; coordinates that are looked at.
_AGREEING, _MOST_LOOKED_AT = 1.1, 64
# Disagreement that exceeds the least of all temperatures by less than this factor is no fault of the temperature.
_NO_BETTER = 1.3
# Swaps that a pair should accept, and the most rungs.
_LEAST_ACCEPTANCE, _MOST_RUNGS = 0.3, 24


@dataclasses.dataclass(frozen=True, eq=False)
class _AsMoved(WrappedPotential):
    """A constrained potential whose positions are as samplers move them, at any temperature, as hot rungs have it."""

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
    """What a pilot says of the way from the target to where chains mix.

    Attributes:
        ladder: with rungs of equal rejection.
        barrier: the sum of rejections of a ladder of very many rungs, from the target to the hottest one.
        r_hats: how far chains disagree that started all over space, by temperature.
        is_mixing: whether they agree at the hottest rung.
        better_step: a step size for the target, where its own makes spreads or means off; None where it does not.
        plain_name: the sampler without replicas that would do, where chains agree at the target itself; None where they do not.
    """

    ladder: Ladder
    barrier: float
    r_hats: dict[float, float]
    is_mixing: bool
    better_step: float | None
    plain_name: str | None = None

    def __str__(self) -> str:
        temperatures = ", ".join(f"{value:.4g}" for value in self.ladder.temperatures)
        shape = f"{self.ladder.num_rungs} rungs, temperatures=({temperatures}), step size {self.ladder.step_sizes[0]:.4g} on all"
        words = [
            f"- Proposed ladder, for equal rejection: {shape}. The barrier to where chains mix is {self.barrier:.3g}."
            if self.is_mixing
            else "- No ladder helps as yet: at no temperature do chains forget where they started. Give more `num_steps`, or "
            f"longer steps. The one where they disagree least has {shape}."
        ]
        if self.better_step is not None:
            words.append(f"- That step is too long for the target: {self.better_step:.2g} would do.")
        if self.plain_name is not None:
            words.append(
                "- One temperature suffices: chains that started apart agree at the target's own, so that "
                f"`iso.{self.plain_name}({self.ladder.step_sizes[0]:.4g})` samples it without replicas."
            )
        return "\n".join(words)


def find_ladder(
    potential: Potential, sampler: Sampler, position: Any, num_steps: int, seed: Any, progress: bool | None
) -> FoundLadder:
    """A ladder for the target of an exchange sampler, found by plain chains from `position` at many temperatures.

    Chains run at all temperatures, then again from where those of the hottest came to be. The hottest rung is the coolest at which
    these agree with one another. The local barrier is half the mean difference of two energies (Syed et al. 2022, section 3.3); its
    integral over the inverse temperature is cut into equal parts, about two for every unit, and more where noise forbids swaps.
    """
    coupling = sampler.coupling
    assert isinstance(coupling, Exchange)
    if potential.space is not None:
        potential = _AsMoved(potential)
    target, step_size = target_of(sampler)
    plain = dataclasses.replace(sampler, coupling=Watching(), window=None, step_size=step_size)
    samplers = {float(f * target): dataclasses.replace(plain, temperature=float(f * target)) for f in _FACTORS}
    settings = (num_steps, seed, progress)
    first = _chains("ladder, 1 of 2", potential, samplers, lambda key: position, *settings)
    alive = _survivors(first, sampler, step_size)
    spread = jax.tree.map(lambda leaf: np.asarray(leaf[:, -1]), first[alive[-1]].draws)
    runs = _chains("ladder, 2 of 2", potential, {t: samplers[t] for t in alive}, per_chain(spread), *settings)
    alive = _survivors(runs, sampler, step_size)
    r_hats = {temperature: _disagreement(runs[temperature]) for temperature in alive}
    hottest, is_mixing = _where_chains_mix(r_hats)
    kept = [t for t in alive if t <= hottest]
    barriers = np.array([_local_barrier(runs[t]) for t in kept])
    factor = coupling.rule.correction_factor if isinstance(coupling.rule, Corrected) else None
    # Of a difference of two energies, each with noise of its own, as far as swaps are corrected for it.
    variance = (
        0.0 if factor is None or callable(factor) else 2.0 * float(np.mean(runs[kept[0]].stats["variance"])) / factor
    )
    temperatures, barrier = place_rungs(np.array(kept), barriers, np.sqrt(variance))
    ladder = Ladder((step_size,) * len(temperatures), tuple(float(value) for value in temperatures))
    plain_name = _plain_name(sampler) if r_hats[alive[0]] < _AGREEING else None
    return FoundLadder(ladder, barrier, r_hats, is_mixing, advised_step(runs[kept[0]].bias), plain_name)


def target_of(sampler: Sampler) -> tuple[float, float]:
    """The temperature and the step size of the target rung, with the factors on the whole ladder."""
    for name, value in (("temperature_factor", sampler.temperature), ("step_factor", sampler.step_size)):
        if callable(value):
            remedy = "A pilot runs at one temperature and one step size: give numbers, or a ladder of your own."
            refuse(name, "a number where a pilot looks at the ladder", "a schedule", remedy)
    return float(sampler.temperature), float(sampler.step_size)  # pyright: ignore[reportArgumentType]


def with_ladder(
    potential: Potential, sampler: Sampler, position: Callable[[], Any], seed: Any, progress: bool | None
) -> Sampler:
    """The sampler with the ladder that a pilot from `position()` finds; the sampler itself where it has one."""
    coupling = sampler.coupling
    if not isinstance(coupling, Exchange) or not isinstance(coupling.ladder, PilotLadder):
        return sampler
    num_steps = coupling.ladder.num_steps
    say(
        f"Looking for a ladder: {_NUM_CHAINS} chains at each of {len(_FACTORS)} temperatures, {num_steps:,} iterations, twice. "
        "`ladder=iso.exchange.PilotLadder(num_steps)` changes how many.",
        progress,
    )
    found = find_ladder(potential, sampler, position(), num_steps, seed, progress)
    say(str(found), progress)
    return dataclasses.replace(sampler, coupling=dataclasses.replace(coupling, ladder=found.ladder))


def _survivors(runs: dict[float, Run], sampler: Sampler, step_size: float) -> list[float]:
    """The temperatures at which no chain diverged: that of the target, and one above it at least."""
    alive = [temperature for temperature, run in runs.items() if np.all(np.asarray(run.stats["diverged_at"]) < 0)]
    if alive[:1] != list(runs)[:1]:
        refuse("step_size", "one at which chains survive at the target's temperature", step_size, "Lower it.")
    if len(alive) < 2:
        remedy = f"Lower it, or stay at one temperature with `iso.{_plain_name(sampler)}({step_size:.4g})`."
        refuse("step_size", "one at which chains survive at twice the temperature", step_size, remedy)
    return alive


def _plain_name(sampler: Sampler) -> str:
    return "sghmc" if "hmc" in sampler.name else "sgld"


def _where_chains_mix(r_hats: dict[float, float]) -> tuple[float, bool]:
    """The coolest temperature above the target's from which on chains agree, and whether they do.

    Where pilots are too short for agreement at any temperature, the one from which on more heat does not help.
    """
    between = {temperature: value**2 - 1.0 for temperature, value in r_hats.items()}
    least = min(between.values())
    limit = max(_AGREEING**2 - 1.0, _NO_BETTER * least)
    # Above it, all must.
    temperatures = sorted(between)
    mixing = [t for t in temperatures[1:] if max(between[other] for other in temperatures if other >= t) <= limit]
    return (mixing or temperatures[-1:])[0], least < _AGREEING**2 - 1.0


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
    number = int(np.clip(np.ceil(2.0 * total) + 1, 2, _MOST_RUNGS))
    while True:
        places = np.interp(np.linspace(total, 0.0, number), passed, fine)
        # What a correction for noise lets through at equal energies.
        let_through = 2.0 * ndtr(-0.5 * noise * np.max(-np.diff(places)))
        if (1.0 - total / (number - 1)) * let_through >= _LEAST_ACCEPTANCE or number >= _MOST_RUNGS:
            return 1.0 / places, total
        number += 1


def _chains(
    name: str, potential: Potential, samplers: Any, init: Any, num_steps: int, seed: Any, progress: bool | None
) -> dict[float, Run]:
    """Runs by temperature, under a bar with that name."""
    with warnings.catch_warnings():
        # Those that are too hot for the step are left out.
        warnings.simplefilter("ignore", DivergenceWarning)
        runs = sweep(
            potential,
            {temperature: dataclasses.replace(sampler, name=name) for temperature, sampler in samplers.items()},
            num_steps=num_steps,
            num_chains=_NUM_CHAINS,
            burn_in=num_steps // 4,
            thinning=max(num_steps // 1_000, 1),
            seed=seed,
            init=init,
            progress=progress,
        )
    stopped = [run for run in runs.values() if run.num_steps < num_steps]
    if any(np.any(np.asarray(run.stats["diverged_at"]) < 0) for run in stopped):
        raise KeyboardInterrupt
    return runs


def _disagreement(run: Run) -> float:
    """The largest R-hat of the coordinates, or of some of a large position."""
    size = sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(run.draws))
    looked_at = np.unique(np.linspace(0, size - 1, min(size, _MOST_LOOKED_AT)).astype(int))

    def coordinates(x):
        return jnp.concatenate([leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(x)])[looked_at]

    return float(np.max(dataclasses.replace(run, checkup=None).estimate(coordinates).r_hat))


def _local_barrier(run: Run) -> float:
    """Half the mean absolute difference of the energies of two independent draws."""
    energies = np.sort(np.asarray(run.energies, np.float64).reshape(-1))
    number = len(energies)
    # The mean difference of all pairs, from the order statistics.
    return float(np.sum((2 * np.arange(number) - number + 1) * energies) / (number * (number - 1)))
