"""Periodic work: measurements and refreshes happen at fixed iterations, measurements first."""

import jax.numpy as jnp
import numpy as np
from jax import lax

import isotherm as iso
from isotherm.coupling import Independent
from isotherm.estimators import Plain
from isotherm.foundation.periodic import Periodic
from isotherm.samplers.sampler import Sampler

DATA = np.random.default_rng(0).standard_normal(40).astype(np.float32)


class Anchored(Plain):
    """Keeps the position, the full energy and the number of its last refresh."""

    def periodic(self):
        return (Periodic(6, self._refresh),)

    def init(self, potential, position, model_state):
        return {
            "anchor": jnp.full_like(position, jnp.nan),
            "full": jnp.zeros(()),
            "num_refreshes": jnp.zeros((), jnp.int32),
        }

    def _refresh(self, potential, state, seen):
        return {"anchor": seen.position, "full": seen.full_energy, "num_refreshes": state["num_refreshes"] + 1}

    def measure(self, potential, state, position, model_state, batch, noise):
        # Counts refreshes into the energy, so that the coupling can tell whether it was measured before or after.
        return state["num_refreshes"].astype(jnp.float32), jnp.sum(batch.examples), None


class Measured(Independent):
    """Keeps everything that it measured."""

    def periodic(self, is_exact):
        return (Periodic(4, self._measured),)

    def init(self, num_chains):
        return {
            "seen": jnp.full((10, 3, num_chains), -1.0),
            "batches": jnp.zeros((10, 3)),
            "calls": jnp.zeros((), jnp.int32),
        }

    def _measured(self, state, measure):
        measured = measure(3)
        at = (state["calls"], 0, 0)
        return {
            "seen": lax.dynamic_update_slice(state["seen"], measured.energies[None], at),
            "batches": lax.dynamic_update_slice(state["batches"], measured.prior_energies[None, :, 0], at[:2]),
            "calls": state["calls"] + 1,
        }

    def statistics(self, state):
        return state


def test_periodic_work_is_done_in_order_at_multiples_of_the_iteration():
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, None, DATA, batch_size=8)
    sampler = Sampler(iso.sgld(step_size=1e-3).kernel, 1e-3, estimator=Anchored(), coupling=Measured())
    runs = [
        iso.sample(potential, sampler, num_steps=20, num_chains=2, num_runs=2, init=jnp.zeros(()), block_length=length)
        for length in (None, 1, 7)
    ]
    # Measured at 0, 4, 8, 12, 16; refreshed at 0, 6, 12, 18, after what was measured at the same iteration.
    for run in runs:
        assert (run.stats["calls"] == 5).all()
        np.testing.assert_array_equal(run.stats["seen"][0, :5, 0, 0], [0, 1, 2, 2, 3])
        batches = run.stats["batches"][:, :5].reshape(-1)
        assert len(np.unique(batches)) == len(batches)
        np.testing.assert_array_equal(run.stats["batches"], runs[0].stats["batches"])
        np.testing.assert_array_equal(run.draws, runs[0].draws)
