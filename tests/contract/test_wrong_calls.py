"""Wrong calls of `iso.sample` and its like: each is refused with what was wrong and the call that is right."""

import math

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from tests.contract import test_wrong_questions, test_wrong_samplers
from tests.contract.calls import NUMPY, UNKNOWN, Iso, assert_refused, energy, fit, like, network, start

CASES = {
    "not called": (lambda: start(sampler=iso.sgld), r"`sampler` must be .*; got the function sgld. Call it: `iso.sgld"),
    "a name": (lambda: start(sampler="sgld"), r"`sampler` must be a sampler; got 'sgld'. Pass `iso.sgld\(0.01\)`"),
    "a number": (lambda: start(sampler=0.1), r"`sampler` must be a sampler; got 0.1"),
    "swapped": (lambda: start(iso.sgld(0.1), energy), r"`potential` must be .*; got the sampler sgld.* comes first"),
    "no sampler": (lambda: Iso.sample(energy, num_steps=9), r"`init` must be a position, .*; got None"),
    "no steps": (lambda: Iso.sample(energy, iso.sgld(0.1)), r"Call `iso.sample\(potential, sampler, num_steps=...\)`"),
    "by place": (lambda: Iso.sample(energy, iso.sgld(0.1), 9), r"at most 2 arguments by position .*; got 3. Name"),
    "num_step": (lambda: start(num_step=9), "`num_step` " + UNKNOWN.format("sample") + r"Did you mean `num_steps`"),
    "chains": (lambda: start(chains=9), r"Did you mean `num_chains`"),
    "thin": (lambda: start(thin=9), r"Did you mean `thinning`"),
    "warmup": (lambda: start(warmup=9), r"Did you mean `burn_in`"),
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
        r"`energy` must be a function that can be evaluated at the start; got TypeError",
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


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_call_says_what_is_right(name):
    assert_refused(*CASES[name])


def test_the_table_is_long():
    assert len(CASES) + len(test_wrong_questions.CASES) + len(test_wrong_samplers.CASES) >= 60


def test_a_frame_is_no_start():
    pandas = pytest.importorskip("pandas")
    message = r"`init` must be a position of arrays; got a DataFrame. Pass frame.to_numpy\(\), or `iso.per_chain"
    with pytest.raises(ValueError, match=message):
        start(init=pandas.DataFrame({"a": [0.0, 1.0]}))
    with pytest.raises(ValueError, match=message):
        start(init=iso.per_chain(pandas.DataFrame({"a": [0.0, 1.0]})))


def test_a_frame_is_taken_as_data():
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert fit(lambda m, x: -jnp.sum((x - m) ** 2, axis=1), data=rows).draws.shape == (1, 10)
