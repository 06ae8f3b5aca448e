"""NUTS, adaptive tempered SMC, dynesty and nautilus on the problems of `studies/automatic.py`.

Needs `pip install --group peers`. Every tool has its defaults, and nothing from the answer:

    nuts      NumPyro, 4 chains in sequence, 1000 iterations of warmup and 1000 draws each
    smc       BlackJAX's adaptive tempered SMC from the prior, target effective sample size .9; HMC moves with the particles'
              covariance as inverse mass matrix and a step size that follows the acceptance rate (Buchholz, Chopin and Jacob 2021,
              section 3); 4 independent runs, which give errors
    dynesty   `NestedSampler` and `run_nested` with their defaults; errors by its own `resample_run`
    nautilus  `Sampler` and `run` with their defaults
"""

import dataclasses
import functools
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from isotherm_thesis.studies.automatic_problems import Problem

NUM_CHAINS = 4
# R-hat above which a user of NUTS is told to run longer (Vehtari et al. 2021).
MAX_R_HAT = 1.01
NUM_PARTICLES, TARGET_ESS, NUM_MOVES, NUM_LEAPFROG, ACCEPTANCE = 1_000, 0.9, 3, 10, 0.65
MAX_TEMPERATURES = 500
# Nested samplers are for few dimensions; nautilus refuses a single one.
SIZES = {"dynesty": (1, 20), "nautilus": (2, 20)}
NUM_RESAMPLED = 25
# A warning of dynesty's about speed, not about the answer.
SLOW = "The enlargement factor"
MAX_SECONDS = 300


@dataclasses.dataclass(frozen=True)
class Estimate:
    """An expectation, its standard error and 95 % interval, and how many independent draws it is worth."""

    value: float
    error: float
    low: float
    high: float
    effective: float | None = None
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a tool says about a problem.

    Attributes:
        estimates: by quantity.
        log_z: with its standard error, or None.
        evaluations: gradients, or likelihoods for nested sampling; of batches for a run on batches.
        notes: warnings of the tool.
        told: what else it says, for the record.
    """

    estimates: dict[str, Estimate]
    log_z: tuple[float, float] | None
    evaluations: int
    notes: tuple[str, ...] = ()
    told: dict[str, Any] = dataclasses.field(default_factory=dict)


def normal_estimate(value: float, error: float, effective: float | None = None, factor: float = 1.96) -> Estimate:
    """An estimate whose interval is its error times a factor."""
    return Estimate(value, error, value - factor * error, value + factor * error, effective)


def values_at(problem: Problem, points: Any) -> dict[str, np.ndarray]:
    """The values of all quantities at many points (..., d)."""
    every = jnp.asarray(points, jnp.float32)
    flat = every.reshape(-1, problem.size)
    functions = [quantity.function for quantity in problem.quantities]
    values = jax.jit(jax.vmap(lambda x: jnp.stack([jnp.asarray(function(x), jnp.float32) for function in functions])))(
        flat
    )
    columns = np.asarray(values, float).reshape(*every.shape[:-1], len(functions))
    return {quantity.name: columns[..., i] for i, quantity in enumerate(problem.quantities)}


def nuts(problem: Problem, seed: int) -> Answer:
    """NumPyro's NUTS."""
    from numpyro import diagnostics  # pyright: ignore[reportMissingImports]
    from numpyro.infer import MCMC, NUTS  # pyright: ignore[reportMissingImports]

    key_start, key_warmup, key_run = jax.random.split(jax.random.key(seed), 3)
    potential = lambda x: -problem.log_likelihood(x) - problem.prior.log_density(x)  # noqa: E731
    sampler = MCMC(
        NUTS(potential_fn=potential),
        num_warmup=1_000,
        num_samples=1_000,
        num_chains=NUM_CHAINS,
        chain_method="sequential",
        progress_bar=False,
    )
    starts = jax.vmap(problem.start)(jax.random.split(key_start, NUM_CHAINS))
    fields = ("num_steps", "diverging")
    sampler.warmup(key_warmup, init_params=starts, extra_fields=fields, collect_warmup=True)
    evaluations = int(np.sum(sampler.get_extra_fields()["num_steps"]))
    sampler.run(key_run, extra_fields=fields)
    extra = sampler.get_extra_fields()
    evaluations += int(np.sum(extra["num_steps"]))
    draws = np.asarray(sampler.get_samples(group_by_chain=True))
    estimates, r_hats = {}, []
    for name, values in values_at(problem, draws).items():
        if np.ptp(values) == 0:
            estimates[name] = normal_estimate(float(values.flat[0]), 0.0)
            continue
        effective = float(diagnostics.effective_sample_size(values))
        r_hats.append(float(diagnostics.split_gelman_rubin(values)))
        estimates[name] = normal_estimate(float(values.mean()), float(values.std() / np.sqrt(effective)), effective)
    r_hats += [
        float(diagnostics.split_gelman_rubin(draws[..., i])) for i in range(problem.size) if np.ptp(draws[..., i]) > 0
    ]
    notes, r_hat, diverging = [], float(np.max(r_hats)), int(np.sum(extra["diverging"]))
    if not r_hat <= MAX_R_HAT:
        notes.append(f"R-hat {r_hat:.3f}")
    if diverging:
        notes.append(f"{diverging} divergences")
    return Answer(estimates, None, evaluations, tuple(notes))


def smc(problem: Problem, seed: int) -> Answer:
    """BlackJAX's adaptive tempered SMC."""
    import blackjax  # pyright: ignore[reportMissingImports]
    from blackjax.smc import extend_params, resampling  # pyright: ignore[reportMissingImports]
    from blackjax.smc.tuning.from_particles import particles_covariance_matrix  # pyright: ignore[reportMissingImports]

    kernel = blackjax.hmc.build_kernel()

    def parameters(particles, step_size):
        covariance = particles_covariance_matrix(particles).reshape(problem.size, problem.size)
        return {**extend_params({"inverse_mass_matrix": covariance}), "step_size": jnp.reshape(step_size, (1,))}

    def move(key, state, log_density, step_size, inverse_mass_matrix):
        return kernel(key, state, log_density, step_size, inverse_mass_matrix, NUM_LEAPFROG)

    @jax.jit
    def step(key, particles_state, step_size):
        algorithm = blackjax.adaptive_tempered_smc(
            problem.prior.log_density,
            problem.log_likelihood,
            move,
            blackjax.hmc.init,
            parameters(particles_state.particles, step_size),
            resampling.systematic,
            TARGET_ESS,
            num_mcmc_steps=NUM_MOVES,
        )
        state, info = algorithm.step(key, particles_state)
        acceptance = jnp.mean(info.update_info.acceptance_rate)
        return state, step_size * jnp.exp(acceptance - ACCEPTANCE), info.log_likelihood_increment

    values, log_zs, evaluations, notes = [], [], 0, []
    for repeat in range(NUM_CHAINS):
        key_prior, key = jax.random.split(jax.random.fold_in(jax.random.key(seed), repeat))
        particles = jax.vmap(problem.prior.draw)(jax.random.split(key_prior, NUM_PARTICLES))
        state = blackjax.adaptive_tempered_smc.init(particles)
        state = state._replace(tempering_param=jnp.asarray(state.tempering_param, jnp.float32))
        step_size, log_z = jnp.asarray(0.5 * problem.size**-0.25), 0.0
        for number in range(MAX_TEMPERATURES):
            state, step_size, increment = step(jax.random.fold_in(key, number), state, step_size)
            log_z += float(increment)
            evaluations += NUM_PARTICLES * NUM_MOVES * NUM_LEAPFROG
            if not np.isfinite(log_z) or float(state.tempering_param) >= 1:
                break
        else:
            notes.append(f"Stopped at the inverse temperature {float(state.tempering_param):.3g}")
        weights = np.asarray(state.weights, float)
        found = values_at(problem, state.particles)
        values.append({name: float(weights @ column / weights.sum()) for name, column in found.items()})
        log_zs.append(log_z)
    factor = float(stats.t.ppf(0.975, NUM_CHAINS - 1))
    estimates = {}
    for quantity in problem.quantities:
        repeats = [value[quantity.name] for value in values]
        error = float(np.std(repeats, ddof=1) / np.sqrt(NUM_CHAINS))
        estimates[quantity.name] = normal_estimate(float(np.mean(repeats)), error, None, factor)
    log_z = float(np.mean(log_zs)), float(np.std(log_zs, ddof=1) / np.sqrt(NUM_CHAINS))
    return Answer(estimates, log_z, evaluations, tuple(notes))


def _in_unit(problem: Problem) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The prior's transform and the log likelihood, compiled, of one position."""
    inside = lambda u: jnp.clip(u, 1e-7, 1 - 1e-7)  # noqa: E731
    return jax.jit(lambda u: problem.prior.from_unit(inside(u))), jax.jit(problem.log_likelihood)


def dynesty(problem: Problem, seed: int) -> Answer:
    """Static nested sampling by dynesty."""
    import dynesty as package  # pyright: ignore[reportMissingImports]
    from dynesty import utils  # pyright: ignore[reportMissingImports]

    transform, log_likelihood = _in_unit(problem)
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sampler = package.NestedSampler(
            lambda x: float(log_likelihood(np.asarray(x, np.float32))),
            lambda u: np.asarray(transform(np.asarray(u, np.float32)), float),
            problem.size,
            rstate=rng,
        )
        sampler.run_nested(print_progress=False)
        results = sampler.results
        columns = values_at(problem, results.samples)
        repeats = []
        for _ in range(NUM_RESAMPLED):
            again, index = utils.resample_run(results, rstate=rng, return_idx=True)
            weights = again.importance_weights()
            repeats.append({name: float(weights @ column[index]) for name, column in columns.items()})
    weights = results.importance_weights()
    effective = float(1 / np.sum(weights**2))
    estimates = {}
    for name, column in columns.items():
        error = float(np.std([repeat[name] for repeat in repeats], ddof=1))
        estimates[name] = normal_estimate(float(weights @ column), error, effective)
    log_z = float(results.logz[-1]), float(results.logzerr[-1])
    notes = dict.fromkeys(str(one.message)[:200] for one in heard if SLOW not in str(one.message))
    return Answer(estimates, log_z, int(np.sum(results.ncall)), tuple(notes))


def nautilus(problem: Problem, seed: int) -> Answer:
    """Importance nested sampling by nautilus."""
    from nautilus import Sampler  # pyright: ignore[reportMissingImports]

    transform, log_likelihood = map(jax.jit, map(jax.vmap, _in_unit(problem)))
    many = lambda function, points: np.asarray(function(np.asarray(points, np.float32)), float)  # noqa: E731
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sampler = Sampler(
            functools.partial(many, transform),
            functools.partial(many, log_likelihood),
            n_dim=problem.size,
            vectorized=True,
            pass_dict=False,
            seed=seed,
        )
        is_done = sampler.run(timeout=MAX_SECONDS)
    points, log_weights, _ = sampler.posterior()
    weights = np.exp(log_weights - np.max(log_weights))
    weights /= weights.sum()
    effective = float(sampler.n_eff)
    estimates = {}
    for name, column in values_at(problem, points).items():
        value = float(weights @ column)
        spread = float(np.sqrt(weights @ (column - value) ** 2))
        estimates[name] = normal_estimate(value, spread / np.sqrt(effective), effective)
    notes = list(dict.fromkeys(str(one.message)[:200] for one in heard))
    if not is_done:
        notes.append(f"Stopped after {MAX_SECONDS} s")
    return Answer(estimates, (float(sampler.log_z), float(effective**-0.5)), int(sampler.n_like), tuple(notes))


RIVALS: dict[str, Callable[[Problem, int], Answer]] = {
    "nuts": nuts,
    "smc": smc,
    "dynesty": dynesty,
    "nautilus": nautilus,
}


def takes(tool: str, problem: Problem) -> bool:
    """Whether a tool is for problems of this size."""
    smallest, largest = SIZES.get(tool, (1, problem.size))
    return smallest <= problem.size <= largest
