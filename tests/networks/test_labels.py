"""What a classifier is given as labels, and what a regression is asked for: refused where it makes no sense."""

import warnings
from typing import Any

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso

IS_OPTIMIZED = False
X = np.random.default_rng(0).standard_normal((20, 3)).astype(np.float32)
Y = np.arange(20) % 4


def classifier(labels, data=X, **options):
    return iso.from_nnx(lambda rngs: nnx.Linear(3, 4, rngs=rngs), "cross_entropy", (data, labels), **options)


WRONG = {
    "from one": (Y + 1, r"`data` must be .*labels from 0 to 3, one for each output; got targets from 1 to 4\. Count"),
    "from minus one": (Y - 1, r"got targets from -1 to 2\. Count classes from 0"),
    "real": (Y + 0.5, r"got targets from 0\.5 to 3\.5 that are not whole.*the loss is \"squared_error\""),
    "one-hot": (np.eye(4)[Y], r"one whole number for every example, .* got targets of shape \(20, 4\).*argmax"),
    "a column": (Y[:, None], r"got targets of shape \(20, 1\).*labels\[:, 0\]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_targets_that_are_no_labels_are_refused(name):
    labels, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        classifier(labels)


@pytest.mark.parametrize("labels", [Y, Y.astype(np.uint8), Y.astype(np.float32), jnp.asarray(Y), Y.tolist()])
def test_labels_of_any_type_are_taken(labels):
    assert np.isfinite(classifier(np.asarray(labels) if isinstance(labels, list) else labels).full_energy(start()))


class ByHand(linen.Module):
    """Ends in a softmax that is written out."""

    @linen.compact
    def __call__(self, x):
        raised = jnp.exp(linen.Dense(4)(x))
        return raised / raised.sum(-1, keepdims=True)


class Softmax(equinox.Module):
    """Ends in that of JAX."""

    layer: Any = equinox.nn.Linear(3, 4, key=jax.random.key(0))

    def __call__(self, x):
        return jax.nn.softmax(self.layer(x))


def ending_in(last: Any) -> Any:
    return iso.from_nnx(lambda rngs: nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), last), "cross_entropy", (X, Y))


@pytest.mark.parametrize(
    "make",
    [
        lambda: ending_in(nnx.softmax),
        lambda: ending_in(jax.jit(jax.nn.softmax)),
        lambda: iso.from_linen(ByHand(), "cross_entropy", (X, Y), compute_dtype=jnp.bfloat16),
        lambda: iso.from_equinox(Softmax(), "cross_entropy", (X, Y)),
    ],
)
def test_a_softmax_ahead_of_the_loss_is_told(make):
    with pytest.warns(
        UserWarning, match=r"ends in a softmax, .*: the likelihood would be nearly flat\. Return the"
    ) as told:
        make()
    assert told[0].filename == __file__


@pytest.mark.parametrize("last", [nnx.log_softmax, nnx.sigmoid, nnx.tanh, lambda x: x / jnp.sum(x)])
def test_other_ends_are_no_softmax(last):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ending_in(last)


def start() -> Any:
    return {"kernel": jnp.zeros((3, 4)), "bias": jnp.zeros(4)}


@pytest.mark.parametrize("loss", ["squared_error", iso.networks.Gaussian(0.7)])
def test_a_regression_has_no_probabilities(loss):
    potential = iso.from_nnx(lambda rngs: nnx.Linear(3, 1, rngs=rngs), loss, (X, X[:, 0]))
    run = iso.sample(potential, iso.sgld(1e-3), num_steps=5, num_chains=2, progress=False)
    with pytest.raises(ValueError, match=r"`potential` must be that of a classifier; got the loss of a regression\."):
        iso.predictive.predict(run, potential, X)
    assert iso.predictive.outputs_of_draws(run, potential, X)[0].shape == (10, 20, 1)


def test_what_makes_networks_is_checked():
    maker: Any = lambda: nnx.Linear(3, 4, rngs=nnx.Rngs(0))  # noqa: E731
    with pytest.raises(
        ValueError, match=r"`module` must be .*; got a function of \(\)\. Write `lambda rngs: Net\(rngs"
    ):
        iso.from_nnx(maker, "cross_entropy", (X, Y))
    variables = linen.Dense(4).init(nnx.Rngs(0).params(), X)
    with pytest.raises(ValueError, match=r"`weights` must be variables as `module.init` returns them"):
        iso.from_linen(linen.Dense(4), "cross_entropy", (X, Y), weights=variables["params"])
    assert iso.from_linen(linen.Dense(4), "cross_entropy", (X, Y), weights=variables)


def test_bytes_that_go_to_a_network_as_they_are_are_told_of():
    images = np.random.default_rng(0).integers(0, 256, (20, 3), np.uint8)
    with pytest.warns(UserWarning, match=r"Inputs are bytes, from 0 to 255.*prepare=iso.networks.Normalize"):
        classifier(Y, images)
    assert classifier(Y, images, prepare=lambda x: x / 255.0)
