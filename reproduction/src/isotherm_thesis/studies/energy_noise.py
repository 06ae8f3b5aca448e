"""Estimates under energy noise, and whether a run says what noise did: `python -m isotherm_thesis.studies.energy_noise`.

Exact energies with Gaussian noise of .25 to 8 temperatures, and mini-batches of a conjugate model, each in 1 to 20 dimensions,
under Langevin, replica exchange and contour samplers. Every estimate, the mean over two seeds, is compared with the exact value
and gets a verdict:

    right    within 4 standard errors, of the estimate and of its claimed bias
    noted    further off, and the estimate or the summary of its run says what is wrong; or of unknown error, which is noted
    refused  the library would not give it
    silent   further off, and nothing says so

Cells are added to reproduction/results/energy-noise.json one by one; a cell in the record is not run again. `--only` takes those
whose names contain a text, `--again` runs them anew, `--list` prints the names, and
`--table` the tables of the documentation.
"""

import argparse
import dataclasses
import functools
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.contour import Partition
from isotherm.engine import program_cache
from isotherm.potentials import with_noise
from isotherm.potentials.potential import Evaluation, Potential
from isotherm_thesis.paths import RESULTS

RECORD = RESULTS / "energy-noise.json"
NUM_SEEDS, NUM_CHAINS, MAX_Z = 2, 4, 4.0
MASS, APART, TO = 0.3, 1.5, 1.5
NOISES, DIMENSIONS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0), (1, 2, 5, 20)
MAX_SHOWN = 160
WORDS = ("right", "noted", "refused", "silent")
NUM_DATA, BATCHES = 1_000, (500, 100, 30, 10)
# Notes on something else than noise.
_HARMLESS = ("draws of ", "All chains started at one point")


@dataclasses.dataclass(frozen=True, eq=False)
class Pair(Potential):
    """Two normal distributions of unit width at -apart and apart on the first axis, of masses 1 - MASS and MASS."""

    apart: float

    def evaluate(self, position, batch, noise, model_state):
        """The exact energy, minus the log density up to a constant."""
        first = position[0]
        ends = (jnp.log(1 - MASS) - 0.5 * (first + self.apart) ** 2, jnp.log(MASS) - 0.5 * (first - self.apart) ** 2)
        energy = 0.5 * jnp.sum(position[1:] ** 2) - jnp.logaddexp(*ends)
        return Evaluation(energy, jnp.zeros_like(energy), model_state)


@dataclasses.dataclass(frozen=True)
class Cell:
    """A sampler on a target, with noise.

    Attributes:
        sampler: its name; "auto" behind it has a pilot find the bins of a contour.
        target: "normal", "two modes", "independent" or "epochs"; the last two are batches of data.
        dimension: of the position.
        noise: standard deviation of the energy in temperatures, or the size of a batch.
    """

    sampler: str
    target: str
    dimension: int
    noise: float

    @property
    def has_data(self) -> bool:
        """Whether noise is that of mini-batches."""
        return self.target in ("independent", "epochs")

    @property
    def is_contour(self) -> bool:
        """Whether the sampler flattens the energy."""
        return self.sampler.startswith(("icsgld", "csghmc"))

    @property
    def name(self) -> str:
        """For the record."""
        kind = "batches" if self.has_data else "noise"
        return f"{self.sampler}, {self.target}, d = {self.dimension}, {kind} {self.noise:g}"


def cells() -> list[Cell]:
    """All of them, those of one program next to each other."""
    found = [Cell("icsgld", "two modes", d, noise) for d in (1, 2, 20) for noise in NOISES]
    found += [Cell("resgld", "two modes", d, noise) for d in (1, 2, 20) for noise in NOISES]
    found += [Cell("icsgld auto", "two modes", 2, noise) for noise in (0.25, 0.5, 1.0, 4.0)]
    found += [Cell("csghmc", "two modes", d, noise) for d in (2, 20) for noise in (0.5, 1.0, 4.0)]
    found += [Cell("resghmc", "two modes", d, noise) for d in (2, 20) for noise in (0.5, 2.0, 8.0)]
    found += [Cell(name, "two modes", 5, noise) for name in ("icsgld", "resgld") for noise in (0.5, 1.0, 4.0)]
    found += [Cell(name, "normal", 20, noise) for name in ("icsgld", "resgld") for noise in (1.0, 4.0)]
    found += [Cell("sgld", "two modes", d, noise) for d in (1, 20) for noise in (1.0, 8.0)]
    for sampler in ("vr_resgld", "icsgld auto", "resgld"):
        found += [Cell(sampler, target, 2, size) for target in ("independent", "epochs") for size in BATCHES]
    for sampler in ("csghmc auto", "sgld", "resghmc"):
        found += [Cell(sampler, target, 2, 100) for target in ("independent", "epochs")]
    for dimension in (1, 20):
        found += [Cell(name, "independent", dimension, 100) for name in ("resgld", "vr_resgld", "icsgld auto")]
    return found


def exact_values(apart: float, dimension: int, to: float) -> dict[str, float]:
    """What is true of `Pair`, in closed form and by quadrature."""
    grid = np.linspace(-20.0, 20.0, 200_001)
    ends = np.log(1 - MASS) - 0.5 * (grid + apart) ** 2, np.log(MASS) - 0.5 * (grid - apart) ** 2
    energy = -np.logaddexp(*ends)
    dense, hot = np.exp(-energy), np.exp(-energy / to)
    mean, rest = (2 * MASS - 1) * apart, dimension - 1
    return {
        "square": 1.0 + apart**2 / dimension,
        "variance": 1.0 + apart**2 - mean**2,
        "mass": float(np.sum(dense[grid > 0]) / np.sum(dense)),
        "log_z_ratio": float(np.log(hot.sum() / dense.sum())) + 0.5 * rest * np.log(to),
        "reweighted": float((np.sum(grid**2 * hot) / np.sum(hot) + rest * to) / dimension),
        "center": mean,
    }


def exact_values_of_data(data: np.ndarray, to: float) -> dict[str, float]:
    """What is true of the posterior of a location, N(0, 1) before the data."""
    number, dimension = data.shape
    center = data.sum(axis=0) / (number + 1)
    # Energies at the center count in the ratio of two integrals, those far from it as in any normal distribution.
    lowest = 0.5 * np.sum((data - center) ** 2) + 0.5 * np.sum(center**2)
    return {
        "square": 1.0,
        "variance": 1.0,
        "log_z_ratio": float((1.0 - 1.0 / to) * lowest + 0.5 * dimension * np.log(to)),
        "reweighted": to,
    }


def verdict_of(z: float, has_notes: bool) -> str:
    """Of an estimate that is so many standard errors off; NaN where that is unknown."""
    if np.isfinite(z) and abs(z) < MAX_Z:
        return "right"
    return "noted" if has_notes else "silent"


def _partition(cell: Cell) -> Partition:
    """Bins as a pilot would make them, as many for every noise, so that these share a program."""
    spread = np.sqrt(cell.dimension / 2)
    width = max(0.5 * spread, cell.noise)
    return Partition(0.5 * cell.dimension - 3 * spread - 40 * width, width, 160)


def _sampler(cell: Cell, step: float) -> Any:
    name = cell.sampler.split()[0]
    temperatures = (1.0, 1.5, 2.25) if cell.dimension > 5 else (1.0, 2.0, 4.0)
    momentum = 0.1 * step
    if name == "sgld":
        return iso.sgld(step)
    if name in ("icsgld", "csghmc"):
        bins = "auto" if "auto" in cell.sampler else _partition(cell)
        return iso.icsgld(step, partition=bins) if name == "icsgld" else iso.csghmc(momentum, partition=bins)
    if name == "resghmc":
        return iso.resghmc(momentum, temperatures=temperatures)
    make = {"resgld": iso.resgld, "vr_resgld": iso.vr_resgld}[name]
    return make(step, temperatures=temperatures)


def _problem(cell: Cell) -> tuple[Any, Callable, dict[str, Callable], dict[str, float], float, int]:
    """Potential, starts, functions, truths, the step size and the number of steps."""
    d = cell.dimension
    if not cell.has_data:
        apart = APART if cell.target == "two modes" else 0.0
        truth = exact_values(apart, d, TO)
        inner = Pair(apart)
        potential = with_noise(inner, energy_scale=cell.noise) if cell.noise else inner

        def start(key):
            side = jnp.where(jax.random.uniform(jax.random.fold_in(key, 1)) < MASS, apart, -apart)
            return jax.random.normal(key, (d,)).at[0].add(side)

        functions = {
            "square": lambda x: jnp.mean(x**2),
            "variance": lambda x: (x[0] - truth["center"]) ** 2,
            "mass": lambda x: (x[0] > 0).astype(float),
        }
        return potential, start, functions, truth, 0.03, 400_000
    rng = np.random.default_rng(7)
    data = rng.standard_normal((NUM_DATA, d)).astype(np.float32)
    truth = exact_values_of_data(data.astype(np.float64), TO)
    size = int(cell.noise)
    potential = iso.from_likelihood(
        lambda x, y: -0.5 * jnp.sum((y - x) ** 2, axis=-1),
        lambda x: -0.5 * jnp.sum(x**2),
        data,
        batch_size=size,
        batching=cell.target,
    )
    center, scale = jnp.asarray(data.sum(axis=0) / (NUM_DATA + 1)), (NUM_DATA + 1) ** 0.5
    gradient_variance = NUM_DATA**2 * (1 / size - 1 / NUM_DATA)
    # Batches widen the spread by about 2 %, or the step does.
    step = 0.04 / (gradient_variance + 2 * NUM_DATA)
    functions = {
        "square": lambda x: jnp.mean(((x - center) * scale) ** 2),
        "variance": lambda x: ((x - center)[0] * scale) ** 2,
    }
    start = lambda key: center + jax.random.normal(key, (d,)) / scale  # noqa: E731
    # Swaps on batches are what epochs disturb, by a few percent.
    is_long = cell.sampler == "resgld" and d == 2 and size <= 100
    return potential, start, functions, truth, step, 200_000 if is_long else 100_000


def _row(ask: Callable[[], Any], truth: float, notes: list[str]) -> dict[str, Any]:
    """One estimate beside the truth."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found = ask()
        except (ValueError, TypeError) as error:
            return {"verdict": "refused", "why": str(error)[:200], "truth": truth}
    numbers = [float(part) for part in (found.mean, found.std_error, found.bias, found.bias_error)]
    value, error, bias, bias_error = numbers
    off = value - np.nan_to_num(bias) - truth
    z = off / np.hypot(error, np.nan_to_num(bias_error)) if np.isfinite(error) else np.nan
    low, high = (float(end) for end in found.interval(0.95))
    # Those of the summary are kept once.
    own = _short([*found.notes, *(str(each.message) for each in heard)])
    shown = dict(zip(("value", "std_error", "bias", "bias_error"), numbers, strict=True))
    shown |= {"low": low, "high": high, "truth": truth, "z": float(z)}
    verdict = verdict_of(float(z), bool(own or notes))
    shown = {name: float(f"{value:.6g}") for name, value in shown.items()}
    return shown | {"notes": [note for note in own if note not in notes], "verdict": verdict}


def _short(notes: Sequence[str]) -> list[str]:
    return [note[:MAX_SHOWN] for note in dict.fromkeys(notes)]


def _estimate_at(run: Any, function: Callable[[Any], Any]) -> Any:
    return run.reweighted(TO).estimate(function)


def run_cell(cell: Cell) -> dict[str, Any]:
    """All estimates of a cell, of every seed."""
    potential, start, functions, truth, step, num_steps = _problem(cell)
    began = time.perf_counter()
    sampler = _sampler(cell, step)
    if cell.is_contour:
        # Their weights are looked at chain by chain, which costs more than the chains.
        number = {"num_chains": NUM_CHAINS // 2}
    else:
        number = {"num_ladders" if "res" in cell.sampler else "num_chains": NUM_CHAINS}
    settings: dict[str, Any] = {
        "num_steps": num_steps,
        "burn_in": num_steps // 20,
        "thinning": num_steps // 4000,
        "progress": False,
    }
    settings |= number
    try:
        together = iso.sample(potential, sampler, init=start, num_runs=NUM_SEEDS, **settings)
    except ValueError as error:
        return {"name": cell.name, **dataclasses.asdict(cell), "refused": str(error)[:300], "runs": []}
    runs = []
    for run in together.split_runs():
        summary = _short([note for note in run.summary().notes if not any(text in note for text in _HARMLESS)])
        asked: dict[str, Callable[[], Any]] = {
            name: functools.partial(run.estimate, function) for name, function in functions.items()
        }
        asked["reweighted"] = functools.partial(_estimate_at, run, functions["square"])
        if cell.is_contour:
            asked["log_z_ratio"] = functools.partial(run.log_z_ratio, TO)
        rows = {name: _row(ask, truth[name], summary) for name, ask in asked.items()}
        stats = {}
        for name in ("energy_noise", "noise_times_slope", "variance_of_difference", "swap_rate"):
            if name in run.stats:
                stats[name] = np.atleast_1d(np.asarray(run.stats[name], np.float64)).mean(axis=0).ravel().tolist()
        left = run.config.get("weight_error")
        runs.append({"rows": rows, "notes": summary, "stats": stats, "weight_error": left})
    seconds = round(time.perf_counter() - began, 1)
    return {"name": cell.name, **dataclasses.asdict(cell), "seconds": seconds, "runs": runs}


class Pooled(NamedTuple):
    """The mean over the seeds of a cell.

    Attributes:
        off: from the truth, without the claimed bias.
        error: its standard error; NaN where that is known of no seed.
        verdict: of both together.
    """

    off: float
    error: float
    verdict: str


def pooled(cell: dict[str, Any], quantity: str) -> Pooled:
    """One quantity of a cell; seeds whose error is unknown are left out where there are others."""
    rows = [run["rows"][quantity] for run in cell["runs"]]
    if any(row["verdict"] == "refused" for row in rows):
        return Pooled(np.nan, np.nan, "refused")
    off = np.array([row["value"] - np.nan_to_num(row["bias"]) - row["truth"] for row in rows])
    error = np.array([np.hypot(row["std_error"], np.nan_to_num(row["bias_error"])) for row in rows])
    is_known = np.isfinite(error)
    kept = is_known if np.any(is_known) else np.ones_like(is_known)
    mean, total = float(np.mean(off[kept])), float(np.sqrt(np.sum(error[kept] ** 2)) / np.sum(kept))
    has_notes = any(run["notes"] or run["rows"][quantity]["notes"] for run in cell["runs"])
    return Pooled(mean, total, verdict_of(mean / total, has_notes))


def counts(record: dict[str, Any]) -> dict[tuple[str, str], Counter]:
    """Verdicts of cells by sampler and quantity."""
    found: dict[tuple[str, str], Counter] = {}
    for cell in record["cells"]:
        sampler = cell["sampler"].split()[0]
        if "refused" in cell:
            found.setdefault((sampler, "all"), Counter())["refused"] += 1
            continue
        for quantity in cell["runs"][0]["rows"]:
            found.setdefault((sampler, quantity), Counter())[pooled(cell, quantity).verdict] += 1
    return found


def counts_table(record: dict[str, Any]) -> str:
    """Right, noted, refused and silent estimates by sampler and quantity, in Markdown."""
    found = counts(record)
    names = ("square", "variance", "mass", "log_z_ratio", "reweighted")
    lines = [f"| sampler | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for sampler in sorted({sampler for sampler, _ in found}):
        cells = [found.get((sampler, name), Counter()) for name in names]
        shown = [" / ".join(str(cell[word]) for word in WORDS) if cell else "" for cell in cells]
        lines.append(f"| {sampler} | {' | '.join(shown)} |")
    return "\n".join(lines)


def offs_table(record: dict[str, Any], sampler: str, target: str, dimension: int, quantities: tuple[str, ...]) -> str:
    """How far the mean of a cell's seeds is from the truth, without its claimed bias, at every noise, in Markdown."""
    noise = "batch size" if target in ("independent", "epochs") else "noise"
    lines = [f"| {noise} | {' | '.join(quantities)} |", "|---" * (len(quantities) + 1) + "|"]
    same = {"sampler": sampler, "target": target, "dimension": dimension}
    chosen = [cell for cell in record["cells"] if all(cell[name] == value for name, value in same.items())]
    for cell in sorted(chosen, key=lambda cell: cell["noise"]):
        shown = []
        for quantity in quantities:
            off, error, verdict = pooled(cell, quantity)
            width = f" ± {error:.2g}" if np.isfinite(error) else ""
            shown.append(f"{off:+.3f}{width}{'' if verdict == 'right' else ', ' + verdict}")
        lines.append(f"| {cell['noise']:g} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _load() -> dict[str, Any]:
    return json.loads(RECORD.read_text()) if RECORD.exists() else {"cells": []}


def _save(record: dict[str, Any]) -> None:
    """At once, for readers and for other processes that add to it."""
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n")
    part.replace(RECORD)


def _show(found: dict[str, Any]) -> None:
    words = [f"{found['name']} ({found.get('seconds', 0)} s)"]
    for number, run in enumerate(found["runs"]):
        for quantity, row in run["rows"].items():
            if row["verdict"] != "right":
                words.append(
                    f"    {number} {quantity:12} {row['verdict']:8}"
                    + (
                        f" {row['value']:.5g} ± {row['std_error']:.2g} bias {row['bias']:.3g} ± {row['bias_error']:.2g}"
                        f" truth {row['truth']:.5g} z {row['z']:.1f}"
                        if "value" in row
                        else row["why"]
                    )
                )
    print("\n".join(words), flush=True)


def main() -> None:
    """Every cell that is not in the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="texts, one of which a name must hold")
    parser.add_argument("--again", action="store_true", help="run cells that the record holds")
    parser.add_argument("--list", action="store_true", help="print names")
    parser.add_argument("--table", action="store_true", help="print the tables of the documentation")
    given = parser.parse_args()
    chosen = [cell for cell in cells() if any(text in cell.name for text in given.only)]
    if given.list:
        print("\n".join(cell.name for cell in chosen))
        return
    if given.table:
        print(counts_table(_load()))
        quantities = ("square", "mass", "reweighted", "log_z_ratio")
        for sampler, target, dimension, number in (
            ("icsgld", "two modes", 2, 4),
            ("resgld", "two modes", 2, 2),
            ("resgld", "epochs", 2, 1),
            ("resgld", "independent", 2, 1),
        ):
            print(f"\n{sampler}, {target}, d = {dimension}")
            print(offs_table(_load(), sampler, target, dimension, quantities[:number]))
        return
    last = None
    for cell in chosen:
        if not given.again and cell.name in {row["name"] for row in _load()["cells"]}:
            continue
        group = (cell.sampler, cell.has_data, cell.dimension)
        if group != last:
            # A process may hold only so many programs.
            program_cache.forget()
            jax.clear_caches()
        last = group
        found = run_cell(cell)
        _show(found)
        # Read again, should another process have added to it.
        kept = [row for row in _load()["cells"] if row["name"] != cell.name]
        _save({"cells": [*kept, found]})


if __name__ == "__main__":
    main()
