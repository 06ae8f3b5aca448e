"""Advice on a ladder before a long run: expected swap rates and the best window for each correction factor."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.api.sample import ARGUMENTS, sample
from isotherm.coupling import Observed
from isotherm.exchange import Adjacent, Corrected, Exchange, LadderSearch, expected_round_trip, optimal_window
from isotherm.exchange.rules import Pairing
from isotherm.exchange.schemes import Scheme
from isotherm.foundation.calls import checked_call
from isotherm.foundation.docstrings import documented
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.pilots.ladder import FoundLadder, find_ladder
from isotherm.potentials.start import choose_init, first_position
from isotherm.samplers.sampler import AnySampler, Sampler, Specification, StepSearch, as_potential, check_sampler


@dataclasses.dataclass(frozen=True)
class Advice:
    """Swap rates of a ladder, measured by a pilot; print it.

    Attributes:
        factors: F.
        rates: the expected swap rate of each adjacent pair, shape (len(factors), P - 1).
        variances: the variance of the energy difference of each pair.
        windows: the best window of deterministic even-odd swaps for each F.
        round_trips: the expected iterations of a round trip with that window; infinite where a pair never swaps.
        found: the ladder from the search; None without one.
    """

    factors: tuple[float, ...]
    rates: np.ndarray
    variances: np.ndarray
    windows: tuple[int, ...]
    round_trips: tuple[float, ...]
    found: FoundLadder | None

    def __str__(self) -> str:
        lines = ["       F   swap rate: lowest   mean   window   iterations per round trip"]
        for factor, rates, window, trip in zip(self.factors, self.rates, self.windows, self.round_trips, strict=True):
            lines.append(f"{factor:8.4g} {rates.min():19.4f} {rates.mean():6.4f} {window:8d} {trip:27.4g}")
        lowest, worst = int(np.argmin(self.rates[0])), float(self.variances.max())
        lines.append(f"- Variance of energy differences: at most {worst:.4g}. F = 1 is unbiased under Gaussian noise.")
        lines.append(f"- The pair that swaps least is {lowest} (counted from the target).")
        if self.found is not None:
            lines.append(str(self.found))
        return "\n".join(lines)


@checked_call()
@documented(arguments=ARGUMENTS)
def advise(
    potential: Any,
    sampler: AnySampler,
    *,
    num_steps: int,
    factors: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, np.inf),
    seed: int = 0,
    init: Any = None,
    burn_in: int | None = None,
    search: bool = True,
    progress: bool | None = None,
) -> Advice:
    """Run the replicas of a corrected exchange sampler without swaps, and predict the rates and round trips of swaps.

    Args:
        sampler: a replica exchange sampler such as `iso.resgld(...)`.
        num_steps: iterations of the pilot.
        factors: the correction factors to compare.
        burn_in: iterations left out; None is a fifth.
        search: whether to search for a better ladder too, with 8 chains at each of 11 temperatures, as `ladder="auto"` does. For a
            sampler with `ladder="auto"` the advice is on the ladder from the search.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> ladder = iso.resgld(0.05, temperatures=(1.0, 2.0, 4.0))
        >>> advice = iso.advise(lambda x: x @ x / 2, ladder, num_steps=2000, init=jnp.zeros(2))
        >>> bool((advice.rates > 0.3).all())
        True
    """
    potential, sampler = as_potential(potential), check_sampler(sampler)
    check_integer("num_steps", num_steps, 1, "Give the iterations of the pilot.")
    if isinstance(sampler, Specification) and isinstance(sampler.search, StepSearch):
        sampler.refuse()
    is_open = isinstance(sampler, Specification) and isinstance(sampler.search, LadderSearch)
    if isinstance(sampler, Specification) and is_open:
        sampler = sampler.example()
    coupling = sampler.coupling if isinstance(sampler, Sampler) else None
    rule = coupling.rule if isinstance(coupling, Exchange) else None
    if not (isinstance(sampler, Sampler) and isinstance(coupling, Exchange) and isinstance(rule, Corrected)):
        remedy = "Give one such as `iso.resgld(...)`."
        refuse("sampler", "a replica exchange sampler with the corrected rule", sampler.name, remedy)
    if coupling.is_path:
        remedy = 'Run it, and look at `run.stats["swap_rate"]` and `run.stats["round_trips"]`.'
        refuse("sampler", 'one with `path="temperature"`', "a path from a reference", remedy)
    if callable(sampler.temperature) or callable(sampler.step_size):
        remedy = "Leave out `temperature_factor` and `step_factor`, and give the temperature of interest."
        refuse("sampler", "one with constant temperatures and step sizes", "one with a schedule", remedy)
    if not isinstance(factors, (tuple, list)):
        refuse("factors", "a tuple of correction factors", short(factors), "Write `factors=(1.0, 4.0)`, say.")
    for factor in factors:
        check_real("factors", factor if factor != np.inf else 1.0, "Give positive numbers or infinity.", above=0.0)
    found = None
    if search or is_open:
        start = first_position(choose_init(init, potential), seed)
        found = find_ladder(potential, sampler, start, num_steps, seed, progress)
    ladder = found.ladder if found is not None and is_open else coupling.ladder
    rule = dataclasses.replace(rule, correction_factor=1.0)
    pilot = dataclasses.replace(sampler, coupling=_Watched(ladder, _Never(), rule), window=None, name="pilot")
    burn_in = num_steps // 5 if burn_in is None else burn_in
    run = sample(potential, pilot, num_steps=num_steps, burn_in=burn_in, seed=seed, init=init, progress=progress)
    energies = np.asarray(run.energies).T
    variances = np.asarray(run.stats["variance_of_difference"])
    temperatures = float(sampler.temperature) * np.asarray(ladder.temperatures) / ladder.temperatures[0]
    pairs = Pairing(*(jnp.asarray(a) for a in (energies[:, :-1], energies[:, 1:], temperatures[:-1], temperatures[1:])))
    rates = np.array([_mean_acceptance(rule, pairs, variances, factor) for factor in factors], np.float64)
    number, windows, trips = ladder.num_rungs, [], []
    for rate in rates:
        rejection = tuple(float(r) for r in np.minimum(1 - rate, 1 - 1e-9))
        windows.append(optimal_window(number, rejection) if min(rate) > 0 else 1)
        trips.append(expected_round_trip(number, rejection, windows[-1]) if min(rate) > 0 else np.inf)
    if number == 2 and isinstance(coupling.scheme, Adjacent):
        # The only pair is tried in every iteration: each half of a round trip takes 1 / rate iterations on average.
        windows, trips = [1] * len(factors), [2.0 / max(float(rate[0]), 1e-300) for rate in rates]
    return Advice(tuple(factors), rates, variances, tuple(windows), tuple(trips), found)


def _mean_acceptance(rule: Corrected, pairs: Pairing, variances: np.ndarray, factor: float) -> np.ndarray:
    """Mean over time of min(1, S) for each pair."""
    one = dataclasses.replace(rule, correction_factor=factor)
    state = one.init(len(variances))._replace(variance=jnp.asarray(variances))
    return np.asarray(jnp.mean(jnp.exp(one.log_acceptance(state, pairs, jnp.zeros((), jnp.int32))), axis=0))


class _Never(Scheme):
    """No pair may swap."""

    def is_active(self, num_rungs: int, iteration: Array, uniform: Array) -> Array:
        return jnp.zeros(num_rungs - 1, bool)


@dataclasses.dataclass(frozen=True, eq=False)
class _Watched(Exchange):
    """Records every replica."""

    def observe(self, state: Any) -> Observed:
        return Observed(super().observe(state).values)
