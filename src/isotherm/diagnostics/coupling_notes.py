"""What is wrong with a ladder or a contour, in words, and what to do about it."""

from collections.abc import Iterator

import jax
import numpy as np
import scipy

from isotherm.contour.contour import DEFAULT_BOUNDS
from isotherm.run.columns import columns
from isotherm.run.described import is_a, reads_whole_energy
from isotherm.run.energies import MAX_WEIGHT_ERROR
from isotherm.run.run_estimates import RunEstimates

# A range of multipliers below this flattens nothing.
_LEAST_RANGE = 1e-3
# Nats by which noise may raise the probability of a swap on average, and by how much it may differ from place to place.
MAX_SWAP_BIAS, MAX_UNEVEN = 0.1, 0.1
# Batches of an epoch, below which the noise of one swap is remembered by the next, and the nats of noise that matter then.
MIN_BATCHES, MAX_REMEMBERED = 20, 0.1
# The variance of a swap's exponent over the examples it is estimated from.
MAX_NOISE_PER_EXAMPLE = 0.25
# Exponents above which a factor is not worth its digits.
_LARGE_EXCESS = 14.0
# The product of noise and the slope of log weights, where nobody knows what it leaves wrong.
MAX_BLUR = 0.3
# Expected swaps of a pair in a window, if its gate stayed open.
_MOST_SWAPS_IN_WINDOW = 0.5
# Swaps that a pair would have accepted while it rests.
_MAX_SWAPS_WHILE_RESTING = 0.02
# Steps of hot rungs may forget this share of a well, and replicas may differ by this R-hat.
_LONGEST_HOT_STEP, _MOST_STIFF = 0.6, 0.03
# Coordinates of large positions that are watched.
_MOST_WATCHED = 64
# Replicas may explain this share of the variance between their tours, with this probability by chance; and tours that tell.
MAX_SHARE_OF_REPLICAS, BY_CHANCE, MIN_TOURS, MIN_TOURS_PER_REPLICA = 0.3, 1e-5, 10, 2
# Logarithms of weights may move by this share of their spread while draws are taken, or so many errors of that. A factor of two on
# the eighth of the draws that comes first matters to no average.
_MOST_MOVED, _SURE, _FACTOR_OF_TWO = 0.5, 5.0, 0.7
# Of the draws, in the open first bin.
_MOST_BELOW = 0.9


def notes_on_exchange(run: RunEstimates) -> list[str]:
    """What is wrong with a ladder, in words; nothing for samplers without one."""
    stats = run.stats
    if "num_swaps" not in stats:
        return []
    notes = []
    idle = np.flatnonzero(np.sum(_rows(stats["num_swaps"]), axis=0) == 0).tolist()
    if idle:
        remedy = "bring their temperatures closer with more replicas"
        if not run.config.get("is_exact"):
            remedy += (
                ", reduce the energy noise, or raise `correction_factor`; `iso.advise` shows which of them would help"
            )
        notes.append(f"Pairs {idle} (counted from the target) never swapped: {remedy}.")
    if np.sum(stats["round_trips"]) == 0:
        notes.append(
            "No replica made a round trip from the target to the hottest rung and back: the hot rungs help nobody yet."
        )
    return notes + _notes_on_swaps(run) + _notes_on_hot_rungs(run)


def _times(excess: float) -> str:
    """A factor of exp(excess) in words."""
    return f"{np.exp(excess):.3g}" if excess < _LARGE_EXCESS else "more than a million"


def _less_noise(run: RunEstimates) -> str:
    """What else lowers the noise of energies; shared batches and control variates where there are none yet."""
    sampler = run.config["sampler"]
    is_shared = run.described_potential.get("is_batch_shared")
    batches = (
        "larger batches (`batch_size`)" if is_shared else "larger batches that replicas share (`is_batch_shared=True`)"
    )
    if is_a(sampler["estimator"], "ControlVariate"):
        return f", or use {batches}"
    control = f", or control variates (`iso.vr_{'resghmc' if is_a(sampler['kernel'], 'SGHMC') else 'resgld'}`)"
    return f", or use {batches}{control}"


def _notes_on_swaps(run: RunEstimates) -> list[str]:
    """Whether swaps let too much through."""
    coupling = run.config["sampler"]["coupling"]
    rule, scheme = coupling.get("rule", {}), coupling.get("scheme", {})
    if not is_a(rule, "Corrected"):
        return []
    notes = []
    factor = rule["correction_factor"]
    left = 1.0 if factor is None else 1.0 - 1.0 / factor if isinstance(factor, float) else 0.0
    temperatures = np.asarray(run.stats["temperature_ratios"]) * (run.config.get("temperature") or 1.0)
    spans = 1.0 / temperatures[..., :-1] - 1.0 / temperatures[..., 1:]
    variances = np.asarray(run.stats["variance_of_difference"])
    if variances.shape == spans.shape and left > 0 and not run.config.get("is_exact"):
        excess = float(np.nanmax(np.where(np.isfinite(variances), 0.5 * left * spans**2 * variances, 0.0)))
        if excess > MAX_SWAP_BIAS:
            notes.append(
                f"Noise on the energies makes swaps up to {_times(excess)} times as likely as they should be, and lets hot states "
                f"into the target. Use `correction_factor=1`{_less_noise(run)}."
            )
    uneven = np.asarray(run.stats["spread_of_variance"])
    reads_noise = run.config.get("reads_noise", False)
    if uneven.shape == spans.shape and factor is not None and not run.config.get("is_exact") and not reads_noise:
        excess = float(np.nanmax(np.where(np.isfinite(uneven), 0.5 * spans**2 * uneven, 0.0)))
        if excess > MAX_UNEVEN:
            better = 'Use `variance="batch"`, bring' if rule.get("variance") == "tracked" else "Bring"
            notes.append(
                "The noise of energies depends on where replicas are, so that one correction for all makes some swaps "
                f"{_times(excess)} times too likely and others too rare. {better} the temperatures closer{_less_noise(run)}."
            )
    noise = np.where(np.isfinite(variances), 0.5 * spans**2 * variances, 0.0)
    size = run.described_potential.get("batch_size")
    if reads_noise and size and 2.0 * np.max(noise) > size * MAX_NOISE_PER_EXAMPLE and factor == 1.0:
        notes.append(
            f"The noise of swaps is too large for batches of {size}, from which its variance is estimated: hot states reach the "
            f"target. Bring the temperatures closer{_less_noise(run)}."
        )
    notes += _notes_on_epochs(run, noise)
    if coupling.get("ignores_prior"):
        notes.append(
            "Swaps read the loss without the prior, while rungs temper both: the draws follow another distribution. Leave out "
            "`coupling_includes_prior=False` and `ignores_prior=True`."
        )
    window, cooling = scheme.get("window", 1), coupling.get("cooling", 0)
    acceptance = float(np.max(run.stats["acceptance"]))
    if cooling * acceptance > _MAX_SWAPS_WHILE_RESTING:
        notes.append(
            f"A pair rests for {cooling} iterations after each swap, and accepts {acceptance:.2g} of its trials: hot states stay "
            "on the target while it rests, and spreads are too wide. Leave out `cooling`."
        )
    has_gate = isinstance(window, int) and window > 1 and not rule.get("gate_log_correction")
    if has_gate and window * acceptance > _MOST_SWAPS_IN_WINDOW:
        notes.append(
            f"In a window of {window} a pair that accepts {acceptance:.2g} of its trials nearly always swaps, whatever its "
            "energies: the target is biased towards hot states. Lower `window`, until it times that rate is well below 1."
        )
    return notes


def _notes_on_epochs(run: RunEstimates, noise: np.ndarray) -> list[str]:
    """Whether epochs have so few batches that the noise of one swap is taken back by the next."""
    potential = run.described_potential
    size, number = potential.get("batch_size"), run.config.get("num_examples")
    if potential.get("batching") != "epochs" or not size or not number or run.config.get("is_exact"):
        return []
    batches = -(-number // size)
    if not 1 < batches < MIN_BATCHES or np.max(noise) < MAX_REMEMBERED:
        return []
    return [
        f"An epoch has {batches} batches, whose noise cancels, so that a swap undoes what the last one let through: the spread of "
        'draws may be off by about 5 %. Use `batching="independent"`, or smaller batches.'
    ]


def _notes_on_hot_rungs(run: RunEstimates) -> list[str]:
    """Whether hot rungs sample their distribution, and whether what they do is carried down."""
    notes = []
    ratio = float(np.max(run.stats["step_size_ratios"]))
    if run.bias is not None and ratio > 1.0:
        rates = run.bias.rates
        share = float(np.mean(rates * ratio > _LONGEST_HOT_STEP))
        if share > _MOST_STIFF and np.mean(rates > _LONGEST_HOT_STEP) < share:
            notes.append(
                f"The largest step of the ladder, {ratio * run.bias.step_size:.2g}, is too long for the wells around {share:.0%} "
                "of the draws: hot rungs miss them, and swaps bring that down to the target. Lower the step sizes of hot rungs."
            )
    return notes + _notes_on_tours(run)


def _notes_on_tours(run: RunEstimates) -> list[str]:
    """Whether replicas remember, when they come back to the target, what they brought there before they went up the ladder.

    A tour is what a replica brings to the target between two visits of the hottest rung. Where that forgets, all tours are alike,
    and which replica made them says nothing of their means.
    """
    trips = np.sum(np.asarray(run.stats["round_trips"]).reshape(-1, np.shape(run.stats["round_trips"])[-1]), axis=1)
    if np.sum(trips) == 0:
        return []
    replicas = np.shape(run.stats["round_trips"])[-1]
    if np.any(trips < max(MIN_TOURS, MIN_TOURS_PER_REPLICA * replicas)):
        return [
            f"A ladder of {replicas} replicas made only {int(np.min(trips))} round trips: too few to tell whether its hottest rung "
            "forgets. Run longer."
        ]
    shares = [_share_of_replicas(*ladder) for ladder in _ladders(run)]
    worst = max(shares, default=0.0)
    if worst == 0.0:
        return []
    return [
        f"Replicas make round trips, and yet each brings its own part of space to the target ({worst:.0%} of the variance between "
        "tours): the hottest rung does not move them about. Masses of modes are those of the starts. Raise the temperature or the "
        "step size of the hottest rung, or run longer."
    ]


def _ladders(run: RunEstimates) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Of every ladder, the rungs of its replicas (draw, P) and numbers that are watched at the target, (draw, K)."""
    rung = np.asarray(run.observed["rung"])
    lead = rung.ndim - 1
    size = sum(int(np.prod(leaf.shape[lead:])) for leaf in jax.tree.leaves(run.draws))
    chosen = np.unique(np.linspace(0, size - 1, min(size, _MOST_WATCHED)).astype(int))
    values = np.concatenate([columns(run.draws, lead, chosen), np.asarray(run.energies)[..., None]], axis=-1)
    flat = (rung.reshape(-1, *rung.shape[-2:]), values.reshape(-1, *values.shape[-2:]))
    yield from zip(*flat, strict=True)


def _share_of_replicas(rung: np.ndarray, values: np.ndarray) -> float:
    """The share of the variance between tours that replicas explain, of the number where it is largest; 0 where it is no more
    than chance allows.
    """
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
    # Of so many groups chance alone explains this much.
    expected = (kinds - 1) / (number - 1)
    is_sure = (chance < BY_CHANCE) & (share - expected > MAX_SHARE_OF_REPLICAS)
    return float(np.max(np.where(is_sure, share, 0.0)))


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1])


def _share_below(run: RunEstimates) -> float:
    """The share of the draws below the first edge, where energies are those that the contour read."""
    coupling = run.config["sampler"]["coupling"]
    low = coupling["partition"].get("low")
    if not isinstance(low, float) or not reads_whole_energy(run.config):
        return 0.0
    return float(np.mean(np.asarray(run.energies) - coupling["offset"] <= low))


def _notes_on_settling(run: RunEstimates) -> list[str]:
    """Whether weights at the start of the draws are of another theta than later ones."""
    if is_a(run.config["sampler"]["coupling"]["field"], "Cumulative"):
        # A running sum settles for as long as lower energies are found, which its weights allow for.
        return []
    weights = np.asarray(run.log_weights)
    weights = weights.reshape(-1, weights.shape[-1])
    number = weights.shape[1]
    if len(weights) < 2 or number < 16 or not np.all(np.isfinite(weights)):
        return []
    moved = weights[:, number // 2 :].mean(axis=1) - weights[:, : number // 8].mean(axis=1)
    spread, error = float(weights[:, number // 2 :].std()), float(moved.std(ddof=1)) / np.sqrt(len(moved))
    if abs(moved.mean()) < max(_MOST_MOVED * spread, _SURE * error, _FACTOR_OF_TWO):
        return []
    return [
        "Weights at the start of the draws are of another theta than later ones: it had not settled. Leave out more of the start "
        "with `burn_in`, or run longer."
    ]


def notes_on_contours(run: RunEstimates) -> list[str]:
    """What is wrong with a contour sampler, in words; nothing for other samplers."""
    stats = run.stats
    if "theta" not in stats:
        return []
    notes = []
    lowest, highest = float(np.min(stats["lowest_multiplier"])), float(np.max(stats["highest_multiplier"]))
    if highest - lowest < _LEAST_RANGE:
        notes.append(
            f"The multiplier stayed between {lowest:.6g} and {highest:.6g}: nothing was flattened, and this is the plain sampler. "
            'Theta has hardly moved (raise `gain`, or lower `zeta` with the field "theta^zeta"), or all energies fell into an open '
            "bin (move the partition to where they are)."
        )
    bounded, top = (float(np.mean(stats[name])) / run.num_steps for name in ("num_bounded", "num_top"))
    bounds = run.config["sampler"]["coupling"]["bounds"] or DEFAULT_BOUNDS
    # Between the default bounds a chain is as stable as a plain one, and weights undo what was done.
    is_bold = bounds[0] < DEFAULT_BOUNDS[0] or bounds[1] > DEFAULT_BOUNDS[1]
    if bounded > 0.05 and is_bold:
        notes.append(
            f"The multiplier sat at its bound in {bounded:.0%} of the iterations: widen the bins or lower `zeta`, or raise the "
            "first edge if energies never come below it."
        )
    if top > 0.2:
        notes.append(
            f"{top:.0%} of the energies fell into the open top bin, which is not flattened: raise the partition."
        )
    below = _share_below(run)
    if below > _MOST_BELOW:
        notes.append(
            f"{below:.0%} of the draws lie in the open first bin, which is not flattened: lower the first edge, or let "
            '`partition="auto"` find it from a start among typical energies.'
        )
    notes += _notes_on_settling(run)
    theta, field = np.asarray(stats["theta"]), run.config["sampler"]["coupling"]["field"]
    # A cumulative theta ends at 1.
    if is_a(field, "Theta") and not is_a(field, "Cumulative") and np.max(theta[..., -1]) > 0.9:
        notes.append(
            'Theta has run away into the top bin, where psi is 1 and nothing pushes it back: the field "theta" has no fixed point '
            'here. Raise the partition above all energies, or use the field "psi".'
        )
    left, noisy = run.config.get("weight_error"), float(np.max(stats.get("noise_times_slope", 0.0)))
    if left is not None and left > MAX_WEIGHT_ERROR:
        notes.append(
            f"Noise on the energies makes weights wrong by a factor of up to {np.exp(left):.3g}, beyond what is known of it and "
            "taken off: use larger batches, a control variate, wider bins, or a smaller `zeta`."
        )
    if left is None and noisy > MAX_BLUR and not run.config.get("is_exact"):
        notes.append(
            f"Energy noise times the slope of the weights is {noisy:.2g}, so that weights are biased: use larger batches, a "
            "control variate, wider bins, or a smaller `zeta`."
        )
    return notes
