"""Targets against independent numbers."""

import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.targets import banana, gaussian, modes25
from isotherm_thesis.targets import awsgld_mixture, csgld_mixture, mixture_posterior, modes9, resgld_mixtures
from tests.targets import MODES9, MODES25


@pytest.mark.parametrize(("target", "known", "period"), [(modes25(), MODES25, 1.0), (modes9(), MODES9, 2 / 1.2)])
def test_masses_of_the_landscapes(target, known, period):
    for center, mass in zip(target.modes, target.mode_masses, strict=True):
        place = tuple(sorted(round(abs(float(c)) / period) for c in center))
        assert mass == pytest.approx(known[place], abs=2e-4 if len(known) > 3 else 6e-4)
    assert target.total_variation(target.mode_masses) == 0.0
    assert target.total_variation(np.eye(len(target.modes))[0]) > 0.5


def test_walls_stand_where_they_should():
    inside, outside = jnp.array([3.0, 3.3]), jnp.array([3.0, 3.4])
    wells = lambda x: 0.2 * (x**2).sum() - 2 * jnp.cos(2 * jnp.pi * x).sum()  # noqa: E731
    assert float(modes25().energy(inside)) == pytest.approx(float(wells(inside)), rel=1e-5)
    assert float(modes25().energy(outside) - wells(outside)) == pytest.approx(9 + 3.4**2 - 20, rel=1e-4)
    assert float(modes9().energy(jnp.array([2.5, 2.5]))) == pytest.approx((1.25 + 2) / 0.3 + 5.5, rel=1e-4)


def test_mixtures_have_their_weights_and_barriers():
    for target in (*resgld_mixtures(), csgld_mixture()):
        np.testing.assert_allclose(target.mode_masses, [0.4, 0.6], atol=1e-4)
    energies = [float(csgld_mixture().energy(jnp.array([x]))) for x in (4.0, -6.0, -1.04)]
    assert energies == pytest.approx([1.430, 1.835, 13.44], abs=0.005)
    assert awsgld_mixture().truth.expectation(lambda x: x)[0] == pytest.approx(-0.2, abs=1e-5)


def test_moments_of_the_unimodal():
    bent = banana()
    np.testing.assert_allclose(bent.truth.expectation(lambda x: x**2), bent.energy.variances, rtol=1e-3)  # pyright: ignore
    straight = gaussian((1.0, 4.0), (1.0, -2.0))
    np.testing.assert_allclose(
        straight.truth.expectation(lambda x: (x - jnp.array([1.0, -2.0])) ** 2), [1.0, 0.25], rtol=1e-3
    )


def test_the_posterior_has_a_twin():
    target = mixture_posterior(num_data=2_000, batch_size=100)
    low, high = (float(target.energy(jnp.array([x]))) for x in (-5.0, 25.0))
    assert low == pytest.approx(high, rel=1e-5)
    assert float(target.energy(jnp.array([10.0]))) - low > 3_000
    slope = (float(target.energy(jnp.array([-4.0]))) - float(target.energy(jnp.array([-6.0])))) / 2
    assert abs(slope) < 0.1 * (float(target.energy(jnp.array([0.0]))) - low)
