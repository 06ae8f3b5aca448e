"""What an average of networks is worth: accuracy, likelihood, calibration, and its doubts about images of no known class."""

from typing import Any

import numpy as np
import scipy

from isotherm.predictive.classification import (
    accuracy,
    brier,
    brier_ood,
    calibration,
    entropy,
    fit_temperature,
    nll,
    scaled,
)
from isotherm.predictive.ood import auroc, entropy_cdf
from isotherm_thesis.experiments.images.averages import Averages
from isotherm_thesis.experiments.images.problem import ImageData

_ENTROPY_STEP, _HIGH_ENTROPY = 0.05, 1.5
# The halves are the same for all cells.
_SPLIT_SEED = 2020
_KINDS = ("logits", "probabilities")


def judge(averages: Averages, data: ImageData) -> dict[str, Any]:
    """Scores of averages by logits (the thesis' way) and by probabilities; accuracies in per cent, Brier on SVHN in permille.

    "Final" is the average of all networks, "best" the best over time on the test images themselves, as the thesis reports it, and
    "chosen" the one at the time that is best on held-out images.
    """
    by_logits = scipy.special.softmax(averages.logits[0], axis=1)
    scores: dict[str, Any] = {"num_networks": len(averages.weights)}
    for kind, probabilities in zip(_KINDS, (by_logits, averages.probabilities[0]), strict=True):
        scores |= {f"{name}, {kind}": value for name, value in _final(probabilities, data.test[1]).items()}
    for number, kind in enumerate(_KINDS):
        scores |= _over_time(averages, number, kind)
    for number, kind in enumerate(_KINDS):
        found = _calibrated(averages, data, number)
        scores |= {f"{name}, {kind}": value for name, value in found.items()}
    scores |= _alone(averages)
    return scores | _outside(averages, by_logits)


def curves(averages: Averages, epochs: np.ndarray) -> dict[str, list[float]]:
    """The running scores at the last network of every epoch; `epochs` is that of each network."""
    last = np.flatnonzero(np.append(epochs[1:] != epochs[:-1], True))
    return {
        "epoch": epochs[last].tolist(),
        "accuracy, logits": (100 * averages.accuracy[last, 0]).tolist(),
        "accuracy, probabilities": (100 * averages.accuracy[last, 1]).tolist(),
        "accuracy, single": (100 * averages.accuracy[last, 2]).tolist(),
        "NLL, logits": averages.nll[last, 0].tolist(),
        "NLL, probabilities": averages.nll[last, 1].tolist(),
    }


def entropy_curves(averages: Averages) -> dict[str, list[float]]:
    """Distribution functions of the entropies on images of no class, with logits as they are and divided by two."""
    grid = np.arange(0.0, np.log(averages.outside.shape[-1]) + _ENTROPY_STEP, _ENTROPY_STEP)
    found = {"entropy": grid.tolist()}
    for name, probabilities in zip(("T = 1", "T = 2"), averages.outside, strict=True):
        found[name] = entropy_cdf(entropy(probabilities), grid)[1].tolist()
    return found


def _final(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        "accuracy": 100 * accuracy(probabilities, labels),
        "NLL": nll(probabilities, labels),
        "NLL sum": nll(probabilities, labels, is_sum=True),
        "ECE": calibration(probabilities, labels).error,
        "Brier": brier(probabilities, labels),
    }


def _over_time(averages: Averages, number: int, kind: str) -> dict[str, float]:
    right, lost = averages.accuracy[:, number], averages.nll[:, number]
    scores = {f"best accuracy, {kind}": 100 * right.max(), f"best NLL, {kind}": lost.min()}
    if np.isfinite(averages.held_out_nll).all():
        chosen = int(np.argmax(averages.held_out_accuracy[:, number]))
        scores |= {f"chosen accuracy, {kind}": 100 * right[chosen], f"chosen NLL, {kind}": lost[chosen]}
        scores |= {
            f"held-out accuracy, {kind}": 100 * averages.held_out_accuracy[-1, number],
            f"held-out NLL, {kind}": averages.held_out_nll[-1, number],
        }
    return {name: float(value) for name, value in scores.items()}


def _calibrated(averages: Averages, data: ImageData, number: int) -> dict[str, Any]:
    """The likelihood after temperature scaling, fitted on held-out images, or on each half of the test images for the other.

    Reference:
        Ashukha et al. 2020, who average over such halves.
    """
    if number == 0:
        test, held_out = averages.logits
    else:
        test, held_out = (np.log(np.maximum(part, 1e-30)) for part in averages.probabilities)
    labels = data.test[1]
    if len(held_out):
        temperature = fit_temperature(held_out, data.held_out[1])
        return {"calibrated NLL": nll(scaled(test, temperature), labels), "temperature": temperature}
    halves = np.random.default_rng(_SPLIT_SEED).permutation(len(labels)) < len(labels) // 2
    temperatures = [fit_temperature(test[half], labels[half]) for half in (~halves, halves)]
    lost = [
        nll(scaled(test[half], temperature), labels[half])
        for half, temperature in zip((halves, ~halves), temperatures, strict=True)
    ]
    return {"calibrated NLL": float(np.mean(lost)), "temperature": float(np.mean(temperatures))}


def _alone(averages: Averages) -> dict[str, float]:
    right, lost = 100 * averages.accuracy[:, 2], averages.nll[:, 2]
    return {
        "single accuracy, mean": float(right.mean()),
        "single accuracy, best": float(right.max()),
        "single accuracy, last": float(right[-1]),
        "single NLL, mean": float(lost.mean()),
    }


def _outside(averages: Averages, by_logits: np.ndarray) -> dict[str, float]:
    plain, softer = averages.outside
    doubts = entropy(plain)
    return {
        "SVHN Brier, permille": 1000 * brier_ood(plain),
        "SVHN entropy above 1.5": 100 * float(np.mean(doubts > _HIGH_ENTROPY)),
        "SVHN entropy above 1.5, T = 2": 100 * float(np.mean(entropy(softer) > _HIGH_ENTROPY)),
        "SVHN mean entropy": float(doubts.mean()),
        "SVHN AUROC": auroc(entropy(by_logits), doubts),
    }
