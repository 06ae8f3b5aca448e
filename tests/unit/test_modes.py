"""Masses of modes that draws were never in."""

import jax.numpy as jnp
import numpy as np

import isotherm as iso


def test_the_error_of_a_mode_that_nobody_met_is_unknown():
    bowl = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    run = iso.sample(bowl, iso.sgld(0.1), num_steps=2_000, num_chains=4, init=jnp.zeros(2), progress=False)
    found = run.estimate_mode_masses(np.array([[-1.0, 0.0], [1.0, 0.0], [1e6, 1e6]]))
    assert found.mean[2] == 0.0
    assert np.isnan(found.std_error).tolist() == [False, False, True]
    assert any("An event in none or all of the draws" in note for note in found.notes)
