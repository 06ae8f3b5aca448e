"""Advice from a pilot is what a run then does."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange import expected_swap_rate

IS_OPTIMIZED = False

NOISE = 2.0
LADDER = (1.0, 2.0, 4.0)


def potential():
    return iso.with_noise(iso.from_energy(lambda x: 0.5 * jnp.sum(x**2)), energy_scale=NOISE)


def test_predicted_rates_are_those_of_a_run():
    start = jnp.zeros(3)
    advice = iso.advise(
        potential(), iso.resgld(0.05, temperatures=LADDER), num_steps=60_000, init=start, factors=(1.0, np.inf)
    )
    assert advice.variances == pytest.approx(2 * NOISE**2, rel=0.1)
    for rates, sampler in zip(advice.rates, (iso.resgld, iso.naive_resgld), strict=True):
        run = iso.sample(potential(), sampler(0.05, temperatures=LADDER), num_steps=60_000, init=start)
        assert run.stats["swap_rate"][0] == pytest.approx(rates, rel=0.05)
    assert np.all(advice.rates[1] > 1.1 * advice.rates[0])


def test_the_closed_form_agrees():
    delta = 1.0 - 1.0 / LADDER[1]
    advice = iso.advise(
        potential(), iso.resgld(0.05, temperatures=LADDER), num_steps=100_000, init=jnp.zeros(3), factors=(1.0,)
    )
    rng = np.random.default_rng(0)
    cold, hot = rng.standard_normal((2, 200_000, 3)) * np.sqrt([[[1.0]], [[LADDER[1]]]])
    gap = delta * 0.5 * np.sum(cold**2 - hot**2, axis=1)
    expected = float(np.mean(expected_swap_rate(gap, delta * np.sqrt(2) * NOISE)))
    assert advice.rates[0, 0] == pytest.approx(expected, rel=0.05)


def test_windows_and_words():
    advice = iso.advise(
        potential(),
        iso.resgld((0.02, 0.02), temperatures=(1.0, 30.0), num_replicas=6),
        num_steps=5_000,
        init=jnp.zeros(3),
    )
    assert list(advice.round_trips) == sorted(advice.round_trips, reverse=True)
    assert all(window >= 1 for window in advice.windows)
    assert "swap rate" in str(advice)


def test_only_corrected_exchange_is_advised():
    with pytest.raises(ValueError, match="`sampler` must be a replica exchange sampler with the corrected rule"):
        iso.advise(potential(), iso.sgld(step_size=0.1), num_steps=10, init=jnp.zeros(2))


def test_an_annealed_ladder_is_refused():
    annealed = iso.resgld(0.1, temperatures=(1.0, 2.0), temperature_factor=iso.schedules.Annealed(1.0, 1.1))
    with pytest.raises(
        ValueError, match="`sampler` must be one with constant temperatures and step sizes; got one with"
    ):
        iso.advise(lambda x: jnp.sum(x**2), annealed, num_steps=100, init=jnp.zeros(1))


def test_progress_is_shown_when_asked_and_quiet_otherwise(capfd):
    settings = {"num_steps": 1_000, "init": jnp.zeros(3), "factors": (1.0,)}
    sampler = iso.resgld(0.05, temperatures=LADDER)
    advice = iso.advise(potential(), sampler, **settings)
    assert capfd.readouterr().err == ""
    shown_too = iso.advise(potential(), sampler, progress=True, **settings)
    shown = capfd.readouterr().err
    assert all(bar in shown for bar in ("pilot", "ladder, 1 of 2", "ladder, 2 of 2", "1000/1000", "gradients/s"))
    # What was found is in the advice, and not said twice.
    assert "Proposed ladder" not in shown
    assert str(advice) == str(shown_too)


def test_a_ladder_that_a_pilot_finds_is_advised_on():
    wells = lambda x: 4.0 * (x[0] ** 2 - 1.0) ** 2 + 0.5 * x[1] ** 2  # noqa: E731
    sampler = iso.resgld(0.02, ladder="auto")
    advice = iso.advise(wells, sampler, num_steps=4_000, init=jnp.zeros(2), search=False, progress=False)
    assert advice.found is not None
    assert advice.rates.shape[1] == advice.found.ladder.num_rungs - 1
    assert advice.rates.min() > 0.1
