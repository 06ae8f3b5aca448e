"""How well runs measure their own bias.

`python -m isotherm_thesis.studies.bias` prints the tables of docs/errors.md and writes reproduction/results/bias.json.

Spreads: a conjugate regression, N = 5,000 with batches of 100 and 500, inputs whitened and not, five step sizes. The covariance of
SGLD at a finite step is exact: with batches drawn independently x' = x - epsilon (A_b x - c_b) + noise is a linear recursion, whose
second moments are the fixed point of a linear map. Means: a logistic regression with 30 examples, against quadrature.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm_thesis.paths import RESULTS

NUM_DATA, NUM_INPUTS = 5_000, 4


def regression(is_white: bool) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets with unit noise."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(NUM_DATA, NUM_INPUTS))
    if not is_white:
        mixing = np.eye(NUM_INPUTS) + 0.8 * np.eye(NUM_INPUTS, k=1)
        inputs = inputs @ mixing * np.array([1.0, 0.3, 2.0, 1.0])
    return inputs, inputs @ np.ones(NUM_INPUTS) + rng.normal(size=NUM_DATA)


def exact_law(
    inputs: np.ndarray, targets: np.ndarray, batch_size: int, step_size: float
) -> tuple[np.ndarray, np.ndarray]:
    """The covariance of the posterior, and that of SGLD's stationary law with independent batches."""
    precision = inputs.T @ inputs + np.eye(NUM_INPUTS)
    mean = np.linalg.solve(precision, inputs.T @ targets)
    residuals = targets - inputs @ mean
    # The variance of N/n times a sum of n out of N without replacement, over the mean square of an example's deviation.
    factor = NUM_DATA**2 / batch_size * (NUM_DATA - batch_size) / (NUM_DATA - 1)
    share = (inputs.T @ inputs) / NUM_DATA
    force = inputs.T @ residuals / NUM_DATA
    noise = factor * ((inputs * residuals[:, None] ** 2).T @ inputs / NUM_DATA - np.outer(force, force))
    contraction = np.eye(NUM_INPUTS) - step_size * precision

    def after_one_step(covariance):
        squares = np.einsum("ni,ij,nj->n", inputs, covariance, inputs)
        scattered = (inputs * squares[:, None]).T @ inputs / NUM_DATA - share @ covariance @ share
        return contraction @ covariance @ contraction.T + step_size**2 * factor * scattered

    # The fixed point of a linear map, from what it does to every entry.
    entries = np.eye(NUM_INPUTS**2).reshape(-1, NUM_INPUTS, NUM_INPUTS)
    linear = np.stack([after_one_step(0.5 * (entry + entry.T)).ravel() for entry in entries], axis=1)
    added = step_size**2 * noise + 2 * step_size * np.eye(NUM_INPUTS)
    stationary = np.linalg.solve(np.eye(NUM_INPUTS**2) - linear, added.ravel()).reshape(NUM_INPUTS, NUM_INPUTS)
    return np.linalg.inv(precision), stationary


def spreads() -> list[dict[str, float | str]]:
    """Of the coordinate that is widened most: by how much, exactly and as the run measures it."""
    rows = []
    for is_white in (True, False):
        inputs, targets = regression(is_white)
        data = (inputs.astype(np.float32), targets.astype(np.float32))
        stiffest = np.linalg.eigvalsh(inputs.T @ inputs)[-1]
        for batch_size in (100, 500):
            potential = iso.from_likelihood(
                lambda w, example: -0.5 * (example[1] - example[0] @ w) ** 2,
                lambda w: -0.5 * jnp.sum(w**2),
                data,
                batch_size=batch_size,
                batching="independent",
            )
            for share in (0.002, 0.005, 0.01, 0.03, 0.1):
                step_size = share / stiffest
                truth, law = exact_law(inputs, targets, batch_size, step_size)
                center = np.linalg.solve(inputs.T @ inputs + np.eye(NUM_INPUTS), inputs.T @ targets)
                start = jnp.asarray(center, jnp.float32)
                run = iso.sample(
                    potential,
                    iso.sgld(step_size),
                    num_steps=50_000,
                    num_chains=4,
                    burn_in=5_000,
                    thinning=10,
                    init=start,
                    progress=False,
                )
                found = run.estimate(lambda w, start=start: (w - start) ** 2)
                excess = np.diag(law) / np.diag(truth) - 1.0
                worst = int(np.argmax(excess))
                rows.append(
                    {
                        "inputs": "whitened" if is_white else "correlated",
                        "n": batch_size,
                        "step": float(step_size),
                        "exact": float(excess[worst]),
                        "measured": float(found.bias[worst] / truth[worst, worst]),
                        "error": float(found.bias_error[worst] / truth[worst, worst]),
                        "seen": float(found.mean[worst] / truth[worst, worst]) - 1.0,
                        "std_error": float(found.std_error[worst] / truth[worst, worst]),
                    }
                )
                print(rows[-1], flush=True)
    return rows


def means() -> list[dict[str, float]]:
    """Of the coordinate whose mean moves most, in standard deviations: what the run has, and what it measures."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(30, 2))
    labels = (rng.random(30) < 1 / (1 + np.exp(-inputs @ np.array([2.5, 1.0])))).astype(float)

    def energy(w, xp=jnp):
        margin = inputs @ w * (2 * labels - 1)[:, None] if w.ndim > 1 else inputs @ w * (2 * labels - 1)
        return xp.sum(xp.logaddexp(0.0, -margin), axis=0) + 0.02 * xp.sum(w**2, axis=0)

    grid = np.stack(np.meshgrid(np.linspace(-4, 30, 1201), np.linspace(-10, 20, 1201), indexing="ij")).reshape(2, -1)
    values = np.concatenate([energy(part, np) for part in np.array_split(grid, 300, axis=1)])
    weights = np.exp(values.min() - values)
    weights /= weights.sum()
    mean = grid @ weights
    sd = np.sqrt((grid - mean[:, None]) ** 2 @ weights)
    rows = []
    for step_size in (0.03, 0.1, 0.3):
        settings = {"num_steps": 400_000, "num_chains": 16, "burn_in": 5_000, "thinning": 10, "progress": False}
        run = iso.sample(energy, iso.sgld(step_size), init=jnp.asarray(mean, jnp.float32), **settings)
        found = jax.tree.map(np.asarray, run.estimate(lambda w: w))
        off = (found.mean - mean) / sd
        worst = int(np.argmax(np.abs(off)))
        rows.append(
            {
                "step": step_size,
                "off": float(off[worst]),
                "std_error": float(found.std_error[worst] / sd[worst]),
                "measured": float(found.bias[worst] / sd[worst]),
                "error": float(found.bias_error[worst] / sd[worst]),
            }
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Both tables."""
    record = {"spreads": spreads(), "means": means()}
    (RESULTS / "bias.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
