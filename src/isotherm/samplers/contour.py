"""Contour samplers whose chains learn, or know, weights of energy bins of their own."""

from typing import Any, Unpack

from isotherm.contour.contour import Contour
from isotherm.contour.partition import Partition, as_partition
from isotherm.contour.start import as_theta, check_initial_theta
from isotherm.foundation.errors import refuse
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import SGHMC, SGLD, limited
from isotherm.samplers.constructor import Box, constructor
from isotherm.samplers.contour_options import (
    CONTOUR,
    WEIGHTED,
    WEIGHTED_DEFAULTS,
    ContourOptions,
    WeightedOptions,
    contour_sampler,
    weighted_sampler,
)
from isotherm.samplers.sampler import AnySampler

_AWSGLD_GAIN = PolynomialGain(100.0, 0.75, 1000.0)


@constructor(*CONTOUR)
def csgld(step_size: Schedule, *, partition: Any = "auto", **options: Unpack[ContourOptions]) -> AnySampler:
    """Contour SGLD: every chain learns the weights theta of energy bins of its own, and walks freely up and down in energy.

        psi = 1 + zeta T (log theta(J) - log theta(J - 1)) / width,        J the bin of U(x)
        x <- x - eps psi g + sqrt(2 eps T) xi
        theta <- theta + h_k f (1{J} - theta),        f = Psi^zeta(U(x)), with log Psi linear between edges of bins
        log W = integral of (psi - 1) / T du up to U(x), the weight of the draw

    psi stays in `bounds` and is 1 in the open bins. Weights use the theta of the draw's own time. One gradient per iteration.

    Use it across barriers of several T with a single chain; not with several chains, which learn faster together (`icsgld`), and
    not in many dimensions, where few bins hold all of the energies.

    Biased by O(eps psi) as `sgld` is by O(eps); by theta that moves while the chain mixes; and where energy noise times the slope
    of log theta is not small.

    Args:
        step_size: eps, a number above 0 or a function of the iteration that suits `sgld`, in units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. `low` must lie above the lowest energy.
        **options: see `ContourOptions`.

    Returns:
        A `Sampler` for `iso.sample`.

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


@constructor(*CONTOUR)
def csghmc(
    step_size: Schedule,
    *,
    partition: Any = "auto",
    friction: float = SGHMC.friction,
    **options: Unpack[ContourOptions],
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
        >>> sampler = iso.csghmc(0.01, partition=(0.5, 5.0, 20))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, num_chains=4, init=jnp.zeros(2))
        >>> run.log_weights.shape
        (4, 200)

    Reference:
        Deng 2021, section 4.1 (CSGHMC). Its settings are `iso.thesis.csgld()`.

    Differs from the thesis: as `csgld` does.
    """
    return contour_sampler("csghmc", SGHMC(friction), step_size, partition, False, options)


@constructor()
def ksgld(
    step_size: Schedule,
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
    pushes chains the wrong way, and weights grow unequal.

    Biased by O(eps psi) as `sgld` is by O(eps), and where energy noise times the slope of log theta is not small.

    Args:
        step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, or a `contour.Partition`.
        theta: a positive number for every bin, up to a common factor; no unit.
        temperature: T, a number above 0 or a function of the iteration, in units of the energy.
        zeta: how far to flatten, at least 0: 0 is the plain sampler, 1 gives a flat energy histogram; no unit.
        slopes: "backward" takes the slope of log theta from the bin below, "forward" from the bin above.
        bounds: (low, high) of psi with 1 between them, or None for none; no unit.
        box: (low, high), numbers or arrays that broadcast against the position; moves out of it are rejected.

    Returns:
        A `Sampler` for `iso.sample`.

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
    bins, masses = as_partition(partition), as_theta("theta", theta)
    if not isinstance(bins, Partition):
        refuse("partition", "given for known masses", repr(partition), "Give (low, high, num_bins).")
    check_initial_theta(masses, bins.num_bins, "theta")
    coupling = Contour(bins, zeta, slopes=slopes, bounds=bounds, initial_theta=masses, is_frozen=True)
    own = {**WEIGHTED_DEFAULTS, "temperature": temperature, "box": box}
    return weighted_sampler("ksgld", SGLD(), step_size, coupling, own)


@constructor(WEIGHTED)
def awsgld(
    step_size: Schedule,
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
        step_size: eps, a number above 0 or a function of the iteration, in units of position^2 / energy.
        partition: the bins: (low, high, num_bins) in units of the energy, a `contour.Partition`, a `contour.PartitionSearch`, or
            "auto" for a pilot that finds them. Unlike for `csgld` there is no default: the bins should end at the energies to be
            left fast.
        max_displacement: the longest eps |psi g|, above 0, in units of the position; None has no limit, and chains may overflow.
        zeta: how far to flatten, at least 0; no unit. 1 is the thesis' for functions; the fixed point of theta is then the CDF of
            the energy. Contour samplers have less.
        gain: h_k in (0, 1], a number or a function of the iteration k. The default, 100 / (k^0.75 + 1000), is the thesis' for
            functions: a search need not remember. No unit.
        initial_theta: theta at the start: "flat" (0.1 everywhere), "uniform" (a ramp), "decreasing", "pilot", or a rising positive
            number for every bin.
        **options: see `WeightedOptions`.

    Returns:
        A `Sampler` for `iso.sample`.

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
