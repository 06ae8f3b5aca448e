"""When the scale of theta is folded in: before it can underflow, and less often as the gain falls."""

import jax.numpy as jnp
import numpy as np
import pytest

from isotherm.contour.theta_histogram import LOWEST_LOG_SCALE, fold_times
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.periodic import Periodic
from isotherm.foundation.schedules import as_schedule

HORIZON = 300_000


def due(work: Periodic) -> np.ndarray:
    iterations = jnp.arange(HORIZON)
    return np.flatnonzero(np.asarray(iterations % work.period(iterations) == 0))


@pytest.mark.parametrize("gain", [PolynomialGain(1.0, 0.6, 100.0), PolynomialGain(10.0, 0.8, 1000.0), 0.003, 1.0])
def test_the_scale_cannot_underflow_between_two_folds(gain):
    every, later = fold_times(gain)
    times = due(Periodic(every, lambda state, _: state, needs_data=False, later=later))
    gains = np.broadcast_to(np.asarray(as_schedule(gain)(jnp.arange(HORIZON)), float), HORIZON)
    falls = np.add.reduceat(-np.log1p(-np.minimum(gains, 1 - 1e-6)), times)
    assert falls.max() <= LOWEST_LOG_SCALE * 1.001 or every == 1
    assert all(first % period == 0 and first % every == 0 for first, period in later)


def test_folds_wait_as_the_gain_falls():
    every, later = fold_times(PolynomialGain(1.0, 0.6, 100.0))
    work = Periodic(every, lambda state, _: state, needs_data=False, later=later)
    gaps = np.diff(due(work))
    assert gaps[-1] >= 8 * gaps[0]
    assert np.all(np.diff(gaps) >= 0)
    # A constant gain never lets them wait.
    assert all(period == fold_times(0.003)[0] for _, period in fold_times(0.003)[1])
