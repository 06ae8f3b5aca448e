"""Ladders from a pilot: barriers of known laws, rungs of equal rejection, and runs that need no other settings."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.pilots import ladder as ladder_search
from isotherm.pilots.ladder import place_rungs

DIMENSION = 20
NORMAL = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))


def two_modes(apart):
    def energy(x):
        pair = jnp.log(0.7) - 0.5 * (x[0] + apart) ** 2, jnp.log(0.3) - 0.5 * (x[0] - apart) ** 2
        return -jnp.logaddexp(*pair) + 0.5 * jnp.sum(x[1:] ** 2)

    return energy


def test_the_barrier_of_a_normal_law_is_that_of_its_energies():
    """Energies are T times a Gamma variate of shape d / 2, so that the local barrier is T E|G - G'| / 2."""
    draws = np.random.default_rng(0).gamma(DIMENSION / 2, size=(2, 1_000_000))
    expected = 0.5 * np.mean(np.abs(draws[0] - draws[1])) * np.log(2.0)
    sampler = iso.resgld(0.02, temperatures=(1.0, 2.0))
    advice = iso.advise(NORMAL, sampler, num_steps=20_000, init=jnp.zeros(DIMENSION), factors=(1.0,))
    assert advice.found is not None
    assert advice.found.is_mixing
    # One mode needs no more than twice the temperature.
    assert advice.found.ladder.temperatures[-1] == pytest.approx(2.0)
    assert advice.found.barrier == pytest.approx(expected, rel=0.05)
    assert "Proposed ladder" in str(advice)


def test_rungs_have_equal_rejections():
    """For the local barrier c T they are geometric; noise asks for more of them."""
    temperatures = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    found, barrier = place_rungs(temperatures, 1.5 * temperatures, 0.0)
    assert barrier == pytest.approx(1.5 * np.log(16.0), rel=1e-3)
    np.testing.assert_allclose(found, np.geomspace(1.0, 16.0, len(found)), rtol=1e-2)
    assert len(found) == np.ceil(2 * barrier) + 1
    noisy, _ = place_rungs(temperatures, 1.5 * temperatures, 6.0)
    assert len(noisy) > len(found)


def test_a_run_with_nothing_but_a_step_size_finds_both_modes(tmp_path):
    energy, start = two_modes(5.0), jnp.zeros(4).at[0].set(-5.0)
    settings: dict[str, Any] = {"num_steps": 60_000, "burn_in": 2_000, "thinning": 20, "num_ladders": 8, "init": start}
    run = iso.sample(energy, iso.resgld(0.05, ladder="auto"), out=tmp_path / "run", **settings)
    found = run.estimate(lambda x: (x[0] > 0).astype(float))
    assert abs(float(found.mean) - 0.3) < 4 * float(found.std_error) + 0.01
    assert float(found.std_error) < 0.05
    assert np.all(np.asarray(run.stats["swap_rate"]) > 0.2)
    # A ladder that is much too cool does not.
    cool = iso.sample(energy, iso.resgld(0.05, temperatures=(1.0, 1.5)), **settings)
    assert float(cool.expectation(lambda x: x[0] > 0)) < 0.1
    longer = iso.resume(tmp_path / "run", energy, iso.resgld(0.05, ladder="auto"), num_steps=60_100)
    np.testing.assert_array_equal(np.asarray(longer.draws)[:, : run.num_draws], np.asarray(run.draws))


def test_a_ladder_that_is_to_be_found_cannot_be_used_by_hand():
    with pytest.raises(
        ValueError,
        match=r"`ladder` must be known; got a search that needs a pilot. Run the pilot: `samp",
    ):
        iso.resgld(0.05, ladder="auto").init(NORMAL, jnp.zeros(2))
    with pytest.raises(ValueError, match="`ladder` must be one of 'auto'"):
        iso.resgld(0.05, ladder="best")


def pilot(step_size, num_steps):
    return iso.resgld(step_size, ladder=iso.exchange.LadderSearch(num_steps))


def test_a_search_shows_what_it_does_and_what_it_found(capsys):
    """One mode needs no ladder: the run goes on, and the plain sampler is named."""
    settings: dict[str, Any] = {"num_steps": 10, "init": jnp.zeros(2)}
    iso.sample(NORMAL, pilot(0.1, 2_000), progress=True, **settings)
    told = capsys.readouterr().err
    assert "Looking for a ladder: 8 chains at each of 11 temperatures, 2,000 iterations, twice." in told
    assert all(f"ladder, {part} of 2" in told for part in (1, 2))
    assert "Proposed ladder" in told
    assert "One temperature suffices: overdispersed chains agree at the target. Use `iso.sgld(0.1)`." in told
    iso.sample(NORMAL, pilot(0.1, 2_000), progress=False, **settings)
    assert not capsys.readouterr().err
    apart = iso.advise(two_modes(5.0), iso.resgld(0.05), num_steps=2_000, init=jnp.full(1, -5.0), factors=(1.0,))
    assert apart.found is not None
    assert apart.found.plain_name is None
    assert "One temperature suffices" not in str(apart)


@pytest.mark.parametrize(
    ("step_size", "num_steps", "message"),
    [
        (
            0.2,
            100,
            r"finite energies at twice the temperature; got 0.2. Lower it, or stay at one temperature with `iso.sgld\(0.2\)`",
        ),
        (0.4, 100, r"finite energies at the target's temperature; got 0.4. Lower it."),
        # Only from where hotter chains came to be.
        (0.08, 400, r"finite energies at the target's temperature; got 0.08. Lower it."),
    ],
)
def test_steps_that_are_too_long_for_hot_chains_are_refused(step_size, num_steps, message):
    with pytest.raises(ValueError, match=message):
        iso.sample(lambda x: jnp.sum(x**4) / 4, pilot(step_size, num_steps), num_steps=10, init=jnp.zeros(1))


def test_stopping_a_search_stops_the_run(monkeypatch):
    watch = ladder_search.watch
    monkeypatch.setattr(
        ladder_search, "watch", lambda *given: [dataclasses.replace(run, num_steps=9) for run in watch(*given)]
    )
    with pytest.raises(KeyboardInterrupt):
        iso.sample(NORMAL, pilot(0.1, 100), num_steps=10, init=jnp.zeros(1))


def test_a_ladder_is_found_for_constrained_parameters():
    """A Gamma law of shape 2, behind a transform: hot rungs need no temperature of their own in it."""
    transforms = iso.transforms
    inside = {"rate": transforms.positive(), "shares": transforms.simplex()}
    problem = transforms.constrain(lambda x: jnp.log(x["rate"]) - x["rate"] + jnp.sum(jnp.log(x["shares"])), inside)
    init = {"rate": 1.0, "shares": jnp.array([0.2, 0.3, 0.5])}
    sampler = iso.resgld(0.02, ladder=iso.exchange.LadderSearch(500))
    run = iso.sample(problem, sampler, num_steps=20_000, init=init, progress=False)
    found = run.estimate(lambda x: x["rate"])
    assert found.mean == pytest.approx(2.0, abs=5 * float(found.std_error))
    np.testing.assert_allclose(np.asarray(run.draws["shares"]).sum(axis=-1), 1.0, atol=1e-5)
