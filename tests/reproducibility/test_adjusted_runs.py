"""Runs of adjusted kernels, and of paths from a reference: folders, resuming, loops by hand, sweeps and many leaves."""

import dataclasses
import importlib.util
import json
import subprocess
import sys
import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.main import main
from isotherm.kernels import scaled


def energy(x):
    return jnp.sum(1.5 * (x**2 - 1.0) ** 2 + 0.4 * x)


def log_density(x):
    return jnp.sum(-0.125 * x**2 - 0.5 * jnp.log(8.0 * jnp.pi))


PROBLEM = iso.with_reference(energy, lambda key: 2.0 * jax.random.normal(key, (2,)), log_density)
HOT = (1.0, 4.0, np.inf)
GHMC: Any = iso.ghmc(0.2, friction=0.2)
SAMPLERS: dict[str, Any] = {
    "mala": iso.mala(0.1, temperature=2.0, box=(-3.0, 3.0)),
    "scaled": dataclasses.replace(
        GHMC, kernel=scaled(GHMC.kernel, np.array([[1.0, 0.0], [0.5, 0.8]], np.float32), True)
    ),
    "path": iso.reghmc(0.2, temperatures=HOT, friction=0.2, path="reference"),
    "sgld on a path": iso.resgld(0.01, temperatures=HOT, path="reference"),
}
SETTINGS: dict[str, Any] = {"seed": 4, "thinning": 3, "burn_in": 20, "init": lambda key: jax.random.normal(key, (2,))}


def near(key):
    """Starts where the energy is not steep."""
    return jax.random.uniform(key, (2,), minval=-1.5, maxval=1.5)


def potential_of(name):
    return PROBLEM if "path" in name else energy


def chains_of(name):
    return {"num_ladders": 3} if "path" in name else {"num_chains": 3}


def assert_same(one, other):
    for part in ("draws", "energies", "log_weights"):
        np.testing.assert_array_equal(np.asarray(getattr(one, part)[:]), np.asarray(getattr(other, part)[:]))
    for name, values in one.observed.items():
        np.testing.assert_array_equal(np.asarray(values[:]), np.asarray(other.observed[name][:]))
    for name, values in one.stats.items():
        jax.tree.map(np.testing.assert_array_equal, values, other.stats[name])


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_resumed_run_is_the_whole_one(name, tmp_path):
    given = (potential_of(name), SAMPLERS[name])
    options = {**SETTINGS, **chains_of(name), "num_runs": 2}
    whole = iso.sample(*given, num_steps=400, **options)
    iso.sample(*given, num_steps=170, out=tmp_path / "run", block_length=50, **options)
    resumed = iso.resume(tmp_path / "run", *given, num_steps=400)
    assert_same(whole, resumed)
    loaded = iso.load(tmp_path / "run")
    assert_same(whole, loaded)
    assert loaded.is_adjusted == whole.is_adjusted == (name != "sgld on a path")
    assert [str(check) for check in loaded.checks] == [str(check) for check in resumed.checks]
    for length in (7, 400):
        assert_same(whole, iso.sample(*given, num_steps=400, block_length=length, **options))
    every = iso.sample(*given, num_steps=400, **{**options, "thinning": 1})
    np.testing.assert_array_equal(every.draws[..., ::3, :], whole.draws)
    if "path" in name:
        assert float(loaded.log_evidence().mean) == float(whole.log_evidence().mean)


def test_a_killed_run_on_a_path_ends_like_a_whole_one(tmp_path):
    script = textwrap.dedent(
        """
        import os, signal, sys
        from tests.reproducibility.test_adjusted_runs import PROBLEM, SAMPLERS, SETTINGS, iso

        def kill(status):
            if status.iteration >= 600:
                os.kill(os.getpid(), signal.SIGKILL)

        iso.sample(PROBLEM, SAMPLERS["path"], num_steps=2_000, out=sys.argv[1], block_length=100, checkpoint_every=0.0,
                   callback=kill, **SETTINGS)
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    resumed = iso.resume(tmp_path / "run", PROBLEM, SAMPLERS["path"])
    assert_same(iso.sample(PROBLEM, SAMPLERS["path"], num_steps=2_000, **SETTINGS), resumed)


def test_infinite_temperatures_are_kept_and_shown(tmp_path, capsys):
    run = iso.sample(PROBLEM, SAMPLERS["path"], num_steps=600, out=tmp_path / "run", **SETTINGS)
    stored = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "Infinity" in json.dumps(stored)
    assert "temperatures=(1.0, 4.0, inf)" in repr(run.parts.parts[0].ladder)
    assert "temperatures=(1.0, 4.0, inf)" in repr(iso.load(tmp_path / "run"))
    main(["show", str(tmp_path / "run"), "--json"])
    shown = json.loads(capsys.readouterr().out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert "the Metropolis test leaves no bias from the step size" in shown["headline"]
    with pytest.raises(ValueError, match=r"ladder.temperatures\[1\]` must be 4.0"):
        iso.resume(
            tmp_path / "run", PROBLEM, iso.reghmc(0.2, temperatures=(1.0, 5.0, np.inf), friction=0.2, path="reference")
        )


@pytest.mark.parametrize("name", ["scaled", "path"])
def test_loops_by_hand_take_the_same_steps(name):
    potential, sampler = potential_of(name), SAMPLERS[name]
    starts = np.random.default_rng(0).normal(size=(3, 2)).astype(np.float32)
    chains: dict[str, Any] = {"num_ladders": 1} if name == "path" else {}
    run = iso.sample(potential, sampler, num_steps=80, seed=7, init=iso.per_chain(starts), **chains)
    state, found = sampler.init(potential, iso.per_chain(starts)), []
    for _ in range(80):
        at = state.position
        state, info = sampler.step(jax.random.key(7), state)
        place = int(np.argmin(info.observed["rung"])) if name == "path" else slice(None)
        found.append(np.asarray(at)[place])
    np.testing.assert_array_equal(np.moveaxis(np.stack(found), 0, -2).reshape(run.draws.shape), run.draws)


@pytest.mark.skipif(importlib.util.find_spec("blackjax") is None, reason="BlackJAX is not installed")
@pytest.mark.parametrize("name", ["scaled", "path"])
def test_blackjax_takes_the_same_steps(name):
    potential, sampler, start = potential_of(name), SAMPLERS[name], jnp.ones(2)
    chains = 1 if name == "scaled" else None
    algorithm, state = iso.to_blackjax(sampler, potential), sampler.init(potential, start, chains)
    step, other = jax.jit(algorithm.step), algorithm.init(start)
    for _ in range(80):
        state, _ = sampler.step(jax.random.key(7), state)
        other, _ = step(jax.random.key(7), other)
    np.testing.assert_allclose(np.reshape(other.position, state.position.shape), state.position, rtol=1e-3, atol=1e-3)


def test_a_sweep_is_its_runs():
    ladders = {step: iso.reghmc(step, temperatures=HOT, friction=0.2, path="reference") for step in (0.1, 0.2)}
    swept = iso.sweep(PROBLEM, ladders, num_steps=300, **SETTINGS)
    for step, sampler in ladders.items():
        alone = iso.sample(PROBLEM, sampler, num_steps=300, **SETTINGS)
        np.testing.assert_allclose(swept[step].draws, alone.draws, rtol=1e-3, atol=1e-3)
        assert np.isfinite(float(swept[step].log_evidence().mean))


def many_leaves(key):
    return {f"{number:02}": jax.random.normal(jax.random.fold_in(key, number), (2,)) for number in range(17)}


def test_positions_of_many_leaves_are_those_of_one():
    """Seventeen leaves are packed into one vector; the law does not depend on it."""
    tree_energy = lambda x: sum(jnp.sum((leaf - 1.0) ** 2) for leaf in jax.tree.leaves(x))  # noqa: E731
    tree_density = lambda x: sum(log_density(leaf) for leaf in jax.tree.leaves(x))  # noqa: E731
    problem = iso.with_reference(
        tree_energy, lambda key: jax.tree.map(lambda leaf: 2.0 * leaf, many_leaves(key)), tree_density
    )
    sampler = iso.reghmc(0.05, temperatures=(1.0, 2.0, 6.0, 30.0, np.inf), friction=0.3, path="reference")
    run = iso.sample(problem, sampler, num_steps=6_000, burn_in=500, num_ladders=8, init=many_leaves)
    x = np.stack(jax.tree.leaves(run.draws), axis=-2).reshape(8, -1, 34)
    assert abs(x.mean() - 1.0) < 0.03
    assert abs(x.var(axis=1).mean() - 0.5) < 0.03
    found = run.log_evidence()
    assert abs(found.mean - 17.0 * np.log(np.pi)) < 4.0 * found.std_error
    dense = dataclasses.replace(GHMC, kernel=scaled(GHMC.kernel, 0.7 * np.eye(34, dtype=np.float32), True))
    run = iso.sample(tree_energy, dense, num_steps=3_000, burn_in=500, num_chains=8, init=many_leaves)
    x = np.stack(jax.tree.leaves(run.draws), axis=-2).reshape(8, -1, 34)
    assert abs(x.var(axis=1).mean() - 0.5) < 0.03


def test_the_summary_tells_what_the_metropolis_test_did():
    run = iso.sample(energy, iso.mala(0.1), num_steps=4_000, num_chains=8, init=near)
    text = str(run.summary())
    assert "of the proposals were accepted; the Metropolis test leaves no bias from the step size." in text
    assert float(run.estimate(lambda x: x[0]).bias) == 0.0
    assert not {"unknown-bias", "unmeasured-bias", "low-acceptance", "stuck-chains"} & {
        check.name for check in run.checks
    }


def test_low_acceptance_is_noticed():
    run = iso.sample(energy, iso.mala(2.0), num_steps=2_000, num_chains=8, init=near)
    (check,) = [check for check in run.checks if check.name == "low-acceptance"]
    assert str(check).startswith("8 of 8 chains accepted fewer than 10 % of their proposals, one of them ")
    assert str(check).endswith("Lower `step_size` by a factor of 4.")
    ladder = iso.reghmc((0.1, 3.0), temperatures=(1.0, 2.0), friction=0.5)
    (check,) = [c for c in iso.sample(energy, ladder, num_steps=2_000, init=near).checks if c.name == "low-acceptance"]
    assert str(check).startswith("1 of 2 rungs accepted fewer than 10 % of their proposals")
    assert str(check).endswith("Lower `step_size` by a factor of 4 on rungs [1].")


def test_stuck_chains_are_noticed():
    """At 6 the gradient carries every proposal far beyond the other side."""
    starts = np.array([[0.0, 1.0], [1.0, 0.0], [6.0, 1.0]], np.float32)
    run = iso.sample(energy, iso.mala(0.1), num_steps=2_000, init=iso.per_chain(starts))
    (check,) = [check for check in run.checks if check.name == "stuck-chains"]
    assert str(check) == (
        "1 of 3 chains rejected every proposal in the second half of the run: where they are, the gradient carries proposals too "
        "far. Start where the energy is less steep, or lower `step_size`."
    )
    assert "stuck-chains" in {check.name for check in run.estimate(lambda x: x[0]).checks}
