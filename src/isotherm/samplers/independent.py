"""Samplers of independent chains."""

from typing import Any

from isotherm.errors import check_real, refuse
from isotherm.kernels import PSGLD, SGD, SGHMC, SGLD, MomentumSGD, Stein, within
from isotherm.sampling.sampler import Sampler
from isotherm.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, Schedule

Box = tuple[Any, Any] | None


def sgd(step_size: Schedule, *, box: Box = None) -> Sampler:
    """Stochastic gradient descent."""
    return Sampler(within(SGD(), box), step_size, 0.0, name="sgd")


def msgd(step_size: Schedule, *, friction: float = 0.1, box: Box = None) -> Sampler:
    """Stochastic gradient descent with momentum 1 - friction; the velocity holds the step size."""
    return Sampler(within(MomentumSGD(friction), box), step_size, 0.0, name="msgd")


def sgld(step_size: Schedule, *, temperature: Schedule = 1.0, box: Box = None) -> Sampler:
    """Stochastic gradient Langevin dynamics."""
    return Sampler(within(SGLD(), box), step_size, temperature, name="sgld")


def psgld(
    step_size: Schedule,
    *,
    temperature: Schedule = 1.0,
    decay: float = 0.99,
    regulariser: float = 1e-3,
    gradient_scale: float = 1.0,
    curvature_correction: bool = False,
    box: Box = None,
) -> Sampler:
    """SGLD with RMSprop's preconditioner."""
    kernel = PSGLD(decay, regulariser, gradient_scale, curvature_correction)
    return Sampler(within(kernel, box), step_size, temperature, name="psgld")


def sghmc(
    step_size: Schedule,
    *,
    temperature: Schedule = 1.0,
    friction: float = 0.1,
    gradient_variance: float = 0.0,
    box: Box = None,
) -> Sampler:
    """Stochastic gradient Hamiltonian Monte Carlo."""
    return Sampler(within(SGHMC(friction, gradient_variance), box), step_size, temperature, name="sghmc")


def cycsgld(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.95,
    hold_from: float = 1.0,
    box: Box = None,
) -> Sampler:
    """Cyclical SGLD: each cycle descends with a cosine step size and no noise, then samples and is collected."""
    return _cyclical("cycsgld", SGLD(), step_size, cycle_length, temperature, sampling_from, hold_from, box)


def cycsghmc(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.7,
    hold_from: float = 1.0,
    friction: float = 0.1,
    box: Box = None,
) -> Sampler:
    """Cyclical SGHMC: see `cycsgld`."""
    return _cyclical("cycsghmc", SGHMC(friction), step_size, cycle_length, temperature, sampling_from, hold_from, box)


def swag(
    step_size: Schedule,
    *,
    cycle_length: int | None = None,
    sampling_from: float = 0.85,
    friction: float = 0.1,
    box: Box = None,
) -> Sampler:
    """The path of SGD with momentum, to which `predictive.fit_swag` fits Gaussians.

    With a `cycle_length` the step size falls by a cosine from `step_size` and is held from the fraction `sampling_from` of every
    cycle on, where draws are collected: cycSWAG.
    """
    kernel = within(MomentumSGD(friction), box)
    if cycle_length is None:
        return Sampler(kernel, step_size, 0.0, name="swag")
    schedule = CyclicalCosine(_largest(step_size), cycle_length, sampling_from)
    return Sampler(kernel, schedule, 0.0, window=CollectionWindow(cycle_length, sampling_from), name="swag")


def svgd(
    step_size: Schedule,
    *,
    num_particles: int = 100,
    temperature: Schedule = 1.0,
    bandwidth: float | None = None,
    box: Box = None,
) -> Sampler:
    """Stein variational gradient descent. A chain is a stack of particles, which a run reports as chains."""
    return Sampler(within(Stein(num_particles, bandwidth), box), step_size, temperature, name="svgd")


def _cyclical(name, kernel, step_size, cycle_length, temperature, sampling_from, hold_from, box) -> Sampler:
    return Sampler(
        within(kernel, box),
        CyclicalCosine(_largest(step_size), cycle_length, hold_from),
        CyclicalTemperature(temperature, cycle_length, sampling_from),
        window=CollectionWindow(cycle_length, sampling_from),
        name=name,
    )


def _largest(step_size: Schedule) -> float:
    """The largest step size of a cycle, checked."""
    if callable(step_size):
        refuse("step_size", "the largest value of a cycle", repr(step_size), "The cyclical schedule is made from it.")
    return check_real("step_size", step_size, "Give the largest step size of a cycle.", above=0.0)
