"""A call of `iso.sample`, whatever its arguments, ends in finite draws or in a refusal of the library's own."""

import dataclasses
import os
import re
import subprocess
import sys
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.foundation.errors import InputError
from isotherm.samplers import METHODS
from tests.properties.configurations import ENERGIES, Call, calls

# Every kind of kernel and coupling.
QUICK = ("sgld", "psgld", "sghmc", "cycsgld", "mala", "svgd", "resgld", "vr_resgld", "deo_star_sgd", "csgld", "awsgld")
NUM_QUICK, NUM_LONG = 100, 2_000
_NUM_PER_METHOD = -(-NUM_LONG // len(METHODS))
ALWAYS: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "database": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def outcome(call: Call) -> iso.Run | Exception:
    """The run, or the library's refusal. Whatever else is raised or warned about is a fault."""
    with warnings.catch_warnings(), jax.enable_x64(call.is_double):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", iso.DivergenceWarning)
        try:
            return call.sample()
        except (InputError, iso.DivergenceError) as error:
            found = error
    words = "diverged" if isinstance(found, iso.DivergenceError) else r"`[^`]+` must be .+; got .+"
    assert re.search(words, str(found), re.DOTALL), str(found)
    return found


def check_run(run: iso.Run, *, is_finite: bool = True) -> None:
    """Refuse draws with weight that are not finite, unless a function of the user's made them, and axes that do not fit."""
    weights, energies = np.asarray(run.log_weights), np.asarray(run.energies)
    assert energies.shape == weights.shape
    assert weights.shape[-1] == run.num_draws
    assert not np.isnan(weights).any()
    assert not (weights == np.inf).any()
    has_weight = weights > -np.inf
    assert np.isfinite(energies[has_weight]).all()
    for leaf in jax.tree.leaves(run.draws):
        assert leaf.shape[: weights.ndim] == weights.shape
        assert not is_finite or np.isfinite(np.asarray(leaf)[has_weight].astype(np.float64)).all()


def judge(call: Call) -> None:
    """Fail for a call that neither ends in finite draws nor is refused by the library."""
    found = outcome(call)
    if isinstance(found, iso.Run):
        check_run(found, is_finite=str(call.run.get("collect")) != "reciprocals")


@settings(max_examples=NUM_QUICK, **ALWAYS)
@given(calls(QUICK, num_devices=len(jax.devices())))
def test_calls_end_in_finite_draws_or_a_refusal(call):
    judge(call)


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_calls_of_a_method_end_in_finite_draws_or_a_refusal(method):
    num_calls = 0

    @settings(max_examples=_NUM_PER_METHOD, **ALWAYS)
    @given(calls((method,), num_devices=len(jax.devices()), is_long=True))
    def check(call):
        nonlocal num_calls
        num_calls += 1
        # A process may hold only so many pieces of machine code.
        if num_calls % 40 == 0:
            program_cache.forget()
            jax.clear_caches()
        judge(call)

    check()


@pytest.mark.long
@pytest.mark.parametrize("method", ["sgld", "resgld", "csgld"])
def test_calls_on_two_devices(method):
    test = f"{__file__}::test_calls_of_a_method_end_in_finite_draws_or_a_refusal[{method}]"
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "2"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", "-m", "long", test]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


_GOOD = Call("sgld", 0.05, {}, ENERGIES[0], "vector", "float32", "one", None, {"num_steps": 12})


def test_a_good_call_is_a_run():
    found = outcome(_GOOD)
    assert isinstance(found, iso.Run)
    check_run(found)


@pytest.mark.parametrize(
    "changes", [{"draws": np.nan}, {"energies": np.inf}, {"log_weights": np.nan}, {"log_weights": np.inf}]
)
def test_numbers_that_are_not_finite_are_noticed(changes):
    run = outcome(_GOOD)
    assert isinstance(run, iso.Run)
    spoiled = {name: np.array(getattr(run, name)) for name in changes}
    for name, value in changes.items():
        spoiled[name][0, 3] = value
    with pytest.raises(AssertionError):
        check_run(dataclasses.replace(run, **spoiled))


def test_errors_of_other_kinds_are_noticed(monkeypatch):
    monkeypatch.setitem(METHODS, "sgld", lambda step_size: step_size + "1")
    with pytest.raises(TypeError, match="unsupported operand"):
        outcome(_GOOD)
