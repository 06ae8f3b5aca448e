"""Everything that a run needs, from the problem alone: scales, step sizes, a reference, a ladder, or plain chains."""

import dataclasses
from typing import Any

import jax
import numpy as np

from isotherm.engine import program_cache
from isotherm.foundation.errors import refuse
from isotherm.foundation.positions import columns
from isotherm.foundation.randomness import fold, seed_words
from isotherm.pilots.ladder import place_rungs
from isotherm.pilots.rounds import (
    MAX_DENSE,
    TARGET_ACCEPTANCE,
    Budget,
    Round,
    Rounds,
    Setup,
    fitted_factor,
    fitted_steps,
    fitted_temperatures,
    interpolated,
    nearest_rungs,
)
from isotherm.potentials.potential import Potential
from isotherm.potentials.reference import LARGEST_ENERGY, Normal, ReferencedPotential

# Temperatures of the search for a reference.
_SCOUTED, _SCOUTED_BY_FEW = 2.0 ** np.arange(11), 4.0 ** np.arange(6)
# Iterations of rounds that settle scales and step sizes, of rounds that look around, and of the test whether chains agree; with a
# budget of at most `_SMALL` gradients, the latter are shorter and temperatures fewer.
SETTLING, SCOUTING, _AGREEING, _SMALL = (32,) * 8, (256, 512), 512, 300_000
_SCOUTING_BY_FEW, _AGREEING_BY_FEW = (64, 128), 128
# Chains that start apart agree below this R-hat.
_MAX_R_HAT = 1.2
# Where they agree at no temperature, a disagreement within this factor of the least counts as equal to it.
_MAX_EXCESS = 1.5
# How much hotter the chains were from whose places others start.
_SCATTER = 4.0
# Below so many numbers, one temperature is never enough: modes may be narrow, and rungs are cheap.
_ALWAYS_LADDER, _LEAST_HEAT = 8, 4.0
_MIN_RUNGS, _MAX_RUNGS = 3, 32
# Draws of a given reference that tell how far away the target is; the largest position for a normal reference.
_NUM_DRAWN, _MAX_SIZE = 64, 2_000
# Directions in which the first step size is tried.
_DIRECTIONS = 4
# The share of the budget for rounds before the run.
PILOT_SHARE = 0.25


@dataclasses.dataclass(frozen=True)
class Found:
    """What rounds found.

    Attributes:
        potential: with a reference where there is a ladder.
        setup: the numbers of the ladder; None for plain chains.
        position: where its replicas are, leaves (K, P, ...).
        barrier: the sum of rejections of neighbors.
        hottest: the temperature that the fitted reference stands for; None if the reference was given.
        rounds: what found it, with its costs.
        lines: what was chosen and why, in words.
    """

    potential: Potential
    setup: Setup
    position: Any
    barrier: float
    hottest: float | None
    rounds: Rounds
    lines: tuple[str, ...]


def find_all(potential: Potential, start: Any, budget: Budget, seed: Any, progress: bool | None) -> Found:
    """Settle everything within the pilots' share of the budget. `start` has leaves (K, ...), one for each of K ladders."""
    rounds = Rounds(len(jax.tree.leaves(start)[0]), seed, progress)
    size = sum(int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(start))
    lines: list[str] = []
    if potential.has_reference:
        hottest, referenced = None, potential
        setup, position = _from_reference(rounds, potential, start, size)
    else:
        if size > _MAX_SIZE:
            rule, remedy = (
                f"given for positions of more than {_MAX_SIZE:,} numbers",
                "Give one, such as `iso.ghmc(step_size)`.",
            )
            refuse("sampler", rule, f"none, and {size:,} numbers", remedy)
        is_small = budget.evaluations is not None and budget.evaluations <= _SMALL
        hottest, referenced, setup, position = _scout(rounds, potential, start, size, is_small, lines)
    return _climb(rounds, referenced, setup, position, budget, hottest, lines)


def unit_factor(start: Any, size: int) -> Any:
    """Scales of 1: a matrix for small positions."""
    if size <= MAX_DENSE:
        return np.eye(size, dtype=np.float32)
    return jax.tree.map(lambda leaf: np.ones(leaf.shape[1:], np.float32), start)


def first_step(rounds: Rounds, potential: Potential, position: Any) -> float:
    """The largest step size whose noise changes the energy by about its unit at the starts."""
    sizes = 10.0 ** np.arange(-24.0, 12.5, 0.5)
    rng = np.random.default_rng(rounds.next_seed())
    number = len(jax.tree.leaves(position)[0])

    def moved(leaf):
        leaf = np.asarray(leaf)
        noise = rng.standard_normal((_DIRECTIONS, *leaf.shape))
        far = leaf + np.sqrt(sizes).reshape(-1, *(1,) * noise.ndim) * noise
        # A move beyond the largest number of half precision has no finite energy.
        with np.errstate(over="ignore"):
            return far.reshape(-1, *leaf.shape[1:]).astype(leaf.dtype)

    both = jax.tree.map(lambda leaf: np.concatenate([leaf, moved(leaf)]), position)
    energies = rounds.energies(potential, both)
    here, there = energies[:number], energies[number:].reshape(len(sizes), _DIRECTIONS, number)
    if not np.all(np.isfinite(here)):
        refuse("init", "where the energy is finite", f"an energy of {here[~np.isfinite(here)][0]}", "Start elsewhere.")
    with np.errstate(invalid="ignore"):
        changes = np.median(np.nan_to_num(np.abs(there - here), nan=np.inf, posinf=np.inf), axis=(1, 2))
    small = np.flatnonzero(changes < 1.0)
    return float(sizes[small[-1]]) if len(small) else float(sizes[0])


def settle(
    rounds: Rounds, potential: Potential, setup: Setup, position: Any, lengths: tuple[int, ...], name: str
) -> tuple[Setup, Any, Round]:
    """Rounds after each of which scales and step sizes are refitted."""
    found = None
    for length in lengths:
        found = rounds.run(potential, setup, position, length, name, is_wide=True)
        position = found.last
        num_moves = length * rounds.num_ladders
        setup = dataclasses.replace(setup, step_sizes=fitted_steps(setup.step_sizes, found.acceptance, num_moves))
        setup = _rescaled(rounds, potential, setup, _late(found, 0))
    assert found is not None
    return setup, position, found


def _rescaled(rounds: Rounds, potential: Potential, setup: Setup, draws: Any) -> Setup:
    """The setup with scales fitted to draws of the target, and steps that stay as long."""
    factor = fitted_factor(rounds, potential, draws, setup.factor, setup.is_dense)
    ratio = _log_size(setup.factor, setup.is_dense) - _log_size(factor, setup.is_dense)
    return dataclasses.replace(setup, factor=factor, step_sizes=setup.step_sizes * np.exp(2.0 * ratio))


def _log_size(factor: Any, is_dense: bool) -> float:
    """The mean log scale."""
    if is_dense:
        return float(np.mean(np.log(np.abs(np.diagonal(factor)))))
    return float(np.mean(np.log(np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(factor)]))))


def _late(found: Round, rung: int) -> Any:
    """The later half of the draws of a rung, leaves (n, ...)."""
    half = found.energies.shape[2] // 2
    return jax.tree.map(lambda leaf: leaf[:, rung, half:].reshape(-1, *leaf.shape[3:]), found.draws)


def _scout(
    rounds: Rounds, potential: Potential, start: Any, size: int, is_small: bool, lines: list[str]
) -> tuple[float, Potential, Setup, Any]:
    """A reference for the target, from chains at many temperatures; the first ladder of the path from it."""
    heats_tried = _SCOUTED_BY_FEW if is_small else _SCOUTED
    scouting, agreeing = (_SCOUTING_BY_FEW, _AGREEING_BY_FEW) if is_small else (SCOUTING, _AGREEING)
    number = len(heats_tried)
    position = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[:, None], number, axis=1), start)
    step = first_step(rounds, potential, start)
    setup = Setup(heats_tried, np.full(number, step), unit_factor(start, size), False, size <= MAX_DENSE)
    setup, position, _ = settle(rounds, potential, setup, position, SETTLING, "settling")
    setup, position, found = settle(rounds, potential, setup, position, scouting, "scouting")
    # Temperatures at which chains agree, without swaps, from where chains were at about four times the temperature. If those
    # agree, too, their places are scattered wider than the draws should be.
    widest = _at_rest(found)
    hotter = int(np.searchsorted(heats_tried, _SCATTER))
    scattered = jax.tree.map(lambda leaf: leaf[:, np.minimum(np.arange(number) + hotter, widest)], position)
    setup = dataclasses.replace(setup, swaps=False)
    apart = rounds.run(potential, setup, scattered, agreeing, "agreement", is_wide=True)
    r_hats = [_disagreement(apart, rung) for rung in range(number)]
    between = np.array(r_hats[: widest + 1]) ** 2 - 1.0
    limit = max(_MAX_R_HAT**2 - 1.0, _MAX_EXCESS * float(between.min()))
    rung = next((r for r in range(widest + 1) if np.all(between[r:] <= limit)), widest)
    if size <= _ALWAYS_LADDER:
        rung = max(rung, int(np.searchsorted(heats_tried, _LEAST_HEAT)))
    rung = min(max(rung, 0), number - 1)
    hottest = float(heats_tried[rung])
    own = (_late(each, rung) for each in (found, apart))
    draws = jax.tree.map(lambda *leaves: np.concatenate(leaves), *own)
    reference = _fitted(draws, size, start)
    referenced = ReferencedPotential(potential, reference)
    temperatures = np.array([1.0, np.inf])
    if rung > 0:
        barriers = np.array([_local_barrier(found.energies[:, r]) for r in range(rung + 1)])
        placed, _ = place_rungs(heats_tried[: rung + 1], barriers, 0.0)
        # A rung of temperature T between 1 and the hottest corresponds to this share of the target.
        betas = (1.0 / placed - 1.0 / hottest) / (1.0 - 1.0 / hottest)
        with np.errstate(divide="ignore"):
            temperatures = 1.0 / np.maximum(betas, 0.0)
        temperatures[-1] = np.inf
    if len(temperatures) < _MIN_RUNGS:
        temperatures = np.array([1.0, 3.0, np.inf])
    heats = 1.0 / ((1.0 - 1.0 / hottest) / temperatures + 1.0 / hottest)
    nearest = np.argmin(np.abs(np.log(heats)[:, None] - np.log(heats_tried)[None]), axis=1)
    steps = np.exp(np.interp(np.log(heats), np.log(heats_tried), np.log(setup.step_sizes)))
    position = jax.tree.map(lambda leaf: leaf[:, nearest], position)
    word = "agree" if r_hats[rung] < _MAX_R_HAT else "disagree least"
    lines.append(
        f"Reference: a normal distribution fitted at temperature {hottest:g}, where short chains that started apart {word} "
        f"(R-hat {r_hats[rung]:.2f}; {r_hats[0]:.2f} at the target)."
    )
    return hottest, referenced, Setup(temperatures, steps, setup.factor, True, setup.is_dense), position


def _at_rest(found: Round) -> int:
    """The hottest rung whose draws no longer spread."""
    best = 0
    for rung in range(found.energies.shape[1]):
        values = _rows(found, rung)
        half = values.shape[1] // 2
        early, late = (
            np.std(part.reshape(-1, part.shape[-1]), axis=0) for part in (values[:, :half], values[:, half:])
        )
        if np.all(late < 2.0 * np.maximum(early, 1e-30)):
            best = rung
        else:
            break
    return best


def _rows(found: Round, rung: int) -> np.ndarray:
    """Draws of a rung as (ladder, draw, d)."""
    own = jax.tree.map(lambda leaf: leaf[:, rung], found.draws)
    size = sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(own))
    return columns(own, 2, np.arange(size)).astype(np.float64)


def _disagreement(found: Round, rung: int) -> float:
    """The largest R-hat of coordinates and the energy, over the later halves of chains."""
    values = np.concatenate([_rows(found, rung), found.energies[:, rung, :, None]], axis=-1)
    values = values[:, values.shape[1] // 2 :]
    means, inside = values.mean(axis=1), values.var(axis=1).mean(axis=0)
    return float(np.max(np.sqrt(1.0 + means.var(axis=0, ddof=1) / np.maximum(inside, 1e-300))))


def _local_barrier(energies: np.ndarray) -> float:
    rising = np.sort(energies[np.isfinite(energies)].astype(np.float64))
    number = len(rising)
    return float(np.sum((2 * np.arange(number) - number + 1) * rising) / max(number * (number - 1), 1))


def _fitted(draws: Any, size: int, start: Any) -> Normal:
    """A normal distribution, wider than draws (n, ...)."""
    values = columns(draws, 1, np.arange(size)).astype(np.float64)
    center = np.median(values, axis=0)
    away = values - center
    # Draws far out, in heavy tails, are drawn in.
    spread = np.maximum(np.quantile(np.abs(away), 0.9, axis=0), 1e-30)
    away = np.clip(away, -3.0 * spread, 3.0 * spread)
    center = center + away.mean(axis=0)
    away = away - away.mean(axis=0)
    deviation = np.maximum(away.std(axis=0), 1e-30)
    unit = away / deviation
    share = len(unit) / (len(unit) + 2.0 * size)
    correlation = share * (unit.T @ unit) / len(unit) + (1.0 - share) * np.eye(size)
    lower = np.linalg.cholesky((1.0 + 2.0 / np.sqrt(size)) * correlation) * deviation[:, None]
    ends = np.cumsum([int(np.prod(leaf.shape[1:])) for leaf in jax.tree.leaves(start)])[:-1]
    leaves = [
        part.reshape(leaf.shape[1:]).astype(leaf.dtype)
        for part, leaf in zip(np.split(center, ends), jax.tree.leaves(start), strict=True)
    ]
    return Normal(jax.tree.unflatten(jax.tree.structure(start), leaves), lower.astype(np.float32))


def _from_reference(rounds: Rounds, potential: Potential, start: Any, size: int) -> tuple[Setup, Any]:
    """The first ladder of a path from a given reference, with replicas at its draws."""
    number = _NUM_DRAWN
    words = fold(seed_words(rounds.next_seed())[None], np.arange(number))
    drawn, losses = jax.tree.map(np.asarray, program_cache.call(_drawn, potential.on_device(), words))
    rounds.evaluations += number
    losses = losses.astype(np.float64)
    losses = losses[np.isfinite(losses) & (losses < 0.1 * LARGEST_ENERGY)]
    spread = np.subtract(*np.quantile(losses, [0.75, 0.25])) if len(losses) > 3 else 1.0
    lowest = min(1.0 / max(spread, 1e-6), 0.3)
    count = int(np.clip(np.ceil(np.log(1.0 / lowest) / np.log(3.0)) + 2, 4, 16))
    betas = np.append(np.geomspace(1.0, lowest, count), 0.0)
    with np.errstate(divide="ignore"):
        temperatures = 1.0 / betas
    rungs = len(temperatures)
    pick = np.arange(rounds.num_ladders * rungs) % number
    position = jax.tree.map(lambda leaf: leaf[pick].reshape(rounds.num_ladders, rungs, *leaf.shape[1:]), drawn)
    # The target's own rung begins at the starts of the user.
    position = jax.tree.map(
        lambda leaf, own: np.concatenate([np.asarray(own)[:, None].astype(leaf.dtype), leaf[:, 1:]], axis=1),
        position,
        start,
    )
    step = first_step(rounds, potential, start)
    setup = Setup(temperatures, step * np.minimum(temperatures, 1e6), unit_factor(start, size), True, size <= MAX_DENSE)
    setup, position, _ = settle(rounds, potential, setup, position, SETTLING, "settling")
    return setup, position


def _drawn(potential: Potential, words: Any) -> tuple[Any, Any]:
    """Draws from the reference by the words of keys, and the energies along the path there."""
    draws = jax.vmap(lambda pair: potential.draw_reference(jax.random.wrap_key_data(pair, impl="threefry2x32")))(words)
    return draws, jax.vmap(lambda x: potential.full_energy(x) - potential.prior_energy(x))(draws)


def _climb(
    rounds: Rounds,
    potential: Potential,
    setup: Setup,
    position: Any,
    budget: Budget,
    hottest: float | None,
    lines: list[str],
) -> Found:
    """Rounds of doubling length on a path; after each the ladder is refitted to equal rejection."""
    length, trial, is_numbered = 128, 0, False
    while True:
        found = rounds.run(potential, setup, position, length, f"round {trial + 1}")
        position = found.last
        steps = fitted_steps(setup.step_sizes, found.acceptance, length * rounds.num_ladders)
        steps[-1] = setup.step_sizes[-1]
        setup = dataclasses.replace(setup, step_sizes=steps)
        setup = _rescaled(rounds, potential, setup, _late(found, 0))
        barrier = float(np.sum(found.rejection))
        wanted = int(np.clip(np.ceil(2.0 * barrier) + 1, _MIN_RUNGS, _MAX_RUNGS))
        number = setup.num_rungs
        if trial >= 2 and not is_numbered and not 0.75 * number <= wanted <= 1.25 * number:
            number = wanted
            is_numbered = trial >= 4
        placed = fitted_temperatures(setup.temperatures, found.rejection, number)
        nearest = nearest_rungs(setup.temperatures, placed)
        steps = interpolated(setup.temperatures, setup.step_sizes, placed)
        position = jax.tree.map(lambda leaf, nearest=nearest: leaf[:, nearest], position)
        setup = dataclasses.replace(setup, temperatures=placed, step_sizes=steps)
        trial, length = trial + 1, 2 * length
        upcoming = length * setup.num_rungs * rounds.num_ladders
        if budget.share_after(rounds, upcoming) > PILOT_SHARE:
            break
    lines.append(f"Ladder: {setup.num_rungs} rungs of equal rejection, about twice the barrier of {barrier:.2g}.")
    lines.append(f"Step sizes: {TARGET_ACCEPTANCE:.0%} of moves accepted on each rung, in the scales of the wells.")
    return Found(potential, setup, position, barrier, hottest, rounds, tuple(lines))
