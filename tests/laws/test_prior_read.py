"""Contours that read the likelihood alone still sample the whole posterior, if the multiplier leaves the prior's gradient alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import Partition
from isotherm.engine import iteration

IS_OPTIMIZED = False

PARTITION = Partition(0.5, 0.5, 12)
THETA = tuple(np.exp(-0.35 * np.arange(12)))
GRID = np.linspace(-6, 6, 4001)


def loss(x):
    return (x**2 - 2.0) ** 2 / 2


def potential(coupling_includes_prior=False):
    def log_likelihood(x, examples):
        return -jnp.broadcast_to(loss(x), examples.shape)

    data = np.zeros(1, np.float32)
    return iso.from_likelihood(
        log_likelihood, lambda x: -0.5 * (x - 0.6) ** 2, data, coupling_includes_prior=coupling_includes_prior
    )


def estimated():
    sampler = iso.ksgld(2e-3, partition=PARTITION, theta=THETA, zeta=1.0)
    run = iso.sample(
        potential(),
        sampler,
        num_steps=20_000,
        num_chains=200,
        thinning=50,
        burn_in=2_000,
        init=lambda key: jax.random.normal(key, ()),
        progress=False,
    )
    weights = np.exp(np.asarray(run.log_weights, np.float64))
    draws = np.asarray(run.draws, np.float64)
    return np.array([np.sum(weights * f) / np.sum(weights) for f in (draws, draws**2)])


def truth():
    density = np.exp(-loss(GRID) - 0.5 * (GRID - 0.6) ** 2)
    density /= density.sum()
    return np.array([density @ GRID, density @ GRID**2])


def test_the_posterior_is_sampled():
    # 200 chains of 18 time units: the mean, of deviation 1.2 and a crossing time of a few units, is known to about 0.04.
    np.testing.assert_allclose(estimated(), truth(), atol=0.1)


def test_a_multiplier_on_the_prior_too_would_be_seen(monkeypatch):
    def everything(parts, position, gradient, multiplier):
        return jax.tree.map(lambda g: multiplier * g, gradient)

    monkeypatch.setattr(iteration, "multiplied", everything)
    assert np.abs(estimated() - truth()).max() > 0.12


def test_couplings_read_what_the_potential_says():
    for is_read in (True, False):
        sampler = iso.icsgld(1e-9, partition=Partition(0.5, 0.5, 12), gain=1e-3)
        run = iso.sample(potential(is_read), sampler, num_steps=50, init=jnp.asarray(np.sqrt(2.0)), progress=False)
        # At the well the loss is zero, and the prior's energy 0.33; the records hold both.
        assert np.asarray(run.energies)[0, 0] == pytest.approx(0.5 * (np.sqrt(2) - 0.6) ** 2, rel=1e-3)
    moved = {}
    for is_read in (True, False):
        run = iso.sample(
            potential(is_read),
            iso.icsgld(1e-9, partition=Partition(0.1, 0.1, 12), gain=1e-2),
            num_steps=50,
            init=jnp.asarray(np.sqrt(2.0)),
            progress=False,
        )
        moved[is_read] = int(np.argmax(run.stats["theta"][0]))
    assert moved == {True: 3, False: 0}
