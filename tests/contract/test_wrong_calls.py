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


def network(library: str, **options):
    return getattr(Iso, f"from_{library}")(None, "cross_entropy", (np.ones((4, 2)), np.ones(4, int)), **options)


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
    "box of a wrong shape": (
        lambda: start(sampler=iso.sgld(0.1, box=(np.zeros(3), np.ones(3)))),
        r"`box` must be \(low, high\) of shape \(2,\), as the position; got ends of shape \(3,\). Give numbers",
    ),
    "box on a rung": (
        lambda: start(sampler=iso.resgld(0.1, box=(-np.ones((4, 2)), np.ones((4, 2))))),
        r"`box` must be .* of shape \(2,\)",
    ),
    "ends of two shapes": (
        lambda: Iso.sgld(0.1, box=(np.zeros(3), np.ones(2))),
        r"`box` must be \(low, high\) of one shape, or numbers; got shapes \(3,\) and \(2,\)",
    ),
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
    "load a file": (lambda: Iso.load(__file__), r"`folder` must be .*; got .*test_wrong_calls.py"),
    "sweep of functions": (
        lambda: Iso.sweep(energy, {"a": iso.sgld}, num_steps=9, init=jnp.zeros(2)),
        r"`sampler` must be a sampler; got the function sgld. Call it: `iso.sgld",
    ),
    "sweep of numbers": (
        lambda: Iso.sweep(energy, [0.1, 0.2], num_steps=9, init=jnp.zeros(2)),
        r"`sampler` must be a sampler; got 0.1. Pass `iso.sgld",
    ),
    "sweep of nothing": (
        lambda: Iso.sweep(energy, {}, num_steps=9),
        r"`samplers` must be a dict or a list.*; got none",
    ),
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
    "no starts": (lambda: Iso.per_chain(), r"`positions` must be given to `iso.per_chain`; got nothing"),
    "NumPy collect": (lambda: start(collect=lambda x: np.sum(np.asarray(x))), "`collect` must be .*" + NUMPY),
    "collect of a float": (lambda: start(collect=lambda x: float(x[0])), r"`collect` must be .*Leave out float\(\)"),
    "branching collect": (lambda: start(collect=lambda x: x if x[0] > 0 else -x), r"`collect` must be .*`jnp.where"),
    "collect of two": (lambda: start(collect=lambda x, y: x), r"`collect` must be a function of one position"),
    "collect of text": (lambda: start(collect=lambda x: "a"), r"`collect` must be .* returns arrays; got TypeError"),
    "callback of two": (
        lambda: start(callback=lambda a, b: None),
        r"`callback` must be a function of one argument; got one of \(a, b\). Write `lambda status",
    ),
    "text as data": (
        lambda: fit(like, data=np.array(["a", "b"])),
        r"`data` must be numbers; got text or Python objects",
    ),
    "network without data": (lambda: Iso.from_nnx(None, "cross_entropy"), r"`data` must be given to `iso.from_nnx`"),
    "network's batches": (
        lambda: Iso.from_nnx(None, "cross_entropy", (np.ones((4, 2)), np.ones(4, int)), batchsize=2),
        r"`batchsize` must be an option of `iso.from_nnx`; got an unknown name. Did you mean `batch_size`",
    ),
    "network's precision": (lambda: network("nnx", dtype=jnp.bfloat16), r"Did you mean `compute_dtype`"),
    "network's prior": (lambda: network("nnx", l2=1.0), r"Did you mean `weight_decay`"),
    "network's decay": (lambda: network("linen", weightdecay=1.0), "`weightdecay` .*Did you mean `weight_decay`"),
    "network's dropout": (lambda: network("equinox", dropout_rate=0.1), r"Did you mean `dropout`"),
    "network's augmentation": (lambda: network("equinox", augmentation=None), r"Did you mean `augment`"),
    "network's nonsense": (lambda: network("linen", color=3), r"It takes: module, loss, data, weights, .*batch_size, "),
    "no transforms": (
        lambda: Iso.transforms.constrain(energy),
        r"`transforms` must be given to `iso.transforms.constr",
    ),
    "interval of text": (
        lambda: Iso.transforms.interval("a", 1.0),
        r"`low` must be a number or an array.*; got 'a' and",
    ),
    "cache": (lambda: Iso.use_compilation_cache(3), r"`directory` must be the path of a folder; got 3"),
    "data nowhere": (lambda: Iso.data.load("mushroom", None), r"`folder` must be the path of a folder; got None"),
    "ladder of numbers": (
        lambda: Iso.exchange.Ladder(0.1, 1.0),
        r"`step_sizes` must be a tuple, one number .*; got 0.1",
    ),
    "step without state": (lambda: Iso.sgld(0.1).step(0, None), r"`state` must be the state of a loop; got None. Call"),
    "step without key": (
        lambda: Iso.sgld(0.1).step(0, iso.sgld(0.1).init(energy, jnp.zeros(2))),
        r"`key` must be a key of JAX; got 0. Pass `jax.random.key",
    ),
    "minimize by a sampler": (
        lambda: Iso.minimize(energy, iso.sgld(0.1)),
        r"`x0` must be an array of numbers; got sgld",
    ),
    "minimize a vector": (
        lambda: Iso.minimize(lambda x: x, bounds=[(-1.0, 1.0)] * 2),
        r"`fun` must be a function that returns one number; got an array of shape \(2,\)",
    ),
    "no environment": (lambda: Iso.bandits.play(None, None), r"`environment` must be an environment; got None. Write"),
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
    "quantile of text": (lambda run: run.quantile("a"), r"`q` must be between 0 and 1; got 'a'"),
    "select text": (lambda run: run.select("a"), r"`draws` must be a slice or an array of integers; got 'a'"),
    "limits": (lambda run: run.plot_density(limits=3), r"`limits` must be \(low, high\).*; got 3. Write `limits="),
    "coordinates": (lambda run: run.plot_trace("b"), r"`coordinates` must be names, or numbers from 0 to 1; got 'b'"),
    "predict alone": (
        lambda run: Iso.predictive.predict(run),
        r"`potential` must be given to `iso.predictive.predict`; got nothing. Call .*\(run, potential, inputs\)",
    ),
    "predict swapped": (
        lambda run: Iso.predictive.predict(iso.from_energy(energy), run, np.ones((2, 2))),
        r"`run` must be a run, or draws from elsewhere; got .*The run comes before the potential",
    ),
    "predict without a network": (
        lambda run: Iso.predictive.predict(run, iso.from_energy(energy), np.ones((2, 2))),
        r"`potential` must be the potential of a network; got .*`iso.from_nnx`",
    ),
    "outputs swapped": (
        lambda run: Iso.predictive.outputs_of_draws(energy, run, np.ones((2, 2))),
        r"`run` must be a run, or draws from elsewhere",
    ),
    "accuracy of a run": (
        lambda run: Iso.predictive.accuracy(run, [0, 1]),
        r"`probabilities` must be an array of numbers; got a Run. A run holds networks; .*predict\(run, potential, in",
    ),
    "error of a run": (lambda run: Iso.predictive.crps(run, [0.0]), r"`means` must be an array of numbers; got a Run"),
    "logits of text": (lambda run: Iso.predictive.scaled("a", 1.0), r"`logits` must be an array of numbers; got 'a'"),
    "SWAG of a potential": (
        lambda run: Iso.predictive.fit_swag(energy),
        r"`run` must be a run, or draws from elsewhere",
    ),
    "no labels": (lambda run: Iso.predictive.nll([[1.0]]), r"`labels` must be given to `iso.predictive.nll`"),
    "joined runs": (lambda run: Iso.predictive.joined(run), r"`parts` must be pairs \(ensemble, factor\); got a Run"),
    "paths of a run": (lambda run: Iso.predictive.project(run, energy), r"`paths` must be a list of paths; got a Run"),
    "reliability of a run": (
        lambda run: Iso.predictive.plot_reliability(run),
        r"`calibration` must be what .*; got a Run",
    ),
    "landscape of a run": (lambda run: Iso.predictive.plot_landscape(run), r"`landscape` must be what .*; got a Run"),
    "curves of a run": (
        lambda run: Iso.predictive.plot_entropy_cdfs(run),
        r"`values` must be a dictionary by.*; got a Run",
    ),
    "trained swapped": (
        lambda run: Iso.predictive.trained(run, energy, iso.sgld(0.1)),
        r"`potential` must be the potential of a network",
    ),
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


def test_a_frame_is_no_start():
    pandas = pytest.importorskip("pandas")
    message = (
        r"`init` must be a position of arrays; got a DataFrame. Pass its numbers: frame.to_numpy\(\), or `iso.per_chain"
    )
    with pytest.raises(ValueError, match=message):
        start(init=pandas.DataFrame({"a": [0.0, 1.0]}))
    with pytest.raises(ValueError, match=message):
        start(init=iso.per_chain(pandas.DataFrame({"a": [0.0, 1.0]})))


def test_a_frame_is_taken_as_data():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert fit(lambda m, x: -jnp.sum((x - m) ** 2, axis=1), data=rows).draws.shape == (1, 10)
