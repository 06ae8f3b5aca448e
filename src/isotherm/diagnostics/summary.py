"""A run in a few lines: a table of coordinates, and every check that fired."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.diagnostics.bias_checks import Named, bias_checks
from isotherm.diagnostics.chains import checks_at_once, close_starts, disagreement, projections
from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.positions import Shapes, coordinate_name, of_small_leaves, shapes_of
from isotherm.foundation.printable import printable
from isotherm.run.headline import time_of
from isotherm.run.run import Run

# Coordinates whose R-hat and errors are judged, and that are shown: all, or some of a large position, of which leaves of a few
# numbers, such as scales, always are.
_MAX_JUDGED, _MAX_ROWS, _ROWS_OF_LARGE, _FEW = 1_000, 50, 20, 4
# Checks of an estimate that a summary replaces by more precise ones of its own.
_REPLACED = {checks.UNKNOWN_BIAS.name, checks.WRONG_TEMPERATURE.name}


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
    """Rows of coordinates, and checks.

    All honor the weights of draws; errors, effective draws and R-hat are those of `Run.estimate`. An error that is unknown is NaN,
    and a check says why. Samplers that descend, and follow no distribution, have no errors, effective draws or R-hat: these are
    NaN.

    Attributes:
        rows: the coordinates of the table.
        headline: what was run, and how long it took.
        checks: everything that is wrong with the run.
        num_coordinates: of a position.
    """

    rows: list[Coordinate]
    headline: str
    checks: list[Check]
    num_coordinates: int = 0

    @property
    def notes(self) -> list[str]:
        """The headline, and the checks in words."""
        return [self.headline, *map(str, self.checks)]

    def __str__(self) -> str:
        width = max([10, *(len(row.name) for row in self.rows)])
        lines = [f"{'coordinate':{width}} {'mean':>11} {'error':>9} {'sd':>11} {'ess':>9} {'r_hat':>7}"]
        lines += [f"{n:{width}} {m:11.4g} {x:9.2g} {s:11.4g} {e:9.0f} {r:7.3f}" for n, m, x, s, e, r in self.rows]
        if self.num_coordinates > len(self.rows):
            lines.append(
                f"... {len(self.rows)} of {self.num_coordinates:,} coordinates: small leaves, and the largest R-hat"
            )
        return printable("\n".join([*lines, *(f"- {note}" for note in self.notes)]))

    def as_json(self) -> dict[str, Any]:
        """The summary in types that JSON can hold."""
        rows = [row._asdict() for row in self.rows]
        return {"headline": self.headline, "rows": rows, "checks": [check.as_json() for check in self.checks]}


def summary_of(run: Run) -> Summary:
    """Weighted means, their errors and standard deviations, and the checks.

    Of a large position some coordinates are judged. Shown are those of small leaves, and those on which chains agree least.
    """
    shapes = shapes_of(run.draws, run.log_weights.ndim)
    size = sum(math.prod(shape) for shape in shapes.values())
    has_law = run.claims_distribution and not run.has_died
    if size == 0:
        return Summary([], _headline(run), _checks_of_run(run))
    few = of_small_leaves(shapes, _FEW)[:_ROWS_OF_LARGE]
    judged = np.unique(np.concatenate([few, np.linspace(0, size - 1, min(size, _MAX_JUDGED)).astype(int)]))

    def coordinates(x):
        leaves = [leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(x)]
        return jnp.concatenate(leaves)[judged]

    found = run.estimate(coordinates)
    known = _REPLACED | ({check.name for check in run.distribution_checks} if has_law else set())
    found = found._replace(checks=tuple(check for check in found.checks if check.name not in known))
    nothing = np.full_like(found.mean, np.nan)
    columns = (found.mean, found.std_error, found.spread, found.effective_draws, found.r_hat)
    if not run.claims_distribution:
        columns = (found.mean, nothing, found.spread, nothing, nothing)
    first = np.isin(judged, few if size > _MAX_ROWS else judged)
    number = _MAX_ROWS if size <= _MAX_ROWS else max(_ROWS_OF_LARGE, len(few))
    worst = np.sort(np.lexsort((-np.nan_to_num(found.r_hat, nan=0.0), ~first))[:number])
    rows = [
        Coordinate(coordinate_name(shapes, int(judged[place])), *(float(part[place]) for part in columns))
        for place in worst
    ]
    if not has_law:
        return Summary(rows, _headline(run), _checks_of_run(run), size)
    limits = list(found.checks) or projections(run, judged, found)
    all_checks = [*_checks_of_run(run), *_bias(run, shapes), *limits, *disagreement(run, judged, found)]
    return Summary(rows, _headline(run) + _agreement(shapes, judged, found.r_hat), all_checks, size)


def _checks_of_run(run: Run) -> list[Check]:
    """What is wrong with the run, its starts, its parts and its weights."""
    found = checks_at_once(run)
    if "diverged_at" not in run.stats or run.has_died:
        return found
    found += [*run.distribution_checks, *close_starts(run)]
    found += [check for check in run.part_checks if not check.affects_estimates]
    total, effective = int(run.log_weights.size), run.effective_sample_size()
    if effective < checks.FEW_WEIGHTS.limit * total:
        text = f"A few draws carry the weight: effectively about {effective:.0f} out of {total}."
        remedy = "Run longer, or lengthen the burn-in (`burn_in`)" + ", or flatten less (`zeta`)" * (
            "theta" in run.stats
        )
        found.append(checks.FEW_WEIGHTS.found(text, f"{remedy}.", effective_draws=effective, share=effective / total))
    return found


def _bias(run: Run, shapes: Shapes) -> list[Check]:
    """The bias of step size and gradient noise, or why it cannot be measured."""
    if run.bias is not None:
        names = [f"`{coordinate_name(shapes, place)}`" for place in run.bias.coordinates]
        rejected = float(np.mean(run.stats.get("num_rejected", 0.0))) / run.num_steps
        has_batches = run.config.get("batch_size") is not None
        return bias_checks(run.bias, Named(names, list(shapes), rejected, has_batches, run.are_particles))
    is_collected = run.config.get("collect") not in (None, "identity") and not run.config.get("is_constrained")
    if not run.config.get("temperature") or not (is_collected or run.config.get("is_streamed")):
        return []
    text = (
        "The bias of the step size and of mini-batches is not measured where data stream from a large file, or positions are not "
        "recorded as they are (`collect`)."
    )
    return [checks.UNMEASURED_BIAS.found(text, "Compare with a run at half the step size.")]


def _headline(run: Run) -> str:
    total = int(run.log_weights.size)
    began = f"{total} draws of {run.name or 'a sampler'} in {run.num_steps} iterations: {time_of(run)}."
    if run.claims_distribution:
        return began
    best = ' The lowest energy is at `run.stats["best_position"]`.' * ("best_position" in run.stats)
    return f"{began} The sampler looks for low energies and follows no distribution: these are points on its way.{best}"


def _agreement(shapes: Shapes, judged: np.ndarray, r_hat: np.ndarray) -> str:
    """The largest R-hat, which a reader may judge by another rule than ours."""
    if not np.any(np.isfinite(r_hat)):
        return ""
    worst = int(np.nanargmax(r_hat))
    return f" Largest R-hat: {r_hat[worst]:.3f}, of `{coordinate_name(shapes, int(judged[worst]))}`."
