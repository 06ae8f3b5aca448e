"""Wide residual networks have the published numbers of weights, give logits, and carry statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from isotherm.networks import num_parameters
from isotherm_thesis.models import wide_resnet

# 36.5 and 11.0 million, as published.
PUBLISHED = {
    "WRN-28-10": (28, 10, 10, 36_479_194),
    "WRN-28-10, 100 classes": (28, 10, 100, 36_536_884),
    "WRN-16-8": (16, 8, 10, 10_961_370),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_numbers_of_weights(name):
    *arguments, number = PUBLISHED[name]
    # Abstract weights: counts without memory.
    assert num_parameters(nnx.eval_shape(lambda: wide_resnet(*arguments, rngs=nnx.Rngs(0)))) == number


def test_wide_networks_give_logits_and_keep_statistics():
    module = wide_resnet(10, 1, 10, rngs=nnx.Rngs(0))
    before = jax.tree.map(jnp.copy, nnx.state(module, nnx.BatchStat))
    outputs = module(jax.random.normal(jax.random.key(1), (4, 32, 32, 3)))
    assert outputs.shape == (4, 10)
    assert np.all(np.isfinite(outputs))
    after = nnx.state(module, nnx.BatchStat)
    moved = [not np.allclose(a, b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)]
    assert all(moved)


def test_wrong_depths_are_refused():
    with pytest.raises(ValueError, match="`depth` must be 6 n"):
        wide_resnet(20, 2, 10, rngs=nnx.Rngs(0))
