"""What is wrong with a ladder or a contour, in words, and what to do about it."""

import jax
import numpy as np

from isotherm.contour.contour import DEFAULT_BOUNDS
from isotherm.runs.run_estimates import RunEstimates

# A range of multipliers below this flattens nothing.
_LEAST_RANGE = 1e-3
# Nats by which noise may raise the probability of a swap on average, and by how much it may differ from place to place.
_MOST_SWAP_BIAS, _MOST_UNEVEN = 0.1, 0.5
# Exponents above which a factor is not worth its digits.
_LARGE_EXCESS = 14.0
# Noise of energies times the slope of log weights.
_MOST_BLUR = 1.5
# Expected swaps of a pair in a window, if its gate stayed open.
_MOST_SWAPS_IN_WINDOW = 0.5
# Swaps that a pair would have accepted while it rests.
_MAX_SWAPS_WHILE_RESTING = 0.02
# Steps of hot rungs may forget this share of a well, and replicas may differ by this R-hat.
_LONGEST_HOT_STEP, _MOST_STIFF, _LARGEST_R_HAT = 0.6, 0.03, 1.2
_MOST_LOOKS, _ROUND_TRIPS = 2_000, 20
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
    name = run.name or ""
    is_shared = run.described_potential.get("is_batch_shared")
    batches = (
        "larger batches (`batch_size`)" if is_shared else "larger batches that replicas share (`is_batch_shared=True`)"
    )
    control = "" if "vr_" in name else f", or control variates (`iso.vr_{'resghmc' if 'hmc' in name else 'resgld'}`)"
    return f", or use {batches}{control}"


def _notes_on_swaps(run: RunEstimates) -> list[str]:
    """Whether swaps let too much through."""
    coupling = run.config["sampler"]["coupling"]
    rule, scheme = coupling.get("rule", {}), coupling.get("scheme", {})
    if rule.get("class") != "Corrected":
        return []
    notes = []
    factor = rule["correction_factor"]
    left = 1.0 if factor is None else 1.0 - 1.0 / factor if isinstance(factor, float) else 0.0
    temperatures = np.asarray(run.stats["temperature_ratios"]) * (run.config.get("temperature") or 1.0)
    spans = 1.0 / temperatures[..., :-1] - 1.0 / temperatures[..., 1:]
    variances = np.asarray(run.stats["variance_of_difference"])
    if variances.shape == spans.shape and left > 0 and not run.config.get("is_exact"):
        excess = float(np.nanmax(np.where(np.isfinite(variances), 0.5 * left * spans**2 * variances, 0.0)))
        if excess > _MOST_SWAP_BIAS:
            notes.append(
                f"Noise on the energies makes swaps up to {_times(excess)} times as likely as they should be, and lets hot states "
                f"into the target. Use `correction_factor=1`{_less_noise(run)}."
            )
    uneven = np.asarray(run.stats["spread_of_variance"])
    if uneven.shape == spans.shape and factor is not None and not run.config.get("is_exact"):
        excess = float(np.nanmax(np.where(np.isfinite(uneven), 0.5 * spans**2 * uneven, 0.0)))
        if excess > _MOST_UNEVEN:
            notes.append(
                "The noise of energies depends on where replicas are, so that one correction for all makes some swaps "
                f"{_times(excess)} times too likely and others too rare. Bring the temperatures closer{_less_noise(run)}."
            )
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
    if np.sum(run.stats["round_trips"]) >= _ROUND_TRIPS and _replicas_differ(run):
        notes.append(
            "Replicas make round trips, and yet each brings its own part of space to the target: the hottest rung does not move "
            "them about. Raise its temperature or its step size, or give it noise."
        )
    return notes


def _replicas_differ(run: RunEstimates) -> bool:
    """Whether the draws of a ladder's target depend on which replica was there."""
    rung = np.asarray(run.observed["rung"])
    places = np.unique(np.linspace(0, run.num_draws - 1, min(_MOST_LOOKS, run.num_draws)).astype(int))
    replica = np.argmin(rung[..., places, :], axis=-1)
    lead = replica.shape
    leaves = [np.asarray(leaf[(*(slice(None),) * (len(lead) - 1), places)]) for leaf in jax.tree.leaves(run.draws)]
    values = np.concatenate([leaf.reshape(*lead, -1) for leaf in leaves], axis=-1).astype(np.float64)
    values, replica = values.reshape(-1, lead[-1], values.shape[-1]), replica.reshape(-1, lead[-1])
    for of_ladder, numbers in zip(values, replica, strict=True):
        groups = [of_ladder[numbers == one] for one in np.unique(numbers)]
        groups = [group for group in groups if len(group) >= len(numbers) / (4 * len(groups))]
        within = sum(len(group) * np.var(group, axis=0) for group in groups)
        total = np.var(np.concatenate(groups), axis=0) * sum(len(group) for group in groups)
        if len(groups) < 2 or not np.any(total > _LARGEST_R_HAT**2 * np.maximum(within, 1e-30)):
            return False
    return True


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1])


def _share_below(run: RunEstimates) -> float:
    """The share of the draws below the first edge, where energies are those that the contour read."""
    coupling, potential = run.config["sampler"]["coupling"], run.config["potential"]
    low = coupling["partition"].get("low")
    if not isinstance(low, float) or not potential.get("coupling_includes_prior", True):
        return 0.0
    return float(np.mean(np.asarray(run.energies) - coupling["offset"] <= low))


def _notes_on_settling(run: RunEstimates) -> list[str]:
    """Whether weights at the start of the draws are of another theta than later ones."""
    if run.config["sampler"]["coupling"]["field"]["class"] == "Cumulative":
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
    theta = np.asarray(stats["theta"])
    if run.config["sampler"]["coupling"]["field"]["class"] == "Theta" and np.max(theta[..., -1]) > 0.9:
        notes.append(
            'Theta has run away into the top bin, where psi is 1 and nothing pushes it back: the field "theta" has no fixed point '
            'here. Raise the partition above all energies, or use the field "psi".'
        )
    noisy = float(np.max(stats.get("noise_times_slope", 0.0)))
    if noisy > _MOST_BLUR and not run.config.get("is_exact"):
        notes.append(
            f"Energy noise times the slope of the weights is {noisy:.2g}, so that weights are biased: use larger batches, a "
            "control variate, wider bins, or a smaller `zeta`."
        )
    return notes
