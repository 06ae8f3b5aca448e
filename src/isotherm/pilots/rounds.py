"""Rounds: short runs of one program, after each of which its numbers are refitted: scales, step sizes, temperatures.

For exact energies. Every chain has a Metropolis test, so that no round is biased, whatever its step sizes.
"""

import dataclasses
import time
import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import ndtri

from isotherm.diagnostics.wells import separate
from isotherm.distributed import max_of
from isotherm.driver.drive import HostOptions, ResumePoint, drive
from isotherm.driver.layout import Layout
from isotherm.driver.prepare import prepare
from isotherm.driver.settings import Settings
from isotherm.engine import program_cache
from isotherm.exchange import Corrected, DeterministicEvenOdd, Exchange, Ladder
from isotherm.foundation.errors import DivergenceWarning
from isotherm.foundation.positions import columns
from isotherm.foundation.randomness import fold, seed_words
from isotherm.kernels import GHMC
from isotherm.kernels.wrapped import Box, scaled, within
from isotherm.potentials.potential import Potential, innermost
from isotherm.samplers.sampler import Sampler

# The acceptance that step sizes aim for, and the largest factors by which one round changes them.
TARGET_ACCEPTANCE, _MAX_CUT, _MAX_GROWTH = 0.8, 50.0, 8.0
# Positions of up to so many numbers get a matrix of scales.
MAX_DENSE = 64
# Draws whose gradients are taken for scales, and draws that the assumption of independent coordinates counts for.
_NUM_GRADIENTS, _PRIOR_DRAWS = 256, 5.0
# Batches whose gradients are averaged for scales, at most.
_MAX_BATCHES = 50
# Iterations between two draws of the target, and draws of the longest round that shares the program of the others.
THINNING, ROOM = 8, 65_536
# Probabilities of swaps below this are not distinguished.
_LEAST_REJECTION = 0.01


@dataclasses.dataclass(frozen=True)
class Setup:
    """The numbers of a ladder of adjusted chains.

    Attributes:
        temperatures: of the rungs; infinity is the reference of a path.
        step_sizes: of the rungs, in the coordinates of the scales.
        factor: the scales, see `kernels.wrapped.Scaled`.
        is_path: whether rungs temper the energy beside the reference.
        is_dense: whether the scales are a matrix.
        swaps: whether replicas swap.
        box: of the chains, as in `kernels.within`.
    """

    temperatures: np.ndarray
    step_sizes: np.ndarray
    factor: Any
    is_path: bool
    is_dense: bool
    swaps: bool = True
    box: Box = None

    @property
    def friction(self) -> float:
        """The part of the momentum that an iteration forgets: all within about the widest scale, which is 1."""
        return float(np.clip(1.0 - np.exp(-np.sqrt(self.step_sizes[0])), 0.02, 1.0))

    @property
    def num_rungs(self) -> int:
        """P."""
        return len(self.temperatures)

    def sampler(self, records_all: bool = True, name: str = "ladder") -> Sampler:
        """The sampler of a round, or of the run after the rounds."""
        kernel = within(scaled(GHMC(self.friction), self.factor, self.is_dense), self.box)
        steps, temperatures = (tuple(map(float, each)) for each in (self.step_sizes, self.temperatures))
        exchange = Exchange(
            Ladder(steps, temperatures),
            DeterministicEvenOdd(),
            Corrected(None),
            intensity=1.0 if self.swaps else 1e-12,
            is_path=self.is_path,
            is_adjusted=True,
            records_all=records_all,
        )
        return Sampler(kernel, steps[0], temperatures[0], coupling=exchange, name=name)


class Round(NamedTuple):
    """A round of K ladders of P rungs, by rung.

    Attributes:
        draws: leaves (K, P, draw, ...), or (K, 1, draw, ...) of the target alone.
        energies: U at the draws, likewise.
        acceptance: of proposals on each rung, shape (P,).
        rejection: of swaps of each pair, shape (P - 1,).
        last: the last positions, leaves (K, P, ...).
    """

    draws: Any
    energies: np.ndarray
    acceptance: np.ndarray
    rejection: np.ndarray
    last: Any


class Rounds:
    """Runs rounds, and counts what they cost: gradients, and gradients per second in the last one."""

    def __init__(self, num_ladders: int, seed: Any, progress: bool | None):
        self.num_ladders, self.progress = num_ladders, progress
        self.words, self.number, self.evaluations = seed_words(seed), 0, 0
        self.began, self.rate = time.perf_counter(), 0.0

    def next_seed(self) -> int:
        """The seed of the next round."""
        self.number += 1
        high, low = (int(word) for word in np.asarray(fold(np.asarray(self.words), np.asarray(0x526F + self.number))))
        return (high << 32) + low

    def run(
        self, potential: Potential, setup: Setup, position: Any, num_steps: int, name: str, is_wide: bool = False
    ) -> Round:
        """A round from `position`, leaves (K, P, ...) by rung. A wide one records all rungs in every iteration."""
        thinning = 1 if is_wide else THINNING
        number = self.num_ladders
        layout = Layout(None, number, None) if is_wide else Layout(None, None, number)
        settings = Settings(
            num_steps,
            setup.num_rungs,
            num_runs=number if is_wide else None,
            num_ladders=None if is_wide else number,
            seed=self.next_seed(),
            thinning=thinning,
            room=ROOM,
        )
        ends: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)
            sampler = setup.sampler(is_wide, name)
            prepared = prepare(potential, [sampler], settings, layout, position)
            keep = lambda carry: ends.append(carry.state.position)  # noqa: E731
            host = HostOptions(progress=self.progress, measure_bias=False, at_end=keep)
            (run,) = drive(prepared, host, ResumePoint(), time.perf_counter())
        evaluations = num_steps * setup.num_rungs * number
        self.evaluations += evaluations
        self.rate = evaluations / max(max_of(run.seconds, "round"), 1e-6)
        if run.num_steps < num_steps:
            raise KeyboardInterrupt
        stats = {name: np.asarray(value) for name, value in run.stats.items()}

        def per_rung(name):
            return stats[name].reshape(number, -1).sum(axis=0)

        def by_rung(leaf, rung):
            leaf = np.asarray(leaf)
            order = np.argsort(rung.reshape(number, setup.num_rungs, -1), axis=1)
            order = order.reshape(*order.shape[: 2 + (rung.ndim > 2)], *(1,) * (leaf.ndim - 2 - (rung.ndim > 2)))
            return np.take_along_axis(leaf, order, axis=1)

        def target(leaf):
            return np.asarray(leaf)[:, None]

        draws, energies = jax.tree.map(target, run.draws), target(run.energies)
        if is_wide:
            of_draws = np.asarray(run.observed["rung"])
            draws, energies = jax.tree.map(lambda leaf: by_rung(leaf, of_draws), (run.draws, run.energies))
        end = prepared.program.packing.unpack(jax.tree.map(np.asarray, ends[0]))
        last = jax.tree.map(lambda leaf: by_rung(leaf, stats["rung"].reshape(number, -1)), end)
        acceptance = per_rung("num_moves_accepted") / np.maximum(per_rung("num_moves"), 1)
        return Round(draws, energies, acceptance, 1.0 - per_rung("swap_rate") / number, last)

    def energies(self, potential: Potential, positions: Any) -> np.ndarray:
        """Energies at positions, leaves (n, ...); shape (n,)."""
        self.evaluations += len(jax.tree.leaves(positions)[0])
        return np.asarray(program_cache.call(_energies, potential.on_device(), positions), np.float64)

    def gradients(self, potential: Potential, positions: Any) -> np.ndarray:
        """Gradients of the energy at positions, leaves (n, ...), averaged over batches; shape (n, d)."""
        return self.gradients_of_batches(potential, positions)[0]

    def gradients_of_batches(self, potential: Potential, positions: Any) -> tuple[np.ndarray, np.ndarray]:
        """Means and variances over batches of the gradients at positions, leaves (n, ...); shape (n, d)."""
        number = len(jax.tree.leaves(positions)[0])
        self.evaluations += number * num_batches(potential)
        found = program_cache.call(_gradients, potential.on_device(), positions)
        mean, variance = (np.asarray(part, np.float64).reshape(number, -1) for part in found)
        return mean, variance


class Budget(NamedTuple):
    """What a run may cost with its rounds: gradients, or seconds."""

    evaluations: int | None
    seconds: float | None = None

    def share_after(self, rounds: Rounds, upcoming: int) -> float:
        """The share that is spent after `upcoming` more gradients."""
        if self.seconds is not None:
            spent = max_of(time.perf_counter() - rounds.began, "budget")
            return (spent + upcoming / max(rounds.rate, 1e-9)) / self.seconds
        assert self.evaluations is not None
        return (rounds.evaluations + upcoming) / self.evaluations

    def left(self, rounds: Rounds) -> float:
        """Gradients that are left."""
        if self.seconds is not None:
            return (self.seconds - max_of(time.perf_counter() - rounds.began, "budget")) * rounds.rate
        assert self.evaluations is not None
        return float(self.evaluations - rounds.evaluations)


def _energies(potential: Potential, positions: Any) -> Any:
    return jax.vmap(potential.full_energy)(positions)


def _gradients(potential: Potential, positions: Any) -> Any:
    """Means and variances of gradients over the batches of an epoch."""
    words, number = jnp.zeros(2, jnp.uint32), num_batches(potential)

    def of_one(position):
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, jnp.zeros(1, jnp.int32), position))
        state = potential.init_model_state()

        def of_batch(k):
            batch = potential.batch(words, k)
            gradient = jax.grad(lambda x: potential.evaluate(x, batch, noise, state).energy)(position)
            return jnp.concatenate([leaf.reshape(-1) for leaf in jax.tree.leaves(gradient)])

        found = jax.lax.map(of_batch, jnp.arange(number, dtype=jnp.int32))
        return jnp.mean(found, axis=0), jnp.var(found, axis=0)

    return jax.vmap(of_one)(positions)


def num_batches(potential: Potential) -> int:
    """Batches of an epoch, up to a limit; 1 for exact energies."""
    inner = innermost(potential)
    size = getattr(inner, "batch_size", None)
    return 1 if size is None else min(-(-len(jax.tree.leaves(inner.data)[0]) // size), _MAX_BATCHES)


def fitted_steps(
    step_sizes: np.ndarray, acceptance: np.ndarray, num_moves: int, wanted: float = TARGET_ACCEPTANCE
) -> np.ndarray:
    """Step sizes closer to the acceptance wanted.

    A step of length h is accepted with probability 2 Phi(-s / 2), where s grows as h^3; the step size is h^2.
    """
    bounded = np.clip(acceptance, 0.5 / num_moves, 1.0 - 0.5 / num_moves)
    ratio = (ndtri(0.5 * wanted) / ndtri(0.5 * bounded)) ** (2.0 / 3.0)
    ratio = np.where(acceptance == 0.0, 1.0 / _MAX_CUT, np.clip(ratio, 1.0 / _MAX_CUT, _MAX_GROWTH))
    return step_sizes * ratio


def fitted_factor(rounds: Rounds, potential: Potential, draws: Any, old: Any, is_dense: bool = False) -> Any:
    """Scales of the wells of the target, from draws (n, ...) and the gradients at them.

    X with X Cov(g) X = Cov(x), both within wells, is the covariance of a normal well even if the draws have not seen all of it.
    """
    leaves = jax.tree.leaves(draws)
    number, size = len(leaves[0]), sum(int(np.prod(leaf.shape[1:])) for leaf in leaves)
    # Always as many, so that one program takes all gradients.
    chosen = np.linspace(0, number - 1, max(_NUM_GRADIENTS, 3 * size)).astype(int)
    rows = jax.tree.map(lambda leaf: leaf[chosen], draws)
    gradients = rounds.gradients(potential, rows)
    values = columns(rows, 1, np.arange(size)).astype(np.float64)
    used = np.all(np.isfinite(gradients), axis=1) & np.all(np.isfinite(values), axis=1)
    values, gradients = values[used], gradients[used]
    if len(values) < 4:
        return old
    wells = separate(values)
    for well in np.unique(wells):
        values[wells == well] -= values[wells == well].mean(axis=0)
        gradients[wells == well] -= gradients[wells == well].mean(axis=0)
    spread, force = values.std(axis=0), gradients.std(axis=0)
    is_known = (spread > 0) & (force > 0)
    scale = np.sqrt(np.where(is_known, spread, 1.0) / np.where(is_known, force, 1.0))
    if not is_dense:
        structure, shapes = jax.tree.structure(draws), [leaf.shape[1:] for leaf in leaves]
        parts = np.split(scale, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
        return jax.tree.unflatten(
            structure, [part.reshape(shape).astype(np.float32) for part, shape in zip(parts, shapes, strict=True)]
        )
    unit = np.maximum(spread / scale, 1e-12)
    x, g = values / (scale * unit), gradients * scale / np.maximum(force * scale, 1e-300)
    # In these units both covariances have a diagonal of 1; pseudo-counts draw them to independent coordinates.
    share = len(x) / (len(x) + _PRIOR_DRAWS + size)
    of_x, of_g = (share * (each.T @ each) / len(each) + (1.0 - share) * np.eye(size) for each in (x, g))
    root, inverse = _roots(of_g)
    middle, _ = _roots(root @ of_x @ root)
    found = inverse @ middle @ inverse
    lower = np.linalg.cholesky(0.5 * (found + found.T))
    return (scale[:, None] * lower).astype(np.float32)


def _roots(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The symmetric root of a positive matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    values = np.maximum(values, 1e-12 * values.max())
    return (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T


def fitted_temperatures(temperatures: np.ndarray, rejection: np.ndarray, number: int) -> np.ndarray:
    """Temperatures of `number` rungs of equal rejection, between the same ends."""
    betas = 1.0 / temperatures[::-1]
    passed = np.concatenate([[0.0], np.cumsum(np.clip(rejection[::-1], _LEAST_REJECTION, 1.0))])
    # Between two rungs the barrier is shared out in the logarithm, except next to the reference.
    floor = betas[1] * 1e-3 if betas[0] == 0.0 else 0.0
    curve = PchipInterpolator(passed, np.log(np.maximum(betas, floor)))
    placed = np.exp(curve(np.linspace(0.0, passed[-1], number)))
    placed[0], placed[-1] = betas[0], betas[-1]
    with np.errstate(divide="ignore"):
        return (1.0 / placed)[::-1]


def interpolated(temperatures: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Positive values of rungs at other temperatures, in logarithms."""
    place = lambda t: np.arcsinh(1e6 / t)  # noqa: E731  Finite at the reference, and nearly logarithmic elsewhere.
    return np.exp(np.interp(place(wanted), place(temperatures)[::-1], np.log(values)[::-1]))


def nearest_rungs(temperatures: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The rung closest to each wanted temperature."""
    place = lambda t: np.arcsinh(1e6 / t)  # noqa: E731
    return np.argmin(np.abs(place(wanted)[:, None] - place(temperatures)[None]), axis=1)
