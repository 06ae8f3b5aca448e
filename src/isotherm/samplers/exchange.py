"""Samplers of replicas that exchange rungs by corrected swaps, on energies of batches or with a control variate."""

import dataclasses
from typing import Literal, Unpack

from isotherm.estimators import ControlVariate, Plain
from isotherm.exchange import Corrected, Ladder
from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.schedules import CollectionWindow, CyclicalCosine, CyclicalTemperature, Schedule
from isotherm.kernels import SGHMC, SGLD
from isotherm.samplers.exchange_options import (
    ExchangeOptions,
    Steps,
    SwapOptions,
    Temperatures,
    as_temperatures,
    cyclical_exchange_constructor,
    exchange_constructor,
    exchange_sampler,
    ladder_of,
)
from isotherm.samplers.independent import largest
from isotherm.samplers.sampler import AnySampler, Specification

# The ratio of the thesis' small problems, and that of its networks: differences of energies grow with the number of parameters, and
# rungs must lie closer.
TEMPERATURES: Temperatures = (1.0, 10.0)
NETWORK_TEMPERATURES: Temperatures = (1.0, 5.0)
# The variance changes while networks train and while control variates age: its mean over the whole run would lag behind.
SMOOTHING = 0.3
# Iterations between two full passes: the thesis' mixture, and two epochs of its images (50,000 in batches of 256).
REFRESH_EVERY, NETWORK_REFRESH_EVERY = 40, 392


@exchange_constructor
def naive_resgld(
    step_size: Steps,
    *,
    temperatures: Temperatures = TEMPERATURES,
    num_replicas: int | None = None,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange SGLD without correction for energy noise.

        x_i <- x_i - eps_i g_i + sqrt(2 eps_i T_i) xi_i                 on every rung i
        swap i and j with probability min(1, exp{ (1/T_i - 1/T_j) (U_i - U_j) - c }),        T_i < T_j

    Draws are those of the replica on rung 0. Costs one gradient per rung and iteration; a swap exchanges two integers.

    Use it on exact energies with several modes, or as a baseline; not on batches: use `resgld`.

    Biased by O(eps) as `sgld` is, and under energy noise by swaps that accept too often: hot states enter the target rung.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.naive_resgld(0.1), num_steps=200, init=jnp.zeros(2))
        >>> run.draws.shape
        (2, 200, 2)

    Reference:
        Deng 2021, section 3.1, without its correction.
    """
    ladder = ladder_of(step_size, temperatures, num_replicas)
    return exchange_sampler("naive_resgld", SGLD(), Plain(), ladder, Corrected(None), options)


@exchange_constructor
def resgld(
    step_size: Steps,
    *,
    temperatures: Temperatures = TEMPERATURES,
    num_replicas: int | None = None,
    correction_factor: Schedule | None = Corrected.correction_factor,
    measure_every: int = Corrected.measure_every,
    num_measured: int = Corrected.num_measured,
    energy_batch: str = Plain.energy_batch,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange SGLD with swaps that are correct on average under noisy energies.

        x_i <- x_i - eps_i g_i + sqrt(2 eps_i T_i) xi_i                 on every rung i
        swap i and j with probability min(1, exp{ d (U_i - U_j) - d^2 Var(U_i - U_j) / (2 F) - c }),        d = 1/T_i - 1/T_j

    for T_i < T_j. The variance is that of the two positions, from the examples of their mini-batch (`variance="batch"`); where the
    potential has none it is the mean of all measurements, and no pair swaps before the first. Draws are those of the replica on
    rung 0. Costs one gradient per rung and iteration.

    Use it for several modes whose masses matter; not where noise prevents swaps (check with `iso.advise`): use `vr_resgld`. One
    ladder in many dimensions needs many rungs: try `ladder="auto"`.

    Biased by O(eps) as `sgld` is; by F above 1, which swaps more often and lets hot states in; and by noise that is not Gaussian.

    Args:
        temperatures: ... `resghmc`, made for networks, has a smaller ratio.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.resgld(0.1, temperatures=(1.0, 3.0, 10.0))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.zeros(2))
        >>> run.stats["swap_rate"].shape
        (2, 2)

    Reference:
        Deng 2021, Algorithm of section 3.1 (adaptive reSGLD).
    """
    # `exchange_sampler` sets `variance` and `gate_log_correction` from `options`.
    rule = Corrected(correction_factor, measure_every, num_measured)
    ladder = ladder_of(step_size, temperatures, num_replicas)
    return exchange_sampler("resgld", SGLD(), Plain(energy_batch), ladder, rule, options)


@exchange_constructor
def resghmc(
    step_size: Steps,
    *,
    temperatures: Temperatures = NETWORK_TEMPERATURES,
    num_replicas: int | None = None,
    friction: float = SGHMC.friction,
    correction_factor: Schedule | None = Corrected.correction_factor,
    measure_every: int = Corrected.measure_every,
    num_measured: int = Corrected.num_measured,
    smoothing: float | None = SMOOTHING,
    jump: float | None = Corrected.jump,
    energy_batch: str = Plain.energy_batch,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange SGHMC with corrected swaps: `resgld` with momentum, made for networks.

        v_i <- (1 - alpha) v_i - eps_i g_i + sqrt(2 eps_i alpha T_i) xi_i
        x_i <- x_i + v_i                                                on every rung i
        swap i and j with probability min(1, exp{ d (U_i - U_j) - d^2 Var(U_i - U_j) / (2 F) - c }),        d = 1/T_i - 1/T_j

    for T_i < T_j. A replica that changes rungs has its velocity scaled by sqrt(eps' T' / (eps T)). Draws are those of the replica
    on rung 0. Costs one gradient per rung and iteration, and the measurements.

    Use it for ensembles of networks, and where curvatures are unequal; not where noise prevents swaps: use `vr_resghmc`.

    Biased by O(eps) as `sghmc` is; by F above 1, which swaps more often and lets hot states in; by `jump`; and by noise that is not
    Gaussian.

    Args:
        temperatures: ... The ratio is half of `resgld`'s: differences of energies grow with the number of parameters.
        smoothing: ... `resgld` takes the mean, which lags behind while networks train and the variance changes.
        jump: a factor above 0 on F after every accepted swap, such as 0.8; None keeps F constant.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.resghmc(0.01), num_steps=200, init=jnp.zeros(2))
        >>> run.draws.shape
        (2, 200, 2)

    Reference:
        Deng 2021, sections 3.1 and 3.4.2.

    Differs from the thesis: velocities move with their replica and are scaled; its code leaves them with the rung. It measures the
    variance of each energy on batches of its own, where this measures that of the difference on common batches.
    """
    rule = Corrected(correction_factor, measure_every, num_measured, smoothing, jump)
    ladder = ladder_of(step_size, temperatures, num_replicas)
    return exchange_sampler("resghmc", SGHMC(friction), Plain(energy_batch), ladder, rule, options)


@exchange_constructor
def vr_resgld(
    step_size: Steps,
    *,
    temperatures: Temperatures = TEMPERATURES,
    num_replicas: int | None = None,
    refresh_every: int = REFRESH_EVERY,
    is_adaptive: bool = ControlVariate.is_adaptive,
    correction_factor: Schedule | None = Corrected.correction_factor,
    num_measured: int = Corrected.num_measured,
    smoothing: float | None = SMOOTHING,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange SGLD whose swaps read energies with a control variate.

        x_i <- x_i - eps_i g_i + sqrt(2 eps_i T_i) xi_i                 on every rung i
        U_i = U~(x_i) + C_i (U~(a_i) - U(a_i)),        a_i <- x_i every m iterations
        swap i and j with probability min(1, exp{ d (U_i - U_j) - d^2 Var(U_i - U_j) / (2 F) - c }),        d = 1/T_i - 1/T_j

    for T_i < T_j, where U~ is the energy of a batch and U that of all data. The gradient stays that of the batch. Variances are
    those of the two positions, as in `resgld`; a tracked one is measured just before the anchor a is renewed. Costs a second
    forward pass per rung and iteration, and a full pass over the data every m iterations.

    Use it where minibatch noise prevents the swaps of `resgld`; not without batches, where it is refused, and not where energies
    at a do not correlate with those at x up to m iterations later.

    Biased as `resgld` is: by O(eps), by F above 1, and by noise that is not Gaussian.

    Args:
        temperatures: ... `vr_resghmc`, made for networks, has a smaller ratio.
        refresh_every: ... `vr_resghmc` has a longer one: a full pass over the data of a network is expensive.
        is_adaptive: ... `vr_resghmc`, whose anchors grow old, adapts it.
        smoothing: ... The variance depends on the distance from the anchor, and changes along the run.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> potential = iso.from_likelihood(lambda m, y: -(y - m) ** 2 / 2, None, jnp.arange(10.0), batch_size=5)
        >>> run = iso.sample(potential, iso.vr_resgld(0.01), num_steps=200, init=jnp.array(4.0))
        >>> run.draws.shape
        (2, 200)

    Reference:
        Deng 2021, Algorithms VR-reSGLD and adaptive VR-reSGLD of section 3.2.

    Differs from the thesis: it inserts Var where Var / 2 belongs, and measures Var and C when x = a, where Var is 0 and C is -1.
    """
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    ladder = ladder_of(step_size, temperatures, num_replicas)
    return exchange_sampler("vr_resgld", SGLD(), ControlVariate(refresh_every, is_adaptive), ladder, rule, options)


@exchange_constructor
def vr_resghmc(
    step_size: Steps,
    *,
    temperatures: Temperatures = NETWORK_TEMPERATURES,
    num_replicas: int | None = None,
    friction: float = SGHMC.friction,
    refresh_every: int = NETWORK_REFRESH_EVERY,
    is_adaptive: bool = True,
    correction_factor: Schedule | None = Corrected.correction_factor,
    num_measured: int = Corrected.num_measured,
    smoothing: float | None = SMOOTHING,
    **options: Unpack[ExchangeOptions],
) -> AnySampler:
    """Replica exchange SGHMC whose swaps read energies with a control variate: `vr_resgld` with momentum, made for networks.

        v_i <- (1 - alpha) v_i - eps_i g_i + sqrt(2 eps_i alpha T_i) xi_i
        x_i <- x_i + v_i                                                on every rung i
        U_i = U~(x_i) + C_i (U~(a_i) - U(a_i)),        a_i <- x_i every m iterations
        swap i and j with probability min(1, exp{ d (U_i - U_j) - d^2 Var(U_i - U_j) / (2 F) - c }),        d = 1/T_i - 1/T_j

    for T_i < T_j; see `vr_resgld`. Costs a second forward pass per rung and iteration, and a full pass every m iterations.

    Use it for ensembles of networks where minibatch noise prevents the swaps of `resghmc`; not without batches, where it is
    refused.

    Biased as `resghmc` is: by O(eps), by F above 1, and by noise that is not Gaussian.

    Args:
        temperatures: ... The ratio is half of `vr_resgld`'s: differences of energies grow with the number of parameters.
        refresh_every: ... 392 is two epochs of 50,000 examples in batches of 256, as in the thesis; give two epochs of your own.
            `vr_resgld`, for small data, renews more often.
        is_adaptive: ... Anchors that are epochs old correlate less with x, and -1 would overcorrect.
        smoothing: ... The mean would lag behind while networks train and the variance changes.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.vr_resghmc(2e-6, temperatures=(0.01, 0.05), refresh_every=2 * 196)  # 196 batches are an epoch
        >>> sampler.coupling.rule.measure_every, sampler.estimator.refresh_every
        (392, 392)

    Reference:
        Deng 2021, sections 3.2 and 3.4.2.

    Differs from the thesis: as `vr_resgld` does.
    """
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    ladder = ladder_of(step_size, temperatures, num_replicas)
    estimator = ControlVariate(refresh_every, is_adaptive)
    return exchange_sampler("vr_resghmc", SGHMC(friction), estimator, ladder, rule, options)


@cyclical_exchange_constructor
def cvr_resghmc(
    step_size: float | Literal["auto"],
    *,
    cycle_length: int,
    temperatures: Temperatures = NETWORK_TEMPERATURES,
    step_ratio: float = 1.5,
    sampling_from: float = 0.7,
    hold_from: float = CyclicalCosine.hold_from,
    floor: float = CyclicalCosine.floor,
    friction: float = SGHMC.friction,
    refresh_every: int = NETWORK_REFRESH_EVERY,
    is_adaptive: bool = True,
    correction_factor: Schedule | None = Corrected.correction_factor,
    num_measured: int = Corrected.num_measured,
    smoothing: float | None = SMOOTHING,
    **options: Unpack[SwapOptions],
) -> AnySampler:
    """`vr_resghmc` in cycles: every cycle descends with cosine step sizes and no noise, then samples and swaps.

        beta = (k mod L) / L
        eps_k = floor + (eps - floor) / 2 (cos(pi min(beta, hold_from)) + 1),        eps_{k,i} = r^i eps_k on rung i
        T_{k,i} = T_i from the fraction `sampling_from` of a cycle on, else 0, where nothing swaps

    and the moves, energies and swaps of `vr_resghmc`. Draws are collected where T is on.

    Use it for ensembles of networks with more modes than `vr_resghmc` finds; not for masses of modes: use `vr_resghmc`.

    Biased: the masses of modes are those of the cycles, not of exp(-U / T). Within a mode as `vr_resghmc` is, and by sampling
    stages too short to forget the descent.

    Args:
        step_size: eps, the step size of rung 0 at the start of a cycle, a number above 0, in units of position^2 / energy.
        temperatures: T of the rungs in the sampling stage, rising, the target's first; in units of the energy.
        step_ratio: r above 0, the step size of a rung over that of the rung below; no unit.
        sampling_from: ... As in `cycsghmc`.

    Example:
        >>> import isotherm as iso
        >>> sampler = iso.cvr_resghmc(2e-6, cycle_length=100, temperatures=(0.01, 0.05), floor=2e-7)
        >>> [float(sampler.temperature(k)) for k in (0, 69, 70, 99, 100)]
        [0.0, 0.0, 0.01, 0.01, 0.0]

    Reference:
        Deng 2021, section 3.2 (cVR-reSGHMC).

    Differs from the thesis: its code divides T by 1e10 where this has no noise; otherwise as `vr_resgld` does.
    """
    temperatures = as_temperatures(temperatures)
    first = largest(step_size)
    ratio = check_real("step_ratio", step_ratio, "Give the ratio of neighbors, such as 1.5.", above=0.0)
    steps = tuple(first * ratio**rung for rung in range(len(temperatures)))
    rule = Corrected(correction_factor, refresh_every, num_measured, smoothing)
    estimator = ControlVariate(refresh_every, is_adaptive)
    ladder = Ladder(steps, temperatures)
    sampler = exchange_sampler("cvr_resghmc", SGHMC(friction), estimator, ladder, rule, options)
    if isinstance(sampler, Specification):
        remedy = "A pilot runs at one temperature: give `temperatures`."
        refuse("ladder", "None for a sampler with cycles", repr(options.get("ladder")), remedy)
    return dataclasses.replace(
        sampler,
        step_size=CyclicalCosine(first, cycle_length, hold_from, floor),
        temperature=CyclicalTemperature(temperatures[0], cycle_length, sampling_from),
        window=CollectionWindow(cycle_length, sampling_from),
    )
