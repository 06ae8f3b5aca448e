"""Problems with known answers for the study of `iso.sample(problem, budget=...)`: see `studies/automatic.py`.

Truths are exact formulas, or sums over grids in at most three dimensions.
"""

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import ndtri
from scipy import stats


@dataclasses.dataclass(frozen=True)
class Prior:
    """A normalized distribution of one flat position.

    Attributes:
        draw: from a key to a position.
        log_density: of a position, normalized.
        from_unit: from numbers in (0, 1), one per coordinate, to a position; uniform numbers become draws.
    """

    draw: Callable[[Any], Any]
    log_density: Callable[[Any], Any]
    from_unit: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """An expectation with a known value.

    Attributes:
        name: for the tables.
        kind: "mass" for an indicator, "moment" for anything else. The sets of a problem's masses are disjoint.
        function: of a position, a number.
        truth: its mean under the posterior.
        spread: its standard deviation under the posterior.
    """

    name: str
    kind: Literal["mass", "moment"]
    function: Callable[[Any], Any]
    truth: float
    spread: float


@dataclasses.dataclass(frozen=True)
class Problem:
    """A posterior with known expectations.

    Attributes:
        name: for the record.
        kind: what makes it hard.
        size: of a position.
        log_likelihood: of a position, on all data.
        prior: of a position.
        start: from a key to the position that a user would start from.
        quantities: what is estimated.
        log_z: log of the integral of the likelihood over the prior, or None if it is unknown.
        per_example: from a position and a batch of data to log likelihoods (n,), or None if there are no batches.
        data: arrays with a leading axis of examples.
        batch_size: examples per batch.
    """

    name: str
    kind: str
    size: int
    log_likelihood: Callable[[Any], Any]
    prior: Prior
    start: Callable[[Any], Any]
    quantities: tuple[Quantity, ...]
    log_z: float | None
    per_example: Callable[[Any, Any], Any] | None = None
    data: Any = None
    batch_size: int | None = None


def prior_from(log_density: Callable[[Any], Any], from_unit: Callable[[Any], Any], size: int) -> Prior:
    """A prior that draws by `from_unit`."""

    def draw(key):
        return from_unit(jax.random.uniform(key, (size,), minval=1e-7, maxval=1 - 1e-7))

    return Prior(draw, log_density, from_unit)


def normal_prior(location: Any, scale: Any) -> Prior:
    """Independent normal coordinates."""
    location, scale = np.broadcast_arrays(np.asarray(location, float), np.asarray(scale, float))

    def log_density(x):
        return (
            -0.5 * jnp.sum(((x - location) / scale) ** 2) - np.sum(np.log(scale)) - 0.5 * len(scale) * np.log(2 * np.pi)
        )

    return prior_from(log_density, lambda u: location + scale * ndtri(u), len(scale))


def uniform_prior(low: Any, high: Any) -> Prior:
    """Independent uniform coordinates: the log density is -inf outside of the box."""
    low, high = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))

    def log_density(x):
        is_inside = jnp.all((x > low) & (x < high))
        return jnp.where(is_inside, -np.sum(np.log(high - low)), -jnp.inf)

    return prior_from(log_density, lambda u: low + (high - low) * u, len(low))


def student_prior(scale: float, size: int) -> Prior:
    """Independent Student coordinates of 2 degrees of freedom."""

    def log_density(x):
        return jnp.sum(-1.5 * jnp.log1p(0.5 * (x / scale) ** 2)) - size * np.log(scale * 2 * np.sqrt(2.0))

    return prior_from(log_density, lambda u: scale * (2 * u - 1) / jnp.sqrt(2 * u * (1 - u)), size)


def at(point: Any) -> Callable[[Any], Any]:
    """Starts at one point."""
    point = np.asarray(point, float)
    return lambda key: jnp.asarray(point, float)


def grid(*axes: np.ndarray) -> tuple[np.ndarray, float]:
    """Points (K, d), and the volume of a cell."""
    points = np.stack([part.ravel() for part in np.meshgrid(*axes, indexing="ij")], axis=1)
    return points, float(np.prod([axis[1] - axis[0] for axis in axes]))


def in_double(function: Callable[[Any], Any], points: np.ndarray) -> np.ndarray:
    """The values of a function at many points."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(function))(np.asarray(points, float)), float)


def normalized(log_density: np.ndarray, volume: float) -> tuple[np.ndarray, float]:
    """Weights of sum 1, and the log of the integral."""
    top = float(np.max(log_density))
    weights = np.exp(log_density - top)
    total = float(np.sum(weights))
    return weights / total, float(np.log(total * volume) + top)


def quantity(name: str, kind: Any, function: Any, points: np.ndarray, weights: np.ndarray) -> Quantity:
    """A quantity whose truth is a weighted mean over points."""
    values = in_double(function, points)
    truth = float(weights @ values)
    return Quantity(name, kind, function, truth, float(np.sqrt(weights @ (values - truth) ** 2)))


def mass(name: str, function: Callable[[Any], Any], truth: float) -> Quantity:
    """A mass with a known truth."""
    return Quantity(name, "mass", lambda x: jnp.asarray(function(x), float), truth, float(np.sqrt(truth * (1 - truth))))


def on_grid(
    name: str, kind: str, log_likelihood: Any, prior: Prior, start: Any, functions: dict[str, Any], *axes: np.ndarray
) -> Problem:
    """A problem whose truths are sums over a grid; names of masses begin with "mass"."""
    points, volume = grid(*axes)
    weights, log_z = normalized(in_double(lambda x: log_likelihood(x) + prior.log_density(x), points), volume)
    quantities = tuple(
        quantity(key, "mass" if key.startswith("mass") else "moment", function, points, weights)
        for key, function in functions.items()
    )
    return Problem(name, kind, len(axes), log_likelihood, prior, start, quantities, log_z)


def is_in(condition: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The indicator of a condition."""
    return lambda x: jnp.asarray(condition(x), float)


def double_well_1() -> Problem:
    """A well of mass .2 behind a barrier of 8."""
    functions = {"mass right": is_in(lambda x: x[0] > 0), "x": lambda x: x[0], "x^2": lambda x: x[0] ** 2}
    likelihood = lambda x: -8.0 * (x[0] ** 2 - 1) ** 2 - 0.7 * x[0]  # noqa: E731
    axis = np.linspace(-4, 4, 8001) + 1e-9
    return on_grid("double-well-1", "few modes", likelihood, normal_prior([0.0], 2.0), at([1.0]), functions, axis)


def wells_2() -> Problem:
    """Four tilted wells in the plane."""

    def log_likelihood(x):
        wells = 2.0 * (x[0] ** 2 - 2) ** 2 + 2.0 * (x[1] ** 2 - 2) ** 2
        return -(wells + 0.35 * x[0] + 0.2 * x[1] + 0.15 * x[0] * x[1])

    functions = {
        "mass --": is_in(lambda x: (x[0] < 0) & (x[1] < 0)),
        "mass -+": is_in(lambda x: (x[0] < 0) & (x[1] > 0)),
        "mass +-": is_in(lambda x: (x[0] > 0) & (x[1] < 0)),
        "x": lambda x: x[0],
        "x y": lambda x: x[0] * x[1],
        "radius^2": lambda x: jnp.sum(x**2),
    }
    axis = np.linspace(-4, 4, 800)
    prior = normal_prior([0.0, 0.0], 2.0)
    return on_grid("wells-2", "few modes", log_likelihood, prior, at([1.4, 1.4]), functions, axis, axis)


def lattice_2() -> Problem:
    """A lattice of modes behind barriers of 10, of which a normal prior leaves about 25."""
    cells = [(float(i), float(j)) for i in range(-2, 3) for j in range(-2, 3)]
    functions: dict[str, Any] = {
        f"mass {i:g} {j:g}": is_in(lambda x, i=i, j=j: (jnp.round(x[0]) == i) & (jnp.round(x[1]) == j))
        for i, j in cells
    }
    functions |= {"x": lambda x: x[0], "radius^2": lambda x: jnp.sum(x**2)}
    likelihood = lambda x: -5.0 * jnp.sum(1 - jnp.cos(2 * np.pi * x))  # noqa: E731
    # No point lies on a border of a cell.
    axis = np.arange(-8, 8, 0.04) + 0.02
    prior = normal_prior([0.3, -0.2], 1.2)
    return on_grid("lattice-2", "many modes", likelihood, prior, at([0.0, 0.0]), functions, axis, axis)


def banana_2() -> Problem:
    """A narrow ridge along a parabola."""

    def log_likelihood(x):
        return -0.5 * ((x[1] - x[0] ** 2) / 0.15) ** 2 - 0.5 * (x[0] - 0.5) ** 2

    functions = {
        "mass left": is_in(lambda x: x[0] < -1),
        "x": lambda x: x[0],
        "y": lambda x: x[1],
        "x y": lambda x: x[0] * x[1],
    }
    axes = np.arange(-4.5, 4.5, 0.01) + 0.005, np.linspace(-1, 21, 1200)
    return on_grid(
        "banana-2", "banana", log_likelihood, normal_prior([0.0, 0.0], [2.0, 6.0]), at([0, 0]), functions, *axes
    )


def angles_3() -> Problem:
    """Torsion angles with a uniform prior: six modes, some across the border."""

    def log_likelihood(x):
        one = 2.5 * jnp.cos(2 * (x[0] - 0.5)) + 0.4 * jnp.cos(x[0] - 0.5)
        return one + 4.0 * jnp.cos(x[1] - x[0] - 1) + 3.0 * jnp.cos(3 * (x[2] - 0.4)) + jnp.cos(x[2] - x[0])

    def cell(i, j):
        turn = lambda angle: jnp.mod(angle + np.pi, 2 * np.pi) - np.pi  # noqa: E731
        center = 0.4 + 2 * np.pi * j / 3
        return is_in(
            lambda x: (jnp.abs(turn(x[0] - 0.5 - np.pi * i)) < np.pi / 2) & (jnp.abs(turn(x[2] - center)) < np.pi / 3)
        )

    functions: dict[str, Any] = {f"mass {i} {j}": cell(i, j) for i in range(2) for j in range(3)}
    functions |= {
        "cos y": lambda x: jnp.cos(x[1]),
        "sin y": lambda x: jnp.sin(x[1]),
        "cos 3z": lambda x: jnp.cos(3 * x[2]),
    }
    # Borders of the cells lie between points: the angle of each is taken from its own origin.
    axes = [(np.arange(count) + 0.5) * 2 * np.pi / count - np.pi for count in (60, 40, 90)]
    axes[0], axes[2] = axes[0] + 0.5, axes[2] + 0.4
    axes = [np.sort(np.mod(axis + np.pi, 2 * np.pi) - np.pi) for axis in axes]
    prior = uniform_prior([-np.pi] * 3, np.pi)
    return on_grid("angles-3", "periodic", log_likelihood, prior, at(np.zeros(3)), functions, *axes)


def correlated_10() -> Problem:
    """A normal posterior whose variances differ by 1e4, in directions of no axis."""
    size, rng = 10, np.random.default_rng(10)
    axes = np.linalg.qr(rng.standard_normal((size, size)))[0]
    precision = (axes / np.geomspace(1e-4, 1.0, size)) @ axes.T
    observed, prior_sd = rng.standard_normal(size), 3.0
    covariance = np.linalg.inv(precision + np.eye(size) / prior_sd**2)
    mean = covariance @ precision @ observed
    log_likelihood = lambda x: -0.5 * (x - observed) @ precision @ (x - observed)  # noqa: E731
    stiff, soft = axes[:, 0], axes[:, -1]
    centers = {"stiff": float(stiff @ mean), "soft": float(soft @ mean)}
    sds = {"stiff": float(np.sqrt(stiff @ covariance @ stiff)), "soft": float(np.sqrt(soft @ covariance @ soft))}
    quantities = [
        mass("mass soft", lambda x: soft @ x > centers["soft"] + 0.5 * sds["soft"], float(stats.norm.sf(0.5)))
    ]
    for key, axis in (("stiff", stiff), ("soft", soft)):
        center, sd = centers[key], sds[key]
        quantities += [
            Quantity(key, "moment", lambda x, axis=axis: axis @ x, center, sd),
            Quantity(
                f"{key}, squared",
                "moment",
                lambda x, axis=axis, center=center, sd=sd: ((axis @ x - center) / sd) ** 2,
                1.0,
                float(np.sqrt(2.0)),
            ),
        ]
    # N(observed; 0, precision^-1 + prior_sd^2) without the determinant that the likelihood leaves out.
    total = np.linalg.inv(precision) + prior_sd**2 * np.eye(size)
    log_z = -0.5 * observed @ np.linalg.solve(total, observed) - 0.5 * np.linalg.slogdet(total @ precision)[1]
    prior = normal_prior(np.zeros(size), prior_sd)
    return Problem(
        "correlated-10", "correlated", size, log_likelihood, prior, at(np.zeros(size)), tuple(quantities), float(log_z)
    )


def scaled_8() -> Problem:
    """Scales from 1e-3 to 1e3, posteriors 5 to 100 times narrower than the prior, two of them skewed."""
    size = 8
    scale, ratio = np.geomspace(1e-3, 1e3, size), np.where(np.arange(size) % 2, 100.0, 5.0)
    center = scale * np.array([1.0, -20, 2, 30, -3, 40, 1, -60])
    is_skewed = np.isin(np.arange(size), (2, 5))
    prior_sd = scale * ratio

    def log_likelihood(x):
        z = (x - center) / scale
        return jnp.sum(jnp.where(is_skewed, 2 * z - jnp.exp(jnp.minimum(z, 30.0)), -0.5 * z**2))

    # One sum for each coordinate, in units of its scale.
    z = np.linspace(-30, 8, 20_000)
    own = []
    for i in range(size):
        likelihood = 2 * z - np.exp(z) if is_skewed[i] else -0.5 * z**2
        density = likelihood + stats.norm.logpdf(center[i] + scale[i] * z, 0, prior_sd[i])
        own.append(normalized(density, scale[i] * (z[1] - z[0])))

    def of(i, name, function):
        points = np.tile(center, (len(z), 1))
        points[:, i] += scale[i] * z
        return quantity(name, "moment", lambda x: function((x[i] - center[i]) / scale[i]), points, own[i][0])

    quantities = tuple(
        of(i, f"{name} {i}", function)
        for i in (0, 2, 5, 7)
        for name, function in (("z", lambda z: z), ("z^2", lambda z: z**2))
    )
    tail = float(own[5][0] @ (z < -1.0))
    quantities += (mass("mass 5", lambda x: (x[5] - center[5]) / scale[5] < -1.0, tail),)
    log_z = float(sum(log_total for _, log_total in own))
    prior = normal_prior(np.zeros(size), prior_sd)
    start = at(np.zeros(size))
    return Problem("scaled-8", "badly scaled", size, log_likelihood, prior, start, quantities, log_z)


@dataclasses.dataclass(frozen=True)
class Mixture:
    """Round normal components as a likelihood under a round normal prior: the posterior is a mixture, too.

    Attributes:
        centers: of the likelihood (K, d).
        widths: of the likelihood (K,).
        masses: of the posterior's components (K,).
        prior_sd: of the prior around 0.
    """

    centers: np.ndarray
    widths: np.ndarray
    masses: np.ndarray
    prior_sd: float

    @property
    def size(self) -> int:
        """Dimensions."""
        return self.centers.shape[1]

    @property
    def variances(self) -> np.ndarray:
        """Of the posterior's components (K,)."""
        return 1 / (1 / self.widths**2 + 1 / self.prior_sd**2)

    @property
    def means(self) -> np.ndarray:
        """Of the posterior's components (K, d)."""
        return self.centers * (self.variances / self.widths**2)[:, None]

    def heights(self) -> tuple[np.ndarray, float]:
        """Logs of the likelihood's components at their centers, the largest 0, and log Z."""
        total = self.widths**2 + self.prior_sd**2
        # The evidence of a component of height 1.
        evidence = 0.5 * self.size * np.log(self.widths**2 / total) - 0.5 * np.sum(self.centers**2, axis=1) / total
        heights = np.log(self.masses) - evidence
        return heights - heights.max(), -float(heights.max())

    def log_likelihood(self, x: Any) -> Any:
        """Of one position."""
        away = jnp.sum((x - self.centers) ** 2, axis=1) / self.widths**2
        return jax.nn.logsumexp(self.heights()[0] - 0.5 * away)

    def below(self, axis: np.ndarray, border: float) -> float:
        """Mass of the half space in which a unit axis is below a border."""
        return float(self.masses @ stats.norm.cdf((border - self.means @ axis) / np.sqrt(self.variances)))

    def within(self, center: np.ndarray, radius: float) -> float:
        """Mass of a ball."""
        away = np.sum((self.means - center) ** 2, axis=1) / self.variances
        return float(self.masses @ stats.ncx2.cdf(radius**2 / self.variances, self.size, np.maximum(away, 1e-12)))

    def mean_along(self, name: str, axis: np.ndarray) -> Quantity:
        """The mean along a unit axis."""
        along = self.means @ axis
        truth = float(self.masses @ along)
        spread = float(np.sqrt(self.masses @ (self.variances + along**2) - truth**2))
        return Quantity(name, "moment", lambda x: axis @ x, truth, spread)

    def mean_square(self) -> Quantity:
        """The mean of |x|^2 / d."""
        d, squares = self.size, np.sum(self.means**2, axis=1)
        first = squares + d * self.variances
        second = first**2 + 4 * self.variances * squares + 2 * d * self.variances**2
        truth = float(self.masses @ first) / d
        spread = float(np.sqrt(self.masses @ second - (self.masses @ first) ** 2)) / d
        return Quantity("|x|^2 / d", "moment", lambda x: jnp.mean(x**2), truth, spread)

    def problem(self, name: str, kind: str, start: Any, masses: tuple[Quantity, ...], axis: np.ndarray) -> Problem:
        """With the mean along an axis, and the mean square."""
        quantities = (*masses, self.mean_along("x", axis), self.mean_square())
        prior = normal_prior(np.zeros(self.size), self.prior_sd)
        return Problem(name, kind, self.size, self.log_likelihood, prior, start, quantities, self.heights()[1])


def widths_4() -> Problem:
    """Two modes, one a third as wide as the other, in 4 dimensions."""
    axis = np.eye(4)[0]
    mixture = Mixture(np.stack([2.5 * axis, -2.5 * axis]), np.array([0.3, 1.0]), np.array([0.4, 0.6]), 3.0)
    narrow = mass("mass narrow", lambda x: x[0] > 1.2, 1 - mixture.below(axis, 1.2))
    return mixture.problem("widths-4", "unequal widths", at(-2.5 * axis), (narrow,), axis)


def narrow_5() -> Problem:
    """Mass .9 in a mode 20 times narrower than the other, in 5 dimensions."""
    centers = np.array([[2.0, -2, 0, 0, 0], [-1.0, 1, 0, 0, 0]])
    mixture = Mixture(centers, np.array([0.05, 1.0]), np.array([0.9, 0.1]), 3.0)
    center = mixture.means[0]
    ball = mass("mass narrow", lambda x: jnp.sum((x - center) ** 2) < 0.3**2, mixture.within(center, 0.3))
    return mixture.problem("narrow-5", "narrow mode of large mass", at(np.zeros(5)), (ball,), np.eye(5)[0])


def transition_10() -> Problem:
    """Two modes of equal mass whose widths differ by 5, in 10 dimensions: a first-order transition in temperature."""
    axis = np.ones(10) / np.sqrt(10.0)
    mixture = Mixture(np.stack([3.0 * axis, -1.0 * axis]), np.array([0.2, 1.0]), np.array([0.5, 0.5]), 3.0)
    center = mixture.means[0]
    ball = mass("mass narrow", lambda x: jnp.sum((x - center) ** 2) < 1.3**2, mixture.within(center, 1.3))
    return mixture.problem("transition-10", "first-order transition", at(np.zeros(10)), (ball,), axis)


def modes_100() -> Problem:
    """Two modes in 100 dimensions, eight standard deviations apart."""
    direction = np.random.default_rng(100).standard_normal(100)
    axis = direction / np.linalg.norm(direction)
    mixture = Mixture(np.stack([2.0 * axis, -2.0 * axis]), np.array([0.5, 0.5]), np.array([0.7, 0.3]), 3.0)
    first = mass("mass first", lambda x: axis @ x > 0, 1 - mixture.below(axis, 0.0))
    return mixture.problem("modes-100", "few modes", at(-2.0 * axis), (first,), axis)


def bananas_20() -> Problem:
    """Two bananas in a plane and nine more planes with one each, turned at random: 20 dimensions."""
    size, prior_sd, width = 20, 2.0, 0.4
    turn = np.linalg.qr(np.random.default_rng(20).standard_normal((size, size)))[0]
    bends = np.linspace(0.2, 0.6, 10)[1:]

    def first(z, xp):
        up, down = 1.6 + 0.5 * z[..., 0] ** 2, -1.6 - 0.5 * z[..., 0] ** 2
        ends = -0.5 * ((z[..., 1] - up) / width) ** 2, np.log(0.4) - 0.5 * ((z[..., 1] - down) / width) ** 2
        return xp.logaddexp(*ends)

    def other(z, bend):
        return -0.5 * ((z[..., 1] - bend * (z[..., 0] ** 2 - 2)) / width) ** 2

    def log_likelihood(x):
        pairs = (turn @ x).reshape(10, 2)
        return first(pairs[0], jnp) + jnp.sum(other(pairs[1:], bends))

    points, volume = grid(np.linspace(-9, 9, 451), np.linspace(-10, 10, 500))
    prior_terms = np.sum(stats.norm.logpdf(points, 0, prior_sd), axis=1)
    weights, log_z = normalized(first(points, np) + prior_terms, volume)
    last, log_last = normalized(other(points, bends[-1]) + prior_terms, volume)
    log_z += log_last + sum(normalized(other(points, bend) + prior_terms, volume)[1] for bend in bends[:-1])

    def of(name, kind, pair, function, weights):
        whole = np.zeros((len(points), size))
        whole[:, 2 * pair : 2 * pair + 2] = points
        return quantity(name, kind, lambda x: function((turn @ x)[2 * pair : 2 * pair + 2]), whole @ turn, weights)

    quantities = (
        of("mass up", "mass", 0, is_in(lambda z: z[1] > 0), weights),
        of("z0", "moment", 0, lambda z: z[0], weights),
        of("z0^2", "moment", 0, lambda z: z[0] ** 2, weights),
        of("z1", "moment", 0, lambda z: z[1], weights),
        of("z18^2", "moment", 9, lambda z: z[0] ** 2, last),
        of("z19", "moment", 9, lambda z: z[1], last),
    )
    prior = normal_prior(np.zeros(size), prior_sd)
    return Problem("bananas-20", "banana", size, log_likelihood, prior, prior.draw, quantities, float(log_z))


def schools_10() -> Problem:
    """Eight schools, centered: position is the mean, the log of the spread, and eight effects."""
    effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12])
    errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18])
    mean_sd, half = 5.0, 5.0

    def log_density(x):
        mean, log_spread, thetas = x[0], x[1], x[2:]
        density = -0.5 * (mean / mean_sd) ** 2 - np.log(mean_sd) - 4.5 * np.log(2 * np.pi)
        density += np.log(2 / (np.pi * half)) - jnp.log1p((jnp.exp(log_spread) / half) ** 2) + log_spread
        return density - 0.5 * jnp.sum(((thetas - mean) * jnp.exp(-log_spread)) ** 2) - 8 * log_spread

    def from_unit(u):
        mean, spread = mean_sd * ndtri(u[0]), half * jnp.tan(0.5 * np.pi * u[1])
        return jnp.concatenate([jnp.stack([mean, jnp.log(spread)]), mean + spread * ndtri(u[2:])])

    def log_likelihood(x):
        return -0.5 * jnp.sum(((x[2:] - effects) / errors) ** 2) - np.sum(np.log(errors)) - 4 * np.log(2 * np.pi)

    # Mean and effects given the spread are normal.
    t = np.linspace(-14, 9, 20_001)
    spread = np.exp(t)[:, None]
    total = errors**2 + spread**2
    precision = 1 / mean_sd**2 + np.sum(1 / total, axis=1)
    mean = np.sum(effects / total, axis=1) / precision
    log_given = -0.5 * np.sum(effects**2 / total + np.log(2 * np.pi * total), axis=1)
    log_given += 0.5 * mean**2 * precision - 0.5 * np.log(precision * mean_sd**2)
    log_prior = np.log(2 / (np.pi * half)) - np.log1p((spread[:, 0] / half) ** 2) + t
    weights, log_z = normalized(log_given + log_prior, t[1] - t[0])
    # Of the first effect.
    own = errors[0] ** 2 / total[:, 0]
    first = own * mean + (1 - own) * effects[0]
    variance = own * spread[:, 0] ** 2 + own**2 / precision

    def moment(name, function, means, variances):
        truth = float(weights @ means)
        return Quantity(name, "moment", function, truth, float(np.sqrt(weights @ (variances + means**2) - truth**2)))

    quantities = (
        mass("mass small spread", lambda x: x[1] < 0, float(weights @ np.where(t == 0, 0.5, t < 0))),
        moment("mean", lambda x: x[0], mean, 1 / precision),
        moment("log spread", lambda x: x[1], t, 0.0 * t),
        moment("first effect", lambda x: x[2], first, variance),
    )
    start = np.concatenate([[0.0, np.log(5.0)], np.zeros(8)])
    prior = prior_from(log_density, from_unit, 10)
    return Problem("schools-10", "funnel", 10, log_likelihood, prior, at(start), quantities, log_z)


def tails_6() -> Problem:
    """One observation with Cauchy noise for each of six parameters with Student priors."""
    observed, prior = np.array([-12.0, -6, -2, 0, 4, 9]), student_prior(5.0, 6)
    log_likelihood = lambda x: -jnp.sum(jnp.log1p((x - observed) ** 2)) - 6 * np.log(np.pi)  # noqa: E731
    # Coordinates are independent. Points lie closer around the observation.
    s = np.linspace(-16, 16, 40_001)
    log_z, own = 0.0, []
    for y in observed:
        x = y + np.sinh(s)
        density = stats.cauchy.logpdf(x, y) + stats.t.logpdf(x, 2, scale=5.0) + np.log(np.cosh(s))
        weights, log_one = normalized(density, s[1] - s[0])
        own.append((x, weights))
        log_z += log_one

    def of(i, name, kind, function):
        points = np.zeros((len(s), 6))
        points[:, i] = own[i][0]
        return quantity(f"{name} {i}", kind, lambda x: function(x[i]), points, own[i][1])

    quantities = (
        of(5, "mass far", "mass", is_in(lambda x: jnp.abs(x - 9.0) > 5.0)),
        of(0, "x", "moment", lambda x: x),
        of(3, "|x|", "moment", jnp.abs),
        of(5, "x", "moment", lambda x: x),
    )
    return Problem("tails-6", "heavy tails", 6, log_likelihood, prior, at(observed), quantities, log_z)


def with_data(
    name: str,
    kind: str,
    prior: Prior,
    per_example: Any,
    data: Any,
    batch_size: int,
    start: Any,
    quantities: tuple[Quantity, ...],
    log_z: float,
) -> Problem:
    """A problem with mini-batches; its log likelihood is the sum over all data."""
    size = len(start(jax.random.key(0)))
    log_likelihood = lambda x: jnp.sum(per_example(x, data))  # noqa: E731
    return Problem(name, kind, size, log_likelihood, prior, start, quantities, log_z, per_example, data, batch_size)


def linear_10() -> Problem:
    """Linear regression with unit noise."""
    rng, number, size = np.random.default_rng(1), 2_000, 10
    inputs = rng.standard_normal((number, size))
    targets = inputs @ rng.standard_normal(size) + rng.standard_normal(number)
    precision = inputs.T @ inputs + np.eye(size)
    mean = np.linalg.solve(precision, inputs.T @ targets)
    sds = np.sqrt(np.diag(np.linalg.inv(precision)))
    log_z = 0.5 * (mean @ precision @ mean - targets @ targets - np.linalg.slogdet(precision)[1])
    log_z -= 0.5 * number * np.log(2 * np.pi)
    quantities = [mass("mass 0", lambda x: x[0] > mean[0] + 0.5 * sds[0], float(stats.norm.sf(0.5)))]
    for i in (0, 9):
        square = lambda x, i=i: ((x[i] - mean[i]) / sds[i]) ** 2  # noqa: E731
        quantities += [
            Quantity(f"w{i}", "moment", lambda x, i=i: x[i], float(mean[i]), float(sds[i])),
            Quantity(f"w{i}, squared", "moment", square, 1.0, float(np.sqrt(2.0))),
        ]

    def per_example(x, batch):
        return -0.5 * (batch["y"] - batch["x"] @ x) ** 2 - 0.5 * np.log(2 * np.pi)

    data = {"x": inputs.astype(np.float32), "y": targets.astype(np.float32)}
    prior, start = normal_prior(np.zeros(size), 1.0), at(np.zeros(size))
    return with_data("linear-10", "gaussian", prior, per_example, data, 100, start, tuple(quantities), float(log_z))


def logistic_4() -> Problem:
    """Logistic regression. Truths are sums over Gauss-Hermite points around the mode."""
    rng, number, size = np.random.default_rng(4), 1_000, 4
    inputs = np.concatenate([np.ones((number, 1)), rng.standard_normal((number, size - 1))], axis=1)
    inputs[:, 3] += inputs[:, 2]
    labels = rng.random(number) < 1 / (1 + np.exp(-inputs @ np.array([-1.0, 1.5, -1.0, 0.5])))
    signs = np.where(labels, 1.0, -1.0)
    prior = normal_prior(np.zeros(size), 2.5)

    mode, curvature = np.zeros(size), np.eye(size)
    for _ in range(30):
        odds = 1 / (1 + np.exp(signs * (inputs @ mode)))
        slope = inputs.T @ (signs * odds) - mode / 2.5**2
        curvature = (inputs.T * (odds * (1 - odds))) @ inputs + np.eye(size) / 2.5**2
        mode = mode + np.linalg.solve(curvature, slope)
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(12)
    u, _ = grid(*[np.arange(12.0)] * size)
    u, log_weights = nodes[u.astype(int)], np.sum(np.log(node_weights)[u.astype(int)], axis=1)
    points = mode + u @ np.linalg.inv(np.linalg.cholesky(curvature))
    log_density = -np.logaddexp(0, -signs * (points @ inputs.T)).sum(axis=1)
    log_density += np.sum(stats.norm.logpdf(points, 0, 2.5), axis=1)
    log_density += 0.5 * np.sum(u**2, axis=1) + log_weights - 0.5 * np.linalg.slogdet(curvature)[1]
    weights, log_z = normalized(log_density, 1.0)

    def per_example(x, batch):
        return -jax.nn.softplus(-batch["sign"] * (batch["x"] @ x))

    functions = {
        "w0": lambda x: x[0],
        "w1": lambda x: x[1],
        "w2": lambda x: x[2],
        "odds": lambda x: jax.nn.sigmoid(x[0] + x[1]),
    }
    quantities = tuple(quantity(key, "moment", function, points, weights) for key, function in functions.items())
    quantities += tuple(
        quantity(f"w{i}^2", "moment", lambda x, i=i: ((x[i] - mode[i]) * curvature[i, i] ** 0.5) ** 2, points, weights)
        for i in (1, 3)
    )
    data = {"x": inputs.astype(np.float32), "sign": signs.astype(np.float32)}
    return with_data("logistic-4", "regression", prior, per_example, data, 50, at(np.zeros(4)), quantities, log_z)


def labels_3() -> Problem:
    """The means of three components in a mixture: six modes of equal mass."""
    rng, number = np.random.default_rng(3), 300
    true = np.array([-2.0, 0.2, 2.4])
    data = (true[rng.integers(3, size=number)] + rng.standard_normal(number)).astype(np.float32)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]

    def per_example(x, y):
        away = -0.5 * (y[:, None] - x) ** 2
        return jax.nn.logsumexp(away, axis=1) - np.log(3.0) - 0.5 * np.log(2 * np.pi)

    prior = normal_prior(np.zeros(3), 3.0)
    # One order of the means; the others mirror it.
    axes = [np.linspace(center - 1.0, center + 1.0, 31) for center in (-2.0, 0.2, 2.4)]
    points, volume = grid(*axes)
    points = points[(points[:, 0] < points[:, 1]) & (points[:, 1] < points[:, 2])]
    log_density = np.sum(stats.norm.logpdf(points, 0, 3.0), axis=1) - number * (np.log(3.0) + 0.5 * np.log(2 * np.pi))
    for y in data.astype(float):
        log_density += np.logaddexp.reduce(-0.5 * (y - points) ** 2, axis=1)
    weights, log_z = normalized(log_density, volume)
    every = np.concatenate([points[:, order] for order in orders])

    def order_of(order):
        low, middle, high = order
        return lambda x: (x[low] < x[middle]) & (x[middle] < x[high])

    quantities = tuple(mass("mass " + "".join(map(str, order)), order_of(order), 1 / 6) for order in orders[:-1])
    functions = {
        "x0": lambda x: x[0],
        "lowest": jnp.min,
        "middle": lambda x: jnp.sum(x) - jnp.min(x) - jnp.max(x),
        "|x|^2": lambda x: jnp.sum(x**2),
    }
    quantities += tuple(quantity(key, "moment", f, every, np.tile(weights, 6) / 6) for key, f in functions.items())
    start = at([-2.0, 0.0, 2.0])
    log_z += float(np.log(6.0))
    return with_data("labels-3", "label switching", prior, per_example, data, 30, start, quantities, log_z)


def skewed_3() -> Problem:
    """Logistic regression on rare events, two binary inputs: one value was never seen with an event."""
    counts = {(0, 0): (228, 5), (1, 0): (120, 9), (0, 1): (30, 0), (1, 1): (8, 0)}
    rows = [(a, b, is_event) for (a, b), (no, yes) in counts.items() for is_event in [0] * no + [1] * yes]
    table = np.random.default_rng(5).permutation(np.array(rows, np.float32))
    prior = normal_prior(np.zeros(3), [5.0, 2.5, 5.0])

    def per_example(x, batch):
        odds = x[0] + x[1] * batch[:, 0] + x[2] * batch[:, 1]
        return batch[:, 2] * odds - jax.nn.softplus(odds)

    points, volume = grid(np.linspace(-7, -1.5, 90), np.linspace(-2.5, 4.5, 90), np.linspace(-28, 4, 240))
    log_density = np.sum(stats.norm.logpdf(points, 0, [5.0, 2.5, 5.0]), axis=1)
    for (a, b), (no, yes) in counts.items():
        odds = points @ np.array([1.0, a, b])
        log_density += yes * odds - (no + yes) * np.logaddexp(0, odds)
    weights, log_z = normalized(log_density, volume)
    functions = {"x0": lambda x: x[0], "x1": lambda x: x[1], "x2": lambda x: x[2], "x2^2": lambda x: x[2] ** 2}
    quantities = tuple(quantity(key, "moment", function, points, weights) for key, function in functions.items())
    # A smooth border, so that the grid's sum is exact.
    risk = lambda x: jax.nn.sigmoid(4 * (x[2] + 6))  # noqa: E731
    quantities += (quantity("x2 above -6", "moment", risk, points, weights),)
    return with_data("skewed-3", "skewed", prior, per_example, table, 20, at(np.zeros(3)), quantities, log_z)


def product_2() -> Problem:
    """Two weights in a row: data know their product alone, two bent ridges."""
    rng, number = np.random.default_rng(6), 500
    inputs = rng.standard_normal(number).astype(np.float32)
    targets = (1.2 * inputs + 1.5 * rng.standard_normal(number)).astype(np.float32)
    center = np.array([0.4, 0.2])

    def per_example(x, batch):
        return -0.5 * ((batch["y"] - x[0] * x[1] * batch["x"]) / 1.5) ** 2 - 0.5 * np.log(2 * np.pi * 1.5**2)

    # In the product, the log of the first weight, and its sign, volume is as in the weights.
    axes, volume = grid(np.linspace(0.6, 1.8, 301), np.linspace(-2.2, 2.4, 800))
    halves = [
        np.stack([sign * np.exp(axes[:, 1]), sign * axes[:, 0] * np.exp(-axes[:, 1])], axis=1) for sign in (1, -1)
    ]
    points = np.concatenate(halves)
    product, x, y = points[:, 0] * points[:, 1], inputs.astype(float), targets.astype(float)
    log_density = -0.5 * (y @ y - 2 * product * (x @ y) + product**2 * (x @ x)) / 1.5**2
    log_density += np.sum(stats.norm.logpdf(points, center, 1.0), axis=1) - 0.5 * number * np.log(2 * np.pi * 1.5**2)
    weights, log_z = normalized(log_density, volume)
    functions = {
        "mass positive": is_in(lambda x: x[0] > 0),
        "x0": lambda x: x[0],
        "x0^2": lambda x: x[0] ** 2,
        "x1": lambda x: x[1],
        "x0 x1": lambda x: x[0] * x[1],
    }
    quantities = tuple(
        quantity(key, "mass" if key.startswith("mass") else "moment", function, points, weights)
        for key, function in functions.items()
    )
    data = {"x": inputs, "y": targets}
    prior = normal_prior(center, 1.0)
    return with_data("product-2", "banana", prior, per_example, data, 50, at([1.0, 1.0]), quantities, log_z)


def frequency_3() -> Problem:
    """A sine in noise, observed for an hour of each of nine nights: aliases of its frequency, in turns per day."""
    rng, number, noise = np.random.default_rng(9), 180, 1.0
    times = np.repeat(np.arange(9.0), 20) + rng.uniform(0, 0.06, number) - 4
    times = times.astype(np.float32)
    targets = (0.45 * np.sin(2 * np.pi * 1.3 * times + 0.5) + noise * rng.standard_normal(number)).astype(np.float32)
    prior = normal_prior([1.5, 0.0, 0.0], [0.7, 0.5, 0.5])

    def per_example(x, batch):
        angle = 2 * np.pi * x[0] * batch["t"]
        away = batch["y"] - x[1] * jnp.cos(angle) - x[2] * jnp.sin(angle)
        return -0.5 * away**2 - 0.5 * np.log(2 * np.pi)

    # Amplitudes given the frequency are normal.
    f = np.arange(-3.5, 6.5, 0.0005)
    angle = 2 * np.pi * f[:, None] * times.astype(float)
    design = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    precision = design @ design.transpose(0, 2, 1) + np.eye(2) / 0.25
    slope = design @ targets.astype(float)
    mean = np.linalg.solve(precision, slope[..., None])[..., 0]
    log_given = 0.5 * np.sum(slope * mean, axis=1) - 0.5 * np.linalg.slogdet(0.25 * precision)[1]
    log_given -= 0.5 * np.sum(targets.astype(float) ** 2) + 0.5 * number * np.log(2 * np.pi)
    weights, log_z = normalized(log_given + stats.norm.logpdf(f, 1.5, 0.7), f[1] - f[0])
    covariance = np.linalg.inv(precision)
    power = np.sum(mean**2, axis=1) + np.trace(covariance, axis1=1, axis2=2)
    # Of a normal pair with this mean and covariance: the variance of the sum of squares.
    power_variance = 2 * np.sum(covariance**2, axis=(1, 2)) + 4 * np.einsum("ki,kij,kj->k", mean, covariance, mean)
    points = np.concatenate([f[:, None], mean], axis=1)
    borders = [-0.2, 0.8, 1.8, 2.8]
    ends = list(itertools.pairwise(borders))
    functions: dict[str, Any] = {
        f"mass {low + 0.5:.1f}": is_in(lambda x, low=low, high=high: (x[0] > low) & (x[0] < high)) for low, high in ends
    }
    quantities = tuple(quantity(key, "mass", function, points, weights) for key, function in functions.items())
    quantities += (quantity("frequency", "moment", lambda x: x[0], points, weights),)
    truth = float(weights @ power)
    spread = float(np.sqrt(weights @ (power_variance + power**2) - truth**2))
    quantities += (Quantity("power", "moment", lambda x: x[1] ** 2 + x[2] ** 2, truth, spread),)
    data = {"t": times, "y": targets}
    return with_data("frequency-3", "many modes", prior, per_example, data, 20, at([1.5, 0, 0]), quantities, log_z)


BUILDERS: dict[str, Callable[[], Problem]] = {
    "double-well-1": double_well_1,
    "wells-2": wells_2,
    "lattice-2": lattice_2,
    "banana-2": banana_2,
    "angles-3": angles_3,
    "widths-4": widths_4,
    "narrow-5": narrow_5,
    "tails-6": tails_6,
    "scaled-8": scaled_8,
    "correlated-10": correlated_10,
    "schools-10": schools_10,
    "transition-10": transition_10,
    "bananas-20": bananas_20,
    "modes-100": modes_100,
    "linear-10": linear_10,
    "logistic-4": logistic_4,
    "skewed-3": skewed_3,
    "product-2": product_2,
    "labels-3": labels_3,
    "frequency-3": frequency_3,
}
