"""Scores of predicted probabilities of classes, and temperature scaling.

`probabilities` has shape (examples, classes) and rows that sum to one, within 1e-3 for float32; `labels` are integers in [0,
classes), one for each example; `weights` are non-negative weights w_i of the examples, of any sum, and equal if None. C is the
number of classes.

Differs from the thesis: its tables print sums for `nll` and a thousand times `brier_ood`; the author's code averages logits for
accuracy and likelihood, where `ensemble_uncertainty` averages probabilities; calibration errors and mutual information are
additions.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, refuse
from isotherm.predictive.checks import as_numbers, check_labels, check_probabilities, check_values, check_weights

# An example of probability zero costs 69 nats, not infinity.
MIN_PROBABILITY = 1e-30
# Of entropies in float32, summed over draws.
_ROUNDING = 1e-3
MIN_TEMPERATURE, MAX_TEMPERATURE = 1e-3, 1e3


@checked_call(prefix="iso.predictive.")
def accuracy(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Share of examples whose most probable class, the first of equals, is the label: sum_i w_i 1{argmax_c p_ic = y_i} / sum_i w_i.

    Example:
        >>> accuracy([[0.9, 0.1], [0.6, 0.4]], [0, 1], weights=[3.0, 1.0])
        0.75
    """
    p, y, w = _checked(probabilities, labels, weights)
    return float(np.average(p.argmax(axis=1) == y, weights=w))


@checked_call(prefix="iso.predictive.")
def nll(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None, is_sum: bool = False) -> float:
    """Negative log likelihood in nats: the mean of -log p_{i, y_i}, or its sum, weighted by w_i.

    Probabilities below 1e-30 count as 1e-30. With `is_sum` it is the sum over examples, which the thesis prints for 10,000 test
    images, and the weights are not divided by their sum.

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

    Some authors divide it by the number of classes; for two classes many count only one, which gives half of this.

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

    The target is the zero vector and, unlike in `brier`, the mean is over classes too. It lies between 1/C^2, for flat
    predictions, and 1/C, for certain ones. The thesis' tables print a thousand times this.

    Example:
        >>> brier_ood([[0.5, 0.5], [0.0, 1.0]])
        0.375
    """
    p = check_probabilities("probabilities", probabilities)
    return float(np.average(np.mean(p**2, axis=1), weights=check_weights("weights", weights, len(p))))


class Calibration(NamedTuple):
    """Accuracy of predictions by their confidence.

    Attributes:
        edges: of the bins, shape (bins + 1,).
        confidence: mean top probability in each bin; NaN in empty bins.
        accuracy: accuracy in each bin; NaN in empty bins.
        mass: share of the total weight in each bin.
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

    M is `num_bins`. The error is biased upwards when bins hold few examples: compare models on the same examples and bins.

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
    """Mutual information of label and draw: H(sum_s w_s p_s) - sum_s w_s H(p_s) for each example, in nats and at least zero.

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
        rule, got = f"entropies in nats, from 0 to log C = {most:.3g}", f"{own.min():g} to {own.max():g}"
        refuse("mean_entropy", rule, got, "Take the mean over draws of `entropy`.")
    return np.maximum(_entropy(p) - own, 0.0)


class Uncertainty(NamedTuple):
    """The prediction of an ensemble and its uncertainty.

    Attributes:
        probabilities: weighted mean over draws, shape (examples, classes).
        entropy: entropy of the mean, one for each example: the total uncertainty, in nats.
        mutual_information: the part of it that is due to disagreement of the draws.
    """

    probabilities: np.ndarray
    entropy: np.ndarray
    mutual_information: np.ndarray


@checked_call(prefix="iso.predictive.")
def ensemble_uncertainty(probabilities_of_draws: Any, draw_weights: ArrayLike | None = None) -> Uncertainty:
    """Mean probabilities of an ensemble, their entropy, and the mutual information of label and draw.

    Draws are read one at a time. Those of weight zero are not read: a diverged chain may hold NaN.

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


@checked_call(prefix="iso.predictive.")
def fit_temperature(logits: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """The temperature T that minimizes the negative log likelihood of softmax(logits / T).

    The likelihood is concave in b = 1/T, and T is where its slope in b changes sign:

        sum_i w_i (z_{i, y_i} - sum_c softmax(b z_i)_c z_ic)

    T is in [0.001, 1000]: the lower bound if every label has the highest logit, the upper one if flat predictions are the best,
    and 1 if no row prefers a class. Fit on examples that are used neither to train nor to test the model.

    Args:
        logits: shape (examples, classes); or log probabilities, such as those of an average of models.
        labels: integers in [0, classes), one for each example.
        weights: non-negative weights of the examples; equal if None.

    Example:
        >>> logits = [[4.0, 0.0]] * 4  # 98 % confident, right in 3 of 4: softmax(4 / T) = 3/4 at T = 4 / log 3
        >>> round(fit_temperature(logits, [0, 0, 0, 1]), 4)
        3.641

    Reference:
        Guo et al. 2017, section 4.2.

    Differs from the thesis: it uses T = 2 without a fit, which is `scaled(logits, 2.0)`.
    """
    z = _check_logits(logits)
    if z.ndim != 2:
        refuse("logits", "of shape (examples, classes)", f"shape {z.shape}", "Average the draws first.")
    y = check_labels(labels, z.shape[:1], z.shape[1])
    w = check_weights("weights", weights, len(z))
    # Relative to the label's logit: a separated example then has no positive term, exactly.
    z, w = (z - z[np.arange(len(y)), y][:, None])[w > 0], w[w > 0]
    if not z.any():
        return 1.0

    def slope(log_temperature: float) -> float:
        p = scipy.special.softmax(z * np.exp(-log_temperature), axis=1)
        return float(w @ np.sum(p * z, axis=1))

    low, high = np.log(MIN_TEMPERATURE), np.log(MAX_TEMPERATURE)
    if slope(low) <= 0:
        return MIN_TEMPERATURE
    if slope(high) >= 0:
        return MAX_TEMPERATURE
    return float(np.exp(scipy.optimize.root_scalar(slope, bracket=(low, high), method="brentq", xtol=1e-12).root))


@checked_call(prefix="iso.predictive.")
def scaled(logits: ArrayLike, temperature: float) -> np.ndarray:
    """Probabilities softmax(logits / temperature) over the last axis.

    Args:
        logits: shape (..., classes); or log probabilities.
        temperature: above zero; above one makes predictions less confident.

    Example:
        >>> scaled([[np.log(9.0), 0.0]], 2.0)
        array([[0.75, 0.25]])
    """
    temperature = check_real("temperature", temperature, "Take it from `fit_temperature`.", above=0.0)
    return scipy.special.softmax(_check_logits(logits) / temperature, axis=-1)


def _entropy(p: np.ndarray) -> np.ndarray:
    return np.maximum(-np.sum(scipy.special.xlogy(p, p), axis=1), 0.0)


def _checked(probabilities: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> tuple[np.ndarray, ...]:
    p = check_probabilities("probabilities", probabilities)
    return p, check_labels(labels, p.shape[:1], p.shape[1]), check_weights("weights", weights, len(p))


def _check_logits(logits: ArrayLike) -> np.ndarray:
    z = as_numbers("logits", logits)
    if z.ndim < 2 or not z.size:
        refuse("logits", "of shape (examples, classes)", f"shape {z.shape}", "Give one row for each example.")
    if z.shape[-1] < 2:
        remedy = "For one logit z, that of class 1, pass 0 and z: `np.stack([0 * z, z], axis=-1)`."
        refuse("logits", "of two classes or more, along the last axis", f"shape {z.shape}", remedy)
    if not np.isfinite(z).all():
        refuse("logits", "finite", z[~np.isfinite(z)][0], "Clip probabilities at 1e-30 before taking their logarithm.")
    return z
