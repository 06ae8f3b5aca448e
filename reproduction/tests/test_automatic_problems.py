"""Truths of the study of `iso.sample(problem, budget=...)`, by importance sampling of what its tools are given."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from isotherm_thesis.studies import automatic_problems as study

# Truths change with the problems alone.
pytestmark = pytest.mark.long
BUILDERS = study.BUILDERS


@functools.cache
def built(name):
    return BUILDERS[name]()


def log_target(problem, points):
    return study.in_double(lambda x: problem.log_likelihood(x) + problem.prior.log_density(x), points)


def mixture(centers, covariances, masses, degrees=np.inf):
    """Draws of a mixture of normal or Student components, and its log density."""
    centers, roots = np.asarray(centers, float), np.linalg.cholesky(np.asarray(covariances, float))
    masses = np.asarray(masses, float) / np.sum(masses)
    size = centers.shape[1]

    def draw(rng, number):
        which = rng.choice(len(masses), number, p=masses)
        noise = rng.standard_normal((number, size))
        if np.isfinite(degrees):
            noise *= np.sqrt(degrees / rng.chisquare(degrees, number))[:, None]
        return centers[which] + np.einsum("kij,kj->ki", roots[which], noise)

    def log_density(points):
        parts = []
        for center, root, mass in zip(centers, roots, masses, strict=True):
            if mass > 0:
                one = stats.multivariate_normal if np.isinf(degrees) else stats.multivariate_t
                extra = {} if np.isinf(degrees) else {"df": degrees}
                parts.append(np.log(mass) + one(center, root @ root.T, **extra).logpdf(points))
        return logsumexp(parts, axis=0)

    return draw, log_density


def laplace(name, starts, degrees=6.0, wider=1.3):
    """Components at the modes near some points, with the masses of Laplace's approximation."""
    problem = built(name)
    with jax.enable_x64(True):
        energy = lambda x: -problem.log_likelihood(x) - problem.prior.log_density(x)  # noqa: E731
        both = jax.jit(lambda x: (jax.grad(energy)(x), jax.hessian(energy)(x)))
        centers, covariances, logs = [], [], []
        for start in starts:
            x, curvature = np.asarray(start, float), np.eye(len(start))
            for _ in range(50):
                slope, curvature = map(np.asarray, both(x))
                x = x - np.linalg.solve(curvature, slope)
            centers.append(x)
            covariances.append(wider**2 * np.linalg.inv(curvature))
            logs.append(-float(energy(x)) - 0.5 * np.linalg.slogdet(curvature)[1])
    return mixture(centers, covariances, np.exp(np.array(logs) - max(logs)), degrees)


def signs(size):
    return np.stack(np.meshgrid(*[[-1.4, 1.4]] * size, indexing="ij"), axis=-1).reshape(-1, size)


def lattice():
    centers = np.stack(np.meshgrid(*[np.arange(-4.0, 5)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    masses = np.exp(-0.5 * np.sum((centers - [0.3, -0.2]) ** 2, axis=1) / 1.2**2)
    return mixture(centers, [0.09**2 * np.eye(2)] * len(centers), masses, 8.0)


def banana():
    def draw(rng, number):
        x = 0.4 + 1.1 * rng.standard_t(8, number)
        return np.stack([x, x**2 + 0.2 * rng.standard_t(8, number)], axis=1)

    def log_density(points):
        x, y = points.T
        return stats.t.logpdf(x, 8, 0.4, 1.1) + stats.t.logpdf(y, 8, x**2, 0.2)

    return draw, log_density


def angles():
    draw = lambda rng, number: rng.uniform(-np.pi, np.pi, (number, 3))  # noqa: E731
    return draw, lambda points: np.full(len(points), -3 * np.log(2 * np.pi))


def tails():
    observed = np.array([-12.0, -6, -2, 0, 4, 9])

    def draw(rng, number):
        near = observed + 0.8 * rng.standard_t(1.5, (number, 6))
        far = 4.0 * rng.standard_t(2, (number, 6))
        return np.where(rng.random((number, 6)) < 0.7, near, far)

    def log_density(points):
        near = 0.7 * stats.t.pdf(points, 1.5, observed, 0.8)
        return np.sum(np.log(near + 0.3 * stats.t.pdf(points, 2, 0, 4.0)), axis=1)

    return draw, log_density


def scaled():
    scale = np.geomspace(1e-3, 1e3, 8)
    center = scale * np.array([1.0, -20, 2, 30, -3, 40, 1, -60])
    is_skewed = np.array([False, False, True, False, False, True, False, False])

    def draw(rng, number):
        gamma = np.log(rng.gamma(2.0, size=(number, 8)))
        return center + scale * np.where(is_skewed, gamma, rng.standard_normal((number, 8)))

    def log_density(points):
        z = (points - center) / scale
        return np.sum(np.where(is_skewed, 2 * z - np.exp(z), stats.norm.logpdf(z)) - np.log(scale), axis=1)

    return draw, log_density


def schools():
    effects, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def given(mean, log_spread):
        own = 1 / (1 / errors**2 + np.exp(-2 * log_spread)[:, None])
        return own * (effects / errors**2 + mean[:, None] * np.exp(-2 * log_spread)[:, None]), np.sqrt(own)

    def draw(rng, number):
        mean, log_spread = 4.5 + 4 * rng.standard_t(8, number), 0.8 + 1.2 * rng.standard_t(4, number)
        centers, sds = given(mean, log_spread)
        return np.column_stack([mean, log_spread, centers + sds * rng.standard_normal((number, 8))])

    def log_density(points):
        mean, log_spread = points[:, 0], points[:, 1]
        first = stats.t.logpdf(mean, 8, 4.5, 4) + stats.t.logpdf(log_spread, 4, 0.8, 1.2)
        return first + np.sum(stats.norm.logpdf(points[:, 2:], *given(mean, log_spread)), axis=1)

    return draw, log_density


def skewed():
    def draw(rng, number):
        is_far = rng.random(number) < 0.5
        last = np.where(is_far, -8 + 5 * rng.standard_t(8, number), -3.5 + 2 * rng.standard_t(8, number))
        return np.column_stack([-3.85 + 0.5 * rng.standard_t(8, number), 1.2 + 0.6 * rng.standard_t(8, number), last])

    def log_density(points):
        x, y, z = points.T
        last = 0.5 * stats.t.pdf(z, 8, -8, 5) + 0.5 * stats.t.pdf(z, 8, -3.5, 2)
        return stats.t.logpdf(x, 8, -3.85, 0.5) + stats.t.logpdf(y, 8, 1.2, 0.6) + np.log(last)

    return draw, log_density


def product():
    def draw(rng, number):
        first = np.where(rng.random(number) < 0.7, 1.1, -0.9) + 0.6 * rng.standard_t(8, number)
        return np.column_stack([first, (1.13 + 0.075 * rng.standard_t(8, number)) / first])

    def log_density(points):
        x, y = points.T
        first = 0.7 * stats.t.pdf(x, 8, 1.1, 0.6) + 0.3 * stats.t.pdf(x, 8, -0.9, 0.6)
        return np.log(first) + stats.t.logpdf(x * y, 8, 1.13, 0.075) + np.log(np.abs(x))

    return draw, log_density


def frequency():
    """Uniform frequencies, and amplitudes by least squares at each."""
    data = built("frequency-3").data
    low, high = -1.0, 4.0

    def given(f):
        angle = 2 * np.pi * f[:, None] * data["t"].astype(float)
        design = np.stack([np.cos(angle), np.sin(angle)], axis=2)
        covariance = np.linalg.inv(np.einsum("kni,knj->kij", design, design) + 4 * np.eye(2))
        return np.einsum("kij,knj,n->ki", covariance, design, data["y"].astype(float)), np.linalg.cholesky(covariance)

    def draw(rng, number):
        f = rng.uniform(low, high, number)
        centers, roots = given(f)
        return np.column_stack([f, centers + np.einsum("kij,kj->ki", roots, rng.standard_normal((number, 2)))])

    def log_density(points):
        centers, roots = given(points[:, 0])
        noise = np.linalg.solve(roots, (points[:, 1:] - centers)[..., None])[..., 0]
        size = np.log(roots[:, 0, 0] * roots[:, 1, 1])
        return np.sum(stats.norm.logpdf(noise), axis=1) - size - np.log(high - low)

    return draw, log_density


def two_centers(name, first, second):
    """Normal components, of which the posterior consists."""
    return laplace(name, [first, second], np.inf, 1.0)


def far_apart(name, sign):
    axis = np.random.default_rng(100).standard_normal(100) if name == "modes-100" else np.ones(10)
    return sign * axis / np.linalg.norm(axis)


ORDERS = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
PROPOSALS = {
    "double-well-1": (lambda: laplace("double-well-1", signs(1) / 1.4), 40_000),
    "wells-2": (lambda: laplace("wells-2", signs(2)), 40_000),
    "lattice-2": (lattice, 40_000),
    "banana-2": (banana, 40_000),
    "angles-3": (angles, 400_000),
    "widths-4": (lambda: two_centers("widths-4", [2.475, 0, 0, 0], [-2.25, 0, 0, 0]), 40_000),
    "narrow-5": (lambda: two_centers("narrow-5", [2.0, -2, 0, 0, 0], [-0.9, 0.9, 0, 0, 0]), 40_000),
    "tails-6": (tails, 200_000),
    "scaled-8": (scaled, 40_000),
    "correlated-10": (lambda: laplace("correlated-10", [np.zeros(10)], np.inf, 1.0), 40_000),
    "schools-10": (schools, 100_000),
    "transition-10": (
        lambda: two_centers("transition-10", far_apart("", 2.987), far_apart("", -0.9)),
        40_000,
    ),
    "modes-100": (
        lambda: two_centers("modes-100", far_apart("modes-100", 1.946), far_apart("modes-100", -1.946)),
        3_000,
    ),
    "linear-10": (lambda: laplace("linear-10", [np.zeros(10)], np.inf, 1.0), 10_000),
    "logistic-4": (lambda: laplace("logistic-4", [np.zeros(4)], 10.0, 1.1), 20_000),
    "skewed-3": (skewed, 40_000),
    "product-2": (product, 40_000),
    "labels-3": (lambda: laplace("labels-3", np.array([-2.1, 0.3, 2.3])[np.array(ORDERS)], 8.0, 1.15), 20_000),
    "frequency-3": (frequency, 60_000),
}


def check(problem, points, log_weights, quantities):
    weights = np.exp(log_weights - logsumexp(log_weights))
    effective = 1 / np.sum(weights**2)
    assert effective > 1_000
    for quantity in quantities:
        values = study.in_double(quantity.function, points)
        found = weights @ values
        error = np.sqrt(np.sum(weights**2 * (values - found) ** 2))
        assert error < 0.05 * quantity.spread, quantity.name
        assert found == pytest.approx(quantity.truth, abs=4.5 * error + 1e-9), quantity.name
        spread = np.sqrt(weights @ (values - quantity.truth) ** 2)
        # Of heavy tails the spread itself varies.
        assert spread == pytest.approx(quantity.spread, rel=0.15 if problem.name == "tails-6" else 0.06), quantity.name
    log_z = logsumexp(log_weights) - np.log(len(log_weights))
    relative = np.sqrt(max(1 / effective - 1 / len(weights), 0))
    assert log_z == pytest.approx(problem.log_z, abs=4.5 * relative + 1e-4)


@pytest.mark.parametrize("name", PROPOSALS)
def test_truths_are_those_of_importance_sampling(name):
    problem = built(name)
    make, number = PROPOSALS[name]
    draw, log_density = make()
    points = draw(np.random.default_rng(0), number)
    check(problem, points, log_target(problem, points) - log_density(points), problem.quantities)


def test_truths_of_two_bananas_are_those_of_their_planes():
    problem = built("bananas-20")
    turn = np.linalg.qr(np.random.default_rng(20).standard_normal((20, 20)))[0]
    rng = np.random.default_rng(0)
    bends = np.linspace(0.2, 0.6, 10)[1:]
    origin = log_target(problem, np.zeros((1, 20)))[0]
    # The posterior is a product of planes.
    planes = rng.standard_normal((10, 50, 2))
    alone = np.zeros((10, 50, 20))
    for pair in range(10):
        alone[pair, :, 2 * pair : 2 * pair + 2] = planes[pair]
    together = log_target(problem, alone.sum(axis=0) @ turn) - origin
    assert together == pytest.approx(sum(log_target(problem, one @ turn) - origin for one in alone))
    total, drawn = origin, []
    for pair in range(10):
        first = 1.4 * rng.standard_t(10, 40_000)
        up, down = (
            (1.6 + 0.5 * first**2, -1.6 - 0.5 * first**2) if pair == 0 else [bends[pair - 1] * (first**2 - 2)] * 2
        )
        second = np.where(rng.random(40_000) < 0.6, up, down) + 0.45 * rng.standard_t(10, 40_000)
        ends = [stats.t.pdf(second, 10, middle, 0.45) for middle in (up, down)]
        log_density = stats.t.logpdf(first, 10, 0, 1.4) + np.log(0.6 * ends[0] + 0.4 * ends[1])
        points = np.zeros((40_000, 20))
        points[:, 2 * pair : 2 * pair + 2] = np.stack([first, second], axis=1)
        log_weights = log_target(problem, points @ turn) - origin - log_density
        total += logsumexp(log_weights) - np.log(40_000)
        weights = np.exp(log_weights - logsumexp(log_weights))
        assert 1 / np.sum(weights**2) > 4_000
        drawn.append(points[rng.choice(40_000, 40_000, p=weights)])
    draws = sum(drawn) @ turn
    for quantity in problem.quantities:
        values = study.in_double(quantity.function, draws)
        # Draws with replacement are worth less than their number.
        assert values.mean() == pytest.approx(quantity.truth, abs=4.5 * quantity.spread / np.sqrt(4_000)), quantity.name
        assert values.std() == pytest.approx(quantity.spread, rel=0.06), quantity.name
    assert total == pytest.approx(problem.log_z, abs=4.5 * np.sqrt(10 / 4_000))


def test_a_wrong_truth_is_seen():
    problem = built("wells-2")
    draw, log_density = PROPOSALS["wells-2"][0]()
    points = draw(np.random.default_rng(0), 40_000)
    log_weights = log_target(problem, points) - log_density(points)
    x, _ = points.T
    with pytest.raises(AssertionError, match="mass --"):
        check(problem, points, log_weights + 0.2 * (x < 0), problem.quantities)


@pytest.mark.parametrize("name", ["scaled-8", "angles-3", "tails-6", "schools-10"])
def test_priors_are_normalized_and_drawn_by_their_transform(name):
    prior, size = built(name).prior, built(name).size
    u = np.random.default_rng(0).uniform(0.02, 0.98, (5, size))
    with jax.enable_x64(True):
        points = jax.vmap(prior.from_unit)(u)
        volumes = np.linalg.slogdet(np.asarray(jax.vmap(jax.jacfwd(prior.from_unit))(u)))[1]
        log_densities = np.asarray(jax.vmap(prior.log_density)(points))
    # Uniform numbers have density 1.
    assert log_densities + volumes == pytest.approx(np.zeros(5), abs=1e-5)
    key = jax.random.key(0)
    unit = jax.random.uniform(key, (size,), minval=1e-7, maxval=1 - 1e-7)
    assert np.asarray(prior.draw(key)) == pytest.approx(np.asarray(prior.from_unit(unit)))


@pytest.mark.parametrize("name", BUILDERS)
def test_problems_are_consistent_in_single_precision(name):
    problem = built(name)
    assert problem.name == name
    start = problem.start(jax.random.key(0))
    assert start.shape == (problem.size,)
    value, slope = jax.value_and_grad(lambda x: problem.log_likelihood(x) + problem.prior.log_density(x))(start)
    assert jnp.isfinite(value)
    assert jnp.all(jnp.isfinite(slope))
    assert float(value) == pytest.approx(log_target(problem, np.asarray(start)[None])[0], rel=1e-4, abs=1e-3)
    names = [quantity.name for quantity in problem.quantities]
    assert len(set(names)) == len(names)
    assert sum(quantity.truth for quantity in problem.quantities if quantity.kind == "mass") < 1 + 1e-9
    if problem.per_example is not None:
        assert problem.batch_size is not None
        number = len(jax.tree.leaves(problem.data)[0])
        batch = jax.tree.map(lambda leaf: leaf[: problem.batch_size], problem.data)
        assert problem.per_example(start, batch).shape == (problem.batch_size,)
        assert number % problem.batch_size == 0


def test_twenty_problems():
    assert len(BUILDERS) == 20
    assert set(PROPOSALS) == set(BUILDERS) - {"bananas-20"}
