"""Scales, a step size and a ladder for energies with mini-batches or noise, where no move can be accepted or rejected."""

import dataclasses
import time
import warnings
from typing import Any, NamedTuple

import jax
import numpy as np

from isotherm.coupling import Independent
from isotherm.distributed import max_of
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings
from isotherm.exchange import Ladder, LadderSearch
from isotherm.foundation.errors import DivergenceWarning, refuse
from isotherm.kernels import SGLD
from isotherm.kernels.kernel import Kernel
from isotherm.kernels.wrapped import scaled
from isotherm.pilots.exact import first_step
from isotherm.pilots.ladder import find_ladder_of
from isotherm.pilots.rounds import Budget, Rounds, fitted_factor
from isotherm.pilots.watch import has_diverged
from isotherm.potentials.potential import Potential
from isotherm.run.run import Run
from isotherm.samplers.exchange import resgld
from isotherm.samplers.sampler import Sampler, Specification

# Iterations of rounds for scales and step sizes, and the share of the budget for the ladder's pilot.
_ROUNDS, _LADDER_SHARE = (250, 250, 500, 1_000, 2_000, 2_000), 0.15
# The relative bias of variances that step sizes aim for, in the run and in rounds; the first step size over that which changes
# the energy by its unit.
BIAS, _BIAS_OF_ROUNDS, _FIRST_SHARE = 0.02, 0.3, 0.02
# Positions at which the noise of gradients is measured, and the most rungs that are worth their cost.
_NUM_NOISE, _MAX_USEFUL = 32, 16
# Chains and temperatures of the ladder's pilot, which runs twice.
_PILOT_CHAINS = 8 * 11 * 2
_MIN_PILOT = 300


class FoundNoisy(NamedTuple):
    """What was found, and where chains are then.

    Attributes:
        sampler: complete.
        rounds: what found it.
        position: of the chains, leaves (K, ...).
        step_size: in the scales of the wells.
        factor: these scales, a tree like the position.
        ladder: None for plain chains.
        lines: what was chosen, in words.
    """

    sampler: Sampler
    rounds: Rounds
    position: Any
    step_size: float
    factor: Any
    ladder: Ladder | None
    lines: tuple[str, ...]


def find_for_noise(potential: Potential, start: Any, budget: Budget, seed: Any, progress: bool | None) -> FoundNoisy:
    """Settle everything, from starts with leaves (K, ...)."""
    rounds = Rounds(len(jax.tree.leaves(start)[0]), seed, progress)
    position, factor, noise = settle(rounds, potential, SGLD(), 1.0, start, progress)
    step = SGLD().step_for(BIAS, noise)
    number = max(int(_LADDER_SHARE * (budget.evaluations or 1_000_000) / _PILOT_CHAINS), _MIN_PILOT)
    specification = ladder_of_noise(step, factor, number)
    lead = jax.tree.map(lambda leaf: leaf[None, :1], position)
    ladder, _ = find_ladder_of(potential, specification, Settings(1, seed=rounds.next_seed()), lead, progress)
    rounds.evaluations += number * _PILOT_CHAINS
    sampler = specification.completed(ladder)
    assert isinstance(sampler, Sampler)
    lines = [
        "Energies are noisy: moves are not tested.",
        f"Step size {step:.2g} in the scales of the wells, for a bias of {BIAS:.0%} of variances: the noise of gradients has "
        f"{noise:.2g} times the variance of forces.",
    ]
    if ladder.num_rungs > _MAX_USEFUL:
        lines.append(
            f"Plain chains: under the noise of the energies a ladder would need {ladder.num_rungs} rungs or more."
        )
        sampler, ladder = dataclasses.replace(specification.plain, coupling=Independent()), None
    else:
        lines.append(f"Ladder: {ladder.num_rungs} rungs from a pilot at temperatures up to where chains agree.")
    return FoundNoisy(sampler, rounds, position, step, factor, ladder, tuple(lines))


def settle(
    rounds: Rounds, potential: Potential, kernel: Kernel, temperature: float, start: Any, progress: bool | None
) -> tuple[Any, Any, float]:
    """Positions in the wells, the scales there, and the noise of gradients, from starts with leaves (K, ...).

    `kernel` is SGLD, in its box. The noise is the largest variance of a coordinate of the gradient over that of its force.
    """
    step = _FIRST_SHARE * first_step(rounds, potential, start)
    factor = jax.tree.map(lambda leaf: np.ones(leaf.shape[1:], np.float32), start)
    position, smallest, noise = start, 1e-12 * step, 0.0
    for length in _ROUNDS:
        run = _round(rounds, potential, scaled(kernel, factor), temperature, step, position, length, progress)
        while np.any(has_diverged(run)):
            step *= 0.1
            if step < smallest:
                rule, got = "one on which some step size keeps energies finite", "one that diverges at all"
                refuse("potential", rule, got, "Look at its gradient.")
            run = _round(rounds, potential, scaled(kernel, factor), temperature, step, position, length, progress)
        position = jax.tree.map(lambda leaf: np.asarray(leaf[:, -1]), run.draws)
        late = run.select(slice(run.num_draws // 2, None))
        draws = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), late.draws)
        factor = fitted_factor(rounds, potential, draws, factor)
        # In the scales of the wells curvatures are about 1. The variance grows by the step over 2, and as much times the variance
        # of the gradients.
        chosen = jax.tree.map(lambda leaf: leaf[np.linspace(0, len(leaf) - 1, _NUM_NOISE).astype(int)], draws)
        _, variances = rounds.gradients_of_batches(potential, chosen)
        widths = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(factor)])
        noise = float(np.max(np.mean(variances, axis=0) * widths**2)) / temperature
        # Rounds take longer steps, to come to the wells.
        step = kernel.step_for(_BIAS_OF_ROUNDS, noise)
    return position, factor, noise


def ladder_of_noise(step_size: float, factor: Any, num_steps: int = _MIN_PILOT) -> Specification:
    """Replica exchange in the scales given, with a ladder to be found."""
    found = resgld(step_size, ladder=LadderSearch(num_steps))
    assert isinstance(found, Specification)
    return dataclasses.replace(found, plain=dataclasses.replace(found.plain, kernel=scaled(found.kernel, factor)))


def _round(
    rounds: Rounds,
    potential: Potential,
    kernel: Kernel,
    temperature: float,
    step: float,
    position: Any,
    length: int,
    progress: bool | None,
) -> Run:
    sampler = Sampler(kernel, step, temperature, name="settling")
    settings = Settings(length, rounds.num_ladders, seed=rounds.next_seed(), thinning=max(length // 250, 1))
    began, layout = time.perf_counter(), Layout(None, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DivergenceWarning)
        prepared = prepare(potential, [sampler], settings, layout, jax.tree.map(lambda leaf: leaf[None], position))
        (run,) = drive(prepared, HostOptions(progress=progress, measure_bias=False), ResumePoint(), began)
    if run.num_steps < length and not np.any(has_diverged(run)):
        raise KeyboardInterrupt
    rounds.evaluations += length * rounds.num_ladders
    rounds.rate = length * rounds.num_ladders / max(max_of(run.seconds, "round"), 1e-6)
    return run
