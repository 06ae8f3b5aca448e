"""Ensembles that are trained on or joined: who counts, and who does not belong together."""

import jax
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.foundation.errors import DivergenceWarning
from isotherm.predictive import Ensemble, joined, trained

IS_OPTIMIZED = False
X = np.zeros((40, 1), np.float32)
POTENTIAL = iso.from_nnx(
    lambda rngs: nnx.Linear(1, 1, rngs=rngs), "squared_error", (X, X[:, 0]), batch_size=10, weight_decay=3.0
)
START = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3, 1, 1)
ZERO = np.zeros((2, 3, 1), np.float32)


def test_networks_without_weight_are_not_trained():
    """As those of a chain that diverged: NaN is nowhere to start from."""
    log_weights = np.zeros((2, 3))
    log_weights[0, 1:] = -np.inf
    held = np.where(np.isfinite(log_weights)[..., None, None], START, np.nan).astype(np.float32)
    after = trained(Ensemble({"kernel": held, "bias": ZERO}, (), log_weights), POTENTIAL, iso.sgd(0.05))
    np.testing.assert_array_equal(after.log_weights, log_weights)
    is_used = np.isfinite(log_weights)
    np.testing.assert_allclose(after.draws["kernel"][is_used], START[is_used] * (1 - 0.05 * 3.0) ** 4, rtol=1e-5)


def test_networks_that_diverge_in_training_lose_their_weight():
    huge = START.copy()
    # Every step multiplies by 1 - 5 * 3 = -14, and the square of 1e17 * 14^2 is infinite in single precision.
    huge[1, 2] = 1e17
    ensemble = Ensemble({"kernel": huge, "bias": ZERO}, (), np.zeros((2, 3)))
    with pytest.warns(DivergenceWarning):
        after = trained(ensemble, POTENTIAL, iso.sgd(5.0))
    assert np.isneginf(after.log_weights[1, 2])
    assert np.isfinite(after.log_weights).sum() == 5


WRONG = {
    "no steps": (
        lambda e: trained(e, POTENTIAL, iso.sgd(0.1), num_steps=0),
        "`num_steps` must be an integer of at least 1",
    ),
    "fewer": (
        lambda e: trained(e, POTENTIAL, iso.sgd(0.1), num_steps=-2),
        "`num_steps` must be an integer of at least 1",
    ),
    "another network": (
        lambda e: trained(e._replace(draws={"kernel": START}), POTENTIAL, iso.sgd(0.1)),
        r"`ensemble` must be draws of the potential's network, with shape \(1,\) at bias; got nothing at bias",
    ),
    "other shapes": (
        lambda e: joined((e, 1.0), (e._replace(draws={"kernel": START[..., 0], "bias": ZERO}), 1.0)),
        r"`parts` must be of one network, with leaves .*\(1, 1\); got ",
    ),
    "other names": (
        lambda e: joined((e, 1.0), (e._replace(draws={"weight": START, "bias": ZERO}), 1.0)),
        r"`parts` must be of one network, .*'kernel'.*; got .*'weight'",
    ),
    "another state": (
        lambda e: joined((e, 1.0), (e._replace(model_state={"mean": ZERO}), 1.0)),
        r"`parts` must be of one network, .*; got .*'mean'",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_ensembles_are_refused(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call(Ensemble({"kernel": START, "bias": ZERO}, (), np.zeros((2, 3))))


def test_networks_of_the_same_names_are_joined():
    """Leaves of JAX and of NumPy, in ensembles of several shapes."""
    one = Ensemble({"kernel": START, "bias": ZERO}, (), np.zeros((2, 3)))
    other = Ensemble(jax.tree.map(lambda leaf: jax.numpy.asarray(leaf[:1, :2]), one.draws), (), np.zeros((1, 2)))
    assert joined((one, 1.0), (other, 1.0)).draws["kernel"].shape == (1, 8, 1, 1)
