"""What the compiled loop holds: swaps move no parameters, and a run compiles once."""

import collections
import dataclasses
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.kernels import SGLD
from isotherm.sampling.driver import identity
from isotherm.sampling.settings import Settings, build_program
from isotherm.sampling.start import start_positions

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
    settings = Settings(100, CHAINS, 1, 0, 10, 0, -np.inf, None, "vmap", None)
    position = start_positions(start, settings.seed_key(), 1, CHAINS, sampler.kernel)
    program = build_program(potential, sampler, settings, position, identity, 10)
    assert program.chunk == 1
    feed, key = potential.feed(), settings.seed_key()
    carry = program.init(position)
    records = program.init_records(key, feed, carry)
    times = jnp.zeros(program.slots + program.rows, jnp.int32)
    advance: Any = program.advance
    return advance.lower(key, feed, carry, records, times, jnp.zeros(()), 0, 100).compile().as_text()


def computations(text):
    """Instructions of each computation by its name."""
    blocks = re.findall(r"^(?:ENTRY )?%?([\w.\-]+) \(.*?\{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL)
    return {name: body.splitlines() for name, body in blocks}


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


def test_periodic_work_does_not_compile_the_loop_again():
    potential = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, None, DATA[:, 0], batch_size=10)
    sampler = iso.vr_resgld(1e-3, refresh_every=20)
    settings = Settings(100, 2, 1, 0, 1, 0, -np.inf, None, "vmap", None)
    iso.sample(potential, sampler, num_steps=100, init=jnp.zeros(()))
    position = start_positions(jnp.zeros(()), settings.seed_key(), 1, 2, sampler.kernel)
    program = build_program(potential, sampler, settings, position, identity, 100)
    jitted: list[Any] = [program.advance, program.measure, program.refresh]
    assert [one._cache_size() for one in jitted] == [1, 1, 1]
