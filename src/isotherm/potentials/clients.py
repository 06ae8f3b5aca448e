"""Potentials of clients that hold data of their own, for federated samplers."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, refuse, short
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.randomness import fold
from isotherm.foundation.user_functions import check_function
from isotherm.potentials.batches import Batch
from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.potentials.potential import Evaluation, Potential


@dataclasses.dataclass(frozen=True, eq=False)
class ClientAverage(Part):
    """sum_c p_c x_c: the average over the leading axis of clients, a position like that of one client. Pass it as `collect`."""

    weights: tuple[float, ...]

    def __call__(self, position: Any) -> Any:
        def averaged(leaf):
            return jnp.tensordot(jnp.asarray(self.weights, leaf.dtype), leaf, axes=1)

        return jax.tree.map(averaged, position)


@dataclasses.dataclass(frozen=True, eq=False)
class ClientsPotential(Potential):
    r"""The sum of the energies of C clients, each at a position of its own and on its own data.

        U(x_1, ..., x_C) = sum_c U_c(x_c),        U_c(x) = -p_c * log prior(x) - (N_c/n) * sum over its batch of log likelihoods

    Where all x_c are x this is the energy of x on all data. The N_c rows of client c are seen at x_c alone; every client draws
    batches of n from them with a key of its own.

    Attributes:
        inner: the potential of one client, without data.
        data: rows of the clients, leaves (C, rows, ...), where rows beyond N_c repeat the first ones.
        num_rows: N_c, shape (C,).
        average: the map to the average, also what to pass as `collect`.
    """

    inner: LikelihoodPotential
    data: Any
    num_rows: Any
    average: Static[ClientAverage]

    has_data = True

    def short_repr(self, depth: int) -> str:
        batches = "all at once" if self.batch_size is None else f"batches of {self.batch_size}"
        return f"{type(self).__name__}({len(self.weights)} clients, {self.num_data} examples, {batches})"

    @property
    def weights(self) -> tuple[float, ...]:
        """p_c, for `iso.fald`."""
        return self.average.weights

    @property
    def num_data(self) -> int:
        """N, the number of rows of all clients."""
        return int(np.sum(self.num_rows))

    @property
    def batch_size(self) -> int | None:
        """n, the number of rows in the batch of every client."""
        return self.inner.batch_size

    @property
    def is_exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.batch_size is None

    @property
    def is_batch_shared(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_batch_shared

    def start(self, position: Any) -> Any:
        """The position at which every client is at `position`, for `init`."""
        number = len(self.weights)
        return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], number, axis=0), position)

    def on_device(self) -> Potential:
        return self.replace_unchecked(
            data=jax.tree.map(jnp.asarray, self.data), num_rows=jnp.asarray(self.num_rows, jnp.int32)
        )

    def batch(self, key: Array, iteration: Array) -> Batch:
        if self.batch_size is None:
            return self.as_batch(self.data)

        def of_client(client, rows, number):
            return self._client(rows, number).batch(fold(key, client), iteration)

        return jax.vmap(of_client)(jnp.arange(len(self.weights)), self.data, jnp.asarray(self.num_rows))

    def as_batch(self, examples: Any) -> Batch:
        if examples is None:
            refuse("batch", "a pytree of examples", "None", "Pass examples with a leading axis of clients.")
        if isinstance(examples, Batch):
            return examples
        examples, number = jax.tree.map(jnp.asarray, examples), jnp.asarray(self.num_rows)
        # Rows beyond N_c pad the data of a client.
        is_used = jnp.arange(jax.tree.leaves(examples)[0].shape[1]) < number[:, None]
        return Batch(examples, is_used.astype(jnp.float32), number)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        def of_client(x, own, weight):
            found = self.inner.evaluate(x, own, (), None)
            return found.energy - (1.0 - weight) * found.prior_energy, weight * found.prior_energy

        energies, priors = jax.vmap(of_client)(self._checked(position), batch, self._shares(position))
        return Evaluation(jnp.sum(energies), jnp.sum(priors), model_state)

    def prior_energy(self, position: Any) -> Array:
        priors = jax.vmap(self.inner.prior_energy)(self._checked(position))
        return jnp.sum(self._shares(position) * priors)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        def of_client(x, rows, number, weight):
            energy = self._client(rows, number).full_energy(x)
            return energy - (1.0 - weight) * self.inner.prior_energy(x)

        rows = jax.tree.map(jnp.asarray, self.data), jnp.asarray(self.num_rows)
        return jnp.sum(jax.vmap(of_client)(self._checked(position), *rows, self._shares(position)))

    def _client(self, rows: Any, number: Any) -> LikelihoodPotential:
        return self.inner.replace_unchecked(data=rows, num_used=number)

    def _shares(self, position: Any) -> Array:
        return jnp.asarray(self.weights, jnp.result_type(*jax.tree.leaves(position)))

    def _checked(self, position: Any) -> Any:
        number = len(self.weights)
        if any(np.shape(leaf)[:1] != (number,) for leaf in jax.tree.leaves(position)):
            shapes = [np.shape(leaf) for leaf in jax.tree.leaves(position)]
            rule = f"one position per client, a leading axis of {number} in every leaf"
            refuse("init", rule, f"shapes {short(shapes)}", "Pass `init=clients.start(position)`.")
        return position


@checked_call()
def from_clients(
    log_likelihood: Callable[..., Any],
    log_prior: Callable[[Any], Array] | None,
    data: Sequence[Any],
    *,
    weights: Sequence[float] | None = None,
    batch_size: int | None = None,
    batching: str = "epochs",
    is_batch_shared: bool = True,
) -> ClientsPotential:
    """A potential of clients with data of their own, for `iso.fald`; see `ClientsPotential`.

    Args:
        log_likelihood: maps (position, examples) to one value per example, as in `iso.from_likelihood`.
        log_prior: maps a position to a scalar; None is a flat prior.
        data: for each client a pytree of arrays with a common leading axis of examples. Clients may have unequal numbers of them.
        weights: p_c, which also split the prior between clients; None takes N_c/N, the client's share of all rows.
        batch_size: n, rows in a batch of every client, at most those of the smallest; None takes all rows in every iteration.
        batching: "epochs", "independent" or "replacement", within each client's rows.
        is_batch_shared: whether the chains of a run share batches.

    Example:
        >>> rows = [jnp.array([1.0, 2.0]), jnp.array([6.0])]
        >>> clients = from_clients(lambda m, y: -0.5 * (y - m) ** 2, lambda m: -0.5 * m ** 2, rows)
        >>> clients.weights, float(clients.full_energy(clients.start(2.0)))
        ((0.6666666666666666, 0.3333333333333333), 10.5)
    """
    check_function("log_likelihood", log_likelihood, "lambda position, examples: ...")
    if log_prior is not None:
        check_function("log_prior", log_prior, "lambda position: ...")
    if not isinstance(data, (list, tuple)) or not data:
        got = f"a {type(data).__name__}" if data is None or len(data) else "none"
        refuse("data", "a list with the data of each client", got, "Write `[data_1, data_2]`.")
    # Each client's data are checked as those of a potential of its own.
    alone = [
        LikelihoodPotential(log_likelihood, log_prior, _on_host(rows), batch_size=batch_size, batching=batching)
        for rows in data
    ]
    if len({str(_kinds(one.data)) for one in alone}) > 1:
        remedy = "Give every client the same arrays, with as many columns."
        refuse("data", "alike for all clients, except for the number of rows", "unlike shapes or types", remedy)
    numbers = np.array([one.num_data for one in alone], np.int32)
    longest = numbers.max()
    # A row beyond a client's own repeats one of its rows: every value of the likelihood stays finite.
    padded = [jax.tree.map(lambda leaf, n=one.num_data: leaf[np.arange(longest) % n], one.data) for one in alone]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
    average = ClientAverage(_weights_of(weights, numbers))
    inner = alone[0].replace_unchecked(data=None, is_batch_shared=is_batch_shared)
    return ClientsPotential(inner, stacked, numbers, average)


def _weights_of(weights: Sequence[float] | None, numbers: np.ndarray) -> tuple[float, ...]:
    if weights is None:
        return tuple(float(number / numbers.sum()) for number in numbers)
    given = tuple(check_real("weights", weight, "Give every client a positive share.", above=0.0) for weight in weights)
    if len(given) != len(numbers):
        refuse("weights", f"one per client, {len(numbers)} numbers", len(given), "Leave it out for shares of rows.")
    return tuple(weight / sum(given) for weight in given)


def _on_host(rows: Any) -> Any:
    rows = jax.tree.map(lambda leaf: leaf.to_numpy() if hasattr(leaf, "to_numpy") else leaf, rows)
    return jax.tree.map(lambda leaf: np.asarray(leaf) if hasattr(leaf, "shape") else leaf, rows)


def _kinds(rows: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape[1:], str(leaf.dtype)), rows)
