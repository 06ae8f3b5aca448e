"""Samplers without injected noise: SGD, SGD with momentum, and the path of SWAG."""

from isotherm.foundation.schedules import CollectionWindow, CyclicalCosine, Schedule
from isotherm.kernels import SGD, MomentumSGD, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.cyclical import largest
from isotherm.samplers.sampler import Sampler


@constructor()
def sgd(step_size: Schedule, *, box: Box = None) -> Sampler:
    """Stochastic gradient descent.

        x <- x - eps g

    with g the gradient of U, on a batch where the potential has data. One gradient per iteration.

    Use it to find a minimum below the start, or as a baseline; not to sample: use `sgld`.

    Biased: it follows no distribution. Draws stay around one minimum; batches and eps set their spread.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.sgd(0.1), num_steps=200, init=jnp.ones(2))
        >>> bool(run.energies[0, -1] < 1e-6)
        True

    Reference:
        Robbins and Monro 1951; a baseline of Deng 2021.
    """
    return Sampler(within(SGD(), box), step_size, 0.0, name="sgd")


@constructor()
def msgd(step_size: Schedule, *, friction: float = MomentumSGD.friction, box: Box = None) -> Sampler:
    """Stochastic gradient descent with momentum.

        v <- (1 - alpha) v - eps g
        x <- x + v

    The velocity v holds the step size: eps is the learning rate of libraries that write v <- mu v + g, x <- x - eps v.

    Use it to train networks, or as a baseline; not to sample: use `sghmc`.

    Biased: it follows no distribution. Draws stay around one minimum; batches, eps and alpha set their spread.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.msgd(0.01), num_steps=200, init=jnp.ones(2))
        >>> bool(run.energies[0, -1] < 1e-3)
        True

    Reference:
        Polyak 1964; the baseline M-SGD of Deng 2021, sections 3.1 and 3.2.
    """
    return Sampler(within(MomentumSGD(friction), box), step_size, 0.0, name="msgd")


@constructor()
def swag(
    step_size: Schedule,
    *,
    cycle_length: int | None = None,
    sampling_from: float = 0.85,
    friction: float = MomentumSGD.friction,
    box: Box = None,
) -> Sampler:
    """The path of SGD with momentum, to which `predictive.fit_swag` fits Gaussians.

        v <- (1 - alpha) v - eps_k g
        x <- x + v

    With a `cycle_length` L, eps_k falls by a cosine from `step_size`, is held from the fraction `sampling_from` of every cycle on,
    and draws are collected there: cycSWAG. Without one, eps_k is `step_size` and all draws are collected.

    Use it for Gaussians around minima of a network, one draw an epoch; not to sample: use `sghmc`.

    Biased: it follows no distribution. The Gaussians describe the path of SGD, whose spread eps and the batches set.

    Args:
        step_size: eps, a number above 0, or without `cycle_length` a function of the iteration, in units of position^2 / energy.
        cycle_length: ... None has no cycles.
        sampling_from: the fraction of a cycle, in [0, 1), from which the step size is held and draws are collected. 0.85 is that of
            the thesis' image experiments, later than in `cycsghmc`, so that a Gaussian covers one minimum.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.swag(0.01, cycle_length=100), num_steps=200, init=jnp.ones(2))
        >>> run.iterations.tolist() == [*range(85, 100), *range(185, 200)]
        True

    Reference:
        Maddox et al. 2019; the baseline cycSWAG of Deng 2021, section 3.3.
    """
    kernel = within(MomentumSGD(friction), box)
    if cycle_length is None:
        return Sampler(kernel, step_size, 0.0, name="swag")
    schedule = CyclicalCosine(largest(step_size), cycle_length, sampling_from)
    return Sampler(kernel, schedule, 0.0, window=CollectionWindow(cycle_length, sampling_from), name="swag")
