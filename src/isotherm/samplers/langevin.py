"""Samplers of independent chains with noise, and particles that move together."""

from isotherm.foundation.schedules import Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, Stein, within
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.sampler import Sampler


@constructor()
def sgld(step_size: Schedule, *, temperature: Schedule = 1.0, box: Box = None) -> Sampler:
    """Stochastic gradient Langevin dynamics: samples exp(-U / T) with one gradient per iteration.

        x <- x - eps g + sqrt(2 eps T) xi

    with g the gradient of U, on a batch where the potential has data, and xi standard normal.

    Use it where one mode matters, or where barriers are below a few T; not across high barriers: use `resgld` or `icsgld`. On
    energies of very unequal curvatures `sghmc` mixes faster.

    Biased by O(eps): on a curvature h the variance is too large by the factor 1 / (1 - eps h / 2). Gradient noise of variance s^2
    adds eps s^2 / 2 to T. Modes between which chains do not move keep the masses of the starts. `Run.bias` measures the first two.

    Args:
        step_size: ... Stable below 2 over the largest curvature of U.
        box: ... Rejections keep the distribution.

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
    step_size: Schedule,
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
    step_size: Schedule,
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
        box: ... A rejection reverses v.

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


@constructor()
def svgd(
    step_size: Schedule, *, temperature: Schedule = 1.0, bandwidth: float | None = Stein.bandwidth, box: Box = None
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
