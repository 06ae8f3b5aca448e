"""Checks on the bias of a run, with the step size that would remove it."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.positions import coordinate_name, shapes_of
from isotherm.run.bias import Bias, contradicted, error_of, significant
from isotherm.run.estimates import normalized_weights
from isotherm.run.run import Run

# Least shares that are reported: of draws in stiff wells, of moves that meet a box, of draws beside a jump.
_MIN_STIFF_SHARE, _MIN_REJECTED, _MIN_JUMPS = 0.03, 0.02, 0.01
# The relative bias of a variance at the advised step, and the largest cut of a step because of heat, which is proportional to the
# step only near the right one.
_GOAL, _MAX_CUT = 0.02, 0.1
# The smallest step size that these checks advise.
_REMEDY = "Lower `step_size` to about {step}"


def contradicts(bias: Bias) -> bool:
    """Whether gradients at the draws contradict the distribution more than a bias can express."""
    is_off = bias.is_measured and contradicted(bias.heats) is not None
    return bool(is_off or np.any(_hot_leaves(bias)[0]) or _has_other_gradient(bias))


def advised_step(bias: Bias | None) -> float | None:
    """A step size with little bias; None if the bias is small already, or unknown."""
    if bias is None:
        return None
    moved, widened, is_moved, is_wide = _reportable(bias)
    return _advised(bias.step_size, widened, moved) if np.any(is_moved | is_wide) else None


def bias_checks(run: Run) -> list[Check]:
    """Checks of the largest biases of means and spreads, heat and jumps; or why they cannot be measured."""
    if run.is_adjusted:
        return []
    if run.bias is not None:
        found = list(_findings(run, run.bias))
        step = f"{min((step for _, step in found), default=np.inf):.1g}"
        return [dataclasses.replace(check, remedy=check.remedy.replace("{step}", step)) for check, _ in found]
    is_collected = run.config.get("collect") not in (None, "identity") and not run.config.get("is_constrained")
    if not run.config.get("temperature") or not (is_collected or run.config.get("is_streamed")):
        return []
    text = (
        "The bias of the step size and of mini-batches is not measured for data that stream from a large file, or for draws "
        "that are not positions (`collect`)."
    )
    return [checks.UNMEASURED_BIAS.found(text, "Compare with a run at half the step size.")]


def _findings(run: Run, bias: Bias) -> Iterator[tuple[Check, float]]:
    """Checks, each with the step size that it advises, infinity for none."""
    weights, shapes = normalized_weights(bias.log_weights), shapes_of(run.draws, run.log_weights.ndim)
    names = [f"`{coordinate_name(shapes, place)}`" for place in bias.coordinates]
    worst = contradicted(bias.heats) if bias.is_measured else None
    if worst is not None:
        yield _wrong_heat(names[worst], float(bias.heats[0, worst]), run.are_particles), np.inf
        yield from _jumps(bias, weights)
        return
    has_batches = run.config.get("batch_size") is not None and not bias.is_exact
    remedy = _REMEDY + ", or use larger batches" * has_batches
    yield from [*_leaves(bias, list(shapes), remedy), *_coordinates(bias, names, remedy)] or _stiff_wells(bias, weights)
    rejected = float(np.mean(run.stats.get("num_rejected", 0.0))) / run.num_steps
    if rejected > _MIN_REJECTED and bias.drift > checks.WALLS.limit:
        text = f"Gradients push chains against the box, which rejects {rejected:.0%} of the proposals: draws stay too far from it."
        step = bias.step_size * 0.1 * checks.WALLS.limit / bias.drift
        yield checks.WALLS.found(text, f"{_REMEDY}.", drift=bias.drift, rejected=rejected), step
    yield from _reflections(run, bias)
    yield from _jumps(bias, weights)


def _reflections(run: Run, bias: Bias) -> Iterator[tuple[Check, float]]:
    """Whether walls that reflect hold draws off: each acts as if it lay half a step of the drift further inside."""
    share = float(np.mean(run.stats.get("num_reflected", 0.0))) / run.num_steps
    if share > _MIN_REJECTED and bias.drift > checks.REFLECTING_WALLS.limit:
        text = f"Gradients push chains against the box, which reflects {share:.0%} of the proposals: draws stay too far from it."
        step = bias.step_size * 2.0 * _GOAL / bias.drift
        yield checks.REFLECTING_WALLS.found(text, f"{_REMEDY}.", drift=bias.drift, reflected=share), step


def _wrong_heat(name: str, excess: float, are_particles: bool) -> Check:
    text = f"The draws are biased in {name}: gradients at them correspond to {1.0 + excess:.2g} times the temperature."
    remedy = "Lower `step_size`, until steps are short beside the narrowest well."
    if excess < 0 and are_particles:
        remedy = "Particles collapse in many dimensions: pass more (`num_chains`), or use another sampler."
    elif excess < 0:
        remedy = "Chains did not mix, or the contour adapted faster than they move: run longer, or take longer steps."
    return checks.WRONG_HEAT.found(text, remedy, excess=excess)


def _leaves(bias: Bias, names: list[str], remedy: str) -> Iterator[tuple[Check, float]]:
    """Whether the whole position or a leaf is too hot, or the position too cold."""
    heats = bias.leaf_heats[0]
    is_hot, is_sure = _hot_leaves(bias)
    text = (
        f"Over all {bias.leaf_sizes[0]:,} numbers of the position, gradients at the draws correspond to {1.0 + heats[0]:.2f} "
        "times the temperature"
    )
    if np.any(is_hot):
        excess = 0.5 * heats * bias.leaf_sizes
        worst = 1 + int(np.argmax(np.where(is_hot, excess, -np.inf)[1:])) if np.any(is_hot[1:]) else 0
        if worst > 0 and len(names) > 1:
            text += f", and in `{names[worst - 1]}` to {1.0 + heats[worst]:.2f} times"
        # The heat of the whole position is more precise than that of a leaf.
        main = 0 if is_hot[0] else worst
        step = float(bias.step_size * np.clip(_GOAL / heats[main], _MAX_CUT, 1.0))
        text += f": energies, losses and scales are too high, by about {excess[main]:.2g} temperatures."
        yield checks.HOT_DRAWS.found(text, f"{remedy}, and run again.", heat=heats[main]), step
    elif bias.draws is None and is_sure[0] and heats[0] < -checks.COLD_DRAWS.limit:
        text += ": the draws are narrower than the distribution, because they are still in the burn-in of the run or of a cycle."
        remedy = "Run longer, lengthen the burn-in (`burn_in`), or sample for a larger part of each cycle."
        yield checks.COLD_DRAWS.found(text, remedy, heat=heats[0]), np.inf


def _hot_leaves(bias: Bias) -> tuple[np.ndarray, np.ndarray]:
    """Whether the whole position and every leaf are too hot, and whether their heat is significant."""
    heats, is_whole = bias.leaf_heats[0], np.arange(bias.leaf_heats.shape[1]) == 0
    limits = np.where(is_whole, significant(1), significant(len(heats)))
    error = error_of(bias.leaf_heats)
    is_sure = np.abs(heats) > limits * error
    least = np.where(is_whole & (bias.draws is None), checks.HOT_DRAWS.limit, checks.BIASED_SPREAD.limit)
    return is_sure & (heats - error > least), is_sure


def _coordinates(bias: Bias, names: list[str], remedy: str) -> Iterator[tuple[Check, float]]:
    moved, widened, is_moved, is_wide = _reportable(bias)
    why = "Gradients at the draws make" if bias.is_measured else "The step size makes"
    step = _advised(bias.step_size, widened, moved)
    if np.any(is_wide):
        worst = int(np.argmax(np.where(is_wide, np.abs(widened), 0.0)))
        text = f"{why} the spread of {names[worst]} {_in_words(widened[worst])}."
        yield checks.BIASED_SPREAD.found(text, f"{remedy}.", variance=widened[worst]), step
    if np.any(is_moved):
        worst = int(np.argmax(np.where(is_moved, np.abs(moved), 0.0)))
        text = f"{why} the mean of {names[worst]} off by about {moved[worst]:+.2g} standard deviations."
        yield checks.BIASED_MEAN.found(text, f"{remedy}.", mean=moved[worst]), step


def _reportable(bias: Bias) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Biases of means in standard deviations and of variances relative to themselves, and which of each are reported."""
    moved, moved_error, widened, widened_error = bias.relative()
    limit = significant(2 * len(moved))
    is_moved = (np.abs(moved) > limit * moved_error) & (np.abs(moved) > checks.BIASED_MEAN.limit)
    is_wide = (np.abs(widened) > limit * widened_error) & (np.abs(widened) > checks.BIASED_SPREAD.limit)
    return moved, widened, is_moved, is_wide


def _advised(step_size: float, widened: np.ndarray, moved: np.ndarray) -> float:
    worst = max(np.max(np.abs(widened)), np.max(np.abs(moved)), 1e-30)
    return step_size * min(1.0, _GOAL / worst)


def _in_words(widened: float) -> str:
    """The bias of a spread, from the relative bias of the variance."""
    if widened > 0.5:
        return "far too wide"
    spread = 1.0 / np.sqrt(1.0 - widened) - 1.0
    return f"about {abs(spread):.0%} too {'wide' if spread > 0 else 'narrow'}"


def _stiff_wells(bias: Bias, weights: np.ndarray) -> Iterator[tuple[Check, float]]:
    """Whether the step is too long for the wells around some of the draws."""
    is_stiff = bias.rates > checks.STIFF_WELLS.limit
    share = float(np.sum(weights[is_stiff]))
    if share >= _MIN_STIFF_SHARE:
        rate = float(np.median(bias.rates[is_stiff]))
        text = f"Around {share:.0%} of the draws a step crosses {rate:.0%} of a well: spreads there, and weights of wells, are off."
        yield checks.STIFF_WELLS.found(text, f"{_REMEDY}.", share=share, rate=rate), bias.step_size * 0.05 / rate


def _has_other_gradient(bias: Bias) -> bool:
    """Whether the gradient is not that of the energy."""
    is_off = bias.unexplained > checks.OTHER_GRADIENT.limit
    return is_off and not _hides_jumps(bias, normalized_weights(bias.log_weights))


def _hides_jumps(bias: Bias, weights: np.ndarray) -> bool:
    """Whether jumps cannot be detected: the steps are too large for the wells, or large positions are rounded."""
    return bool(np.sum(weights * bias.rates) > checks.STIFF_WELLS.limit) or bias.draws is None


def _jumps(bias: Bias, weights: np.ndarray) -> Iterator[tuple[Check, float]]:
    if _has_other_gradient(bias):
        text = f"Changes of the energy around draws differ by about {bias.unexplained:.0%} from its gradient: draws follow neither."
        remedy = "Look for `stop_gradient`, rounding, or custom derivatives in the energy."
        yield checks.OTHER_GRADIENT.found(text, remedy, difference=bias.unexplained), np.inf
        return
    is_jump = (np.abs(bias.jumps) > checks.JUMPS.limit) & (bias.rates < checks.STIFF_WELLS.limit)
    share = float(np.sum(weights[is_jump]))
    if share >= _MIN_JUMPS and not _hides_jumps(bias, weights):
        text = f"Around {share:.0%} of the draws the energy has jumps, walls or steps, which gradient samplers ignore."
        yield checks.JUMPS.found(text, "Smooth them, or use `box` for walls.", share=share), np.inf
