"""The landscape around sampled networks: their paths in the plane of the two largest singular directions."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.flatten_util import ravel_pytree

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, check_type, refuse, short
from isotherm.foundation.optional import require
from isotherm.foundation.user_functions import check_function


class Landscape(NamedTuple):
    """Losses on a grid of a plane in weight space, and paths in it.

    Attributes:
        paths: coordinates of the networks of every path, each (S, 2).
        losses_of_paths: their losses, each (S,), at the networks themselves.
        xs: of the grid, (G,).
        ys: likewise.
        losses: at the grid, (G, G), rows along y.
        shares: of the networks' variance that the two directions hold.
    """

    paths: list[np.ndarray]
    losses_of_paths: list[np.ndarray]
    xs: np.ndarray
    ys: np.ndarray
    losses: np.ndarray
    shares: np.ndarray


@checked_call(prefix="isotherm_thesis.landscape.")
def project(
    paths: list[Any],
    loss: Callable[[Any], Any],
    *,
    grid: int = 15,
    margin: float = 0.2,
    num_tuning: int = 0,
    tuning_step: float = 0.0,
) -> Landscape:
    """The plane of the two largest singular directions of sampled networks, with losses evaluated anew on a grid.

    Every network is written as the mean plus its coordinates along the singular vectors. A point of the grid takes its two
    coordinates from the grid and the others from the nearest network, so that it stays where networks are; then, as the thesis
    does, it is tuned by a few steps of gradient descent orthogonal to the plane.

    Args:
        paths: draws of networks, each a pytree with a leading axis of S.
        loss: maps weights to a scalar.
        grid: points along each side.
        margin: how far the grid goes beyond the networks, as a share of their range.
        num_tuning: gradient steps of every grid point.
        tuning_step: their size.

    Reference:
        Deng 2021, section 4.2.3: "we recover the parameter based on the grid point and truncated values in other dimensions, and
        finally we fine-tune the parameters".

    Differs from the thesis: it does not say from where the values in other dimensions come, nor how it tunes.
    """
    check_integer("grid", grid, 2, "Give points along a side.")
    check_real("margin", margin, "Give a share of the range.", minimum=0.0)
    check_integer("num_tuning", num_tuning, 0, "Give gradient steps, or 0.")
    check_real("tuning_step", tuning_step, "Give the size of a gradient step.", minimum=0.0)
    if num_tuning and not tuning_step:
        refuse(
            "tuning_step", "above 0 where grid points are tuned", f"{tuning_step}", "Give the size of a gradient step."
        )
    check_function("loss", loss, "lambda weights: potential.energy(weights)")
    if not isinstance(paths, (list, tuple)):
        refuse("paths", "a list of paths", short(paths), "Give the draws of every chain, such as [chain0, chain1].")
    if not paths:
        refuse("paths", "at least one path", "none", "Give draws of a run.")
    shapes = [_shapes(path) for path in paths]
    if any(shape != shapes[0] for shape in shapes):
        other = next(shape for shape in shapes if shape != shapes[0])
        refuse("paths", f"of one network, with leaves {shapes[0]}", other, "Give draws of the same potential.")
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), paths[0])
    _, unravel = ravel_pytree(one)
    flats = [_flat(path) for path in paths]
    together = np.concatenate(flats)
    if len(together) < 3:
        refuse("paths", "at least three networks", len(together), "Keep more draws.")
    if not np.isfinite(together).all():
        found = f"{int((~np.isfinite(together)).any(axis=1).sum())} networks that are not"
        refuse("paths", "finite networks", found, "Leave out the draws of chains that diverged.")
    center = together.mean(axis=0)
    _, values, directions = np.linalg.svd(together - center, full_matrices=False)
    plane = directions[:2]
    coordinates = [(flat - center) @ plane.T for flat in flats]
    every = np.concatenate(coordinates)
    low, high = every.min(axis=0), every.max(axis=0)
    room = margin * np.maximum(high - low, 1e-12)
    xs, ys = (np.linspace(low[i] - room[i], high[i] + room[i], grid) for i in (0, 1))
    value = _tuned(loss, unravel, num_tuning, tuning_step)
    losses = np.empty((grid, grid))
    for row, y in enumerate(ys):
        for column, x in enumerate(xs):
            point = np.array([x, y])
            nearest = int(np.argmin(np.sum((every - point) ** 2, axis=1)))
            flat = together[nearest] + (point - every[nearest]) @ plane
            losses[row, column] = float(value(jnp.asarray(flat, jnp.float32), jnp.asarray(plane, jnp.float32)))
    plain = jax.jit(lambda flat: loss(unravel(flat)))
    of_paths = [np.array([float(plain(jnp.asarray(row, jnp.float32))) for row in flat]) for flat in flats]
    return Landscape(coordinates, of_paths, xs, ys, losses, values[:2] ** 2 / np.sum(values**2))


@checked_call(prefix="isotherm_thesis.landscape.")
def plot_landscape(landscape: Landscape, axis: Any = None, *, title: str = "", levels: int = 12) -> Any:
    """Contours of the losses with the paths over them; every path starts at its circle."""
    check_type("landscape", landscape, Landscape, "what `project` returns", "Call it first.")
    if axis is None:
        axis = require("matplotlib.figure", "plots").Figure(figsize=(5.0, 4.2), layout="constrained").add_subplot()
    floor = max(landscape.losses.min(), 1e-12)
    shown = np.log10(np.maximum(landscape.losses, floor))
    drawn = axis.contourf(landscape.xs, landscape.ys, shown, levels=levels, cmap="viridis")
    for number, path in enumerate(landscape.paths):
        color = ("tab:red", "tab:orange", "white", "tab:pink")[number % 4]
        axis.plot(*path.T, color=color, linewidth=0.9, alpha=0.9)
        axis.plot(*path[0], "o", color=color, markersize=5, markeredgecolor="black")
    axis.set(title=title, xlabel="first direction", ylabel="second direction")
    axis.figure.colorbar(drawn, ax=axis, label="log10 loss")
    return axis.figure


def _shapes(path: Any) -> str:
    """Names and shapes of the leaves of one network of a path."""
    found = jax.tree_util.tree_leaves_with_path(path)
    return ", ".join(f"{jax.tree_util.keystr(place)} {np.shape(leaf)[1:]}" for place, leaf in found)


def _flat(path: Any) -> np.ndarray:
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(path)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _tuned(loss: Callable[[Any], Any], unravel: Any, num_tuning: int, step: float) -> Any:
    """The loss of a flat position after gradient steps orthogonal to the plane."""

    @jax.jit
    def value(flat, plane):
        energy = lambda x: loss(unravel(x))  # noqa: E731

        def descend(_, x):
            gradient = jax.grad(energy)(x)
            gradient = gradient - (plane @ gradient) @ plane
            return x - step * gradient

        return energy(lax.fori_loop(0, num_tuning, descend, flat))

    return value
