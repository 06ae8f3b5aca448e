"""Samplers with a Metropolis test, for exact energies."""

from typing import Any, Unpack

import jax
import numpy as np

from isotherm.estimators import Plain
from isotherm.exchange import Corrected
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import GHMC, MALA, within
from isotherm.kernels.wrapped import scaled
from isotherm.samplers.constructor import Box, StepSize, constructor
from isotherm.samplers.exchange_options import (
    ExchangeOptions,
    Steps,
    Temperatures,
    exchange_constructor,
    exchange_sampler,
    ladder_of,
)
from isotherm.samplers.sampler import AnySampler, Sampler


@constructor()
def mala(step_size: StepSize, *, temperature: Schedule = 1.0, box: Box = None) -> Sampler:
    """The Metropolis-adjusted Langevin algorithm: samples exp(-U / T) exactly, with one gradient per iteration.

        y = x - eps g(x) + sqrt(2 eps T) xi
        x <- y with probability min(1, exp{ (U(x) - U(y)) / T } q(x | y) / q(y | x)), else x stays

    with g the gradient of U, xi standard normal and q the density of the proposal. The gradient at y is that of the next iteration.

    Use it for exact energies in a few dimensions; not for mini-batches, where it is refused: use `sgld`. In many dimensions `ghmc`
    mixes faster.

    Unbiased at every eps. Too large an eps only rejects, but chains may then stand still for long where the energy is steep: aim
    for 57 % of accepted moves in many dimensions, and for 40 to 80 % in a few. Modes between which chains do not move keep the
    masses of the starts: use `reghmc`.

    Args:
        temperature: T, a number above 0 or a function of the iteration, in units of the energy.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.mala(0.5), num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (4, 200, 2)

    Reference:
        Roberts and Tweedie 1996.
    """
    return Sampler(within(MALA(), box), step_size, temperature, name="mala")


@constructor()
def ghmc(
    step_size: StepSize, *, temperature: Schedule = 1.0, friction: float = GHMC.friction, box: Box = None
) -> Sampler:
    """Generalized Hamiltonian Monte Carlo: `sghmc` with a Metropolis test for every step. Samples exp(-U / T) exactly.

        v <- (1 - alpha) v + sqrt((1 - (1 - alpha)^2) eps T) xi
        w  = v - eps / 2 g(x),        y = x + w,        v' = w - eps / 2 g(y)
        accept (y, v') with probability min(1, exp{ -(U(y) - U(x) + (|v'|^2 - |v|^2) / (2 eps)) / T }), else (x, -v)

    One gradient per iteration. Rejections come in clusters (Neal 2020), so that v rarely turns.

    Use it for exact energies in many dimensions or of unequal curvatures; not for mini-batches, where it is refused: use `sghmc`.

    Unbiased at every eps. Too large an eps only rejects, but chains may then stand still for long where the energy is steep: aim
    for 80 to 95 % of accepted moves. Modes between which chains do not move keep the masses of the starts: use `reghmc`.

    Args:
        temperature: T, a number above 0 or a function of the iteration, in units of the energy.
        friction: alpha in (0, 1], the part of v that an iteration forgets; sqrt(eps) over the widest scale is a good value. 1 is
            `mala` at half the step size.
        box: ... A rejection reverses v.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.ghmc(0.2), num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (4, 200, 2)

    Reference:
        Horowitz 1991; Neal 2020.
    """
    return Sampler(within(GHMC(friction), box), step_size, temperature, name="ghmc")


@exchange_constructor
def reghmc(
    step_size: Steps,
    *,
    temperatures: Temperatures = (1.0, 10.0),
    num_replicas: int | None = None,
    friction: float = GHMC.friction,
    scales: Any = None,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange of `ghmc`: parallel tempering without a bias by the step size, for exact energies.

        the moves of `ghmc` with eps_i and T_i                on every rung i
        swap i and j with probability min(1, exp{ (1/T_i - 1/T_j) (U_i - U_j) })

    Costs one gradient per rung and iteration.

    Use it for exact energies with many modes; not for mini-batches, where it is refused: use `resghmc`.

    Unbiased at every eps. Hot rungs reach steeper places, and may need smaller eps than the target. Runs must be long enough for
    replicas to travel between the target and the hottest rung, and that rung hot enough to mix.

    Args:
        friction: alpha in (0, 1], the part of v that an iteration forgets; 1 is `mala` on every rung, at half the step sizes.
        scales: A with x = A z, the coordinates in which chains move: a tree like the position, or a matrix over all its numbers;
            None moves x itself. Step sizes are then in units of z^2 / energy.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.reghmc((0.01, 0.1), temperatures=(1.0, 10.0), num_replicas=5, friction=0.3)
        >>> sampler.coupling.ladder.num_rungs
        5

    Reference:
        Geyer 1991; Syed et al. 2022.
    """
    ladder = ladder_of(step_size, temperatures, num_replicas)
    kernel = GHMC(friction)
    if scales is not None:
        is_dense = not isinstance(scales, dict) and np.ndim(scales) == 2
        kernel = scaled(kernel, jax.tree.map(np.asarray, scales), is_dense)
    return exchange_sampler("reghmc", kernel, Plain(), ladder, Corrected(None), options)
