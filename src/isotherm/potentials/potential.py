"""The protocol of a potential.

Convention, everywhere: the stochastic energy is U(x) = -log prior(x) - (N/n) * sum of log likelihoods over a mini-batch of
n out of N examples, and the density at temperature tau is exp(-U(x) / tau). The temperature is never inside U.
"""

import dataclasses
import math
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
from isotherm.foundation.parts import Part, of_inner
from isotherm.foundation.user_functions import call_traced


class Evaluation(NamedTuple):
    """The energy of one position on one batch.

    Attributes:
        energy: U(x), a scalar; kernels use its gradient.
        prior_energy: the part of U(x) from the prior; couplings may leave it out.
        model_state: the model state after this pass.
        residuals: the contribution of each example of a mini-batch to the energy noise: the covariance of the energies of two
            positions on a shared batch is about the sum of products of their residuals. None where noise has other sources.
    """

    energy: Array
    prior_energy: Array
    model_state: Any
    residuals: Array | None = None


class Potential(Part):
    """Base of all potentials, with the defaults of an exact energy without data.

    Subclasses are frozen dataclasses whose data are leaves, and so arguments of compiled programs.

    Attributes:
        is_exact: whether energies and gradients are free of noise.
        is_batch_shared: whether the chains of a run share batches.
        coupling_includes_prior: whether the energies that couplings read include the prior. The sampled energy always does. Replica
            exchange refuses False unless `ignores_prior` is set.
        has_residuals: whether evaluations on mini-batches have residuals; see `Evaluation`.
        is_streamed: whether data stay on the host and batches are transferred; then `places`, `data` and `num_data` exist.
        has_gradient_of_energy: whether the gradient noise is the gradient of the energy noise.
        is_network: whether positions are weights of a network.
        has_reference: whether `draw_reference` exists: the density exp(-prior_energy), normalized, can be drawn.
        mistaken_for: a function of the opposite sign that users may pass by mistake, and the call for it.
        has_data: whether the energy depends on data.
        space: the `transforms.constrain.Space` that maps positions of the sampler to constrained ones; None without constraints.
        init: the default start: a position, a function of a key that returns one, or None.
    """

    is_exact: bool = True
    is_batch_shared: bool = True
    coupling_includes_prior: bool = True
    has_residuals: bool = False
    is_streamed: bool = False
    has_gradient_of_energy: bool = True
    is_network: bool = False
    has_reference: bool = False
    mistaken_for: tuple[str, str] | None = None
    has_data: bool = False
    space: Any = None
    init: Any = None

    def check_temperature(self, temperature: float | None) -> None:
        """Refuse a temperature of the draws that does not fit the energy; None is a temperature that changes."""

    def on_device(self) -> "Potential":
        """The potential with its data on the device, or without data if they are streamed."""
        return self

    def in_memory(self, max_bytes: int) -> "Potential | None":
        """The potential without streaming; None if the data are larger than `max_bytes`."""
        return self

    def batch(self, key: Array, iteration: Array) -> Any:
        """The augmented mini-batch of an iteration, drawn with the two words `key`."""
        return ()

    def augmented(self, key: Array, iteration: Array, batch: Any) -> Any:
        """A batch of stored examples after augmentation with `key` at this iteration. `batch` includes it."""
        return batch

    def as_batch(self, examples: Any) -> Any:
        """A batch of the examples given, for loops by hand."""
        if examples is not None:
            refuse("batch", "None for a potential without data", type(examples).__name__, "Leave it out.")
        return ()

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        """Synthetic noise of one chain, with a leading axis of iterations."""
        return ()

    def init_model_state(self) -> Any:
        """The initial model state of every chain."""
        return ()

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        """The energy of `position` on `batch`."""
        raise TypeError(f"{type(self).__name__} must define `evaluate`.")

    def prior_energy(self, position: Any) -> Array:
        """The part of the energy from the prior."""
        return jnp.zeros(())

    def draw_reference(self, key: Any) -> Any:
        """A position with the density exp(-prior_energy), drawn with a key of JAX."""
        raise TypeError(f"{type(self).__name__} must define `draw_reference`.")

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        """The contribution of one piece of the data to `full_energy`. Examples of weight zero add nothing."""
        return jnp.zeros(())

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        """The energy on all data, without synthetic noise."""
        state = self.init_model_state() if model_state is None else model_state
        return self.evaluate(position, (), (), state).energy

    def diagnose(self, run: RunView) -> list[Check]:
        """Checks of a run on this potential."""
        return []


@dataclasses.dataclass(frozen=True, eq=False)
class WrappedPotential(Potential):
    """Base of potentials that change the energy of another one, with its data, batches and model state.

    Attributes:
        inner: the other potential.
    """

    inner: Potential

    is_exact = of_inner("is_exact")
    is_batch_shared = of_inner("is_batch_shared")
    coupling_includes_prior = of_inner("coupling_includes_prior")
    has_residuals = of_inner("has_residuals")
    is_streamed = of_inner("is_streamed")
    has_gradient_of_energy = of_inner("has_gradient_of_energy")
    has_data = of_inner("has_data")
    has_reference = of_inner("has_reference")
    draw_reference = of_inner("draw_reference")
    space = of_inner("space")
    init = of_inner("init")
    check_temperature = of_inner("check_temperature")
    batch = of_inner("batch")
    augmented = of_inner("augmented")
    as_batch = of_inner("as_batch")
    init_model_state = of_inner("init_model_state")
    piece_energy = of_inner("piece_energy")
    prior_energy = of_inner("prior_energy")
    diagnose = of_inner("diagnose")

    def on_device(self) -> Potential:
        return self.replace_unchecked(inner=self.inner.on_device())

    def in_memory(self, max_bytes: int) -> Potential | None:
        inner = self.inner.in_memory(max_bytes)
        return None if inner is None else self.replace_unchecked(inner=inner)


def innermost(potential: Any) -> Any:
    """A potential without its wrappers."""
    while isinstance(potential, WrappedPotential):
        potential = potential.inner
    return potential


class EnergyTrace(NamedTuple):
    """The dtype and argument shapes of a traced energy, a checksum of its operations and captured numbers, and its size."""

    dtype: str
    shapes: str
    fingerprint: int
    size: int  # Numbers that it computes, without drawing batches and noise.


def energy_trace(potential: Potential, one: Any) -> EnergyTrace:
    """Trace the energy at positions like `one`, without running it. Refuses an energy that is not a real scalar."""

    def inputs(position, potential):
        words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros((), jnp.int32)
        noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, zero[None], position))
        return potential.batch(words, zero), noise

    def energy(position, potential):
        return potential.evaluate(position, *inputs(position, potential), potential.init_model_state()).energy

    shapes = [leaf.shape for leaf in jax.tree.leaves(one)]
    where = f"It was called with a position of shapes {shapes}."
    rule = "a function that can be evaluated at the start"
    traced, value = call_traced("energy", rule, jax.make_jaxpr(energy, return_shape=True), one, potential, where=where)
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape != () or dtype is None or not jnp.issubdtype(dtype, jnp.floating):
        got = f"{dtype}{list(shape)}" if shape is not None else type(value).__name__
        refuse("energy", "a function that returns one real scalar", got, "Sum over components and return a float.")
    # Without addresses of functions, which differ between traces.
    fingerprint = zlib.crc32(re.sub(r"0x[0-9a-f]+", "", str(traced.jaxpr)).encode())
    for number in _numbers_in(traced):
        array = np.ascontiguousarray(number)
        fingerprint = zlib.crc32(f"{array.dtype}{array.shape}".encode(), fingerprint)
        fingerprint = zlib.crc32(array.view(np.uint8).data if array.size else b"", fingerprint)
    size = _size_of(traced) - _size_of(jax.make_jaxpr(inputs)(one, potential))
    return EnergyTrace(str(dtype), str(traced.in_avals), fingerprint, size)


def _size_of(traced: Any) -> int:
    """Numbers that a jaxpr computes, with nested ones."""
    total = 0
    for equation in getattr(traced, "jaxpr", traced).eqns:
        total += sum(math.prod(getattr(out.aval, "shape", ())) for out in equation.outvars)
        for parameter in jax.tree.leaves(tuple(equation.params.values()), is_leaf=lambda part: hasattr(part, "eqns")):
            if hasattr(parameter, "eqns"):
                total += _size_of(parameter)
    return total


def _numbers_in(traced: Any) -> Iterator[Any]:
    """Constants of a jaxpr, closed or open, and of nested ones, which its text leaves out."""
    for number in getattr(traced, "consts", ()):
        if not jnp.issubdtype(number.dtype, jax.dtypes.prng_key) and getattr(number, "is_fully_addressable", True):
            yield np.asarray(number)
    for equation in getattr(traced, "jaxpr", traced).eqns:
        for given in equation.invars:
            value = getattr(given, "val", 0.0)  # Literals have a value, variables do not.
            if np.ndim(value) > 0:
                yield np.asarray(value)
        for parameter in jax.tree.leaves(tuple(equation.params.values()), is_leaf=lambda part: hasattr(part, "eqns")):
            if hasattr(parameter, "eqns"):
                yield from _numbers_in(parameter)
