"""Every named sampler in every setting keeps what it promises. See `tests.laws.matrix`.

Laws are judged with four standard errors, after the bias of leading order was taken off: each cell is run at its step size and at
half of it, and extrapolated. In a box, draws within one step of a wall are biased, and the order of the error is between 1/2 and
1: 1/2 is used. A tolerance above 0.12 would see too little, and fails too: lengthen the run.
"""

import contextlib
import pathlib

import jax
import numpy as np
import pytest

from isotherm.samplers import METHODS
from tests.laws.matrix import (
    BATCH_SIZE,
    BOXED,
    FAMILIES,
    MODES,
    NOISE,
    NUM_DATA,
    NUM_RUNS,
    SETTINGS,
    WELL,
    WITH_DATA,
    moments_of,
    promise_of,
    run_of,
    sampler_of,
    stationary_moments,
    target_of,
)
from tests.laws.promises import page

CELLS = [(method, setting) for method in METHODS for setting in SETTINGS]


def covering() -> set[tuple[str, str]]:
    """Every sampler twice, and every setting with every family: settings in turn along the samplers of a family.

    Those that need data, whose iterations take longest, leave the settings with the longest runs to others.
    """
    chosen = set()
    for family, methods in FAMILIES.items():
        offset = list(FAMILIES).index(family)
        for number, method in enumerate(methods):
            turns = [name for name in SETTINGS if method not in WITH_DATA or name not in ("box", "modes")]
            chosen |= {(method, turns[(2 * number + offset + k) % len(turns)]) for k in range(2)}
        missing = [setting for setting in SETTINGS if not any((m, setting) in chosen for m in methods)]
        chosen |= {(methods[k % len(methods)], setting) for k, setting in enumerate(missing)}
    return chosen


def test_the_selection_covers():
    chosen = covering()
    assert set(METHODS) == {method for methods in FAMILIES.values() for method in methods}
    assert all(sum(method == m for m, _ in chosen) >= 2 for method in METHODS)
    for methods in FAMILIES.values():
        assert {setting for method, setting in chosen if method in methods} == set(SETTINGS)


def test_the_page_of_promises_is_this_table():
    found = (pathlib.Path(__file__).parents[2] / "docs" / "promises.md").read_text()
    command = "from tests.laws.promises import page; print(page(), end='')"
    assert found == page(), f'Write it again: python -c "{command}" > docs/promises.md'


def extrapolated(run, half, method: str, setting: str) -> np.ndarray:
    """Mean and variance of every run, shape (R, 2), without the bias of leading order, which falls with the step size."""
    low = _low(method, setting)
    at_step, at_half = moments_of(run, low), moments_of(half, low)
    order = 0.5 if setting == "box" else 1.0
    return at_half + (at_half - at_step) / (2**order - 1)


def _low(method: str, setting: str) -> float:
    """Where the mode that is judged begins; everything where all of it is."""
    split = target_of(setting).split
    return split if split is not None and promise_of(method, setting) == "within" else -np.inf


@pytest.mark.parametrize(
    ("method", "setting"),
    [pytest.param(*cell, marks=[] if cell in covering() else pytest.mark.long) for cell in CELLS],
)
def test_a_sampler_keeps_its_promise(method, setting, tmp_path):
    target, promise = target_of(setting), promise_of(method, setting)
    if promise == "refused":
        with pytest.raises(ValueError, match=f"`potential` must be an exact energy for {method}"):
            run_of(method, setting)
        return
    with jax.enable_x64(True) if setting == "double" else contextlib.nullcontext():
        run = run_of(method, setting, folder=tmp_path / "run" if setting == "resume" else None)
        half = run_of(method, setting, 0.5) if promise in ("law", "noisy law", "within") else None
    assert np.isfinite(np.asarray(run.draws)).all()
    if target.box is not None:
        assert target.box[0] <= np.min(run.draws) <= np.max(run.draws) <= target.box[1]
    if promise == "inside":
        return
    if promise == "low":
        lowest = target.grid[1].min()
        # In every run, after the burn-in.
        assert np.max(np.min(np.asarray(run.energies), axis=(1, 2))) < lowest + 0.05
        return
    if promise == "descends":
        assert_descent(run, target)
        return
    low = _low(method, setting)
    exact = np.array(target.moments(low))
    scale = np.array([np.sqrt(exact[1]), exact[1]])
    each = moments_of(run, low)
    off = np.abs(each.mean(axis=0) - exact) / scale
    if promise == "mean":
        assert off[0] < 0.1
        assert off[1] < 0.25
        return
    if promise != "exact":
        each = extrapolated(run, half, method, setting)
    off = np.abs(each.mean(axis=0) - exact) / scale
    tolerance = 4 * each.std(axis=0, ddof=1) / np.sqrt(NUM_RUNS) / scale
    if promise == "noisy law":
        tolerance = tolerance + energy_noise_bound(method, setting)
    assert np.all(off < tolerance), (off, tolerance)
    assert np.all(tolerance < 0.12), tolerance


def assert_descent(run, target):
    """Draws lie around a point of slope zero, with the spread that batches leave."""
    points, energies, _ = target.grid
    late = np.asarray(run.draws, np.float64)[..., -20:, 0].mean(axis=(1, 2))
    slopes = np.interp(late, points, np.gradient(energies, points))
    is_free = np.ones_like(late, bool)
    if target.box is not None:
        is_free = (late > target.box[0] + 0.05) & (late < target.box[1] - 0.05)
    assert np.abs(slopes[is_free]).max(initial=0.0) < 0.15
    assert np.std(np.asarray(run.draws)[..., -20:, 0], axis=2).max() < 0.15


def energy_noise_bound(method: str, setting: str) -> float:
    """What noise on energies may do to weights and swaps: half the variance of their exponent.

    The noise of a batch is the sum of its tilts, scaled up, times the position. A weight is exp(0.75 U / T), in the tail where it
    matters, and a swap between T and 2 T compares two positions.
    """
    target = target_of(setting)
    mean, variance = target.moments()
    noise = NOISE * np.sqrt(NUM_DATA * (NUM_DATA - BATCH_SIZE) / BATCH_SIZE)
    if method in FAMILIES["contour"]:
        return 0.5 * (noise * 0.75 / target.temperature) ** 2 * (mean**2 + variance)
    return 0.5 * (noise * 0.5 / target.temperature) ** 2 * 3 * variance


@pytest.mark.parametrize("setting", ["temperature", "box", "modes"])
def test_sgld_has_the_law_of_its_own_discretized_chain(setting):
    """No bound on a bias: the stationary law of the chain itself, on a grid. A step 20 % larger is another law."""
    target = {"temperature": WELL, "box": BOXED, "modes": MODES}[setting]
    factor = {"temperature": 6.0, "box": 20.0, "modes": 12.0}[setting]
    each = moments_of(run_of("sgld", setting, factor))
    step_size = sampler_of("sgld", setting, factor).step_size
    exact = np.array(stationary_moments(target, float(step_size)))  # pyright: ignore[reportArgumentType]
    error = each.std(axis=0, ddof=1) / np.sqrt(NUM_RUNS)
    assert np.all(np.abs(each.mean(axis=0) - exact) < 4 * error + 0.002)
    limit = np.array(target.moments())
    assert np.any(np.abs(each.mean(axis=0) - limit) > 6 * error)
