"""What a run does when a chain diverges: `on_divergence`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso


def growing(x):
    """An energy that pushes chains out, up to a wall where it is not finite."""
    return jnp.where(jnp.abs(x) < 10.0, -(x**2), jnp.nan)


# The second chain reaches the wall first, the third never moves.
STARTS = iso.per_chain(jnp.array([0.5, 2.0, 0.0]))
SAMPLER = iso.sgd(0.05)


def start(**options):
    given = {"num_steps": 60, "init": STARTS, "progress": False, **options}
    with pytest.warns(iso.DivergenceWarning) as warned:
        run = iso.sample(growing, SAMPLER, **given)
    return run, str(warned[0].message)


def test_the_default_goes_on_with_the_other_chains():
    run, message = start()
    same, _ = start(on_divergence="freeze")
    assert run.num_steps == 60
    assert "Their later draws have weight zero" in message
    assert (run.stats["diverged_at"] >= 0).tolist() == [True, True, False]
    assert np.isfinite(run.log_weights[2]).all()
    np.testing.assert_array_equal(run.draws, same.draws)
    assert "on_divergence" not in run.config["settings"]


@pytest.mark.parametrize("block_length", [None, 1, 7])
def test_a_run_stops_at_the_first_divergence_wherever_blocks_end(block_length):
    whole, _ = start()
    first = int(whole.stats["diverged_at"][1])
    run, message = start(on_divergence="stop", block_length=block_length)
    assert 0 < first < int(whole.stats["diverged_at"][0])
    assert run.num_steps == run.num_draws == first + 1
    assert run.stats["diverged_at"].tolist() == [-1, first, -1]
    np.testing.assert_array_equal(run.draws, whole.draws[:, : first + 1])
    assert np.isfinite(run.log_weights[:, :-1]).all()
    assert np.isfinite(run.log_weights[:, -1]).tolist() == [True, False, True]
    # Neither may what is known of all iterations depend on blocks.
    assert run.stats["best_iteration"].tolist() == [first, first - 1, 0]
    assert 'The run ended there (`on_divergence="stop"`)' in message


def test_a_run_that_does_not_diverge_has_the_same_bytes():
    given = {"num_steps": 60, "init": jnp.zeros(2), "num_chains": 2}
    one, other = (iso.sample(lambda x: x @ x, iso.sgld(0.1), on_divergence=how, **given) for how in ("freeze", "stop"))
    np.testing.assert_array_equal(one.draws, other.draws)
    assert other.num_steps == 60


def test_a_stop_before_the_first_draw_is_an_error():
    with pytest.raises(
        iso.DivergenceError, match=r"1 of 3 chains diverged .* before the first draw, at iteration \d+, and"
    ):
        iso.sample(growing, SAMPLER, num_steps=60, burn_in=50, init=STARTS, on_divergence="stop")


def test_a_stopped_run_stays_where_it_is_when_resumed(tmp_path):
    run, _ = start(on_divergence="stop", out=tmp_path / "run")
    with pytest.warns(iso.DivergenceWarning, match="The run ended there"):
        resumed = iso.resume(tmp_path / "run", growing, SAMPLER)
    assert resumed.num_steps == run.num_steps
    np.testing.assert_array_equal(resumed.draws, run.draws)
    with pytest.raises(ValueError, match=r"`on_divergence` must be 'stop', as in the run in .*; got 'freeze'"):
        iso.sample(growing, SAMPLER, num_steps=60, init=STARTS, out=tmp_path / "run", resume=True)


def test_samplers_of_a_sweep_stop_on_their_own():
    samplers = {step: iso.sgd(step) for step in (0.05, 0.01)}
    with pytest.warns(iso.DivergenceWarning):
        runs = iso.sweep(growing, samplers, num_steps=40, init=STARTS, on_divergence="stop")
    alone, _ = start(on_divergence="stop")
    assert runs[0.05].num_steps == alone.num_steps < runs[0.01].num_steps == 40
    np.testing.assert_array_equal(runs[0.05].draws, alone.draws)


def test_replicas_of_a_ladder():
    sampler = iso.naive_resgld(0.05, temperatures=(1e-6, 1e-5))
    key = lambda key: 2.0 + jax.random.uniform(key)  # noqa: E731
    with pytest.warns(iso.DivergenceWarning, match="The run ended there"):
        run = iso.sample(growing, sampler, num_steps=60, init=key, on_divergence="stop", block_length=50)
    found = run.stats["diverged_at"]
    assert run.num_steps == found[found >= 0].min() + 1 == found.max() + 1


@pytest.mark.parametrize("block_length", [None, 1, 7])
def test_a_chain_is_restarted_where_it_began(block_length):
    whole, _ = start()
    first = int(whole.stats["diverged_at"][1])
    run, message = start(on_divergence="restart", block_length=block_length)
    assert run.num_steps == 60
    restarted = run.draws[1]
    # After the restart the chain repeats itself, since it has no noise.
    np.testing.assert_array_equal(restarted[first + 1 : 2 * first + 2], restarted[: first + 1])
    assert np.isfinite(run.log_weights[1]).tolist() == [k % (first + 1) != first for k in range(60)]
    assert run.stats["num_restarts"].tolist() == [int(np.sum(~np.isfinite(weights))) for weights in run.log_weights]
    assert run.stats["num_restarts"][1] == 60 // (first + 1) > 1
    assert run.stats["num_restarts"][2] == 0
    assert run.stats["diverged_at"].tolist() == [-1, -1, -1]
    np.testing.assert_array_equal(run.draws[2], whole.draws[2])
    assert "2 of 3 chains diverged (energy not finite) and were restarted" in message
    assert "restarted" in [check.name for check in run.checks]


def test_a_restart_forgets_the_momentum_and_resumes(tmp_path):
    given = {"init": STARTS, "num_steps": 60, "progress": False, "on_divergence": "restart"}
    sampler = iso.msgd(0.02)
    with pytest.warns(iso.DivergenceWarning):
        whole = iso.sample(growing, sampler, **given)
    first = int(np.argmin(np.isfinite(whole.log_weights[1])))
    assert first > 0
    np.testing.assert_array_equal(whole.draws[1, first + 1 : first + 8], whole.draws[1, :7])
    halted = {"out": tmp_path / "run", "block_length": 5, "callback": lambda status: status.iteration >= first + 4}
    with pytest.warns(iso.DivergenceWarning):
        iso.sample(growing, sampler, **given, **halted)
    with pytest.warns(iso.DivergenceWarning):
        resumed = iso.resume(tmp_path / "run", growing, sampler)
    np.testing.assert_array_equal(resumed.draws, whole.draws)
    np.testing.assert_array_equal(resumed.stats["num_restarts"], whole.stats["num_restarts"])


def test_restarts_and_metropolis_tests():
    with pytest.raises(ValueError, match="`on_divergence` must be 'freeze' or 'stop' for mala; got 'restart'"):
        iso.sample(lambda x: x @ x, iso.mala(0.1), num_steps=5, init=jnp.zeros(2), on_divergence="restart")


def test_restarts_raise_where_asked():
    with pytest.raises(iso.DivergenceError, match="were restarted"):
        iso.sample(growing, SAMPLER, num_steps=60, init=STARTS, on_divergence="restart", throw=True)
