"""Convolutions with channels last: the same numbers, and what XLA computes fast in loops."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

import isotherm as iso
from isotherm.engine import chain_mode, convolutions
from isotherm.engine.convolutions import channels_last, for_loops
from tests.compiled import prepared, text_of

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("numbers", "images", "kernel", "options"),
    [
        (("NCHW", "OIHW", "NCHW"), (2, 4, 9, 8), (6, 4, 3, 3), {"window_strides": (2, 1), "padding": "SAME"}),
        (("CHWN", "IHWO", "HWNC"), (4, 9, 8, 2), (4, 3, 2, 6), {"window_strides": (1, 2), "padding": "VALID"}),
        (
            ("NHWC", "HWIO", "NHWC"),
            (2, 9, 8, 4),
            (3, 3, 2, 6),
            {"window_strides": (1, 1), "padding": "SAME", "feature_group_count": 2},
        ),
        (
            ("CNHW", "HWOI", "WCHN"),
            (4, 2, 9, 8),
            (3, 2, 6, 4),
            {"window_strides": (1, 1), "padding": ((1, 2), (0, 3)), "lhs_dilation": (2, 1), "rhs_dilation": (1, 3)},
        ),
        (("NCH", "OIH", "NHC"), (2, 4, 9), (6, 4, 3), {"window_strides": (2,), "padding": "SAME"}),
    ],
)
def test_every_order_of_axes_gives_the_same_numbers(numbers, images, kernel, options):
    given = jax.random.normal(KEY, images), jax.random.normal(jax.random.key(1), kernel)
    convolve = lambda *given: lax.conv_general_dilated(*given, dimension_numbers=numbers, **options)  # noqa: E731
    (operation,) = jax.make_jaxpr(convolve)(*given).eqns
    found = channels_last(*given, **operation.params)
    np.testing.assert_allclose(found, convolve(*given), rtol=1e-4, atol=1e-5)


def energy(weights, images):
    """With a call inside, an operation with a rule of its own, and a constant."""
    blurred = jax.jit(lambda x: lax.conv(x, weights, (2, 2), "SAME"))(images)
    return jnp.sum(jax.nn.relu(blurred + jnp.asarray(np.arange(3.0))[:, None, None]) ** 2)


def test_a_function_gives_the_same_values_and_slopes():
    weights, images = jax.random.normal(KEY, (3, 2, 3, 3)), jax.random.normal(KEY, (4, 2, 6, 6))
    both = lambda *given: {"energy": jax.value_and_grad(energy, argnums=(0, 1))(*given)}  # noqa: E731
    found, expected = for_loops(both)(weights, images), both(weights, images)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("change", ["an operation that is gone", "a parameter of another name", "other layouts"])
def test_functions_run_as_they_are_if_jax_has_changed(monkeypatch, change):
    if change == "an operation that is gone":
        monkeypatch.delattr(lax, "conv_general_dilated_p")
    elif change == "a parameter of another name":
        monkeypatch.setattr(convolutions, "_CALLS", dict.fromkeys(convolutions._CALLS, "renamed"))
    else:
        monkeypatch.setattr(lax, "ConvDimensionNumbers", lambda *_: None)
    given = jax.random.normal(KEY, (3, 2, 3, 3)), jax.random.normal(KEY, (4, 2, 6, 6))
    gradient = jax.grad(energy)
    np.testing.assert_array_equal(for_loops(gradient)(*given), gradient(*given))


class Small(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Conv(1, 4, (3, 3), rngs=rngs), nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, images):
        return self.last(nnx.relu(self.first(images)).mean(axis=(1, 2)))


def labels_of_convolutions():
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(20, 6, 6, 1)).astype(np.float32), np.arange(20) % 2)
    potential = iso.from_nnx(Small, "cross_entropy", data, batch_size=10, weight_decay=1.0)
    init = potential.init(KEY)
    text = text_of(prepared(potential, iso.sgld(1e-3), init, num_steps=20, num_chains=2, chain_mode="map"))
    return set(re.findall(r" convolution\(.*dim_labels=([\w\->]+)", text))


def test_all_convolutions_of_a_run_have_channels_last(monkeypatch):
    assert labels_of_convolutions() == {"b01f_01io->b01f"}
    monkeypatch.setattr(chain_mode, "for_loops", lambda function: function)
    assert labels_of_convolutions() != {"b01f_01io->b01f"}
