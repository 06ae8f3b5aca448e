"""A run in a few lines, with warnings in words."""

import dataclasses
import itertools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from isotherm.runs.pytree_json import named_leaves
from isotherm.runs.run import Run

_MOST_ROWS = 50
# A range of multipliers below this flattens nothing; steps of energies above that fraction of the temperature are coarse.
_LEAST_RANGE, _COARSEST = 1e-3, 0.05


class Coordinate(NamedTuple):
    """One coordinate."""

    name: str
    mean: float
    std_error: float
    sd: float
    effective_draws: float
    r_hat: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """Rows of coordinates, and notes.

    All honor the weights of draws; errors, effective draws and R-hat are those of `Run.estimate`. An error that is unknown is NaN,
    and a note says why.
    """

    rows: list[Coordinate]
    notes: list[str]

    def __str__(self) -> str:
        width = max([10, *(len(row.name) for row in self.rows)])
        lines = [f"{'coordinate':{width}} {'mean':>11} {'error':>9} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        lines += [f"{n:{width}} {m:11.4g} {x:9.2g} {s:11.4g} {e:9.0f} {r:7.3f}" for n, m, x, s, e, r in self.rows]
        return "\n".join([*lines, *(f"- {note}" for note in self.notes)])


def summary_of(run: Run) -> Summary:
    """Weighted means, their errors and standard deviations of the first coordinates, and what to worry about."""
    shapes = {name: leaf.shape[run.log_weights.ndim :] for name, leaf in named_leaves(run.draws).items()}
    places = [
        (name, place) for name, shape in shapes.items() for place in itertools.islice(np.ndindex(shape), _MOST_ROWS)
    ]
    places = places[:_MOST_ROWS]

    def first_coordinates(x):
        leaves = named_leaves(x)
        return jnp.stack([leaves[name][place].astype(float) for name, place in places])

    if not places:
        return Summary([], _notes(run))
    found = run.estimate(first_coordinates)
    rows = []
    for number, (name, place) in enumerate(places):
        label = "x" if name == "value" else name
        numbers = (found.mean, found.std_error, found.spread, found.effective_draws, found.r_hat)
        rows.append(Coordinate(f"{label}{list(place)}" if place else label, *(float(part[number]) for part in numbers)))
    return Summary(rows, _notes(run) + list(found.notes))


def _notes(run: Run) -> list[str]:
    total = int(np.asarray(run.log_weights).size)
    notes = [f"{total} draws of {run.name or 'a sampler'} in {run.num_steps} iterations, {run.seconds:.3g} s."]
    diverged = np.asarray(run.stats["diverged_at"]) >= 0
    if diverged.any():
        notes.append(f"{int(diverged.sum())} of {diverged.size} chains diverged; lower `step_size` or use a `box`.")
    notes += _notes_on_exchange(run) + _notes_on_contours(run) + _notes_on_kernels(run) + _notes_on_precision(run)
    effective = run.effective_sample_size()
    if effective < 0.1 * total:
        notes.append(
            f"A few draws carry the weight: it is that of about {effective:.0f} out of {total}. "
            "Run longer, leave out more of the start (`burn_in`), or flatten less (`zeta`)."
        )
    return notes


def _notes_on_kernels(run: Run) -> list[str]:
    """What is wrong with the moves, in words."""
    frozen_at = run.stats.get("preconditioner_frozen_at")
    # Swaps by a buffer follow no law anyway.
    if frozen_at is None or "buffer" in run.stats or 0 <= np.max(frozen_at) <= run.iterations[0]:
        return []
    return [
        "The preconditioner went on adapting while draws were taken, so that they do not follow exp(-U / T): spreads may be off by "
        "tens of per cent. Pass freeze_after=BURN_IN to the sampler, and burn_in=BURN_IN to `sample`."
    ]


def _notes_on_precision(run: Run) -> list[str]:
    """Whether energies are too large for their type, where swaps or weights depend on them."""
    if not {"num_swaps", "theta"} & set(run.stats) or run.config.get("temperature") in (None, 0.0):
        return []
    energies = np.asarray(run.energies)
    largest = np.max(np.abs(energies[np.isfinite(energies)]), initial=0.0)
    spacing = float(np.spacing(largest.astype(energies.dtype)))
    if spacing < _COARSEST * run.temperature:
        return []
    return [
        f"Energies near {largest:.3g} are stored in steps of {spacing:.2g}, which is {spacing / run.temperature:.2g} temperatures: "
        "swaps and weights see rounding as noise. Subtract from the log likelihood of every example its value at a good position, "
        "or use double precision (JAX_ENABLE_X64=1)."
    ]


def _notes_on_exchange(run: Run) -> list[str]:
    """What is wrong with a ladder, in words; nothing for samplers without one."""
    stats = run.stats
    if "num_swaps" not in stats:
        return []
    notes = []
    idle = np.flatnonzero(np.sum(_rows(stats["num_swaps"]), axis=0) == 0).tolist()
    if idle:
        remedy = "bring their temperatures closer with more replicas"
        if not run.config.get("is_exact"):
            remedy += ", reduce the energy noise, or raise `correction_factor`"
        notes.append(f"Pairs {idle} (counted from the target) never swapped: {remedy}.")
    if np.sum(stats["round_trips"]) == 0:
        notes.append(
            "No replica made a round trip from the target to the hottest rung and back: the hot rungs help nobody yet."
        )
    return notes


def _rows(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1, array.shape[-1])


def _notes_on_contours(run: Run) -> list[str]:
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
    if bounded > 0.05:
        notes.append(
            f"The multiplier sat at its bound in {bounded:.0%} of the iterations: widen the bins or lower `zeta`, or raise the "
            "first edge if energies never come below it."
        )
    if top > 0.2:
        notes.append(
            f"{top:.0%} of the energies fell into the open top bin, which is not flattened: raise the partition."
        )
    theta = np.asarray(stats["theta"])
    if run.config["sampler"]["coupling"]["field"]["class"] == "Theta" and np.max(theta[..., -1]) > 0.9:
        notes.append(
            'Theta has run away into the top bin, where psi is 1 and nothing pushes it back: the field "theta" has no fixed point '
            'here. Raise the partition above all energies, or use the field "psi".'
        )
    noisy = float(np.max(stats.get("noise_times_slope", 0.0)))
    if noisy > 0.5 and not run.config.get("is_exact"):
        notes.append(
            f"Energy noise times the slope of the weights is {noisy:.2g}, so that weights are biased: use larger batches, a "
            "control variate, wider bins, or a smaller `zeta`."
        )
    return notes
