"""Whether the log likelihood of an example depends on the other examples of its batch, which makes mini-batch energies biased."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.engine import program_cache
from isotherm.foundation.errors import refuse
from isotherm.potentials.likelihood import LikelihoodPotential
from isotherm.potentials.potential import Potential, innermost

# Relative difference above which energies of a batch and of its examples one by one are not a matter of rounding.
_TOLERANCE = 1e-3
_NUM_EXAMPLES = 3


def check_examples(potential: Potential, on_device: Potential, position: Any) -> None:
    """Refuse a log likelihood that mixes the examples of a batch, such as one that subtracts the mean of the batch.

    Networks may do that (BatchNorm). The potential is given as users made it, and as programs take it. Mixing is looked for beside
    `position`, since starts of zeros hide what is multiplied by them.
    Errors raised here are left to the run itself, which says more.
    """
    inner = innermost(potential)
    if not isinstance(inner, LikelihoodPotential) or inner.batch_size is None or inner.may_mix_examples:
        return
    rows = jax.tree.map(lambda leaf: np.asarray(leaf[:_NUM_EXAMPLES]), inner.data)
    try:
        beside = jax.tree.map(_moved, position)
        together, *alone = np.asarray(program_cache.call(_energies, on_device, beside, rows), np.float64)
    except Exception:
        return
    if abs(together - np.mean(alone)) > _TOLERANCE * np.max(np.abs([together, *alone])):
        refuse(
            inner.function_name,
            "a function whose value for an example does not depend on the other examples of its batch",
            "one that mixes them",
            "Compute what is common to all examples, such as their mean, from all data beforehand.",
        )


def _moved(leaf: Any) -> np.ndarray:
    """Every number by about a tenth of itself, and of one, this way or that."""
    leaf = np.asarray(leaf)
    away = 0.1 * np.cos(np.arange(leaf.size)).reshape(leaf.shape)
    return (leaf + away * (1.0 + np.abs(leaf))).astype(leaf.dtype)


def _energies(potential: Potential, position: Any, rows: Any) -> jax.Array:
    """The energy of a batch of a few examples, then of batches of each one of them."""
    words, zero = jnp.zeros(2, jnp.uint32), jnp.zeros(1, jnp.int32)
    noise = jax.tree.map(lambda leaf: leaf[0], potential.draw(words, words, zero, position))

    def energy(examples):
        return potential.evaluate(position, potential.as_batch(examples), noise, potential.init_model_state()).energy

    number = len(jax.tree.leaves(rows)[0])
    return jnp.stack(
        [energy(rows), *(energy(jax.tree.map(lambda leaf, k=k: leaf[k : k + 1], rows)) for k in range(number))]
    )
