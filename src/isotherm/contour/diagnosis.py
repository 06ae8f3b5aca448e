"""Checks on a contour: whether the multiplier flattens the energy, and whether the weights are right."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from isotherm.contour.fields import Theta
from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView

if TYPE_CHECKING:
    from isotherm.contour.contour import Contour

# Log weights may drift by this many standard errors, or by this much: a factor of two on an eighth of the draws hardly matters.
_MIN_ERRORS, _MIN_DRIFT = 5.0, 0.7


def diagnose(contour: "Contour", run: RunView) -> list[Check]:
    """The checks on a contour; see `Coupling.diagnose`."""
    if "theta" not in run.stats:
        return []
    found = [*_multiplier(contour, run), *_first_bin(contour, run)]
    if not contour.field.is_cumulative:
        # A running sum moves whenever a lower energy is found; its weights allow for that.
        found += [*_settling(run), *_runaway(contour, run)]
    return [*found, *_noise(run)]


def _multiplier(contour: "Contour", run: RunView) -> Iterator[Check]:
    stats = run.stats
    lowest, highest = float(np.min(stats["lowest_multiplier"])), float(np.max(stats["highest_multiplier"]))
    if highest - lowest < checks.FLAT_MULTIPLIER.limit:
        yield checks.FLAT_MULTIPLIER.found(
            f"The multiplier stayed between {lowest:.6g} and {highest:.6g}: nothing was flattened, as with the plain sampler.",
            'Theta hardly moved (raise `gain`, or lower `zeta` with the field "theta^zeta"), or all energies fell into an open bin '
            "(move the partition to them).",
            range=highest - lowest,
        )
    bounded, top = (float(np.mean(stats[name])) / run.num_steps for name in ("num_bounded", "num_top"))
    default = type(contour).bounds or (-np.inf, np.inf)
    low, high = contour.bounds or default
    # Within the default bounds a chain is as stable as a plain one, and weights undo the flattening.
    if bounded > checks.BOUNDED_MULTIPLIER.limit and (low < default[0] or high > default[1]):
        yield checks.BOUNDED_MULTIPLIER.found(
            f"The multiplier sat at its bound in {bounded:.0%} of the iterations.",
            "Widen the bins or lower `zeta`, or raise the first edge if energies never fall below it.",
            share=bounded,
        )
    if top > checks.TOP_BIN.limit:
        text = f"{top:.0%} of the energies fell into the open top bin, which is not flattened."
        yield checks.TOP_BIN.found(text, "Raise the partition.", share=top)


def _first_bin(contour: "Contour", run: RunView) -> Iterator[Check]:
    """Whether the draws lie below the first edge, if the recorded energies are those of the contour."""
    if not run.config.get("reads_whole_energy", True):
        return
    below = float(np.mean(np.asarray(run.energies) - contour.offset <= contour.partition.low))
    if below > checks.FIRST_BIN.limit:
        yield checks.FIRST_BIN.found(
            f"{below:.0%} of the draws lie in the open first bin, which is not flattened.",
            'Lower the first edge, or start among typical energies with `partition="auto"`.',
            share=below,
        )


def _settling(run: RunView) -> Iterator[Check]:
    """Whether log weights drift from the first draws to the later ones."""
    weights = np.asarray(run.log_weights)
    weights = weights.reshape(-1, weights.shape[-1])
    number = weights.shape[1]
    if len(weights) < 2 or number < 16 or not np.all(np.isfinite(weights)):
        return
    moved = weights[:, number // 2 :].mean(axis=1) - weights[:, : number // 8].mean(axis=1)
    spread, error = float(weights[:, number // 2 :].std()), float(moved.std(ddof=1)) / np.sqrt(len(moved))
    if abs(moved.mean()) >= max(checks.UNSETTLED_THETA.limit * spread, _MIN_ERRORS * error, _MIN_DRIFT):
        yield checks.UNSETTLED_THETA.found(
            "The log weights of the first draws differ from those of later ones: theta had not settled.",
            "Lengthen the burn-in (`burn_in`), or run longer.",
            drift=abs(moved.mean()) / max(spread, 1e-300),
        )


def _runaway(contour: "Contour", run: RunView) -> Iterator[Check]:
    share = float(np.max(np.asarray(run.stats["theta"])[..., -1]))
    if isinstance(contour.field, Theta) and share > checks.RUNAWAY_THETA.limit:
        yield checks.RUNAWAY_THETA.found(
            'Theta has run away into the top bin, where psi is 1: the field "theta" has no fixed point here.',
            'Raise the partition above all energies, or use the field "psi".',
            theta=share,
        )


def _noise(run: RunView) -> Iterator[Check]:
    """Whether energy noise biases the weights: by the known error, else by a bound on it."""
    error, blur = run.config.get("weight_error"), float(np.max(run.stats.get("noise_times_slope", 0.0)))
    remedy = "use larger batches, a control variate, wider bins, or a smaller `zeta`."
    if error is not None and error > checks.WEIGHT_NOISE.limit:
        yield checks.WEIGHT_NOISE.found(
            f"Energy noise makes weights wrong by a factor of up to {np.exp(error):.3g}, after correction of the known part.",
            remedy.capitalize(),
            error=error,
        )
    if error is None and blur > checks.WEIGHT_BLUR.limit and not run.config.get("is_exact"):
        text = f"Energy noise times the slope of the weights is {blur:.2g}, which biases the weights."
        yield checks.WEIGHT_BLUR.found(text, remedy.capitalize(), blur=blur)
