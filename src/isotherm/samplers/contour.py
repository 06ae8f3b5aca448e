"""Samplers that flatten the energy, and weigh their draws."""

from typing import Any, TypedDict, Unpack

import numpy as np

from isotherm.contour.contour import DEFAULT_BOUNDS, Contour
from isotherm.contour.fields import Cumulative, Field, ThetaPower, as_field
from isotherm.contour.partition import Partition, as_partition
from isotherm.contour.start import check_initial_theta
from isotherm.contour.weight_rule import RegularizedWeights
from isotherm.estimators import Estimator, Plain
from isotherm.foundation.errors import check_options, refuse
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Schedule, check_schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, Kernel, limited, within
from isotherm.samplers.independent import Box
from isotherm.sampling.sampler import Sampler

_AWSGLD_GAIN = PolynomialGain(100.0, 0.75, 1000.0)


class ContourOptions(TypedDict, total=False):
    """Options that all samplers with a multiplier on the gradient take; see `isotherm.contour.Contour`.

    The defaults are meant for a step size that suits SGLD; docs/contours.md shows where draws are then as accurate, and where not.

    Attributes:
        temperature: T; 1.
        zeta: how far to flatten: 0 is the plain sampler, 1 gives a flat energy histogram; 0.75.
        gain: of theta, a number or a function of the iteration in (0, 1]; 3 / (k + 300), so that theta stands still beside chains
            that mix slowly.
        field: what moves theta: "psi", "theta^zeta" (the thesis' CSGLD), "theta" (its ICSGLD), or an object; "psi".
        slopes: "backward" or "forward"; "backward".
        bounds: of the multiplier, or None; (0, 2).
        empty_step: a step of log theta above which the lower bin counts as empty, or None; 5.
        initial_theta: "uniform", "decreasing", "flat", "pilot", or a value for every bin; that of the pilot, else "uniform".
        warm_up: iterations of the plain sampler before theta is learned; 0.
        weight_rule: `RegularizedWeights` for a zeta so large that the exact weights degenerate; None.
        perturbation: added to f of the field "theta^zeta", so that theta moves at a large zeta too; 0.
        estimator: of energies and gradients; the plain one.
        box: (low, high), out of which moves are rejected; None.
    """

    temperature: Schedule
    zeta: float
    gain: Schedule
    field: str | Field
    slopes: str
    bounds: tuple[float, float] | None
    empty_step: float | None
    initial_theta: Any
    warm_up: int
    weight_rule: RegularizedWeights | None
    perturbation: float
    estimator: Estimator | None
    box: Box


class AwsgldOptions(TypedDict, total=False):
    """Options of `awsgld`; see `ContourOptions`."""

    temperature: Schedule
    zeta: float
    gain: Schedule
    initial_theta: Any
    warm_up: int
    weight_rule: RegularizedWeights | None
    estimator: Estimator | None
    box: Box


def csgld(step_size: Schedule, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> Sampler:
    """Contour SGLD: every chain learns the weights of energy bins of its own.

    Promises that weighted draws follow exp(-U / T), up to O(step size times multiplier) and what theta moves while chains mix;
    biased where energy noise times slope is not small. The thesis' field is "theta^zeta", for which `perturbation` adds a constant
    to f; its other settings are `iso.thesis.csgld()`. Options: `ContourOptions`.
    """
    return _sampler("csgld", SGLD(), step_size, _contour("csgld", partition, False, options), options)


def csghmc(
    step_size: Schedule, *, partition: Any = "auto", friction: float = 0.1, **options: Unpack[ContourOptions]
) -> Sampler:
    """Contour SGHMC: `csgld` with momentum, and with the same promise and options."""
    return _sampler("csghmc", SGHMC(friction), step_size, _contour("csghmc", partition, False, options), options)


def ksgld(
    step_size: Schedule,
    *,
    partition: Any,
    theta: Any,
    temperature: Schedule = 1.0,
    zeta: float = 0.75,
    slopes: str = "backward",
    bounds: tuple[float, float] | None = DEFAULT_BOUNDS,
    box: Box = None,
) -> Sampler:
    """CSGLD with known weights of the bins, which are not learned.

    Promises that weighted draws follow exp(-U / T), up to O(step size times multiplier); biased by energy noise.
    """
    bins = as_partition(partition)
    if isinstance(bins, Partition):
        check_initial_theta(np.asarray(theta, float), bins.num_bins, "theta")
    coupling = Contour(bins, zeta, slopes=slopes, bounds=bounds, initial_theta=theta, is_frozen=True)
    return _sampler("ksgld", SGLD(), step_size, coupling, {"temperature": temperature, "box": box})


def icsgld(step_size: Schedule, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> Sampler:
    """Interacting contour SGLD: all chains learn the weights of the bins together.

    Promises what `csgld` does. The thesis' field is "theta", which runs away into the top bin when chains meet it; its other
    settings are `iso.thesis.icsgld()`. Options: `ContourOptions`.
    """
    return _sampler("icsgld", SGLD(), step_size, _contour("icsgld", partition, True, options), options)


def icsghmc(
    step_size: Schedule, *, partition: Any = "auto", friction: float = 0.1, **options: Unpack[ContourOptions]
) -> Sampler:
    """Interacting contour SGHMC: `icsgld` with momentum, and with the same promise and options."""
    return _sampler("icsghmc", SGHMC(friction), step_size, _contour("icsghmc", partition, True, options), options)


def picsgld(
    step_size: Schedule,
    *,
    partition: Any = "auto",
    decay: float = 0.99,
    regularizer: float = 1e-3,
    gradient_scale: float = 1.0,
    freeze_after: int | None = None,
    **options: Unpack[ContourOptions],
) -> Sampler:
    """`icsgld` with RMSprop's preconditioner.

    Promises what `icsgld` does from the iteration `freeze_after` on; while the preconditioner adapts, it is biased as `psgld` is.
    Options: `ContourOptions`.
    """
    kernel = PSGLD(decay, regularizer, gradient_scale, freeze_after=freeze_after)
    return _sampler("picsgld", kernel, step_size, _contour("picsgld", partition, True, options), options)


def awsgld(
    step_size: Schedule, *, partition: Any, max_displacement: float | None = None, **options: Unpack[AwsgldOptions]
) -> Sampler:
    """Adaptively weighted SGLD: the weights are running sums, so that gradients grow while energies are high.

    The multiplier is not bounded, its growth is the speed-up; bound the displacement instead. Made to find low energies: promises
    that some chain comes close to the lowest energy it can reach. Weighted draws follow exp(-U / T) only at steps so small that the
    largest multiplier times the step size stays small. Options: `AwsgldOptions`, where zeta is 1, the gain
    100 / (k^0.75 + 1000), and theta starts at 0.1 everywhere.
    """
    check_options("awsgld", options, AwsgldOptions.__annotations__)
    own: ContourOptions = {"zeta": 1.0, "gain": _AWSGLD_GAIN, "initial_theta": "flat", **options, "bounds": None}
    own["field"] = Cumulative()
    coupling = _contour("awsgld", partition, False, own)
    return _sampler("awsgld", limited(SGLD(), max_displacement), step_size, coupling, own)


def _contour(name: str, partition: Any, is_shared: bool, options: ContourOptions) -> Contour:
    check_options(name, options, ContourOptions.__annotations__)
    field, perturbation = as_field(options.get("field", "psi")), options.get("perturbation", 0.0)
    if perturbation > 0:
        if not isinstance(field, ThetaPower):
            refuse("perturbation", "0 for this field", perturbation, 'Leave it out, or use field="theta^zeta".')
        field = ThetaPower(perturbation)
    names = ("zeta", "gain", "slopes", "bounds", "empty_step", "initial_theta", "warm_up", "weight_rule")
    given = {option: value for option, value in dict[str, Any](options).items() if option in names}
    return Contour(as_partition(partition), field=field, is_shared=is_shared, **given)


def _sampler(name: str, kernel: Kernel, step_size: Schedule, coupling: Contour, options: ContourOptions) -> Sampler:
    temperature = options.get("temperature", 1.0)
    # Weights divide by it; a schedule may be zero for a while, as when a cycle explores.
    check_schedule("temperature", temperature, allow_zero=callable(temperature))
    kernel, estimator = within(kernel, options.get("box")), options.get("estimator") or Plain()
    return Sampler(kernel, step_size, temperature, estimator, coupling, name=name)
