"""Chains that see the same mini-batches: their errors, and what is measured of their bias."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.run.estimates import estimate

NUM_DATA = 2_000
DATA = np.random.default_rng(11).normal(0.0, 1.0, NUM_DATA).astype(np.float32)
CENTER = float(DATA.astype(float).sum() / (NUM_DATA + 1))


def sampled(seed, num_chains=200, is_batch_shared=True, **options):
    potential = iso.from_likelihood(
        lambda m, y: -0.5 * (y - m) ** 2,
        lambda m: -0.5 * m**2,
        jnp.asarray(DATA),
        batch_size=50,
        is_batch_shared=is_batch_shared,
        **options,
    )
    start = lambda key: 0.03 * jax.random.normal(key, ())  # noqa: E731
    settings = {"num_steps": 25_000, "burn_in": 5_000, "thinning": 100, "init": start, "seed": seed}
    return iso.sample(potential, iso.sgld(1e-6), num_chains=num_chains, progress=False, **settings)


def z_of(found, truth):
    return float((found.mean - truth) / found.std_error)


@pytest.mark.parametrize("batching", ["independent", "epochs"])
def test_errors_hold_the_noise_that_chains_share(batching):
    runs = [sampled(seed, batching=batching) for seed in range(4)]
    assert max(abs(z_of(run.estimate(lambda m: m), CENTER)) for run in runs) < 4.0
    assert all(run.summary().notes[1:] == [] for run in runs)


def test_errors_that_ignore_it_would_be_far_too_small():
    run = sampled(0, batching="independent")
    ignored = estimate(lambda m: m, run.draws, np.asarray(run.log_weights))
    honest = run.estimate(lambda m: m)
    # What 200 chains share is a fifth of their variance: V eps / 2 over 1 + V eps / 2, with V eps = .08 N / n.
    assert honest.std_error > 2.0 * ignored.std_error
    own = sampled(0, batching="independent", is_batch_shared=False)
    assert own.estimate(lambda m: m).std_error < 0.5 * honest.std_error


def test_repeats_share_nothing():
    """Two groups of chains of two runs: the noise of one is not that of the other."""
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(8, 1, 4_096, 1)), 0.1 * rng.normal(size=(8, 4, 4_096, 1))
    x, weights = shared + own, np.zeros((8, 4, 4_096))
    found = estimate(lambda v: v, x, weights, shares_noise=True)
    # The mean of eight independent series of unit variance.
    assert found.std_error[0] == pytest.approx(1.0 / np.sqrt(8 * 4_096), rel=0.15)
    ignored = estimate(lambda v: v, x, weights)
    assert ignored.std_error[0] == pytest.approx(0.5 / np.sqrt(8 * 4_096), rel=0.15)


def test_the_bias_of_many_chains_sees_many_batches():
    """x' = x - eps (rate x + noise) + sqrt(2 eps) xi with the variance of the noise of 50 of 2,000 examples, with replacement."""
    run = sampled(0, num_chains=400, batching="replacement")
    rate, step = NUM_DATA + 1.0, 1e-6
    noise = NUM_DATA**2 / 50.0 * np.var(DATA.astype(float))
    variance = (2.0 + step * noise) / (rate * (2.0 - step * rate))
    found = run.estimate(lambda m: (m - CENTER) ** 2)
    assert abs(z_of(found, variance)) < 4.0
    assert found.bias == pytest.approx(variance - 1.0 / rate, rel=0.15)
    # From the few batches that 400 chains shared at as many draws it would be known to 40 %.
    assert found.bias_error < 0.1 * found.bias


def test_data_that_stream_are_measured_in_memory(monkeypatch):
    streamed = sampled(0, num_chains=8, is_streamed=True)
    held = sampled(0, num_chains=8)
    found, wanted = (run.estimate(lambda m: (m - CENTER) ** 2) for run in (streamed, held))
    assert np.isfinite(found.bias)
    assert found.bias == pytest.approx(wanted.bias, rel=1e-3)
    monkeypatch.setattr("isotherm.diagnostics.bias_probe._MAX_BYTES", 100)
    large = sampled(0, num_chains=8, is_streamed=True)
    assert large.bias is None
    assert any(
        note.startswith("The bias of the step size and of mini-batches is not measured")
        for note in large.summary().notes
    )
