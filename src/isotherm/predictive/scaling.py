"""Temperature scaling: one number that makes confident logits honest."""

import numpy as np
import scipy
from numpy.typing import ArrayLike

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, refuse
from isotherm.predictive.checks import as_numbers, check_labels, check_weights

LOWEST, HIGHEST = 1e-3, 1e3


@checked_call(prefix="iso.predictive.")
def fit_temperature(logits: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> float:
    """The temperature T that minimizes the negative log likelihood of softmax(logits / T).

    The likelihood is concave in b = 1/T, so that T is where its slope in b,

        sum_i w_i (z_{i, y_i} - sum_c softmax(b z_i)_c z_ic),

    changes sign. T stays in [0.001, 1000]. When every label has the highest logit the likelihood grows for ever as T
    falls and the lower bound is returned; when flat predictions are the best, the upper one. When no row prefers any
    class, T does not matter and is 1. Fit on examples that neither trained nor judge the model.

    Args:
        logits: shape (examples, classes); log probabilities, such as those of an average of models, serve as well.
        labels: integers in [0, classes), one for each example.
        weights: non-negative weights of the examples; equal if None.

    Example:
        >>> logits = [[4.0, 0.0]] * 4  # says 98 %, is right in 3 of 4: softmax(4 / T) = 3/4 at T = 4 / log 3
        >>> round(fit_temperature(logits, [0, 0, 0, 1]), 4)
        3.641

    Reference:
        Guo et al. 2017, section 4.2.

    Differs from the thesis: it takes T = 2 without a fit, which is `scaled(logits, 2.0)`.
    """
    z = _checked(logits)
    if z.ndim != 2:
        refuse("logits", "of shape (examples, classes)", f"shape {z.shape}", "Average the draws first.")
    y = check_labels(labels, z.shape[:1], z.shape[1])
    w = check_weights("weights", weights, len(z))
    # Relative to the label's logit, so that a separated example gives exactly no positive term.
    z = (z - z[np.arange(len(y)), y][:, None])[w > 0]
    if not z.any():
        return 1.0
    w = w[w > 0]

    def slope(log_temperature: float) -> float:
        p = scipy.special.softmax(z * np.exp(-log_temperature), axis=1)
        return float(w @ np.sum(p * z, axis=1))

    low, high = np.log(LOWEST), np.log(HIGHEST)
    if slope(low) <= 0:
        return LOWEST
    if slope(high) >= 0:
        return HIGHEST
    from scipy.optimize import root_scalar

    return float(np.exp(root_scalar(slope, bracket=(low, high), method="brentq", xtol=1e-12).root))


@checked_call(prefix="iso.predictive.")
def scaled(logits: ArrayLike, temperature: float) -> np.ndarray:
    """Probabilities softmax(logits / temperature) over the last axis.

    Args:
        logits: shape (..., classes); log probabilities serve as well.
        temperature: above zero; above one it makes predictions less sure.

    Example:
        >>> scaled([[np.log(9.0), 0.0]], 2.0)
        array([[0.75, 0.25]])
    """
    temperature = check_real("temperature", temperature, "Take it from `fit_temperature`.", above=0.0)
    return scipy.special.softmax(_checked(logits) / temperature, axis=-1)


def _checked(logits: ArrayLike) -> np.ndarray:
    z = as_numbers("logits", logits)
    if z.ndim < 2 or not z.size:
        refuse("logits", "of shape (examples, classes)", f"shape {z.shape}", "Give one row for each example.")
    if z.shape[-1] < 2:
        remedy = "Of one logit z, that of class 1, the two are 0 and z: `np.stack([0 * z, z], axis=-1)`."
        refuse("logits", "of two classes or more, along the last axis", f"shape {z.shape}", remedy)
    if not np.isfinite(z).all():
        found = z[~np.isfinite(z)][0]
        refuse("logits", "finite", f"{found}", "Clip probabilities at 1e-30 before taking their logarithm.")
    return z
