"""Shared options of samplers that flatten the energy, and how their parts are put together."""

import dataclasses
from typing import Annotated, Any, TypedDict

from isotherm.contour import Contour, Partition, RegularizedWeights, ThetaPower
from isotherm.contour.fields import Field, as_field
from isotherm.contour.partition import FoundPartition, as_partition
from isotherm.contour.theta_histogram import masses_of
from isotherm.coupling import Coupling, Independent
from isotherm.estimators import Estimator, Plain
from isotherm.foundation.docstrings import defaults_of
from isotherm.foundation.errors import check_real, check_type, refuse
from isotherm.foundation.schedules import Schedule, check_schedule
from isotherm.kernels import Kernel, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.sampler import AnySampler, Sampler, Specification

_ARGUMENTS = """
    step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy. A value that suits the sampler
        without contours suits here; "auto" finds it, and scales of the coordinates, by a pilot run.
    partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or "auto"
        for a pilot that finds them. `low` must lie above the lowest energy.
"""


class WeightedOptions(TypedDict, total=False):
    """Options of all samplers that multiply the gradient by a learned factor, with their defaults.

    Attributes:
        temperature: T, a number above 0 or a function of the iteration, in units of the energy.
        warm_up: iterations of the plain sampler before theta is learned. Their draws have weight 1.
        weight_rule: `contour.RegularizedWeights`, for a zeta so large that with exact weights one draw has all of the weight; None
            gives exact weights.
        estimator: of energies and gradients, an object of `iso.estimators`; None is `Plain()`, the energy of the gradient's batch.
        box: (low, high), numbers or arrays that broadcast against the position. Proposals outside are rejected, or reflected for
            (low, high, "reflect"); None has no walls.
    """

    temperature: Annotated[Schedule, 1.0]
    warm_up: Annotated[int, Contour.warm_up]
    weight_rule: Annotated[RegularizedWeights | None, Contour.weight_rule]
    estimator: Annotated[Estimator | None, None]
    box: Annotated[Box, None]


class ContourOptions(WeightedOptions, total=False):
    """Options of the contour samplers; `docs/contours.md` shows how accurate the defaults are.

    Attributes:
        zeta: strength of the flattening, at least 0: 0 is the plain sampler, 1 gives a flat energy histogram; no unit.
        gain: h_k in (0, 1], a number or a function of the iteration k. The default, 3 / (k + 300), averages over the whole run:
            theta that follows a chain from mode to mode biases its weights. No unit.
        field: f, the size of a step of theta: "psi" is Psi^zeta, whose fixed point is the mass of each bin; "theta^zeta" is
            the thesis' CSGLD, "theta" its ICSGLD, which runs away into the top bin once chains reach it; or an object of
            `iso.contour`.
        slopes: "backward" takes the slope of log theta from the bin below, "forward" from the bin above.
        bounds: (low, high) of psi with 1 between them, or None for none. In [0, 2] a chain is never pushed uphill and about as
            stable as a plain one. No unit.
        empty_step: the step of log theta above which the lower bin counts as empty, and psi is 1 in the upper one; None takes every
            step as a slope. No unit.
        initial_theta: theta at the start: "uniform", "decreasing" (linearly), "flat", "pilot" (the pilot's histogram), or a
            positive number for every bin. None is "pilot" where a pilot runs, else "uniform".
        perturbation: a number of at least 0 added to f of the field "theta^zeta", so that theta moves at a large zeta too.
    """

    zeta: Annotated[float, Contour.zeta]
    gain: Annotated[Schedule, Contour.gain]
    field: Annotated[str | Field, "psi"]
    slopes: Annotated[str, Contour.slopes]
    bounds: Annotated[tuple[float, float] | None, Contour.bounds]
    empty_step: Annotated[float | None, Contour.empty_step]
    initial_theta: Annotated[Any, None]
    perturbation: Annotated[float, ThetaPower.perturbation]


contour_constructor = constructor(WeightedOptions, ContourOptions, arguments=_ARGUMENTS)


def contour_sampler(
    name: str, kernel: Kernel, step_size: Schedule, partition: Any, is_shared: bool, given: ContourOptions
) -> AnySampler:
    """The sampler that learns theta, with the options of a constructor."""
    options = {**defaults_of(ContourOptions), **given}
    weight_rule, initial_theta = options["weight_rule"], options["initial_theta"]
    if weight_rule is not None:
        remedy = "Write `weight_rule=iso.contour.RegularizedWeights()`, say."
        check_type("weight_rule", weight_rule, RegularizedWeights, "a `contour.RegularizedWeights`, or None", remedy)
    field = _field(options["field"], options["perturbation"])
    kept = {key: options[key] for key in ("zeta", "gain", "slopes", "bounds", "empty_step", "warm_up", "weight_rule")}

    def contour(bins: Partition, noise: float | None, theta: Any) -> Contour:
        return Contour(bins, field=field, is_shared=is_shared, initial_theta=theta, noise=noise, **kept)

    def complete(found: FoundPartition) -> Contour:
        theta = initial_theta or "uniform"
        if theta == "pilot" or (initial_theta is None and not field.is_cumulative):
            theta = masses_of(found.bins_met, found.partition.num_bins, field.is_cumulative)
        return contour(found.partition, found.noise, theta)

    bins = as_partition(partition)
    if isinstance(bins, Partition):
        if isinstance(initial_theta, str) and initial_theta == "pilot":
            rule = "'uniform', 'decreasing', 'flat' or an array, for a given partition"
            refuse("initial_theta", rule, "'pilot'", 'Give `partition="auto"` for a pilot.')
        theta = "uniform" if initial_theta is None else initial_theta
        return weighted_sampler(name, kernel, step_size, contour(bins, None, theta), options)
    if field.is_cumulative:
        # A running sum of nothing has no logarithm.
        bins = dataclasses.replace(bins, num_below=0)
    plain = weighted_sampler(name, kernel, step_size, Independent(), options)
    return Specification(plain, bins, lambda plain, found: dataclasses.replace(plain, coupling=complete(found)))


def weighted_sampler(
    name: str, kernel: Kernel, step_size: Schedule, coupling: Coupling, options: dict[str, Any]
) -> Sampler:
    """The sampler of a coupling that multiplies gradients."""
    temperature, estimator = options["temperature"], options["estimator"]
    # Weights divide by it; a schedule may be zero for a while, as in the descent of a cycle.
    check_schedule("temperature", temperature, allow_zero=callable(temperature))
    if estimator is not None:
        remedy = "Write `estimator=iso.estimators.Plain()`, say."
        check_type("estimator", estimator, Estimator, "an object of `iso.estimators`, or None", remedy)
    return Sampler(within(kernel, options["box"]), step_size, temperature, estimator or Plain(), coupling, name=name)


def _field(given: str | Field, perturbation: float) -> Field:
    field = as_field(given)
    remedy = "Give a small number, such as 1e-3."
    if check_real("perturbation", perturbation, remedy, minimum=0.0, maximum=1.0) == 0:
        return field
    if not isinstance(field, ThetaPower):
        refuse("perturbation", "0 for this field", perturbation, 'Leave it out, or use field="theta^zeta".')
    return ThetaPower(perturbation)
