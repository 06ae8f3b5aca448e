"""Federated averaging Langevin dynamics: clients that move alone, and are averaged from time to time."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.errors import check_integer, check_real, check_type, refuse
from isotherm.foundation.parts import Static
from isotherm.kernels.kernel import Kernel, Move
from isotherm.kernels.sgld import PositionState

# Weights in float32 may be off by this much.
_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class FederatedLangevin(Kernel):
    r"""Langevin dynamics of C clients, which are averaged every K iterations.

        y_c <- x_c - epsilon * g_c / p_c + sqrt(2 * epsilon * tau) * z_c
        x_c <- sum_j p_j * y_j    if (k + 1) mod K = 0, else y_c

    Leaves of the position have a leading axis of clients. g_c is a gradient of U_c, the client's share of the energy
    U = sum_c U_c, and the noise z has the covariance

        E[z_c z_d] = rho^2 + (1 - rho^2) / p_c * [c = d]

    of rho * (noise that the clients share) + sqrt((1 - rho^2) / p_c) * (noise of the client). For every rho the average
    sum_c p_c z_c is standard normal, so for K = 1 the average is SGLD on U. With `participation` S the average is over S clients
    drawn at that iteration: independently with probabilities p_c, or uniformly without replacement where the p_c are equal.

    Attributes:
        weights: p_c, one per client, with sum 1.
        local_steps: K.
        shared_noise: rho.
        participation: S; None averages all clients.
        is_replaced: whether the S clients are drawn with replacement.

    Reference:
        Deng et al. 2021, "On convergence of federated averaging Langevin dynamics", arXiv 2112.05120; McMahan et al. 2017.
    """

    weights: tuple[float, ...]
    local_steps: Static[int] = 1
    shared_noise: float = 0.0
    participation: Static[int | None] = None
    is_replaced: Static[bool] = True

    moves_copies = True

    def __post_init__(self):
        check_type("weights", self.weights, tuple, "a tuple of numbers, one per client", "Pass `clients.weights`.")
        for weight in self.weights:
            check_real("weights", weight, "Give every client a positive share.", above=0.0)
        total = float(np.sum(self.weights))
        if abs(total - 1.0) > _TOLERANCE:
            refuse("weights", "shares with sum 1", f"a sum of {total:.6g}", "Divide them by their sum.")
        check_integer("local_steps", self.local_steps, 1, "Give the iterations between two averages.")
        check_real("shared_noise", self.shared_noise, "Give a correlation.", minimum=0.0, maximum=1.0)
        if self.participation is None:
            return
        check_integer("participation", self.participation, 1, "Give the clients in an average, or None for all.")
        if not self.is_replaced:
            self._check_without_replacement(self.participation)

    def _check_without_replacement(self, number: int) -> None:
        if number > len(self.weights):
            rule = f"at most the number of clients, {len(self.weights)}, without replacement"
            refuse("participation", rule, number, "Lower it, or pass `replacement=True`.")
        if not np.allclose(self.weights, 1.0 / len(self.weights), rtol=0.0, atol=_TOLERANCE):
            # Uniform draws weigh clients equally, and p_c * C / S has a random sum.
            rule = "True for clients of unequal weights, whose plain average over a uniform draw is biased"
            refuse("replacement", rule, "False", "Leave it out.")

    @property
    def needs_words(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.participation is not None

    def check(self, position: Any) -> None:
        lengths = {np.shape(leaf)[2:3] for leaf in jax.tree.leaves(position)}
        if lengths != {(len(self.weights),)}:
            rule = f"one position per client, a leading axis of {len(self.weights)} in every leaf"
            got = f"leading axes {sorted(length[0] if length else 0 for length in lengths)}"
            refuse("init", rule, got, "Pass `init=clients.start(position)`, with `clients` from `iso.from_clients`.")

    def init(self, position: Any) -> PositionState:
        return PositionState(position)

    def step(self, state: PositionState, gradient: Any, noise: Any, move: Move, curvature: Any = None) -> PositionState:
        weights = jnp.stack([jnp.asarray(weight, move.step_size.dtype) for weight in self.weights])
        spread = jnp.sqrt(2.0 * move.step_size * move.temperature)
        own = jnp.sqrt(1.0 - self.shared_noise**2)
        is_averaged = (move.iteration + 1) % self.local_steps == 0
        shares = self._shares(weights, move)

        def moved(x, g, xi):
            p, share = (one.reshape(-1, *(1,) * (x.ndim - 1)) for one in (weights, shares))
            # A root of the covariance of z: its eigenvector sqrt(p), the average, has standard normal noise at every rho.
            average = jnp.sum(jnp.sqrt(p) * xi, axis=0)
            z = own * xi / jnp.sqrt(p) + (1.0 - own) * average
            y = x + (spread * z - move.step_size * g / p).astype(x.dtype)
            together = jnp.sum(share * y, axis=0).astype(x.dtype)
            return jnp.where(is_averaged, together, y)

        return PositionState(jax.tree.map(moved, state.position, gradient, noise))

    def _shares(self, weights: Array, move: Move) -> Array:
        """The share of every client in an average."""
        if self.participation is None:
            return weights
        key = jax.random.wrap_key_data(move.words, impl="threefry2x32")
        number = len(self.weights)
        if self.is_replaced:
            chosen = jax.random.choice(key, number, (self.participation,), p=weights)
        else:
            chosen = jax.random.permutation(key, number)[: self.participation]
        return jnp.mean(jax.nn.one_hot(chosen, number, dtype=weights.dtype), axis=0)
