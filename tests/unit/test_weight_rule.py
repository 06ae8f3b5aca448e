"""Regularized weights of contour draws."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Contour, RegularizedWeights, uniform_partition


@pytest.mark.parametrize(
    "weighing", [RegularizedWeights(), RegularizedWeights(2.0, 1e-3), RegularizedWeights(3.0, 1e-4, is_relative=True)]
)
def test_weights_are_those_of_the_formula(weighing):
    theta, largest, is_top = np.array([0.2, 0.05, 0.3]), 0.3, np.array([False, False, True])
    base = theta / (largest if weighing.is_relative else 1.0)
    expected = np.where(is_top, 0.0, base**weighing.power) + weighing.floor
    found = weighing.log_weights(jnp.log(theta), jnp.log(largest), jnp.asarray(is_top))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-5)


def test_a_huge_zeta_leaves_every_draw_some_weight():
    """A theta that falls by a tenth from bin to bin, to the power 30: psi is at its bound, and few draws have all the weight."""
    runs, theta = {}, 0.9 ** np.arange(20)
    for weighing in (None, RegularizedWeights()):
        bins = uniform_partition(0.5, 6.0, 20)
        bold = {"bounds": (-5.0, 5.0), "initial_theta": theta, "is_frozen": True}
        contour = Contour(bins, 30.0, weight_rule=weighing, **bold)
        sampler = dataclasses.replace(iso.sgld(1e-2), coupling=contour)
        run = iso.sample(
            lambda x: 0.5 * jnp.sum(x**2),
            sampler,
            num_steps=4_000,
            thinning=40,
            num_chains=2,
            init=jnp.ones(4),
            progress=False,
        )
        runs[weighing is None] = run.effective_sample_size()
        assert np.all(np.isfinite(run.log_weights))
    assert runs[False] > 5 * runs[True]


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="`floor` must be"):
        RegularizedWeights(floor=0.0)
    with pytest.raises(ValueError, match="`power` must be"):
        RegularizedWeights(power=-1.0)
