"""The normalizing constant of the target, along a path from a reference that is normalized and can be drawn.

The energies of neighboring rungs give the ratio of their constants by Bennett's acceptance ratio; the reference's constant is 1.
"""

from typing import TYPE_CHECKING

import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.bennett import log_ratio, score, slope
from isotherm.foundation.checks import Check
from isotherm.foundation.errors import refuse
from isotherm.run.estimates import Estimate

if TYPE_CHECKING:
    from isotherm.run.run import Run

# Groups of draws that the jackknife leaves out in turn, at least.
_NUM_GROUPS = 24


def log_evidence(run: "Run") -> Estimate:
    """`Run.log_evidence`, without the checks of the run.

    Example:
        >>> import isotherm as iso, jax, jax.numpy as jnp
        >>> log_prior = lambda x: -0.5 * x @ x - jnp.log(2 * jnp.pi)
        >>> energy = lambda x: 50.0 * jnp.sum((x - 1.0) ** 2) - log_prior(x)
        >>> problem = iso.with_reference(energy, lambda key: jax.random.normal(key, (2,)), log_prior)
        >>> sampler = iso.reghmc(0.01, temperatures=(1.0, 6.0, 40.0, jnp.inf), path="reference")
        >>> run = iso.sample(problem, sampler, num_steps=5000, burn_in=500, init=jnp.zeros(2))
        >>> found = run.log_evidence()
        >>> bool(abs(found.mean + jnp.log(101.0) + 100.0 / 101.0) < 5 * found.std_error)
        True
    """
    energies, betas = _path_of(run)
    steps = betas[:-1] - betas[1:]
    if not np.all(np.isfinite(energies)):
        remedy = "Lower `step_size`, or look at the energy there."
        refuse("run", "one whose energies are finite on every rung", "one with energies that are not", remedy)
    number = energies.shape[1]
    per_ladder = max(1, min(-(-_NUM_GROUPS // len(energies)), number // 2))
    # Works of a pair: of draws of the cold rung, and of the hot one, shape (ladder, draw, pair).
    cold, hot = steps * energies[..., :-1], steps * energies[..., 1:]
    pieces = [
        (cold[ladder, span], hot[ladder, span])
        for ladder in range(len(energies))
        for span in np.array_split(np.arange(number), per_ladder)
    ]
    center = log_ratio(cold.reshape(-1, len(steps)), hot.reshape(-1, len(steps)))
    whole = float(np.sum(center))
    # Leaving a group out moves the root of the sum by about its share of the sum, which needs no second search.
    scores = np.stack([score(*piece, center) for piece in pieces])
    slopes = sum(slope(*piece, center) for piece in pieces)
    moves = np.sum(scores / np.where(slopes > 0.0, slopes, np.nan), axis=1)
    groups = len(moves)
    error = float(np.sqrt(groups / (groups - 1.0) * np.sum((moves - moves.mean()) ** 2))) if groups > 1 else np.nan
    degrees = float(groups - 1)
    if len(energies) >= 4:
        # Ladders that disagree by more than their own scatter are what the error must show.
        of_ladders = moves.reshape(len(energies), -1).sum(axis=1)
        between = float(np.sqrt(len(energies) / (len(energies) - 1.0) * np.sum((of_ladders - of_ladders.mean()) ** 2)))
        if between > error:
            error, degrees = between, float(len(energies) - 1)
    reference = [check for check in run.part_checks if check.name == checks.REFERENCE.name]
    nothing = np.asarray(np.nan)
    variance = error**2 or np.nan
    return Estimate(
        mean=np.asarray(whole),
        std_error=np.asarray(error),
        effective_draws=np.asarray(1.0 / variance),
        spread=nothing,
        r_hat=nothing,
        degrees=np.asarray(degrees),
        checks=(*_overlap(cold, hot, center), *reference),
        bias=np.asarray(0.0) if run.is_adjusted else nothing,
        bias_error=np.asarray(0.0) if run.is_adjusted else nothing,
    )


def _path_of(run: "Run") -> tuple[np.ndarray, np.ndarray]:
    """Energies U - U_0 of the rungs, shape (ladder, draw, rung), from the target to the reference, and beta of each rung."""
    if "path_energies" not in run.observed:
        remedy = "Use `iso.with_reference` and `path='reference'` of an exchange sampler; or `log_z_ratio` of a contour sampler."
        refuse("run", "one along a path from a reference that can be drawn", run.name, remedy)
    betas = 1.0 / np.asarray(run.stats["temperature_ratios"], np.float64).reshape(
        -1, run.observed["path_energies"].shape[-1]
    )
    if np.any(betas[:, -1] != 0.0) or not np.allclose(betas, betas[0]):
        remedy = "End the ladder with an infinite temperature, which draws from the reference."
        refuse("run", "one whose hottest rung is the reference", f"one that ends at {1 / betas[0, -1]:.4g}", remedy)
    if not run.config.get("is_exact"):
        remedy = "Give all data in every iteration, or use `log_z_ratio` of a contour sampler."
        refuse("run", "one with exact energies", "one with noisy ones, which would bias log Z", remedy)
    stored = np.asarray(run.observed["path_energies"], np.float64)
    # The first record is from before the first iteration.
    stored = stored[..., 1:, :] if int(run.iterations[0]) == 0 else stored
    return stored.reshape(-1, *stored.shape[-2:]), betas[0]


def _overlap(cold: np.ndarray, hot: np.ndarray, center: np.ndarray) -> list[Check]:
    """Whether neighboring rungs share enough energies: the mean acceptance between them."""
    accepted = np.minimum(
        np.mean(np.minimum(np.exp(np.minimum(-hot - center, 0.0)), 1.0), axis=(0, 1)),
        np.mean(np.minimum(np.exp(np.minimum(cold + center, 0.0)), 1.0), axis=(0, 1)),
    )
    worst = int(np.argmin(accepted))
    if accepted[worst] >= checks.RUNG_OVERLAP.limit:
        return []
    text = f"Rungs {worst} and {worst + 1} overlap too little for the evidence: {accepted[worst]:.1%} of swaps would be accepted."
    return [checks.RUNG_OVERLAP.found(text, "Use more rungs.", acceptance=float(accepted[worst]))]
