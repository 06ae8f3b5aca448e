"""Wrong input is refused before any work, with the field, the rule, the value and the remedy."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.foundation.errors import DivergenceError, DivergenceWarning
from isotherm.foundation.schedules import Annealed, CyclicalCosine
from isotherm.kernels import PSGLD, SGHMC, Stein, within


def energy(x):
    return jnp.sum(x**2)


def start(potential=energy, sampler=None, **options):
    settings: dict[str, Any] = {"num_steps": 10, "init": jnp.zeros(2), **options}
    return iso.sample(potential, sampler or iso.sgld(step_size=0.1), **settings)


def likelihood(data, **options):
    return iso.from_likelihood(lambda m, x: -((x - m) ** 2), None, data, **options)


CASES = {
    "negative step": (lambda: iso.sgld(step_size=-0.1), r"`step_size` must be .* above 0; got -0.1\. Give a number"),
    "zero step": (lambda: iso.sgld(step_size=0.0), r"`step_size` must be .* above 0; got 0.0"),
    "NaN step": (lambda: iso.sghmc(step_size=float("nan")), r"`step_size` must be a finite .*; got nan"),
    "complex step": (lambda: iso.sgld(step_size=1j), r"`step_size` must be a finite real number .*; got 1j"),  # pyright: ignore
    "text as step": (lambda: iso.sgld(step_size="big"), r"`step_size` must be .*; got 'big'"),  # pyright: ignore
    "vector schedule": (
        lambda: iso.sgld(step_size=lambda k: jnp.ones(2)),
        r"`step_size` must be a schedule of real scalars",
    ),
    "negative schedule": (lambda: iso.sgld(step_size=lambda k: -1.0 * jnp.ones(())), r"`step_size` must be .* got -1"),
    "cold": (lambda: iso.sgld(step_size=0.1, temperature=-1.0), r"`temperature` must be .* at least 0; got -1.0"),
    "no friction": (lambda: SGHMC(friction=0.0), r"`friction` must be .* above 0 and at most 1; got 0.0"),
    "decay": (lambda: PSGLD(decay=1.5), r"`decay` must be .* at most 1; got 1.5"),
    "bandwidth": (lambda: Stein(0.0), r"`bandwidth` must be .* above 0"),
    "box inside out": (lambda: within(SGHMC(), (1.0, -1.0)), r"`box` must be \(low, high\) with low below high"),
    "cycle": (lambda: CyclicalCosine(0.1, 0), r"`cycle_length` must be an integer of at least 1; got 0"),
    "empty window": (
        lambda: iso.cycsgld(step_size=0.1, cycle_length=10, sampling_from=0.95),
        r"`sampling_from` must be such that a cycle of 10 has an iteration left; got 0.95",
    ),
    "rate": (lambda: Annealed(1.0, rate=0.0), r"`rate` must be .* above 0"),
    "schedule for cycles": (
        lambda: iso.cycsgld(lambda k: 0.1, cycle_length=10),  # pyright: ignore
        r"`step_size` must be the largest value",
    ),  # pyright: ignore
    "batch too large": (
        lambda: likelihood(np.ones(5), batch_size=6),
        r"`batch_size` must be at most .* 5; got 6\. There are 5",
    ),
    "no batch": (lambda: likelihood(np.ones(5), batch_size=0), r"`batch_size` must be an integer of at least 1; got 0"),
    "empty data": (lambda: likelihood(np.ones((0, 3))), r"`data` must be at least one example; got 0 examples"),
    "unequal data": (
        lambda: likelihood((np.ones(5), np.ones(4))),
        r"`data` must be .* common leading axis; got .*\[5, 4\]",
    ),
    "scalar data": (lambda: likelihood(1.0), r"`data` must be a pytree of arrays"),
    "batching": (lambda: likelihood(np.ones(5), batching="random"), r"`batching` must be one of 'epochs'"),
    "summed likelihood": (
        lambda: start(iso.from_likelihood(lambda m, x: jnp.sum(x), None, np.ones(5)), init=jnp.zeros(())),
        r"`log_likelihood` must be .* one value per example.*Do not sum",
    ),
    "vector energy": (
        lambda: start(lambda x: x**2),
        r"`energy` must be a function that returns one real scalar; got float32\[2\]",
    ),
    "integer energy": (lambda: start(lambda x: jnp.int32(1)), r"`energy` must be .* one real scalar; got int32"),
    "NaN energy": (
        lambda: start(lambda x: jnp.log(jnp.sum(x) - 1.0)),
        r"`init` must be where the energy is finite; got an energy that is not, in chain 0",
    ),
    "raising energy": (
        lambda: start(lambda x: x @ jnp.ones(3)),
        r"`energy` must be a function that can be evaluated at the start; got TypeError",
    ),
    "not a function": (lambda: start(3.0), r"`potential` must be a potential or an energy function; got 3.0"),
    "integer start": (
        lambda: start(init=jnp.zeros(2, int)),
        r"`init` must be a position of floating-point .*int32.*use 0.0",
    ),
    "no start": (lambda: start(init=None), r"`init` must be a position.*got None.*jnp.zeros"),
    "infinite start": (lambda: start(init=jnp.full(2, jnp.inf)), r"`init` must be finite"),
    "starts": (
        lambda: start(init=iso.per_chain(jnp.zeros((3, 2))), num_chains=2),
        r"`init` must be one position per chain",
    ),
    "one particle": (
        lambda: start(sampler=iso.svgd(step_size=0.1)),
        r"`num_chains` must be at least 2 for particles that move together; got 1. Pass num_chains=100",
    ),
    "particles in one place": (
        lambda: start(sampler=iso.svgd(step_size=0.1), num_chains=5),
        r"`init` must be different for every chain; got one position for all. Equal particles stay equal",
    ),
    "rows for chains": (
        lambda: start(init=jnp.zeros((3, 2)), num_chains=3),
        r"`init` must be clear about its leading axis; got 3 rows for 3 chains. .*iso.per_chain",
    ),
    "ladders of a sampler without one": (
        lambda: start(num_ladders=2),
        r"`num_ladders` must be left out for a sampler without a ladder; got 2",
    ),
    "never collects": (
        lambda: start(burn_in=10),
        r"`burn_in` must be below `num_steps`, 10; got 10",
    ),
    "thinning": (lambda: start(thinning=0), r"`thinning` must be an integer of at least 1; got 0"),
    "no steps": (lambda: start(num_steps=0), r"`num_steps` must be an integer of at least 1; got 0"),
    "half a step": (lambda: start(num_steps=2.5), r"`num_steps` must be an integer"),
    "no chains": (lambda: start(num_chains=0), r"`num_chains` must be"),
    "seed": (lambda: start(seed=-1), r"`seed` must be an integer of at least 0"),
    "chain mode": (lambda: start(chain_mode="pmap"), r"`chain_mode` must be one of 'auto', 'vmap', 'map', 'unroll'"),
    "step beyond single precision": (
        lambda: start(sampler=iso.sgld(1e300)),
        r"`sampler` must be made of numbers that float32 can hold, at most 3.4e\+38; got 1e\+300",
    ),
    "rung beyond single precision": (
        lambda: iso.resgld(1e39, temperatures=(1.0, 2.0)),
        r"`step_sizes` must be a finite real number above 0 and at most 3.4.*e\+38; got 1e\+39",
    ),
    "track the best": (
        lambda: start(track_best="yes"),
        r"`track_best` must be True, False or None; got 'yes'\. Leave it out",
    ),
    "too many runs": (
        lambda: start(num_runs=10**30),
        r"`num_runs` must be such that there are at most 2147483647 chains in all; got 1000",
    ),
    "on divergence": (
        lambda: start(on_divergence="halt"),
        r"`on_divergence` must be one of 'freeze', 'stop', 'restart'; got",
    ),
    "batch by hand": (
        lambda: iso.sgd(step_size=0.1).step(
            jnp.zeros(2, jnp.uint32), iso.sgd(step_size=0.1).init(energy, jnp.zeros(2)), 3.0
        ),
        r"`batch` must be None for a potential without data",
    ),
    "noise": (
        lambda: iso.with_noise(iso.from_energy(energy), energy_scale=-1.0),
        r"`energy_scale` must be .* at least 0",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        action()


def test_an_output_folder_that_holds_a_run_is_refused_and_left_alone(tmp_path):
    kept = start(out=tmp_path / "run").draws[:]
    with pytest.raises(ValueError, match=r"`out` must be a folder without a run; got .*which holds one.*resume"):
        start(out=tmp_path / "run", seed=1)
    np.testing.assert_array_equal(iso.load(tmp_path / "run").draws[:], kept)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="`out` must be a folder; got the file"):
        start(out=tmp_path / "file")


def test_a_diverging_chain_is_named_and_others_go_on():
    def cliff(x):
        return jnp.where(x[0] > 5.0, 0.5 * jnp.exp(x[0] ** 2), 0.5 * jnp.sum(x**2))

    starts = iso.per_chain(jnp.array([[0.0], [5.5]]))
    sampler = iso.sgld(step_size=0.1)
    with pytest.warns(DivergenceWarning, match=r"1 of 2 chains diverged.*chain 1 at iteration \d+.*Lower `step_size`"):
        run = iso.sample(cliff, sampler, num_steps=500, num_chains=2, init=starts)
    assert run.stats["diverged_at"][0] == -1
    when = run.stats["diverged_at"][1]
    assert not np.isfinite(run.energies[1, when])
    assert np.isfinite(run.energies[1, :when]).all()
    assert np.isneginf(run.log_weights[1, when:]).all()
    assert np.isfinite(run.expectation(lambda x: x)).all()
    assert "diverged" in str(run.summary())
    with pytest.raises(DivergenceError, match="chain 1 at iteration"):
        iso.sample(cliff, sampler, num_steps=500, num_chains=2, init=starts, throw=True)


def test_when_every_chain_diverges_the_run_stops_early():
    with pytest.warns(DivergenceWarning, match="1 of 1 chains diverged"):
        run = start(sampler=iso.sgld(step_size=50.0), num_steps=10_000_000, thinning=10_000)
    assert run.num_steps < 10_000_000
