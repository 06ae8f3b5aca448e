"""A run in words: a headline, a table of coordinates, and the checks."""

import dataclasses
import html
import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from isotherm.diagnostics.bias_checks import bias_checks
from isotherm.diagnostics.chains import checks_without_draws, close_starts, disagreement, projections
from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.positions import coordinate_name, of_small_leaves, shapes_of
from isotherm.foundation.printable import printable
from isotherm.kernels.acceptance import acceptance
from isotherm.run.run import Run
from isotherm.run.storage.saving import TIMINGS

# Coordinates of a large position: how many are judged and shown. Leaves of few numbers, such as scales, always are.
_MAX_JUDGED, _MAX_ROWS, _ROWS_OF_LARGE, _FEW = 1_000, 50, 20, 4
# Leaves that a headline names.
_MAX_LEAVES = 4
# Checks of an estimate that the summary replaces by more precise ones.
_REPLACED = {checks.UNKNOWN_BIAS.name, checks.WRONG_TEMPERATURE.name}


class Coordinate(NamedTuple):
    """A row of the table."""

    name: str
    mean: float
    std_error: float
    sd: float
    effective_draws: float
    r_hat: float


@dataclasses.dataclass(frozen=True)
class Summary:
    """Weighted means of coordinates with errors, effective draws and R-hat as `Run.estimate` gives them, and checks.

    An unknown error is NaN, and a check says why. Samplers that follow no distribution have no errors, effective draws or R-hat,
    which are NaN.

    Attributes:
        rows: the coordinates of the table.
        headline: the sampler, iterations and times.
        checks: warnings about the run.
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
            counts = f"{len(self.rows)} of {self.num_coordinates:,}"
            lines.append(f"... {counts} coordinates: small leaves, and the largest R-hat")
        return printable("\n".join([*lines, *(f"- {note}" for note in self.notes)]))

    def as_json(self) -> dict[str, Any]:
        """The summary in types that JSON can hold."""
        rows = [row._asdict() for row in self.rows]
        return {"headline": self.headline, "rows": rows, "checks": [check.as_json() for check in self.checks]}


def summary_of(run: Run) -> Summary:
    """See `Run.summary`. Of a large position, small leaves and the coordinates of largest R-hat are shown."""
    shapes = shapes_of(run.draws, run.log_weights.ndim)
    size = sum(math.prod(shape) for shape in shapes.values())
    if size == 0:
        return Summary([], _headline(run), _checks_of_run(run))
    has_law = run.claims_distribution and not run.has_died
    few = of_small_leaves(shapes, _FEW)[:_ROWS_OF_LARGE]
    judged = np.unique(np.concatenate([few, np.linspace(0, size - 1, min(size, _MAX_JUDGED)).astype(int)]))

    found = run.estimate(lambda x: ravel_pytree(jax.tree.map(lambda leaf: leaf.astype(float), x))[0][judged])
    known = _REPLACED | ({check.name for check in run.distribution_checks} if has_law else set())
    found = found._replace(checks=tuple(check for check in found.checks if check.name not in known))
    nothing = np.full_like(found.mean, np.nan)
    columns = (found.mean, found.std_error, found.spread, found.effective_draws, found.r_hat)
    if not run.claims_distribution:
        columns = (found.mean, nothing, found.spread, nothing, nothing)
    first = np.isin(judged, few if size > _MAX_ROWS else judged)
    number = _MAX_ROWS if size <= _MAX_ROWS else max(_ROWS_OF_LARGE, len(few))
    worst = np.sort(np.lexsort((-np.nan_to_num(found.r_hat, nan=0.0), ~first))[:number])
    names = [coordinate_name(shapes, int(place)) for place in judged]
    rows = [Coordinate(names[place], *(float(part[place]) for part in columns)) for place in worst]
    headline, all_checks = _headline(run), _checks_of_run(run)
    if has_law:
        if np.any(np.isfinite(found.r_hat)):
            largest = int(np.nanargmax(found.r_hat))
            headline += f" Largest R-hat: {found.r_hat[largest]:.3f}, of `{names[largest]}`."
        limits = list(found.checks) or projections(run, judged, found)
        all_checks += [*bias_checks(run), *limits, *disagreement(run, judged, found)]
    return Summary(rows, headline, all_checks, size)


def _checks_of_run(run: Run) -> list[Check]:
    """Checks of the run, its starts, its parts and its weights."""
    found = checks_without_draws(run)
    if "diverged_at" not in run.stats or run.has_died:
        return found
    found += [*run.distribution_checks, *close_starts(run)]
    found += [check for check in run.part_checks if not check.affects_estimates]
    total, effective = int(run.log_weights.size), run.effective_sample_size()
    if effective < checks.FEW_WEIGHTS.limit * total:
        text = f"A few draws carry the weight: effectively about {effective:.0f} out of {total}."
        remedy = "Run longer, or lengthen the burn-in (`burn_in`)"
        remedy += ", or flatten less (`zeta`)." if "theta" in run.stats else "."
        found.append(checks.FEW_WEIGHTS.found(text, remedy, effective_draws=effective, share=effective / total))
    return found


def _headline(run: Run) -> str:
    total = int(run.log_weights.size)
    devices = run.config.get("num_devices", 1)
    where = f" on {devices} devices" if devices > 1 else ""
    began = f"{total} draws of {run.name or 'a sampler'} in {run.num_steps} iterations{where}: {time_of(run)}."
    if run.is_adjusted and (rates := acceptance(run.stats, run.num_steps)) is not None:
        # Of a ladder, that of the target.
        rate = rates[0] if "num_moves" in run.stats else rates.mean()
        began += f" {rate:.0%} of the proposals were accepted; the Metropolis test leaves no bias from the step size."
    if run.claims_distribution:
        return began
    best = ' The lowest energy is at `run.stats["best_position"]`.' * ("best_position" in run.stats)
    return f"{began} The sampler searches for low energies and follows no distribution.{best}"


def time_of(run: Any) -> str:
    """The seconds of a run by what they were spent on. Zeros are left out, except for sampling.

    Example:
        >>> from types import SimpleNamespace
        >>> time_of(SimpleNamespace(seconds=2.5, compile_seconds=1.25, pilot_seconds=0.0, earlier_seconds=60.0))
        '2.5 s of sampling, 1.25 s of compiling, 60 s before it was resumed'
    """
    seconds = {name: getattr(run, name) for name in TIMINGS}
    return ", ".join(f"{value:.3g} s {TIMINGS[name]}" for name, value in seconds.items() if value or name == "seconds")


def headlines(run: Run) -> list[str]:
    """Five lines that need no draw to be read: sampler and potential, sizes, steps, time, and the number of warnings."""
    *runs, chains, draws = run.log_weights.shape
    config, settings = run.config, run.config.get("settings", {})
    texts = config.get("texts", {})
    sampler = texts.get("sampler") or config["sampler"].get("name") or "a sampler"
    potential = texts.get("potential") or config.get("potential", {}).get("class", "a potential")
    shapes = shapes_of(run.draws, run.log_weights.ndim)
    leaves = [f"{name}{list(shape)}" if shape else name for name, shape in shapes.items()]
    more = f" and {len(leaves) - _MAX_LEAVES} more" * (len(leaves) > _MAX_LEAVES)
    sizes = " x ".join([*(f"{number} runs" for number in runs), f"{chains} chains", f"{draws} draws"])
    number = len(checks_without_draws(run))
    lines = [
        f"Run of {sampler} on {potential}",
        f"{sizes} of {', '.join(leaves[:_MAX_LEAVES])}{more}",
        f"{run.num_steps} steps, thinning {settings.get('thinning', 1)}, burn-in {settings.get('burn_in', 0)}",
        time_of(run),
        f"{number or 'no'} warning{'s' * (number != 1)} so far: see summary(), which reads the draws too",
    ]
    # Texts and names in a folder may hold control characters.
    return [printable(line) for line in lines]


def html_table(run: Run) -> str:
    """`headlines` as a small table for notebooks."""
    first, *others = map(html.escape, headlines(run))
    rows = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{line}</td></tr>'
        for name, line in zip(("draws", "steps", "time", "notes"), others, strict=True)
    )
    return f"<div><strong>{first}</strong><table>{rows}</table></div>"
