"""Samplers of independent chains."""

from typing import Any

from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, Schedule
from isotherm.kernels import PSGLD, SGD, SGHMC, SGLD, Kernel, MomentumSGD, Stein, within
from isotherm.sampling.sampler import Sampler

Box = tuple[Any, Any] | None


def sgd(step_size: Schedule, *, box: Box = None) -> Sampler:
    """Stochastic gradient descent. Promises no law: it goes to a minimum that its start leads to."""
    return Sampler(within(SGD(), box), step_size, 0.0, name="sgd")


def msgd(step_size: Schedule, *, friction: float = 0.1, box: Box = None) -> Sampler:
    """Stochastic gradient descent with momentum 1 - friction; the velocity holds the step size. Promises no law."""
    return Sampler(within(MomentumSGD(friction), box), step_size, 0.0, name="msgd")


def sgld(step_size: Schedule, *, temperature: Schedule = 1.0, box: Box = None) -> Sampler:
    """Stochastic gradient Langevin dynamics.

    Promises exp(-U / T) up to O(step size), in a box too. Modes that noise does not connect keep the masses of the starts.
    """
    return Sampler(within(SGLD(), box), step_size, temperature, name="sgld")


def psgld(
    step_size: Schedule,
    *,
    temperature: Schedule = 1.0,
    decay: float = 0.99,
    regularizer: float = 1e-3,
    gradient_scale: float = 1.0,
    curvature_correction: bool = False,
    freeze_after: int | None = None,
    box: Box = None,
) -> Sampler:
    """SGLD with RMSprop's preconditioner.

    Promises exp(-U / T) up to O(step size) from the iteration `freeze_after` on, where the preconditioner stays as it is: give the
    run's `burn_in`. One that goes on adapting, the default and the thesis' way, is biased; see `kernels.PSGLD`.
    """
    kernel = PSGLD(decay, regularizer, gradient_scale, curvature_correction, freeze_after)
    return Sampler(within(kernel, box), step_size, temperature, name="psgld")


def sghmc(
    step_size: Schedule,
    *,
    temperature: Schedule = 1.0,
    friction: float = 0.1,
    gradient_variance: float = 0.0,
    resample_every: int | None = None,
    box: Box = None,
) -> Sampler:
    """Stochastic gradient Hamiltonian Monte Carlo.

    Promises exp(-U / T) up to O(step size), in a box too. With `resample_every` a new momentum is drawn every so many iterations.
    """
    kernel = SGHMC(friction, gradient_variance, resample_every)
    return Sampler(within(kernel, box), step_size, temperature, name="sghmc")


def cycsgld(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.95,
    hold_from: float = 1.0,
    floor: float = 0.0,
    exploration_temperature: float = 0.0,
    box: Box = None,
) -> Sampler:
    """Cyclical SGLD: each cycle descends with a cosine step size and no noise, then samples and is collected.

    The step size falls from `step_size` to `floor`, and stays where it is from the fraction `hold_from` of a cycle on. Without
    either it falls to 0, and a chain that does not move samples nothing. Promises the law within a mode, where the sampling stage
    is long enough to reach it; the masses of modes are those of the descents, not of exp(-U / T).
    """
    steps = CyclicalCosine(_largest(step_size), cycle_length, hold_from, floor)
    return _cyclical("cycsgld", within(SGLD(), box), steps, temperature, sampling_from, exploration_temperature)


def cycsghmc(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.7,
    hold_from: float = 1.0,
    floor: float = 0.0,
    exploration_temperature: float = 0.0,
    friction: float = 0.1,
    box: Box = None,
) -> Sampler:
    """Cyclical SGHMC: `cycsgld` with momentum, and with the same promise."""
    steps = CyclicalCosine(_largest(step_size), cycle_length, hold_from, floor)
    kernel = within(SGHMC(friction), box)
    return _cyclical("cycsghmc", kernel, steps, temperature, sampling_from, exploration_temperature)


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
    cycle on, where draws are collected: cycSWAG. Promises no law: the Gaussians describe the path of SGD.
    """
    kernel = within(MomentumSGD(friction), box)
    if cycle_length is None:
        return Sampler(kernel, step_size, 0.0, name="swag")
    schedule = CyclicalCosine(_largest(step_size), cycle_length, sampling_from)
    return Sampler(kernel, schedule, 0.0, window=CollectionWindow(cycle_length, sampling_from), name="swag")


def svgd(
    step_size: Schedule,
    *,
    temperature: Schedule = 1.0,
    bandwidth: float | None = None,
    box: Box = None,
) -> Sampler:
    """Stein variational gradient descent. The chains of a run are its particles: pass num_chains=100, say, and spread starts.

    Promises particles whose mean is that of the mode they are in, and whose spread is about right in few dimensions; no law.
    """
    return Sampler(within(Stein(bandwidth), box), step_size, temperature, name="svgd")


def _cyclical(
    name: str, kernel: Kernel, steps: CyclicalCosine, temperature: float, sampling_from: float, exploring: float
) -> Sampler:
    length = steps.cycle_length
    window = CollectionWindow(length, sampling_from)
    return Sampler(
        kernel, steps, CyclicalTemperature(temperature, length, sampling_from, exploring), window=window, name=name
    )


def _largest(step_size: Schedule) -> float:
    """The largest step size of a cycle, checked."""
    if callable(step_size):
        refuse("step_size", "the largest value of a cycle", repr(step_size), "The cyclical schedule is made from it.")
    return check_real("step_size", step_size, "Give the largest step size of a cycle.", above=0.0)
