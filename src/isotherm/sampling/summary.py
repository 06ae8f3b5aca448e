"""A run in a few lines, with warnings in words."""

import dataclasses
from typing import Any

import jax
import numpy as np

from isotherm.sampling.arviz import import_arviz
from isotherm.sampling.run import Run
from isotherm.sampling.trees import named_leaves

_MOST_ROWS = 50


@dataclasses.dataclass(frozen=True)
class Summary:
    """Rows of (coordinate, mean, sd, effective draws, R-hat), and notes.

    Effective draws and R-hat are ArviZ's, of draws resampled to equal weight; NaN where ArviZ is not installed.
    """

    rows: list[tuple[str, float, float, float, float]]
    notes: list[str]

    def __str__(self) -> str:
        width = max([10, *(len(row[0]) for row in self.rows)])
        lines = [f"{'coordinate':{width}} {'mean':>11} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        lines += [f"{n:{width}} {m:11.4g} {s:11.4g} {e:9.0f} {r:7.3f}" for n, m, s, e, r in self.rows]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


def summarise(run: Run) -> Summary:
    """Weighted means and standard deviations of the first coordinates, ArviZ's diagnostics, and what to worry about."""
    mean = run.expectation(lambda x: x)
    square = run.expectation(lambda x: jax.tree.map(lambda leaf: leaf**2, x))
    sd = jax.tree.map(lambda m, s: np.sqrt(np.maximum(s - m**2, 0.0)), mean, square)
    diagnostics = _diagnostics(run)
    rows: list[Any] = []
    for name, values in named_leaves(mean).items():
        label = "x" if name == "value" else name
        for place in np.ndindex(values.shape):
            if len(rows) < _MOST_ROWS:
                at = f"{label}{list(place)}" if place else label
                ess, r_hat = (float(table[label][place]) if table else np.nan for table in diagnostics)
                rows.append((at, float(values[place]), float(named_leaves(sd)[name][place]), ess, r_hat))
    return Summary(rows, _notes(run, [row[4] for row in rows]))


def _diagnostics(run: Run) -> tuple[Any, Any]:
    """ArviZ's effective sizes and R-hats by coordinate; None where they cannot be had."""
    try:
        az = import_arviz()
    except ImportError:
        return None, None
    if run.num_draws < 4:
        return None, None
    posterior = run.to_arviz()
    many = posterior.posterior.sizes["chain"] > 1
    return _by_name(az.ess(posterior)), _by_name(az.rhat(posterior)) if many else None


def _by_name(table: Any) -> dict[str, np.ndarray]:
    return {name: table[name].values for name in table.data_vars}


def _notes(run: Run, r_hats: list[float]) -> list[str]:
    total = int(np.asarray(run.log_weights).size)
    notes = [f"{total} draws of {run.name or 'a sampler'} in {run.num_steps} iterations, {run.seconds:.3g} s."]
    diverged = np.asarray(run.stats["diverged_at"]) >= 0
    if diverged.any():
        notes.append(f"{int(diverged.sum())} of {diverged.size} chains diverged; lower `step_size` or use a `box`.")
    notes += _notes_on_exchange(run.stats) + _notes_on_contours(run)
    effective = run.effective_sample_size()
    if effective < 0.1 * total:
        notes.append(
            f"A few draws carry the weight: it is that of about {effective:.0f} out of {total}. "
            "Run longer, leave out more of the start (`burn_in`), or flatten less (`zeta`)."
        )
    if np.nanmax([0.0, *r_hats]) > 1.05:
        notes.append("Chains disagree (R-hat above 1.05): they have not mixed. Run longer, or use a tempered sampler.")
    return notes


def _notes_on_exchange(stats: dict[str, Any]) -> list[str]:
    """What is wrong with a ladder, in words; nothing for samplers without one."""
    if "num_swaps" not in stats:
        return []
    notes = []
    idle = np.flatnonzero(np.sum(stats["num_swaps"], axis=0) == 0).tolist()
    if idle:
        remedy = (
            "bring their temperatures closer with more replicas, reduce the energy noise, or raise `correction_factor`."
        )
        notes.append(f"Pairs {idle} (counted from the target) never swapped: {remedy}")
    if np.sum(stats["round_trips"]) == 0:
        notes.append(
            "No replica made a round trip from the target to the hottest rung and back: the hot rungs help nobody yet."
        )
    return notes


def _notes_on_contours(run: Run) -> list[str]:
    """What is wrong with a contour sampler, in words; nothing for other samplers."""
    stats = run.stats
    if "theta" not in stats:
        return []
    notes = []
    bounded, top = (float(np.mean(stats[name])) / run.num_steps for name in ("num_bounded", "num_top"))
    if bounded > 0.05:
        notes.append(
            f"The multiplier sat at its bound in {bounded:.0%} of the iterations: widen the bins or lower `zeta`, or raise the "
            "first edge if energies never come below it."
        )
    if top > 0.2:
        notes.append(
            f"{top:.0%} of the energies fell into the open top bin, which is not flattened: raise the partition."
        )
    noisy = float(np.max(stats.get("noise_times_slope", 0.0)))
    if noisy > 0.5:
        notes.append(
            f"Energy noise times the slope of the weights is {noisy:.2g}, so that weights are biased: use larger batches, a "
            "control variate, wider bins, or a smaller `zeta`."
        )
    return notes
