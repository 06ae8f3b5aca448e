"""What to say of a measured bias, and when to say nothing."""

from typing import NamedTuple

import numpy as np

from isotherm.diagnostics.bias import Bias, contradicted, error_of, significant
from isotherm.run.estimates import normalized_weights

# Biases below these are not worth a word: of a mean in standard deviations, and of a variance relative to itself.
_LEAST_SHIFT, _LEAST_WIDENING = 0.05, 0.05
# The same over all numbers of a large position, and colder by so much where the start is still remembered.
_LEAST_HEAT, _LEAST_COLD = 0.03, -0.1
# Steps that forget more than this share of a well are too long for it; a smaller share of draws in such wells is not worth a word.
_LONGEST, _FEWEST_STIFF = 0.3, 0.03
# Of moves that a box rejects, and of the squared displacement by gradients over that by noise.
_FEWEST_REJECTED, _LARGEST_DRIFT = 0.02, 0.3
# A jump of so many temperatures, in such a share of the draws.
_LARGEST_JUMP, _MOST_JUMPS = 0.5, 0.01
# By which share changes of the energy may differ from what gradients say: below 1e-3 where steps are short, whatever the energy.
_MAX_UNEXPLAINED = 0.02
# What a proposed step size leaves of a variance's bias, and what is left at the least of a step that heats the whole: far from the
# right step heat does not go as the step.
_GOAL, _LARGEST_CUT = 0.02, 0.1


class _Note(NamedTuple):
    """A note, in which `{step}` stands for the step size that all notes advise."""

    text: str
    step_size: float = np.inf


def contradicts(bias: Bias) -> bool:
    """Whether gradients at the draws say that these follow another distribution, beyond what is known of a bias."""
    return bool(
        np.any(hot_leaves(bias)[0])
        or (bias.is_measured and contradicted(bias.heats) is not None)
        or _has_other_gradient(bias)
    )


def notes_on_bias(
    bias: Bias | None,
    names: list[str],
    leaves: list[str],
    rejected: float,
    has_batches: bool = True,
    are_particles: bool = False,
) -> list[str]:
    """Which mean and which spread is off by most, if any is off by more than its error says. All advise one step size.

    Args:
        bias: what was measured.
        names: of its coordinates.
        leaves: names of the leaves of the position.
        rejected: the share of moves that a box rejected.
        has_batches: whether there are batches that could be larger.
        are_particles: whether chains are particles that repel one another.
    """
    if bias is None:
        return []
    batches = ", or use larger batches" * (has_batches and not bias.is_exact)
    notes = _notes(bias, names, leaves, rejected, batches, are_particles)
    step_size = min((note.step_size for note in notes), default=np.inf)
    return [note.text.replace("{step}", f"{step_size:.1g}") for note in notes]


def _notes(
    bias: Bias, names: list[str], leaves: list[str], rejected: float, batches: str, are_particles: bool
) -> list[_Note]:
    weights = normalized_weights(bias.log_weights)
    moved, widened, is_moved, is_wide = _worth_a_word(bias)
    why, remedy = "The step size makes", "lower `step_size` to about {step}" + batches
    advised = _advised(bias.step_size, widened, moved)
    if bias.is_measured:
        worst = contradicted(bias.heats)
        if worst is not None:
            heat = _note_on_heat(names[worst], float(bias.heats[0, worst]), are_particles)
            return [_Note(heat), *_notes_on_jumps(bias, weights)]
        why = "Gradients at the draws make"
    notes = _notes_on_leaves(bias, leaves, batches)
    if np.any(is_wide):
        worst = int(np.argmax(np.where(is_wide, np.abs(widened), 0.0)))
        notes.append(_Note(f"{why} the spread of {names[worst]} {_in_words(widened[worst])}: {remedy}.", advised))
    if np.any(is_moved):
        worst = int(np.argmax(np.where(is_moved, np.abs(moved), 0.0)))
        where = f"{moved[worst]:+.2g} standard deviations"
        notes.append(_Note(f"{why} the mean of {names[worst]} off by about {where}: {remedy}.", advised))
    if not notes:
        notes += _notes_on_wells(bias, weights)
    if rejected > _FEWEST_REJECTED and bias.drift > _LARGEST_DRIFT:
        text = (
            f"Gradients push chains against the box, which rejects {rejected:.0%} of the moves: draws stay too far from the wall. "
            "Lower `step_size` to about {step}."
        )
        notes.append(_Note(text, bias.step_size * 0.1 * _LARGEST_DRIFT / bias.drift))
    return notes + _notes_on_jumps(bias, weights)


def _worth_a_word(bias: Bias) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Biases of means in standard deviations, of variances relative to themselves, and which of each are worth a word."""
    moved, moved_error, widened, widened_error = bias.relative()
    limit = significant(2 * len(moved))
    is_moved = (np.abs(moved) > limit * moved_error) & (np.abs(moved) > _LEAST_SHIFT)
    is_wide = (np.abs(widened) > limit * widened_error) & (np.abs(widened) > _LEAST_WIDENING)
    return moved, widened, is_moved, is_wide


def advised_step(bias: Bias | None) -> float | None:
    """A step size at which spreads and means are hardly off; None where they are not now, or where nothing is known."""
    if bias is None:
        return None
    moved, widened, is_moved, is_wide = _worth_a_word(bias)
    return _advised(bias.step_size, widened, moved) if np.any(is_moved | is_wide) else None


def _note_on_heat(name: str, excess: float, are_particles: bool) -> str:
    remedy = "Lower `step_size`, until a step is short beside the narrowest well."
    if excess < 0 and are_particles:
        remedy = (
            "Particles have collapsed, as they do in many dimensions: pass more (`num_chains`), or use another sampler."
        )
    elif excess < 0:
        remedy = "Chains did not mix while draws were taken, or a contour moved faster than they: run longer, or take longer steps."
    return (
        f"In {name} gradients at the draws are those of {1.0 + excess:.2g} times the temperature: the draws do not follow the "
        f"distribution that was asked for. {remedy}"
    )


def hot_leaves(bias: Bias) -> tuple[np.ndarray, np.ndarray]:
    """Whether the whole position, and then every leaf, is too hot, and whether it is surely off at all."""
    heats, is_whole = bias.leaf_heats[0], np.arange(bias.leaf_heats.shape[1]) == 0
    limits = np.where(is_whole, significant(1), significant(len(heats)))
    error = error_of(bias.leaf_heats)
    is_sure = np.abs(heats) > limits * error
    least = np.where(is_whole & (bias.draws is None), _LEAST_HEAT, _LEAST_WIDENING)
    # Surely above the least that is worth a word.
    return is_sure & (heats - error > least), is_sure


def _notes_on_leaves(bias: Bias, names: list[str], batches: str) -> list[_Note]:
    """Whether a position as a whole, or one of its leaves, is hotter or colder than it should be."""
    heats, is_large = bias.leaf_heats[0], bias.draws is None
    is_hot, is_sure = hot_leaves(bias)
    began = (
        f"Over all {bias.leaf_sizes[0]:,} numbers of the position gradients at the draws are those of {1.0 + heats[0]:.2f} times "
        "the temperature"
    )
    if np.any(is_hot):
        excess = 0.5 * heats * bias.leaf_sizes
        worst = 1 + int(np.argmax(np.where(is_hot, excess, -np.inf)[1:])) if np.any(is_hot[1:]) else 0
        where = (
            "" if worst == 0 or len(names) == 1 else f", and in `{names[worst - 1]}` of {1.0 + heats[worst]:.2f} times"
        )
        # Where the whole is hot, it says more of the step than a leaf.
        judged = 0 if is_hot[0] else worst
        goal = bias.step_size * np.clip(_GOAL / heats[judged], _LARGEST_CUT, 1.0)
        high = f"by about {excess[judged]:.2g} temperatures"
        text = f"{began}{where}: energies, and losses and scales with them, are too high, {high}. "
        return [_Note(text + "Lower `step_size` to about {step}" + f"{batches}, and look again.", float(goal))]
    if is_large and is_sure[0] and heats[0] < _LEAST_COLD:
        text = (
            f"{began}: the draws lie closer together than the distribution, and are still on their way from the start, or from "
            "that of their cycle. Run longer, leave out more of the start (`burn_in`), or sample for a larger part of each cycle."
        )
        return [_Note(text)]
    return []


def _notes_on_wells(bias: Bias, weights: np.ndarray) -> list[_Note]:
    """Whether the step is too long where some of the draws are, though it may suit the others."""
    is_stiff = bias.rates > _LONGEST
    share = float(np.sum(weights[is_stiff]))
    if share < _FEWEST_STIFF:
        return []
    typical = float(np.median(bias.rates[is_stiff]))
    text = (
        f"Around {share:.0%} of the draws the energy curves so much that a step crosses {typical:.0%} of a well: spreads there, "
        "and the weight of such wells, are off. Lower `step_size` to about {step}."
    )
    return [_Note(text, bias.step_size * 0.05 / typical)]


def _hides_jumps(bias: Bias, weights: np.ndarray) -> bool:
    """Beside steps that are long for the wells all energies look as if they jumped; those of networks have too much rounding."""
    return bool(np.sum(weights * bias.rates) > _LONGEST) or bias.draws is None


def _has_other_gradient(bias: Bias) -> bool:
    """Whether the gradient is not that of the energy."""
    return bias.unexplained > _MAX_UNEXPLAINED and not _hides_jumps(bias, normalized_weights(bias.log_weights))


def _notes_on_jumps(bias: Bias, weights: np.ndarray) -> list[_Note]:
    if _hides_jumps(bias, weights):
        return []
    if _has_other_gradient(bias):
        text = (
            f"Changes of the energy around the draws differ by about {bias.unexplained:.0%} from what its gradient says: draws "
            "follow neither. Look for `stop_gradient`, rounding, or a derivative of your own in the energy."
        )
        return [_Note(text)]
    share = float(np.sum(weights[(np.abs(bias.jumps) > _LARGEST_JUMP) & (bias.rates < _LONGEST)]))
    if share < _MOST_JUMPS:
        return []
    text = (
        f"Around {share:.0%} of the draws the energy changes by more than its gradient says: it has jumps, walls or steps, which "
        "no gradient sampler sees. Smooth them, or use `box` for walls."
    )
    return [_Note(text)]


def _advised(step_size: float, widened: np.ndarray, moved: np.ndarray) -> float:
    worst = max(np.max(np.abs(widened)), np.max(np.abs(moved)), 1e-30)
    return step_size * min(1.0, _GOAL / worst)


def _in_words(widened: float) -> str:
    """What a variance that is too large or too small by a share of what it is now means for the spread."""
    if widened > 0.5:
        return "far too wide"
    spread = 1.0 / np.sqrt(1.0 - widened) - 1.0
    return f"about {abs(spread):.0%} too {'wide' if spread > 0 else 'narrow'}"
