"""A sampler as a gradient transformation of optax, for training loops of one's own."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from isotherm.coupling import Independent
from isotherm.engine.random_inputs import open_streams
from isotherm.estimators.plain import Plain
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import as_arguments, number_dtype
from isotherm.foundation.randomness import normals_like, seed_words
from isotherm.foundation.schedules import as_schedule
from isotherm.kernels.kernel import Move
from isotherm.samplers.sampler import AnySampler, Sampler, Specification


class OptaxState(NamedTuple):
    """What a sampler carries in a loop of optax.

    Attributes:
        kernel: the state of the chain, such as its momentum; its position is replaced by `params` in every update.
        key: two words, the same in every update: noise is a function of them and of the iteration.
        iteration: how many updates were made.
    """

    kernel: Any
    key: Array
    iteration: Array


def as_optax(sampler: AnySampler, seed: Any = 0) -> optax.GradientTransformation:
    """A gradient transformation that makes the moves of a sampler, for one chain.

    Units: `update` takes the gradient of the energy U = -log prior - (N/n) * sum of log likelihoods. For a loss that is a mean over
    the batch, multiply its gradient by the number N of training examples and add that of minus the log prior; or keep the
    gradient of the mean with `step_size` times N and `temperature` over N, which makes the same moves of SGLD and SGHMC.

    The moves are those of `Sampler.step` on the same gradients, with the same seed.

    Args:
        sampler: one of independent chains: `sgd`, `msgd`, `sgld`, `psgld`, `sghmc`, `cycsgld`, `cycsghmc` or `swag`, with any
            schedules, in a box or not.
        seed: of the noise: an integer, or a key of `jax.random.key`. Give every chain its own.

    Returns:
        `init(params)` and `update(gradient, state, params)`; `params` must be given.

    Example:
        >>> import isotherm as iso, jax, optax
        >>> transformation = iso.as_optax(iso.sgld(step_size=0.1))
        >>> params = jnp.ones(2)
        >>> state = transformation.init(params)
        >>> updates, state = transformation.update(jax.grad(lambda x: x @ x / 2)(params), state, params)
        >>> optax.apply_updates(params, updates).shape
        (2,)
    """
    sampler = _checked(sampler)
    words = seed_words(seed)
    key = np.asarray(open_streams(words, np.zeros((), np.int32), 1).kernel)[0]

    def init(params: Any) -> OptaxState:
        return OptaxState(sampler.kernel.init(params), jnp.asarray(key), jnp.zeros((), jnp.int32))

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        if params is None:
            refuse("params", "given to `update`", "None", "Call update(gradient, state, params).")
        dtype = number_dtype(params)
        own = as_arguments(sampler, dtype)
        kernel, schedules = own.kernel, (own.step_size, own.temperature)
        step_size, temperature = (as_schedule(each)(state.iteration) for each in schedules)
        one = jnp.ones((), dtype)
        move = Move(jnp.asarray(step_size, dtype), jnp.asarray(temperature, dtype), one, one, state.iteration)
        noise = None
        if kernel.needs_noise:
            drawn = normals_like(state.key, state.iteration[None], params)
            noise = jax.tree.map(lambda leaf: leaf[0], drawn)
        moved = kernel.step(_at(state.kernel, params), updates, noise, move, None)
        return jax.tree.map(jnp.subtract, moved.position, params), OptaxState(moved, state.key, state.iteration + 1)

    return optax.GradientTransformation(init, update)


def _checked(sampler: Any) -> Sampler:
    if isinstance(sampler, Specification):
        sampler.refuse()
    if not isinstance(sampler, Sampler):
        refuse("sampler", "a sampler", repr(sampler), "Pass iso.sgld(step_size), say.")
    remedy = "Use `iso.sample`, or a loop by hand with `sampler.init` and `sampler.step`, which see all chains and their energies."
    kernel = sampler.kernel
    if not isinstance(sampler.coupling, Independent) or kernel.is_joint:
        refuse("sampler", "one of independent chains, such as `iso.sgld`", repr(sampler), remedy)
    if not isinstance(sampler.estimator, Plain) or kernel.needs_curvature:
        refuse("sampler", "one that needs nothing but a gradient, such as `iso.sgld`", repr(sampler), remedy)
    return sampler


def _at(state: Any, position: Any) -> Any:
    """The state of a kernel, or of one in a box, at another position."""
    if "inner" in state._fields:
        return state._replace(inner=_at(state.inner, position))
    return state._replace(position=position)
