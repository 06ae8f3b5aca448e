"""Potentials of a likelihood, a prior and data in mini-batches."""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_choice, check_integer, refuse, short
from isotherm.foundation.parts import Static, with_python_numbers
from isotherm.foundation.randomness import fold
from isotherm.foundation.user_functions import call_traced, check_function
from isotherm.potentials.batches import Batch, batch_indices
from isotherm.potentials.potential import Evaluation, Potential
from isotherm.potentials.sums import compensated

_RULE = "a function of (position, examples) that returns one value per example"
BATCHING = ("epochs", "independent", "replacement")
# Folded into a batch's key, so that augmentation and indices use different keys.
_AUGMENTED = 0x41554700


@dataclasses.dataclass(frozen=True, eq=False)
class LikelihoodPotential(Potential):
    r"""U(x) = -log prior(x) - (N/n) * sum over the batch of log likelihoods.

    n is the number of examples in the batch, which is smaller in a short last batch.

    Attributes:
        log_likelihood: maps (position, examples) to one value per example; with a model state, (position, examples,
            model_state) to (values, new model_state).
        log_prior: maps a position to a scalar; None is a flat prior.
        data: a pytree of arrays with a common leading axis of examples. Kept as stored (uint8 images stay uint8).
        batch_size: n; None takes all data in every iteration.
        batching: "epochs", "independent" or "replacement"; see `batches.batch_indices`.
        is_batch_shared: whether the chains of a run share batches. In swaps the noise of shared batches partly cancels.
        model_state: state of the model between passes, such as BatchNorm statistics; one per chain.
        augment: maps (key, examples) to examples of the same shapes, on the device, with keys of the run's seed.
        coupling_includes_prior: whether the energies that couplings read include the prior.
        num_used: N, the number of rows in use where the arrays have room to grow; None uses all rows.
        is_streamed: whether the data stay on the host and only batches are transferred: for data larger than the device's memory,
            such as memory-mapped arrays.

    Differs from the thesis: the thesis' printed (N/n) * U also scales the prior; the prior is never scaled here.
    """

    log_likelihood: Static[Callable[..., Any]]
    log_prior: Callable[[Any], Array] | None
    data: Any
    batch_size: Static[int | None] = None
    batching: Static[str] = "epochs"
    is_batch_shared: Static[bool] = True
    model_state: Any = None
    augment: Static[Callable[[Array, Any], Any] | None] = None
    coupling_includes_prior: Static[bool] = True
    num_used: int | None = None
    is_streamed: Static[bool] = False

    # The argument that gives one value per example, and whether that value may depend on other examples.
    function_name: ClassVar[str] = "log_likelihood"
    may_mix_examples: ClassVar[bool] = False
    has_data = True

    def __post_init__(self):
        with_python_numbers(self)
        lengths = [leaf.shape[0] if np.ndim(leaf) else -1 for leaf in jax.tree.leaves(self.data)]
        if not lengths or -1 in lengths or len(set(lengths)) > 1:
            rule = "a pytree of arrays with one common leading axis"
            if any(isinstance(leaf, (bool, int, float)) for leaf in jax.tree.leaves(self.data)):
                refuse("data", rule, "lists of numbers", "Make arrays of them: `np.asarray(inputs, np.float32)`.")
            refuse("data", rule, f"leading axes {short(lengths)}", "Give every leaf one row per example.")
        kinds = [getattr(leaf.dtype, "kind", "") for leaf in jax.tree.leaves(self.data)]
        if set(kinds) & set("OSU"):
            refuse(
                "data", "numbers", "text or Python objects", "Encode categories as integers, and drop other columns."
            )
        if lengths[0] == 0:
            refuse("data", "at least one example", "0 examples", "Check what was loaded.")
        check_choice("batching", self.batching, BATCHING)
        if self.num_used is not None:
            check_integer("num_used", self.num_used, 1, "Give the number of rows in use.")
            if self.num_used > lengths[0]:
                refuse("num_used", f"at most the number of rows, {lengths[0]}", self.num_used, "Give larger arrays.")
        if self.batch_size is not None:
            remedy = f"There are {self.num_data} examples; give a batch size of at most that, or None for all."
            size = check_integer("batch_size", self.batch_size, 1, remedy)
            if size > self.num_data:
                refuse("batch_size", f"at most the number of examples, {self.num_data}", size, remedy)
        elif self.is_streamed or self.num_used is not None:
            refuse(
                "batch_size", "a number of examples", "None", "Streamed or growing data need a batch size, such as 128."
            )
        if self.augment is not None:
            self._check_augment(self.batch_size or lengths[0])

    def _check_augment(self, size: int) -> None:
        check_function("augment", self.augment, "lambda key, examples: examples", 2)
        rows = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype), self.data)
        rule = "a function of a key and a batch of examples"
        found = jax.tree.leaves(call_traced("augment", rule, jax.eval_shape, self.augment, jax.random.key(0), rows))
        number = len(jax.tree.leaves(rows))
        if len(found) != number:
            rule, got = "a function that returns as many arrays as it was given", f"{len(found)} for {number}"
            refuse("augment", rule, got, "Return the whole batch, with its labels: `return images, labels`.")
        shapes = [leaf.shape for leaf in found]
        if any(shape[:1] != (size,) for shape in shapes):
            rule = f"a function that returns one row for each of {size} examples"
            refuse("augment", rule, f"shapes {short(shapes)}", "Augmentation must keep the number of examples.")

    def short_repr(self, depth: int) -> str:
        batches = "all at once" if self.batch_size is None else f"batches of {self.batch_size}"
        rows = "streamed data" if self.data is None else f"{self.num_data} examples"
        return f"{type(self).__name__}({rows}, {batches})"

    @property
    def num_data(self) -> int:
        """N, the number of examples."""
        return jax.tree.leaves(self.data)[0].shape[0] if self.num_used is None else self.num_used

    @property
    def is_exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether every iteration uses all data."""
        return self.batch_size is None and self.augment is None

    def on_device(self) -> Potential:
        number = self.num_data if self.is_streamed else self.num_used
        number = None if number is None else jnp.asarray(number, jnp.int32)
        data = None if self.is_streamed else jax.tree.map(jnp.asarray, self.data)
        return self.replace_unchecked(data=data, num_used=number)

    def in_memory(self, max_bytes: int) -> Potential | None:
        if not self.is_streamed:
            return self
        size = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(self.data))
        return self.replace_unchecked(is_streamed=False) if size <= max_bytes else None

    def places(self, key: Array, iteration: Array) -> tuple[Array, Array]:
        """Rows and weights of the batch of an iteration."""
        assert self.batch_size is not None
        # `num_used` may change between runs of one program, the number of rows does not.
        num_data = self.num_data if self.num_used is None else jnp.asarray(self.num_used)
        return batch_indices(key, iteration, num_data, self.batch_size, self.batching)

    def batch(self, key: Array, iteration: Array) -> Batch:
        examples, num_data = self.data, jnp.asarray(self.num_data)
        if self.batch_size is None:
            weights = jnp.ones(len(jax.tree.leaves(examples)[0]))
        else:
            indices, weights = self.places(key, iteration)
            examples = jax.tree.map(lambda leaf: jnp.asarray(leaf)[indices], examples)
        return self.augmented(key, iteration, Batch(examples, weights, num_data))

    def augmented(self, key: Array, iteration: Array, batch: Batch) -> Batch:
        if self.augment is None:
            return batch
        own = jax.random.wrap_key_data(fold(fold(key, _AUGMENTED), iteration), impl="threefry2x32")
        return batch._replace(examples=self.augment(own, batch.examples))

    def as_batch(self, examples: Any) -> Batch:
        if examples is None:
            refuse("batch", "a pytree of examples", "None", "Pass the examples of this step.")
        if isinstance(examples, Batch):
            return examples
        examples = jax.tree.map(jnp.asarray, examples)
        return Batch(examples, jnp.ones(len(jax.tree.leaves(examples)[0])), jnp.asarray(self.num_data))

    def init_model_state(self) -> Any:
        return () if self.model_state is None else self.model_state

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        values, model_state = self._log_likelihoods(position, batch, noise, model_state)
        if getattr(values, "shape", None) != batch.weights.shape:
            rule = f"a function that returns one value per example, shape {batch.weights.shape}"
            got = f"shape {getattr(values, 'shape', None)}"
            refuse(self.function_name, rule, got, "Do not sum or average over the batch.")
        weights = batch.weights.astype(values.dtype)
        likelihood = jnp.sum(values * weights) * (batch.num_data.astype(values.dtype) / jnp.sum(weights))
        prior = self.prior_energy(position).astype(values.dtype)
        energy = prior - likelihood
        residuals = self._residuals(values, weights, batch.num_data) if self.has_residuals else None
        return Evaluation(energy, prior, model_state, residuals)

    @property
    def has_residuals(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        # One example has no variance; all examples have no noise except that of augmentation.
        return self.batch_size is not None and self.batch_size > 1

    def _residuals(self, values: Array, weights: Array, num_data: Array) -> Array:
        """Centered log likelihoods, scaled so that their squares sum to the variance of the batch's energy."""
        number, total = jnp.sum(weights), num_data.astype(values.dtype)
        is_replaced = self.batching == "replacement" or self.augment is not None
        share = 1.0 / number - (0.0 if is_replaced else 1.0 / total)
        # The variance is unknown if a short last batch has one example.
        unit = jnp.where(number > 1, share / (number - 1.0), jnp.nan)
        deviation = values - jnp.sum(values * weights) / number
        return lax.stop_gradient(total * jnp.sqrt(jnp.maximum(unit, 0.0) * weights) * deviation)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        """The energy on all data, summed over pieces of the batch size, so that memory does not grow with N.

        The last piece is padded with the first examples at weight zero, since BatchNorm must see real examples. With augmentation
        every example is used once, in a version that depends only on its piece. Batches estimate the mean over all versions; the
        difference is the noise of one version per example, and is the same for all batches until the next full pass.
        """
        data, num_data = jax.tree.map(jnp.asarray, self.data), jnp.asarray(self.num_data)
        state = self.init_model_state() if model_state is None else model_state
        size = self.batch_size or len(jax.tree.leaves(data)[0])

        def energy_of(piece):
            places = piece * size + jnp.arange(size)
            examples = jax.tree.map(lambda leaf: leaf[places % num_data], data)
            batch = Batch(examples, (places < num_data).astype(jnp.float32), num_data)
            return self.piece_energy(position, state, batch, piece)

        zero = jnp.zeros((), jax.eval_shape(energy_of, jnp.zeros((), jnp.int32)).dtype)
        add = lambda piece, sums: compensated(sums[0], sums[1], energy_of(piece))  # noqa: E731
        total, lost = lax.fori_loop(0, -(-num_data // size), add, (zero, zero))
        return self.prior_energy(position).astype(total.dtype) + (total + lost)

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        augmented = self.augmented(jnp.zeros(2, jnp.uint32), piece, batch)
        values = self._log_likelihoods(position, augmented, None, model_state)[0]
        return -jnp.sum(jnp.where(batch.weights > 0, values, 0.0))

    def prior_energy(self, position: Any) -> Array:
        if self.log_prior is None:
            return jnp.zeros(())
        value = jnp.asarray(call_traced("log_prior", "a function of a position", self.log_prior, position))
        if value.shape != ():
            remedy = "Sum over components and return a float."
            refuse("log_prior", "a function that returns one real scalar", f"{value.dtype}{list(value.shape)}", remedy)
        return -value

    def _log_likelihoods(self, position: Any, batch: Batch, noise: Any, model_state: Any) -> tuple[Array, Any]:
        """One value per example, and the next model state; without dropout if `noise` is None."""
        if self.model_state is not None:
            return self.log_likelihood(position, batch.examples, model_state)
        return call_traced("log_likelihood", _RULE, self.log_likelihood, position, batch.examples), model_state


@checked_call()
def from_likelihood(
    log_likelihood: Callable[..., Any],
    log_prior: Callable[[Any], Array] | None,
    data: Any,
    *,
    batch_size: int | None = None,
    batching: str = "epochs",
    is_batch_shared: bool = True,
    model_state: Any = None,
    augment: Callable[[Array, Any], Any] | None = None,
    coupling_includes_prior: bool = True,
    num_used: int | None = None,
    is_streamed: bool = False,
) -> LikelihoodPotential:
    """A potential from a log likelihood per example, a log prior and data; see `LikelihoodPotential`.

    Example:
        >>> data = jnp.array([1.0, 2.0, 3.0])
        >>> potential = from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, lambda m: -0.5 * m ** 2, data, batch_size=2)
        >>> float(potential.full_energy(jnp.array(2.0)))
        3.0
    """
    check_function("log_likelihood", log_likelihood, "lambda position, examples: ...")
    if log_prior is not None:
        check_function("log_prior", log_prior, "lambda position: ...")
    data = jax.tree.map(lambda leaf: leaf.to_numpy() if hasattr(leaf, "to_numpy") else leaf, data)
    return LikelihoodPotential(
        log_likelihood,
        log_prior,
        data,
        batch_size=batch_size,
        batching=batching,
        is_batch_shared=is_batch_shared,
        model_state=model_state,
        augment=augment,
        coupling_includes_prior=coupling_includes_prior,
        num_used=num_used,
        is_streamed=is_streamed,
    )
