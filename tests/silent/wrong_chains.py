"""Chains on their own that finish without a sign of trouble and are wrong."""

import functools

import jax.numpy as jnp
import numpy as np

import isotherm as iso
from tests.silent.case import Case, case, chains, standard, uniform
from tests.silent.data_targets import linear_regression, logistic_regression, normal_mean
from tests.silent.targets import (
    autoregressive,
    funnel,
    gaussian,
    laplace,
    log_gamma,
    rugged,
    slope_in_box,
    steep_wall,
    step_of_energy,
    two_modes,
)

wrong = functools.partial(case, is_good=False)

CASES: list[Case] = [
    wrong(
        "sgld, stiff direction",
        "The step is 0.8 of the variance of the stiffest coordinate, whose spread comes out too large.",
        gaussian(tuple(np.geomspace(1.0, 0.1, 10))),
        iso.sgld(0.008),
        chains(16, 20_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "sghmc, stiff directions in 50 dimensions",
        "With momentum the step times the largest curvature is 1.5, and the spread of stiff coordinates too large.",
        gaussian(tuple(np.geomspace(1.0, 0.1, 50))),
        iso.sghmc(0.015),
        chains(8, 10_000, burn_in=1_000, thinning=10),
    ),
    wrong(
        "sgld, small batches",
        "Batches of 10 out of 1000 add half as much noise again as is injected: the posterior is too wide.",
        normal_mean(1_000, 2, batch_size=10, batching="independent"),
        iso.sgld(1e-5),
        chains(8, 40_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "sgld, last batch of one example",
        "1001 examples in batches of 250 leave a last batch of one, which stands for all of them once in every pass.",
        normal_mean(1_001, 2, batch_size=250),
        iso.sgld(1e-5),
        chains(8, 40_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "sghmc, small batches",
        "Momentum with friction 0.1 multiplies what batch noise does by ten: the posterior is too wide.",
        linear_regression(1_000, 20, 3.0, batch_size=10),
        iso.sghmc(5e-7),
        chains(8, 40_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "sghmc, gradient variance overestimated",
        "The variance of the gradient is given four times too large, so that too little noise is injected.",
        normal_mean(1_000, 2, batch_size=50, batching="independent"),
        iso.sghmc(1.5e-6, gradient_variance=8e4),
        chains(8, 40_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "sgld, logistic regression in tiny batches",
        "Batches of 5 out of 400 at a step that suits full batches widen and shift the skewed posterior.",
        logistic_regression(400, batch_size=5, batching="independent"),
        iso.sgld(1e-3),
        chains(8, 40_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "sgld, one narrow mode",
        "The step suits the wide mode; in the narrow one it is larger than the variance, and chains leave it too soon.",
        two_modes(0.5, 1.5, narrow=0.15, wide=1.0),
        iso.sgld(0.03),
        chains(16, 100_000, burn_in=2_000, thinning=20),
    ),
    wrong(
        "sgld, chains in the modes of their starts",
        "128 chains start evenly over both modes and cross almost never, so that the masses are those of the starts.",
        two_modes(0.9, 4.0),
        iso.sgld(0.05),
        chains(128, 10_000, burn_in=1_000, thinning=20),
        init=uniform(1, -6.0, 6.0),
    ),
    wrong(
        "sgld, no burn-in",
        "Chains start at zero, 20 standard deviations from the mean, and the way from there is kept.",
        gaussian((1.0, 1.0), center=20.0),
        iso.sgld(5e-3),
        chains(64, 4_000, thinning=4),
        init=jnp.zeros(2),
    ),
    wrong(
        "sghmc, burn-in far too short",
        "The slow direction needs tens of thousands of steps from the common start, and has a tenth of that.",
        gaussian((5.0, *np.full(19, 0.1)), center=10.0),
        iso.sghmc(5e-4, friction=0.3),
        chains(64, 6_000, burn_in=2_000, thinning=10),
        init=jnp.zeros(20),
    ),
    wrong(
        "sgld, step that decays too fast",
        "The step falls like one over the iteration, and chains are still on their way from the common start.",
        autoregressive(5, 0.5),
        iso.sgld(lambda k: 0.02 / (1.0 + k / 20.0)),
        chains(64, 20_000, burn_in=2_000, thinning=20),
        init=jnp.full(5, 4.0),
    ),
    wrong(
        "sgld, annealing longer than the burn-in",
        "The temperature falls from 10 to 1 over 20,000 steps, and draws are kept from step 2,000 on.",
        autoregressive(3, 0.5),
        iso.sgld(0.05, temperature=iso.schedules.Annealed(10.0, 10.0 ** (1 / 200), 100, stop_at=20_000)),
        chains(64, 60_000, burn_in=2_000, thinning=20),
    ),
    wrong(
        "psgld, never frozen",
        "A preconditioner that follows the gradient changes the law.",
        gaussian((1.0, 3.0, 10.0)),
        iso.psgld(0.003),
        chains(16, 1_000_000, burn_in=50_000, thinning=100),
    ),
    wrong(
        "svgd in 50 dimensions",
        "A hundred particles in 50 dimensions collapse towards the mean.",
        gaussian((1.0,) * 50),
        iso.svgd(0.5),
        chains(100, 2_000, burn_in=1_999),
        init=standard(50),
    ),
    wrong(
        "cycsgld, step that falls to zero",
        "The last twentieth of a cycle, with a vanishing step, cannot make up for the descent without noise.",
        autoregressive(3, 0.6),
        iso.cycsgld(0.05, cycle_length=1_000),
        chains(8, 40_000, burn_in=1_000),
    ),
    wrong(
        "cycsgld, masses of modes",
        "Descents from wherever the last cycle ended give the wide mode what its basin catches.",
        two_modes(0.85, 2.5, narrow=0.4, wide=1.0),
        iso.cycsgld(0.5, cycle_length=500, sampling_from=0.5, hold_from=0.8, exploration_temperature=10.0),
        chains(32, 40_000, burn_in=1_000, thinning=5),
    ),
    wrong(
        "sgld, energy with a jump",
        "The gradient does not see a jump of the energy, and both sides are sampled alike.",
        step_of_energy(1.5),
        iso.sgld(0.05),
        chains(8, 40_000, burn_in=1_000, thinning=10),
    ),
    wrong(
        "sgld, funnel",
        "In the neck of the funnel the step is too large, and chains do not enter it.",
        funnel(10, 2.0),
        iso.sgld(0.05),
        chains(32, 50_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "sgld, ripples finer than the step",
        "A step jumps over ripples, whose gradient acts as noise.",
        rugged(1.0, 0.3),
        iso.sgld(0.01),
        chains(16, 50_000, burn_in=2_000, thinning=20),
    ),
    wrong(
        "sgld, large step in a box",
        "The density is highest at a wall, and half of the large moves from there are rejected.",
        slope_in_box(4.0, 0.0, 3.0),
        iso.sgld(0.15, box=(0.0, 3.0)),
        chains(8, 30_000, burn_in=1_000, thinning=5),
        init=uniform(1, 0.0, 3.0),
    ),
    wrong(
        "sgld, steep wall instead of a box",
        "The step is 1.8 over the stiffness of the wall, which throws chains back into the tail.",
        steep_wall(25.0),
        iso.sgld(0.072),
        chains(16, 200_000, burn_in=5_000, thinning=50),
    ),
    wrong(
        "sgld, skewed well",
        "A large step overshoots from the steep side into the flat tail: the mean is too low.",
        log_gamma(2.0),
        iso.sgld(0.35),
        chains(8, 30_000, burn_in=1_000, thinning=5),
    ),
    wrong(
        "sgld, kink",
        "The step times the slope is twice the scale of the law, and every move jumps over the kink.",
        laplace(20, 20.0),
        iso.sgld(5e-3),
        chains(8, 40_000, burn_in=1_000, thinning=10),
    ),
]
