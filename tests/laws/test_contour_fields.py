"""Fixed points of every field of a contour sampler."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.contour import Contour, Partition
from isotherm.contour.fields import Psi, as_field
from isotherm.contour.theta_histogram import add
from isotherm.coupling import CouplingInputs
from isotherm.foundation.gains import PolynomialGain

MASSES = np.array([0.3, 0.25, 0.2, 0.12, 0.08, 0.05])


def learn(contour, num_iterations, masses=MASSES, num_chains=200):
    """Theta after energies drawn bin by bin from masses / theta^zeta, at the right edge of a bin, where Psi is theta(J)."""
    partition, number = contour.partition, len(masses)
    places = jnp.asarray(partition.low + partition.width * np.arange(number) - 1e-3 * partition.width)

    @jax.jit
    def go(key):
        def iterate(state, inputs):
            k, key = inputs
            weights = add(state.histogram, contour.groups(num_chains), state.bins, state.masses)
            theta = jnp.cumsum(weights.theta[0]) if contour.field.is_cumulative else weights.theta[0]
            if isinstance(contour.field, Psi):
                theta = theta.at[-1].set(theta[-2])  # Psi is constant in the top bin.
            # One uniform number for each chain; `jax.random.categorical` draws one for each chain and bin.
            shares = jnp.cumsum(jax.nn.softmax(jnp.log(masses) - contour.zeta * jnp.log(theta)))
            bins = jnp.sum(jax.random.uniform(key, (num_chains, 1)) >= shares[:-1], axis=1)
            energies, one = places[bins], jnp.ones(())
            readings = CouplingInputs(energies, 0 * energies, jnp.ones(num_chains, bool), one, one, k)
            due = (k % contour.fold_times[0] == 0).astype(int)
            state = jax.lax.fori_loop(0, due, lambda _, kept: contour.rescaled(kept), state)
            return contour.update(state, (), readings)[0], None

        keys = jax.random.split(key, num_iterations)
        state, _ = jax.lax.scan(iterate, contour.init(num_chains), (jnp.arange(num_iterations), keys))
        return contour.statistics(state)["theta"][0]

    return np.asarray(go(jax.random.key(0)))


def contour(field, zeta, **options):
    settings: dict[str, Any] = {"gain": PolynomialGain(10.0, 0.75, 100.0, 1.0), **options}
    return Contour(Partition(0.0, 1.0, len(MASSES)), zeta, field=as_field(field), **settings)


def cumulative_fixed_point(zeta):
    """theta_i^(zeta - 1) (theta_i - theta_(i - 1)) = p_i / c with theta_m = 1, by bisection on c."""

    def last(c):
        theta = [0.0]
        for p in MASSES:
            low, high = theta[-1], theta[-1] + 10.0
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if middle ** (zeta - 1) * (middle - theta[-1]) < p / c else (low, middle)
            theta.append(low)
        return np.array(theta[1:])

    low, high = 1e-3, 1e3
    for _ in range(100):
        middle = np.sqrt(low * high)
        low, high = (middle, high) if last(middle)[-1] > 1 else (low, middle)
    return last(low)


@pytest.mark.parametrize(
    ("field", "zeta", "expected"),
    [
        ("psi", 0.75, MASSES),
        ("psi", 1.0, MASSES),
        ("theta^zeta", 0.75, MASSES),
        ("theta", 1.0, MASSES),
        ("theta", 0.5, MASSES**2 / np.sum(MASSES**2)),
        ("theta", 2.0, MASSES**0.5 / np.sum(MASSES**0.5)),
        ("cumulative", 1.0, np.cumsum(MASSES)),
        ("cumulative", 2.0, cumulative_fixed_point(2.0)),
    ],
)
def test_fixed_points(field, zeta, expected):
    theta = learn(contour(field, zeta, bounds=None), 20_000)
    np.testing.assert_allclose(theta, expected, rtol=0.03)


def test_a_large_zeta_shows_in_the_logarithm():
    theta = learn(contour("theta", 100.0, bounds=None, gain=PolynomialGain(1.0, 0.6, 100.0)), 40_000)
    flat = 100.0 * np.log(theta)
    np.testing.assert_allclose(flat - flat[0], np.log(MASSES / MASSES[0]), atol=0.15)


def test_a_wrong_exponent_would_be_seen():
    """A field of the power 1.1 zeta."""

    class Steeper(Psi):
        def strength(self, inputs):
            return super().strength(inputs) ** 1.1

    gain = PolynomialGain(10.0, 0.75, 100.0, 1.0)
    wrong = Contour(Partition(0.0, 1.0, len(MASSES)), 0.75, gain, Steeper(), bounds=None)
    assert np.max(np.abs(learn(wrong, 20_000) / MASSES - 1)) > 0.05


@pytest.mark.parametrize("field", ["psi", "theta^zeta", "theta", "cumulative"])
def test_a_diverged_chain_leaves_no_trace_in_what_others_share(field):
    shared = contour(field, 0.75, is_shared=True)
    energies = jnp.array([0.5, 2.5, jnp.nan])
    alive = jnp.isfinite(energies)
    one = jnp.ones(())

    def theta(energies, alive):
        state = shared.init(len(energies))
        for k in range(5):
            readings = CouplingInputs(energies, 0 * energies, alive, one, one, jnp.array(k))
            state, move = shared.update(state, (), readings)
            assert bool(jnp.all(jnp.isfinite(move.multiplier)))
        return shared.statistics(state)["theta"]

    np.testing.assert_allclose(theta(energies, alive), theta(energies[:2], alive[:2]), rtol=1e-6)
