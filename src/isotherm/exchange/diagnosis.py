"""Checks on a ladder: whether pairs swap at the right rate, and whether the hottest rung mixes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import jax
import numpy as np
import scipy

from isotherm.exchange.rules import Corrected
from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.positions import columns

if TYPE_CHECKING:
    from isotherm.exchange.exchange import Exchange

# Noise of swaps in nats, below which epochs of few batches do no harm.
_MIN_EPOCH_NOISE = 0.1
# Log of the largest factor that is printed in digits.
_MAX_EXPONENT = 14.0
# The smallest share of draws in stiff wells that is reported.
_MIN_STIFF_SHARE = 0.03
# Coordinates of large positions that are compared between tours.
_MAX_COORDINATES = 64
# The p-value at which tours differ, and the tours per replica that the test needs.
_P_VALUE, _TOURS_PER_REPLICA = 1e-5, 2


def diagnose(exchange: "Exchange", run: RunView) -> list[Check]:
    """The checks on a ladder; see `Coupling.diagnose`."""
    if "num_swaps" not in run.stats:
        return []
    swaps = _swaps(exchange, exchange.rule, run) if isinstance(exchange.rule, Corrected) else ()
    return [*_pairs(run), *swaps, *_hot_steps(run), *_tours(run)]


def _pairs(run: RunView) -> Iterator[Check]:
    swaps = np.asarray(run.stats["num_swaps"])
    idle = np.flatnonzero(np.sum(swaps.reshape(-1, swaps.shape[-1]), axis=0) == 0).tolist()
    if idle:
        remedy = "Bring their temperatures closer with more replicas"
        if not run.config.get("is_exact"):
            remedy += (
                ", reduce the energy noise, or raise `correction_factor`; `iso.advise` compares these for your ladder"
            )
        text = f"Pairs {idle} (counted from the target) never swapped."
        yield checks.IDLE_PAIRS.found(text, f"{remedy}.", num_pairs=len(idle))
    if np.sum(run.stats["round_trips"]) == 0:
        yield checks.NO_ROUND_TRIPS.found(
            "No replica completed a round trip from the target to the hottest rung and back.",
            "Until one does, the hot rungs do not help: run longer, or bring the temperatures closer.",
        )


def _swaps(exchange: "Exchange", rule: Corrected, run: RunView) -> Iterator[Check]:
    """Whether energy noise, an ignored prior, rests or windows bias swaps."""
    factor, is_exact = rule.correction_factor, run.config.get("is_exact")
    uncorrected = 1.0 if factor is None else 0.0 if callable(factor) else 1.0 - 1.0 / float(factor)
    temperatures = np.asarray(run.stats["temperature_ratios"]) * (run.config.get("temperature") or 1.0)
    half_squares = 0.5 * (1.0 / temperatures[..., :-1] - 1.0 / temperatures[..., 1:]) ** 2
    variances = np.asarray(run.stats["variance_of_difference"])
    noise = np.where(np.isfinite(variances), half_squares * variances, 0.0)
    largest = float(np.max(noise))
    if variances.shape == half_squares.shape and not is_exact and uncorrected * largest > checks.SWAP_NOISE.limit:
        excess = uncorrected * largest
        yield checks.SWAP_NOISE.found(
            f"Energy noise makes swaps up to {_times(excess)} times too likely, so that hot states reach the target.",
            f"Use `correction_factor=1`{_or_less_noise(run)}.",
            excess=excess,
        )
    uneven = np.asarray(run.stats["spread_of_variance"])
    reads_noise = run.config.get("reads_noise", False)
    if uneven.shape == half_squares.shape and factor is not None and not is_exact and not reads_noise:
        excess = float(np.nanmax(np.where(np.isfinite(uneven), half_squares * uneven, 0.0)))
        if excess > checks.UNEVEN_NOISE.limit:
            better = 'Use `variance="batch"`, bring' if rule.variance == "tracked" else "Bring"
            yield checks.UNEVEN_NOISE.found(
                "Energy noise depends on the positions of the replicas: with one correction for all positions, some swaps are "
                f"{_times(excess)} times too likely and others too rare.",
                f"{better} the temperatures closer{_or_less_noise(run)}.",
                excess=excess,
            )
    size = run.config.get("batch_size")
    if reads_noise and size and 2.0 * largest > size * checks.SWAP_BATCH.limit and factor == 1.0:
        yield checks.SWAP_BATCH.found(
            f"Swap noise is too large for an estimate of its variance from batches of {size}: hot states reach the target.",
            f"Bring the temperatures closer{_or_less_noise(run)}.",
            noise_per_example=2.0 * largest / size,
        )
    yield from _epochs(run, largest)
    if exchange.ignores_prior and not run.config.get("reads_whole_energy", True):
        yield checks.IGNORED_PRIOR.found(
            "Swaps read the loss without the prior, while rungs temper both: the draws follow another distribution.",
            "Leave out `coupling_includes_prior=False` and `ignores_prior=True`.",
        )
    yield from _gates(exchange, rule, float(np.max(run.stats["acceptance"])))


def _epochs(run: RunView, noise: float) -> Iterator[Check]:
    """Whether epochs have so few batches that one swap reverses the error of the last."""
    size, number = run.config.get("batch_size"), run.config.get("num_examples")
    if run.config.get("batching") != "epochs" or not size or not number or run.config.get("is_exact"):
        return
    batches = -(-number // size)
    if 1 < batches < checks.SHORT_EPOCHS.limit and noise >= _MIN_EPOCH_NOISE:
        yield checks.SHORT_EPOCHS.found(
            f"An epoch has only {batches} batches, whose noise is anticorrelated: a swap reverses the error of the last one, and "
            "the spread of the draws may be off by about 5 %.",
            'Use `batching="independent"`, or smaller batches.',
            num_batches=batches,
        )


def _gates(exchange: "Exchange", rule: Corrected, acceptance: float) -> Iterator[Check]:
    """Whether rests and windows, which bias the target, are too long for the acceptance rate."""
    if exchange.cooling * acceptance > checks.COOLING.limit:
        yield checks.COOLING.found(
            f"A pair rests for {exchange.cooling} iterations after each swap and accepts {acceptance:.2g} of its trials: hot "
            "states stay on the target during rests, and spreads are too wide.",
            "Leave out `cooling`.",
            swaps_per_rest=exchange.cooling * acceptance,
        )
    window = getattr(exchange.scheme, "window", 1)
    has_gate = isinstance(window, int) and window > 1 and not rule.gate_log_correction
    if has_gate and window * acceptance > checks.GATE.limit:
        yield checks.GATE.found(
            f"A pair that accepts {acceptance:.2g} of its trials nearly always swaps within a window of {window}, whatever its "
            "energies: the target is biased towards hot states.",
            "Lower `window`, until the window times that rate is well below 1.",
            swaps_per_window=window * acceptance,
        )


def _hot_steps(run: RunView) -> Iterator[Check]:
    """Whether the steps of hot rungs are too large for the wells of the target."""
    ratio, limit = float(np.max(run.stats["step_size_ratios"])), checks.HOT_STEP.limit
    if run.bias is None or ratio <= 1.0:
        return
    rates = run.bias.rates
    share = float(np.mean(rates * ratio > limit))
    if share > _MIN_STIFF_SHARE and np.mean(rates > limit) < share:
        yield checks.HOT_STEP.found(
            f"The largest step size of the ladder, {ratio * run.bias.step_size:.2g}, is too large for the wells around {share:.0%} "
            "of the draws: hot rungs miss these wells, and swaps carry that bias down to the target.",
            "Lower the step sizes of hot rungs.",
            share=share,
        )


def _tours(run: RunView) -> Iterator[Check]:
    """Whether the hottest rung mixes: then the means of tours do not depend on the replica.

    A tour is the part of a replica's path on the target between two visits of the hottest rung.
    """
    trips = np.asarray(run.stats["round_trips"])
    replicas = trips.shape[-1]
    trips = np.sum(trips.reshape(-1, replicas), axis=1)
    if np.sum(trips) == 0:
        return
    if np.any(trips < max(checks.FEW_TOURS.limit, _TOURS_PER_REPLICA * replicas)):
        yield checks.FEW_TOURS.found(
            f"A ladder of {replicas} replicas made only {int(np.min(trips))} round trips: too few to tell whether its hottest rung "
            "mixes.",
            "Run longer.",
            round_trips=np.min(trips),
        )
        return
    worst = max((_share_of_replicas(*ladder) for ladder in _ladders(run)), default=0.0)
    if worst > 0.0:
        yield checks.STUCK_REPLICAS.found(
            f"Replicas make round trips, but each returns to its own region ({worst:.0%} of the variance between tours): the "
            "hottest rung does not mix, and mode masses are those of the starts.",
            "Raise the temperature or the step size of the hottest rung, or run longer.",
            share=worst,
        )


def _ladders(run: RunView) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For every ladder, the rungs of its replicas (draw, P), and coordinates and energies at the target (draw, K)."""
    rung = np.asarray(run.observed["rung"])
    lead = rung.ndim - 1
    size = sum(int(np.prod(leaf.shape[lead:])) for leaf in jax.tree.leaves(run.draws))
    chosen = np.unique(np.linspace(0, size - 1, min(size, _MAX_COORDINATES)).astype(int))
    values = np.concatenate([columns(run.draws, lead, chosen), np.asarray(run.energies)[..., None]], axis=-1)
    yield from zip(rung.reshape(-1, *rung.shape[-2:]), values.reshape(-1, *values.shape[-2:]), strict=True)


def _share_of_replicas(rung: np.ndarray, values: np.ndarray) -> float:
    """The share of the variance between tours that replicas explain, for the worst coordinate; 0 if it is not significant."""
    replica, hottest = np.argmin(rung, axis=-1), rung.shape[-1] - 1
    tour = np.cumsum(rung == hottest, axis=0)[np.arange(len(rung)), replica]
    _, places, counts = np.unique(replica * (tour.max() + 1) + tour, return_inverse=True, return_counts=True)
    means = np.stack([np.bincount(places, column) for column in values.T.astype(np.float64)], axis=1) / counts[:, None]
    owners = np.bincount(places, replica) / counts
    names, groups, sizes = np.unique(np.round(owners).astype(int), return_inverse=True, return_counts=True)
    number, kinds = len(means), len(names)
    if kinds < 2 or number - kinds < kinds or not np.all(np.isfinite(means)):
        return 0.0
    of_group = np.stack([np.bincount(groups, column) for column in means.T], axis=1) / sizes[:, None]
    within = np.sum((means - of_group[groups]) ** 2, axis=0)
    total = np.sum((means - means.mean(axis=0)) ** 2, axis=0)
    # A coordinate that never moved has no variance to share.
    share = np.where(total > 1e-12 * np.sum(means**2, axis=0), 1.0 - within / np.maximum(total, 1e-300), 0.0)
    ratio = share / (kinds - 1) / np.maximum((1.0 - share) / (number - kinds), 1e-300)
    chance = scipy.special.fdtrc(kinds - 1, number - kinds, ratio) * len(share)
    # The share that this many groups explain by chance.
    expected = (kinds - 1) / (number - 1)
    is_sure = (chance < _P_VALUE) & (share - expected > checks.STUCK_REPLICAS.limit)
    return float(np.max(np.where(is_sure, share, 0.0)))


def _times(excess: float) -> str:
    """The factor exp(excess)."""
    return f"{np.exp(excess):.3g}" if excess < _MAX_EXPONENT else "more than a million"


def _or_less_noise(run: RunView) -> str:
    """Ways to lower the energy noise that the run does not use yet."""
    batches = "larger batches (`batch_size`)"
    if not run.config.get("is_batch_shared"):
        batches = "larger batches that replicas share (`is_batch_shared=True`)"
    control_variates = ", or control variates (`iso.vr_resgld`, `iso.vr_resghmc`)"
    return f", or use {batches}{'' if run.config.get('reduces_variance') else control_variates}"
