"""How good the predicted probabilities of classes are, over examples that may carry weights.

Throughout, `probabilities` has shape (examples, classes) and rows that sum to one, within 1e-3 for float32; `labels`
are integers in [0, classes), one for each example; `weights` are non-negative weights w_i of the examples, of any
sum, and equal if None. C is the number of classes.

Differs from the thesis: its tables print sums for `nll` and a thousand times `brier_ood`; the author's code
averages logits for accuracy and likelihood, where `ensemble_uncertainty` averages probabilities; calibration errors
and mutual information are additions.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, refuse
from isotherm.predictive.checks import check_labels, check_probabilities, check_values, check_weights

# Far below any float32 softmax that matters; one example of probability zero costs 69 nats, not infinity.
MIN_PROBABILITY = 1e-30
# Of entropies in float32, summed over draws.
_ROUNDING = 1e-3


@checked_call(prefix="iso.predictive.")
def accuracy(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Share of examples whose likeliest class is the label: sum_i w_i 1{argmax_c p_ic = y_i} / sum_i w_i.

    Of equally likely classes the first is taken.

    Example:
        >>> accuracy([[0.9, 0.1], [0.6, 0.4]], [0, 1], weights=[3.0, 1.0])
        0.75
    """
    p, y, w = _checked(probabilities, labels, weights)
    return float(np.average(p.argmax(axis=1) == y, weights=w))


@checked_call(prefix="iso.predictive.")
def nll(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None, is_sum: bool = False) -> float:
    """Negative log likelihood in nats: the mean of -log p_{i, y_i}, or its sum, weighted by w_i.

    Probabilities below 1e-30 count as 1e-30. With `is_sum` the weights are used as they are, not divided by their sum.

    Args:
        probabilities: as for all scores here.
        labels: likewise.
        weights: likewise.
        is_sum: whether to return the sum over examples, as the thesis prints it for 10,000 test images.

    Example:
        >>> round(nll([[0.5, 0.5], [0.2, 0.8]], [0, 1], weights=[3.0, 1.0], is_sum=True), 4)  # 3 log 2 + log 1.25
        2.3026
    """
    p, y, w = _checked(probabilities, labels, weights)
    losses = -np.log(np.maximum(p[np.arange(len(y)), y], MIN_PROBABILITY))
    return float(np.dot(w, losses) if is_sum else np.average(losses, weights=w))


@checked_call(prefix="iso.predictive.")
def brier(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Brier score: the weighted mean over examples of sum_c (p_ic - 1{y_i = c})^2, between 0 and 2.

    Some divide by the number of classes, and for two classes many count one of them only, which gives half of this.

    Example:
        >>> brier([[0.5, 0.5], [0.0, 1.0]], [0, 0])
        1.25

    Reference:
        Brier 1950.
    """
    p, y, w = _checked(probabilities, labels, weights)
    misses = p.copy()
    misses[np.arange(len(y)), y] -= 1.0
    return float(np.average(np.sum(misses**2, axis=1), weights=w))


@checked_call(prefix="iso.predictive.")
def brier_ood(probabilities: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Brier score of examples of no known class: the weighted mean over examples of (1/C) sum_c p_ic^2.

    The target is the zero vector and, unlike in `brier`, the mean goes over classes too. Flat predictions give the
    least, 1/C^2, and certain ones the most, 1/C. The thesis' tables print a thousand times this.

    Example:
        >>> brier_ood([[0.5, 0.5], [0.0, 1.0]])
        0.375
    """
    p = check_probabilities("probabilities", probabilities)
    return float(np.average(np.mean(p**2, axis=1), weights=check_weights("weights", weights, len(p))))


class Calibration(NamedTuple):
    """How often predictions of one confidence are right.

    Attributes:
        edges: of the bins, shape (bins + 1,).
        confidence: mean top probability of each bin; NaN where the bin is empty.
        accuracy: share of each bin that is right; NaN where the bin is empty.
        mass: share of all weight in each bin.
        error: the expected calibration error (ECE), sum_b mass_b |accuracy_b - confidence_b|.
        largest: the maximum calibration error (MCE), max_b |accuracy_b - confidence_b| over bins that are not empty.
    """

    edges: np.ndarray
    confidence: np.ndarray
    accuracy: np.ndarray
    mass: np.ndarray
    error: float
    largest: float


@checked_call(prefix="iso.predictive.")
def calibration(
    probabilities: ArrayLike, labels: ArrayLike, num_bins: int = 15, weights: ArrayLike | None = None
) -> Calibration:
    """Confidence against accuracy in M bins of equal width: bin b holds top probabilities in ((b - 1)/M, b/M].

    The error is biased upwards when bins hold few examples, so compare models on the same examples and bins.

    Args:
        probabilities: as for all scores here.
        labels: likewise.
        num_bins: how many bins, M.
        weights: as for all scores here.

    Example:
        >>> found = calibration([[0.9, 0.1], [0.3, 0.7]], [0, 0], num_bins=2)
        >>> found.mass, round(found.error, 6)
        (array([0., 1.]), 0.3)

    Reference:
        Guo et al. 2017, equations (3) and (5).
    """
    num_bins = check_integer("num_bins", num_bins, 1, "15 is usual.")
    p, y, w = _checked(probabilities, labels, weights)
    top, is_right = p.max(axis=1), p.argmax(axis=1) == y
    edges = np.linspace(0.0, 1.0, num_bins + 1)
    bins = (np.searchsorted(edges, top, side="left") - 1).clip(0, num_bins - 1)
    mass, sure, right = (np.bincount(bins, w * x, minlength=num_bins) / w.sum() for x in (1.0, top, is_right))
    is_used = mass > 0
    share = np.where(is_used, mass, np.nan)
    confidence, correct = sure / share, right / share
    gaps = np.abs(correct - confidence)[is_used]
    return Calibration(edges, confidence, correct, mass, float(mass[is_used] @ gaps), float(gaps.max()))


@checked_call(prefix="iso.predictive.")
def summarize(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> dict[str, float]:
    """Accuracy, mean negative log likelihood, Brier score and expected calibration error (15 bins) in one dictionary.

    Example:
        >>> {name: round(value, 3) for name, value in summarize([[0.5, 0.5], [0.0, 1.0]], [0, 1]).items()}
        {'accuracy': 1.0, 'nll': 0.347, 'brier': 0.25, 'ece': 0.25}
    """
    return {
        "accuracy": accuracy(probabilities, labels, weights),
        "nll": nll(probabilities, labels, weights),
        "brier": brier(probabilities, labels, weights),
        "ece": calibration(probabilities, labels, weights=weights).error,
    }


@checked_call(prefix="iso.predictive.")
def entropy(probabilities: ArrayLike) -> np.ndarray:
    """Shannon entropy of each example in nats: -sum_c p_c log p_c, with 0 log 0 = 0.

    Example:
        >>> entropy([[1.0, 0.0], [0.5, 0.5]]).round(4)
        array([0.    , 0.6931])
    """
    return _entropy(check_probabilities("probabilities", probabilities))


@checked_call(prefix="iso.predictive.")
def mutual_information(mean_probabilities: ArrayLike, mean_entropy: ArrayLike) -> np.ndarray:
    """What the draws disagree about: H(sum_s w_s p_s) - sum_s w_s H(p_s) for each example, in nats.

    Rounding can make the difference negative; it is then zero.

    Args:
        mean_probabilities: weighted mean over draws, shape (examples, classes).
        mean_entropy: mean over draws of `entropy`, with the same weights, one for each example.

    Example:
        >>> mutual_information([[0.5, 0.5]], [0.0]).round(4)
        array([0.6931])
    """
    p = check_probabilities("mean_probabilities", mean_probabilities)
    own, most = check_values("mean_entropy", mean_entropy, len(p)), np.log(p.shape[1])
    if own.min() < -_ROUNDING or own.max() > most + _ROUNDING:
        got = f"{own.min():g} to {own.max():g}"
        refuse(
            "mean_entropy",
            f"entropies in nats, from 0 to log C = {most:.3g}",
            got,
            "Take the mean over draws of `entropy`.",
        )
    return np.maximum(_entropy(p) - own, 0.0)


class Uncertainty(NamedTuple):
    """What an ensemble predicts and how unsure it is.

    Attributes:
        probabilities: weighted mean over draws, shape (examples, classes).
        entropy: of those, one for each example: the whole uncertainty, in nats.
        mutual_information: the part of it that comes from disagreement of the draws.
    """

    probabilities: np.ndarray
    entropy: np.ndarray
    mutual_information: np.ndarray


@checked_call(prefix="iso.predictive.")
def ensemble_uncertainty(probabilities_of_draws: Any, draw_weights: ArrayLike | None = None) -> Uncertainty:
    """Mean probabilities of an ensemble, their entropy, and the mutual information of label and draw.

    Draws are read one at a time, and those of weight zero not at all, so that a diverged chain may hold NaN.

    Args:
        probabilities_of_draws: shape (draws, examples, classes).
        draw_weights: non-negative importance weights of the draws, of any sum; equal if None.

    Example:
        >>> found = ensemble_uncertainty([[[1.0, 0.0]], [[0.0, 1.0]]], draw_weights=[3.0, 1.0])
        >>> found.probabilities, found.mutual_information.round(4)
        (array([[0.75, 0.25]]), array([0.5623]))
    """
    shape = np.shape(probabilities_of_draws)
    if len(shape) != 3:
        refuse("probabilities_of_draws", "of shape (draws, examples, classes)", shape, "Put the draws first.")
    w = check_weights("draw_weights", draw_weights, shape[0])
    mean, unsure = np.zeros(shape[1:]), np.zeros(shape[1])
    for draw in np.flatnonzero(w):
        p = check_probabilities("probabilities_of_draws", probabilities_of_draws[draw])
        mean += w[draw] / w.sum() * p
        unsure += w[draw] / w.sum() * entropy(p)
    return Uncertainty(mean, entropy(mean), mutual_information(mean, unsure))


def _entropy(p: np.ndarray) -> np.ndarray:
    return np.maximum(-np.sum(scipy.special.xlogy(p, p), axis=1), 0.0)


def _checked(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> tuple[np.ndarray, ...]:
    p = check_probabilities("probabilities", probabilities)
    return p, check_labels(labels, p.shape[:1], p.shape[1]), check_weights("weights", weights, len(p))
