"""Samplers of replicas that exchange rungs by corrected swaps, on the energies of batches."""

from typing import Unpack

from isotherm.estimators import Plain
from isotherm.exchange import Corrected
from isotherm.foundation.schedules import Schedule
from isotherm.kernels import SGHMC, SGLD
from isotherm.samplers.constructor import constructor
from isotherm.samplers.exchange_options import (
    EXCHANGE,
    NETWORK_TEMPERATURES,
    SMOOTHING,
    TEMPERATURES,
    ExchangeOptions,
    Steps,
    Temperatures,
    exchange_sampler,
    ladder_of,
)
from isotherm.samplers.sampler import AnySampler


@constructor(*EXCHANGE)
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

    Args:
        step_size: eps, one number above 0 for all rungs or a tuple with one for each, in units of position^2 / energy.
        temperatures: T of the rungs, rising, the target's first; with `num_replicas` the two ends. In units of the energy.
        num_replicas: P, the rungs of a geometric ladder between two ends of `temperatures` and `step_size`; None takes both as
            given.
        **options: see `ExchangeOptions`.

    Returns:
        A `Sampler` for `iso.sample`, which runs two independent ladders unless `num_ladders` says otherwise.

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


@constructor(*EXCHANGE)
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
    """Replica exchange SGLD with swaps that stay right on average under noisy energies.

        x_i <- x_i - eps_i g_i + sqrt(2 eps_i T_i) xi_i                 on every rung i
        swap i and j with probability min(1, exp{ d (U_i - U_j) - d^2 Var(U_i - U_j) / (2 F) - c }),        d = 1/T_i - 1/T_j

    for T_i < T_j. The variance is that of the two positions, from the examples of their mini-batch (`variance="batch"`); where the
    potential has none it is the mean of all measurements, and no pair swaps before the first. Draws are those of the replica on
    rung 0. Costs one gradient per rung and iteration.

    Use it for several modes whose masses matter; not where noise forbids swaps (`iso.advise` says so): use `vr_resgld`. One ladder
    in many dimensions needs many rungs: try `ladder="auto"`.

    Biased by O(eps) as `sgld` is; by F above 1, which swaps more often and lets hot states in; and by noise that is not Gaussian.

    Args:
        step_size: eps, one number above 0 for all rungs or a tuple with one for each, in units of position^2 / energy.
        temperatures: T of the rungs, rising, the target's first; with `num_replicas` the two ends. In units of the energy.
            `resghmc`, made for networks, has rungs that lie closer.
        num_replicas: P, the rungs of a geometric ladder between two ends of `temperatures` and `step_size`; None takes both as
            given.
        correction_factor: F, a number above 0 or a function of the iteration; None and infinity switch the correction off. No unit.
        measure_every: iterations between two measurements of a variance that is tracked.
        num_measured: batches in such a measurement, at least 2.
        energy_batch: "shared" reads the energy of a swap from the gradient's batch; "fresh" from a batch of its own, for one more
            forward pass, without the O(eps) bias of sharing.
        **options: see `ExchangeOptions`.

    Returns:
        A `Sampler` for `iso.sample`, which runs two independent ladders unless `num_ladders` says otherwise.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> sampler = iso.resgld(0.1, temperatures=(1.0, 3.0, 10.0))
        >>> run = iso.sample(lambda x: x @ x / 2, sampler, num_steps=200, init=jnp.zeros(2))
        >>> run.stats["swap_rate"].shape
        (2, 2)

    Reference:
        Deng 2021, Algorithm of section 3.1 (adaptive reSGLD).
    """
    rule = Corrected(correction_factor, measure_every, num_measured)
    ladder = ladder_of(step_size, temperatures, num_replicas)
    return exchange_sampler("resgld", SGLD(), Plain(energy_batch), ladder, rule, options)


@constructor(*EXCHANGE)
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

    Use it for ensembles of networks, and where curvatures are unequal; not where noise forbids swaps: use `vr_resghmc`.

    Biased by O(eps) as `sghmc` is; by F above 1, which swaps more often and lets hot states in; by `jump`; and by noise that is not
    Gaussian.

    Args:
        step_size: eps, one number above 0 for all rungs or a tuple with one for each, in units of position^2 / energy.
        temperatures: T of the rungs, rising, the target's first; with `num_replicas` the two ends. In units of the energy. The
            ratio is half of `resgld`'s: differences of energies grow with the number of parameters.
        num_replicas: P, the rungs of a geometric ladder between two ends of `temperatures` and `step_size`; None takes both as
            given.
        friction: alpha in (0, 1], one minus the momentum coefficient; no unit.
        correction_factor: F, a number above 0 or a function of the iteration; None and infinity switch the correction off. No unit.
        measure_every: iterations between two measurements of a variance that is tracked.
        num_measured: batches in such a measurement, at least 2.
        smoothing: the weight of a new measurement, in (0, 1]; None is the mean of all, as in `resgld`. While networks train the
            variance changes, and the mean of all would lag behind.
        jump: a factor above 0 on F after every accepted swap, such as 0.8; None leaves F alone.
        energy_batch: "shared" reads the energy of a swap from the gradient's batch; "fresh" from a batch of its own, for one more
            forward pass, without the O(eps) bias of sharing.
        **options: see `ExchangeOptions`.

    Returns:
        A `Sampler` for `iso.sample`, which runs two independent ladders unless `num_ladders` says otherwise.

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
