"""Contour samplers with their defaults beside SGLD at the same step.

`python -m isotherm_thesis.studies.contours` writes reproduction/results/contours.json.

Targets of 1 to 100 dimensions, with energies of 1e-2 to 1e4 temperatures, one to many modes, exact and on mini-batches. Chains
start from the exact law, so that what is off on average is the sampler's own doing, and what scatters is what a user would meet.
The systematic error is that of the mean over runs, the total error the root of the mean square over runs, each in standard
deviations of the function under the law (for masses of modes, as they are), the largest over the functions of a target.

The defaults were chosen while looking at some of these targets: `--fresh` runs others, with other seeds, and adds them to the
record.
"""

import argparse
import dataclasses
import json
import pathlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.foundation.gains import PolynomialGain
from isotherm_thesis.paths import RESULTS
from isotherm_thesis.studies.contour_targets import Target, fresh_targets, targets

NUM_RUNS, NUM_PILOTS, NUM_CHAINS = 24, 3, 4
FRESH_SEED = 100


def contours(target: Target, options: dict[str, Any]) -> dict[str, Any]:
    """The samplers that are compared."""
    box = target.box
    return {
        "sgld": iso.sgld(target.step_size, box=box),
        "sghmc": iso.sghmc(target.step_size, box=box),
        "csgld": iso.csgld(target.step_size, partition="auto", box=box, **options),
        "icsgld": iso.icsgld(target.step_size, partition="auto", box=box, **options),
        "csghmc": iso.csghmc(target.step_size, partition="auto", box=box, **options),
    }


def judge(target: Target, sampler: Any, first_seed: int = 0) -> dict[str, Any]:
    """Errors of one sampler on one target."""
    truth, spread = target.truth()
    table = jnp.asarray(target.starts(np.random.default_rng(0), 10_000), jnp.float32)
    estimates, ranges, notes = [], [], []
    for seed in range(first_seed, first_seed + NUM_PILOTS):
        together = iso.sample(
            target.potential,
            sampler,
            num_steps=target.num_steps,
            num_chains=NUM_CHAINS,
            num_runs=NUM_RUNS // NUM_PILOTS,
            burn_in=target.num_steps // 10,
            thinning=10,
            seed=seed,
            init=lambda key: table[jax.random.randint(key, (), 0, len(table))],
            progress=False,
        )
        for run in together.split_runs():
            estimates.append(run.expectation(target.functions))
            if "lowest_multiplier" in run.stats:
                ends = np.min(run.stats["lowest_multiplier"]), np.max(run.stats["highest_multiplier"])
                ranges.append([float(end) for end in ends])
                notes.append(float(np.max(run.stats["noise_times_slope"])))
    off = (np.asarray(estimates) - truth) / spread
    error = off.std(axis=0, ddof=1) / np.sqrt(NUM_RUNS)
    worst = int(np.argmax(np.abs(off.mean(axis=0))))
    return {
        "systematic": float(np.abs(off.mean(axis=0))[worst]),
        "error": float(error[worst]),
        "total": float(np.max(np.sqrt(np.mean(off**2, axis=0)))),
        "multiplier": np.median(ranges, axis=0).tolist() if ranges else None,
        "noise_times_slope": float(np.nan_to_num(np.max(notes))) if notes else None,
    }


def main() -> None:
    """All targets and samplers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--samplers", nargs="+", default=["sgld", "sghmc", "csgld", "icsgld", "csghmc"])
    parser.add_argument("--options", default="{}", help="of the contour samplers, in JSON")
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS / "contours.json")
    parser.add_argument("--goes-on", action="store_true", help="leave out what the record holds already")
    parser.add_argument("--finer", type=int, default=1, help="divides step sizes, and multiplies iterations")
    parser.add_argument("--longer", type=int, default=1, help="multiplies iterations")
    parser.add_argument("--fresh", action="store_true", help="other targets and seeds than those of the choices")
    given = parser.parse_args()
    options = json.loads(given.options)
    if "gain" in options:
        options["gain"] = PolynomialGain(*options["gain"])
    rows = json.loads(given.out.read_text())["rows"] if given.goes_on or given.fresh else []
    done = {(row["target"], row["sampler"]) for row in rows}
    for target in fresh_targets() if given.fresh else targets():
        if given.only not in target.name:
            continue
        length = target.num_steps * given.finer * given.longer
        target = dataclasses.replace(target, step_size=target.step_size / given.finer, num_steps=length)
        for name, sampler in contours(target, options).items():
            if name not in given.samplers or (target.name, name) in done:
                continue
            # A process may hold only so many programs.
            program_cache.forget()
            jax.clear_caches()
            began = time.perf_counter()
            found = judge(target, sampler, FRESH_SEED if given.fresh else 0)
            rows.append(
                {"target": target.name, "is_fresh": given.fresh, "barrier": target.barrier, "sampler": name, **found}
            )
            extra = "" if found["multiplier"] is None else " psi [{:.2f}, {:.2f}]".format(*found["multiplier"])
            noise = "" if not found["noise_times_slope"] else f" noise x slope {found['noise_times_slope']:.2f}"
            print(
                f"{target.name:34} {name:8} systematic {found['systematic']:.4f} +- {found['error']:.4f}"
                f"  total {found['total']:.4f}{extra}{noise}  {time.perf_counter() - began:.0f} s",
                flush=True,
            )
            given.out.write_text(json.dumps({"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
