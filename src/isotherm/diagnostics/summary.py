"""A run in a few lines, with warnings in words."""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from isotherm.diagnostics.bias_notes import notes_on_bias
from isotherm.diagnostics.disagreement_notes import notes_on_disagreement
from isotherm.diagnostics.network_notes import notes_on_networks
from isotherm.foundation.printable import printable
from isotherm.run.agreement import MIN_EFFECTIVE_DRAWS
from isotherm.run.columns import columns
from isotherm.run.estimates import TOO_HOT, UNKNOWN_BIAS, Estimate, estimate, normalized_weights
from isotherm.run.names import Shapes, coordinate_name, of_small_leaves, shapes_of
from isotherm.run.run_data import RunData
from isotherm.run.run_estimates import RunEstimates
from isotherm.run.spent import time_of
from isotherm.run.standard_errors import LARGE_R_HAT

# Coordinates whose R-hat and errors are looked at, and that are shown: all, or some of a large position, of which leaves of a few
# numbers, such as scales, always are.
_MOST_JUDGED, _MOST_ROWS, _ROWS_OF_LARGE, _FEW = 1_000, 50, 20, 4
# Starts are too close together where their spread is below this share of the draws' in every coordinate, and below what starts that
# spread like the draws have by chance, which happens so often.
_MIN_DISPERSION, _BY_CHANCE = 1 / 3, 0.01
# Draws from which principal directions are found, and how many of these are watched.
_MOST_DRAWS, _NUM_DIRECTIONS = 1_000, 3


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
    and a note says why. Samplers that descend, and follow no distribution, have no errors, effective draws or R-hat: these are NaN.
    """

    rows: list[Coordinate]
    notes: list[str]
    num_coordinates: int = 0

    def __str__(self) -> str:
        width = max([10, *(len(row.name) for row in self.rows)])
        lines = [f"{'coordinate':{width}} {'mean':>11} {'error':>9} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        lines += [f"{n:{width}} {m:11.4g} {x:9.2g} {s:11.4g} {e:9.0f} {r:7.3f}" for n, m, x, s, e, r in self.rows]
        if self.num_coordinates > len(self.rows):
            lines.append(
                f"... {len(self.rows)} of {self.num_coordinates:,} coordinates: leaves of a few, and where chains agree least"
            )
        return printable("\n".join([*lines, *(f"- {note}" for note in self.notes)]))


def summary_of(run: RunEstimates) -> Summary:
    """Weighted means, their errors and standard deviations, and what to worry about.

    Of a large position some coordinates are looked at. Shown are those of small leaves, and those on which chains agree least.
    """
    shapes = shapes_of(run.draws, run.log_weights.ndim)
    size = sum(math.prod(shape) for shape in shapes.values())
    if size == 0:
        return Summary([], _notes(run))
    few = of_small_leaves(shapes, _FEW)[:_ROWS_OF_LARGE]
    judged = np.unique(np.concatenate([few, np.linspace(0, size - 1, min(size, _MOST_JUDGED)).astype(int)]))

    def coordinates(x):
        leaves = [leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(x)]
        return jnp.concatenate(leaves)[judged]

    found = run.estimate(coordinates)
    # What is known of the bias has notes of its own.
    known = (UNKNOWN_BIAS, TOO_HOT, *(run.law_notes if run.claims_distribution and not _has_died(run) else ()))
    found = found._replace(notes=tuple(note for note in found.notes if note not in known))
    nothing = np.full_like(found.mean, np.nan)
    columns = (found.mean, found.std_error, found.spread, found.effective_draws, found.r_hat)
    if not run.claims_distribution:
        columns = (found.mean, nothing, found.spread, nothing, nothing)
    first = np.isin(judged, few if size > _MOST_ROWS else judged)
    number = _MOST_ROWS if size <= _MOST_ROWS else max(_ROWS_OF_LARGE, len(few))
    worst = np.sort(np.lexsort((-np.nan_to_num(found.r_hat, nan=0.0), ~first))[:number])
    rows = [
        Coordinate(coordinate_name(shapes, int(judged[place])), *(float(part[place]) for part in columns))
        for place in worst
    ]
    if not run.claims_distribution or _has_died(run):
        return Summary(rows, _notes(run), size)
    named = [] if run.bias is None else [f"`{coordinate_name(shapes, place)}`" for place in run.bias.coordinates]
    notes = (
        _notes(run, _agreement(shapes, judged, found.r_hat))
        + notes_on_bias(run.bias, named, list(shapes), _share_rejected(run), _has_batches(run), run.are_particles)
        + _notes_on_unmeasured(run)
        + list(found.notes or _notes_on_watched(run, judged, found))
    )
    return Summary(rows, notes + notes_on_disagreement(run, judged, found), size)


def _notes_on_unmeasured(run: RunData) -> list[str]:
    """Whether it cannot be known what the step size does."""
    is_collected = run.config.get("collect") not in (None, "identity") and not run.config.get("is_constrained")
    is_streamed = bool(run.described_potential.get("is_streamed"))
    if run.bias is not None or not run.config.get("temperature") or not (is_collected or is_streamed):
        return []
    return [
        "The bias of the step size and of mini-batches is not measured where data stream from a large file, or positions are not "
        "recorded as they are (`collect`): compare with a run at half the step size."
    ]


def _has_batches(run: RunEstimates) -> bool:
    return run.described_potential.get("batch_size") is not None


def _notes_on_watched(run: RunEstimates, judged: np.ndarray, found: Estimate) -> list[str]:
    """What the energy, the radius and the principal directions say, where no coordinate says anything.

    One visit to a mode on one side of the others may show in the distance from the mean alone.
    """
    mean, spread = np.asarray(found.mean), np.where(np.asarray(found.spread) > 0, found.spread, 1.0)
    chosen = np.unique(np.linspace(0, run.num_draws - 1, _MOST_DRAWS).astype(int))
    weights = normalized_weights(np.asarray(run.log_weights)[..., chosen]).reshape(-1)
    # Of all draws, of which only these numbers are kept.
    lead = run.log_weights.ndim
    scaled = (columns(run.draws, lead, judged)[..., chosen, :].reshape(weights.size, -1) - mean) / spread
    scaled = np.where(weights[:, None] > 0, scaled, 0.0)
    directions = np.linalg.eigh((weights[:, None] * scaled).T @ scaled)[1][:, -_NUM_DIRECTIONS:].T

    def watched(draw):
        position, energy = draw
        at = jnp.concatenate([leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(position)])[judged]
        at = (at - mean) / spread
        return jnp.concatenate([jnp.stack([energy.astype(float), jnp.sum(at**2)]), directions @ at])

    draws = (run.draws, run.energies)
    seen = estimate(watched, draws, np.asarray(run.log_weights), None, run.are_particles, run.shares_noise)
    # Of several that nobody asked for one has a large R-hat by chance.
    is_known = np.min(seen.effective_draws) >= MIN_EFFECTIVE_DRAWS
    notes = [note for note in seen.notes if not (is_known and note.startswith(LARGE_R_HAT))]
    return [f"Of the energy, the distance from the mean or a principal direction: {note}" for note in notes]


def _share_rejected(run: RunEstimates) -> float:
    return float(np.mean(run.stats.get("num_rejected", 0.0))) / run.num_steps


def _agreement(shapes: Shapes, judged: np.ndarray, r_hat: np.ndarray) -> str:
    """The largest R-hat, which a reader may judge by another rule than that of the notes; nothing where there is none."""
    if not np.any(np.isfinite(r_hat)):
        return ""
    worst = int(np.nanargmax(r_hat))
    return f" Largest R-hat: {r_hat[worst]:.3f}, of `{coordinate_name(shapes, int(judged[worst]))}`."


def _notes(run: RunEstimates, agreement: str = "") -> list[str]:
    total = int(run.log_weights.size)
    began = f"{total} draws of {run.name or 'a sampler'} in {run.num_steps} iterations: {time_of(run)}."
    notes = [began + _aim(run) + agreement]
    notes += notes_at_once(run)
    if "diverged_at" not in run.stats or _has_died(run):
        return notes
    notes += [*run.law_notes, *_notes_on_spread(run), *notes_on_networks(run)]
    effective = run.effective_sample_size()
    if effective < 0.1 * total:
        notes.append(
            f"A few draws carry the weight: it is that of about {effective:.0f} out of {total}. "
            "Run longer, or leave out more of the start (`burn_in`)"
            + ", or flatten less (`zeta`)" * ("theta" in run.stats)
            + "."
        )
    return notes


def _aim(run: RunData) -> str:
    """What draws are that follow no distribution; nothing for those that do."""
    if run.claims_distribution:
        return ""
    best = ' The lowest one met is `run.stats["best_position"]`.' * ("best_position" in run.stats)
    return f" The sampler looks for low energies and follows no distribution: these are points on its way.{best}"


def notes_at_once(run: RunData) -> list[str]:
    """What can be said without a look at any draw."""
    notes, asked = [], run.config.get("settings", {}).get("num_steps", run.num_steps)
    if run.num_steps < asked and not _has_died(run):
        notes.append(
            f"Stopped after {run.num_steps} of {asked} iterations; with a folder (`out=`) it can go on (`iso.resume`)."
        )
    if "diverged_at" not in run.stats:
        notes.append("Read at a checkpoint: divergences, couplings and bias are known once the run has ended.")
        return notes
    diverged = np.asarray(run.stats["diverged_at"]) >= 0
    if diverged.any():
        what = "replicas" if "num_swaps" in run.stats else "chains"
        notes.append(f"{int(diverged.sum())} of {diverged.size} {what} diverged; lower `step_size` or use a `box`.")
    if _has_died(run):
        return [*notes, "None is left: what they drew before they diverged is no sample of anything."]
    return notes + _notes_on_starts(run)


def _has_died(run: RunData) -> bool:
    """Whether no chain is left; of a run that has not ended that is not known."""
    return bool(np.all(np.asarray(run.stats.get("diverged_at", -1)) >= 0))


def _notes_on_starts(run: RunData) -> list[str]:
    """Whether agreement of chains says anything, where no hotter replica lets them leave a mode."""
    if "num_swaps" in run.stats or not run.claims_distribution:
        return []
    if np.asarray(run.stats["diverged_at"]).size == 1:
        return [
            "There is one chain, and nothing to compare it with: pass num_chains=4 or more, with starts that are apart."
        ]
    if not run.config.get("has_one_start"):
        return []
    remedy = (
        "make the potential of the network's class, or of a function that makes it, not of a module" * run.is_network
    )
    remedy = remedy or "pass a function of a key as `init`, or `iso.per_chain(positions)`"
    return [
        "All chains started at one point, so that their agreement says nothing of modes which are hard to reach from there: "
        f"{remedy}."
    ]


def _notes_on_spread(run: RunEstimates) -> list[str]:
    """Whether the starts of chains that no ladder moves about were closer together than the draws are."""
    spread, config = run.config.get("start_spread"), run.config
    if spread is None or "num_swaps" in run.stats or not run.claims_distribution or config.get("has_one_start"):
        return []
    drawn = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.std())])
    number = np.asarray(run.stats["diverged_at"]).size
    by_chance = math.sqrt(scipy.special.chdtri(number - 1, 1.0 - _BY_CHANCE) / number)
    if len(drawn) != len(spread) or np.any(np.asarray(spread) >= min(_MIN_DISPERSION, by_chance) * drawn):
        return []
    return [
        "Chains started closer together than the draws lie, so that their agreement says little of modes that are far from the "
        "starts: pass overdispersed starts, such as `init=lambda key: 3.0 * jax.random.normal(key, shape)`."
    ]
