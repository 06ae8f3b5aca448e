"""Silence has a bound: few draws, disagreement, divergence, starts, units, and draws that are too cold."""

import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.run.standard_errors import Stretches, checks_of, errors_of


def energy(x):
    return 0.5 * jnp.sum(x**2)


def dispersed(key):
    return 2.0 * jax.random.normal(key, (2,))


def slow_chains(seed, correlation, num_chains=8, length=128):
    """Stretches of autoregressive chains, for many seeds at once, as `Errors`."""
    rng = np.random.default_rng(seed)
    draws = np.zeros((num_chains, length))
    value = rng.standard_normal(num_chains)
    for k in range(length):
        value = correlation * value + np.sqrt(1 - correlation**2) * rng.standard_normal(num_chains)
        draws[:, k] = value
    stretches = Stretches(np.ones_like(draws), draws[..., None], draws[..., None] ** 2)
    return errors_of(stretches, np.zeros((num_chains, length)))


@pytest.mark.parametrize("correlation", [0.9, 0.97, 0.99, 0.997])
def test_no_large_r_hat_and_no_few_draws_are_silent(correlation):
    for seed in range(60):
        errors = slow_chains(seed, correlation)
        if errors.r_hat[0] > 1.1 or errors.effective_draws[0] < 50:
            assert checks_of(errors)


def test_many_draws_of_chains_that_agree_are_silent():
    found = [checks_of(slow_chains(seed, 0.0)) for seed in range(60)]
    assert sum(bool(notes) for notes in found) <= 1


def test_few_effective_draws_are_counted():
    notes = checks_of(slow_chains(3, 0.95, length=128))
    assert any("effective draws" in str(note) or "error is unknown" in str(note) for note in notes)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_units_of_energies_change_nothing(unit):
    scaled = lambda x: unit * energy(x)  # noqa: E731
    settings: dict[str, Any] = {
        "num_steps": 40_000,
        "num_chains": 8,
        "thinning": 10,
        "burn_in": 1_000,
        "init": dispersed,
    }
    run = iso.sample(scaled, iso.sgld(0.05 / unit, temperature=unit), **settings)
    # It widens a well by 1 / (1 - .025).
    assert run.bias is not None
    np.testing.assert_allclose(run.bias.relative().variance, 0.025, atol=0.01)
    assert run.summary().notes[1:] == []


def test_draws_that_are_too_cold_are_not_squared():
    """A kernel that takes more gradient noise off than there is makes half of the variance."""
    sampler = iso.sghmc(0.01, friction=0.1, gradient_variance=10.0)
    settings: dict[str, Any] = {
        "num_steps": 100_000,
        "num_chains": 16,
        "thinning": 10,
        "burn_in": 1_000,
        "init": dispersed,
    }
    found = iso.sample(energy, sampler, **settings).estimate(lambda x: x[0] ** 2)
    # b = V eps / 2 is half of the friction, and so is what is injected.
    assert found.mean == pytest.approx(0.5, abs=0.02)
    assert found.bias == pytest.approx(-0.5, abs=0.1)


def with_gap(x):
    """Infinite between 1.5 and 2, and finite again beyond."""
    return jnp.where((x[0] > 1.5) & (x[0] < 2.0), jnp.inf, 0.5 * x[0] ** 2)


def test_draws_after_a_divergence_have_no_weight():
    settings: dict[str, Any] = {"num_steps": 2_000, "num_chains": 8, "init": jnp.zeros(1)}
    with pytest.warns(iso.DivergenceWarning):
        run = iso.sample(with_gap, iso.sgld(0.3), **settings)
    when = run.stats["diverged_at"]
    assert np.any((when >= 0) & (when < 1_000))
    for chain, first in enumerate(when):
        is_kept = np.isfinite(run.log_weights[chain])
        assert np.all(is_kept[: first if first >= 0 else None])
        if first >= 0:
            assert not np.any(is_kept[first:])
    # Some energy became finite again.
    is_after = (when >= 0)[:, None] & (np.arange(run.num_draws) >= when[:, None])
    assert np.any(np.isfinite(run.energies) & is_after)


def test_a_run_whose_chains_all_diverged_does_not_depend_on_its_blocks():
    settings: dict[str, Any] = {"num_steps": 4_000, "num_chains": 2, "init": jnp.zeros(1), "burn_in": 5}
    found = []
    for length in (7, 64, 1_000):
        with pytest.warns(iso.DivergenceWarning):
            found.append(iso.sample(with_gap, iso.sgld(0.3), block_length=length, **settings))
    assert found[0].num_steps == max(found[0].stats["diverged_at"]) + 1
    for other in found[1:]:
        assert other.num_steps == found[0].num_steps
        np.testing.assert_array_equal(other.draws, found[0].draws)
        np.testing.assert_array_equal(other.log_weights, found[0].log_weights)


def test_a_mass_of_one_has_no_error_of_rounding():
    settings: dict[str, Any] = {"num_steps": 3_000, "num_chains": 7, "init": dispersed}
    found = iso.sample(energy, iso.sgld(0.1), **settings).estimate_mode_masses(np.array([[0.0, 0.0], [90.0, 0.0]]))
    assert found.mean[0] == pytest.approx(1.0)
    assert np.isnan(found.std_error).all()
    same = "The error is unknown: all draws have the same value. An event in none or all of the draws"
    assert any(note.startswith(same) for note in found.notes)


def two_wells(x):
    return -jnp.logaddexp(-0.5 * jnp.sum((x - 3.0) ** 2), -0.5 * jnp.sum((x + 3.0) ** 2))


def narrow_and_broad(x):
    """A mode of mass .9 and width .1 at 6, and a broad one at 0, in five dimensions."""
    narrow = jnp.log(0.9) - 50.0 * jnp.sum((x - 6.0) ** 2) + 5.0 * jnp.log(10.0)
    return -jnp.logaddexp(narrow, jnp.log(0.1) - 0.5 * jnp.sum(x**2))


def test_replicas_that_remember_are_named():
    """Two replicas start in either mode, and go up and down a ladder whose top does not forget."""

    def start(key):
        broad, narrow = jax.random.normal(key, (5,)), 6.0 + 0.1 * jax.random.normal(key, (5,))
        return jnp.where(jax.random.bernoulli(jax.random.fold_in(key, 1)), broad, narrow)

    ladder = iso.resgld(2e-4, temperatures=(1.0, 1.05, 1.1))
    run = iso.sample(narrow_and_broad, ladder, num_steps=200_000, num_ladders=4, thinning=20, burn_in=2_000, init=start)
    assert np.sum(run.stats["round_trips"]) > 1_000
    beginning = "Replicas make round trips, but each returns to its own region"
    assert any(note.startswith(beginning) for note in run.summary().notes)
    assert any(note.startswith(beginning) for note in run.estimate_mode_masses(np.array([[0.0] * 5, [6.0] * 5])).notes)


def test_replicas_that_forget_are_not():
    ladder = iso.resgld(0.05, temperatures=(1.0, 2.0, 4.0, 8.0, 16.0))
    for seed in range(3):
        settings: dict[str, Any] = {
            "num_steps": 60_000,
            "num_ladders": 4,
            "thinning": 10,
            "burn_in": 2_000,
            "seed": seed,
        }
        run = iso.sample(two_wells, ladder, init=lambda key: 5.0 * jax.random.normal(key, (2,)), **settings)
        assert run.summary().notes[1:] == []


def test_a_few_round_trips_do_not_show_that_the_top_forgets():
    ladder = iso.resgld(0.05, temperatures=(1.0, 2.0, 4.0, 8.0, 16.0))
    run = iso.sample(two_wells, ladder, num_steps=100, init=lambda key: 5.0 * jax.random.normal(key, (2,)))
    wanted = ("too few to tell whether its hottest rung mixes", "No replica completed a round trip")
    assert any(word in note for note in run.summary().notes for word in wanted)


@pytest.mark.parametrize("sampler", [iso.sgld(0.05), iso.icsgld(0.05)], ids=["sgld", "icsgld"])
def test_starts_that_are_close_together_are_named(sampler):
    close = lambda key: 0.1 * jax.random.normal(key, (2,))  # noqa: E731
    notes = {}
    for name, start in (("close", close), ("dispersed", dispersed)):
        run = iso.sample(energy, sampler, num_steps=20_000, num_chains=8, burn_in=2_000, thinning=5, init=start)
        notes[name] = [note for note in run.summary().notes if note.startswith("Chains started closer together")]
    assert (len(notes["close"]), len(notes["dispersed"])) == (1, 0)


def test_all_notes_advise_one_step_size():
    def stiff(x):
        return 0.5 * (jnp.sum(x[:2] ** 2) + 40.0 * jnp.sum(x[2:] ** 2))

    settings: dict[str, Any] = {"num_steps": 20_000, "num_chains": 8, "burn_in": 1_000, "thinning": 5}
    run = iso.sample(stiff, iso.sgld(0.03), init=lambda key: jax.random.normal(key, (4,)), **settings)
    advised = set(re.findall(r"`step_size` to about ([0-9.e-]+[0-9])", str(run.summary())))
    assert len(advised) == 1
    again = iso.sample(stiff, iso.sgld(float(advised.pop())), init=lambda key: jax.random.normal(key, (4,)), **settings)
    assert not any("step_size" in note for note in again.summary().notes)


def test_one_visit_to_far_blobs_shows_in_the_energy_and_the_distance():
    """A visit to both sides in turn leaves the means of all coordinates where they are."""
    settings: dict[str, Any] = {"num_steps": 4_000, "num_chains": 8, "burn_in": 100, "thinning": 1, "init": dispersed}
    quiet = iso.sample(energy, iso.sgld(0.5), measure_bias=False, **settings)
    rng = np.random.default_rng(0)
    draws = rng.standard_normal(quiet.draws.shape)
    beginning = "Of the energy, the distance from the mean or a principal direction"
    found = {}
    for name, visit in (("never", 0), ("once", 40)):
        seen = draws.copy()
        seen[3, 2_000 : 2_000 + visit, 0] = 30.0 * (-1.0) ** np.arange(visit)
        energies = 0.5 * np.sum(seen**2, axis=-1)
        run = dataclasses.replace(quiet, draws=seen, energies=energies, bias_probe=None)
        found[name] = [note for note in run.summary().notes if note.startswith(beginning)]
    assert found["never"] == []
    assert len(found["once"]) > 0


def test_particles_in_several_wells_are_named():
    """Masses of .8 and .2, which particles that start evenly do not find."""

    def wells(x):
        return -jnp.logaddexp(
            jnp.log(0.8) - 0.5 * jnp.sum((x - 6.0) ** 2), jnp.log(0.2) - 0.5 * jnp.sum((x + 6.0) ** 2)
        )

    start = lambda key: 6.0 * jax.random.normal(key, (2,))  # noqa: E731
    settings: dict[str, Any] = {"num_steps": 2_000, "num_chains": 60, "thinning": 100, "init": start}
    beginning = "Particles lie in 2 wells and do not move between them"
    run = iso.sample(wells, iso.svgd(0.3), **settings)
    assert any(note.startswith(beginning) for note in run.summary().notes)
    assert any(note.startswith(beginning) for note in run.estimate(lambda x: x).notes)
    one = iso.sample(energy, iso.svgd(0.3), **settings)
    assert not any("wells that are far apart" in note for note in one.summary().notes)


def test_a_mean_of_a_descent_is_no_expectation():
    run = iso.sample(energy, iso.msgd(0.05), num_steps=2_000, num_chains=4, init=dispersed)
    assert any(note.startswith("The sampler follows no distribution") for note in run.estimate(lambda x: x).notes)


def test_estimates_carry_what_is_wrong_with_the_distribution():
    adapting = iso.sample(energy, iso.psgld(0.05), num_steps=4_000, num_chains=4, init=dispersed)
    assert any(note.startswith("The preconditioner went on adapting") for note in adapting.estimate(lambda x: x).notes)


def test_collected_functions_have_no_bias_and_are_told():
    run = iso.sample(energy, iso.sgld(0.5), num_steps=4_000, num_chains=4, init=dispersed, collect=lambda x: x[:1])
    wanted = "The bias of the step size and of mini-batches is not measured"
    assert any(note.startswith(wanted) for note in run.summary().notes)
    chosen = iso.sample(energy, iso.sgld(0.05), num_steps=4_000, num_chains=4, init=dispersed, measure_bias=False)
    assert not any(note.startswith(wanted) for note in chosen.summary().notes)


@pytest.mark.parametrize(
    ("spread", "num_chains", "is_named"), [(0.25, 4, False), (0.1, 4, True), (0.25, 16, True), (0.5, 16, False)]
)
def test_few_starts_may_be_close_by_chance_and_many_not(spread, num_chains, is_named):
    """Of four starts with the spread of the draws the variance is below a 16th of it in one run of 20, of 16 starts never."""
    starts = spread * np.where(np.arange(num_chains) % 2, 1.0, -1.0)[:, None]
    run = iso.sample(energy, iso.sgld(0.1), num_steps=4_000, burn_in=200, init=iso.per_chain(jnp.asarray(starts)))
    assert any(note.startswith("Chains started closer together") for note in run.summary().notes) == is_named
