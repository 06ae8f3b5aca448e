"""Every option away from its default keeps the law, or does what it says. The cells are those of `tests.laws.options`.

The energy is quadratic, at temperature 2, around a center that is not zero: variances at a finite step are known exactly. Contour
samplers run on a skewed well, whose flattened law at a finite step is that of their transition probabilities.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange.rules import Corrected
from isotherm.kernels import SGHMC
from tests.laws.exact import CENTER, LAG, PRECISION, TEMPERATURE, Flattened, Linear, potential_of
from tests.laws.matrix import skewed
from tests.laws.options import (
    BOLD,
    BUFFER,
    CONTOURS,
    CORRECTIONS,
    DESCENTS,
    ENERGY_SCALE,
    EXACT_SWAPS,
    FRESH,
    GATE,
    IGNORING,
    IN_THE_RECURSION,
    LINEAR,
    PARTICLES,
    PARTITION,
    QUICK,
    SCATTER,
    START,
    Cell,
    options_of,
    variances_of_draws,
)
from tests.statistics import FAIL, PASS, assert_law, z_score
from tests.targets import langevin_variance

NUM_RUNS, NUM_STEPS, BURN_IN = 256, 3_000, 300


def sample(cell: Cell, sampler: Any = None, potential: Any = None, **changes: Any) -> iso.Run:
    """A run of a cell; of exchange samplers, of as many ladders as others have runs."""
    is_ladder = "temperatures" in cell.options or cell.method.startswith("deo")
    settings: dict[str, Any] = {"num_ladders" if is_ladder else "num_runs": NUM_RUNS, "num_steps": NUM_STEPS}
    settings |= {"burn_in": BURN_IN, "init": jnp.full(1, CENTER + START), "num_chains": cell.num_chains, **changes}
    potential = potential_of(cell.setting) if potential is None else potential
    return iso.sample(potential, sampler or cell.sampler(), progress=False, **settings)


def squares(run: iso.Run) -> np.ndarray:
    """The mean square around the center of every run or ladder."""
    draws = np.asarray(run.draws, np.float64)
    return np.mean((draws.reshape(len(draws), -1) - CENTER) ** 2, axis=1)


def moves(run: iso.Run) -> np.ndarray:
    """The mean square of moves over `LAG` iterations of every run."""
    draws, is_next = np.asarray(run.draws, np.float64), run.iterations[LAG:] - run.iterations[:-LAG] == LAG
    moved = (draws[..., LAG:, 0] - draws[..., :-LAG, 0])[..., is_next]
    return np.mean(moved.reshape(len(draws), -1) ** 2, axis=1)


def means(run: iso.Run) -> np.ndarray:
    draws = np.asarray(run.draws, np.float64)
    return draws.reshape(len(draws), -1).mean(axis=1)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.long) for name in LINEAR]
)
def test_chains_of_noise_have_their_exact_variance(name):
    cell = LINEAR[name]
    run = sample(cell)
    found = [squares(run), moves(run)]
    assert abs(z_score(means(run), CENTER)) < PASS
    for estimates, truth in zip(found, variances_of_draws(cell), strict=True):
        assert_law(estimates, truth, wrong=1.1 * truth)
    # Any of these options, were it ignored, would show.
    seen = IN_THE_RECURSION | ({"decay"} if "freeze_after" in cell.options else set())
    for option in seen & set(cell.options):
        others = variances_of_draws(cell, **{option: options_of(cell.method)[option]})
        scores = [z_score(estimates, other) for estimates, other in zip(found, others, strict=True)]
        assert np.nanmax(np.abs(scores)) > FAIL, option


def test_gradient_noise_that_is_told_of_leaves_the_law_of_none():
    """What is left out is what gradients bring. New velocities keep the law of small steps."""
    cell = LINEAR["sghmc with noise"]
    quiet = dataclasses.replace(cell, setting="exact", options={**cell.options, "gradient_variance": 0.0})
    np.testing.assert_allclose(variances_of_draws(cell), variances_of_draws(quiet), rtol=1e-9)
    small = Linear(lambda k: 0.05, lambda k: TEMPERATURE, friction=0.5, resample_every=4).variances(1_200)[-4:, 0]
    assert small.mean() == pytest.approx(TEMPERATURE / PRECISION, rel=0.03)


class Hotter(SGHMC):
    """With a tenth more noise."""

    is_elementwise = True

    def step(self, state, gradient, noise, move, curvature=None):
        return super().step(state, gradient, noise, move._replace(temperature=1.1 * move.temperature), curvature)


def test_a_chain_of_other_noise_is_seen():
    cell = LINEAR["sghmc"]
    kernel = Hotter(cell.options["friction"], 0.0, cell.options["resample_every"])
    run = sample(cell, dataclasses.replace(cell.sampler(), kernel=kernel))
    for estimates, truth in zip((squares(run), moves(run)), variances_of_draws(cell), strict=True):
        assert z_score(estimates, truth) > FAIL


@pytest.mark.parametrize("name", DESCENTS)
def test_descents_are_those_of_numpy(name):
    cell = DESCENTS[name]

    def path(**changes):
        options = {**options_of(cell.method), **cell.options, **changes}
        length = options.get("cycle_length")
        x, v, found = START, 0.0, []
        for k in range(60):
            phase = 0.0 if length is None else k % length / length
            if length is None or phase >= options["sampling_from"]:
                found.append(CENTER + x)
            held = min(phase, options.get("sampling_from", 1.0))
            step = cell.step_size if length is None else 0.5 * cell.step_size * (np.cos(np.pi * held) + 1.0)
            v = (1.0 - options["friction"]) * v - step * PRECISION * x
            x = x + v
        return np.array(found)

    draws = np.asarray(sample(cell, num_runs=1, num_steps=60, burn_in=0).draws, np.float64).reshape(-1)
    np.testing.assert_allclose(draws, path(), rtol=1e-4, atol=1e-4)
    for option in cell.options:
        other = path(**{option: options_of(cell.method)[option]})
        assert other.shape != draws.shape or np.abs(other - draws).max() > 0.01, option


def test_two_particles_come_to_rest_where_forces_cancel():
    """At a distance a from the center: h (1 - k) = 4 T k / b with k = exp(-4 a^2 / b)."""
    starts = iso.per_chain(jnp.array([[CENTER - 0.3], [CENTER + 0.5]]))
    run = sample(PARTICLES, num_runs=1, num_steps=2_000, init=starts, burn_in=1_900)
    bandwidth = PARTICLES.options["bandwidth"]
    rest = np.sqrt(bandwidth / 4.0 * np.log1p(4.0 * TEMPERATURE / (bandwidth * PRECISION)))
    found = np.sort(np.asarray(run.draws)[..., -1, 0].reshape(-1))
    np.testing.assert_allclose(found, [CENTER - rest, CENTER + rest], rtol=1e-3)


def target_variance(cell: Cell) -> float:
    options = {**options_of(cell.method), **cell.options}
    step = cell.step_size[0] * options["step_factor"]
    return langevin_variance(step, PRECISION, options["temperatures"][0] * options["temperature_factor"])


@pytest.mark.parametrize("name", EXACT_SWAPS)
def test_swaps_between_matched_rungs_leave_the_exact_variance(name):
    cell = EXACT_SWAPS[name]
    run = sample(cell, num_steps=6_000)
    assert_law(squares(run), target_variance(cell), wrong=1.1 * target_variance(cell))
    assert abs(z_score(means(run), CENTER)) < PASS
    assert np.asarray(run.stats["swap_rate"]).mean() > 0.2
    intensity = cell.options.get("intensity")
    if intensity is not None:
        # Every pair, in so many of the iterations.
        attempts = np.asarray(run.stats["num_swaps"]) / np.asarray(run.stats["swap_rate"])
        assert abs(z_score(attempts.mean(axis=1) / run.num_steps, intensity)) < PASS


class Weak(Corrected):
    """With four fifths of the exponent."""

    def log_acceptance(self, state, pairs, iteration):
        return 0.8 * super().log_acceptance(state, pairs, iteration)


def test_swaps_with_a_wrong_exponent_are_seen():
    cell = EXACT_SWAPS["factors"]
    sampler: Any = cell.sampler()
    coupling = dataclasses.replace(sampler.coupling, rule=Weak(None))
    run = sample(cell, dataclasses.replace(sampler, coupling=coupling), num_steps=6_000)
    assert z_score(squares(run), target_variance(cell)) > FAIL


def test_a_correction_is_exact_for_normal_noise_and_a_factor_above_one_lets_hot_states_in():
    noisy = iso.with_noise(potential_of("exact"), energy_scale=ENERGY_SCALE)
    truth = langevin_variance(CORRECTIONS.step_size[0], PRECISION, TEMPERATURE)
    samplers = {factor: CORRECTIONS.sampler(correction_factor=factor) for factor in (1.0, 4.0)}
    settings: dict[str, Any] = {"num_ladders": NUM_RUNS, "num_steps": 4_000, "burn_in": BURN_IN}
    runs = iso.sweep(noisy, samplers, init=jnp.full(1, CENTER), progress=False, **settings)
    exact, bold = (squares(runs[factor]) for factor in samplers)
    assert_law(exact, truth, wrong=1.1 * truth)
    assert z_score(bold - exact, 0.0) > FAIL
    assert "Energy noise makes swaps up to" in str(runs[4.0].summary())
    assert "Energy noise makes swaps up to" not in str(runs[1.0].summary())


@pytest.mark.parametrize("name", SCATTER)
def test_measured_variances_scatter_as_their_number_says(name):
    cell, num_steps = SCATTER[name], 60
    noisy = iso.with_noise(potential_of("exact"), energy_scale=ENERGY_SCALE)
    run = sample(cell, potential=noisy, num_ladders=2_048, num_steps=num_steps, burn_in=0)
    found = np.asarray(run.stats["variance_of_difference"], np.float64)[:, 0]
    truth = 2.0 * ENERGY_SCALE**2
    assert abs(z_score(found, truth)) < PASS

    def scatter(**changes):
        options = {**options_of(cell.method), **cell.options, **changes}
        number, smoothing = -(-num_steps // options["measure_every"]), options.get("smoothing")
        kept = np.full(number, 1.0 / number)
        if smoothing is not None:
            kept = smoothing * (1.0 - smoothing) ** np.arange(number)
            kept[-1] /= smoothing
        return truth**2 * 2.0 / (options["num_measured"] - 1) * np.sum(kept**2)

    around = (found - truth) ** 2
    assert abs(z_score(around, scatter())) < PASS
    for option in {"measure_every", "num_measured", "smoothing"} & set(cell.options):
        if name == "the mean of all" or option != "measure_every":
            assert abs(z_score(around, scatter(**{option: options_of(cell.method)[option]}))) > FAIL, option


@pytest.mark.parametrize("name", BOLD)
def test_options_that_bias_swaps_heat_the_target_and_say_so(name):
    cell, note = BOLD[name]
    run = sample(cell)
    assert z_score(squares(run), target_variance(cell)) > FAIL
    assert note in str(run.summary())
    # A pair that has swapped waits for as many iterations.
    assert np.asarray(run.stats["num_swaps"]).max() <= run.num_steps / (1 + cell.options["cooling"]) + 1


def test_a_window_heats_the_target_and_says_so_and_its_correction_takes_off_most_of_that():
    samplers = {c: GATE.sampler(gate_log_correction=c) for c in (0.0, GATE.options["gate_log_correction"])}
    settings: dict[str, Any] = {"num_ladders": NUM_RUNS, "num_steps": NUM_STEPS, "burn_in": BURN_IN}
    runs = iso.sweep(potential_of("exact"), samplers, init=jnp.full(1, CENTER), progress=False, **settings)
    truth = target_variance(GATE)
    plain, corrected = (squares(run) for run in runs.values())
    assert z_score(plain, truth) > FAIL
    assert abs(corrected.mean() - truth) < 0.5 * (plain.mean() - truth)
    assert "nearly always swaps within a window of 10" in str(runs[0.0].summary())


def test_swaps_that_ignore_the_prior_say_so():
    def log_likelihood(x, y):
        return -0.5 * (x[0] - y) ** 2

    options: dict[str, Any] = {"coupling_includes_prior": False}
    potential = iso.from_likelihood(log_likelihood, lambda x: -1.5 * jnp.sum(x**2), jnp.full(1, 2.0), **options)
    with pytest.raises(ValueError, match="`coupling_includes_prior` must be True for replica exchange"):
        sample(IGNORING, IGNORING.sampler(ignores_prior=False), potential)
    run = sample(IGNORING, potential=potential, num_ladders=64)
    # The posterior is normal around 1/2.
    assert abs(z_score(means(run), 0.5)) > FAIL
    assert "Swaps read the loss without the prior" in str(run.summary())


def test_fresh_batches_for_swaps_keep_the_law():
    """On batches with a short last one, whose noise is corrected by what their examples say."""
    run = sample(FRESH, num_ladders=64, num_steps=14_000, thinning=5)
    found = run.estimate(lambda x: (x[0] - CENTER) ** 2)
    error = np.hypot(found.std_error, found.bias_error)
    assert abs(found.mean - found.bias - TEMPERATURE / PRECISION) < PASS * error
    assert error < 0.02 * TEMPERATURE / PRECISION
    assert np.asarray(run.stats["swap_rate"]).mean() > 0.2


def test_the_buffer_follows_its_recursion_and_exact_windows_swap_once():
    run = sample(BUFFER, num_ladders=16, num_steps=120, burn_in=0)
    buffer = np.asarray(run.observed["buffer"], np.float64)[..., 0]
    accepted = np.diff(np.asarray(run.observed["num_accepted"]), axis=1).mean(axis=-1)
    options = {**options_of(BUFFER.method), **BUFFER.options}

    def steps(**changes):
        chosen = {**options, **changes}
        return chosen["buffer_gain"] * chosen["gain"] * (accepted - chosen["target"])

    assert np.all(buffer[:, 0] == options["buffer"])
    np.testing.assert_allclose(np.diff(buffer, axis=1), steps(), atol=1e-6)
    for option in ("buffer_gain", "target"):
        other = steps(**{option: options_of(BUFFER.method)[option]})
        assert np.abs(np.diff(buffer, axis=1) - other).max() > 1e-4
    # 24 windows, in which pairs 0 and 2 have every other turn, and pair 1 the rest.
    assert np.all(np.asarray(run.stats["num_swaps"]) == 12)


def flattened(cell: Cell, **changes: Any) -> Flattened:
    options = {**options_of(cell.method), **cell.options, **changes}
    low, high, number = PARTITION
    is_cumulative = cell.method == "awsgld"
    theta = options["theta"] if cell.method == "ksgld" else options["initial_theta"]
    return Flattened(
        *(skewed, low, (high - low) / (number - 2), theta, options["zeta"], options.get("slopes") == "forward"),
        bounds=None if is_cumulative else options["bounds"],
        empty_step=None if is_cumulative else options.get("empty_step", 5.0),
        goes_on=is_cumulative,
    )


def law_of(cell: Cell, **changes: Any) -> tuple[Flattened, np.ndarray]:
    chain = flattened(cell, **changes)
    rule = cell.options.get("weight_rule")
    if rule is None:
        return chain, chain.moments(float(cell.step_size))
    theta = np.array(chain.theta) / np.sum(chain.theta)
    powers = np.where(np.arange(len(theta)) == len(theta) - 1, 0.0, theta**rule.power)
    return chain, chain.moments(float(cell.step_size), lambda u: np.log(powers + rule.floor)[chain.bins(u)])


def z_of_law(run: iso.Run, law: np.ndarray) -> np.ndarray:
    """How far mean and variance are from those of a law, without weights and with them: z-scores of shape (2, 2)."""
    draws = np.asarray(run.draws, np.float64)[..., 0].reshape(len(run.draws), -1)
    log_weights = np.asarray(run.log_weights, np.float64).reshape(draws.shape)
    found = []
    for weights, (mean, variance) in zip(
        (np.ones_like(draws), np.exp(log_weights - log_weights.max())), law, strict=True
    ):
        # Sums of weighted deviations are zero on average, whatever the weights add up to.
        away = (draws - mean, (draws - mean) ** 2 - variance)
        found.append([z_score(np.mean(weights * part, axis=1), 0.0) for part in away])
    return np.array(found)


def assert_flattened(cell: Cell, run: iso.Run) -> None:
    chain, law = law_of(cell)
    assert np.all(np.abs(z_of_law(run, law)) < PASS)
    if "weight_rule" not in cell.options:
        left = np.asarray(run.log_weights, np.float64) - chain.log_weights(np.asarray(run.energies, np.float64))
        assert np.ptp(left) < 2e-3
    for option in {"zeta", "bounds", "empty_step", "slopes"} & set(cell.options):
        other = law_of(cell, **{option: options_of(cell.method)[option]})[1]
        assert np.abs(z_of_law(run, other)[0]).max() > FAIL, option


SKEWED = iso.from_energy(skewed)


def test_flattened_chains_of_one_structure_have_the_law_of_their_multiplier():
    names = ("zeta", "bounds", "empty_step")
    settings: dict[str, Any] = {"num_runs": NUM_RUNS, "num_steps": NUM_STEPS, "burn_in": BURN_IN}
    samplers = {name: CONTOURS[name].sampler() for name in names}
    runs = iso.sweep(SKEWED, samplers, init=jnp.full(1, CENTER), progress=False, **settings)
    for name, run in runs.items():
        assert_flattened(CONTOURS[name], run)


@pytest.mark.parametrize("name", ["slopes", "known", "cumulative", "weight_rule"])
def test_flattened_chains_have_the_law_of_their_multiplier(name):
    assert_flattened(CONTOURS[name], sample(CONTOURS[name], potential=SKEWED))


def test_a_multiplier_of_another_zeta_is_seen():
    cell = CONTOURS["bounds"]
    other = sample(cell, cell.sampler(zeta=0.9 * options_of(cell.method)["zeta"]), SKEWED, num_steps=8_000)
    assert np.abs(z_of_law(other, law_of(cell)[1])[0]).max() > FAIL
