"""Every adapter and every transform with every family of samplers: the law under each pair.

Loops by hand, of BlackJAX and of optax, and sweeps move samplers on the quadratic energy or the skewed well, whose laws at a
finite step are exact. Transforms move all their parameters in one problem, at temperature 2, judged after the bias of leading
order, which falls with the step size, was taken off.
"""

import collections
import importlib.util
import sys
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

import isotherm as iso
from isotherm.samplers.sampler import AnySampler
from isotherm.transforms import constrain, interval, ordered, positive, simplex
from tests.laws.exact import CENTER, PRECISION, TEMPERATURE, potential_of, quadratic
from tests.laws.matrix import FAMILIES, skewed
from tests.laws.options import CONTOURS, EXACT_SWAPS, LINEAR, Cell
from tests.laws.test_options import law_of, target_variance
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

ADAPTERS = ("optax", "blackjax", "by hand", "sweep")
TRANSFORMS = ("positive", "interval", "simplex", "ordered")
_OPTAX = "tests/laws/test_other_libraries.py::"
_OPTIONS = "tests/laws/test_options.py::"
# Where pairs are judged that are not here.
ELSEWHERE = {
    ("optax", "independent"): _OPTAX + "test_sgld_of_optax_has_the_variance_of_a_finite_step",
    # An optimizer has one chain: both are refused.
    ("optax", "exchange"): _OPTAX + "test_samplers_that_need_more_are_refused",
    ("optax", "contour"): _OPTAX + "test_samplers_that_need_more_are_refused",
    ("optax", "adjusted"): _OPTAX + "test_samplers_that_need_more_are_refused",
    ("sweep", "adjusted"): "tests/reproducibility/test_adjusted_runs.py::test_a_sweep_is_its_runs",
    ("sweep", "exchange"): _OPTIONS
    + "test_a_correction_is_exact_for_normal_noise_and_a_factor_above_one_lets_hot_states_in",
    ("sweep", "contour"): _OPTIONS + "test_flattened_chains_of_one_structure_have_the_law_of_their_multiplier",
}
LOOPS = ("by hand", "blackjax")
CELLS: dict[str, Cell] = {
    "independent": LINEAR["sgld"],
    "exchange": EXACT_SWAPS["factors"],
    "contour": CONTOURS["slopes"],
    "adjusted": Cell("mala", 0.5, {"temperature": TEMPERATURE}),
}
HERE = {
    *((loop, family) for loop in LOOPS for family in FAMILIES),
    ("sweep", "independent"),
    *((transform, family) for transform in TRANSFORMS for family in FAMILIES),
}


def test_every_pair_is_judged(request):
    pairs = {(name, family) for name in (*ADAPTERS, *TRANSFORMS) for family in FAMILIES}
    assert pairs == HERE | set(ELSEWHERE)
    assert not HERE & set(ELSEWHERE)
    for test in ELSEWHERE.values():
        path, _, function = test.partition("::")
        assert f"\ndef {function}(" in (request.config.rootpath / path).read_text()


@pytest.fixture
def blackjax(monkeypatch):
    """BlackJAX, or where it is not installed its pair of functions."""
    if importlib.util.find_spec("blackjax") is None:
        base = types.ModuleType("blackjax.base")
        pair = collections.namedtuple("SamplingAlgorithm", ("init", "step"))
        monkeypatch.setattr(base, "SamplingAlgorithm", pair, raising=False)
        monkeypatch.setitem(sys.modules, "blackjax", types.ModuleType("blackjax"))
        monkeypatch.setitem(sys.modules, "blackjax.base", base)


NUM_CHAINS, NUM_STEPS, BURN_IN = 192, 4_000, 300


def draws_of(loop: str, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Draws and log weights of a loop written by hand, shape (repeats, draws)."""
    cell = CELLS[family]
    potential = iso.from_energy(skewed) if family == "contour" else potential_of(cell.setting)
    sampler, start = cell.sampler(), jnp.full(1, CENTER)
    if loop == "by hand":
        first = sampler.init(potential, start, num_chains=cell.num_chains)
        states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (NUM_CHAINS, *jnp.shape(leaf))), first)
        # One key for all iterations of a loop; BlackJAX has one for every step.
        step, keys = sampler.step, jnp.broadcast_to(jax.random.split(jax.random.key(4), NUM_CHAINS), (1, NUM_CHAINS))
    else:
        algorithm = iso.to_blackjax(sampler, potential, cell.num_chains)
        states = jax.vmap(algorithm.init)(jnp.broadcast_to(start, (NUM_CHAINS, 1)))
        step, keys = algorithm.step, jax.random.split(jax.random.key(3), (NUM_STEPS, NUM_CHAINS))

    def advance(states, number):
        after, info = jax.vmap(step)(keys[number % len(keys)], states)
        return after, (states.position, info.log_weight, info.observed.get("rung", ()))

    scanned = jax.jit(lambda s: jax.lax.scan(advance, s, jnp.arange(NUM_STEPS))[1])(states)
    positions, log_weights, rungs = (np.asarray(part) for part in scanned)
    positions = positions[BURN_IN:, ..., 0].reshape(NUM_STEPS - BURN_IN, NUM_CHAINS, -1)
    log_weights = log_weights[BURN_IN:].reshape(positions.shape)
    if family == "exchange":
        target = np.argmin(rungs[BURN_IN:], axis=-1)[..., None]
        positions = np.take_along_axis(positions, target, axis=-1)
        log_weights = np.take_along_axis(log_weights, target, axis=-1)
        assert len(np.unique(target)) > 1
    rows = (np.moveaxis(part, 0, -1).reshape(NUM_CHAINS, -1) for part in (positions, log_weights))
    return tuple(part.astype(np.float64) for part in rows)  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.usefixtures("blackjax")
def test_loops_have_the_law_of_their_sampler(loop, family):
    cell = CELLS[family]
    draws, log_weights = draws_of(loop, family)
    if family == "contour":
        for weights, (mean, variance) in zip((np.ones_like(draws), np.exp(log_weights)), law_of(cell)[1], strict=True):
            assert abs(z_score(np.mean(weights * (draws - mean), axis=1), 0.0)) < PASS
            assert abs(z_score(np.mean(weights * ((draws - mean) ** 2 - variance), axis=1), 0.0)) < PASS
            assert abs(z_score(np.mean(weights * ((draws - mean) ** 2 - 1.1 * variance), axis=1), 0.0)) > FAIL
        return
    if family == "independent":
        truth = langevin_variance(cell.step_size, PRECISION, TEMPERATURE)
    else:
        truth = TEMPERATURE / PRECISION if family == "adjusted" else target_variance(cell)
    assert_law(np.mean((draws - CENTER) ** 2, axis=1), truth, wrong=1.1 * truth)
    assert abs(z_score(draws.mean(axis=1), CENTER)) < PASS


def test_a_sweep_has_the_law_of_each_step_size():
    samplers = {step: iso.sgld(step, temperature=TEMPERATURE) for step in (0.2, 0.9)}
    settings: dict[str, Any] = {"num_runs": 256, "num_steps": 4_000, "burn_in": 300, "progress": False}
    runs = iso.sweep(quadratic, samplers, init=jnp.full(1, CENTER), **settings)
    for step, run in runs.items():
        truth = langevin_variance(step, PRECISION, TEMPERATURE)
        assert_law(np.mean((np.asarray(run.draws, np.float64)[..., 0] - CENTER) ** 2, axis=(1, 2)), truth, 1.1 * truth)


NUM_REPEATS = 128
ALPHA, RATE, SLOPE, ENDS = np.array([2.0, 3.0, 4.5]), 2.0, 1.4, (-1.0, 3.0)
SPACE = {"positive": positive(), "interval": interval(*ENDS), "simplex": simplex(), "ordered": ordered()}


def log_density(x):
    """Independent parts: a gamma law, a truncated exponential one, a Dirichlet, and two normal numbers that are ordered."""
    return (
        2.0 * jnp.log(x["positive"])
        - RATE * x["positive"]
        - SLOPE * x["interval"]
        + jnp.sum((ALPHA - 1.0) * jnp.log(x["simplex"]))
        - 0.5 * (x["ordered"][0] - 0.5) ** 2
        - 0.5 * (x["ordered"][1] / 1.5) ** 2
    )


def truths() -> dict[str, float]:
    """Means of exp(log density / T), with respect to the parameters that users mean."""
    exponents = (ALPHA - 1.0) / TEMPERATURE + 1.0
    root = np.sqrt(TEMPERATURE)

    def smaller(x):
        return stats.norm.pdf(x, 0.5, root) * stats.norm.sf(x, 0.0, 1.5 * root)

    rate = SLOPE / TEMPERATURE
    return {
        "positive": (2.0 / TEMPERATURE + 1.0) / (RATE / TEMPERATURE),
        "interval": stats.truncexpon(4.0 * rate, loc=-1.0, scale=1.0 / rate).mean(),
        "simplex": (exponents / exponents.sum())[2],
        "ordered": integrate.quad(lambda x: x * smaller(x), -15, 15)[0] / integrate.quad(smaller, -15, 15)[0],
    }


def samplers_of(family: str) -> dict[float, AnySampler]:
    """At a step size, and at half of it."""
    steps = (0.1, 0.05)
    if family == "independent":
        return {step: iso.sgld(step, temperature=TEMPERATURE) for step in steps}
    if family == "exchange":
        return {step: iso.resgld((step, 2.0 * step), temperatures=(2.0, 4.0)) for step in steps}
    return {step: iso.icsgld(step, temperature=TEMPERATURE, partition=(11.0, 22.0, 14)) for step in steps}


@pytest.mark.parametrize("family", FAMILIES)
def test_transforms_have_their_law_under_every_family(family):
    problem = constrain(log_density, SPACE, temperature=TEMPERATURE)
    start = {
        "positive": jnp.array(1.0),
        "interval": jnp.array(0.0),
        "simplex": jnp.array([0.2, 0.3, 0.5]),
        "ordered": jnp.array([-1.0, 1.0]),
    }
    settings: dict[str, Any] = {"num_ladders" if family == "exchange" else "num_runs": NUM_REPEATS, "num_steps": 12_000}
    settings |= {"num_chains": 2} if family == "contour" else {}
    runs = iso.sweep(problem, samplers_of(family), init=start, burn_in=2_000, thinning=4, progress=False, **settings)
    means, columns = [], ()
    for run in runs.values():
        weights = np.exp(np.asarray(run.log_weights, np.float64).reshape(NUM_REPEATS, -1))
        parts = {name: np.asarray(leaf, np.float64) for name, leaf in run.draws.items()}
        columns = (parts["positive"], parts["interval"], parts["simplex"][..., 2], parts["ordered"][..., 0])
        means.append([np.sum(weights * c.reshape(NUM_REPEATS, -1), axis=1) / weights.sum(axis=1) for c in columns])
    spreads = [np.std(column) for column in columns]
    for name, at_step, at_half, truth, spread in zip(TRANSFORMS, *means, truths().values(), spreads, strict=True):
        extrapolated = 2.0 * at_half - at_step
        # A fiftieth of a standard deviation would be seen.
        assert extrapolated.std(ddof=1) / np.sqrt(NUM_REPEATS) < 0.02 * spread, name
        assert abs(z_score(extrapolated, truth)) < PASS, name
    if family == "contour":
        # Without weights the energies, and with them the parameters, are those of a flattened law.
        draws = np.asarray(runs[0.05].draws["positive"]).reshape(NUM_REPEATS, -1).mean(axis=1)
        assert abs(z_score(draws, truths()["positive"])) > FAIL
