"""The limit for loops that a CPU compiles into one function: raised for programs of the library, and for nothing else."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

import isotherm as iso
from isotherm.engine import program_cache, whole_loops
from isotherm.engine.whole_loops import MAX_WHOLE_LOOP, whole_loops_flag
from tests.compiled import prepared, text_of

pytestmark = [
    pytest.mark.as_users,
    pytest.mark.skipif(jax.default_backend() != "cpu", reason="CPUs alone have such functions."),
]

# What is looked at is what users get.
IS_OPTIMIZED = True
ONE_FUNCTION = 'xla_cpu_small_call="true"'
# The loop of 16 chains touches more than the 1 KB of XLA's limit, and less than ours.
CHAINS = 16


def of_the_library() -> str:
    program_cache.forget()
    run = prepared(
        lambda x: jnp.sum(jnp.cos(x)), iso.sgld(0.1), jnp.ones(2), num_steps=100, thinning=10, num_chains=CHAINS
    )
    return text_of(run)


def of_the_user() -> str:
    def iterate(_, x):
        return x + jnp.sin(x) * jnp.flip(x) - jnp.cumsum(x)

    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 100, iterate, x))
    return loop.lower(jnp.ones(400)).compile().as_text() or ""


def sampled():
    return iso.sample(lambda x: jnp.sum(jnp.cos(x)), iso.sgld(0.1), num_steps=100, init=jnp.ones(2), num_chains=CHAINS)


def test_programs_of_the_library_alone_have_the_limit():
    assert ONE_FUNCTION not in of_the_user()
    assert ONE_FUNCTION in of_the_library()
    assert ONE_FUNCTION not in of_the_user()


def test_settings_of_the_process_stay():
    script = (
        "import os, jax; before = dict(os.environ), dict(jax.config.values)\n"
        "import isotherm as iso, jax.numpy as jnp\n"
        "iso.sample(lambda x: jnp.sum(x * x), iso.sgld(0.1), num_steps=100, init=jnp.ones(2), progress=False)\n"
        "assert before == (dict(os.environ), dict(jax.config.values))"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_options_of_the_user_replace_it(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", f"{os.environ.get('XLA_FLAGS', '')} {whole_loops_flag(1)}")
    assert ONE_FUNCTION not in of_the_library()


def test_the_flag_does_the_same():
    script = (
        "from tests.contract import test_whole_loops as here\n"
        "assert (here.ONE_FUNCTION in here.of_the_user()) and (here.ONE_FUNCTION in here.of_the_library())"
    )
    environment = {**os.environ, "XLA_FLAGS": whole_loops_flag(MAX_WHOLE_LOOP)}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)


@pytest.mark.parametrize("change", ["fields", "function"])
def test_other_versions_of_jax_go_without(monkeypatch, change):
    from jax._src import compiler

    draws = sampled().draws
    if change == "fields":
        monkeypatch.setattr(whole_loops, "_FIELD_NUMBERS", (3, 3, 0))
        assert ONE_FUNCTION not in of_the_library()
    else:
        # JAX itself needs this function: without it, only the wrapping can be tried.
        monkeypatch.delattr(compiler, "get_compile_options")
        whole_loops._wrap_compile_options()
        assert not hasattr(compiler, "get_compile_options")
        monkeypatch.undo()
    assert jnp.array_equal(sampled().draws, draws)
