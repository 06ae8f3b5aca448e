"""SWAG: a Gaussian of low rank plus diagonal, fitted to the path of SGD, and networks drawn from it."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.engine import programs
from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.foundation.randomness import seed_key
from isotherm.potentials.networks import NetworkPotential
from isotherm.predictive.average import Draws
from isotherm.predictive.checks import check_draws, check_network
from isotherm.predictive.ensembles import Ensemble


@dataclasses.dataclass(frozen=True, eq=False)
class Swag:
    r"""Gaussians N(mean, (D + A A^T / (K - 1)) / 2), one for each path.

    mean is that of the path's networks, D the diagonal of their variances, and the columns of A the deviations of the last K of
    them from the running mean.

    Attributes:
        means: leaves (G, ...), one row for each Gaussian.
        variances: likewise.
        deviations: leaves (G, K, ...).
        model_state: of the last network of each path, (G, ...).

    Reference:
        Maddox et al. 2019, Algorithm 1 and equation (1); several paths are Wilson and Izmailov's MultiSWAG, and the cycles of one
        path are the thesis' cycSWAG.

    Differs from the thesis: it trains every drawn network for an epoch before it is evaluated, which `trained` does; `sample` alone
    refreshes the BatchNorm statistics only, as Maddox et al. do.
    """

    means: Any
    variances: Any
    deviations: Any
    model_state: Any

    @property
    def num_gaussians(self) -> int:
        """How many paths were fitted."""
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
        """`num` networks from every Gaussian, each counting the same.

        Args:
            num: of networks.
            seed: of all randomness.
            scale: of the variance.
            potential: whose BatchNorm statistics are refreshed for every network; None where there are none.
            num_refresh: batches of a refresh; None is one epoch.
        """
        check_integer("num", num, 1, "Give the number of networks per Gaussian.")
        check_real("scale", scale, "Give a factor on the variance.", minimum=0.0)
        if jax.tree.leaves(self.model_state) and potential is None:
            remedy = "Networks between those of the path need statistics of their own."
            refuse("potential", "given for networks with BatchNorm", "None", remedy)
        key = seed_key(seed)
        draws = _draw(key, self.means, self.variances, self.deviations, num, scale)
        if not jax.tree.leaves(self.model_state):
            return Ensemble(jax.tree.map(np.asarray, draws), (), self._zeros(num))
        assert potential is not None
        states = [
            [
                refresh_statistics(
                    potential, _at(draws, (gaussian, number)), _at(self.model_state, gaussian), num_refresh
                )
                for number in range(num)
            ]
            for gaussian in range(self.num_gaussians)
        ]
        rows = [jax.tree.map(lambda *leaves: np.stack(leaves), *row) for row in states]
        state = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)
        return Ensemble(jax.tree.map(np.asarray, draws), state, self._zeros(num))

    def _zeros(self, num: int) -> np.ndarray:
        return np.zeros((self.num_gaussians, num))


@checked_call(prefix="iso.predictive.")
def fit_swag(run: Draws, *, rank: int = 20, cycle_length: int | None = None) -> Swag:
    """The Gaussians of a run of SGD: one for each chain, and for each cycle of a chain.

    Take a run of `iso.swag` (or of `iso.msgd` with a constant or cyclical step size) with one draw an epoch and a burn-in.

    Args:
        run: draws of SGD; they may lie on a disk.
        rank: K, at most the draws of a path.
        cycle_length: iterations of a cycle, as given to `iso.swag`: the draws of each get a Gaussian of their own, which is
            cycSWAG. None is SWAG, with one Gaussian for each chain (several chains are MultiSWAG).
    """
    check_integer("rank", rank, 2, "Give the columns of the low-rank part.")
    check_draws("run", run)
    *lead, num_draws = np.shape(run.log_weights)
    cycles = np.zeros(num_draws, int)
    if cycle_length is not None:
        times = getattr(run, "iterations", None)
        if times is None:
            refuse("run", "one that knows the iterations of its draws", type(run).__name__, "Give a `Run`.")
        cycles = np.asarray(times) // check_integer("cycle_length", cycle_length, 1, "Give iterations.")
    stretches = [np.flatnonzero(cycles == cycle) for cycle in np.unique(cycles)]
    fewest = min(len(stretch) for stretch in stretches)
    if fewest < 2:
        got = f"{fewest} in one of {len(stretches)} cycles"
        refuse("run", "at least two draws for every Gaussian", got, "Lower `thinning` or `burn_in`.")
    paths = [(chain, stretch) for chain in np.ndindex(*lead) for stretch in stretches]
    # All Gaussians have one rank: they are stacked.
    fitted = [_fit(run, *path, min(rank, fewest)) for path in paths]
    together = [jax.tree.map(lambda *leaves: np.stack(leaves), *parts) for parts in zip(*fitted, strict=True)]
    return Swag(*together)


@checked_call(prefix="iso.predictive.")
def refresh_statistics(
    potential: NetworkPotential, weights: Any, model_state: Any, num_batches: int | None = None
) -> Any:
    """The model state after passes over `num_batches` batches in training mode at fixed weights; None is one epoch."""
    check_network(potential)
    assert potential.batch_size is not None
    number = num_batches or -(-potential.num_data // potential.batch_size)
    found = programs.call(_refresh, potential.on_device(), jnp.asarray(number), weights, model_state)
    return jax.tree.map(np.asarray, found)


def _refresh(potential: NetworkPotential, number: Array, weights: Any, model_state: Any) -> Any:
    def step(k, state):
        batch = potential.batch(jnp.zeros(2, jnp.uint32), k)
        return potential.evaluate(weights, batch, None, state).model_state

    return jax.lax.fori_loop(0, number, step, model_state)


def _fit(run: Draws, chain: tuple[int, ...], places: np.ndarray, rank: int) -> tuple[Any, Any, Any, Any]:
    """Moments and deviations of one path, read one draw at a time."""
    mean = square = None
    columns: list[Any] = []
    for count, place in enumerate(places.tolist(), start=1):
        draw = jax.tree.map(lambda leaf: np.asarray(leaf[(*chain, place)], np.float64), run.draws)  # noqa: B023
        if mean is None or square is None:
            mean, square = draw, jax.tree.map(np.square, draw)
        else:
            mean = jax.tree.map(lambda m, x: m + (x - m) / count, mean, draw)  # noqa: B023
            square = jax.tree.map(lambda m, x: m + (x**2 - m) / count, square, draw)  # noqa: B023
        columns = [*columns, jax.tree.map(np.subtract, draw, mean)][-rank:]
    variance = jax.tree.map(lambda s, m: np.maximum(s - m**2, 1e-30), square, mean)
    state = jax.tree.map(lambda leaf: np.asarray(leaf[(*chain, int(places[-1]))]), run.model_state)
    single = lambda tree: jax.tree.map(lambda leaf: leaf.astype(np.float32), tree)  # noqa: E731
    deviations = jax.tree.map(lambda *leaves: np.stack(leaves), *columns)
    return single(mean), single(variance), single(deviations), state


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
