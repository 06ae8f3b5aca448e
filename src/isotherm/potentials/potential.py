"""What is sampled: the protocol of a potential.

Convention, everywhere: the stochastic energy is U(x) = -log prior(x) - (N/n) * sum of log likelihoods over a mini-batch of
n out of N examples, and the density at temperature tau is exp(-U(x) / tau). The temperature is never inside U.
"""

import dataclasses
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import Part
from isotherm.foundation.user_functions import call_traced


class Evaluation(NamedTuple):
    """The energy of one position on one batch.

    Attributes:
        energy: U(x), a scalar: what the gradient is taken of.
        prior_energy: the part of U(x) that belongs to the prior; couplings may leave it out.
        model_state: the model state after this pass.
        residuals: what each example of a mini-batch adds to the noise of the energy: the covariance of the energies of two
            positions on a common batch is about the sum of products of their residuals. None where noise has other sources.
    """

    energy: Array
    prior_energy: Array
    model_state: Any
    residuals: Array | None = None


class Potential(Part):
    """Base of all potentials; its defaults are those of an exact energy without data.

    Subclasses are frozen dataclasses whose data are leaves: compiled programs take them as arguments.

    Attributes:
        is_exact: whether energies and gradients carry no noise.
        is_batch_shared: whether the chains of a run see the same batch.
        coupling_includes_prior: whether the energies that couplings read hold the prior. What is sampled always does; replica
            exchange refuses to read less than its rungs temper, unless it is told to (`ignores_prior`).
        has_residuals: whether evaluations on mini-batches say what each example adds to the noise; see `Evaluation`.
        is_streamed: whether data stay on the host and batches travel; then there are `places`, `data` and `num_data`.
        has_gradient_of_energy: whether the gradient of an evaluation is that of its energy, noise and all.
        is_network: whether positions are weights of a network.
        mistaken_for: a function of the other sign that users may have passed instead, and the call for it.
    """

    is_exact: bool = True
    is_batch_shared: bool = True
    coupling_includes_prior: bool = True
    has_residuals: bool = False
    is_streamed: bool = False
    has_gradient_of_energy: bool = True
    is_network: bool = False
    mistaken_for: tuple[str, str] | None = None

    @property
    def has_data(self) -> bool:
        """Whether there are data, seen through batches or all at once."""
        return False

    @property
    def space(self) -> Any:
        """What maps positions of the sampler to those that users mean, a `transforms.space.Space`; None if they are the same."""
        return None

    def check_temperature(self, temperature: float | None) -> None:
        """Refuse a temperature of the draws that the energy was not made for; None is one that changes."""

    @property
    def init(self) -> Any:
        """Where chains start if nobody says: a position, a function of a key that draws one, or None if nothing is known."""
        return None

    def on_device(self) -> "Potential":
        """The potential as compiled programs take it: data as arrays on the device, or nothing of them where they stream."""
        return self

    def in_memory(self, max_bytes: int) -> "Potential | None":
        """The same potential with data that do not stream; None where these are larger."""
        return self

    def batch(self, key: Array, iteration: Array) -> Any:
        """The mini-batch of an iteration, drawn with the two words `key`."""
        return ()

    def augmented(self, key: Array, iteration: Array, batch: Any) -> Any:
        """A batch of examples as stored, after random changes drawn with `key` at this iteration. `batch` does this itself."""
        return batch

    def as_batch(self, examples: Any) -> Any:
        """A batch from examples that the caller chose, for loops written by hand."""
        if examples is not None:
            refuse("batch", "None for a potential without data", type(examples).__name__, "Leave it out.")
        return ()

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        """Synthetic noise of one chain for many iterations at once, with a leading axis of iterations."""
        return ()

    def init_model_state(self) -> Any:
        """The model state that every chain starts from."""
        return ()

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        """The energy of `position` on `batch`."""
        raise TypeError(f"{type(self).__name__} must define `evaluate`.")

    def prior_energy(self, position: Any) -> Array:
        """The part of the energy that belongs to the prior; needs no data."""
        return jnp.zeros(())

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        """What the examples of one piece of the data add to `full_energy`; examples of weight zero add nothing."""
        return jnp.zeros(())

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        """The energy on all data, without synthetic noise."""
        state = self.init_model_state() if model_state is None else model_state
        return self.evaluate(position, (), (), state).energy

    def diagnose(self, run: RunView) -> list[Check]:
        """What is wrong with a run on this potential. Make findings with `Check`."""
        return []


@dataclasses.dataclass(frozen=True, eq=False)
class WrappedPotential(Potential):
    """Base of potentials that change another one's energy and leave its data, batches and model state alone.

    Attributes:
        inner: the other potential.
    """

    inner: Potential

    @property
    def is_exact(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_exact

    @property
    def is_batch_shared(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_batch_shared

    @property
    def coupling_includes_prior(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.coupling_includes_prior

    @property
    def has_residuals(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.has_residuals

    @property
    def is_streamed(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.is_streamed

    @property
    def has_gradient_of_energy(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.inner.has_gradient_of_energy

    @property
    def has_data(self) -> bool:
        return self.inner.has_data

    @property
    def space(self) -> Any:
        return self.inner.space

    def check_temperature(self, temperature: float | None) -> None:
        self.inner.check_temperature(temperature)

    @property
    def init(self) -> Any:
        return self.inner.init

    def on_device(self) -> Potential:
        return self.replace_unchecked(inner=self.inner.on_device())

    def in_memory(self, max_bytes: int) -> Potential | None:
        inner = self.inner.in_memory(max_bytes)
        return None if inner is None else self.replace_unchecked(inner=inner)

    def batch(self, key: Array, iteration: Array) -> Any:
        return self.inner.batch(key, iteration)

    def augmented(self, key: Array, iteration: Array, batch: Any) -> Any:
        return self.inner.augmented(key, iteration, batch)

    def as_batch(self, examples: Any) -> Any:
        return self.inner.as_batch(examples)

    def init_model_state(self) -> Any:
        return self.inner.init_model_state()

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        return self.inner.piece_energy(position, model_state, batch, piece)

    def prior_energy(self, position: Any) -> Array:
        return self.inner.prior_energy(position)

    def diagnose(self, run: RunView) -> list[Check]:
        return self.inner.diagnose(run)


def innermost(potential: Any) -> Any:
    """A potential without what is wrapped around it."""
    while isinstance(potential, WrappedPotential):
        potential = potential.inner
    return potential


class EnergyTrace(NamedTuple):
    """What an energy does, as JAX traces it.

    Attributes:
        dtype: of its values.
        shapes: of what it was traced with.
        fingerprint: of the operations, and of all numbers that the energy reads beside its arguments.
    """

    dtype: str
    shapes: str
    fingerprint: int


def energy_trace(potential: Potential, one: Any) -> EnergyTrace:
    """The energy at positions like `one`. Refuses what is no real scalar. Traces, runs nothing."""

    def energy(position, potential):
        words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, zero[None], position))
        batch = potential.batch(words, zero)
        return potential.evaluate(position, batch, noise, potential.init_model_state()).energy

    shapes = [leaf.shape for leaf in jax.tree.leaves(one)]
    where = f"It was called with a position of shapes {shapes}."
    rule = "a function that runs at the start"
    traced, value = call_traced("energy", rule, jax.make_jaxpr(energy, return_shape=True), one, potential, where=where)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape != () or dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        got = f"{dtype}{list(shape)}" if shape is not None else type(value).__name__
        refuse("energy", "a function that returns one real scalar", got, "Sum over components and return a float.")
    # The text names some functions by their addresses, which are other ones in every trace.
    fingerprint = zlib.crc32(re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr)).encode())
    for number in _numbers_in(traced):
        array = np.ascontiguousarray(number)
        fingerprint = zlib.crc32(f"{array.dtype}{array.shape}".encode(), fingerprint)
        fingerprint = zlib.crc32(array.view(np.uint8).data if array.size else b"", fingerprint)
    return EnergyTrace(str(dtype), str(traced.in_avals), fingerprint)


def _numbers_in(traced: Any) -> Iterator[Any]:
    """Constants of a jaxpr, closed or open, and of those inside it, which its text leaves out."""
    for number in getattr(traced, "consts", ()):
        if not jnp.issubdtype(number.dtype, jax.dtypes.prng_key) and getattr(number, "is_fully_addressable", True):
            yield np.asarray(number)
    for equation in getattr(traced, "jaxpr", traced).eqns:
        for given in equation.invars:
            # A literal has a value, a variable has none.
            if np.ndim(getattr(given, "val", 0.0)) > 0:
                yield np.asarray(given.val)  # pyright: ignore[reportAttributeAccessIssue]
        for parameter in jax.tree.leaves(tuple(equation.params.values()), is_leaf=lambda part: hasattr(part, "eqns")):
            if hasattr(parameter, "eqns"):
                yield from _numbers_in(parameter)
