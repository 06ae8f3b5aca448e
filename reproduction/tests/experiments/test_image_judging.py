"""Perfect and indifferent predictors score what they must, and averages are those of their networks."""

import dataclasses

import jax
import numpy as np
import pytest
from reproduction.tests.experiments.tiny_network import TinyNetwork

import isotherm as iso
from isotherm.predictive import predict
from isotherm_thesis.experiments.images import problem
from isotherm_thesis.experiments.images.averages import (
    Averages,
    average,
    in_blocks,
    networks_of,
    networks_of_run,
    weights_from,
)
from isotherm_thesis.experiments.images.judging import curves, entropy_curves, judge
from isotherm_thesis.experiments.images.problem import ImageData, load_images, potential_of
from isotherm_thesis.experiments.images.setting import QUICK_SETTINGS, Setting

CLASSES, TEST, HELD_OUT, OUTSIDE = 10, 200, 60, 30
RNG = np.random.default_rng(0)


def images(num_held_out=HELD_OUT):
    labels = [RNG.integers(0, CLASSES, number).astype(np.int32) for number in (TEST, num_held_out)]
    nothing = [np.zeros((number, 1, 1, 1), np.uint8) for number in (TEST, num_held_out, OUTSIDE)]
    return ImageData((nothing[0], labels[0]), (nothing[1], labels[1]), (nothing[0], labels[0]), nothing[2], CLASSES)


def averages_of(data, sharpness, outside_sharpness):
    """A predictor whose logit of the right class is `sharpness`, and of class 0 on images of no class `outside_sharpness`."""
    logits = tuple(sharpness * np.eye(CLASSES)[labels] for labels in (data.test[1], data.held_out[1]))
    soft = lambda z: np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)  # noqa: E731
    outside = np.zeros((OUTSIDE, CLASSES))
    outside[:, 0] = outside_sharpness
    scores = np.ones((3, 3))
    return Averages(
        logits,
        (soft(logits[0]), soft(logits[1])),
        np.stack([soft(outside), soft(outside / 2)]),
        scores,
        0.0 * scores,
        scores,
        0.0 * scores,
        np.ones(3),
    )


def test_a_perfect_predictor():
    data = images()
    scores = judge(averages_of(data, 60.0, 60.0), data)
    assert scores["accuracy, logits"] == scores["accuracy, probabilities"] == 100.0
    assert scores["best accuracy, logits"] == scores["single accuracy, best"] == 100.0
    assert scores["NLL sum, logits"] == pytest.approx(0.0, abs=1e-9)
    assert scores["ECE, logits"] == pytest.approx(0.0, abs=1e-9)
    # Certain of images of no class: 1 / C, in permille; no entropy at all.
    assert scores["SVHN Brier, permille"] == pytest.approx(1000 / CLASSES)
    assert scores["SVHN entropy above 1.5"] == 0.0


@pytest.mark.parametrize("num_held_out", [HELD_OUT, 0])
def test_an_indifferent_predictor(num_held_out):
    data = images(num_held_out)
    found = averages_of(data, 0.0, 0.0)
    if num_held_out == 0:
        found = found._replace(held_out_nll=np.full((3, 3), np.nan))
    scores = judge(found, data)
    assert scores["NLL, logits"] == scores["NLL, probabilities"] == pytest.approx(np.log(CLASSES))
    assert scores["NLL sum, logits"] == pytest.approx(TEST * np.log(CLASSES))
    assert scores["calibrated NLL, logits"] == pytest.approx(np.log(CLASSES))
    assert scores["SVHN Brier, permille"] == pytest.approx(1000 / CLASSES**2)
    assert scores["SVHN entropy above 1.5"] == scores["SVHN entropy above 1.5, T = 2"] == 100.0
    assert scores["SVHN AUROC"] == 0.5
    assert ("chosen accuracy, logits" in scores) == (num_held_out > 0)


@pytest.mark.parametrize("num_held_out", [HELD_OUT, 0])
def test_a_boastful_predictor_is_calibrated(num_held_out):
    data = images(num_held_out)
    found = averages_of(data, 8.0, 0.0)
    # Every fourth label is another than the predictor is so sure of.
    wrong = [
        np.where(np.arange(len(y)) % 4 == 0, (y + 1) % CLASSES, y).astype(np.int32)
        for y in (data.test[1], data.held_out[1])
    ]
    data = data._replace(test=(data.test[0], wrong[0]), held_out=(data.held_out[0], wrong[1]))
    scores = judge(found, data)
    best = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25 / (CLASSES - 1)))
    assert scores["NLL, logits"] > 1.9
    assert scores["calibrated NLL, logits"] == pytest.approx(best, rel=0.02)
    assert scores["temperature, logits"] == pytest.approx(8 / np.log(0.75 / (0.25 / (CLASSES - 1))), rel=0.05)


def test_curves_take_the_last_network_of_an_epoch():
    data = images()
    found = averages_of(data, 1.0, 0.0)._replace(accuracy=np.arange(9.0).reshape(3, 3) / 10)
    seen = curves(found, np.array([1.0, 1.0, 2.0]))
    assert seen["epoch"] == [1.0, 2.0]
    assert seen["accuracy, logits"] == pytest.approx([30.0, 60.0])
    assert entropy_curves(found)["T = 1"][-1] == 1.0


@pytest.fixture(scope="module")
def ensemble():
    setting = Setting(methods=(), **{**QUICK_SETTINGS, "num_train": 100, "num_held_out": 30, "num_outside": 40})
    data = load_images(setting)
    data = data._replace(test=(data.test[0][:50], data.test[1][:50]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(problem.NETWORKS, "resnet8", TinyNetwork)
        potential = potential_of(setting, data)
    run = iso.sample(
        potential,
        iso.msgd(1e-3),
        num_steps=6,
        num_chains=2,
        thinning=1,
        init=potential.init,
        progress=False,
        chain_mode="map",
    )
    log_weights = np.log(RNG.uniform(0.5, 2.0, run.log_weights.shape))
    log_weights[1, 4] = -np.inf
    draws = {name: np.array(leaf) for name, leaf in run.draws.items()}
    for leaf in draws.values():
        leaf[1, 4] = np.nan
    return data, potential, dataclasses.replace(run, log_weights=log_weights, draws=draws)


def test_averages_are_those_of_predict(ensemble, monkeypatch):
    data, potential, run = ensemble
    late = run.select(slice(2, None))
    monkeypatch.setattr("isotherm_thesis.experiments.images.averages._BLOCK_BYTES", 1)
    weights = weights_from(run, 2)
    assert weights.sum() == pytest.approx(1.0)
    assert not weights[:, :2].any()
    found = average(potential, data, networks_of_run(run, weights))
    for by, number in (("logits", 0), ("probabilities", 1)):
        expected = predict(late, potential, data.test[0], labels=data.test[1], by=by)
        right = np.mean(expected.probabilities.argmax(axis=1) == data.test[1])
        lost = -np.log(expected.probabilities[np.arange(50), data.test[1]]).mean()
        assert found.accuracy[-1, number] == pytest.approx(right)
        assert found.nll[-1, number] == pytest.approx(lost, rel=1e-4)
    np.testing.assert_allclose(found.logits[0], expected.logits, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found.probabilities[0], expected.probabilities, rtol=1e-3, atol=1e-5)
    outside = predict(late, potential, data.outside, scale=2.0)
    np.testing.assert_allclose(found.outside[1], outside.probabilities, rtol=1e-3, atol=1e-5)
    # Epoch by epoch: both chains of one, then both of the next; the diverged one is left out.
    assert len(found.weights) == 7
    assert expected.draw_accuracy is not None
    chains = expected.draw_accuracy[:4], expected.draw_accuracy[4:]
    in_time = [chains[0][0], chains[1][0], chains[0][1], chains[1][1], chains[0][2], chains[0][3], chains[1][2]]
    np.testing.assert_allclose(found.accuracy[:, 2], in_time, atol=1e-6)


def test_blocks_of_an_ensemble_do_not_change_it(ensemble):
    data, potential, run = ensemble
    draws, states = (jax.tree.map(lambda leaf: np.asarray(leaf)[:, :2], part) for part in (run.draws, run.model_state))
    networks = networks_of(draws, states, np.ones((2, 2)))
    whole = average(potential, data, in_blocks(networks, 4))
    pieces = average(potential, data, in_blocks(networks, 3))
    np.testing.assert_allclose(whole.probabilities[0], pieces.probabilities[0], rtol=1e-5)
    assert whole.accuracy.shape == pieces.accuracy.shape == (4, 3)
