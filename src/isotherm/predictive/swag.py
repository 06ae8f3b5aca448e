"""SWAG: a low-rank plus diagonal Gaussian, fitted to the path of SGD, and networks drawn from it."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine import program_cache
from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.randomness import seed_key
from isotherm.networks.potential import NetworkPotential
from isotherm.predictive.average import Draws
from isotherm.predictive.checks import check_draws, check_network
from isotherm.predictive.ensembles import Ensemble
from isotherm.run.estimates import normalized_weights

# Statistics that differ by less do not depend on the previous state.
_SAME = 1e-6


@dataclasses.dataclass(frozen=True, eq=False)
class Swag:
    r"""Gaussians N(mean, (D + A A^T / (K - 1)) / 2), one for each path.

    mean is the mean of the path's networks, D the diagonal of their variances, and the columns of A are the deviations of the
    last K networks from the running mean. All are weighted by importance: a column is multiplied by the root of its weight over
    the mean weight of the K. A path with fewer than K networks has columns of zeros.

    Attributes:
        means: leaves (G, ...), one row for each Gaussian.
        variances: likewise.
        deviations: leaves (G, K, ...).
        model_state: of the last network of each path, (G, ...).
        log_weights: of the Gaussians, (G,): from the mean weight of each path's networks.

    Reference:
        Maddox et al. 2019, Algorithm 1 and equation (1); several paths are Wilson and Izmailov's MultiSWAG, and the cycles of
        one path are the thesis' cycSWAG.

    Differs from the thesis: it trains every drawn network for an epoch before it is evaluated, which `trained` does; `sample`
    alone refreshes the BatchNorm statistics only, as Maddox et al. do.
    """

    means: Any
    variances: Any
    deviations: Any
    model_state: Any
    log_weights: np.ndarray

    @property
    def num_gaussians(self) -> int:
        """The number of fitted paths."""
        return len(jax.tree.leaves(self.means)[0])

    def sample(
        self,
        num: int,
        seed: int = 0,
        *,
        scale: float = 1.0,
        potential: NetworkPotential | None = None,
        num_refresh: int | None = None,
    ) -> Ensemble:
        """`num` networks from every Gaussian, with its weight.

        Args:
            num: number of networks per Gaussian.
            seed: of all randomness.
            scale: factor on the variance.
            potential: source of data for the BatchNorm statistics of every network (`refresh_statistics`); None without
                BatchNorm.
            num_refresh: batches for these statistics; None is one epoch.
        """
        check_integer("num", num, 1, "Give the number of networks per Gaussian.")
        check_real("scale", scale, "Give a factor on the variance.", minimum=0.0)
        if jax.tree.leaves(self.model_state) and potential is None:
            remedy = "Drawn networks need BatchNorm statistics of their own."
            refuse("potential", "given for networks with BatchNorm", "None", remedy)
        if num_refresh is not None:
            check_integer("num_refresh", num_refresh, 1, "Give batches, or None for one epoch.")
        found = _draw(seed_key(seed), self.means, self.variances, self.deviations, num, scale)
        draws = jax.tree.map(np.asarray, found)
        log_weights = np.tile(self.log_weights[:, None], num)
        if not jax.tree.leaves(self.model_state):
            return Ensemble(draws, (), log_weights)
        assert potential is not None
        states = [
            refresh_statistics(potential, _at(draws, (gaussian, number)), _at(self.model_state, gaussian), num_refresh)
            for gaussian, number in np.ndindex(*log_weights.shape)
        ]

        def stacked(*leaves):
            return np.stack(leaves).reshape(*log_weights.shape, *leaves[0].shape)

        return Ensemble(draws, jax.tree.map(stacked, *states), log_weights)


@checked_call(prefix="iso.predictive.")
def fit_swag(run: Draws, *, rank: int = 20, cycle_length: int | None = None) -> Swag:
    """The Gaussians of a run of SGD: one for each chain, or for each cycle of each chain.

    Use it after `iso.swag` (or `iso.msgd` with a constant or cyclical step size) with one draw per epoch and a burn-in. Draws
    have their importance weights: draws of weight zero, as in a diverged chain, are left out, and a path with fewer than two
    others has no Gaussian.

    Args:
        run: draws of SGD, in memory or on disk.
        rank: K, at most the number of draws of the longest path.
        cycle_length: iterations of a cycle, as for `iso.swag`, for one Gaussian per cycle (cycSWAG); None fits one Gaussian for
            each chain (SWAG; MultiSWAG for several chains).
    """
    check_integer("rank", rank, 2, "Give the columns of the low-rank part.")
    check_draws("run", run)
    weights = normalized_weights(np.asarray(run.log_weights))
    *lead, num_draws = weights.shape
    cycles = np.zeros(num_draws, int)
    if cycle_length is not None:
        times = getattr(run, "iterations", None)
        if times is None:
            refuse("run", "one with the iterations of its draws", type(run).__name__, "Give a `Run`.")
        cycles = np.asarray(times) // check_integer("cycle_length", cycle_length, 1, "Give iterations.")
    stretches = [np.flatnonzero(cycles == cycle) for cycle in np.unique(cycles)]
    fewest = min(len(stretch) for stretch in stretches)
    if fewest < 2:
        got = f"{fewest} in one of {len(stretches)} cycles"
        refuse("run", "at least two draws for every Gaussian", got, "Lower `thinning` or `burn_in`.")
    every = [
        (chain, stretch[weights[chain][stretch] > 0], stretch) for chain in np.ndindex(*lead) for stretch in stretches
    ]
    paths = [(chain, used, np.mean(weights[chain][stretch])) for chain, used, stretch in every if len(used) > 1]
    if not paths:
        remedy = "All chains diverged early: lower `step_size`."
        refuse("run", "one with two draws of weight in some path", "none", remedy)
    # All Gaussians have one rank: they are stacked.
    rank = min(rank, max(len(used) for _, used, _ in paths))
    fitted = [_fit(run, chain, used, weights[chain][used], rank) for chain, used, _ in paths]
    masses = np.array([mass for _, _, mass in paths])
    means, variances, deviations, states = jax.tree.map(lambda *leaves: np.stack(leaves), *fitted)
    return Swag(means, variances, deviations, states, np.log(masses / masses.max()))


@checked_call(prefix="iso.predictive.")
def refresh_statistics(
    potential: NetworkPotential, weights: Any, model_state: Any, num_batches: int | None = None
) -> Any:
    """The model state with BatchNorm statistics of the network at `weights`: their plain mean over batches of the data.

    The BatchNorm statistics in `model_state` are replaced. Any other state is carried from batch to batch in training mode, to
    its value after the last one.

    Args:
        potential: the network and its data. Batches are augmented, as in sampling.
        weights: of one network.
        model_state: of a network, such as the last one of a path.
        num_batches: number of batches; None is one epoch.

    Reference:
        Izmailov et al. 2018, "Averaging weights leads to wider optima and better generalization", section 3.2.
    """
    check_network(potential)
    if potential.is_streamed:
        remedy = "Make it again with `is_streamed=False`, and with as many examples as fit."
        refuse("potential", "one with its data on the device", "one with streamed data", remedy)
    number = 1 if potential.batch_size is None else -(-potential.num_data // potential.batch_size)
    if num_batches is not None:
        number = check_integer("num_batches", num_batches, 1, "Give batches, or None for one epoch.")
    found = program_cache.call(_refresh, potential.on_device(), jnp.asarray(number), weights, model_state)
    return jax.tree.map(np.asarray, found)


def _refresh(potential: NetworkPotential, number: Array, weights: Any, model_state: Any) -> Any:
    def after(k, state):
        return potential.batch_statistics(weights, potential.batch(jnp.zeros(2, jnp.uint32), k).examples[0], state)

    def is_number(leaf):
        return jnp.issubdtype(leaf.dtype, jnp.inexact)

    def step(k, carry):
        state, mean = carry
        state = after(k, state)
        return state, jax.tree.map(lambda m, s: m + (s - m) / (k + 1) if is_number(m) else s, mean, state)

    def chosen(mean, last, once, again):
        # A value that depends on the previous state is no statistic of one batch.
        if not is_number(mean):
            return last
        return jnp.where(jnp.all(jnp.abs(once - again) <= _SAME * (1.0 + jnp.abs(once))), mean, last)

    model_state = jax.tree.map(jnp.asarray, model_state)
    moved = jax.tree.map(lambda leaf: 2.0 * leaf + 1.0 if is_number(leaf) else leaf, model_state)
    zeros = jax.tree.map(jnp.zeros_like, model_state)
    last, mean = jax.lax.fori_loop(0, number, step, (model_state, zeros))
    return jax.tree.map(chosen, mean, last, after(0, model_state), after(0, moved))


def _fit(run: Draws, chain: tuple[int, ...], places: np.ndarray, weights: np.ndarray, rank: int) -> tuple[Any, ...]:
    """Weighted moments and deviations of one path, read one draw at a time."""
    mean = square = jax.tree.map(lambda leaf: np.zeros(leaf.shape[len(chain) + 1 :]), run.draws)
    columns: list[Any] = []
    for place, share in zip(places.tolist(), weights / np.cumsum(weights), strict=True):
        draw = jax.tree.map(lambda leaf: np.asarray(leaf[(*chain, place)], np.float64), run.draws)  # noqa: B023
        mean = jax.tree.map(lambda m, x: m + share * (x - m), mean, draw)  # noqa: B023
        square = jax.tree.map(lambda m, x: m + share * (x**2 - m), square, draw)  # noqa: B023
        columns = [*columns, jax.tree.map(np.subtract, draw, mean)][-rank:]
    variance = jax.tree.map(lambda s, m: np.maximum(s - m**2, 1e-30), square, mean)
    state = jax.tree.map(lambda leaf: np.asarray(leaf[(*chain, int(places[-1]))]), run.model_state)
    last = weights[-rank:]
    # `_draw` divides by K - 1; a shorter path is divided by its own number of columns less one.
    scales = np.sqrt(last / last.mean() * (rank - 1) / (len(last) - 1))

    def stacked(*leaves):
        filled = np.zeros((rank, *leaves[0].shape))
        filled[: len(leaves)] = np.stack(leaves) * scales.reshape(-1, *(1,) * leaves[0].ndim)
        return filled

    moments = mean, variance, jax.tree.map(stacked, *columns)
    return *jax.tree.map(lambda leaf: leaf.astype(np.float32), moments), state


def _draw(key: Any, means: Any, variances: Any, deviations: Any, num: int, scale: float) -> Any:
    """Leaves (G, num, ...): mean + sqrt(scale / 2) * (sqrt(D) z_1 + A z_2 / sqrt(K - 1)), one z_2 for all leaves of a network."""
    leaves, structure = jax.tree.flatten(means)
    rank = jax.tree.leaves(deviations)[0].shape[1]
    key_rank, *keys = jax.random.split(key, len(leaves) + 1)
    common = jax.random.normal(key_rank, (len(leaves[0]), num, rank))

    def one(leaf_key, mean, variance, columns):
        mean, variance, columns = (jnp.asarray(part) for part in (mean, variance, columns))
        own = jax.random.normal(leaf_key, (len(mean), num, *mean.shape[1:]))
        low = jnp.einsum("gnk,gk...->gn...", common, columns) / np.sqrt(max(rank - 1, 1))
        return mean[:, None] + np.sqrt(scale / 2) * (jnp.sqrt(variance)[:, None] * own + low)

    found = map(one, keys, leaves, jax.tree.leaves(variances), jax.tree.leaves(deviations))
    return jax.tree.unflatten(structure, list(found))


def _at(tree: Any, place: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[place], tree)
