"""Stated intervals against repeated runs: they cover the truth, or say that the error is unknown."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.signal import lfilter

import isotherm as iso
from isotherm.run.estimates import estimate
from isotherm.run.standard_errors import tail_shape

IS_OPTIMIZED = False

REPEATS = 200


def independent(rng, chains, draws):
    return rng.standard_normal((chains, draws)), None, 0.0


def autoregressive(keep):
    def make(rng, chains, draws):
        noise = rng.standard_normal((chains, draws)) * np.sqrt(1 - keep**2)
        noise[:, 0] = rng.standard_normal(chains)
        return lfilter([1.0], [1.0, -keep], noise, axis=1), None, 0.0

    return make


def jumping(rate):
    """Two modes of masses 0.3 and 0.7, a jump every 1 / rate draws or so."""

    def make(rng, chains, draws):
        is_low = np.empty((chains, draws), bool)
        is_low[:, 0] = rng.random(chains) < 0.3
        uniform = rng.random((chains, draws))
        for k in range(1, draws):
            is_low[:, k] = np.where(is_low[:, k - 1], uniform[:, k] > 1.4 * rate, uniform[:, k] < 0.6 * rate)
        return np.where(is_low, -3.0, 2.0) + rng.standard_normal((chains, draws)), None, 0.5

    return make


def squared(degrees):
    """Squares of an AR(1) with 0.9 whose values have Student's t of so many degrees, or are normal."""

    def make(rng, chains, draws):
        x = np.asarray(autoregressive(0.9)(rng, chains, draws)[0])
        if degrees is None:
            return x**2, None, 1.0
        return stats.t.ppf(stats.norm.cdf(x), degrees) ** 2, None, degrees / (degrees - 2)

    return make


def visiting(number, length):
    """A mode that all chains together visit so many times, for so many draws each, on average."""

    def make(rng, chains, draws):
        rate = number / (chains * draws)
        share = rate * length / (1 + rate * length)
        is_there = np.empty((chains, draws), bool)
        is_there[:, 0] = rng.random(chains) < share
        uniform = rng.random((chains, draws))
        for k in range(1, draws):
            is_there[:, k] = np.where(is_there[:, k - 1], uniform[:, k] > 1 / length, uniform[:, k] < rate)
        return 5.0 * is_there + rng.standard_normal((chains, draws)), None, 5.0 * share

    return make


def tilted(by):
    """Draws of a standard normal with the weights of one around `by`: heavier tails the larger it is."""

    def make(rng, chains, draws):
        x = rng.standard_normal((chains, draws))
        return x, by * x, by

    return make


def spread_out(by):
    """Draws of a standard normal with the weights of one of standard deviation `by`: weights without variance from 1.41 on."""

    def make(rng, chains, draws):
        x = rng.standard_normal((chains, draws))
        return x**2, 0.5 * x**2 * (1 - 1 / by**2), by**2

    return make


PROCESSES = {
    "independent": independent,
    "AR(1) with 0.9": autoregressive(0.9),
    "AR(1) with 0.99": autoregressive(0.99),
    "two modes, 8 jumps a chain": jumping(0.004),
    "two modes, 1 jump a chain": jumping(0.0005),
    "squares, AR(1) with 0.9": squared(None),
    "squares, Student t of 8": squared(8.0),
    "8 visits to a mode": visiting(8, 200),
    "weights, light tail": tilted(1.0),
    "weights, heavy tail": tilted(2.0),
    "weights, hardly any variance": spread_out(1.3),
    "weights, no variance": spread_out(1.8),
}


def coverage(make, chains, draws=2_000):
    """Fractions of repeats whose interval holds the truth or is unknown, and which are unknown; and the width over the oracle's."""
    rng = np.random.default_rng(1)
    repeats = [make(rng, chains, draws) for _ in range(REPEATS)]
    truth = repeats[0][2]
    if repeats[0][1] is None:
        # Without weights all repeats are so many functions of one run.
        together = np.stack([values for values, _, _ in repeats], axis=-1)[None]
        found = [estimate(jnp.asarray, together, np.zeros(together.shape[:3]))]
    else:
        found = [estimate(jnp.asarray, values[None], log_weights[None]) for values, log_weights, _ in repeats]
    for one in found:
        assert np.any(np.isnan(one.std_error)) == any("unknown" in note for note in one.notes)
    means = np.concatenate([np.atleast_1d(one.mean) for one in found])
    low, high = (np.concatenate([np.atleast_1d(one.interval()[end]) for one in found]) for end in range(2))
    unknown = np.isnan(low)
    honest = unknown | ((low < truth) & (truth < high))
    return np.mean(honest), np.mean(unknown), np.nanmean(high - low) / (2 * 1.96 * np.std(means))


@pytest.mark.parametrize("chains", [4, 16])
@pytest.mark.parametrize("name", PROCESSES)
def test_intervals_cover_the_truth_or_are_unknown(name, chains):
    honest, unknown, width = coverage(PROCESSES[name], chains)
    assert honest >= 0.9
    if name in ("independent", "AR(1) with 0.9"):
        assert unknown <= 0.02
        assert width <= 1.5
    if name == "squares, AR(1) with 0.9" or (name == "squares, Student t of 8" and chains == 16):
        assert unknown <= 0.05
    if name == "weights, no variance" or (name == "8 visits to a mode" and chains == 16):
        assert unknown > 0.5


@pytest.mark.parametrize(("number", "degrees"), [(64, 127.0), (12, 32.95), (7, np.nan)])
def test_few_stretches_that_carry_the_error_leave_it_few_degrees_or_none(number, degrees):
    """Of 128 chains with one draw each a share p is at 1: k = 128 p (1 - p) / (1 - 3 p (1 - p)) carry the error."""
    share = number / 128
    carrying = 128 * share * (1 - share) / (1 - 3 * share * (1 - share))
    values = (np.arange(128) < number).astype(float)
    found = estimate(jnp.asarray, values[None, :, None], np.zeros((1, 128, 1)))
    if carrying < 8:
        assert np.isnan([degrees, found.std_error]).all()
        assert any("a few stretches of the run carry it" in note for note in found.notes)
    else:
        assert found.degrees == pytest.approx(degrees, abs=0.05)
        assert found.std_error == pytest.approx(np.std(values, ddof=1) / np.sqrt(128))


def test_a_single_visit_leaves_the_error_unknown_with_any_weights():
    rng = np.random.default_rng(0)
    values = rng.standard_normal((16, 2_000))
    values[3, 500:700] += 20.0
    for log_weights in (np.zeros_like(values), 0.1 * rng.standard_normal(values.shape)):
        found = estimate(jnp.asarray, values[None], log_weights[None])
        assert np.isnan(found.std_error)
        assert any("the one visit to a mode" in note for note in found.notes)
        assert found.r_hat > 1.0


def test_one_chain_apart_of_many_carries_the_error_alone():
    values = np.random.default_rng(0).standard_normal((16, 1_000))
    values[3] += 20.0
    found = estimate(jnp.asarray, values[None], np.zeros((1, 16, 1_000)))
    assert np.isnan(found.std_error)
    assert any("a few stretches of the run carry it" in note for note in found.notes)


def test_errors_that_ignore_correlations_would_not_cover(monkeypatch):
    monkeypatch.setattr("isotherm.run.standard_errors._MAX_CORRELATION", np.inf)
    monkeypatch.setattr("isotherm.run.estimates.num_stretches", lambda chains, draws, *_: draws)
    honest, _, _ = coverage(PROCESSES["AR(1) with 0.9"], 4, 512)
    assert honest < 0.8


def test_stuck_chains_have_the_error_of_their_starts_and_are_told_to_disagree():
    rng = np.random.default_rng(0)
    levels = np.tile([-1.0, 1.0, 1.0, -1.0], 4)
    values = np.broadcast_to(levels[:, None], (16, 1_000)) + 0.01 * rng.standard_normal((16, 1_000))
    found = estimate(jnp.asarray, values[None], np.zeros((1, 16, 1_000)))
    assert found.std_error == pytest.approx(levels.std(ddof=1) / 4, rel=0.02)
    assert any("Chains disagree" in note for note in found.notes)
    assert found.r_hat > 3
    few = estimate(jnp.asarray, values[None, :3], np.zeros((1, 3, 1_000)))
    assert np.isnan(few.std_error)
    assert any("unknown" in note for note in few.notes)
    fine = estimate(jnp.asarray, rng.standard_normal((1, 16, 1_000)), np.zeros((1, 16, 1_000)))
    assert fine.notes == ()
    assert fine.r_hat < 1.01


def test_chains_without_weight_do_not_count_as_chains():
    """Of 16 stuck chains three have weight: the error is as unknown as with those three alone."""
    rng = np.random.default_rng(0)
    values = np.tile([-1.0, 1.0, 1.0, -1.0], 4)[:, None] + 0.01 * rng.standard_normal((16, 500))
    log_weights = np.where(np.arange(16)[:, None] < 3, 0.0, -np.inf) + 0.0 * values
    found = estimate(jnp.asarray, values[None], log_weights[None])
    assert np.isnan(found.std_error)
    assert found.degrees == 2


def test_tail_shapes_of_known_tails():
    rng = np.random.default_rng(0)
    for shape in (0.2, 0.5, 0.8):
        found = [tail_shape(np.log(rng.pareto(1 / shape, 20_000) + 1.0)) for _ in range(20)]
        assert abs(np.mean(found) - shape) < 0.08
    assert tail_shape(np.log(rng.uniform(size=20_000))) < 0
    assert tail_shape(np.zeros(1_000)) == -np.inf


def test_estimates_of_nested_functions_and_of_chains_that_diverged():
    energy = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    run = iso.sample(energy, iso.sgld(0.1), num_steps=5_000, burn_in=100, num_chains=8, init=jnp.zeros(2))
    found = run.estimate(lambda x: {"first": x[0], "square": x**2})
    assert found.mean["square"].shape == found.std_error["square"].shape == (2,)
    low, high = found.interval()
    assert low["first"] < 0 < high["first"]
    draws, log_weights = np.array(run.draws), np.array(run.log_weights)
    draws[3, 2_000:] = np.nan
    log_weights[3, 2_000:] = -np.inf
    broken = dataclasses.replace(run, draws=draws, log_weights=log_weights).estimate(lambda x: x)
    assert np.isfinite(broken.mean).all()
    assert np.isfinite(broken.std_error).all()
    with pytest.raises(ValueError, match="`level` must be a finite real number above 0 and below 1"):
        found.interval(1.0)


def test_summaries_of_odd_positions():
    def start(key):
        return {"nothing": jnp.zeros((0, 3)), "half": jnp.zeros(2, jnp.bfloat16), "one": jnp.zeros(())}

    energy = lambda x: jnp.sum(x["half"].astype(float) ** 2) + x["one"] ** 2  # noqa: E731
    run: Any = iso.sample(energy, iso.sgld(0.1), num_steps=500, num_chains=2, init=start)
    text = str(run.summary())
    assert "half[1]" in text
    assert "one" in text
