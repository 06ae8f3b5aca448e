"""Filter response normalization does what its formula says, image by image."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from isotherm.networks import num_parameters, resnet
from isotherm_thesis.models import FilterResponseNorm, frn_resnet

_NOISE = np.random.default_rng(0).normal(size=(3, 5, 7, 4))
IMAGES = jnp.asarray(_NOISE * np.array([0.1, 1.0, 10.0, 1e3]) + 2.0, jnp.float32)


def test_channels_of_every_image_have_a_mean_square_of_one():
    found = FilterResponseNorm(4, rngs=nnx.Rngs(0))(IMAGES)
    np.testing.assert_allclose(jnp.mean(found**2, axis=(1, 2)), np.ones((3, 4)), rtol=1e-4)
    # Nothing is subtracted: what had a mean keeps it.
    assert float(jnp.abs(jnp.mean(found[..., 0], axis=(1, 2))).min()) > 0.9


def test_scale_and_shift():
    norm = FilterResponseNorm(4, rngs=nnx.Rngs(0))
    plain = norm(IMAGES)
    norm.scale.set_value(jnp.array([1.0, 2.0, 3.0, 4.0]))
    norm.bias.set_value(jnp.array([0.0, 1.0, 0.0, -1.0]))
    expected = plain * norm.scale.get_value() + norm.bias.get_value()
    np.testing.assert_allclose(norm(IMAGES), expected, rtol=1e-6)


def test_a_black_image_stays_finite():
    assert np.all(FilterResponseNorm(4, rngs=nnx.Rngs(0))(jnp.zeros((1, 5, 7, 4))) == 0)


def test_the_network_sees_every_image_alone_and_keeps_no_statistics():
    network = frn_resnet(8, 10, rngs=nnx.Rngs(0))
    images = jax.random.normal(jax.random.key(1), (4, 16, 16, 3))
    together = network(images)
    np.testing.assert_allclose(together[:2], network(images[:2]), rtol=2e-4, atol=1e-4)
    assert together.shape == (4, 10)
    assert not jax.tree.leaves(nnx.state(network, nnx.BatchStat))


def test_it_has_the_weights_of_the_usual_network():
    assert num_parameters(frn_resnet(20, 10, rngs=nnx.Rngs(0))) == num_parameters(resnet(20, 10, rngs=nnx.Rngs(0)))


def test_other_depths_are_refused():
    with pytest.raises(ValueError, match="`depth` must be 6 n \\+ 2"):
        frn_resnet(18, 10, rngs=nnx.Rngs(0))
