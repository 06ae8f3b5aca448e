"""Runs of stochastic gradient samplers on targets of known truth: some whose results are silently wrong, some that are right.

Every case has a run as a function of the seed, and exact expectations to hold it against. Functionals are named "mean ...",
"var ..." (the second moment about the true mean), "cov ..." and "prob ...". How far off an estimate is, is given in true
standard deviations for a mean, as a share of the truth for a second moment, and as it is for a probability.

    python -m tests.silent.cases [part of a name ...]
"""

import sys
import time

import numpy as np

from tests.silent import good_chains, good_couplings, large_positions, wrong_chains, wrong_couplings
from tests.silent.case import Case, Truths

CASES: list[Case] = [
    case
    for part in (wrong_chains, wrong_couplings, good_chains, good_couplings, large_positions)
    for case in part.CASES
]


def off_by(truths: Truths, name: str, difference: float) -> float:
    """A difference in true standard deviations for a mean, as a share for a second moment, as it is for a probability."""
    values = {each: value for each, _, value in truths}
    if name.startswith("mean"):
        return difference / np.sqrt(values["var" + name.removeprefix("mean")])
    return difference if name.startswith("prob") else difference / values[name]


def is_far(name: str, z: float, off: float) -> bool:
    """Whether a functional is clearly wrong, by the error that the run gives and by what matters."""
    least = 0.05 if name.startswith("prob") else 0.1
    return bool(abs(z) > 5 and abs(off) > least)


def is_close(name: str, z: float, off: float) -> bool:
    """Whether a functional is right, up to its error or up to what matters."""
    most = 0.01 if name.startswith("prob") else 0.02
    return bool(np.isfinite(z) and (abs(z) < 3.5 or abs(off) < most))


def measure(one: Case, seed: int) -> list[tuple[str, float, float, float, float, float]]:
    """Name, estimate, error, truth, (estimate - truth) / error, and how far off, of every functional."""
    run, rows = one.run(seed), []
    for name, function, truth in one.truths:
        found = run.estimate(function)
        estimate, error = float(found.mean), float(found.std_error)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = float(np.float64(estimate - truth) / error)
        rows.append((name, estimate, error, truth, z, float(off_by(one.truths, name, estimate - truth))))
    return rows


def main() -> None:
    """Run every case, or those whose names hold one of the arguments, for three seeds."""
    wanted = sys.argv[1:]
    chosen = [one for one in CASES if not wanted or any(part in one.name for part in wanted)]
    verdicts = []
    for one in chosen:
        print(f"\n{'GOOD' if one.is_good else 'WRONG'} {one.name}: {one.why}")
        held, worst = [], []
        for seed in (0, 1, 2):
            began = time.perf_counter()
            rows = measure(one, seed)
            for name, estimate, error, truth, z, off in rows:
                print(
                    f"  {seed} {name:16} {estimate:12.6g} +- {error:9.3g}  truth {truth:12.6g}  z {z:9.2f}  off {off:8.4f}"
                )
            print(f"  {seed} {time.perf_counter() - began:.1f} s", flush=True)
            if one.is_good:
                held.append(all(is_close(name, z, off) for name, *_, z, off in rows))
                worst.append(max(rows, key=lambda row: np.nan_to_num(abs(row[4]), nan=np.inf)))
            else:
                held.append(any(is_far(name, z, off) for name, *_, z, off in rows))
                worst.append(max(rows, key=lambda row: (is_far(row[0], *row[4:]), np.nan_to_num(abs(row[4])))))
        pick = max if one.is_good else min
        name, *_, z, off = pick(worst, key=lambda row: np.nan_to_num(abs(row[4]), nan=np.inf))
        verdicts.append((one, all(held), name, z, off))
    print("\nworst of three seeds (least wrong for a wrong case)")
    for one, is_held, name, z, off in verdicts:
        kind, state = "good" if one.is_good else "wrong", "ok" if is_held else "FAILS"
        print(f"  {kind:5} {state:5} {one.name:45} {name:16} z {z:9.2f}  off {off:8.4f}")


if __name__ == "__main__":
    main()
