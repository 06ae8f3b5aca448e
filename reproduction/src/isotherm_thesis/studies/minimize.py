"""`iso.minimize` beside SciPy's global optimizers.

`python -m isotherm_thesis.studies.minimize [--workers 2]` writes reproduction/results/minimize.json.

Ten functions, each with its optimum at another place of the box for every seed. Counted are evaluations until the value is within
the accuracy: 1e-3, and the thesis' own where it has the function. A value with its gradient counts 1 for every method; the second
count takes d more for each gradient. The noisy part adds normal noise to values and gradients and judges the noise-free value of
the point that a method returns. The settings of `iso.minimize` were chosen on seeds from 100 on; seeds 0 to 9 are reported.
"""

import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.engine import program_cache
from isotherm_thesis.paths import RESULTS
from isotherm_thesis.studies.minimize_problems import FAMILIES, Problem, problem
from isotherm_thesis.studies.minimize_rivals import RIVALS, Counter, run_rival

OURS, ACCURACY = "minimize", 1e-3
BUDGET, NOISY_BUDGET = 100_000, 50_000
NUM_SEEDS, NOISY_SEEDS = 10, 4
# Dimensions, and those of Powell's function, which wants a multiple of four. The triangulations of shgo do not end in ten.
DIMENSIONS = {10: 12, 2: 4, 50: 52}
NOISY = ("Rastrigin", "Ackley", "Griewank", "Levy", "Schwefel")
LEVELS = (0.01, 0.001)


def exact_row(name: str, dimension: int, method: str, seed: int) -> dict[str, Any]:
    """Evaluations until each accuracy, without noise."""
    target = problem(name, dimension, seed)
    accuracies = tuple({ACCURACY, target.thesis_accuracy or ACCURACY})
    counter = Counter(target, accuracies, BUDGET)
    if method == OURS:
        # The same counts by the library itself, once for each accuracy: every evaluation has its gradient.
        for accuracy in accuracies:
            found = iso.minimize(
                target.function, bounds=target.bounds, target=accuracy, max_evaluations=BUDGET, seed=seed
            )
            if found.success:
                counter.hits[accuracy] = (found.nfev, found.nfev)
    else:
        run_rival(method, counter, seed)
    hits = {"accurate": counter.hits.get(ACCURACY)}
    if target.thesis_accuracy is not None:
        hits["thesis"] = counter.hits.get(target.thesis_accuracy)
    return {"function": name, "dimension": dimension, "method": method, "seed": seed, **hits}


def scales(target: Problem) -> tuple[float, float]:
    """The range of values, and the typical size of a slope, at random points of the box."""
    low, high = np.array(target.bounds).T
    points = np.random.default_rng(0).uniform(low, high, size=(2_000, target.dimension))
    with jax.enable_x64(True):
        values = np.asarray(jax.vmap(target.function)(points))
        gradients = np.asarray(jax.vmap(jax.grad(target.function))(points))
    return float(np.ptp(values)), float(np.sqrt(np.mean(gradients**2)))


def noisy_row(name: str, dimension: int, method: str, seed: int, level: float) -> dict[str, Any]:
    """The noise-free value of what a method returns from noisy values and gradients."""
    target = problem(name, dimension, seed)
    noise = tuple(level * scale for scale in scales(target))

    def noisy(x, key):
        key_value, key_gradient = jax.random.split(key)
        # Zero in value, the noise in gradient.
        tilt = jnp.sum(jax.random.normal(key_gradient, x.shape) * (x - jax.lax.stop_gradient(x)))
        return target.function(x) + noise[0] * jax.random.normal(key_value) + noise[1] * tilt

    if method == OURS:
        x = iso.minimize(noisy, bounds=target.bounds, max_evaluations=NOISY_BUDGET, target=-1e30, seed=seed).x
    else:
        x = run_rival(method, Counter(target, (), NOISY_BUDGET, noise, seed), seed)
    with jax.enable_x64(True):
        value = float(target.function(jnp.asarray(x)))
    row = {"function": name, "dimension": dimension, "method": method, "seed": seed, "level": level}
    return {**row, "value": value, "noise": noise[0]}


def jobs() -> list[tuple[str, tuple[Any, ...]]]:
    """All rows: with noise, then without it in every dimension."""
    noisy = [
        ("noisy", (name, 10, method, seed, level))
        for seed in range(NOISY_SEEDS)
        for level in LEVELS
        for name in NOISY
        for method in (OURS, *RIVALS[:3])
    ]
    exact = [
        ("exact", (name, powell if name == "Powell" else dimension, method, seed))
        for dimension, powell in DIMENSIONS.items()
        for name in FAMILIES
        for method in (OURS, *(RIVALS if dimension == 2 else RIVALS[:3]))
        for seed in range(NUM_SEEDS)
    ]
    return [*noisy, *exact]


def measured(kind: str, arguments: tuple[Any, ...]) -> tuple[str, dict[str, Any], float]:
    """One row, and the seconds that it took."""
    # A process may hold only so many programs.
    program_cache.forget()
    jax.clear_caches()
    began = time.perf_counter()
    row = exact_row(*arguments) if kind == "exact" else noisy_row(*arguments)
    return kind, row, time.perf_counter() - began


def main() -> None:
    """All rows, or those that the record does not hold yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="of these functions")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS / "minimize.json")
    parser.add_argument("--workers", type=int, default=1, help="processes at a time")
    parser.add_argument("--goes-on", action="store_true", help="leave out what the record holds already")
    given = parser.parse_args()
    record = json.loads(given.out.read_text()) if given.goes_on and given.out.exists() else {"exact": [], "noisy": []}
    names = ("function", "dimension", "method", "seed", "level")
    done = {(kind, tuple(row[name] for name in names if name in row)) for kind in record for row in record[kind]}
    waiting = [job for job in jobs() if given.only in job[1][0] and job not in done]
    # SciPy's local searches multiply small matrices, which threads of several processes only hold up.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(given.workers, context) as pool:
        pending = [pool.submit(measured, *job) for job in waiting]
        for future in concurrent.futures.as_completed(pending):
            kind, row, seconds = future.result()
            record[kind].append(row)
            print(kind, *row.values(), f"{seconds:.1f} s", flush=True)
            given.out.write_text(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
