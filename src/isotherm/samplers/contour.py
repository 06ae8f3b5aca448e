"""Samplers that flatten the energy, and weigh their draws."""

from typing import Any

from isotherm.contour import Contour
from isotherm.contour.contour import DEFAULT_GAIN
from isotherm.contour.partition import as_partition
from isotherm.contour.weighing import Regularised
from isotherm.estimators import Estimator, Plain
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, limited, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler
from isotherm.schedules import PolynomialGain, Schedule

_AWSGLD_GAIN = PolynomialGain(100.0, 0.75, 1000.0)

Bounds = tuple[float, float] | None


def csgld(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    zeta: float = 0.75,
    gain: Schedule = DEFAULT_GAIN,
    field: str = "psi",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Contour SGLD: every chain learns the weights of energy bins of its own."""
    coupling = _contour(partition, zeta, gain, field, False, slopes, bounds, start, warm_up, weighing)
    return _sampler("csgld", SGLD(), step_size, temperature, estimator, coupling, box)


def csghmc(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    friction: float = 0.1,
    zeta: float = 0.75,
    gain: Schedule = DEFAULT_GAIN,
    field: str = "psi",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Contour SGHMC: `csgld` with momentum."""
    coupling = _contour(partition, zeta, gain, field, False, slopes, bounds, start, warm_up, weighing)
    return _sampler("csghmc", SGHMC(friction), step_size, temperature, estimator, coupling, box)


def ksgld(
    step_size: Schedule,
    *,
    partition: Any,
    theta: tuple[float, ...],
    temperature: Schedule = 1.0,
    zeta: float = 0.75,
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """CSGLD with known weights of the bins, which are not learnt."""
    coupling = Contour(as_partition(partition), zeta, slopes=slopes, bounds=bounds, start=tuple(theta), is_frozen=True)
    return _sampler("ksgld", SGLD(), step_size, temperature, estimator, coupling, box)


def icsgld(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    zeta: float = 0.75,
    gain: Schedule = DEFAULT_GAIN,
    field: str = "theta",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Interacting contour SGLD: all chains learn the weights of the bins together."""
    coupling = _contour(partition, zeta, gain, field, True, slopes, bounds, start, warm_up, weighing)
    return _sampler("icsgld", SGLD(), step_size, temperature, estimator, coupling, box)


def icsghmc(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    friction: float = 0.1,
    zeta: float = 0.75,
    gain: Schedule = DEFAULT_GAIN,
    field: str = "theta",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Interacting contour SGHMC: `icsgld` with momentum."""
    coupling = _contour(partition, zeta, gain, field, True, slopes, bounds, start, warm_up, weighing)
    return _sampler("icsghmc", SGHMC(friction), step_size, temperature, estimator, coupling, box)


def picsgld(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    decay: float = 0.99,
    regulariser: float = 1e-3,
    gradient_scale: float = 1.0,
    zeta: float = 0.75,
    gain: Schedule = DEFAULT_GAIN,
    field: str = "theta",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """`icsgld` with RMSprop's preconditioner."""
    coupling = _contour(partition, zeta, gain, field, True, slopes, bounds, start, warm_up, weighing)
    kernel = PSGLD(decay, regulariser, gradient_scale)
    return _sampler("picsgld", kernel, step_size, temperature, estimator, coupling, box)


def awsgld(
    step_size: Schedule,
    *,
    partition: Any,
    temperature: Schedule = 1.0,
    zeta: float = 1.0,
    gain: Schedule = _AWSGLD_GAIN,
    start: str | tuple[float, ...] = "flat",
    max_displacement: float | None = None,
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Adaptively weighted SGLD: the weights are running sums, so that gradients grow while energies are high.

    The multiplier is not bounded, its growth is the speed-up; bound the displacement instead.
    """
    coupling = _contour(partition, zeta, gain, "cumulative", False, "backward", None, start, warm_up, weighing)
    kernel = limited(SGLD(), max_displacement)
    return _sampler("awsgld", kernel, step_size, temperature, estimator, coupling, box)


def _contour(
    partition: Any,
    zeta: float,
    gain: Schedule,
    field: str,
    is_shared: bool,
    slopes: str,
    bounds: Bounds,
    start: str | tuple[float, ...],
    warm_up: int,
    weighing: Regularised | None,
) -> Contour:
    bins = as_partition(partition)
    return Contour(bins, zeta, gain, field, is_shared, slopes, bounds, start, False, warm_up, weighing=weighing)


def _sampler(
    name: str,
    kernel: Kernel,
    step_size: Schedule,
    temperature: Schedule,
    estimator: Estimator | None,
    coupling: Contour,
    box: Box,
) -> Sampler:
    return Sampler(within(kernel, box), step_size, temperature, estimator or Plain(), coupling, name=name)
