"""The units of a search."""

import dataclasses
from typing import Any

import numpy as np

from isotherm.foundation.errors import check_real, refuse, short

_MAX_FLOAT = np.finfo(float).max


@dataclasses.dataclass(frozen=True, eq=False)
class Space:
    """Units of a search: x = low + width * z with flat z, in [0, 1] if there are bounds. `start` is z of the user's start."""

    low: np.ndarray
    high: np.ndarray
    width: np.ndarray
    is_bounded: bool
    start: np.ndarray | None
    shape: tuple[int, ...]

    @property
    def dimension(self) -> int:
        """Number of coordinates."""
        return self.low.size

    def point(self, z: np.ndarray) -> np.ndarray:
        """X at z."""
        return self.points(z[None])[0]

    def points(self, several: np.ndarray) -> np.ndarray:
        """X at several z, along the first axis."""
        x = self.low + self.width * several
        if self.is_bounded:
            # low + width may differ from high by rounding.
            x = np.where(several >= 1.0, self.high, np.clip(x, self.low, self.high))
        return x.reshape(-1, *self.shape)

    def inside(self, z: np.ndarray) -> np.ndarray:
        """`z`, reflected at bounds."""
        return np.abs((z + 1.0) % 2.0 - 1.0) if self.is_bounded else z

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """A random point: uniform between bounds, or normal around the user's start."""
        return rng.uniform(size=self.dimension) if self.is_bounded else rng.normal(size=self.dimension)


def space_of(x0: Any, bounds: Any, scale: float) -> Space:
    """The space given by `bounds`, or by `x0` and `scale` without bounds."""
    start = None if x0 is None else _start(x0)
    check_real("scale", scale, "Give a length in units of x0.", above=0.0)
    if bounds is None:
        if start is None:
            refuse("x0", "given if there are no bounds", "neither", "Pass x0=..., or bounds=[(low, high), ...].")
        width = np.full(start.size, float(scale))
        return Space(start.reshape(-1), start.reshape(-1) + width, width, False, np.zeros(start.size), start.shape)
    if scale != 1.0:
        remedy = "The bounds set the unit of the search: leave one of them out."
        refuse("scale", "left out beside bounds", short(scale), remedy)
    pairs = _pairs(bounds, None if start is None else start.size)
    is_valid = pairs.ndim == 2 and pairs.shape[1] == 2 and len(pairs) > 0 and np.all(np.isfinite(pairs))
    # Halved, because the difference could overflow.
    if not is_valid or not np.all((pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] / 2 - pairs[:, 0] / 2 < _MAX_FLOAT / 2)):
        rule = "(low, high) for every coordinate, finite, low below high"
        refuse("bounds", rule, repr(bounds), _remedy(pairs))
    low, high, width = pairs[:, 0], pairs[:, 1], pairs[:, 1] - pairs[:, 0]
    if start is None:
        return Space(low, high, width, True, None, low.shape)
    flat = start.reshape(-1)
    if flat.shape != low.shape or not np.all((flat >= low) & (flat <= high)):
        refuse("x0", f"{low.shape[0]} numbers within the bounds", repr(x0), "Move it inside, or leave it out.")
    return Space(low, high, width, True, (flat - low) / width, start.shape)


def _start(x0: Any) -> np.ndarray:
    try:
        given = np.asarray(x0)
    except ValueError:
        given = np.asarray(None)
    start = given.astype(float) if given.dtype.kind in "biuf" and given.size else None
    if start is None or not np.all(np.isfinite(start)):
        rule = "an array of numbers" if start is None else "finite"
        refuse("x0", rule, short(x0), "Write `iso.minimize(fun, x0=[0.0, 0.0])`, say.")
    return start


_FORM = "Write `bounds=[(low, high), (low, high)]` for two coordinates."


def _remedy(pairs: np.ndarray) -> str:
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        return "Write `bounds=[(low, high)]` for one coordinate." if pairs.shape == (2,) else _FORM
    if not np.all(np.isfinite(pairs)):
        return "Without finite bounds leave `bounds` out, and give `x0` and `scale`."
    return "Swap or widen them."


def _pairs(bounds: Any, number: int | None) -> np.ndarray:
    """Pairs from pairs, or from `scipy.optimize.Bounds`, where `lb` and `ub` may be numbers."""
    if not (hasattr(bounds, "lb") and hasattr(bounds, "ub")):
        try:
            pairs = np.asarray(bounds)
            if pairs.dtype.kind in "biufO":
                return pairs.astype(float)
        except (TypeError, ValueError):
            pass
        refuse("bounds", "a (low, high) pair of numbers for every coordinate", short(bounds), _FORM)
    low, high = np.broadcast_arrays(np.atleast_1d(bounds.lb), np.atleast_1d(bounds.ub))
    if low.size == 1 and number is not None:
        low, high = np.broadcast_to(low, number), np.broadcast_to(high, number)
    return np.stack([low, high], axis=-1).astype(float)
