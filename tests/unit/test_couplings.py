"""A user's own coupling moves the chains, and its check reaches the summary of the run."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.coupling import Coupling
from isotherm.foundation.checks import Check, Severity
from isotherm.kernels import Move


class Doubled(Coupling):
    """Moves all chains at twice the temperature, and says so if that raises their energies."""

    def update(self, state, random_numbers, inputs):
        ones = jnp.ones_like(inputs.energies)
        return state, Move(inputs.step_size * ones, 2.0 * inputs.temperature * ones, ones, ones)

    def diagnose(self, run):
        mean = float(np.mean(run.energies))
        fault = Check(
            "doubled", "mean energy", Severity.FAULT, f"Too hot: {mean:.0f}.", "Cool it.", {"mean": mean}, 1.5
        )
        return [fault] if mean > 1.5 else []


def energy(x):
    return 0.5 * x @ x


@pytest.mark.parametrize(("temperature", "is_fired"), [(1.0, True), (0.5, False)])
def test_the_check_of_a_users_coupling_is_in_the_summary_if_it_fires(temperature, is_fired):
    sampler = iso.Sampler(iso.kernels.SGLD(), 0.1, temperature, coupling=Doubled())
    run = iso.sample(energy, sampler, num_steps=20_000, num_chains=4, burn_in=100, init=jnp.zeros(2))
    # Two coordinates have a mean energy of the temperature at which they move.
    assert np.mean(run.energies) == pytest.approx(2.0 * temperature, rel=0.1)
    assert ("Too hot: 2. Cool it." in str(run.summary())) == is_fired
    own = [check for check in run.checks if check.name == "doubled"]
    assert len(own) == is_fired
    for check in own:
        assert check.severity == Severity.FAULT
        assert check.threshold == 1.5
        assert check.numbers == {"mean": pytest.approx(2.0, rel=0.1)}


def test_the_check_of_a_users_coupling_is_stored_with_the_run(tmp_path):
    sampler = iso.Sampler(iso.kernels.SGLD(), 0.1, coupling=Doubled())
    iso.sample(energy, sampler, num_steps=2_000, num_chains=4, init=jnp.zeros(2), out=tmp_path / "run")
    assert "doubled" in [check.name for check in iso.load(tmp_path / "run").checks]
