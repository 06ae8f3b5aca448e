"""Wrong calls of the public interface: each is refused with what was wrong and the call that is right."""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso

Iso: Any = iso  # Wrong on purpose: no type checker is to look at these calls.


def energy(x):
    return 0.5 * jnp.sum(x**2)


def start(potential: Any = energy, sampler: Any = None, **options):
    settings = {"num_steps": 10, "init": jnp.zeros(2), **options}
    return Iso.sample(potential, iso.sgld(0.1) if sampler is None else sampler, **settings)


def fit(log_likelihood: Any, log_prior: Any = None, data: Any = None, init: Any = 0.0, **options):
    rows = np.ones(5) if data is None else data
    return start(Iso.from_likelihood(log_likelihood, log_prior, rows, **options), init=jnp.asarray(init))


def like(m, x):
    return -((x - m) ** 2)


UNKNOWN = "must be an option of `iso.{}`; got an unknown name. "
NUMPY = r"got NumPy was called on an array of JAX. Write it with `jax.numpy`"

CASES = {
    "not called": (lambda: start(sampler=iso.sgld), r"`sampler` must be .*; got the function sgld. Call it: `iso.sgld"),
    "a name": (lambda: start(sampler="sgld"), r"`sampler` must be a sampler; got 'sgld'. Pass `iso.sgld\(0.01\)`"),
    "a number": (lambda: start(sampler=0.1), r"`sampler` must be a sampler; got 0.1"),
    "swapped": (lambda: start(iso.sgld(0.1), energy), r"`potential` must be .*; got the sampler sgld.* comes first"),
    "no sampler": (lambda: Iso.sample(energy, num_steps=9), r"`sampler` must be given to `iso.sample`; got nothing"),
    "no steps": (lambda: Iso.sample(energy, iso.sgld(0.1)), r"Call `iso.sample\(potential, sampler, num_steps=...\)`"),
    "by place": (lambda: Iso.sample(energy, iso.sgld(0.1), 9), r"at most 2 arguments by position .*; got 3. Name"),
    "num_step": (lambda: start(num_step=9), "`num_step` " + UNKNOWN.format("sample") + r"Did you mean `num_steps`"),
    "chains": (lambda: start(chains=9), r"Did you mean `num_chains`"),
    "thin": (lambda: start(thin=9), r"Did you mean `thinning`"),
    "warmup": (lambda: start(warmup=9), r"Did you mean `burn_in`"),
    "stepsize": (lambda: Iso.sgld(stepsize=0.1), "`stepsize` " + UNKNOWN.format("sgld") + "Did you mean `step_size`"),
    "lr": (lambda: Iso.sgld(lr=0.1), r"Did you mean `step_size`"),
    "momentum": (lambda: Iso.sghmc(0.1, momentum=0.9), r"Did you mean `friction`\? It is one minus the momentum"),
    "temprature": (lambda: Iso.sgld(0.1, temprature=1.0), r"Did you mean `temperature`"),
    "one temperature": (lambda: Iso.resgld(0.1, temperature=1.0), r"Did you mean `temperatures`"),
    "partitoin": (lambda: Iso.icsgld(0.1, partitoin="auto"), r"Did you mean `partition`"),
    "zeto": (lambda: Iso.icsgld(0.1, zeto=1.0), r"Did you mean `zeta`"),
    "num_replica": (lambda: Iso.deo_star_sgd((0.1, 0.2), num_replica=3), r"Did you mean `num_replicas`"),
    "for sample": (lambda: Iso.icsgld(0.1, num_chains=4), r"Pass it to `iso.sample\(..., num_chains=...\)`"),
    "not for awsgld": (lambda: Iso.awsgld(0.1, partition=(0.0, 1.0, 5), bounds=(0, 2)), r"It takes: step_size, part"),
    "nothing": (lambda: Iso.sgld(), r"`step_size` must be given to `iso.sgld`; got nothing. Call `iso.sgld\(step_size"),
    "twice": (lambda: Iso.sgld(0.1, step_size=0.1), r"`step_size` must be given once; got it by position and by name"),
    "two by place": (lambda: Iso.sgld(0.1, 1.0), r"Name the others: `iso.sgld\(step_size, temperature=...\)`"),
    "no cycle": (lambda: Iso.cycsgld(0.1), r"Call `iso.cycsgld\(step_size, cycle_length=...\)`"),
    "no partition": (lambda: Iso.awsgld(0.1), r"`partition` must be given to `iso.awsgld`"),
    "text": (lambda: Iso.sgld("0.1"), r"`step_size` must be a finite real number above 0; got '0.1'. Give a number"),
    "None": (lambda: Iso.sgld(None), r"`step_size` must be .*; got None"),
    "array": (lambda: Iso.sgld(np.ones(2)), r"`step_size` must be .*; got array"),
    "text as zeta": (lambda: Iso.icsgld(0.1, zeta="1"), r"`zeta` must be .*; got '1'"),
    "temperatures=1": (lambda: Iso.resgld(0.1, temperatures=1.0), r"got 1.0. Write `temperatures=\(1.0, 10.0\)`"),
    "hot": (
        lambda: Iso.resgld(0.1, temperatures="hot"),
        r"`temperatures` must be a tuple of temperatures.*; got 'hot'",
    ),
    "cycle ladder": (lambda: Iso.cvr_resghmc(0.1, cycle_length=9, temperatures=1.0), r"`temperatures` must be a tuple"),
    "cycle steps": (lambda: Iso.cvr_resghmc((0.1, 0.2), cycle_length=9), r"`step_size` must be .*; got \(0.1, 0.2\)"),
    "ratio": (lambda: Iso.cvr_resghmc(0.1, cycle_length=9, step_ratio="a"), r"`step_ratio` must be .*; got 'a'"),
    "ladder text": (lambda: Iso.resgld("0.1"), r"`step_size` must be a number, or one for every rung; got '0.1'"),
    "ladder schedule": (lambda: Iso.resgld(lambda k: 0.1), r"got a function. Give numbers, .* as `step_factor`"),
    "three steps": (lambda: Iso.resgld((0.1, 0.2, 0.3)), r"`step_size` must be .*; got 3 for 2 temperatures"),
    "scheme": (lambda: Iso.resgld(0.1, scheme="deo"), r"`scheme` must be .*; got 'deo'. Write `scheme=iso.exchange"),
    "adaptation": (
        lambda: Iso.resgld(0.1, adaptation=0.4),
        r"`adaptation` must be an `exchange.EquiAcceptance`, or None",
    ),
    "one end": (lambda: Iso.deo_sgd(0.1), r"`step_size` must be \(first, last\).*; got 0.1. Write `iso.deo_sgd"),
    "box": (lambda: Iso.sgld(0.1, box=1.0), r"`box` must be \(low, high\).*; got 1.0. Write `box=\(-1.0, 1.0\)`"),
    "box of three": (lambda: Iso.sgld(0.1, box=(0, 1, 2)), r"`box` must be .*; got \(0, 1, 2\)"),
    "box of words": (lambda: Iso.sgld(0.1, box=("a", "b")), r"`box` must be .*; got \('a', 'b'\)"),
    "bounds": (lambda: Iso.csgld(0.1, bounds=2.0), r"`bounds` must be \(low, high\) with 1 between them; got 2.0"),
    "bins of words": (lambda: Iso.csgld(0.1, partition=("a", "b", 5)), r"`partition` must be .*; got 'a'. Give \(low"),
    "field": (lambda: Iso.csgld(0.1, field=[1]), r"`field` must be one of .*; got \[1\]"),
    "theta": (lambda: Iso.ksgld(0.1, partition=(0.0, 1.0, 5), theta=["a"] * 5), r"`theta` must be positive numbers"),
    "weights": (lambda: Iso.csgld(0.1, weight_rule="exact"), r"`weight_rule` must be a `contour.RegularizedWeights`"),
    "perturbation": (lambda: Iso.csgld(0.1, perturbation=-1.0), r"`perturbation` must be .* at least 0"),
    "estimator": (lambda: Iso.csgld(0.1, estimator="plain"), r"`estimator` must be an object of `iso.estimators`"),
    "NumPy schedule": (lambda: Iso.sgld(lambda k: np.ones(3)[k]), "`step_size` must be a function of the.*" + NUMPY),
    "branching schedule": (lambda: Iso.sgld(lambda k: 0.1 if k < 9 else 0.2), r"got `if` on a value.*`jnp.where"),
    "schedule of nothing": (lambda: Iso.sgld(lambda: 0.1), r"`step_size` must be a function of the iteration"),
    "resume a run": (
        lambda: Iso.resume(start()),
        r"`folder` must be .*; got a Run. .*`iso.resume\(\"my-run\", potential",
    ),
    "load nothing": (lambda: Iso.load(None), r"`folder` must be the path of a folder; got None"),
    "one swept": (lambda: Iso.sweep(energy, iso.sgld(0.1), num_steps=9), r"`samplers` must be a dict or a list"),
    "advice": (lambda: Iso.advise(energy, iso.resgld, num_steps=9), r"`sampler` must be .*Call it: `iso.resgld"),
    "factors": (
        lambda: Iso.advise(energy, iso.resgld(0.1), num_steps=9, factors=1.0),
        r"`factors` must be a tuple of correction factors; got 1.0",
    ),
    "NumPy energy": (lambda: start(lambda x: np.sum(np.asarray(x))), "`energy` must be .*" + NUMPY),
    "math energy": (lambda: start(lambda x: math.sin(x[0])), r"`energy` must be .*Leave out float\(\) and int\(\)"),
    "branching energy": (lambda: start(lambda x: x[0] if x[0] > 0 else x[1]), r"`energy` must be .*`jnp.where"),
    "energy of two": (
        lambda: start(lambda x, y: x),
        r"`energy` must be a function that runs at the start; got TypeError",
    ),
    "energy of none": (lambda: start(lambda x: None), r"`energy` must be .* one real scalar; got NoneType"),
    "NumPy density": (lambda: start(Iso.from_log_density(lambda x: np.asarray(x))), "`log_density` must be .*" + NUMPY),
    "noise on a function": (lambda: Iso.with_noise(energy), r"`potential` must be a potential; got .*iso.from_energy"),
    "likelihood of one": (lambda: fit(lambda m: m), r"`log_likelihood` must be a function of \(position, examples\)"),
    "likelihood of three": (lambda: fit(lambda m, x, y: m), r"`log_likelihood` must be a function of \(position, exam"),
    "summed": (lambda: fit(lambda m, x: jnp.sum(x * m)), r"^`log_likelihood` must be .* one value per example"),
    "no likelihood": (lambda: fit(3.0), r"`log_likelihood` must be a function; got 3.0"),
    "no prior": (lambda: fit(like, 3.0), r"`log_prior` must be a function; got 3.0. Write `lambda position"),
    "NumPy prior": (lambda: fit(like, lambda m: np.asarray(m)), "`log_prior` must be .*" + NUMPY),
    "batchsize": (lambda: fit(like, batchsize=2), r"Did you mean `batch_size`"),
    "start text": (lambda: start(init="zero"), r"`init` must be a position of floating-point numbers; got 'zero'"),
    "start of nothing": (
        lambda: start(init=lambda: jnp.zeros(2)),
        r"`init` must be a position, or a function of a key",
    ),
    "out": (lambda: start(out=3), r"`out` must be the path of a folder; got 3. Write `out=\"my-run\"`"),
    "collect": (lambda: start(collect="x"), r"`collect` must be a function; got 'x'"),
    "callback": (lambda: start(callback="x"), r"`callback` must be a function; got 'x'"),
    "chain mode": (lambda: start(chain_mode=["vmap"]), r"`chain_mode` must be one of 'auto', .*; got \['vmap'\]"),
}
OF_A_RUN = {
    "no function": (
        lambda run: run.estimate(None),
        r"`function` must be a function; got None. Write `lambda x: x\[0\]`",
    ),
    "NumPy function": (lambda run: run.expectation(lambda x: np.asarray(x)), "`function` must be .*" + NUMPY),
    "function of nothing": (lambda run: run.estimate(lambda: 1), r"`function` must be a function of a position"),
    "wrong shape": (lambda run: run.estimate(lambda x: x @ jnp.ones(3)), r"`function` must be .*; got TypeError"),
    "percent": (lambda run: run.estimate(lambda x: x).interval(95), r"`level` must be .* below 1; got 95"),
    "centers": (lambda run: run.mode_masses(np.zeros((2, 3))), r"`modes` must be centers of shape \(num_modes, 2\)"),
    "one center": (lambda run: run.mode_masses(1.0), r"`modes` must be centers .*; got 1.0"),
    "unnumbered": (lambda run: run.mode_masses(lambda x: 0), r"`num_modes` must be an integer"),
    "save": (lambda run: run.save(None), r"`folder` must be the path of a folder; got None"),
}


@pytest.fixture(scope="module")
def run():
    return start(num_steps=50, num_chains=2)


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_call_says_what_is_right(name):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        action()


@pytest.mark.parametrize("name", OF_A_RUN)
def test_a_wrong_question_to_a_run_says_what_is_right(name, run):
    action, message = OF_A_RUN[name]
    with pytest.raises(ValueError, match=message):
        action(run)


def test_the_table_is_long():
    assert len(CASES) + len(OF_A_RUN) >= 60


def test_a_frame_is_taken_as_data():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert fit(lambda m, x: -jnp.sum((x - m) ** 2, axis=1), data=rows).draws.shape == (1, 10)
