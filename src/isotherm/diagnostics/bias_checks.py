"""Checks on a measured bias: which means and spreads are off, and the step size that would mend them."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.checks import Check, Kind
from isotherm.run.bias import Bias, contradicted, error_of, significant
from isotherm.run.estimates import normalized_weights

# Shares that matter: of draws in stiff wells, of moves that a box rejects, of draws beside a jump.
_MIN_STIFF_SHARE, _MIN_REJECTED, _MIN_JUMPS = 0.03, 0.02, 0.01
# The bias of a variance at the advised step, and the largest cut of a step that heats the whole position: far from the right step,
# heat is not proportional to the step.
_GOAL, _MAX_CUT = 0.02, 0.1


class Named(NamedTuple):
    """What the messages about a bias need beside it.

    Attributes:
        coordinates: names of the coordinates of the bias.
        leaves: names of the leaves of the position.
        rejected: the share of moves that a box rejected.
        has_batches: whether batches could be larger.
        are_particles: whether chains are particles that repel one another.
    """

    coordinates: list[str]
    leaves: list[str]
    rejected: float = 0.0
    has_batches: bool = True
    are_particles: bool = False


class _Finding(NamedTuple):
    """A check in which `{step}` stands for the step size that all of them advise."""

    kind: Kind
    message: str
    remedy: str
    numbers: dict[str, float]
    step_size: float = np.inf


def contradicts(bias: Bias) -> bool:
    """Whether gradients at the draws contradict the distribution, beyond a measurable bias."""
    return bool(
        np.any(hot_leaves(bias)[0])
        or (bias.is_measured and contradicted(bias.heats) is not None)
        or _has_other_gradient(bias)
    )


def bias_checks(bias: Bias, named: Named) -> list[Check]:
    """The mean and the spread that are off by most, if any is off by more than its error. All checks advise one step size."""
    found = list(_findings(bias, named))
    step = f"{min((one.step_size for one in found), default=np.inf):.1g}"
    return [one.kind.found(one.message, one.remedy.replace("{step}", step), **one.numbers) for one in found]


def advised_step(bias: Bias | None) -> float | None:
    """A step size with little bias; None where the bias is little now, or unknown."""
    if bias is None:
        return None
    moved, widened, is_moved, is_wide = _reportable(bias)
    return _advised(bias.step_size, widened, moved) if np.any(is_moved | is_wide) else None


def hot_leaves(bias: Bias) -> tuple[np.ndarray, np.ndarray]:
    """Whether the whole position, and then every leaf, is too hot, and whether its heat is significant at all."""
    heats, is_whole = bias.leaf_heats[0], np.arange(bias.leaf_heats.shape[1]) == 0
    limits = np.where(is_whole, significant(1), significant(len(heats)))
    error = error_of(bias.leaf_heats)
    is_sure = np.abs(heats) > limits * error
    least = np.where(is_whole & (bias.draws is None), checks.HOT_DRAWS.limit, checks.BIASED_SPREAD.limit)
    return is_sure & (heats - error > least), is_sure


def _findings(bias: Bias, named: Named) -> Iterator[_Finding]:
    weights = normalized_weights(bias.log_weights)
    batches = ", or use larger batches" * (named.has_batches and not bias.is_exact)
    if bias.is_measured:
        worst = contradicted(bias.heats)
        if worst is not None:
            yield _wrong_heat(named.coordinates[worst], float(bias.heats[0, worst]), named.are_particles)
            yield from _jumps(bias, weights)
            return
    found = [*_leaves(bias, named.leaves, batches), *_coordinates(bias, named.coordinates, batches)]
    yield from found or _stiff_wells(bias, weights)
    if named.rejected > _MIN_REJECTED and bias.drift > checks.WALLS.limit:
        yield _Finding(
            checks.WALLS,
            f"Gradients push chains against the box, which rejects {named.rejected:.0%} of the moves: draws stay too far from the "
            "wall.",
            "Lower `step_size` to about {step}.",
            {"drift": bias.drift, "rejected": named.rejected},
            bias.step_size * 0.1 * checks.WALLS.limit / bias.drift,
        )
    yield from _jumps(bias, weights)


def _coordinates(bias: Bias, names: list[str], batches: str) -> Iterator[_Finding]:
    """The spread and the mean that are off by most."""
    moved, widened, is_moved, is_wide = _reportable(bias)
    why = "Gradients at the draws make" if bias.is_measured else "The step size makes"
    remedy, advised = "Lower `step_size` to about {step}" + batches + ".", _advised(bias.step_size, widened, moved)
    if np.any(is_wide):
        worst = int(np.argmax(np.where(is_wide, np.abs(widened), 0.0)))
        text = f"{why} the spread of {names[worst]} {_in_words(widened[worst])}."
        yield _Finding(checks.BIASED_SPREAD, text, remedy, {"variance": widened[worst]}, advised)
    if np.any(is_moved):
        worst = int(np.argmax(np.where(is_moved, np.abs(moved), 0.0)))
        text = f"{why} the mean of {names[worst]} off by about {moved[worst]:+.2g} standard deviations."
        yield _Finding(checks.BIASED_MEAN, text, remedy, {"mean": moved[worst]}, advised)


def _reportable(bias: Bias) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Biases of means in standard deviations, of variances relative to themselves, and which of each are reported."""
    moved, moved_error, widened, widened_error = bias.relative()
    limit = significant(2 * len(moved))
    is_moved = (np.abs(moved) > limit * moved_error) & (np.abs(moved) > checks.BIASED_MEAN.limit)
    is_wide = (np.abs(widened) > limit * widened_error) & (np.abs(widened) > checks.BIASED_SPREAD.limit)
    return moved, widened, is_moved, is_wide


def _wrong_heat(name: str, excess: float, are_particles: bool) -> _Finding:
    remedy = "Lower `step_size`, until a step is short beside the narrowest well."
    if excess < 0 and are_particles:
        remedy = (
            "Particles have collapsed, as they do in many dimensions: pass more (`num_chains`), or use another sampler."
        )
    elif excess < 0:
        remedy = "Chains did not mix while draws were taken, or a contour moved faster than they: run longer, or take longer steps."
    text = (
        f"In {name} gradients at the draws are those of {1.0 + excess:.2g} times the temperature: the draws are biased."
    )
    return _Finding(checks.WRONG_HEAT, text, remedy, {"excess": excess})


def _leaves(bias: Bias, names: list[str], batches: str) -> Iterator[_Finding]:
    """Whether the position as a whole, or one of its leaves, is hotter or colder than it should be."""
    heats = bias.leaf_heats[0]
    is_hot, is_sure = hot_leaves(bias)
    text = (
        f"Over all {bias.leaf_sizes[0]:,} numbers of the position gradients at the draws are those of {1.0 + heats[0]:.2f} times "
        "the temperature"
    )
    if np.any(is_hot):
        excess = 0.5 * heats * bias.leaf_sizes
        worst = 1 + int(np.argmax(np.where(is_hot, excess, -np.inf)[1:])) if np.any(is_hot[1:]) else 0
        if worst > 0 and len(names) > 1:
            text += f", and in `{names[worst - 1]}` of {1.0 + heats[worst]:.2f} times"
        # Where the whole is hot, it says more of the step than a leaf.
        main = 0 if is_hot[0] else worst
        goal = bias.step_size * np.clip(_GOAL / heats[main], _MAX_CUT, 1.0)
        text += f": energies, and losses and scales with them, are too high, by about {excess[main]:.2g} temperatures."
        remedy = "Lower `step_size` to about {step}" + f"{batches}, and run again."
        yield _Finding(checks.HOT_DRAWS, text, remedy, {"heat": heats[main]}, float(goal))
    elif bias.draws is None and is_sure[0] and heats[0] < -checks.COLD_DRAWS.limit:
        text += ": the draws lie closer together than the distribution, and are still in their burn-in, or in that of a cycle."
        remedy = "Run longer, lengthen the burn-in (`burn_in`), or sample for a larger part of each cycle."
        yield _Finding(checks.COLD_DRAWS, text, remedy, {"heat": heats[0]})


def _stiff_wells(bias: Bias, weights: np.ndarray) -> Iterator[_Finding]:
    """Whether the step is too long for the wells around some of the draws, though it may suit the others."""
    is_stiff = bias.rates > checks.STIFF_WELLS.limit
    share = float(np.sum(weights[is_stiff]))
    if share >= _MIN_STIFF_SHARE:
        typical = float(np.median(bias.rates[is_stiff]))
        text = (
            f"Around {share:.0%} of the draws the energy curves so much that a step crosses {typical:.0%} of a well: spreads "
            "there, and the weight of such wells, are off."
        )
        step = bias.step_size * 0.05 / typical
        yield _Finding(
            checks.STIFF_WELLS, text, "Lower `step_size` to about {step}.", {"share": share, "rate": typical}, step
        )


def _hides_jumps(bias: Bias, weights: np.ndarray) -> bool:
    """Whether jumps cannot be told. With steps too long for the wells any energy seems to jump; large ones have too much "
    "rounding.
    """
    return bool(np.sum(weights * bias.rates) > checks.STIFF_WELLS.limit) or bias.draws is None


def _has_other_gradient(bias: Bias) -> bool:
    """Whether the gradient is not that of the energy."""
    is_off = bias.unexplained > checks.OTHER_GRADIENT.limit
    return is_off and not _hides_jumps(bias, normalized_weights(bias.log_weights))


def _jumps(bias: Bias, weights: np.ndarray) -> Iterator[_Finding]:
    if _hides_jumps(bias, weights):
        return
    if _has_other_gradient(bias):
        text = (
            f"Changes of the energy around the draws differ by about {bias.unexplained:.0%} from what its gradient says: draws "
            "follow neither."
        )
        remedy = "Look for `stop_gradient`, rounding, or a custom derivative in the energy."
        yield _Finding(checks.OTHER_GRADIENT, text, remedy, {"difference": bias.unexplained})
        return
    is_jump = (np.abs(bias.jumps) > checks.JUMPS.limit) & (bias.rates < checks.STIFF_WELLS.limit)
    share = float(np.sum(weights[is_jump]))
    if share >= _MIN_JUMPS:
        text = (
            f"Around {share:.0%} of the draws the energy changes by more than its gradient says: it has jumps, walls or steps, "
            "which gradient samplers do not see."
        )
        yield _Finding(checks.JUMPS, text, "Smooth them, or use `box` for walls.", {"share": share})


def _advised(step_size: float, widened: np.ndarray, moved: np.ndarray) -> float:
    worst = max(np.max(np.abs(widened)), np.max(np.abs(moved)), 1e-30)
    return step_size * min(1.0, _GOAL / worst)


def _in_words(widened: float) -> str:
    """The spread that belongs to a relative bias of the variance."""
    if widened > 0.5:
        return "far too wide"
    spread = 1.0 / np.sqrt(1.0 - widened) - 1.0
    return f"about {abs(spread):.0%} too {'wide' if spread > 0 else 'narrow'}"
