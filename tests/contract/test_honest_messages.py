"""What a run says when it cannot be right: no draws, no progress, folders in use, seeds, and numbers that are too coarse."""

import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.foundation.errors import DivergenceError, DivergenceWarning
from isotherm.foundation.randomness import seed_key

ENERGY = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
NORMAL = iso.from_energy(ENERGY)

CHILD = """
import sys
import jax.numpy as jnp
import isotherm as iso
def wait(status):
    print("running", flush=True)
    sys.stdin.readline()
iso.sample(lambda x: 0.5 * jnp.sum(x**2), iso.sgld(0.1), num_steps=2000, block_length=1000, init=jnp.zeros(1), out=sys.argv[1],
           callback=wait, progress=False)
"""


def test_a_second_process_is_kept_out_of_a_folder(tmp_path):
    folder = tmp_path / "run"
    command = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "running\n"
            with pytest.raises(ValueError, match="`out` must be a folder that no other run is writing to"):
                iso.sample(NORMAL, iso.sgld(0.1), seed=1, out=folder, num_steps=2_000, init=jnp.zeros(1))
            with pytest.raises(ValueError, match="`folder` must be a folder that no other run is writing to"):
                iso.resume(folder, NORMAL, iso.sgld(0.1))
        finally:
            child.kill()
    # The lock of a process that was killed is gone with it.
    resumed = iso.resume(folder, ENERGY, iso.sgld(0.1))
    assert resumed.num_steps == 2_000


def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
    with pytest.raises(ValueError, match=r"`out` must be a folder that can be written to; got .*Permission denied"):
        iso.sample(NORMAL, iso.sgld(0.1), num_steps=10, init=jnp.zeros(1), out=tmp_path / "run")


def test_seeds_differ_in_all_their_bits():
    def draws(seed):
        return np.asarray(iso.sample(NORMAL, iso.sgld(0.1), num_steps=20, init=jnp.zeros(1), seed=seed).draws)

    seeds = (0, 1, 1 << 32, (1 << 32) + 1, (1 << 64) - 1)
    found = [draws(seed) for seed in seeds]
    assert len({one.tobytes() for one in found}) == len(seeds)
    for seed in (0, 7, (1 << 32) - 1):
        own, usual = (jax.random.key_data(key) for key in (seed_key(seed), jax.random.key(seed, impl="threefry2x32")))
        np.testing.assert_array_equal(own, usual)
    # Keys of both kinds.
    np.testing.assert_array_equal(draws(jax.random.PRNGKey(3)), draws(jax.random.key(3)))
    for seed in (1 << 64, -1, 1.5):
        with pytest.raises(ValueError, match="`seed` must be an integer"):
            draws(seed)
    with pytest.raises(ValueError, match="`seed` must be an integer below 2"):
        iso.minimize(lambda x: jnp.sum(x**2), bounds=[(-1.0, 1.0)], seed=1 << 64)


def test_chains_that_all_diverge_before_the_first_draw_are_told():
    steep = lambda x: jnp.sum(x**4)  # noqa: E731
    with pytest.raises(
        DivergenceError, match=r"Every chain diverged \(energy not finite\) before the first draw.*`box="
    ):
        iso.sample(steep, iso.sgld(10.0), num_steps=1_000, burn_in=500, num_chains=2, init=jnp.ones(1))
    with pytest.raises(ValueError, match="`callback` must be such that the run continues to its first draw"):
        iso.sample(
            NORMAL, iso.sgld(0.1), num_steps=99, burn_in=9, block_length=5, init=jnp.ones(1), callback=lambda _: True
        )


def test_a_region_without_energies_is_told_of_the_box():
    half = lambda x: jnp.sum(jnp.where(x < -1.0, jnp.nan, x**2))  # noqa: E731
    with pytest.warns(DivergenceWarning, match=r"no step is small enough: keep chains away with `box=\(low, high\)`"):
        iso.sample(half, iso.sgld(0.01), num_steps=20_000, thinning=100, init=jnp.zeros(1))
    inside = iso.sample(half, iso.sgld(0.01, box=(-1.0, 5.0)), num_steps=5_000, init=jnp.zeros(1))
    assert np.isfinite(inside.draws).all()
    assert (inside.stats["diverged_at"] < 0).all()


def test_more_iterations_than_numbers_hold_are_not_told_to_resume():
    with pytest.raises(ValueError, match=r"`num_steps` must be at most 1073741823; got .*init=iso.per_chain"):
        iso.sample(NORMAL, iso.sgld(0.1), num_steps=1 << 31, init=jnp.zeros(1))


def test_a_thinning_longer_than_the_run_is_refused():
    with pytest.raises(ValueError, match="`thinning` must be at most `num_steps`, 10; got 20"):
        iso.sample(NORMAL, iso.sgld(0.1), num_steps=10, thinning=20, init=jnp.zeros(1))


def test_exact_energies_are_not_told_of_noise():
    far = iso.resgld(0.05, temperatures=(1.0, 1e4))
    apart = iso.per_chain(jnp.array([[0.0] * 40, [90.0] * 40]))
    run = iso.sample(NORMAL, far, num_steps=200, init=apart)
    notes = str(run.summary())
    assert "never swapped" in notes
    assert "noise" not in notes
    assert "correction_factor" not in notes
    noisy = iso.sample(iso.with_noise(NORMAL, energy_scale=1.0), far, num_steps=200, init=apart)
    assert "reduce the energy noise" in str(noisy.summary())


def test_energies_that_are_too_large_for_their_type_are_told():
    for offset, is_told in ((0.0, False), (4e6, True)):
        potential = iso.from_energy(lambda x, c=offset: 0.5 * jnp.sum(x**2) + c)
        run = iso.sample(potential, iso.resgld(0.1), num_steps=500, init=jnp.zeros(2))
        assert ("is noise in swaps and weights" in str(run.summary())) == is_told
        # A plain sampler compares no energies.
        assert "rounding" not in str(iso.sample(potential, iso.sgld(0.1), num_steps=500, init=jnp.zeros(2)).summary())


def test_exact_energies_are_measured_once():
    """Nothing is learned from the same energy again: blocks do not end at every measurement."""
    calls = []
    often = iso.resgld(0.1, measure_every=10)
    run = iso.sample(
        NORMAL, often, num_steps=1_000, init=jnp.zeros(2), callback=lambda status: calls.append(status.iteration)
    )
    assert len(calls) < 30
    assert run.stats["num_swaps"].sum() > 100
    np.testing.assert_array_equal(run.stats["variance_of_difference"], 0.0)


@pytest.mark.parametrize(
    "sampler",
    [iso.sgd(0.02), iso.msgd(0.002), iso.sgld(0.02, temperature=0.0), iso.deo_star_msgd((0.001, 0.02), num_replicas=4)],
    ids=lambda sampler: sampler.name,
)
def test_samplers_that_follow_no_distribution_are_not_judged_by_one(sampler):
    def found(sampler):
        number = None if sampler.coupling.traits.num_chains else 4
        # Chains without a ladder stay in the well where they are.
        energy = lambda x: jnp.sum((x**2 - 1.0) ** 2)  # noqa: E731
        starts = lambda key: jax.random.normal(key, (1,))  # noqa: E731
        return iso.sample(energy, sampler, num_steps=400, num_chains=number, init=starts, seed=4)

    run = found(sampler)
    summary = run.summary()
    first, *others = summary.notes
    assert "follows no distribution" in first
    assert all(note.startswith(("Pairs", "No replica", "Replicas")) for note in others)
    assert 'run.stats["best_position"]' in first
    assert run.bias is None
    for row in summary.rows:
        assert np.isfinite([row.mean, row.sd]).all()
        assert np.isnan([row.std_error, row.effective_draws, row.r_hat]).all()
    # The same run with noise is judged.
    judged = found(iso.sgld(0.02, temperature=0.01)).summary()
    assert "follows no distribution" not in judged.notes[0]
    assert any("disagree" in note for note in judged.notes)


def downhill(x):
    return -jnp.sum(x**2)


@pytest.mark.parametrize(
    ("sampler", "chains", "what"),
    [
        (iso.sgld(0.5), {"num_chains": 3}, "3 of 3 chains"),
        (iso.resgld(0.5, temperatures=(1.0, 2.0)), {"num_ladders": 2}, "4 of 4 replicas"),
    ],
)
def test_a_run_of_which_nothing_is_left_is_told_that_and_nothing_else(sampler, chains, what):
    with pytest.warns(UserWarning, match=f"{what} diverged .*write `iso.from_log_density") as told:
        run = iso.sample(downhill, sampler, num_steps=400, init=jnp.ones(2), **chains)
    assert ("replica 1 of ladder 0 at iteration" in str(told[0].message)) == ("replicas" in what)
    _, *notes = run.summary().notes
    assert notes[0].startswith(f"{what} diverged")
    assert notes[1:] == ["All chains diverged; the draws are unusable."]


def test_weights_of_networks_on_which_chains_disagree_are_not_taken_for_modes():
    x = np.linspace(-1.0, 1.0, 40, dtype=np.float32)[:, None]

    def network(rngs):
        return nnx.Sequential(nnx.Linear(1, 4, rngs=rngs), nnx.tanh, nnx.Linear(4, 1, rngs=rngs))

    potential = iso.from_nnx(network, iso.networks.Gaussian(0.1), (x, np.sin(3 * x[:, 0])), weight_decay=1.0)
    run = iso.sample(potential, iso.sgld(1e-5), num_steps=2_000, num_chains=4, thinning=10)
    notes = " ".join(run.summary().notes)
    assert "Hidden units of a network can be permuted" in notes
    assert "barriers between modes" not in notes


def anywhere(key):
    return jax.random.normal(key, (2,))


@pytest.mark.parametrize(
    ("energy", "is_held"),
    [
        (lambda x: -2.0 * jnp.sum(jnp.log1p(x**2)), False),
        (lambda x: -jnp.sum(jnp.abs(x)), False),
        (lambda x: 40.0 * jnp.sum((x**2 - 1.0) ** 2), True),
    ],
)
def test_chains_that_nothing_holds_are_told_of_the_sign_and_not_of_barriers(energy, is_held):
    run = iso.sample(energy, iso.sgld(2e-3), num_steps=40_000, num_chains=4, thinning=20, init=anywhere, seed=1)
    notes = " ".join(run.summary().notes)
    assert ("write `iso.from_log_density(log_density)`" in notes) != is_held
    assert ("barriers between modes" in notes) == is_held


def test_an_energy_in_the_place_of_a_log_density_is_told_of_its_sign():
    potential = iso.from_log_density(lambda x: 2.0 * jnp.sum(jnp.log1p(x**2)))
    run = iso.sample(potential, iso.sgld(2e-3), num_steps=40_000, num_chains=4, thinning=20, init=anywhere, seed=1)
    assert "If you passed an energy, which has the opposite sign, write `iso.from_energy" in " ".join(
        run.summary().notes
    )
