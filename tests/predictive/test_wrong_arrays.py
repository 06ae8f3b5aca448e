"""Arrays of a wrong shape, length, type or value: every score refuses each with a message that names the argument."""

import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest

from isotherm import predictive

IS_OPTIMIZED = False
RNG = np.random.default_rng(0)
RAGGED = [[0.5, 0.5], [1.0]]

# What is wrong with an array of each kind. The right ones, in `CALLS`, are of 4 examples, 3 classes and 5 draws.
ANY = {"text": ["a", "b", "c", "d"], "numbers as text": ["0", "1", "0", "1"], "ragged": RAGGED, "a set": {1, 2}}
OF_NUMBERS = {**ANY, "complex": np.array([0.5 + 1j, 0.2, 0.1, 0.3]), "dates": np.zeros(4, "datetime64[s]"), "empty": []}


def holed(array, value):
    changed = np.array(array, float)
    changed.flat[1] = value
    return changed


VALUES = np.array([0.1, 0.4, 0.2, 0.9])
P = np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2], [0.3, 0.3, 0.4]])
MEANS = RNG.standard_normal((5, 4))
WRONG: dict[str, dict[str, Any]] = {
    "values": {
        **OF_NUMBERS,
        "a column": VALUES[:, None],
        "a number": 0.5,
        "NaN": holed(VALUES, np.nan),
        "infinity": holed(VALUES, np.inf),
    },
    "weights": {
        **OF_NUMBERS,
        "too few": np.ones(3),
        "too many": np.ones(6),
        "a column": np.ones((4, 1)),
        "a number": 1.0,
        "negative": holed(np.ones(4), -1.0),
        "NaN": holed(np.ones(4), np.nan),
        "infinity": holed(np.ones(4), np.inf),
        "zeros": np.zeros(4),
    },
    "labels": {
        **ANY,
        "empty": [],
        "too few": [0, 1, 2],
        "too many": [0, 1, 2, 0, 1],
        "a column": [[0], [1], [2], [0]],
        "one-hot": np.eye(3)[[0, 1, 2, 0]],
        "between classes": [0.4, 1.0, 2.0, 0.0],
        "reals": [0.0, 1.0, 2.0, 0.0],
        "below zero": [0, 1, -1, 0],
        "from one": [1, 2, 3, 1],
        "complex": np.array([0, 1, 2, 0], complex),
        "a number": 1,
    },
    "probabilities": {
        **OF_NUMBERS,
        "a vector": P[:, 0],
        "of draws": P[None, None],
        "logits": 4.0 * P - 2.0,
        "NaN": holed(P, np.nan),
        "percent": 100 * P,
        "examples last": P.T,
        "scores of classes": 0.5 * P,
    },
    "logits": {
        **OF_NUMBERS,
        "a vector": VALUES,
        "one logit": VALUES[:, None],
        "NaN": holed(P, np.nan),
        "infinity": holed(P, -np.inf),
    },
    "means": {
        **OF_NUMBERS,
        "a vector": VALUES,
        "an axis of one": MEANS[..., None],
        "NaN": holed(MEANS, np.nan),
        "infinity": holed(MEANS, np.inf),
    },
    "noise": {
        "text": "loud",
        "complex": 1j,
        "zero": 0.0,
        "negative": -1.0,
        "NaN": np.nan,
        "of two draws": np.ones(2),
        "examples first": np.ones((4, 5)),
        "one zero": holed(np.ones((5, 4)), 0.0),
    },
    "level": {"zero": 0.0, "negative": -0.1, "percent": 95.0, "NaN": np.nan, "text": "all", "several": [0.5, 0.9]},
    "positive": {
        "zero": 0.0,
        "negative": -1.0,
        "NaN": np.nan,
        "infinity": np.inf,
        "text": "hot",
        "several": [1.0, 2.0],
    },
    "number": {"zero": 0, "half": 0.5, "negative": -3, "text": "many", "yes": True},
}


class Call(NamedTuple):
    """A right call, and of which kind its arguments are; `kind+length` for arrays whose length others fix."""

    given: dict[str, Any]
    kinds: dict[str, str]


SCORED = {"probabilities": P, "labels": [0, 1, 2, 0], "weights": np.ones(4)}
OF_SCORED = {"probabilities": "probabilities", "labels": "labels", "weights": "weights"}
DRAWN = {"means": MEANS, "draw_weights": np.ones(5), "noise": np.ones(5)}
OF_DRAWN = {"means": "means", "draw_weights": "weights", "noise": "noise"}
APART = {"inside": VALUES, "outside": VALUES, "inside_weights": np.ones(4), "outside_weights": np.ones(4)}
OF_APART = {name: "weights" if "weights" in name else "values" for name in APART}


def only(names, table):
    return {name: table[name] for name in names}


CALLS = {
    "accuracy": Call(SCORED, OF_SCORED),
    "nll": Call(SCORED, OF_SCORED),
    "brier": Call(SCORED, OF_SCORED),
    "summarize": Call(SCORED, OF_SCORED),
    "calibration": Call({**SCORED, "num_bins": 5}, {**OF_SCORED, "num_bins": "number"}),
    "brier_ood": Call(only(("probabilities", "weights"), SCORED), only(("probabilities", "weights"), OF_SCORED)),
    "entropy": Call({"probabilities": P}, {"probabilities": "probabilities"}),
    "mutual_information": Call(
        {"mean_probabilities": P, "mean_entropy": 0.1 * VALUES},
        {"mean_probabilities": "probabilities", "mean_entropy": "values+length"},
    ),
    "fit_temperature": Call(
        {"logits": P, "labels": [0, 1, 2, 0], "weights": np.ones(4)},
        {"logits": "logits", "labels": "labels", "weights": "weights"},
    ),
    "scaled": Call({"logits": P, "temperature": 2.0}, {"logits": "logits", "temperature": "positive"}),
    "auroc": Call(APART, OF_APART),
    "fpr95": Call({**APART, "level": 0.9}, {**OF_APART, "level": "level"}),
    "plot_entropies": Call({**APART, "bins": 4}, {**OF_APART, "bins": "number"}),
    "entropy_cdf": Call(
        {"values": VALUES, "grid": VALUES, "weights": np.ones(4)},
        {"values": "values", "grid": "values", "weights": "weights"},
    ),
    "predictive_mean": Call(only(("means", "draw_weights"), DRAWN), only(("means", "draw_weights"), OF_DRAWN)),
    "rmse": Call(
        {"mean": VALUES, "targets": VALUES, "weights": np.ones(4)},
        {"mean": "values", "targets": "values+length", "weights": "weights"},
    ),
    "gaussian_nll": Call(
        {**DRAWN, "targets": VALUES, "weights": np.ones(4)},
        {**OF_DRAWN, "targets": "values+length", "weights": "weights"},
    ),
    "crps": Call(
        {**DRAWN, "targets": VALUES, "weights": np.ones(4)},
        {**OF_DRAWN, "targets": "values+length", "weights": "weights"},
    ),
    "intervals": Call({**DRAWN, "level": 0.9}, {**OF_DRAWN, "level": "level"}),
    "coverage": Call(
        {"low": VALUES - 1, "high": VALUES + 1, "targets": VALUES, "weights": np.ones(4)},
        {"low": "values", "high": "values+length", "targets": "values+length", "weights": "weights"},
    ),
    "plot_intervals": Call(
        {**DRAWN, "targets": VALUES, "at": VALUES, "level": 0.9},
        {**OF_DRAWN, "targets": "values+length", "at": "values+length", "level": "level"},
    ),
    "ensemble_uncertainty": Call(
        {"probabilities_of_draws": np.stack([P] * 5), "draw_weights": np.ones(5)}, {"draw_weights": "weights"}
    ),
}
# These take draws, networks or results, not arrays, and have tests of their own.
OF_DRAWS = {"fit_swag", "joined", "outputs_of_draws", "predict", "refresh_statistics", "trained"}
OF_RESULTS = {"plot_entropy_cdfs", "plot_reliability"}
LENGTHS = {"too few": VALUES[:3], "too many": np.ones(6)}


def wrong_of(kind):
    found, *is_fixed = kind.split("+")
    return {**WRONG[found], **(LENGTHS if is_fixed else {})}


CASES = [
    (name, argument, what)
    for name, call in CALLS.items()
    for argument, kind in call.kinds.items()
    for what in wrong_of(kind)
]


def test_every_function_that_takes_arrays_is_here():
    functions = {name for name in predictive.__all__ if inspect.isfunction(getattr(predictive, name))}
    assert functions == set(CALLS) | OF_DRAWS | OF_RESULTS
    for name, call in CALLS.items():
        taken = set(inspect.signature(getattr(predictive, name)).parameters)
        assert set(call.given) <= taken
        assert taken - set(call.given) <= {"axis", "is_sum"}
        assert set(call.given) - set(call.kinds) <= {"probabilities_of_draws"}


@pytest.mark.parametrize("name", CALLS)
def test_the_right_call_is_taken(name):
    getattr(predictive, name)(**CALLS[name].given)


@pytest.mark.parametrize(("name", "argument", "what"), CASES)
def test_a_wrong_array_is_refused_by_name(name, argument, what):
    call = CALLS[name]
    wrong = wrong_of(call.kinds[argument])[what]
    with pytest.raises(ValueError, match=rf"^`{argument}` must be [^;]+; got .+\. \w.+"):
        getattr(predictive, name)(**{**call.given, argument: wrong})


OTHERS = {
    "bits": (
        lambda: predictive.mutual_information(P, [1.5] * 4),
        r"`mean_entropy` must be entropies in nats.*1\.1.* to 1.5",
    ),
    "negative entropies": (
        lambda: predictive.mutual_information(P, [-0.5] * 4),
        "`mean_entropy` must be .*-0.5 to -0.5",
    ),
    "no noise": (lambda: predictive.gaussian_nll(MEANS, None, VALUES), "`noise` must be .*; got None"),  # pyright: ignore[reportArgumentType]
    "two draws": (lambda: predictive.ensemble_uncertainty(P), "`probabilities_of_draws` must be of shape"),
    "NaN of a draw": (
        lambda: predictive.ensemble_uncertainty(np.stack([P, holed(P, np.nan)])),
        "`probabilities_of_draws` must be finite",
    ),
    "swapped ends": (lambda: predictive.coverage(VALUES, VALUES - 1, VALUES), "`low` must be at most `high`"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_wrong_questions_are_refused(name):
    call, message = OTHERS[name]
    with pytest.raises(ValueError, match=message):
        call()


def test_draws_of_weight_zero_may_hold_anything():
    """As those of a chain that diverged do."""
    means, weights = np.concatenate([MEANS, np.full((1, 4), np.nan)]), np.array([1.0, 1, 1, 1, 1, 0])
    known = {"targets": VALUES, "noise": 0.5}
    for name in ("crps", "gaussian_nll"):
        function = getattr(predictive, name)
        assert function(means, draw_weights=weights, **known) == pytest.approx(function(MEANS, **known))
    held = np.concatenate([np.stack([P] * 2), np.full((1, 4, 3), np.nan)])
    found = predictive.ensemble_uncertainty(held, [1.0, 1.0, 0.0]).probabilities
    np.testing.assert_allclose(found, P)
