"""Samplers of independent chains in cycles: each cycle descends with large steps, then samples."""

from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, Schedule
from isotherm.kernels import SGHMC, SGLD, Kernel, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.sampler import Sampler

_cyclical_constructor = constructor(
    arguments="""
        step_size: eps, the step size at the start of a cycle, a number above 0, in units of position^2 / energy.
        temperature: T of the sampling stage, at least 0, in units of the energy.
    """
)


@_cyclical_constructor
def cycsgld(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.95,
    hold_from: float = CyclicalCosine.hold_from,
    floor: float = CyclicalCosine.floor,
    exploration_temperature: float = CyclicalTemperature.exploring,
    box: Box = None,
) -> Sampler:
    """Cyclical SGLD: every cycle descends with a cosine step size and no noise, then samples.

        beta = (k mod L) / L
        eps_k = floor + (eps - floor) / 2 (cos(pi min(beta, hold_from)) + 1)
        x <- x - eps_k g + sqrt(2 eps_k T_k) xi,        T_k = T from the fraction `sampling_from` of a cycle on, else T_0

    Draws are collected where T_k = T. Give `floor` or `hold_from`: without either eps_k falls to 0 and the chain stops moving.

    Use it for many modes at the cost of one chain, where their masses do not matter; not for masses: use `resgld` or `icsgld`.

    Biased: the masses of modes are those of the descents, not of exp(-U / T). Within a mode by O(eps_k), and by sampling stages too
    short to forget the descent.

    Args:
        sampling_from: ... 0.95 is the thesis' for its 25 modes; `cycsghmc` has the 0.7 of its networks, whose cycles last many
            epochs and leave time to sample.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.cycsgld(0.1, cycle_length=100, sampling_from=0.5, floor=0.01)
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.zeros(2))
        >>> run.draws.shape
        (1, 100, 2)

    Reference:
        Zhang et al. 2020, Algorithm 1; a baseline of Deng 2021, section 3.3.

    Differs from the thesis: its code divides T by 1e10 where this has no noise.
    """
    steps = CyclicalCosine(largest(step_size), cycle_length, hold_from, floor)
    return _cyclical("cycsgld", within(SGLD(), box), steps, temperature, sampling_from, exploration_temperature)


@_cyclical_constructor
def cycsghmc(
    step_size: float,
    *,
    cycle_length: int,
    temperature: float = 1.0,
    sampling_from: float = 0.7,
    hold_from: float = CyclicalCosine.hold_from,
    floor: float = CyclicalCosine.floor,
    exploration_temperature: float = CyclicalTemperature.exploring,
    friction: float = SGHMC.friction,
    box: Box = None,
) -> Sampler:
    """Cyclical SGHMC: `cycsgld` with momentum.

        beta = (k mod L) / L
        eps_k = floor + (eps - floor) / 2 (cos(pi min(beta, hold_from)) + 1)
        v <- (1 - alpha) v - eps_k g + sqrt(2 eps_k alpha T_k) xi
        x <- x + v,        T_k = T from the fraction `sampling_from` of a cycle on, else T_0

    Draws are collected where T_k = T. Give `floor` or `hold_from`: without either eps_k falls to 0 at the end of a cycle.

    Use it for ensembles of networks from one chain; not for masses of modes: use `resghmc` or `icsghmc`.

    Biased: the masses of modes are those of the descents, not of exp(-U / T). Within a mode by O(eps_k), and by sampling stages too
    short to forget the descent.

    Args:
        sampling_from: ... 0.7 is the thesis' for networks; `cycsgld` has the 0.95 of its 25 modes.
        box: ... A rejection reverses v.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.cycsghmc(0.01, cycle_length=100, floor=0.001)
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.zeros(2))
        >>> run.draws.shape
        (1, 60, 2)

    Reference:
        Zhang et al. 2020, Algorithm 1; the baseline cycSGHMC of Deng 2021, section 3.2.

    Differs from the thesis: its code divides T by 1e10 where this has no noise.
    """
    steps = CyclicalCosine(largest(step_size), cycle_length, hold_from, floor)
    kernel = within(SGHMC(friction), box)
    return _cyclical("cycsghmc", kernel, steps, temperature, sampling_from, exploration_temperature)


def largest(step_size: Schedule) -> float:
    """The largest step size of a cycle, checked."""
    if callable(step_size):
        refuse("step_size", "the largest value of a cycle", repr(step_size), "The cyclical schedule is made from it.")
    return check_real("step_size", step_size, "Give the largest step size of a cycle.", above=0.0)


def _cyclical(
    name: str, kernel: Kernel, steps: CyclicalCosine, temperature: float, sampling_from: float, exploring: float
) -> Sampler:
    length = steps.cycle_length
    temperatures = CyclicalTemperature(temperature, length, sampling_from, exploring)
    return Sampler(kernel, steps, temperatures, window=CollectionWindow(length, sampling_from), name=name)
