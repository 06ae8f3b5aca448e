"""Checks on the chains of a run: where they started, whether they diverged, and what helps those that disagree."""

import dataclasses
import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy

from isotherm.foundation import checks
from isotherm.foundation.checks import Check
from isotherm.foundation.positions import columns
from isotherm.run.estimates import Estimate, estimate, normalized_weights
from isotherm.run.run import Run

# The p-value at which starts are closer together than those that spread like the draws.
_P_VALUE = 0.01
# Draws from which principal directions are found, and how many of these are compared.
_MAX_PROJECTED, _NUM_DIRECTIONS = 1_000, 3
# Draws of a chain whose distance from the start is compared, the fewest that tell anything, and the growth of that distance in the
# last quarter. Where nothing holds a chain the distance grows 1.8 times between halves, and 1.2 times between these quarters.
_MAX_DRAWS, _MIN_DRAWS, _MIN_LATE_GROWTH = 400, 16, 1.02


def checks_at_once(run: Run) -> list[Check]:
    """Checks that need no draw to be read."""
    found, asked = [], run.config.get("settings", {}).get("num_steps", run.num_steps)
    if run.num_steps < asked and not run.has_died:
        text = f"Stopped after {run.num_steps} of {asked} iterations."
        remedy = "A run with a folder (`out=`) can be continued by `iso.resume`."
        found.append(checks.STOPPED.found(text, remedy, num_steps=run.num_steps))
    if "diverged_at" not in run.stats:
        text = "Read at a checkpoint: divergences, couplings and bias are known once the run has ended."
        return [*found, checks.UNFINISHED.found(text)]
    diverged = np.asarray(run.stats["diverged_at"]) >= 0
    if diverged.any():
        what = "replicas" if "num_swaps" in run.stats else "chains"
        text = f"{int(diverged.sum())} of {diverged.size} {what} diverged."
        found.append(checks.DIVERGED.found(text, "Lower `step_size`, or use a `box`.", number=diverged.sum()))
    if run.has_died:
        return [*found, checks.ALL_DIVERGED.found("All chains diverged; the draws are unusable.")]
    return [*found, *_starts(run)]


def _starts(run: Run) -> Iterator[Check]:
    """Whether there are several chains from several starts, where no hotter replica lets them leave a mode."""
    if "num_swaps" in run.stats or not run.claims_distribution:
        return
    if np.asarray(run.stats["diverged_at"]).size == 1:
        text = "One chain: convergence cannot be checked."
        yield checks.ONE_CHAIN.found(text, "Pass `num_chains=4` or more, with overdispersed starts.")
    elif run.config.get("has_one_start"):
        remedy = "Pass a function of a key as `init`, or `iso.per_chain(positions)`."
        if run.is_network:
            remedy = "Make the potential of the network's class, or of a function that makes it, not of a module."
        text = "All chains started at one point: their agreement says nothing about modes that are hard to reach from there."
        yield checks.ONE_START.found(text, remedy)


def close_starts(run: Run) -> Iterator[Check]:
    """Whether the starts of chains without a ladder were closer together than the draws."""
    spread, config = run.config.get("start_spread"), run.config
    if spread is None or "num_swaps" in run.stats or not run.claims_distribution or config.get("has_one_start"):
        return
    drawn = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.std())])
    number = np.asarray(run.stats["diverged_at"]).size
    by_chance = math.sqrt(scipy.special.chdtri(number - 1, 1.0 - _P_VALUE) / number)
    if len(drawn) != len(spread) or np.any(np.asarray(spread) >= min(checks.CLOSE_STARTS.limit, by_chance) * drawn):
        return
    yield checks.CLOSE_STARTS.found(
        "Chains started closer together than the draws lie: their agreement says little about modes far from the starts.",
        "Pass overdispersed starts, such as `init=lambda key: 3.0 * jax.random.normal(key, shape)`.",
        ratio=np.max(np.asarray(spread) / np.where(drawn > 0, drawn, np.inf)),
    )


def projections(run: Run, judged: np.ndarray, found: Estimate) -> list[Check]:
    """What the energy, the radius and the principal directions show where no coordinate shows anything.

    One visit to a mode on one side of the others may show in the distance from the mean alone. `found` are means of the
    coordinates at the places `judged`.
    """
    mean, spread = np.asarray(found.mean), np.where(np.asarray(found.spread) > 0, found.spread, 1.0)
    chosen = np.unique(np.linspace(0, run.num_draws - 1, _MAX_PROJECTED).astype(int))
    weights = normalized_weights(np.asarray(run.log_weights)[..., chosen]).reshape(-1)
    # Of all draws, of which only these coordinates are kept.
    scaled = (
        columns(run.draws, run.log_weights.ndim, judged)[..., chosen, :].reshape(weights.size, -1) - mean
    ) / spread
    scaled = np.where(weights[:, None] > 0, scaled, 0.0)
    directions = np.linalg.eigh((weights[:, None] * scaled).T @ scaled)[1][:, -_NUM_DIRECTIONS:].T

    def projected(draw):
        position, energy = draw
        at = jnp.concatenate([leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(position)])[judged]
        at = (at - mean) / spread
        return jnp.concatenate([jnp.stack([energy.astype(float), jnp.sum(at**2)]), directions @ at])

    draws = (run.draws, run.energies)
    seen = estimate(projected, draws, np.asarray(run.log_weights), None, run.are_particles, run.shares_noise)
    # One of several projections that nobody asked for has a large R-hat by chance.
    is_known = np.min(seen.effective_draws) >= checks.FEW_DRAWS.limit
    kept = [check for check in seen.checks if not (is_known and check.name == checks.LARGE_R_HAT.name)]
    where = "Of the energy, the distance from the mean or a principal direction: "
    return [dataclasses.replace(check, message=where + check.message) for check in kept]


def disagreement(run: Run, judged: np.ndarray, found: Estimate) -> list[Check]:
    """What helps chains that have not arrived, or that stay apart, beside longer runs.

    `found` are means of coordinates, and `judged` the places of these in a flat position.
    """
    if not found.checks or "num_swaps" in run.stats or not run.config.get("temperature"):
        return []
    disagrees = any(check.name == checks.DISAGREEMENT.name for check in found.checks)
    if disagrees and _has_hidden_units(run):
        text = (
            "Hidden units of a network can be exchanged without changing its predictions, so that chains may disagree on weights "
            "and agree on all predictions."
        )
        return [
            checks.HIDDEN_UNITS.found(text, "Compare predictions, with `predictive.predict`, before running longer.")
        ]
    escaping = list(_escape(run, judged))
    if escaping or not disagrees or np.nanmax(found.r_hat) < checks.APART.limit:
        return escaping
    text = "Chains stay in regions of their own, which a longer run seldom cures."
    remedy = 'If barriers between modes separate them, use replica exchange (`iso.resgld(step_size, ladder="auto")`).'
    return [checks.APART.found(text, remedy, r_hat=np.nanmax(found.r_hat))]


def _has_hidden_units(run: Run) -> bool:
    """Whether the position is the weights of a network of two layers or more."""
    lead = run.log_weights.ndim
    return run.is_network and sum(len(leaf.shape) - lead > 1 for leaf in jax.tree.leaves(run.draws)) > 1


def _escape(run: Run, coordinates: np.ndarray) -> Iterator[Check]:
    """Whether chains keep moving away from where they started, to lower energies, in some coordinates of a flat position."""
    if run.num_draws < _MIN_DRAWS:
        return
    some = run.select(np.unique(np.linspace(0, run.num_draws - 1, _MAX_DRAWS).astype(int)))
    flat = columns(some.draws, some.log_weights.ndim, coordinates)
    distance = np.linalg.norm(flat - flat[..., :1, :], axis=-1)
    parts = [part.mean() for part in np.array_split(distance, 4, axis=-1)]
    energies = [part.mean() for part in np.array_split(np.asarray(some.energies, float), 4, axis=-1)]
    growth = (parts[2] + parts[3]) / max(parts[0] + parts[1], 1e-300)
    if growth <= checks.ESCAPE.limit or parts[3] <= _MIN_LATE_GROWTH * parts[2] or energies[3] > energies[0]:
        return
    given = run.config.get("mistaken_for")
    sign = "" if given is None else f" If you passed {given[0]}, which has the opposite sign, write `{given[1]}`."
    yield checks.ESCAPE.found(
        "Chains are still moving away from where they started, to lower energies: the run is too short for its step size, or "
        f"nothing holds them.{sign}",
        "Angles wander over their periods: give them a box, such as `box=(-jnp.pi, jnp.pi)`.",
        growth=growth,
    )
