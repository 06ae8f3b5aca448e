"""Energies that are not finite: what is blamed for them, and what is told."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.contour import PartitionSearch, uniform_partition


def falls(x):
    return -jnp.sum(x**2)


def walled(x):
    return jnp.where(jnp.abs(x[0]) > 2.8, jnp.nan, 0.5 * jnp.sum(x**2))


def slides(x):
    """A well with an edge, over which energies fall to minus infinity."""
    return jnp.where(jnp.abs(x[0]) > 3.0, -50.0 * jnp.sum(x**2), 0.5 * jnp.sum(x**2))


GIVEN = PartitionSearch(partition=uniform_partition(0.0, 5.0, 10))


@pytest.mark.parametrize(("step_size", "potential"), [(0.03, falls), (1.0, lambda x: jnp.sum(x**4)), (10.0, falls)])
@pytest.mark.parametrize("sampler", ["icsgld", "awsgld", "given"])
def test_a_pilot_that_diverges_says_so(sampler, step_size, potential):
    made = {
        "icsgld": lambda: iso.icsgld(step_size),
        "awsgld": lambda: iso.awsgld(step_size, partition="auto"),
        "given": lambda: iso.icsgld(step_size, partition=GIVEN),
    }[sampler]()
    message = (
        r"Every chain of the pilot diverged \(energy not finite\) within its 2,000 iterations\. Lower `step_size`\."
    )
    with pytest.raises(iso.DivergenceError, match=message):
        iso.sample(potential, made, num_steps=100, num_chains=4, init=np.ones(2, np.float32))


def test_a_pilot_that_lost_some_chains_goes_by_the_others():
    init = iso.per_chain(np.random.default_rng(0).normal(size=(8, 2)).astype(np.float32))
    with warnings.catch_warnings():
        # Those of NumPy, such as means of nothing, are errors; those of the run itself are not.
        warnings.simplefilter("ignore", iso.DivergenceWarning)
        run = iso.sample(slides, iso.icsgld(0.01), num_steps=200, init=init, seed=2)
    partition = run.config["sampler"]["coupling"]["partition"]
    assert 0.2 < partition["width"] < 1.0


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_numbers_in_the_data_that_are_lost_are_blamed_and_not_the_start(is_wrapped):
    data = np.ones((20, 2), np.float32)
    data[3, 1] = data[5, 0] = np.nan
    potential = iso.from_likelihood(lambda w, x: -jnp.sum((x - w) ** 2, axis=-1), None, data)
    potential = iso.with_noise(potential, energy_scale=1.0, gradient_scale=1.0) if is_wrapped else potential
    with pytest.raises(
        ValueError, match=r"`data` must be finite numbers; got 2 that are not \(NaN, infinity\)\. Remove"
    ):
        iso.sample(potential, iso.sgld(0.01), num_steps=10, init=np.zeros(2, np.float32))


def test_starts_without_an_energy_are_still_blamed():
    with pytest.raises(ValueError, match=r"`init` must be where the energy is finite"):
        iso.sample(walled, iso.sgld(0.01), num_steps=10, init=np.full(2, 9.0, np.float32))


def test_the_error_of_a_single_draw_is_unknown():
    settings = {"num_steps": 100, "thinning": 100, "init": np.ones(2, np.float32)}
    run = iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.01), num_chains=1, **settings)
    assert run.num_draws == 1
    found = run.estimate(lambda x: x)
    assert np.isnan(found.std_error).all()
    assert np.isnan(found.effective_draws).all()
    assert any("The error is unknown: there is one draw." in note for note in found.notes)
    rows = run.summary().rows
    assert np.isnan([row.std_error for row in rows]).all()
    assert np.isnan([row.effective_draws for row in rows]).all()
    several = iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.01), num_chains=8, **settings)
    constant = several.estimate(lambda x: 1.0 + 0 * x[0])
    assert np.isnan(constant.std_error)
    assert np.isnan(constant.effective_draws)
    assert any("all draws have the same value" in note for note in constant.notes)
