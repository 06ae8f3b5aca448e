"""Loops that a CPU runs as one function: what keeps XLA from it costs more than the arithmetic."""

import re

import jax
import jax.numpy as jnp
import pytest

import isotherm as iso
from isotherm.exchange import Adjacent, swaps
from tests.compiled import computations, prepared, text_of

pytestmark = pytest.mark.as_users

# What is looked at is what users get.
IS_OPTIMIZED = True


def is_one_function(sampler):
    """Whether a CPU runs the loop over the iterations of a toy as one function, and does not dispatch every operation of it."""
    run = prepared(lambda x: jnp.sum(jnp.cos(x)), sampler, jnp.ones(2), num_steps=100, thinning=10)
    known = computations(text_of(run))
    loops = {
        name: body for name, lines in known.items() for line in lines for body in re.findall(r"body=%?([\w.\-]+)", line)
    }
    called = {
        name
        for lines in known.values()
        for line in lines
        if 'xla_cpu_small_call="true"' in line
        for name in re.findall(r"to_apply=%?([\w.\-]+)", line)
    }
    trace = f"f32[{run.program.group},{sampler.coupling.traits.num_chains}]"
    holders = [
        name for name, body in loops.items() if any(trace in line and "update-slice" in line for line in known[body])
    ]
    assert holders
    return any(name in called for name in holders)


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="CPUs alone have such functions.")
def test_loops_of_exchange_are_one_function(monkeypatch):
    in_turn = iso.resgld(0.1, temperatures=(1.0, 2.0, 4.0), scheme=Adjacent())
    even_odd = iso.resgld(0.1, temperatures=(1.0, 2.0, 4.0))
    assert all(is_one_function(sampler) for sampler in (iso.resgld(0.1), even_odd, in_turn))

    # The control: a scatter is dispatched, and with it all else.
    def scattered(permutation):
        return jnp.zeros_like(permutation).at[permutation].set(jnp.arange(len(permutation), dtype=permutation.dtype))

    monkeypatch.setattr(swaps, "inverse", scattered)
    assert not is_one_function(in_turn)
