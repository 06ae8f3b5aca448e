"""Samplers that flatten the energy, and weigh their draws."""

from typing import Any

from isotherm.contour import Contour
from isotherm.contour.contour import DEFAULT_GAIN
from isotherm.contour.partition import as_partition
from isotherm.contour.weighing import Regularised
from isotherm.estimators import Estimator, Plain
from isotherm.foundation.schedules import PolynomialGain, Schedule, check_schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, limited, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler

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
    perturbation: float = 0.0,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Contour SGLD: every chain learns the weights of energy bins of its own.

    Promises that weighted draws follow exp(-U / T), up to O(step size times multiplier) and what theta moves while chains mix;
    biased where energy noise times slope is not small. The thesis' field is "theta^zeta", for which `perturbation` adds a constant
    to f.
    """
    coupling = _contour(partition, zeta, gain, field, False, slopes, bounds, start, warm_up, weighing, perturbation)
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
    perturbation: float = 0.0,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Contour SGHMC: `csgld` with momentum, and with the same promise."""
    coupling = _contour(partition, zeta, gain, field, False, slopes, bounds, start, warm_up, weighing, perturbation)
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
    """CSGLD with known weights of the bins, which are not learnt.

    Promises that weighted draws follow exp(-U / T), up to O(step size times multiplier); biased by energy noise.
    """
    coupling = Contour(as_partition(partition), zeta, slopes=slopes, bounds=bounds, start=tuple(theta), is_frozen=True)
    return _sampler("ksgld", SGLD(), step_size, temperature, estimator, coupling, box)


def icsgld(
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
    """Interacting contour SGLD: all chains learn the weights of the bins together.

    Promises what `csgld` does. The thesis' field is "theta", which runs away into the top bin when chains meet it.
    """
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
    field: str = "psi",
    slopes: str = "backward",
    bounds: Bounds = (-5.0, 5.0),
    start: str | tuple[float, ...] = "uniform",
    warm_up: int = 0,
    weighing: Regularised | None = None,
    estimator: Estimator | None = None,
    box: Box = None,
) -> Sampler:
    """Interacting contour SGHMC: `icsgld` with momentum, and with the same promise."""
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
    freeze_after: int | None = None,
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
    """`icsgld` with RMSprop's preconditioner.

    Promises what `icsgld` does from the iteration `freeze_after` on; while the preconditioner adapts, it is biased as `psgld` is.
    """
    coupling = _contour(partition, zeta, gain, field, True, slopes, bounds, start, warm_up, weighing)
    kernel = PSGLD(decay, regulariser, gradient_scale, freeze_after=freeze_after)
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

    The multiplier is not bounded, its growth is the speed-up; bound the displacement instead. Made to find low energies: promises
    that some chain comes close to the lowest energy it can reach. Weighted draws follow exp(-U / T) only at steps so small that the
    largest multiplier times the step size stays small.
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
    perturbation: float = 0.0,
) -> Contour:
    bins, options = as_partition(partition), {"weighing": weighing, "perturbation": perturbation}
    return Contour(bins, zeta, gain, field, is_shared, slopes, bounds, start, False, warm_up, **options)


def _sampler(
    name: str,
    kernel: Kernel,
    step_size: Schedule,
    temperature: Schedule,
    estimator: Estimator | None,
    coupling: Contour,
    box: Box,
) -> Sampler:
    # Weights divide by it; a schedule may be zero for a while, as when a cycle explores.
    check_schedule("temperature", temperature, allow_zero=callable(temperature))
    return Sampler(within(kernel, box), step_size, temperature, estimator or Plain(), coupling, name=name)
