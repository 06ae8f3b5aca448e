"""Contour samplers: chains learn the weights of energy bins, alone or together, and flatten the energy with them."""

from typing import Any, Unpack

from isotherm.contour import Contour, Partition
from isotherm.contour.partition import as_partition
from isotherm.contour.theta_histogram import check_start
from isotherm.foundation.docstrings import defaults_of
from isotherm.foundation.errors import refuse
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import PSGLD, SGHMC, SGLD, limited
from isotherm.samplers.constructor import Box, StepSize, constructor
from isotherm.samplers.contour_options import (
    ContourOptions,
    WeightedOptions,
    contour_constructor,
    contour_sampler,
    weighted_sampler,
)
from isotherm.samplers.sampler import AnySampler

_AWSGLD_GAIN = PolynomialGain(100.0, 0.75, 1000.0)


@contour_constructor
def csgld(step_size: StepSize, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> AnySampler:
    """Contour SGLD: every chain learns the weights theta of energy bins of its own, and moves freely up and down in energy.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        x <- x - eps psi g + sqrt(2 eps T) xi
        theta <- theta + h_k f (1{J} - theta),        f = Psi^zeta(U(x)), with log Psi linear between edges of bins
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. Weights use the theta of the draw's own time. One gradient per iteration.

    Use it across barriers of several T with a single chain; not with several chains, which learn faster together (`icsgld`), and
    not in many dimensions, where few bins hold all of the energies.

    Biased by O(eps psi) as `sgld` is by O(eps); by theta that moves while the chain mixes; and where energy noise times the slope
    of log theta is not small.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.csgld(0.1, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, Algorithm CSGLD of section 4.1. Its settings are `iso.thesis.csgld()`.

    Differs from the thesis: its f is theta(J)^zeta and its weight theta(J)^zeta, of a density that is constant on bins and not
    the one sampled; bounds, the rule for empty bins, psi = 1 in the top bin and the default gain are ours.
    """
    return contour_sampler("csgld", SGLD(), step_size, partition, False, options)


@contour_constructor
def csghmc(
    step_size: StepSize, *, partition: Any = "auto", friction: float = SGHMC.friction, **options: Unpack[ContourOptions]
) -> AnySampler:
    """Contour SGHMC: `csgld` with momentum.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        v <- (1 - alpha) v - eps psi g + sqrt(2 eps alpha T) xi,        x <- x + v
        theta <- theta + h_k f (1{J} - theta),        f = Psi^zeta(U(x)), with log Psi linear between edges of bins
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. One gradient per iteration.

    Use it in place of `csgld` where curvatures are unequal, and for networks; not with several chains: use `icsghmc`.

    Biased by O(eps psi) as `sghmc` is by O(eps); by theta that moves while the chain mixes; and where energy noise times the
    slope of log theta is not small.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.csghmc(0.01, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, section 4.1 (CSGHMC). Its settings are `iso.thesis.csgld()`.

    Differs from the thesis: as `csgld` does.
    """
    return contour_sampler("csghmc", SGHMC(friction), step_size, partition, False, options)


@contour_constructor
def icsgld(step_size: StepSize, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> AnySampler:
    """Interacting contour SGLD: all chains learn the weights theta of energy bins together, and move freely up and down in energy.

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

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.icsgld(0.1, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, Algorithm ICSGLD of section 4.2. Its settings are `iso.thesis.icsgld()`.

    Differs from the thesis: its f is theta(J), which runs away into the top bin once chains reach it, and its weight theta(J)^zeta;
    bounds, the rule for empty bins and the default gain are ours.
    """
    return contour_sampler("icsgld", SGLD(), step_size, partition, True, options)


@contour_constructor
def icsghmc(
    step_size: StepSize, *, partition: Any = "auto", friction: float = SGHMC.friction, **options: Unpack[ContourOptions]
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


@contour_constructor
def picsgld(
    step_size: StepSize,
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


@constructor()
def ksgld(
    step_size: StepSize,
    *,
    partition: Any,
    theta: Any,
    temperature: Schedule = 1.0,
    zeta: float = Contour.zeta,
    slopes: str = Contour.slopes,
    bounds: tuple[float, float] | None = Contour.bounds,
    box: Box = None,
) -> AnySampler:
    """CSGLD with known weights theta of the bins, which are not learned.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        x <- x - eps psi g + sqrt(2 eps T) xi
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. One gradient per iteration.

    Use it with theta of a long run of `icsgld` (`run.stats["theta"]`), or to study the ideal sampler; not with a guess: psi then
    pushes chains the wrong way, and weights become very unequal.

    Biased by O(eps psi) as `sgld` is by O(eps), and where energy noise times the slope of log theta is not small.

    Args:
        partition: the bins: (low, high, num_bins) in units of the energy, or a `contour.Partition`.
        theta: a positive number for every bin, up to a common factor; no unit.
        temperature: T, a number above 0 or a function of the iteration, in units of the energy.
        bounds: (low, high) of psi with 1 between them, or None for none; no unit.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.ksgld(0.1, partition=(0.5, 3.5, 5), theta=(0.4, 0.24, 0.14, 0.09, 0.13))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (1, 200)

    Reference:
        Deng 2021, section 4.1 (KSGLD).

    Differs from the thesis: as `csgld` does.
    """
    bins = as_partition(partition)
    if not isinstance(bins, Partition):
        refuse("partition", "explicit bins for a known `theta`", repr(partition), "Give (low, high, num_bins).")
    masses = check_start("theta", theta, bins.num_bins)
    coupling = Contour(bins, zeta, slopes=slopes, bounds=bounds, initial_theta=masses, is_frozen=True)
    own = {**defaults_of(WeightedOptions), "temperature": temperature, "box": box}
    return weighted_sampler("ksgld", SGLD(), step_size, coupling, own)


@constructor(WeightedOptions)
def awsgld(
    step_size: StepSize,
    *,
    partition: Any,
    max_displacement: float | None = None,
    zeta: float = 1.0,
    gain: Schedule = _AWSGLD_GAIN,
    initial_theta: Any = "flat",
    **options: Unpack[WeightedOptions],
) -> AnySampler:
    """Adaptively weighted SGLD: theta is a running sum over bins, so that gradients grow while energies are high.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        x <- x - eps psi g + sqrt(2 eps T) xi
        theta(i) <- theta(i) + h_k theta(J) (1{i >= J} - theta(i))

    psi has no bounds: its growth in high bins, the open top one too, is the speed-up. `max_displacement` bounds eps |psi g|
    instead. One gradient per iteration.

    Use it to find low energies on rugged landscapes, as `iso.minimize` does; not to sample: use `icsgld`.

    Biased by O(eps psi), where psi may be in the hundreds: weighted draws follow exp(-U / T) only at steps so small that eps times
    the largest psi stays small. Energy noise biases it as `csgld`.

    Args:
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. No default: the bins should end at the energies that chains should leave
            fast.
        max_displacement: the longest eps |psi g|, above 0, in units of the position; None has no limit, and chains may overflow.
        zeta: strength of the flattening, at least 0; no unit. 1 is the thesis' for functions; the fixed point of theta is then the
            CDF of the energy. The other contour samplers have a lower default.
        gain: h_k in (0, 1], a number or a function of the iteration k. The default, 100 / (k^0.75 + 1000), is the thesis' for
            functions: a search can forget early energies. No unit.
        initial_theta: theta at the start: "flat" (0.1 everywhere), "uniform" (a ramp), "decreasing", "pilot", or a rising positive
            number for every bin.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.awsgld(0.01, partition=(0.5, 5.0, 20), max_displacement=0.5)
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.ones(2))
        >>> bool(run.stats["best_energy"].min() < 0.5)
        True

    Reference:
        Deng 2021, Algorithm AWSGLD of section 4.3.

    Differs from the thesis: it has no limit on displacements, and some of its runs overflow.
    """
    fixed: ContourOptions = {"field": "cumulative", "bounds": None, "zeta": zeta, "gain": gain}
    own: ContourOptions = {**options, **fixed, "initial_theta": initial_theta}
    return contour_sampler("awsgld", limited(SGLD(), max_displacement), step_size, partition, False, own)
