"""A call of `iso.sample`, whatever its arguments, ends in finite draws or in a refusal of the library's own."""

import re
import warnings
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.foundation.errors import InputError
from isotherm.samplers import METHODS
from tests.properties.configurations import Call, calls

# Every kind of kernel and coupling.
QUICK = ("sgld", "psgld", "sghmc", "cycsgld", "mala", "svgd", "resgld", "vr_resgld", "deo_star_sgd", "csgld", "awsgld")
NUM_QUICK, NUM_LONG = 100, 2_000
_NUM_PER_METHOD = -(-NUM_LONG // len(METHODS))
_ALWAYS: dict[str, Any] = {
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
        except InputError as error:
            assert re.match(r"`[^`]+` must be .+; got .+", str(error), re.DOTALL), str(error)
            return error
        except iso.DivergenceError as error:
            assert "diverged" in str(error)
            return error


def check_run(run: iso.Run) -> None:
    """Refuse draws that are not finite and have weight, and arrays whose axes do not fit."""
    weights, energies = np.asarray(run.log_weights), np.asarray(run.energies)
    assert energies.shape == weights.shape
    assert weights.shape[-1] == run.num_draws
    assert not np.isnan(weights).any()
    assert not (weights == np.inf).any()
    has_weight = weights > -np.inf
    assert np.isfinite(energies[has_weight]).all()
    for leaf in jax.tree.leaves(run.draws):
        assert leaf.shape[: weights.ndim] == weights.shape
        if run.config.get("collects") in (None, "identity"):
            assert np.isfinite(np.asarray(leaf)[has_weight].astype(np.float64)).all()


def judge(call: Call) -> None:
    found = outcome(call)
    if isinstance(found, iso.Run) and "collect" not in call.run:
        check_run(found)


@settings(max_examples=NUM_QUICK, **_ALWAYS)
@given(calls(QUICK, num_devices=len(jax.devices())))
def test_calls_end_in_finite_draws_or_a_refusal(call):
    judge(call)
