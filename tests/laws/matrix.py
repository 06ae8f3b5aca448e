"""The matrix of laws: what every named sampler promises in every setting, and how a cell is run.

A cell is a sampler in a setting. Targets have one coordinate, and truths by quadrature. `PROMISES` names what a sampler promises
where it is not an exact law up to discretization; the docstrings of the samplers say the same.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import isotherm as iso
from isotherm.samplers import METHODS
from isotherm.samplers.sampler import resolved

SETTINGS = ("temperature", "box", "batches", "modes", "resume", "thinned", "double")
FAMILIES = {
    "independent": ("sgd", "msgd", "sgld", "psgld", "sghmc", "cycsgld", "cycsghmc", "svgd", "swag"),
    "exchange": (
        *("naive_resgld", "resgld", "resghmc", "vr_resgld", "vr_resghmc", "cvr_resghmc"),
        *("deo_sgd", "deo_star_sgd", "deo_star_psgd", "deo_star_msgd"),
    ),
    "contour": ("csgld", "csghmc", "ksgld", "icsgld", "icsghmc", "picsgld", "awsgld"),
    "adjusted": ("mala", "ghmc", "reghmc"),
}
MOMENTUM = {
    "msgd",
    "sghmc",
    "cycsghmc",
    "swag",
    "resghmc",
    "vr_resghmc",
    "cvr_resghmc",
    "deo_star_msgd",
    "csghmc",
    "icsghmc",
}
WITH_DATA = {"vr_resgld", "vr_resghmc", "cvr_resghmc"}
# Samplers whose two chains share what they learn.
PAIRED = {"icsgld", "icsghmc", "picsgld"}

# "law": means and variances of exp(-U / T), up to discretization. "noisy law": up to energy noise as well. "mean": means, and
# spreads within a quarter. "descends": draws come to lie around a minimum. "low": every run comes close to the lowest energy.
# "inside": draws stay in the box. "within": means and variances given the mode. "exact": means and variances at every step size.
# "refused": the setting is an error.
PROMISES: dict[str, dict[str, str]] = {
    "sgd": dict.fromkeys(SETTINGS, "descends"),
    "msgd": dict.fromkeys(SETTINGS, "descends"),
    "swag": dict.fromkeys(SETTINGS, "descends"),
    "svgd": {**dict.fromkeys(SETTINGS, "mean"), "box": "inside", "modes": "low"},
    "cycsgld": {"modes": "within"},
    "cycsghmc": {"modes": "within"},
    "cvr_resghmc": {**dict.fromkeys(SETTINGS, "mean"), "box": "inside", "modes": "low"},
    "naive_resgld": {"batches": "noisy law"},
    **{name: dict.fromkeys(SETTINGS, "low") for name in ("deo_sgd", "deo_star_sgd", "deo_star_psgd", "deo_star_msgd")},
    **{name: {"batches": "noisy law"} for name in ("csgld", "csghmc", "ksgld", "icsgld", "icsghmc", "picsgld")},
    "awsgld": dict.fromkeys(SETTINGS, "low"),
    **{name: {**dict.fromkeys(SETTINGS, "exact"), "batches": "refused"} for name in FAMILIES["adjusted"]},
}

NUM_RUNS = 32
# Data without influence on the energy of all: the batches' noise averages to nothing over an epoch.
NUM_DATA, BATCH_SIZE, NOISE = 53, 10, 0.02


@dataclasses.dataclass(frozen=True)
class Target:
    """An energy of one coordinate with its truth.

    Attributes:
        energy: of a position of shape (1,).
        temperature: of the law.
        box: that cuts it off; None for none.
        step_size: for chains without momentum.
        num_steps: that give errors of about a per cent.
        split: between two modes; None where there is one.
    """

    energy: Callable[[Any], Any]
    temperature: float
    box: tuple[float, float] | None
    step_size: float
    num_steps: int
    split: float | None = None

    @functools.cached_property
    def grid(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Points, energies and probabilities."""
        points = np.linspace(*(self.box or (-12.0, 12.0)), 200_001)
        energies = np.asarray(jax.vmap(self.energy)(jnp.asarray(points[:, None])), np.float64)
        density = np.exp(-(energies - energies.min()) / self.temperature)
        return points, energies, density / density.sum()

    def moments(self, low: float = -np.inf) -> tuple[float, float]:
        """Mean and variance of the part above `low`."""
        points, _, mass = self.grid
        mass = np.where(points > low, mass, 0.0)
        mean = np.sum(points * mass) / mass.sum()
        return float(mean), float(np.sum((points - mean) ** 2 * mass) / mass.sum())


def skewed(x):
    """One well that is neither symmetric nor around zero."""
    return 0.5 * jnp.sum((x - 1.0) ** 2) + 0.4 * jnp.sum(jnp.sin(2.0 * x))


def two_modes(x):
    """Masses 0.3 and 0.7, widths 0.4 and 0.8, a barrier of 1.4."""
    left = jnp.log(0.3 / 0.4) - 0.5 * ((x + 1.5) / 0.4) ** 2
    right = jnp.log(0.7 / 0.8) - 0.5 * ((x - 1.0) / 0.8) ** 2
    return -jnp.sum(jnp.logaddexp(left, right))


WELL = Target(skewed, 2.0, None, 0.05, 20_000)
BOXED = Target(skewed, 2.0, (-0.5, 2.0), 0.01, 40_000)
MODES = Target(two_modes, 1.0, None, 0.01, 80_000, split=-0.55)


def target_of(setting: str) -> Target:
    return {"box": BOXED, "modes": MODES}.get(setting, WELL)


def promise_of(method: str, setting: str) -> str:
    return PROMISES.get(method, {}).get(setting, "law")


@functools.cache
def potential_of(setting: str, has_data: bool) -> Any:
    energy = target_of(setting).energy
    if not has_data:
        return iso.from_energy(energy)
    tilts = np.random.default_rng(0).normal(size=NUM_DATA)
    tilts = (NOISE * (tilts - tilts.mean())).astype(np.float32)

    def log_likelihood(x, tilt):
        return -energy(x) / NUM_DATA - tilt * x[0]

    return iso.from_likelihood(log_likelihood, None, tilts, batch_size=BATCH_SIZE)


def sampler_of(method: str, setting: str, factor: float) -> iso.Sampler:
    """The sampler of a cell, at a multiple of the target's step size."""
    target = target_of(setting)
    # Adjusted kernels have no discretization bias at large steps.
    share = 10.0 if method in FAMILIES["adjusted"] else 0.2 if method in MOMENTUM else 1.0
    step = factor * target.step_size * share
    if setting == "modes" and method in FAMILIES["contour"]:
        step *= 0.5  # Multipliers of up to 5 act on the narrow mode.
    burn_in = target.num_steps // 5
    options: dict[str, Any] = {"box": target.box}
    has_ladder = method in FAMILIES["exchange"] or method == "reghmc"
    if method not in ("sgd", "msgd", "swag") and not has_ladder:
        options["temperature"] = target.temperature
    if method in ("psgld", "picsgld"):
        options |= {"freeze_after": burn_in // 2, "decay": 0.999}
    if method.startswith("cyc"):
        hot = {"exploration_temperature": target.temperature}
        options |= {"cycle_length": 200, "sampling_from": 0.5, "hold_from": 0.5, **hot}
        step *= 2
    if method == "cvr_resghmc":
        options |= {"cycle_length": 400, "sampling_from": 0.5, "hold_from": 0.5, "refresh_every": 100}
        step *= 2
    if method in ("vr_resgld", "vr_resghmc"):
        options |= {"refresh_every": 100}
    if method in ("resgld", "resghmc"):
        options |= {"measure_every": 50}
    if has_ladder:
        if method.startswith("deo"):
            options |= {"temperature": target.temperature, "num_replicas": 4}
            return resolved(METHODS[method]((step, 4 * step), **options))
        options["temperatures"] = (target.temperature, 2 * target.temperature)
    if method in FAMILIES["contour"]:
        _, energies, mass = target.grid
        low = float(energies.min()) + 0.25 * target.temperature
        partition = iso.contour.Partition(low, 0.4 * target.temperature, 14)
        options |= {"partition": partition}
        if method == "ksgld":
            bins = np.asarray(partition.index(jnp.asarray(energies)))
            options["theta"] = tuple(np.maximum(np.bincount(bins, mass, minlength=14), 1e-6).tolist())
        if method == "awsgld":
            options["max_displacement"] = 0.5
    if method == "svgd":
        step = 1.0 if setting != "box" else 0.1
    return resolved(METHODS[method](step, **options))


def run_of(method: str, setting: str, factor: float = 1.0, folder: Any = None) -> iso.Run:
    """The run of a cell; where there is a folder, stopped half way and resumed."""
    target = target_of(setting)
    sampler = sampler_of(method, setting, factor)
    potential = potential_of(setting, setting == "batches" or method in WITH_DATA)
    # Weighted draws, draws late in cycles, and chains that a preconditioner slows down, need more of them.
    is_slow = method in FAMILIES["contour"] or method in ("psgld", "cycsgld", "cycsghmc")
    num_steps = target.num_steps * (
        3 if method in FAMILIES["contour"] and method not in PAIRED else 2 if is_slow else 1
    )
    if setting == "modes" and method in (*FAMILIES["contour"], "psgld"):
        num_steps *= 3 if method in PAIRED else 4
    if setting == "modes" and method == "sgld":
        num_steps *= 2
    options: dict[str, Any] = {"num_runs": NUM_RUNS, "burn_in": num_steps // 5, "seed": 1}
    if method in PAIRED:
        options["num_chains"] = 2
    if method == "svgd":
        num_steps, options = 2_000, {"num_runs": 2, "num_chains": 60, "burn_in": 900, "thinning": 50}
    else:
        options["thinning"] = 37 if setting == "thinned" else target.num_steps // 2_000 * (2 if is_slow else 1)
    dtype = jnp.float64 if setting == "double" else jnp.float32
    options["init"] = lambda key: 0.5 + 0.3 * jax.random.normal(key, (1,), dtype)
    if folder is None:
        return iso.sample(potential, sampler, num_steps=num_steps, progress=False, **options)
    iso.sample(potential, sampler, num_steps=num_steps // 2, progress=False, out=folder, **options)
    return iso.resume(folder, potential, sampler, num_steps=num_steps, progress=False)


def moments_of(run: iso.Run, low: float = -np.inf) -> np.ndarray:
    """Weighted mean and variance of every run, shape (R, 2), of the draws above `low`."""
    draws = np.asarray(run.draws, np.float64)[..., 0].reshape(len(run.draws), -1)
    log_weights = np.asarray(run.log_weights, np.float64).reshape(draws.shape)
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True)) * (draws > low)
    mean = np.sum(weights * draws, axis=1) / weights.sum(axis=1)
    return np.stack([mean, np.sum(weights * (draws - mean[:, None]) ** 2, axis=1) / weights.sum(axis=1)], axis=1)


def stationary_moments(target: Target, step_size: float, num_cells: int = 1_500) -> tuple[float, float]:
    """Mean and variance of the stationary law of SGLD itself, from its transition probabilities between cells of a grid."""
    low, high = target.box or (-7.0, 9.0) if target is WELL else target.box or (-5.0, 6.0)
    edges = np.linspace(low, high, num_cells + 1)
    middles = 0.5 * (edges[1:] + edges[:-1])
    slopes = np.asarray(jax.vmap(jax.grad(target.energy))(jnp.asarray(middles[:, None], jnp.float32)), np.float64)[:, 0]
    from scipy.special import ndtr

    ends = (edges[None] - (middles - step_size * slopes)[:, None]) / np.sqrt(2 * step_size * target.temperature)
    moves = np.diff(ndtr(ends), axis=1)
    # What leaves the box stays where it was; without a box hardly anything does.
    moves[np.arange(num_cells), np.arange(num_cells)] += 1 - moves.sum(axis=1)
    # The law that the moves leave as it is. One of these equations follows from the others, and gives way to a total of one.
    equations, total = moves.T - np.eye(num_cells), np.zeros(num_cells)
    equations[-1], total[-1] = 1.0, 1.0
    law = np.linalg.solve(equations, total)
    mean = law @ middles
    return float(mean), float(law @ (middles - mean) ** 2)
