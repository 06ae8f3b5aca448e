"""The truths of the ten fresh problems: the constants, the functions that compute them, and a second computation of each."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import root_scalar
from scipy.stats import norm, qmc

from isotherm_thesis.studies import automatic_fresh as fresh
from isotherm_thesis.studies.automatic_fresh import PROBLEMS, log_sum_exp

# Truths change with the problems alone.
pytestmark = pytest.mark.long
BY_NAME = {problem.name: problem for problem in PROBLEMS}


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def in_jax(function, x, size=4096):
    """A function of one position, at positions (n, d), in float64."""
    mapped = jax.jit(jax.vmap(function))
    return np.concatenate([np.asarray(mapped(jnp.asarray(one))) for one in np.array_split(x, -(-len(x) // size))])


def log_density(problem):
    return lambda x: in_jax(lambda one: problem.log_likelihood(one) + problem.prior.log_density(one), x)


def compare(problem, x, log_weights, copies=1.0, min_effective=1000, functions=None):
    """Weighted draws agree with every constant within four errors; returns the z-scores."""
    n = len(log_weights)
    weights = np.exp(log_weights - log_weights.max())
    weights = weights / weights.sum()
    assert 1 / np.sum(weights**2) > min_effective
    scores = {}
    log_z = log_sum_exp(log_weights) - np.log(n) + np.log(copies)
    scores["log evidence"] = (log_z - problem.log_z) / np.hypot(np.sqrt(n * np.sum(weights**2) / n - 1 / n), 1e-4)
    for quantity in problem.quantities:
        if functions is not None and quantity.name not in functions:
            continue
        f = in_jax(quantity.function, x)
        mean = np.sum(weights * f)
        error = np.sqrt(np.sum(weights**2 * (f - mean) ** 2))
        scores[quantity.name] = (mean - quantity.truth) / np.hypot(error, 3e-4 * quantity.spread)
        spread = np.sqrt(np.sum(weights * (f - mean) ** 2))
        assert spread == pytest.approx(quantity.spread, rel=0.1, abs=0.02 * quantity.spread), quantity.name
    assert max(map(abs, scores.values())) < 4, scores
    return scores


def from_prior(problem, log2_draws, seed=0):
    """Scrambled Sobol points through `from_unit`, weighted by the likelihood: checks `from_unit` too."""
    unit = np.clip(qmc.Sobol(problem.size, rng=seed).random(2**log2_draws), 1e-9, 1 - 1e-9)
    x = in_jax(problem.prior.from_unit, unit)
    return x, in_jax(problem.log_likelihood, x)


QUICK = ("redshift", "planets", "kinetics", "change", "groups", "chain", "phases", "separable")


@pytest.mark.parametrize("name", QUICK)
def test_the_constants_are_what_the_functions_compute(name):
    log_z, values = getattr(fresh, f"{name}_truth")()
    assert log_z == pytest.approx(fresh.TRUTHS[name][0], abs=1e-5)
    np.testing.assert_allclose(values, fresh.TRUTHS[name][1], rtol=1e-5, atol=1e-7)


@pytest.mark.long
@pytest.mark.parametrize("name", ["mixture", "network"])
def test_the_constants_are_what_importance_sampling_computes(name):
    log_z, values = getattr(fresh, f"{name}_truth")()
    assert log_z == pytest.approx(fresh.TRUTHS[name][0], abs=0.01)
    for (mean, spread), (truth, true_spread) in zip(values, fresh.TRUTHS[name][1], strict=True):
        assert mean == pytest.approx(truth, abs=0.01 * true_spread)
        assert spread == pytest.approx(true_spread, rel=0.02)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("redshift", {"step": 2e-4}),
        ("planets", {"size": 1500}),
        ("kinetics", {"size": 250}),
        ("change", {"days": 801, "levels": 80}),
        ("groups", {"nodes": 80}),
        ("chain", {"points": 241}),
        ("separable", {"size": 150}),
    ],
)
def test_a_coarser_grid_gives_the_same(name, change):
    log_z, values = getattr(fresh, f"{name}_truth")(**change)
    assert log_z == pytest.approx(fresh.TRUTHS[name][0], abs=3e-4)
    for (mean, _), (truth, spread) in zip(values, fresh.TRUTHS[name][1], strict=True):
        assert mean == pytest.approx(truth, abs=1e-3 * spread)


@pytest.mark.parametrize(("name", "log2_draws"), [("redshift", 18), ("separable", 19)])
def test_draws_from_the_prior_agree(name, log2_draws):
    compare(BY_NAME[name], *from_prior(BY_NAME[name], log2_draws))


def test_planets_agree_with_importance_sampling():
    problem, rng = BY_NAME["planets"], np.random.default_rng(0)
    f, log_marginal = fresh._planets_grid(1500)
    weights = np.exp(log_marginal - log_sum_exp(log_marginal)).ravel()
    rows, columns = np.divmod(rng.choice(weights.size, 20_000, p=weights / weights.sum()), len(f))
    mean, covariance = fresh.planets_coefficients(f[rows], f[columns])
    coefficients = mean + np.einsum("nij,nj->ni", np.linalg.cholesky(covariance), rng.normal(size=mean.shape))
    low, high = fresh.FREQUENCIES
    hidden = norm.ppf((np.stack([f[rows], f[columns]], 1) - low) / (high - low))
    pilot = np.concatenate([hidden, coefficients], 1)
    compare(problem, *fresh.importance_sample(log_density(problem), pilot, 20, 150_000, 1))


def test_kinetics_agree_with_importance_sampling():
    problem, rng = BY_NAME["kinetics"], np.random.default_rng(0)
    rates = rng.uniform(-7, -1.5, (100_000, 2))
    log_marginal, mean, covariance = fresh.kinetics_coefficients(rates)
    chosen = rng.choice(len(rates), 20_000, p=np.exp(log_marginal - log_sum_exp(log_marginal)))
    noise = np.einsum("nij,nj->ni", np.linalg.cholesky(covariance[chosen]), rng.normal(size=(20_000, 3)))
    pilot = np.concatenate([rates[chosen], mean[chosen] + noise], 1)
    compare(problem, *fresh.importance_sample(log_density(problem), pilot, 8, 100_000, 1))


def test_change_agrees_with_importance_sampling():
    problem, rng = BY_NAME["change"], np.random.default_rng(0)
    x, log_likelihood = from_prior(problem, 17)
    pilot = x[rng.choice(len(x), 4000, p=np.exp(log_likelihood - log_sum_exp(log_likelihood)))]
    compare(problem, *fresh.importance_sample(log_density(problem), pilot, 16, 200_000, 1, freedom=3.0))


def test_groups_agree_with_conditional_draws():
    """Common mean and spread from the prior, effects from their posterior; weights from the problem's own functions."""
    problem, rng = BY_NAME["groups"], np.random.default_rng(0)
    _, log_spread_mean, log_spread_sd = fresh.GROUP_PRIOR
    n = 200_000
    mean, log_spread = 1.6 + 0.6 * rng.normal(size=n), log_spread_mean + log_spread_sd * rng.normal(size=n)
    precision = np.exp(-2 * log_spread)[:, None] + 1 / fresh.GROUP_ERRORS**2
    center = (mean[:, None] * np.exp(-2 * log_spread)[:, None] + fresh.GROUP_MEANS / fresh.GROUP_ERRORS**2) / precision
    effects = center + rng.normal(size=(n, 20)) / np.sqrt(precision)
    x = np.concatenate([np.stack([mean, log_spread], 1), effects], 1)
    log_proposal = norm.logpdf(mean, 1.6, 0.6) + norm.logpdf(log_spread, log_spread_mean, log_spread_sd)
    log_proposal += norm.logpdf(effects, center, 1 / np.sqrt(precision)).sum(1)
    compare(problem, x, log_density(problem)(x) - log_proposal)


def test_chain_agrees_with_draws_around_the_ring():
    """Site after site from the transfer matrix, uniform within a cell of the grid; weights from the problem's own functions."""
    problem, rng = BY_NAME["chain"], np.random.default_rng(0)
    grid, matrix = fresh.chain_transfer(321)
    step, size, n = grid[1] - grid[0], fresh.CHAIN_SIZE, 10_000
    matrix = matrix / np.linalg.eigvalsh(matrix)[-1]
    powers = [np.eye(len(grid))]
    for _ in range(size):
        powers.append(powers[-1] @ matrix)
    first_weights = np.diag(powers[size]) / np.trace(powers[size])
    first = rng.choice(len(grid), n, p=first_weights)
    path, log_proposal = [first], np.log(first_weights[first])
    for i in range(1, size):
        weights = matrix[path[-1]] * powers[size - i][first]
        weights = np.maximum(weights, 0) / weights.sum(1, keepdims=True)
        chosen = np.minimum((weights.cumsum(1) < rng.uniform(size=(n, 1))).sum(1), len(grid) - 1)
        log_proposal += np.log(weights[np.arange(n), chosen])
        path.append(chosen)
    x = grid[np.stack(path, 1)] + step * rng.uniform(-0.5, 0.5, (n, size))
    compare(problem, x, log_density(problem)(x) - log_proposal + size * np.log(step), min_effective=5000)


def test_phases_agree_with_draws_given_the_mean_field():
    """Mean field and sites together: the weights are of the problem's own functions times the law of the field."""
    problem, rng = BY_NAME["phases"], np.random.default_rng(0)
    field, log_field, grid, log_site = fresh.phases_fields()
    size, n, scale = fresh.PHASES_SIZE, 100_000, 1 / np.sqrt(fresh.PHASES_SIZE * fresh.PHASES_COUPLING)
    field_weights = np.exp(log_field - log_sum_exp(log_field))
    chosen = np.sort(rng.choice(len(field), n, p=field_weights))
    sites = np.empty((n, size), int)
    log_proposal = np.log(field_weights[chosen])
    for one in np.unique(chosen):
        rows = chosen == one
        sites[rows] = rng.choice(len(grid), (rows.sum(), size), p=np.exp(log_site[one]))
        log_proposal[rows] += log_site[one][sites[rows]].sum(1)
    field_step, step = field[1] - field[0], grid[1] - grid[0]
    z = field[chosen] + field_step * rng.uniform(-0.5, 0.5, n)
    x = grid[sites] + step * rng.uniform(-0.5, 0.5, (n, size))
    log_weights = log_density(problem)(x) + norm.logpdf(z, x.mean(1), scale) - log_proposal
    compare(problem, x, log_weights + np.log(field_step) + size * np.log(step))


def test_network_agrees_with_importance_sampling_of_all_weights():
    problem, rng = BY_NAME["network"], np.random.default_rng(5)
    density = log_density(problem)

    def canonical(x):
        return np.where((x[:, 0] > 0) & (x[:, 1] > x[:, 0]), density(x), -np.inf)

    moments = [one.name for one in problem.quantities if one.kind == "moment"]
    x, log_weights = fresh.importance_sample(canonical, fresh.network_pilot(6000, rng), 16, 200_000, 1)
    compare(problem, x, log_weights, copies=8, functions=moments)


def test_the_network_has_eight_equivalent_copies():
    problem, x = BY_NAME["network"], np.random.default_rng(0).normal(size=(50, 7))
    np.testing.assert_allclose(log_density(problem)(fresh.network_canonical(x)), log_density(problem)(x), rtol=1e-10)


def test_mixture_agrees_with_tempered_particles():
    """Sequential Monte Carlo from the prior, which finds both explanations by itself."""
    problem, rng = BY_NAME["mixture"], np.random.default_rng(0)
    n, moves = 4000, 20
    log_likelihood = jax.jit(jax.vmap(problem.log_likelihood))
    log_prior = jax.jit(jax.vmap(problem.prior.log_density))
    x = fresh.MIXTURE_MEAN + fresh.MIXTURE_SD * rng.normal(size=(n, 9))
    likelihood, prior = np.asarray(log_likelihood(x)), np.asarray(log_prior(x))
    power, log_z = 0.0, 0.0

    def effective(next_power):
        log_weights = (next_power - power) * likelihood
        return np.exp(2 * log_sum_exp(log_weights) - log_sum_exp(2 * log_weights)) / n

    while power < 1:
        next_power = (
            1.0 if effective(1.0) > 0.7 else root_scalar(lambda one: effective(one) - 0.7, bracket=(power, 1.0)).root
        )
        log_weights = (next_power - power) * likelihood
        log_z += log_sum_exp(log_weights) - np.log(n)
        weights = np.exp(log_weights - log_sum_exp(log_weights))
        kept = np.searchsorted(np.cumsum(weights), (np.arange(n) + rng.uniform()) / n).clip(0, n - 1)
        x, likelihood, prior, power = x[kept], likelihood[kept], prior[kept], next_power
        frozen = x.copy()
        for move in range(moves):
            if move % 3 == 2:
                step = 0.1 * rng.choice([0.3, 1.0, 3.0], (n, 1)) * rng.normal(size=(n, 9))
            else:  # differences of particles know the scales of every mode
                first, second = rng.integers(0, n, (2, n))
                step = rng.choice([0.15, 0.4, 0.8], (n, 1)) * (frozen[first] - frozen[second])
            there = np.asarray(log_likelihood(x + step)), np.asarray(log_prior(x + step))
            accept = np.log(rng.uniform(size=n)) < power * (there[0] - likelihood) + there[1] - prior
            x = np.where(accept[:, None], x + step, x)
            likelihood, prior = np.where(accept, there[0], likelihood), np.where(accept, there[1], prior)
    assert log_z == pytest.approx(problem.log_z, abs=0.3)
    found = [np.mean(one) for one in fresh.mixture_functions(fresh.mixture_sorted(x))]
    for quantity, mean in zip(problem.quantities[6:], found, strict=True):
        assert mean == pytest.approx(quantity.truth, abs=0.12 * quantity.spread)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
class TestTheContract:
    def test_the_prior_is_the_law_of_its_draws(self, problem):
        unit = np.random.default_rng(0).uniform(0.01, 0.99, (5, problem.size))
        x = in_jax(problem.prior.from_unit, unit)
        jacobian = in_jax(jax.jacfwd(problem.prior.from_unit), unit)
        np.testing.assert_allclose(
            in_jax(problem.prior.log_density, x), -np.linalg.slogdet(jacobian)[1], rtol=1e-6, atol=1e-6
        )

    def test_masses_are_disjoint(self, problem):
        masses = [one for one in problem.quantities if one.kind == "mass"]
        assert sum(one.truth for one in masses) < 1 + 1e-6
        x = jax.vmap(problem.prior.draw)(jax.random.split(jax.random.key(0), 200))
        assert np.sum([in_jax(one.function, x) for one in masses], 0).max() <= 1

    def test_batches_add_up(self, problem):
        if problem.per_example is None:
            pytest.skip("no batches")
        x = problem.start(jax.random.key(0))
        order = np.random.default_rng(0).permutation(len(problem.data))
        batches = np.split(problem.data[order], range(problem.batch_size, len(order), problem.batch_size))
        parts = [problem.per_example(x, batch) for batch in batches]
        assert parts[0].shape == (problem.batch_size,)
        assert float(sum(jnp.sum(part) for part in parts)) == pytest.approx(float(problem.log_likelihood(x)), rel=1e-6)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_float32_is_enough(problem):
    def both(x):
        return problem.log_likelihood(x) + problem.prior.log_density(x)

    points = [problem.start(jax.random.key(0)), *jax.vmap(problem.prior.draw)(jax.random.split(jax.random.key(1), 20))]
    points = np.asarray(points, np.float32)
    exact = in_jax(both, points.astype(float))
    with jax.enable_x64(False):
        values, gradients = jax.jit(jax.vmap(jax.value_and_grad(both)))(points)
    assert values.dtype == jnp.float32
    assert np.all(np.isfinite(gradients))
    np.testing.assert_allclose(values, exact, rtol=2e-5, atol=2e-3)
