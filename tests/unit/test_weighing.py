"""Regularised weights of contour draws."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Regularised


@pytest.mark.parametrize("weighing", [Regularised(), Regularised(2.0, 1e-3), Regularised(3.0, 1e-4, is_relative=True)])
def test_weights_are_those_of_the_formula(weighing):
    theta, largest, is_top = np.array([0.2, 0.05, 0.3]), 0.3, np.array([False, False, True])
    base = theta / (largest if weighing.is_relative else 1.0)
    expected = np.where(is_top, 0.0, base**weighing.power) + weighing.floor
    found = weighing.log_weights(jnp.log(theta), jnp.log(largest), jnp.asarray(is_top))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-5)


def test_a_huge_zeta_leaves_every_draw_some_weight():
    runs = {}
    for weighing in (None, Regularised()):
        sampler = iso.icsgld(1e-2, partition=(0.5, 6.0, 20), zeta=30.0, gain=0.05, weighing=weighing)
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
        Regularised(floor=0.0)
    with pytest.raises(ValueError, match="`power` must be"):
        Regularised(power=-1.0)
