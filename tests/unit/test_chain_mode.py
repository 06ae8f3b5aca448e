"""Which chains are written out in one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.engine.chain_mode import group_size, num_convolutions, over_chains


@pytest.mark.parametrize(("number", "size"), [(1, 1), (4, 4), (5, 5), (6, 3), (7, 1), (8, 4), (10, 2), (16, 4)])
def test_up_to_five_are_written_out_at_once(number, size):
    """Five are the usual number of repeats; one after another they would take five times as long."""
    assert group_size(number) == size


@pytest.mark.parametrize(
    ("number", "convolutions", "size"), [(4, 62, 4), (5, 62, 5), (4, 254, 2), (10, 254, 2), (4, 900, 1)]
)
def test_deep_networks_are_written_out_in_smaller_groups(number, convolutions, size):
    assert group_size(number, convolutions) == size


def blurred(image, times):
    for _ in range(times):
        image = jax.lax.conv_general_dilated(image[None, None], jnp.full((1, 1, 3, 3), 0.1), (1, 1), "SAME")[0, 0]
    return {"sum": image.sum(), "image": image}


@pytest.mark.parametrize("times", [3, 120])
def test_groups_of_any_size_give_what_one_chain_after_another_gives(times):
    """120 convolutions, and as many backwards, leave room for two chains in a body."""
    images = jax.random.normal(jax.random.key(0), (4, 5, 5))
    shift = jnp.float32(0.5)

    def gradient(image, scale):
        return jax.value_and_grad(lambda x: jnp.sum(blurred(x, times)["image"] ** 2) * scale)(image + shift)

    traced = jax.make_jaxpr(gradient)(images[0], 1.0)
    assert num_convolutions(traced) >= 2 * times
    scales = jnp.arange(1.0, 5.0)
    expected = [gradient(image, scale) for image, scale in zip(images, scales, strict=True)]
    value, slope = jax.jit(lambda *given: over_chains("unroll", gradient, *given))(images, scales)
    np.testing.assert_allclose(value, [each[0] for each in expected], rtol=1e-5)
    np.testing.assert_allclose(slope, [each[1] for each in expected], rtol=1e-4, atol=1e-6)
