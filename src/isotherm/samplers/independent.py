"""Samplers of independent chains, with and without noise, in cycles, and particles that move together."""

from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, Schedule
from isotherm.kernels import PSGLD, SGD, SGHMC, SGLD, Kernel, MomentumSGD, Stein, within
from isotherm.samplers.constructor import Box, StepSize, constructor
from isotherm.samplers.sampler import Sampler

_cyclical_constructor = constructor(
    arguments="""
        step_size: eps, the step size at the start of a cycle, a number above 0, in units of position^2 / energy.
        temperature: T of the sampling stage, at least 0, in units of the energy.
    """
)


@constructor()
def sgd(step_size: StepSize, *, box: Box = None) -> Sampler:
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
def msgd(step_size: StepSize, *, friction: float = MomentumSGD.friction, box: Box = None) -> Sampler:
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
def sgld(step_size: StepSize, *, temperature: Schedule = 1.0, box: Box = None) -> Sampler:
    """Stochastic gradient Langevin dynamics: samples exp(-U / T) with one gradient per iteration.

        x <- x - eps g + sqrt(2 eps T) xi

    with g the gradient of U, on a batch where the potential has data, and xi standard normal.

    Use it where one mode matters, or where barriers are below a few T; not across high barriers: use `resgld` or `icsgld`. On
    energies of very unequal curvatures `sghmc` mixes faster.

    Biased by O(eps): on a curvature h the variance is too large by the factor 1 / (1 - eps h / 2). Gradient noise of variance s^2
    adds eps s^2 / 2 to T. Modes between which chains do not move keep the masses of the starts. `Run.bias` measures the first two.

    Args:
        step_size: ... Stable below 2 over the largest curvature of U.
        box: ... Rejections keep the distribution; reflections shift each wall by eps / 2 times the slope of U there.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(0.1), num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (4, 200, 2)

    Reference:
        Welling and Teh 2011; Deng 2021, chapter 2.
    """
    return Sampler(within(SGLD(), box), step_size, temperature, name="sgld")


@constructor()
def psgld(
    step_size: StepSize,
    *,
    temperature: Schedule = 1.0,
    decay: float = PSGLD.decay,
    regularizer: float = PSGLD.regularizer,
    gradient_scale: float = PSGLD.gradient_scale,
    curvature_correction: bool = PSGLD.curvature_correction,
    freeze_after: int | None = PSGLD.freeze_after,
    box: Box = None,
) -> Sampler:
    """SGLD with RMSprop's diagonal preconditioner.

        V <- beta V + (1 - beta) (s g)^2,        V starts at 1
        G = 1 / (lambda + sqrt(V))
        x <- x - eps G g + eps T Gamma + sqrt(2 eps T G) xi

    with Gamma the derivative of G, left out without `curvature_correction`.

    Use it where coordinates have very unequal scales, with `freeze_after` equal to the run's `burn_in`; not adapting where the
    distribution matters: use `sgld` or `sghmc`.

    Biased while V adapts: G then depends on x, and the distribution is near exp(-U / T) / G, whatever eps. Frozen, by O(eps) as
    `sgld` is.

    Args:
        step_size: eps, a number above 0 or a function of the iteration; eps G has units of position^2 / energy.
        curvature_correction: whether Gamma is used, estimated through the newest gradient alone, for about one more gradient.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.psgld(0.1, freeze_after=50)
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, burn_in=50, init=jnp.zeros(2))
        >>> run.draws.shape
        (1, 150, 2)

    Reference:
        Li et al. 2016, Algorithm 1; Deng 2021, section 4.3.

    Differs from the thesis: its code never freezes V and leaves Gamma out.
    """
    kernel = PSGLD(decay, regularizer, gradient_scale, curvature_correction, freeze_after)
    return Sampler(within(kernel, box), step_size, temperature, name="psgld")


@constructor()
def sghmc(
    step_size: StepSize,
    *,
    temperature: Schedule = 1.0,
    friction: float = SGHMC.friction,
    gradient_variance: float = SGHMC.gradient_variance,
    resample_every: int | None = SGHMC.resample_every,
    box: Box = None,
) -> Sampler:
    """Stochastic gradient Hamiltonian Monte Carlo: Langevin dynamics with momentum.

        v <- (1 - alpha) v - eps g + sqrt(2 eps (alpha - b) T) xi,        b = V eps / 2
        x <- x + v

    The velocity v starts at 0 and holds the step size. alpha = 1 is `sgld`.

    Use it where curvatures are unequal, and for networks; not across high barriers: use `resghmc` or `icsghmc`.

    Biased by O(eps), at equal eps about half as much as `sgld` by curvature and 1 / alpha times as much by gradient noise, unless
    `gradient_variance` corrects for it. Modes between which chains do not move keep the masses of the starts.

    Args:
        gradient_variance: V of at least 0, the known variance of a coordinate of the gradient over T; injected noise is reduced by
            it, to none where b exceeds alpha.
        resample_every: iterations between two draws of a new velocity; None never draws one.
        box: ... A rejection reverses v, a reflection its coordinate.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.sghmc(0.01), num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.draws.shape
        (4, 200, 2)

    Reference:
        Chen et al. 2014; Deng 2021, section 3.4.2.

    Differs from the thesis: its code keeps the noise of the first step size after the step size has decayed.
    """
    kernel = SGHMC(friction, gradient_variance, resample_every)
    return Sampler(within(kernel, box), step_size, temperature, name="sghmc")


@_cyclical_constructor
def cycsgld(
    step_size: StepSize,
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
    step_size: StepSize,
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
        box: ... A rejection reverses v, a reflection its coordinate.

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


@constructor()
def svgd(
    step_size: StepSize, *, temperature: Schedule = 1.0, bandwidth: float | None = Stein.bandwidth, box: Box = None
) -> Sampler:
    """Stein variational gradient descent: the P chains of a run are particles that descend U and repel one another.

        x_i <- x_i + (eps / P) sum_j [ -k(x_j, x_i) g_j + T grad_{x_j} k(x_j, x_i) ],        k(x, y) = exp(-|x - y|^2 / h)

    Pass `num_chains=100`, say, and spread starts to `iso.sample`. Costs P gradients and O(P^2 d) per iteration; there is no noise.

    Use it for a few well-placed points in few dimensions; not for spreads or tails in many: use `sghmc`.

    Biased: particles have the mean of their mode and too little spread, more so in more dimensions.

    Args:
        bandwidth: h above 0, a squared length; None is the median of the squared distances over log(P + 1), in every iteration.

    Example:
        >>> import isotherm as iso, jax
        >>> start = lambda key: jax.random.normal(key, (2,))
        >>> run = iso.sample(lambda x: x @ x / 2, iso.svgd(0.1), num_steps=200, num_chains=20, thinning=100, init=start)
        >>> run.draws.shape
        (20, 2, 2)

    Reference:
        Liu and Wang 2016, Algorithm 1; a baseline of Deng 2021, section 4.3.

    Differs from the thesis: the repulsion carries T, so that particles approximate exp(-U / T).
    """
    return Sampler(within(Stein(bandwidth), box), step_size, temperature, name="svgd")


@constructor()
def swag(
    step_size: StepSize,
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


def largest(step_size: StepSize) -> float:
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
