"""`iso.sample(problem, budget=...)` with no setting touched, beside NUTS, tempered SMC, dynesty and nautilus.

`python -m isotherm_thesis.studies.automatic` adds rows to reproduction/results/automatic.jsonl, one for each problem, tool and
seed; a row in the record is not run again. `--only`, `--tools` and `--seeds` choose rows, `--again` runs them anew, `--seconds`
ends the study before its next process, `--list` prints the names, and `--table` the tables. Every tool has a process of its own
for every problem; seconds include compilation, which every seed pays.

An answer is silent if it is off by more than 4 stated errors and by more than .02 of mass or .05 standard deviations of the
quantity, and no note of the tool says that anything is wrong.
"""

import argparse
import dataclasses
import importlib.util
import json
import multiprocessing
import os
import pathlib
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import isotherm as iso
from isotherm.potentials.potential import Potential
from isotherm_thesis.paths import RESULTS
from isotherm_thesis.studies import automatic_problems
from isotherm_thesis.studies.automatic_problems import Problem
from isotherm_thesis.studies.automatic_rivals import RIVALS, Answer, Estimate, takes

RECORD = RESULTS / "automatic.jsonl"
OURS = "isotherm"
TOOLS = (OURS, *RIVALS)
# Checks on the starts say nothing about the answer.
HARMLESS = ("one-start", "close-starts")
FRESH = "isotherm_thesis.studies.automatic_fresh"
# Gradients that ours may take, of batches where there are batches: about what NUTS and SMC take.
BUDGET = 1_000_000
# Seconds of CPU, and of the clock, after which a run is ended: other work may share the cores.
MAX_CPU_SECONDS, MAX_SECONDS = 300, 1_800
MAX_Z, MAX_MASS, MAX_MOMENT, MAX_LOG_Z = 4.0, 0.02, 0.05, 0.2


def builders() -> dict[str, Callable[[], Problem]]:
    """All problems by name: those of `automatic_problems`, then the fresh ones."""
    found = dict(automatic_problems.BUILDERS)
    if importlib.util.find_spec(FRESH) is not None:
        for problem in importlib.import_module(FRESH).PROBLEMS:
            found[problem.name] = lambda problem=problem: problem
    return found


def given_to_ours(problem: Problem) -> Potential:
    """A problem as a user of the library writes it: the prior is the reference."""
    prior = problem.prior
    if problem.per_example is None:
        energy = lambda x: -problem.log_likelihood(x) - prior.log_density(x)  # noqa: E731
        return iso.with_reference(energy, prior.draw, prior.log_density)
    likelihood = iso.from_likelihood(
        problem.per_example, log_prior=prior.log_density, data=problem.data, batch_size=problem.batch_size
    )
    return iso.with_reference(likelihood, prior.draw)


def ours(problem: Problem, seed: int) -> Answer:
    """The library's own sampler, with no setting."""
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run = iso.sample(given_to_ours(problem), init=problem.start, budget=BUDGET, seed=seed, progress=False)
        sampled = time.perf_counter() - began
        checks = run.checks
        estimates = {}
        for one in problem.quantities:
            found = run.estimate(one.function)
            low, high = found.interval(0.95)
            notes = tuple(short(note) for note in found.notes)
            estimates[one.name] = Estimate(
                float(found.mean), float(found.std_error), float(low), float(high), float(found.effective_draws), notes
            )
        log_z, notes = None, [short(f"{check.name}: {check}") for check in checks if check.name not in HARMLESS]
        try:
            evidence = run.log_evidence()
        except ValueError as error:
            notes_of_z = (short(str(error)),)
        else:
            log_z, notes_of_z = (float(evidence.mean), float(evidence.std_error)), evidence.notes
    # Warnings of other libraries say nothing about the answer; they are recorded as faults.
    is_own = [one.category.__module__.startswith("isotherm") for one in heard]
    notes += [short(f"warning: {one.message}") for one, own in zip(heard, is_own, strict=True) if own]
    told = {
        "sample_seconds": round(sampled, 1),
        "pilot_seconds": round(run.pilot_seconds, 1),
        "leaked": sorted(
            {
                short(f"{one.category.__name__}: {one.message}")
                for one, own in zip(heard, is_own, strict=True)
                if not own
            }
        ),
        "harmless": [check.name for check in checks if check.name in HARMLESS],
        "choices": [short(str(choice["reason"]), 600) for choice in run.choices],
        "notes_of_log_z": [short(note) for note in notes_of_z],
    }
    return Answer(estimates, log_z, BUDGET, tuple(notes), told)


def short(text: str, most: int = 160) -> str:
    """The beginning of a text, in one line."""
    return " ".join(text.split())[:most]


def _numbers(*values: float | None) -> list[float | None]:
    return [None if value is None or not np.isfinite(value) else float(f"{value:.6g}") for value in values]


def estimate_row(estimate: Estimate) -> dict[str, Any]:
    """For the record."""
    value, error, low, high, effective = _numbers(*dataclasses.astuple(estimate)[:5])
    row: dict[str, Any] = {"value": value, "error": error, "low": low, "high": high}
    row |= {} if effective is None else {"effective": effective}
    return row | ({"notes": list(estimate.notes)} if estimate.notes else {})


def row_of(problem: Problem, tool: str, seed: int) -> dict[str, Any]:
    """One run."""
    row: dict[str, Any] = {"problem": problem.name, "tool": tool, "seed": seed}
    began, began_cpu = time.perf_counter(), time.process_time()

    def times():
        return {
            "seconds": round(time.perf_counter() - began, 1),
            "cpu_seconds": round(time.process_time() - began_cpu, 1),
        }

    try:
        answer = (ours if tool == OURS else RIVALS[tool])(problem, seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        # The library refuses in one function; any other error of it is a crash.
        is_refusal = where.name == "refuse" if tool == OURS else isinstance(error, ValueError)
        kind = "refused" if is_refusal else "crashed"
        why = f"{type(error).__name__}: {error} ({pathlib.Path(where.filename).name}:{where.lineno})"
        return row | times() | {"failure": [kind, why[:500]]}
    row |= times()
    estimates = {name: estimate_row(estimate) for name, estimate in answer.estimates.items()}
    log_z = None if answer.log_z is None else _numbers(*answer.log_z)
    return row | {
        "evaluations": answer.evaluations,
        "log_z": log_z,
        "notes": list(answer.notes),
        "estimates": estimates,
        **answer.told,
    }


def _work(name: str, tool: str, seeds: list[int], results: Any) -> None:
    """What a process does: all seeds of a tool on a problem."""
    import jax

    from isotherm.engine import program_cache

    problem = builders()[name]()
    for seed in seeds:
        used = int(time.process_time()) + MAX_CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (used, resource.RLIM_INFINITY))
        program_cache.forget()
        jax.clear_caches()
        results.send(("began", seed))
        results.send(("row", row_of(problem, tool, seed)))
    results.send(("done", None))


def rows_of(name: str, tool: str, seeds: list[int]) -> Iterable[dict[str, Any]]:
    """The rows of one process, and of a seed in which it dies or takes too long."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    worker = context.Process(target=_work, args=(name, tool, seeds, sender), daemon=True)
    worker.start()
    sender.close()
    waiting, began = list(seeds), time.perf_counter()
    while True:
        is_late = not receiver.poll(max(MAX_SECONDS - (time.perf_counter() - began), 0))
        try:
            if is_late:
                raise EOFError
            kind, content = receiver.recv()
        except EOFError:
            if is_late:
                worker.kill()
            worker.join()
            why = ["crashed", f"the process ended with exit code {worker.exitcode}"]
            if is_late or worker.exitcode == -signal.SIGXCPU:
                why = ["late", f"no answer after {MAX_CPU_SECONDS} s of CPU or {MAX_SECONDS} s"]
            seconds = round(time.perf_counter() - began, 1)
            yield {"problem": name, "tool": tool, "seed": waiting[0], "seconds": seconds, "failure": why}
            if waiting[1:]:
                yield from rows_of(name, tool, waiting[1:])
            return
        if kind == "began":
            began = time.perf_counter()
        elif kind == "row":
            waiting.remove(content["seed"])
            yield content
        else:
            worker.join()
            return


def read(path: pathlib.Path) -> list[dict[str, Any]]:
    """The record; of two rows on one run the later one counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [json.loads(line) for line in lines if line.strip()]
    return list({(row["problem"], row["tool"], row["seed"]): row for row in rows}.values())


@dataclasses.dataclass(frozen=True)
class Verdict:
    """How right one row is.

    Attributes:
        masses: total variation of the masses, or NaN.
        moments: the largest error of a moment in its standard deviations, or NaN.
        log_z: its error, or NaN.
        covered: how many 95 % intervals hold the truth, of how many that are stated.
        silent: quantities that are wrong without a note.
    """

    masses: float
    moments: float
    log_z: float
    covered: tuple[int, int]
    silent: tuple[str, ...]


def verdict_of(problem: Problem, row: dict[str, Any]) -> Verdict:
    """Of a row that has estimates."""
    mass_errors, moment_errors, silent, covered, stated = [], [], [], 0, 0
    for quantity in problem.quantities:
        found = row["estimates"].get(quantity.name)
        value = np.nan if found is None or found["value"] is None else found["value"]
        off = value - quantity.truth
        (mass_errors if quantity.kind == "mass" else moment_errors).append(
            off if quantity.kind == "mass" else off / quantity.spread
        )
        if found is None:
            continue
        if found["low"] is not None and found["high"] is not None:
            stated += 1
            covered += found["low"] <= quantity.truth <= found["high"]
        limit = MAX_MASS if quantity.kind == "mass" else MAX_MOMENT * quantity.spread
        # A value that is not finite is no answer, and says so. An error that is not is unknown, not large.
        is_wrong = abs(off) > limit and (found["error"] is None or abs(off) > MAX_Z * found["error"])
        if is_wrong and not row["notes"] and not found.get("notes"):
            silent.append(quantity.name)
    log_z = np.nan
    if row["log_z"] is not None and row["log_z"][0] is not None and problem.log_z is not None:
        log_z, error = row["log_z"][0] - problem.log_z, row["log_z"][1] or 0.0
        is_noted = row["notes"] or row.get("notes_of_log_z")
        if abs(log_z) > max(MAX_LOG_Z, MAX_Z * error) and not is_noted:
            silent.append("log Z")
    # The rest of the mass is a set, too.
    masses = 0.5 * (np.sum(np.abs(mass_errors)) + abs(np.sum(mass_errors))) if mass_errors else np.nan
    moments = float(np.max(np.abs(moment_errors))) if moment_errors else np.nan
    return Verdict(float(masses), moments, float(log_z), (covered, stated), tuple(silent))


def _cell(rows: list[dict[str, Any]], verdicts: list[Verdict]) -> str:
    """Masses, moments and log Z of one tool on one problem, averaged over seeds, and what went wrong."""
    failures = [row["failure"][0] for row in rows if "failure" in row]
    parts = []
    if verdicts:
        means = [np.mean(np.abs([getattr(one, key) for one in verdicts])) for key in ("masses", "moments", "log_z")]
        parts.append(" ".join("-" if np.isnan(mean) else f"{mean:.3f}" for mean in means))
    if any(one.silent for one in verdicts):
        parts.append(f"**silent {sum(bool(one.silent) for one in verdicts)}**")
    noted = sum(bool(row.get("notes")) for row in rows)
    if noted:
        parts.append(f"noted {noted}")
    parts += [f"{kind} {failures.count(kind)}" for kind in sorted(set(failures))]
    return ", ".join(parts) or " "


def tables(rows: list[dict[str, Any]], only: str = "") -> str:
    """Per problem and tool; then sums per tool; then what is silently wrong."""
    lines = ["| problem | " + " | ".join(TOOLS) + " |", "|" + "---|" * (1 + len(TOOLS))]
    by_tool: dict[str, list[tuple[dict[str, Any], Verdict | None]]] = {tool: [] for tool in TOOLS}
    silent = []
    names = {row["problem"] for row in rows}
    for name, build in builders().items():
        if only not in name or name not in names:
            continue
        problem, cells = build(), []
        for tool in TOOLS:
            own = [row for row in rows if row["problem"] == name and row["tool"] == tool]
            verdicts = [None if "failure" in row else verdict_of(problem, row) for row in own]
            by_tool[tool] += zip(own, verdicts, strict=True)
            cells.append(_cell(own, [one for one in verdicts if one is not None]))
            for row, one in zip(own, verdicts, strict=True):
                if one is not None and one.silent:
                    silent.append(f"{name}, {tool}, seed {row['seed']}: {', '.join(one.silent)}")
        lines.append(
            f"| {name} ({problem.kind}{', batches' if problem.data is not None else ''}) | " + " | ".join(cells) + " |"
        )
    heads = ("tool", "runs", "refused", "crashed", "late", "silent", "noted", "wrong, noted", "intervals that cover")
    heads += ("seconds", "CPU seconds", "evaluations")
    lines += ["", "| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for tool, pairs in by_tool.items():
        failures = [row["failure"][0] for row, _ in pairs if "failure" in row]
        answered = [(row, one) for row, one in pairs if one is not None]
        if not pairs:
            continue
        covered, stated = np.sum([one.covered for _, one in answered], axis=0) if answered else (0, 0)
        is_wrong = lambda one: not one.masses <= MAX_MASS if np.isfinite(one.masses) else not one.moments <= MAX_MOMENT  # noqa: E731
        counts = [
            sum(bool(one.silent) for _, one in answered),
            sum(bool(row["notes"]) for row, _ in answered),
            sum(bool(row["notes"]) and is_wrong(one) for row, one in answered),
        ]
        numbers = [len(pairs), *(failures.count(kind) for kind in ("refused", "crashed", "late")), *counts]
        seconds, cpu = (np.nanmedian([row.get(key, np.nan) for row, _ in pairs]) for key in ("seconds", "cpu_seconds"))
        evaluations = np.median([row["evaluations"] for row, _ in answered]) if answered else np.nan
        ends = [f"{covered} of {stated}", f"{seconds:.0f}", f"{cpu:.0f}", f"{evaluations:.3g}"]
        lines.append(f"| {tool} | " + " | ".join([*map(str, numbers), *ends]) + " |")
    if silent:
        lines += ["", "Silently wrong:", "", *(f"- {one}" for one in silent)]
    failed = [row for row in rows if "failure" in row and only in row["problem"]]
    if failed:
        lines += ["", "Without an answer:", ""]
        lines += [
            f"- {row['problem']}, {row['tool']}, seed {row['seed']}: {': '.join(row['failure'])}" for row in failed
        ]
    return "\n".join(lines)


def main() -> None:
    """The rows that the record does not hold yet, or its tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="of problems whose names contain this")
    parser.add_argument("--tools", nargs="+", default=list(TOOLS), choices=TOOLS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--seconds", type=float, default=np.inf, help="after which no process is begun")
    parser.add_argument("--again", action="store_true", help="also what the record holds")
    parser.add_argument("--out", type=pathlib.Path, default=RECORD)
    parser.add_argument("--list", action="store_true", help="print the names of the problems")
    parser.add_argument("--table", action="store_true", help="print the tables of the record")
    given = parser.parse_args()
    if given.list:
        return print(*(name for name in builders() if given.only in name), sep="\n")
    if given.table:
        return print(tables(read(given.out), given.only))
    # Small matrices of several libraries only hold each other up.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    began = time.perf_counter()
    done = set() if given.again else {(row["problem"], row["tool"], row["seed"]) for row in read(given.out)}
    for name, build in builders().items():
        if given.only not in name:
            continue
        for tool in given.tools:
            seeds = [seed for seed in given.seeds if (name, tool, seed) not in done]
            if not seeds or time.perf_counter() - began > given.seconds:
                continue
            if tool != OURS and not takes(tool, build()):
                continue
            for row in rows_of(name, tool, seeds):
                with given.out.open("a") as record:
                    record.write(json.dumps(row, separators=(",", ":")) + "\n")
                shown = row["failure"] if "failure" in row else row["notes"]
                print(name, tool, row["seed"], f"{row['seconds']:.1f} s", *shown, flush=True)
    return None


if __name__ == "__main__":
    main()
