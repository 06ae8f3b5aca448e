"""The evidence along a path lies within its error of the closed form, and references that would shift it are noticed."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats

import isotherm as iso
from isotherm.potentials.reference import ReferenceChecks
from isotherm.transforms import constrain, interval, positive, simplex
from tests.statistics import FAIL, PASS

NUM_RUNS = 100


@dataclasses.dataclass(frozen=True)
class Problem:
    """A target along a path.

    Attributes:
        potential: with its reference.
        truth: the log of its integral.
        size: of a position.
        temperatures: of the path.
        step_size: of `ghmc` on all rungs.
    """

    potential: Any
    truth: float
    size: int
    temperatures: tuple[float, ...]
    step_size: float | tuple[float, ...]


def normal_reference(size: int, scale: float) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Draws and density of independent normal numbers."""
    return (
        lambda key: scale * jax.random.normal(key, (size,)),
        lambda x: jnp.sum(stats.norm.logpdf(x, 0.0, scale)),
    )


def gaussian(size: int, ratio: float, constant: float) -> Problem:
    """Scales from 1 to `ratio`, rotated, with a constant in the energy."""
    rng = np.random.default_rng(size)
    axes = np.linalg.qr(rng.normal(size=(size, size)))[0]
    scales = np.geomspace(1.0, ratio, size)
    precision = (axes / scales**2) @ axes.T
    mean, matrix = jnp.asarray(0.5 * rng.normal(size=size), jnp.float32), jnp.asarray(precision, jnp.float32)
    energy = lambda x: 0.5 * (x - mean) @ matrix @ (x - mean) + constant  # noqa: E731
    truth = 0.5 * size * np.log(2.0 * np.pi) + np.sum(np.log(scales)) - constant
    potential = iso.with_reference(energy, *normal_reference(size, 3.0))
    step = 0.25 * min(1.0, ratio) ** 2
    return Problem(potential, float(truth), size, (1.0, 3.0, 10.0, 40.0, 300.0, np.inf), step)


def mixture(size: int, masses: tuple[float, ...], apart: float) -> Problem:
    """Normal modes of scale 0.5, `apart` along the first coordinate, with masses that need not sum to 1."""
    centers = apart * (np.arange(len(masses)) - 0.5 * (len(masses) - 1))
    logs = jnp.log(jnp.asarray(masses))

    def energy(x):
        squares = (x[0] - jnp.asarray(centers, jnp.float32)) ** 2 + jnp.sum(x[1:] ** 2)
        return -jax.scipy.special.logsumexp(logs - 0.5 * squares / 0.25) + 0.5 * size * jnp.log(2.0 * jnp.pi * 0.25)

    potential = iso.with_reference(energy, *normal_reference(size, 3.0))
    return Problem(potential, float(np.log(np.sum(masses))), size, (1.0, 3.0, 10.0, 40.0, np.inf), 0.1)


def regression() -> Problem:
    """A conjugate linear regression, whose evidence is the normal density of its outputs."""
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(40, 3)).astype(np.float32)
    outputs = (inputs @ np.array([1.0, -0.5, 0.0]) + 0.7 * rng.normal(size=40)).astype(np.float32)
    covariance = 4.0 * inputs @ inputs.T.astype(np.float64) + 0.49 * np.eye(40)
    truth = -0.5 * (outputs @ np.linalg.solve(covariance, outputs) + np.linalg.slogdet(2.0 * np.pi * covariance)[1])

    def log_likelihood(weights, examples):
        x, y = examples
        return stats.norm.logpdf(y, x @ weights, 0.7)

    draw, log_prior = normal_reference(3, 2.0)
    potential = iso.from_likelihood(log_likelihood, log_prior, (inputs, outputs))
    return Problem(iso.with_reference(potential, draw), float(truth), 3, (1.0, 4.0, 16.0, 64.0, 400.0, np.inf), 0.005)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "gaussian 1": lambda: gaussian(1, 1.0, 0.0),
    "gaussian 2": lambda: gaussian(2, 0.3, 30.0),
    "gaussian 3": lambda: gaussian(3, 0.5, -4.0),
    "gaussian 6": lambda: gaussian(6, 0.5, 100.0),
    "gaussian 10": lambda: gaussian(10, 0.4, 0.0),
    "two modes": lambda: mixture(1, (0.3, 2.7), 4.0),
    "three modes": lambda: mixture(2, (0.2, 0.5, 0.3), 3.0),
    "regression": regression,
}
QUICK = ("two modes", "regression")


def estimates(problem: Problem, num_steps: int = 2_000, seed: int = 0) -> list[Any]:
    sampler = iso.reghmc(problem.step_size, temperatures=problem.temperatures, friction=0.3, path="reference")
    run = iso.sample(
        problem.potential,
        sampler,
        num_steps=num_steps,
        num_runs=NUM_RUNS,
        burn_in=num_steps // 10,
        init=lambda key: jax.random.normal(key, (problem.size,)),
        seed=seed,
    )
    return [one.log_evidence() for one in run.split_runs()]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in PROBLEMS]
)
def test_the_evidence_is_within_its_error(name):
    problem = PROBLEMS[name]()
    found = estimates(problem)
    means, errors = (np.array([float(getattr(one, part)) for one in found]) for part in ("mean", "std_error"))
    z = (means - problem.truth) / errors
    ends = np.array([one.interval(0.95) for one in found]).reshape(-1, 2)
    covered = np.mean((ends[:, 0] <= problem.truth) & (problem.truth <= ends[:, 1]))
    assert np.all(errors < 0.3)
    assert abs(means.mean() - problem.truth) < PASS * means.std(ddof=1) / np.sqrt(NUM_RUNS)
    # Of 100 values of Student's t with about 23 degrees of freedom.
    assert 0.75 < z.std(ddof=1) < 1.35
    assert covered >= 0.9
    assert all(
        not one.checks or {check.name for check in one.checks} <= {"few-tours", "no-round-trips"} for one in found
    )


def test_a_prior_without_its_constant_shifts_the_evidence_and_is_noticed():
    draw, log_prior = normal_reference(2, 3.0)
    problem = PROBLEMS["gaussian 2"]()
    shifted = iso.with_reference(problem.potential.inner, draw, lambda x: log_prior(x) + 1.0)
    found = estimates(dataclasses.replace(problem, potential=shifted))
    means = np.array([float(one.mean) for one in found])
    # A density that integrates to e makes the ratio of the constants smaller.
    assert abs(means.mean() - problem.truth + 1.0) < PASS * means.std(ddof=1) / np.sqrt(NUM_RUNS)
    assert abs(means.mean() - problem.truth) > FAIL * means.std(ddof=1) / np.sqrt(NUM_RUNS)
    assert all("reference" in {check.name for check in one.checks} for one in found)


def referenced(draw, log_density):
    """A flat energy with a reference."""
    flat = iso.from_energy(lambda x: jnp.zeros(()) * sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x)))
    return iso.with_reference(flat, draw, log_density)


def summed(log_density):
    return lambda x: jnp.sum(log_density(x))


ALPHA = jnp.array([0.7, 2.0, 5.0])
RIGHT = {
    "normal in 50 dimensions": referenced(lambda key: jax.random.normal(key, (50,)), summed(stats.norm.logpdf)),
    "uniform": referenced(lambda key: jax.random.uniform(key, (3,)), summed(stats.uniform.logpdf)),
    "exponential": referenced(lambda key: jax.random.exponential(key, (2,)), summed(stats.expon.logpdf)),
    "Cauchy": referenced(lambda key: jax.random.cauchy(key, (4,)), summed(stats.cauchy.logpdf)),
    "two modes": referenced(
        lambda key: jax.random.normal(key, (2,)) + 20.0 * jax.random.rademacher(jax.random.fold_in(key, 1), ()),
        lambda x: jnp.logaddexp(*(jnp.sum(stats.norm.logpdf(x, end)) for end in (-20.0, 20.0))) - jnp.log(2.0),
    ),
    "Dirichlet": constrain(
        referenced(lambda key: jax.random.dirichlet(key, ALPHA), lambda x: stats.dirichlet.logpdf(x, ALPHA)), simplex()
    ),
    "half Cauchy": constrain(
        referenced(
            lambda key: jnp.abs(jax.random.cauchy(key, (2,))), lambda x: jnp.sum(stats.cauchy.logpdf(x) + jnp.log(2.0))
        ),
        positive(),
    ),
    "uniform by its logit": constrain(
        referenced(lambda key: jax.random.uniform(key, (2,), minval=1e-6), summed(stats.uniform.logpdf)),
        interval(0.0, 1.0),
    ),
}
WRONG = {
    "no constant": (referenced(lambda key: jax.random.normal(key, (1,)), lambda x: -0.5 * jnp.sum(x**2)), 2.5066),
    "no constant in 50 dimensions": (
        referenced(lambda key: jax.random.normal(key, (50,)), lambda x: -0.5 * jnp.sum(x**2)),
        (2.0 * np.pi) ** 25,
    ),
    "a fifth too much": (
        referenced(lambda key: jax.random.normal(key, (3,)), lambda x: jnp.sum(stats.norm.logpdf(x)) + np.log(1.2)),
        1.2,
    ),
    "Dirichlet": (
        constrain(
            referenced(lambda key: jax.random.dirichlet(key, ALPHA), lambda x: jnp.sum((ALPHA - 1.0) * jnp.log(x))),
            simplex(),
        ),
        float(jnp.exp(jnp.sum(jax.lax.lgamma(ALPHA)) - jax.lax.lgamma(jnp.sum(ALPHA)))),
    ),
    "another width": (referenced(lambda key: 2.0 * jax.random.normal(key, (2,)), summed(stats.norm.logpdf)), None),
    "another place": (referenced(lambda key: 1.0 + jax.random.normal(key, (2,)), summed(stats.norm.logpdf)), None),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_references_are_quiet(name):
    run: Any = None
    assert ReferenceChecks(RIGHT[name]).diagnose(run) == []


@pytest.mark.parametrize("name", WRONG)
def test_wrong_references_are_noticed(name):
    potential, integral = WRONG[name]
    run: Any = None
    (check,) = ReferenceChecks(potential).diagnose(run)
    assert check.name == "reference"
    assert "By its draws the density of the reference integrates to " in check.message
    if integral is not None:
        assert (
            abs(np.log(check.numbers["integral"] / integral)) < 5.0 * check.numbers["error"] / check.numbers["integral"]
        )
