"""Contour samplers whose chains learn the weights of energy bins together."""

from typing import Any, Unpack

from isotherm.foundation.schedules import Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD
from isotherm.samplers.constructor import constructor
from isotherm.samplers.contour_options import CONTOUR, ContourOptions, contour_sampler
from isotherm.samplers.sampler import AnySampler


@constructor(*CONTOUR)
def icsgld(step_size: Schedule, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> AnySampler:
    """Interacting contour SGLD: all chains learn the weights theta of energy bins together, and walk freely up and down in energy.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        x <- x - eps psi g + sqrt(2 eps T) xi                           for every chain
        theta <- theta + h_k mean over chains of f (1{J} - theta),        f = Psi^zeta(U(x)), with log Psi linear between edges
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. Weights use the theta of the draw's own time. One gradient per chain and
    iteration.

    Use it across barriers of several T, with 4 chains or more, and for `Run.log_z_ratio`; not in many dimensions, where few bins
    hold all of the energies: use `resgld`.

    Biased by O(eps psi) as `sgld` is by O(eps); by theta that moves while chains mix; and where energy noise times the slope of
    log theta is not small.

    Args:
        step_size: eps, a number above 0 or a function of the iteration that suits `sgld`, in units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. `low` must lie above the lowest energy.
        **options: see `ContourOptions`.

    Returns:
        A `Sampler` for `iso.sample`.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.icsgld(0.1, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, Algorithm ICSGLD of section 4.2. Its settings are `iso.thesis.icsgld()`.

    Differs from the thesis: its f is theta(J), which runs away into the top bin when chains meet it, and its weight theta(J)^zeta;
    bounds, the rule for empty bins and the default gain are ours.
    """
    return contour_sampler("icsgld", SGLD(), step_size, partition, True, options)


@constructor(*CONTOUR)
def icsghmc(
    step_size: Schedule,
    *,
    partition: Any = "auto",
    friction: float = SGHMC.friction,
    **options: Unpack[ContourOptions],
) -> AnySampler:
    """Interacting contour SGHMC: `icsgld` with momentum.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        v <- (1 - alpha) v - eps psi g + sqrt(2 eps alpha T) xi,        x <- x + v
        theta <- theta + h_k mean over chains of f (1{J} - theta),        f = Psi^zeta(U(x)), with log Psi linear between edges
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. One gradient per chain and iteration.

    Use it in place of `icsgld` where curvatures are unequal, and for networks; not where few bins hold all of the energies: use
    `resghmc`.

    Biased by O(eps psi) as `sghmc` is by O(eps); by theta that moves while chains mix; and where energy noise times the slope of
    log theta is not small.

    Args:
        step_size: eps, a number above 0 or a function of the iteration that suits `sghmc`, in units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. `low` must lie above the lowest energy.
        friction: alpha in (0, 1], one minus the momentum coefficient; no unit.
        **options: see `ContourOptions`.

    Returns:
        A `Sampler` for `iso.sample`.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.icsghmc(0.01, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, section 4.2 (ICSGHMC on CIFAR100). Its settings are `iso.thesis.icsgld()`.

    Differs from the thesis: as `icsgld` does.
    """
    return contour_sampler("icsghmc", SGHMC(friction), step_size, partition, True, options)


@constructor(*CONTOUR)
def picsgld(
    step_size: Schedule,
    *,
    partition: Any = "auto",
    decay: float = PSGLD.decay,
    regularizer: float = PSGLD.regularizer,
    gradient_scale: float = PSGLD.gradient_scale,
    freeze_after: int | None = PSGLD.freeze_after,
    **options: Unpack[ContourOptions],
) -> AnySampler:
    """`icsgld` with RMSprop's diagonal preconditioner.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        V <- beta V + (1 - beta) (s psi g)^2,        G = 1 / (lambda + sqrt(V))
        x <- x - eps G psi g + sqrt(2 eps T G) xi

    and theta and weights as in `icsgld`. One gradient per chain and iteration.

    Use it in place of `icsgld` where coordinates have very unequal scales, with `freeze_after` equal to the run's `burn_in`; not
    adapting where the distribution matters: use `icsghmc`.

    Biased as `psgld` while V adapts, whatever eps; frozen, as `icsgld`.

    Args:
        step_size: eps, a number above 0 or a function of the iteration; eps G has units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. `low` must lie above the lowest energy.
        decay: beta in [0, 1], how much of V an iteration keeps; no unit.
        regularizer: lambda above 0, which keeps G below 1 / lambda; in units of s g.
        gradient_scale: s above 0, on the gradient in V alone; 1 / N brings that of a sum over N examples to the scale of a mean.
        freeze_after: the iteration from which V stays as it is, at most the run's `burn_in`; None adapts to the end.
        **options: see `ContourOptions`.

    Returns:
        A `Sampler` for `iso.sample`.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.picsgld(0.1, partition=(0.5, 5.0, 20), freeze_after=50)
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, burn_in=50, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 150)

    Reference:
        Deng 2021, pICSGLD of section 4.3; the preconditioner is that of Li et al. 2016.

    Differs from the thesis: as `icsgld` does; its code never freezes V.
    """
    kernel = PSGLD(decay, regularizer, gradient_scale, freeze_after=freeze_after)
    return contour_sampler("picsgld", kernel, step_size, partition, True, options)
