"""Checks on the chains of a run: divergence, starts, and disagreement."""

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
from isotherm.run.estimates import Estimate, estimate, for_each, normalized_weights
from isotherm.run.run import Run

# The p-value at which starts are closer together than the draws.
_P_VALUE = 0.01
# Draws from which principal directions are found, and how many directions are compared.
_MAX_PROJECTED, _NUM_DIRECTIONS = 1_000, 3
# Escape reads at most 400 draws of a chain and needs 16. The mean distance from the start must grow by 2 % from the third
# quarter to the last; for a free random walk it grows by 20 %, and by 80 % from the first half to the second.
_MAX_DRAWS, _MIN_DRAWS, _MIN_LATE_GROWTH = 400, 16, 1.02


def checks_without_draws(run: Run) -> list[Check]:
    """Checks that read no draws."""
    settings = run.config.get("settings", {})
    found, asked = [], settings.get("num_steps", run.num_steps)
    wanted, is_precise = settings.get("num_effective"), "fewest_effective" in run.stats
    if wanted is not None and run.num_steps == asked and not is_precise:
        text = f"The budget ended before all masses and coordinates had the {wanted:,} effective draws wanted."
        found.append(checks.IMPRECISE.found(text, "Raise `budget`.", wanted=wanted))
    if run.num_steps < asked and not run.has_died and not is_precise:
        text = f"Stopped after {run.num_steps} of {asked} iterations."
        remedy = "A run with a folder (`out=`) can be continued by `iso.resume`."
        found.append(checks.STOPPED.found(text, remedy, num_steps=run.num_steps))
    if "diverged_at" not in run.stats:
        text = "Read at a checkpoint: divergence, coupling and bias are checked when the run has ended."
        return [*found, checks.UNFINISHED.found(text)]
    diverged = np.asarray(run.stats["diverged_at"]) >= 0
    if diverged.any():
        what = "replicas" if "num_swaps" in run.stats else "chains"
        text = f"{int(diverged.sum())} of {diverged.size} {what} diverged."
        found.append(checks.DIVERGED.found(text, "Lower `step_size`, or use a `box`.", number=diverged.sum()))
    restarts = np.asarray(run.stats.get("num_restarts", 0))
    if restarts.any():
        text = (
            f"{int(np.sum(restarts > 0))} of {restarts.size} chains were restarted, {int(restarts.sum())} times in all."
        )
        remedy = "Draws after a restart begin at the start again. Lower `step_size`, or use a `box`."
        found.append(checks.RESTARTED.found(text, remedy, number=restarts.sum()))
    if run.has_died:
        return [*found, checks.ALL_DIVERGED.found("All chains diverged; the draws are unusable.")]
    return [*found, *_starts(run)]


def _starts(run: Run) -> Iterator[Check]:
    if "num_swaps" in run.stats or not run.claims_distribution:
        return
    if np.asarray(run.stats["diverged_at"]).size == 1:
        text = "One chain: convergence cannot be checked."
        yield checks.ONE_CHAIN.found(text, "Pass `num_chains=4` or more, with overdispersed starts.")
    elif run.config.get("has_one_start"):
        remedy = "Pass a function of a key as `init`, or `iso.per_chain(positions)`."
        if run.is_network:
            remedy = "Pass the network's class, or a function that makes it, to the potential instead of a module."
        text = "All chains started at one point: their agreement is no evidence about modes that are hard to reach."
        yield checks.ONE_START.found(text, remedy)


def close_starts(run: Run) -> Iterator[Check]:
    """Whether chains without a ladder started closer together than the draws."""
    spread, config = run.config.get("start_spread"), run.config
    if spread is None or "num_swaps" in run.stats or not run.claims_distribution or config.get("has_one_start"):
        return
    drawn = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(run.std())])
    number = np.asarray(run.stats["diverged_at"]).size
    by_chance = math.sqrt(scipy.special.chdtri(number - 1, 1.0 - _P_VALUE) / number)
    if len(drawn) != len(spread) or np.any(np.asarray(spread) >= min(checks.CLOSE_STARTS.limit, by_chance) * drawn):
        return
    text = "Chains started closer together than the draws: their agreement says little about modes far from the starts."
    remedy = "Pass overdispersed starts, such as `init=lambda key: 3.0 * jax.random.normal(key, shape)`."
    ratio = np.max(np.asarray(spread) / np.where(drawn > 0, drawn, np.inf))
    yield checks.CLOSE_STARTS.found(text, remedy, ratio=ratio)


def projections(run: Run, judged: np.ndarray, found: Estimate) -> list[Check]:
    """Checks of the energy, the distance from the mean and principal directions, for modes that no single coordinate shows.

    `found` has the means of the `judged` coordinates.
    """
    mean, spread = np.asarray(found.mean), np.where(np.asarray(found.spread) > 0, found.spread, 1.0)
    chosen = np.unique(np.linspace(0, run.num_draws - 1, _MAX_PROJECTED).astype(int))
    weights = normalized_weights(np.asarray(run.log_weights)[..., chosen]).reshape(-1)
    values = columns(run.draws, run.log_weights.ndim, judged)[..., chosen, :].reshape(weights.size, -1)
    scaled = np.where(weights[:, None] > 0, (values - mean) / spread, 0.0)
    directions = np.linalg.eigh((weights[:, None] * scaled).T @ scaled)[1][:, -_NUM_DIRECTIONS:].T

    def projected(draw):
        position, energy = draw
        at = jnp.concatenate([leaf.astype(float).reshape(-1) for leaf in jax.tree.leaves(position)])[judged]
        at = (at - mean) / spread
        return jnp.concatenate([jnp.stack([energy.astype(float), jnp.sum(at**2)]), directions @ at])

    given = ((run.draws, run.energies), np.asarray(run.log_weights), None, run.are_particles, run.shares_noise)
    seen = estimate(for_each(projected), *given)
    # One of several projections has a large R-hat by chance.
    is_known = np.min(seen.effective_draws) >= checks.FEW_DRAWS.limit
    kept = [check for check in seen.checks if not (is_known and check.name == checks.LARGE_R_HAT.name)]
    where = "Of the energy, the distance from the mean or a principal direction: "
    return [dataclasses.replace(check, message=where + check.message) for check in kept]


def disagreement(run: Run, judged: np.ndarray, found: Estimate) -> list[Check]:
    """Why chains disagree: hidden units, escape, or separate modes. `found` has the means of the `judged` coordinates."""
    if not found.checks or "num_swaps" in run.stats or not run.config.get("temperature"):
        return []
    disagrees = any(check.name == checks.DISAGREEMENT.name for check in found.checks)
    lead = run.log_weights.ndim
    num_layers = sum(len(leaf.shape) - lead > 1 for leaf in jax.tree.leaves(run.draws))
    if disagrees and run.is_network and num_layers > 1:
        text = "Hidden units of a network can be permuted: chains may disagree on weights and agree on predictions."
        return [checks.HIDDEN_UNITS.found(text, "Compare predictions (`predictive.predict`) before running longer.")]
    escaping = list(_escape(run, judged))
    if escaping or not disagrees or np.nanmax(found.r_hat) < checks.APART.limit:
        return escaping
    text = "Chains stay in different regions, which a longer run seldom cures."
    remedy = 'If barriers between modes separate them, use replica exchange (`iso.resgld(step_size, ladder="auto")`).'
    return [checks.APART.found(text, remedy, r_hat=np.nanmax(found.r_hat))]


def _escape(run: Run, coordinates: np.ndarray) -> Iterator[Check]:
    """Whether chains keep moving away from their starts, to lower energies."""
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
    text = (
        "Chains are still moving away from their starts, to lower energies: the run is too short for its step size, or the "
        f"distribution is improper.{sign}"
    )
    yield checks.ESCAPE.found(
        text,
        "If positions are angles, sample `iso.transforms.constrain(log_density, iso.transforms.circular())`.",
        growth=growth,
    )
