"""Constrained potentials in runs: starts, records, folders, sweeps, loops by hand, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.transforms import circular, constrain, interval, ordered, positive, simplex

START = {"scale": jnp.array([1.0, 2.0]), "inner": {"cuts": jnp.array([-1.0, 0.5])}, "free": jnp.array(0.0)}
TRANSFORMS = {"scale": positive(), "inner": {"cuts": ordered()}}


def log_density(x):
    squares = jax.tree.map(lambda leaf: jnp.sum(leaf**2), x)
    return -0.5 * sum(jax.tree.leaves(squares))


PROBLEM = constrain(log_density, TRANSFORMS)
SGLD = iso.sgld(0.05)


def in_order(run):
    cuts = np.asarray(run.draws["inner"]["cuts"])
    return np.asarray(run.draws["scale"]).min() > 0 and (cuts[..., 1] > cuts[..., 0]).all()


def test_every_way_to_start_is_in_the_space_of_the_user():
    rows = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), START)
    for init in (START, iso.per_chain(rows), lambda key: START):
        run = iso.sample(PROBLEM, SGLD, num_steps=20, num_chains=2, init=init)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a[0, 0], b, rtol=1e-5, atol=1e-6), run.draws, START)
        assert in_order(run)
        best = run.stats["best_position"]
        assert best["scale"].min() > 0
        assert (np.diff(best["inner"]["cuts"]) > 0).all()


def test_runs_on_disk_resume_and_keep_their_names(tmp_path):
    whole = iso.sample(PROBLEM, SGLD, num_steps=40, num_chains=2, init=START)
    iso.sample(PROBLEM, SGLD, num_steps=20, num_chains=2, init=START, out=tmp_path / "run")
    again = iso.resume(tmp_path / "run", constrain(log_density, TRANSFORMS), SGLD, num_steps=40)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:], b), again.draws, whole.draws)
    assert "inner-cuts[1]" in str(iso.load(tmp_path / "run").summary())
    other = constrain(log_density, {"scale": interval(0.0, 9.0), "inner": {"cuts": ordered()}})
    with pytest.raises(ValueError, match=r"`potential.*must be .*Positive.*, as when the run was started"):
        iso.resume(tmp_path / "run", other, SGLD, num_steps=50)


def test_collect_and_sweeps_see_constrained_values():
    run = iso.sample(PROBLEM, SGLD, num_steps=20, init=START, collect=lambda x: {"least": x["scale"].min()})
    assert run.draws["least"].min() > 0
    assert run.bias is None
    runs = iso.sweep(PROBLEM, {step: iso.sgld(step) for step in (0.01, 0.05)}, num_steps=20, num_chains=2, init=START)
    assert all(in_order(run) for run in runs.values())


def test_ladders_and_noise_and_one_transform_for_all():
    problem = constrain(iso.from_energy(lambda x: jnp.sum(x)), positive())
    noisy = iso.with_noise(problem, energy_scale=0.1, gradient_scale=0.1)
    for potential in (problem, noisy):
        run = iso.sample(potential, iso.resgld(0.05, temperatures=(1.0, 2.0)), num_steps=50, init=jnp.ones(3))
        assert np.asarray(run.draws).min() > 0
    inside = constrain(iso.with_noise(iso.from_energy(lambda x: jnp.sum(x)), gradient_scale=0.1), simplex())
    run = iso.sample(inside, SGLD, num_steps=50, init=jnp.full(4, 0.25))
    np.testing.assert_allclose(run.draws.sum(axis=-1), 1.0, rtol=1e-5)


def test_loops_by_hand_see_free_numbers():
    state = SGLD.init(PROBLEM, PROBLEM.space.unconstrained(START))
    state, info = SGLD.step(jax.random.key(0), state)
    assert np.isfinite(info.energy).all()
    assert PROBLEM.space(state.position)["scale"].min() > 0


def test_it_prints_short():
    assert repr(PROBLEM).startswith("ConstrainedPotential(LogDensityPotential(log_density), scale=Positive(), inner=")


REFUSED = {
    r"`init` must be positive; got \[ 1. -2.\]. Start inside the constraint Positive\(\)": {
        **START,
        "scale": np.array([1.0, -2.0]),
    },
    r"`init` must be strictly rising along the last axis": {**START, "inner": {"cuts": np.array([1.0, 1.0])}},
    r"`init` must be a dict with scale, inner; got \['scale'\]": {"scale": jnp.ones(2)},
    r"`init` must be a dict with scale, inner; got ArrayImpl": jnp.ones(2),
}


@pytest.mark.parametrize("message", REFUSED)
def test_starts_outside_are_refused(message):
    with pytest.raises(ValueError, match=message):
        iso.sample(PROBLEM, SGLD, num_steps=5, init=REFUSED[message])


def test_probabilities_must_sum_to_one():
    problem = constrain(lambda x: jnp.sum(jnp.log(x)), simplex())
    with pytest.raises(ValueError, match=r"`init` must be positive with a sum of 1 along the last axis"):
        iso.sample(problem, SGLD, num_steps=5, init=jnp.array([0.5, 0.6]))


def test_what_is_no_transform_is_refused():
    with pytest.raises(ValueError, match=r"`transforms` must be a transform, or a dict of transforms"):
        constrain(log_density, {"scale": "positive"})
    with pytest.raises(ValueError, match=r"`low` must be finite and below `high`; got 3.0 and 1.0"):
        interval(3.0, 1.0)
    with pytest.raises(ValueError, match=r"`temperature` must be a finite real number"):
        constrain(log_density, TRANSFORMS, temperature=-1.0)


def test_another_temperature_is_refused():
    warm = iso.sgld(0.05, temperature=2.0)
    match = r"`temperature` must be 1.0 for all draws, as in the constrained potential; got 2.0. Pass the sampler's"
    with pytest.raises(ValueError, match=match):
        iso.sample(PROBLEM, warm, num_steps=5, init=START)
    with pytest.raises(ValueError, match=match):
        iso.sweep(PROBLEM, [warm], num_steps=5, init=START)
    with pytest.raises(ValueError, match="a schedule that changes between draws"):
        iso.sample(PROBLEM, iso.sgld(0.05, temperature=lambda k: 1.0 + 0.1 * k), num_steps=5, init=START)
    run = iso.sample(constrain(log_density, TRANSFORMS, temperature=2.0), warm, num_steps=5, init=START)
    for ask in (lambda: run.reweighted(1.0), lambda: run.log_z_ratio(1.0), run.log_density_of_states):
        with pytest.raises(
            ValueError, match=r"`run` must be one of free parameters; got energies that hold a Jacobian"
        ):
            ask()


def test_a_minimum_over_constrained_values_needs_no_jacobian():
    problem = constrain(lambda x: -jnp.sum((x - 0.5) ** 2), positive(), temperature=0.0)
    run = iso.sample(problem, iso.sgd(0.2), num_steps=400, init=jnp.full(2, 3.0))
    np.testing.assert_allclose(run.draws[0, -1], 0.5, atol=1e-3)


def test_angles_on_disk_resume_where_they_wandered_to(tmp_path):
    problem = constrain(lambda x: jnp.sum(jnp.cos(x["angle"])) - x["free"] ** 2, {"angle": circular()})
    settings = {"num_chains": 2, "init": {"angle": jnp.full(2, 3.0), "free": jnp.array(0.5)}}
    sampler = iso.sgld(0.5)
    whole = iso.sample(problem, sampler, num_steps=400, **settings)
    iso.sample(problem, sampler, num_steps=200, out=tmp_path / "run", **settings)
    again = iso.resume(tmp_path / "run", problem, sampler, num_steps=400)
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[:], b), again.draws, whole.draws)
    assert np.abs(again.draws["angle"][:]).max() <= np.float32(np.pi)
    assert repr(problem).endswith("angle=Circular())")
    other = constrain(problem.inner, {"angle": circular(0.0, 2 * np.pi)})
    with pytest.raises(ValueError, match=r"`potential\.map\.transforms\.angle\.low` must be -3.14.*; got 0.0"):
        iso.resume(tmp_path / "run", other, sampler, num_steps=500)


def test_angles_start_within_a_period():
    problem = constrain(lambda x: jnp.sum(jnp.cos(x)), circular())
    # Both ends are the same place, in the precision of the start.
    run = iso.sample(problem, SGLD, num_steps=5, init=jnp.array([jnp.pi, -jnp.pi]))
    np.testing.assert_array_equal(run.draws[0, 0], np.array([-np.pi, -np.pi], np.float32))
    with pytest.raises(ValueError, match=r"`init` must be between its ends; got \[0\. 4\.\].*constraint Circular\(\)"):
        iso.sample(problem, SGLD, num_steps=5, init=np.array([0.0, 4.0]))
    with pytest.raises(ValueError, match=r"`low` must be finite and below `high`.*Give the ends of one period"):
        circular(0.0, np.inf)
    with pytest.raises(ValueError, match=r"`box` must be left out for constrained parameters"):
        iso.sample(problem, iso.sgld(0.1, box=(-3.0, 3.0, "reflect")), num_steps=5, init=jnp.zeros(2))
