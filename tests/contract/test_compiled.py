"""What the compiled loop holds: swaps move no parameters, and a run compiles once."""

import collections
import dataclasses
import gc
import re
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import isotherm as iso
from isotherm.engine import periodic_work as periodic
from isotherm.engine import program, program_cache
from isotherm.kernels import SGLD
from tests.compiled import computations, prepared, text_of

pytestmark = pytest.mark.as_users

# What is looked at is what users get.
IS_OPTIMIZED = True

INPUTS, HIDDEN, CHAINS = 41, 613, 4
DATA = np.random.default_rng(0).standard_normal((200, INPUTS)).astype(np.float32)
SMALLEST = INPUTS * HIDDEN  # Elements of the weights of one replica.
MOVES = (
    "gather",
    "scatter",
    "copy",
    "dynamic-slice",
    "dynamic-update-slice",
    "concatenate",
    "all-gather",
    "all-reduce",
    "collective-permute",
)


def perceptron(weights, inputs):
    return -0.5 * (jax.nn.relu(inputs @ weights["in"]) @ weights["out"]) ** 2


def compiled(sampler):
    """The text of the compiled program of a large position."""
    potential = iso.from_likelihood(perceptron, lambda w: -0.5 * jnp.sum(w["in"] ** 2), DATA, batch_size=20)
    start = {"in": 0.1 * jnp.ones((INPUTS, HIDDEN)), "out": 0.1 * jnp.ones(HIDDEN)}
    run = prepared(potential, sampler, start, num_steps=100, num_chains=CHAINS, thinning=10)
    assert run.program.chunk == 1
    return text_of(run)


def innermost(text):
    """All instructions of the loop over iterations, with those of what it calls: the smallest loop that has products in it."""
    known = computations(text)

    def reached(name):
        lines = list(known[name])
        for line in known[name]:
            for called in re.findall(r"(?:calls|body|condition|to_apply)=%?([\w.\-]+)", line):
                lines += reached(called)
        return lines

    bodies = [reached(name) for line in text.splitlines() for name in re.findall(r"body=%?([\w.\-]+)", line)]
    with_products = [lines for lines in bodies if any(re.search(r" (dot|custom-call)\(", line) for line in lines)]
    return min(with_products, key=len)


def large_moves(lines):
    """Instructions that move at least one replica's weights."""
    found = []
    for line in lines:
        match = re.search(r"= \(?\w+\[([\d,]*)\]\S* ([\w\-]+)\(", line)
        if match and match[2] in MOVES and np.prod([int(n) for n in match[1].split(",") if n] or [1]) >= SMALLEST:
            found.append((match[2], match[1]))
    return found


@pytest.mark.parametrize("name", ["sgld", "sghmc"])
def test_swaps_move_no_parameters(name):
    ladder = (1.0, 2.0, 3.0, 4.0)
    exchange = {"sgld": iso.naive_resgld, "sghmc": iso.resghmc}[name](1e-4, temperatures=ladder)
    alone = {"sgld": iso.sgld, "sghmc": iso.sghmc}[name](step_size=1e-4)
    with_swaps, without = (collections.Counter(large_moves(innermost(compiled(one)))) for one in (exchange, alone))
    assert with_swaps - without == collections.Counter()
    # What is left is the noise of a chain being put together, and copies within a chain.
    assert {kind for kind, _ in with_swaps} <= {"concatenate", "copy"}


def test_a_move_of_parameters_would_be_seen():
    class Shuffled(SGLD):
        def step(self, state, gradient, noise, move, curvature=None):
            moved = super().step(state, gradient, noise, move, curvature)
            order = jnp.argsort(gradient["out"])
            return moved._replace(position={**moved.position, "in": moved.position["in"][:, order]})

    sampler = dataclasses.replace(iso.sgld(step_size=1e-4), kernel=Shuffled())
    assert "gather" in {kind for kind, _ in large_moves(innermost(compiled(sampler)))}


def test_periodic_work_is_in_the_loop_and_compiles_nothing_of_its_own():
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, None, DATA[:, 0], batch_size=10)
    before = program_cache.num_programs()
    iso.sample(potential, iso.vr_resgld(1e-3, refresh_every=20), num_steps=100, init=jnp.zeros(()))
    # The look at a few examples, the start, the loop, and the statistics.
    assert program_cache.num_programs() == before + 4


BATCH, MEASURED = 7, 10


def owned(text, trace, shape):
    """For every loop with iterations in it, which write a `trace`: whether each of its turns does work on arrays of `shape`."""
    known = computations(text)

    def reached(name, enters_loops):
        lines = list(known[name])
        for line in known[name]:
            called = re.findall(r"(?:calls|to_apply)=%?([\w.\-]+)", line)
            if enters_loops:
                called += re.findall(r"body=%?([\w.\-]+)", line)
            lines += [found for other in called for found in reached(other, enters_loops)]
        return lines

    bodies = [name for line in text.splitlines() for name in re.findall(r"body=%?([\w.\-]+)", line)]
    iterating = [name for name in bodies if any(trace in line for line in reached(name, True))]
    assert iterating
    return [
        any(re.search(rf"= {shape}\S* (xor|fusion|call)\(", line) for line in reached(name, False))
        for name in iterating
    ]


def measuring():
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, None, DATA[:, 0], batch_size=BATCH)
    run = prepared(
        potential, iso.resgld(1e-3, measure_every=50, variance="tracked"), jnp.zeros(()), num_steps=100, thinning=10
    )
    text = text_of(run)
    assert f"u32[{MEASURED},{BATCH}]" in text
    return owned(text, f"f32[{run.program.group},2]", rf"u32\[{MEASURED},{BATCH}\]")


def test_batches_of_measurements_are_drawn_only_when_they_are_due():
    assert not any(measuring())


def test_batches_that_the_compiler_moves_out_of_their_loop_would_be_seen(monkeypatch):
    def naive(parts, keys, state, iteration):
        (work,), _ = periodic.inside(parts)
        once = lambda _, own: periodic.couple(parts, work, keys, state._replace(coupling=own), iteration)  # noqa: E731
        is_due = (iteration % work.period(iteration) == 0).astype(jnp.int32)
        return state._replace(coupling=lax.fori_loop(0, is_due, once, state.coupling))

    monkeypatch.setattr(program, "work_inside", naive)
    assert any(measuring())


def test_changed_numbers_compile_nothing():
    energy = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    options: dict[str, Any] = {"num_steps": 50, "num_chains": 2, "init": jnp.ones(2)}
    pairs = [
        (iso.sgld(0.1), iso.sgld(float(np.float32(0.2)), temperature=2)),
        (iso.sghmc(0.1, box=(-3, 3)), iso.sghmc(0.2, friction=0.3, box=(-2.0, 5.0))),
        (iso.resgld(0.1), iso.resgld((0.2, 0.3), temperatures=(2.0, 3.0), correction_factor=4.0)),
        (
            iso.icsgld(0.1, partition=(0.0, 4.0, 10)),
            iso.icsgld(0.2, partition=(1.0, 9.0, 10), zeta=0.3, bounds=(-1.0, 2.0)),
        ),
        (iso.cycsgld(0.1, cycle_length=50), iso.cycsgld(0.2, cycle_length=50, floor=0.1)),
    ]
    before = 0
    for first, second in pairs:
        given = {**options, "num_chains": None} if first.coupling.traits.num_chains else options
        iso.sample(energy, first, **given)
        before = program_cache.num_programs()
        iso.sample(energy, second, **given)
        assert program_cache.num_programs() == before
    # The control: another structure is another program.
    iso.sample(energy, iso.sgld(0.1), **{**options, "num_chains": 3})
    assert program_cache.num_programs() > before


def test_programs_go_with_the_functions_that_they_were_made_of():
    def run():
        offset = jnp.ones(3)
        energy = lambda x: 0.5 * jnp.sum((x - offset) ** 2)  # noqa: E731
        iso.sample(energy, iso.sgld(0.1), num_steps=20, init=jnp.zeros(3))
        return weakref.ref(energy), program_cache.num_programs()

    before = program_cache.num_programs()
    held, during = run()
    gc.collect()
    assert during > before
    assert held() is None
    assert program_cache.num_programs() == before


def test_a_sweep_is_one_program():
    energy = lambda x: 0.5 * jnp.sum(x**2)  # noqa: E731
    samplers = {(s, t): iso.sgld(s, temperature=t) for s in np.geomspace(0.01, 0.5, 20) for t in (0.5, 1.0, 2.0)}
    before = program_cache.num_programs()
    runs = iso.sweep(energy, samplers, num_steps=200, num_chains=2, init=jnp.ones(2))
    assert program_cache.num_programs() == before + 3  # The start, the loop, and the statistics.
    for name in ((0.01, 0.5), (0.5, 2.0)):
        alone = iso.sample(energy, samplers[name], num_steps=200, num_chains=2, init=jnp.ones(2))
        np.testing.assert_allclose(runs[name].draws, alone.draws, rtol=1e-4, atol=1e-5)
        assert runs[name].config["sampler"] == alone.config["sampler"]
    # Those of another structure are run apart, and come back in order.
    mixed = iso.sweep(energy, [iso.sgld(0.1), iso.resgld(0.1), iso.sgld(0.2)], num_steps=100, init=jnp.ones(2))
    assert list(mixed) == [0, 1, 2]
    assert [run.name for run in mixed.values()] == ["sgld", "resgld", "sgld"]
    assert mixed[1].stats["num_swaps"].shape == (2, 1)
