"""Which chains are written out in one program."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
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


@pytest.mark.parametrize("given", [{"num_chains": 7}, {"num_chains": 2, "num_runs": 5}, {"num_chains": 3}])
def test_chains_in_groups_are_those_computed_at_once(given):
    sampler, start = iso.sgld(0.1), lambda key: jax.random.normal(key, (40,))
    settings: dict[str, Any] = {"num_steps": 50, "init": start, "progress": False, **given}
    whole, groups = (
        iso.sample(lambda x: jnp.sum(jnp.cosh(x)), sampler, chains_at_once=number, **settings) for number in (None, 3)
    )
    np.testing.assert_allclose(groups.draws, whole.draws, rtol=2e-5, atol=2e-5)


def test_groups_need_less_memory():
    def bytes_at_once(mode):
        function = lambda x: jnp.sum(jnp.linalg.inv(jnp.outer(x, x) + jnp.eye(100)))  # noqa: E731
        run = jax.jit(lambda xs: over_chains(mode, jax.grad(function), xs))
        found: Any = run.lower(jnp.ones((16, 100))).compile().memory_analysis()
        return found.temp_size_in_bytes

    assert bytes_at_once("vmap:2") < 0.3 * bytes_at_once("vmap")


def test_wrong_groups_are_refused():
    settings: dict[str, Any] = {"num_steps": 5, "init": jnp.zeros(2)}
    with pytest.raises(ValueError, match="`chains_at_once` must be an integer of at least 1"):
        iso.sample(lambda x: x @ x, iso.sgld(0.1), chains_at_once=0, **settings)
    with pytest.raises(ValueError, match='`chains_at_once` must be left out with `chain_mode="map"`'):
        iso.sample(lambda x: x @ x, iso.sgld(0.1), chains_at_once=2, chain_mode="map", **settings)
