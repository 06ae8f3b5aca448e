"""Conversion between sums over data, which samplers use, and means over data, which optimizers use.

    step_size = learning_rate / N        prior precision = weight_decay * N

so a learning rate of 0.1 with a weight decay of 5e-4 on 50,000 examples is a step size of 2e-6 with a precision of 25. A momentum
coefficient is the same in both.
"""

from typing import NamedTuple

from isotherm.foundation.errors import check_integer, check_real


class BayesianUnits(NamedTuple):
    """Settings for an energy that is a sum over data; `weight_decay` is the precision of the Gaussian prior of every weight."""

    step_size: float
    weight_decay: float


class StandardUnits(NamedTuple):
    """Settings for a loss that is a mean over data, as optimizers take them."""

    learning_rate: float
    weight_decay: float


def to_bayesian(learning_rate: float, weight_decay: float, num_data: int) -> BayesianUnits:
    """Settings of a sampler from those of an optimizer.

    Example:
        >>> to_bayesian(learning_rate=0.1, weight_decay=5e-4, num_data=50_000)
        BayesianUnits(step_size=2e-06, weight_decay=25.0)
    """
    _check(learning_rate, weight_decay, num_data)
    return BayesianUnits(learning_rate / num_data, weight_decay * num_data)


def to_standard(step_size: float, weight_decay: float, num_data: int) -> StandardUnits:
    """Settings of an optimizer from those of a sampler.

    Example:
        >>> learning_rate, weight_decay = to_standard(step_size=2e-6, weight_decay=25.0, num_data=50_000)
        >>> round(learning_rate, 12), weight_decay
        (0.1, 0.0005)
    """
    _check(step_size, weight_decay, num_data)
    return StandardUnits(step_size * num_data, weight_decay / num_data)


def _check(step_size: float, weight_decay: float, num_data: int) -> None:
    check_real("step_size", step_size, "Give a learning rate or step size.", above=0.0)
    check_real("weight_decay", weight_decay, "Give a weight decay, or 0.", minimum=0.0)
    check_integer("num_data", num_data, 1, "Give the number of training examples.")
