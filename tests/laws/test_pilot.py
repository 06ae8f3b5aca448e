"""Partitions from a pilot: where energies are, with a first bin that is reached and bins wider than the noise."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.contour import Partition, PartitionSearch
from isotherm_thesis.targets import csgld_mixture

# Short runs of many programs.
IS_OPTIMIZED = False
NORMAL = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))


def partition_of(run):
    stored = run.config["sampler"]["coupling"]["partition"]
    return Partition(stored["low"], stored["width"], stored["num_bins"])


def test_a_pilot_finds_the_energies_and_the_noise():
    noisy = iso.with_noise(NORMAL, energy_scale=0.4, gradient_scale=0.4)
    run = iso.sample(noisy, iso.icsgld(0.02, partition="auto"), num_steps=20_000, num_chains=4, init=jnp.zeros(2))
    partition = partition_of(run)
    assert run.config["sampler"]["coupling"]["noise"] == np.clip(run.config["sampler"]["coupling"]["noise"], 0.3, 0.5)
    assert partition.width >= 0.3
    bins = np.asarray(partition.index(jnp.asarray(run.energies)))
    assert np.mean(bins == 0) == 0.0  # There are bins below the lowest energy, should chains go there.
    assert np.mean(bins == partition.num_bins - 1) < 0.1
    assert 0.5 * run.energies.std() > partition.width


def test_a_run_with_a_pilot_is_right():
    sampler = iso.csgld(0.05, partition="auto")
    settings: dict[str, Any] = {"num_steps": 300_000, "num_runs": 8, "thinning": 20, "burn_in": 30_000}
    run = iso.sample(NORMAL, sampler, init=jnp.zeros(2), **settings)
    assert abs(float(run.expectation(lambda x: jnp.mean(x**2))) - 1) < 0.05
    assert run.effective_sample_size() < 0.9 * run.log_weights.size  # Something was flattened.


def test_theta_may_start_from_the_pilot():
    run = iso.sample(NORMAL, iso.csgld(0.05, partition="auto", initial_theta="pilot"), num_steps=100, init=jnp.zeros(2))
    start = np.asarray(run.config["sampler"]["coupling"]["initial_theta"])
    assert start.sum() == np.clip(start.sum(), 0.999, 1.001)
    # Energies in the plane are exponential.
    edges = np.concatenate([[-np.inf], partition_of(run).edges, [np.inf]])
    expected = np.diff(1 - np.exp(-np.maximum(edges, 0.0)))
    assert 0.5 * np.abs(start - expected).sum() < 0.3


def test_a_pilot_checks_a_given_partition():
    target = csgld_mixture()
    given = Partition(2.0, 1.0, 50)
    run = iso.sample(
        target.potential, iso.csgld(0.1, partition=PartitionSearch(200, given)), num_steps=100, init=target.init
    )
    assert vars(partition_of(run)) == vars(given)


def test_a_resumed_run_has_the_partition_of_its_pilot(tmp_path):
    sampler = iso.csgld(0.05, partition="auto")
    whole = iso.sample(NORMAL, sampler, num_steps=400, init=jnp.zeros(2))
    iso.sample(NORMAL, sampler, num_steps=300, init=jnp.zeros(2), out=tmp_path / "run")
    longer = iso.resume(tmp_path / "run", NORMAL, sampler, num_steps=400)
    assert vars(partition_of(longer)) == vars(partition_of(whole))
    np.testing.assert_array_equal(np.asarray(longer.draws), whole.draws)
    np.testing.assert_array_equal(np.asarray(longer.log_weights), whole.log_weights)


def test_summaries_warn():
    bold = iso.csgld(0.05, **iso.thesis.csgld(partition=(-9.0, 3.0, 40), field="psi"))
    low = iso.sample(NORMAL, bold, num_steps=20_000, init=jnp.zeros(2))
    assert "multiplier sat at its bound" in str(low.summary())
    high = iso.sample(NORMAL, iso.csgld(0.05, partition=(0.01, 0.3, 9)), num_steps=5_000, init=jnp.zeros(2))
    assert "open top bin" in str(high.summary())
    noisy = iso.with_noise(NORMAL, energy_scale=3.0)
    loud = iso.sample(noisy, iso.csgld(0.05, partition="auto", zeta=1.0), num_steps=20_000, init=jnp.zeros(2))
    assert "Energy noise makes weights wrong by a factor" in str(loud.summary())
    fine = iso.sample(NORMAL, iso.csgld(0.05, partition=(0.3, 9.0, 20)), num_steps=20_000, init=jnp.zeros(2))
    for words in ("multiplier sat", "open top bin", "Energy noise", "A few draws"):
        assert words not in str(fine.summary())
    few = fine.reweighted(0.05)
    assert "A few draws carry the weight" in str(few.summary())


def test_bins_below_all_energies_do_no_harm():
    """The first thirty bins cannot be reached; without the rule for empty bins the one above them pulls with twice the force."""
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 8, "burn_in": 4_000, "thinning": 20}
    bins = Partition(-15.0, 0.5, 50)
    runs = {
        step: iso.sample(NORMAL, iso.icsgld(0.05, partition=bins, empty_step=step), init=jnp.zeros(2), **settings)
        for step in (5.0, None)
    }
    shares = {step: float(np.mean(run.stats["num_bounded"])) / run.num_steps for step, run in runs.items()}
    assert shares[5.0] < 0.1
    assert shares[None] > 0.2
    # Either way weights undo what was done.
    for run in runs.values():
        assert abs(float(run.expectation(lambda x: jnp.mean(x**2))) - 1) < 0.06


def test_theta_moves_where_the_bin_below_is_empty():
    """Most energies are in the lowest bin that can be reached: with the Psi of the empty one below it would hardly move."""
    sampler = iso.icsgld(0.05, partition=Partition(-10.0, 2.0, 12), gain=0.02)
    settings: dict[str, Any] = {"num_steps": 20_000, "num_chains": 8, "thinning": 100}
    run = iso.sample(NORMAL, sampler, init=jnp.zeros(2), **settings)
    # Energies are exponential: 1 - exp(-2) of them are in the bin from 0 to 2.
    assert abs(float(run.stats["theta"][0, 6]) - (1 - np.exp(-2))) < 0.1


def test_weights_of_a_theta_that_has_not_settled_are_named():
    settings: dict[str, Any] = {"num_steps": 4_000, "num_chains": 8, "init": lambda key: jax.random.normal(key, (4,))}
    early = iso.sample(NORMAL, iso.icsgld(0.02, partition=(0.0, 12.0, 40), gain=1e-3), **settings)
    assert "theta had not settled" in str(early.summary())
    late = iso.sample(NORMAL, iso.icsgld(0.02), **{**settings, "num_steps": 40_000, "burn_in": 8_000})
    assert "settled" not in str(late.summary())


def test_a_pilot_waits_until_energies_no_longer_fall():
    """From the far side of a long slope 2,000 iterations are not enough to come down."""
    settings: dict[str, Any] = {"num_steps": 40_000, "num_chains": 4, "burn_in": 30_000, "thinning": 10}
    energy = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))
    run = iso.sample(energy, iso.icsgld(2e-4), init=jnp.full(20, 12.0), **settings)
    partition = partition_of(run)
    bins = np.asarray(partition.index(jnp.asarray(run.energies)))
    assert np.all(bins > 0)
    assert partition.width < 8.0  # Energies of the law have a spread of 3.2; on the way down one of hundreds.
    assert float(np.max(run.stats["highest_multiplier"] - run.stats["lowest_multiplier"])) > 0.2
