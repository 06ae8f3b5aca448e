"""A case: a run as a function of the seed, and exact expectations to hold it against; and what cases are built of."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import isotherm as iso

Truths = tuple[tuple[str, Callable, float], ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """A run, and what is true of its target."""

    name: str
    is_good: bool
    why: str
    run: Callable[[int], Any]
    truths: Truths


@dataclasses.dataclass(frozen=True)
class Target:
    """What is sampled, its number of coordinates, and its exact expectations."""

    potential: Any
    dimension: int
    truths: Truths


def moments(label: str, coordinate: int, mean: float, variance: float) -> Truths:
    """The mean of a coordinate, and its second moment about that mean."""
    return (
        (f"mean {label}", lambda x: x[coordinate], float(mean)),
        (f"var {label}", lambda x: (x[coordinate] - mean) ** 2, float(variance)),
    )


def probability(label: str, event: Callable, value: Any) -> Truths:
    """The probability of an event."""
    return ((f"prob {label}".strip(), lambda x: event(x).astype(float), float(value)),)


def line_truths(energy: Callable, low: float, high: float, split: float | None = None, num: int = 400_001) -> Truths:
    """Moments of exp(-energy) of one coordinate on an interval, and the probability above `split`."""
    x = np.linspace(low, high, num)
    u = energy(x)
    w = np.exp(-(u - u.min()))
    w /= w.sum()
    mean = w @ x
    truths = moments("x", 0, mean, w @ (x - mean) ** 2)
    return truths if split is None else truths + probability(f"x > {split}", lambda x: x[0] > split, w[x > split].sum())


def plane_truths(energy: Callable, center: np.ndarray, reach: np.ndarray, num: int = 801) -> Truths:
    """Moments of exp(-energy) of two coordinates on the rectangle center +- reach; `energy` maps (2, K) to (K,)."""
    axes = [np.linspace(c - r, c + r, num) for c, r in zip(center, reach, strict=True)]
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")])
    u = np.concatenate([energy(piece) for piece in np.array_split(points, 50, axis=1)])
    w = np.exp(-(u - u.min()))
    w /= w.sum()
    means = points @ w
    variances = (points - means[:, None]) ** 2 @ w
    return moments("x1", 0, means[0], variances[0]) + moments("x2", 1, means[1], variances[1])


def standard(dimension: int, scale: float = 1.0) -> Callable:
    """Standard normal starts, scaled."""
    return lambda key: scale * jax.random.normal(key, (dimension,))


def uniform(dimension: int, low: float, high: float) -> Callable:
    """Uniform starts."""
    return lambda key: jax.random.uniform(key, (dimension,), minval=low, maxval=high)


def chains(number: int, num_steps: int, **settings: int) -> dict[str, Any]:
    """Settings of `iso.sample` with so many chains, each of so many iterations."""
    return {"num_chains": number, "num_steps": num_steps, **settings}


def ladders(number: int, num_steps: int, **settings: int) -> dict[str, Any]:
    """The same for replica exchange."""
    return {"num_ladders": number, "num_steps": num_steps, **settings}


def case(
    name: str,
    why: str,
    target: Target,
    sampler: Any,
    settings: dict[str, Any],
    *,
    is_good: bool,
    init: Any = None,
) -> Case:
    """A case from a target, a sampler and settings; chains start standard normal unless told."""
    start = standard(target.dimension) if init is None else init

    def run(seed: int) -> Any:
        return iso.sample(target.potential, sampler, seed=seed, init=start, progress=False, **settings)

    return Case(name, is_good, why, run, target.truths)
