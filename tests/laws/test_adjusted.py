"""Kernels with a Metropolis test leave the law unchanged at every step size, alone, on ladders and along paths."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange import Exchange
from isotherm.foundation.parts import Static
from isotherm.kernels import GHMC, limited, scaled
from isotherm.transforms import constrain, interval, positive
from tests.statistics import FAIL, PASS, z_score

NUM_CHAINS, MOVES = 100_000, (1, 11, 31)
GRID = np.linspace(-9.0, 9.0, 400_001)


def well(x):
    """Two modes of unequal mass, neither of them normal."""
    return jnp.sum(1.5 * (x**2 - 1.0) ** 2 + 0.4 * x)


def from_density(density: np.ndarray, rng: np.random.Generator, number: int) -> np.ndarray:
    """Draws of a density on `GRID` by its inverse distribution function."""
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
    return np.interp(rng.random(number), mass / mass[-1], GRID)


def well_draws(temperature, rng, box=(-9.0, 9.0)):
    is_inside = (box[0] <= GRID) & (box[1] >= GRID)
    density = np.exp(-(1.5 * (GRID**2 - 1.0) ** 2 + 0.4 * GRID) / temperature) * is_inside
    return np.clip(from_density(density, rng, NUM_CHAINS), *box)[:, None].astype(np.float32)


def banana(x):
    return 0.5 * x[0] ** 2 + 0.5 * ((x[1] - x[0] ** 2) / 0.3) ** 2


def banana_draws(temperature, rng):
    z = np.sqrt(temperature) * rng.normal(size=(NUM_CHAINS, 2))
    return np.stack([z[:, 0], z[:, 0] ** 2 + 0.3 * z[:, 1]], axis=1).astype(np.float32)


def rate_and_share(x):
    """A gamma density and a beta density at temperature 1, and their powers at others."""
    return x["rate"] - 1.5 * jnp.log(x["rate"]) - 2.0 * jnp.log(x["share"]) - jnp.log1p(-x["share"])


def rate_and_share_draws(temperature, rng):
    rate = rng.gamma(1.0 + 1.5 / temperature, temperature, NUM_CHAINS)
    share = rng.beta(1.0 + 2.0 / temperature, 1.0 + 1.0 / temperature, NUM_CHAINS)
    # In single precision some draws would be at the ends.
    return {"rate": rate.astype(np.float32), "share": np.clip(share, 1e-6, 1.0 - 1e-6).astype(np.float32)}


@functools.cache
def constrained(temperature):
    return constrain(RATE_AND_SHARE, {"rate": positive(), "share": interval(0.0, 1.0)}, temperature=temperature)


def columns(draws: Any, at: Any) -> np.ndarray:
    """The coordinates of draws at an index, shape (chain, coordinate)."""
    leaves = [np.asarray(leaf[at], np.float64) for leaf in jax.tree.leaves(draws)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def moments(x: np.ndarray) -> np.ndarray:
    """What is compared: means, second moments and masses, shape (chain, function)."""
    products = [x[:, i] * x[:, j] for i in range(x.shape[1]) for j in range(i, x.shape[1])]
    masses = [x[:, 0] > 0.7, x[:, 0] < -0.9, x[:, -1] < 0.1]
    return np.stack([*x.T, *products, *masses], axis=1).astype(np.float64)


@dataclasses.dataclass(frozen=True)
class Case:
    """A target with exact draws.

    Attributes:
        potential: of a temperature.
        draws: of a temperature, by a generator.
        step_sizes: of `ghmc`; those of `mala` are half as large.
        box: of the sampler.
        factor: of `scaled`, a vector or a matrix.
        length: of `limited`, the longest displacement by a gradient.
    """

    potential: Callable[[float], Any]
    draws: Callable[..., Any]
    step_sizes: tuple[float, ...]
    box: tuple[float, float] | None = None
    factor: Any = None
    length: float | None = None

    def sampler(self, name: str, step_size: float, temperature: float, friction: float = 0.2) -> iso.Sampler:
        options: dict[str, Any] = {"temperature": temperature, "box": self.box}
        method = iso.mala(0.5 * step_size, **options) if name == "mala" else None
        made = method or iso.ghmc(step_size, friction=friction, **options)
        made = dataclasses.replace(made, kernel=limited(made.kernel, self.length))
        if self.factor is None:
            return made
        return dataclasses.replace(made, kernel=scaled(made.kernel, self.factor, is_dense=np.ndim(self.factor) == 2))


BANANA, WELL, RATE_AND_SHARE = (iso.from_energy(energy) for energy in (banana, well, rate_and_share))
# Both ends are numbers of single precision.
BOX = (-1.25, 0.875)
DENSE = np.array([[0.6, 0.0], [0.9, 0.4]], np.float32)
CASES = {
    "well": Case(lambda t: WELL, well_draws, (0.1, 0.5, 1.0)),
    "banana": Case(lambda t: BANANA, banana_draws, (0.02, 0.1, 0.2)),
    "box": Case(lambda t: WELL, lambda t, rng: well_draws(t, rng, BOX), (0.1, 0.5), box=BOX),
    "transforms": Case(
        constrained,
        rate_and_share_draws,
        (0.5, 2.0, 5.0),
    ),
    "diagonal": Case(lambda t: BANANA, banana_draws, (0.1, 0.5), factor=np.array([1.0, 0.4], np.float32)),
    "dense": Case(lambda t: BANANA, banana_draws, (0.1, 0.5), factor=DENSE),
    "limited": Case(lambda t: WELL, well_draws, (0.5, 1.0), length=0.2),
    "dense in a box": Case(
        lambda t: WELL, lambda t, rng: well_draws(t, rng, BOX), (0.1, 0.5, 2.0), box=BOX, factor=np.full((1, 1), 0.7)
    ),
}


def scores(case: Case, sampler: iso.Sampler, temperature: float, seed: int = 1) -> tuple[np.ndarray, float]:
    """z-scores of the changes of moments since exact draws, and the share of accepted moves."""
    draws = case.draws(temperature, np.random.default_rng(seed))
    run = iso.sample(
        case.potential(temperature),
        sampler,
        num_steps=MOVES[-1] + 1,
        num_chains=NUM_CHAINS,
        init=iso.per_chain(draws),
        seed=seed,
    )
    before = moments(columns(draws, slice(None)))
    changes = np.stack([moments(columns(run.draws, (slice(None), k))) - before for k in MOVES])
    found = changes.mean(axis=1) / (changes.std(axis=1) / np.sqrt(NUM_CHAINS) + 1e-9)
    return found, float(np.mean(run.stats["num_accepted"]) / run.num_steps)


# The rest of `mala` goes along in `make test-long`.
QUICK = [*(("ghmc", name) for name in CASES), *(("mala", name) for name in ("well", "banana", "box", "transforms"))]


@pytest.mark.parametrize(
    ("method", "name"),
    [
        pytest.param(*cell, marks=[] if cell in QUICK else pytest.mark.long)
        for cell in itertools.product(("mala", "ghmc"), CASES)
    ],
)
def test_moves_leave_the_law_unchanged(method, name):
    case, rates = CASES[name], []
    for number, (temperature, step_size) in enumerate(itertools.product((1.0, 2.0), case.step_sizes)):
        friction = (0.03, 0.4)[number % 2]
        found, rate = scores(case, case.sampler(method, step_size, temperature, friction), temperature)
        assert np.max(np.abs(found)) < PASS, (temperature, step_size, friction, found)
        rates.append(rate)
    # The claim holds for steps that are mostly rejected too.
    assert min(rates) > 0.1
    assert min(rates) < 0.6


@dataclasses.dataclass(frozen=True, eq=False)
class Faulty(GHMC):
    """A kernel with one fault."""

    fault: Static[str] = ""
    is_elementwise = True

    def settle(self, before, proposed, here, there, move, uniform):
        if self.fault == "no ratio":
            there = there._replace(energy=there.energy - 1e6)
        if self.fault == "work":
            half = 0.5 * move.step_size
            work = jnp.sum(
                -0.5 * (here.gradient + there.gradient) * proposed.momentum
                + 0.25 * half * (there.gradient**2 - here.gradient**2)
            )
            there = there._replace(energy=there.energy - 0.2 * work)
        if self.fault == "rejects":
            there = there._replace(energy=jnp.full_like(there.energy, jnp.inf))
        after = super().settle(before, proposed, here, there, move, uniform)
        if self.fault == "no turn":
            turned = jnp.where(after.is_accepted, after.momentum, -after.momentum)
            after = after._replace(momentum=turned)
        return after


@pytest.mark.parametrize("fault", ["no ratio", "no turn", "work"])
def test_a_fault_of_the_kernel_changes_the_law(fault):
    case = CASES["well"]
    sampler = iso.Sampler(Faulty(0.2, fault), 0.5)
    found, _ = scores(case, sampler, 1.0)
    assert np.max(np.abs(found)) > FAIL
    right, _ = scores(case, iso.Sampler(Faulty(0.2), 0.5), 1.0)
    assert np.max(np.abs(right)) < PASS


def exact_moments(temperature: float) -> np.ndarray:
    """Mean, second moment and mass above 0 of the well."""
    density = np.exp(-(1.5 * (GRID**2 - 1.0) ** 2 + 0.4 * GRID) / temperature)
    density /= density.sum()
    return np.array([density @ GRID, density @ GRID**2, density @ (GRID > 0)])


def moments_of_chains(sampler, num_steps=3_000, **options):
    """Mean, second moment and mass above 0 of each of 400 chains from overdispersed starts, shape (400, 3)."""
    starts = np.random.default_rng(2).uniform(-1.4, 1.8, (400, 1)).astype(np.float32)
    run = iso.sample(
        WELL,
        sampler,
        num_steps=num_steps,
        num_chains=400,
        burn_in=num_steps // 3,
        init=iso.per_chain(starts),
        **options,
    )
    x = np.asarray(run.draws, np.float64)[..., 0]
    return np.stack([x.mean(axis=1), (x**2).mean(axis=1), (x > 0).mean(axis=1)], axis=1)


@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_chains_from_overdispersed_starts_reach_the_law(temperature):
    exact = exact_moments(temperature)
    decaying = lambda k: 0.6 / (1.0 + k / 1_000.0)  # noqa: E731
    for sampler in (
        iso.mala(0.2, temperature=temperature),
        iso.ghmc(0.3, temperature=temperature, friction=0.2),
        iso.ghmc(decaying, temperature=temperature, friction=0.2),
    ):
        found = moments_of_chains(sampler)
        assert max(abs(z_score(found[:, k], exact[k])) for k in range(3)) < PASS
        assert np.all(found.std(axis=0) < 0.2)


def test_a_kernel_that_rejects_everything_keeps_its_starts():
    found = moments_of_chains(iso.Sampler(Faulty(0.2, "rejects"), 0.5))
    assert max(abs(z_score(found[:, k], exact_moments(1.0)[k])) for k in range(3)) > FAIL


# Modes at -1 and 1, behind a barrier of 8, and a reference wider than both.
SPREAD, CENTER = 1.5, 0.3


def high_well(x):
    return jnp.sum(8.0 * (x**2 - 1.0) ** 2 + 0.3 * x)


def log_reference(x):
    return jnp.sum(-0.5 * ((x - CENTER) / SPREAD) ** 2) - jnp.log(SPREAD * jnp.sqrt(2.0 * jnp.pi))


def draw_reference(key):
    return CENTER + SPREAD * jax.random.normal(key, (1,))


HIGH = iso.with_reference(high_well, draw_reference, log_reference)
LADDERS = {
    "path": (HIGH, iso.reghmc(0.05, temperatures=(1.0, 4.0, 16.0, np.inf), friction=0.3, path="reference")),
    "sgld on a path": (HIGH, iso.resgld(0.002, temperatures=(1.0, 4.0, 16.0, np.inf), path="reference")),
    "temperatures": (
        iso.from_energy(high_well),
        # Hot rungs reach steeper places: longer steps would be rejected there for a long time.
        iso.reghmc((0.03, 0.02, 0.01, 0.005), temperatures=(1.0, 3.0, 9.0, 27.0), friction=0.1),
    ),
    "all pairs": (
        iso.from_energy(high_well),
        iso.reghmc(0.05, temperatures=(2.0, 8.0, 27.0), friction=1.0, scheme=iso.exchange.AllPairs()),
    ),
}


def exchange_of(sampler: Any) -> Exchange:
    """The coupling of an exchange sampler."""
    return sampler.coupling


def rung_density(name: str, temperatures: tuple[float, ...], rung: int) -> np.ndarray:
    """The probabilities of a rung's law on `GRID`."""
    energy = 8.0 * (GRID**2 - 1.0) ** 2 + 0.3 * GRID
    if "path" in name:
        prior = 0.5 * ((GRID - CENTER) / SPREAD) ** 2
        energy = prior + (energy - prior) * temperatures[0] / temperatures[rung]
        energy = energy / temperatures[0]
    else:
        energy = energy / temperatures[rung]
    density = np.exp(-(energy - energy.min()))
    return density / density.sum()


def positions_of_rungs(ladder, num_steps, num_runs, init, seed=0):
    """Positions of the replicas in order of their rungs and of themselves, and the rungs: shapes (run, draw, replica)."""
    potential, sampler = ladder
    coupling = dataclasses.replace(exchange_of(sampler), records_all=True)
    sampler = dataclasses.replace(sampler, coupling=coupling)
    run = iso.sample(potential, sampler, num_steps=num_steps, num_runs=num_runs, num_ladders=1, init=init, seed=seed)
    x = np.swapaxes(np.asarray(run.draws, np.float64)[..., 0], 1, 2)
    rung = np.swapaxes(np.asarray(run.observed["rung"]), 1, 2)
    by_rung = np.empty_like(x)
    np.put_along_axis(by_rung, rung, x, axis=2)
    return by_rung, x, rung


def tiny(key):
    return jnp.where(jax.random.bernoulli(key, 0.5), 1.0, -1.0) * jnp.ones(1)


@pytest.mark.parametrize("name", LADDERS)
def test_rungs_of_a_path_have_their_laws(name):
    by_rung, _, _ = positions_of_rungs(LADDERS[name], 3_000, 200, tiny)
    temperatures = exchange_of(LADDERS[name][1]).ladder.temperatures
    late = by_rung[:, 500:]
    bias = 0.01 if "sgld" in name else 0.0
    for rung in range(len(temperatures)):
        density = rung_density(name, temperatures, rung)
        for function in (lambda x: x, lambda x: np.minimum(x**2, 9.0), lambda x: x > 0.0, lambda x: np.abs(x) > 0.9):
            found = function(late[..., rung]).mean(axis=1)
            exact = float(density @ function(GRID))
            off = abs(found.mean() - exact) - bias
            assert off < PASS * found.std(ddof=1) / np.sqrt(len(found)) + 1e-9, (rung, found.mean(), exact)
            assert found.std(ddof=1) < 0.5


def test_forces_on_a_path_keep_the_prior_whole():
    """SGLD without swaps, which makes the law of a rung by its force alone: (U + 3 U_0) / 4 at a temperature of 4."""
    problem = iso.with_reference(well, draw_reference, log_reference)
    sampler = iso.resgld(0.01, temperatures=(1.0, 4.0), intensity=1e-9, path="reference")
    by_rung, _, _ = positions_of_rungs((problem, sampler), 4_000, 64, tiny)
    found = (by_rung[:, 500:, 1] ** 2).mean(axis=1)
    energy, prior = 1.5 * (GRID**2 - 1.0) ** 2 + 0.4 * GRID, 0.5 * ((GRID - CENTER) / SPREAD) ** 2
    exact, wrong = (
        np.sum(GRID**2 * np.exp(-law)) / np.sum(np.exp(-law)) for law in (0.25 * energy + 0.75 * prior, 0.25 * energy)
    )
    error = found.std(ddof=1) / 8.0
    # Half of the step times the curvature is below 2 %.
    assert abs(found.mean() - exact) < PASS * error + 0.02 * exact
    assert abs(found.mean() - wrong) > FAIL * error + 0.02 * exact


def test_the_hottest_rung_of_a_path_is_drawn_anew_in_every_iteration():
    by_rung, _, _ = positions_of_rungs(LADDERS["path"], 400, 100, tiny)
    # The first draw is the start.
    x = (by_rung[:, 1:, -1] - CENTER) / SPREAD
    assert abs(z_score(x.mean(axis=1), 0.0)) < PASS
    assert abs(z_score((x**2).mean(axis=1), 1.0)) < PASS
    assert abs(z_score((x**4).mean(axis=1), 3.0)) < PASS
    # Swaps read the energy of a draw, so what stays on the rung is not a selection: each is independent of the last.
    assert abs(z_score((x[:, 1:] * x[:, :-1]).mean(axis=1), 0.0)) < PASS
    assert abs(z_score(((x[:, 1:] ** 2 - 1.0) * (x[:, :-1] ** 2 - 1.0)).mean(axis=1), 0.0)) < PASS


def test_replicas_forget_their_starts_at_the_reference():
    _, x, rung = positions_of_rungs(LADDERS["path"], 600, 400, tiny)
    has_been_there = np.any(rung[:, :-1] == rung.max(), axis=1)
    assert has_been_there.mean() > 0.99
    first, last = np.sign(x[:, 0]), np.sign(x[:, -1])
    assert abs(z_score((first * (last - last.mean())).mean(axis=1), 0.0)) < PASS
    # The control: at first replicas are where they started.
    soon = np.sign(x[:, 3])
    assert abs(z_score((first * (soon - soon.mean())).mean(axis=1), 0.0)) > FAIL
