"""What the coupling of a cell did: a method that does nothing is seen to do nothing."""

from typing import Any

import numpy as np

from isotherm.foundation.schedules import values_at
from isotherm.run.run import Run
from isotherm_thesis.experiments.images.plan import Plan


def coupling_report(run: Run, plan: Plan) -> dict[str, Any]:
    """Numbers about swaps or multipliers; nothing for independent chains."""
    if "highest_multiplier" in run.stats:
        return _contour(run, plan)
    return _exchange(run, plan) if "num_swaps" in run.stats else {}


def _contour(run: Run, plan: Plan) -> dict[str, Any]:
    stats = {name: np.asarray(value, np.float64) for name, value in run.stats.items() if name != "best_position"}
    learned = max(run.num_steps - plan.learns_from, 1)
    theta = stats["theta"]
    return {
        "multiplier, lowest": float(stats["lowest_multiplier"].min()),
        "multiplier, highest": float(stats["highest_multiplier"].max()),
        "share at bounds": float(stats["num_bounded"].mean() / learned),
        "share negative": float(stats["num_negative"].mean() / learned),
        "share in top bin": float(stats["num_top"].mean() / max(run.num_steps, 1)),
        "bins visited": int(np.sum(theta.mean(axis=0) > 1.02 * np.median(theta))),
        "theta, largest over median": float(theta.max() / np.median(theta)),
        "energy noise": float(np.mean(stats["energy_noise"])),
        "effective networks": run.effective_sample_size(),
    }


def _exchange(run: Run, plan: Plan) -> dict[str, Any]:
    stats = run.stats
    swaps = np.asarray(stats["num_swaps"]).reshape(-1)
    hundreds = plan.clock.num_epochs / 100
    report = {
        "swaps": int(swaps.sum()),
        "swaps of pairs": swaps.tolist(),
        "swap rate": float(np.mean(stats["swap_rate"])),
        "acceptance of pairs": np.asarray(stats["acceptance"], np.float64).reshape(-1).tolist(),
        "round trips": int(np.sum(stats["round_trips"])),
        "round trips, thesis": int(np.sum(stats["round_trips_thesis"])),
        "round trips per 100 epochs": float(np.sum(stats["round_trips"]) / hundreds),
        "round trips per 100 epochs, thesis": float(np.sum(stats["round_trips_thesis"]) / hundreds),
        "step size ratios": np.asarray(stats["step_size_ratios"], np.float64).reshape(-1).tolist(),
    }
    if "buffer" in stats:
        report["buffer"] = float(np.mean(stats["buffer"]))
    rung = np.asarray(run.observed["rung"])
    if rung.ndim == 3:
        # Axes (ladder, draw, replica): the draws are those of the replica on the target rung.
        is_averaged = run.iterations >= plan.first_averaged
        report["networks of replicas"] = np.sum(rung[0, is_averaged] == 0, axis=0).tolist()
    if "variance_of_difference" in run.observed:
        report |= _corrections(run, plan)
    return report


def _corrections(run: Run, plan: Plan) -> dict[str, Any]:
    """The tracked variance of the difference of swap energies, and the exact correction beside the loss, at every record.

    The correction in units of energy is delta / 2 times the variance, with delta = 1 / tau_1 - 1 / tau_2 and F = 1.
    """
    variances = np.asarray(run.observed["variance_of_difference"], np.float64)
    # Axes (pair, draw) where the draws of all rungs are recorded, else (ladder, draw, pair).
    variances = variances[0] if variances.ndim == 2 else variances[0, :, 0]
    ladder = np.asarray(run.stats["temperature_ratios"], np.float64).reshape(-1)
    cold = np.asarray(values_at(plan.sampler.temperature, run.iterations), np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        delta = (1.0 - 1.0 / ladder[1]) / cold
        ratio = delta / 2 * variances / np.asarray(run.energies, np.float64)[0]
    known = np.isfinite(variances) & np.isfinite(ratio)
    late = known & (run.iterations >= plan.clock.num_steps // 2)
    epochs = (run.iterations + 1) // plan.clock.steps_per_epoch
    seen = variances[known]
    return {
        "variance, first quarter": float(np.mean(seen[: max(len(seen) // 4, 1)])) if known.any() else None,
        "variance, last": float(seen[-1]) if known.any() else None,
        "variance, last half": float(np.mean(variances[late])) if late.any() else None,
        "correction over loss, median": float(np.median(ratio[known])) if known.any() else None,
        "variance over time": {"epoch": epochs[known].tolist(), "variance": variances[known].tolist()},
        "correction over time": {"epoch": epochs[known].tolist(), "ratio": ratio[known].tolist()},
    }
