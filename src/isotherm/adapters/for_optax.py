"""A sampler as a gradient transformation of Optax, for your own training loop."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from isotherm.coupling import Independent
from isotherm.engine.random_inputs import open_streams
from isotherm.estimators import Plain
from isotherm.foundation.errors import refuse
from isotherm.foundation.parts import as_arguments, number_dtype
from isotherm.foundation.randomness import normals_like, seed_words
from isotherm.foundation.schedules import as_schedule
from isotherm.kernels import Move
from isotherm.samplers.sampler import AnySampler, Sampler, Specification, check_sampler


class OptaxState(NamedTuple):
    """The state of a sampler in a loop of Optax.

    Attributes:
        kernel: the state of the chain, such as its momentum; `params` replace its position in every update.
        key: two words, the same in every update: noise is a function of them and of the iteration.
        iteration: the number of updates so far.
    """

    kernel: Any
    key: Array
    iteration: Array


def as_optax(sampler: AnySampler, seed: Any = 0) -> optax.GradientTransformation:
    """A gradient transformation that makes the moves of a sampler, for one chain.

    Units: `update` takes the gradient of the energy U = -log prior - (N/n) * sum of log likelihoods. For a loss that is a mean over
    the batch, multiply its gradient by the number N of training examples and add the gradient of minus the log prior; or keep the
    gradient of the mean, multiply `step_size` by N and divide `temperature` by N, for the same moves of SGLD and SGHMC.

    With the same seed and gradients, the moves are those of `Sampler.step`.

    Args:
        sampler: one of independent chains: `sgd`, `msgd`, `sgld`, `psgld`, `sghmc`, `cycsgld`, `cycsghmc` or `swag`, with any
            schedules and with or without a box.
        seed: of the noise, an integer or a key of `jax.random.key`; a different one for every chain.

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
        own, one = as_arguments(sampler, dtype), jnp.ones((), dtype)
        kernel, schedules = own.kernel, (own.step_size, own.temperature)
        step_size, temperature = (jnp.asarray(as_schedule(each)(state.iteration), dtype) for each in schedules)
        move = Move(step_size, temperature, one, one, state.iteration)
        drawn = normals_like(state.key, state.iteration[None], params) if kernel.needs_noise else None
        noise = jax.tree.map(lambda leaf: leaf[0], drawn)
        moved = kernel.step(_at(state.kernel, params), updates, noise, move, None)
        return jax.tree.map(jnp.subtract, moved.position, params), OptaxState(moved, state.key, state.iteration + 1)

    return optax.GradientTransformation(init, update)


def _checked(sampler: Any) -> Sampler:
    sampler = check_sampler(sampler)
    remedy = "Use `iso.sample`, or `sampler.init` and `sampler.step`, which have all chains and their energies."
    kernel = sampler.kernel
    # Pilots find couplings.
    if isinstance(sampler, Specification) or not isinstance(sampler.coupling, Independent) or kernel.is_joint:
        refuse("sampler", "one of independent chains, such as `iso.sgld`", repr(sampler), remedy)
    if not isinstance(sampler.estimator, Plain) or kernel.needs_curvature or kernel.is_adjusted or kernel.moves_copies:
        refuse("sampler", "one that needs only gradients, such as `iso.sgld`", repr(sampler), remedy)
    return sampler


def _at(state: Any, position: Any) -> Any:
    """The state of a kernel, or of one in a box, at another position."""
    if "inner" in state._fields:
        return state._replace(inner=_at(state.inner, position))
    return state._replace(position=position)
