"""Wrong questions to a run and to predictions: each is refused with what was wrong and the call that is right."""

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from tests.contract.calls import NUMPY, Iso, assert_refused, energy, start

CASES = {
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
    "modes from one": (
        lambda run: run.mode_masses(lambda x: jnp.where(x[0] > 0, 2, 1), 2),
        r"`modes` must be a function that returns modes from 0 to 1; got modes from [12] to 2. Count from 0",
    ),
    "modes below zero": (
        lambda run: run.estimate_mode_masses(lambda x: jnp.int32(-1), 2),
        r"`modes` must be a function that returns modes from 0 to 1; got modes from -1 to -1",
    ),
    "quantile of text": (lambda run: run.quantile("a"), r"`q` must be between 0 and 1; got 'a'"),
    "select text": (lambda run: run.select("a"), r"`draws` must be a slice or an array of integers; got 'a'"),
    "limits": (lambda run: run.plot_density(limits=3), r"`limits` must be \(low, high\).*; got 3. Write `limits="),
    "coordinates": (lambda run: run.plot_trace("b"), r"`coordinates` must be names, or numbers from 0 to 1; got 'b'"),
    "one of two coordinates": (
        lambda run: run.plot_trace(("x[0]", "x[5]")),
        r"`coordinates` must be names, or numbers from 0 to 1; got",
    ),
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
    "reliability of a run": (
        lambda run: Iso.predictive.plot_reliability(run),
        r"`calibration` must be what .*; got a Run",
    ),
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
def test_a_wrong_question_to_a_run_says_what_is_right(name, run):
    question, message = CASES[name]
    assert_refused(lambda: question(run), message)
