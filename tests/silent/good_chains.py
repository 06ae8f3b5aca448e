"""Chains on their own that are right."""

import functools

import jax
import numpy as np

import isotherm as iso
from tests.silent.case import Case, case, chains, uniform
from tests.silent.data_targets import linear_regression, logistic_regression, normal_mean
from tests.silent.targets import autoregressive, banana, gaussian, log_gamma, slope_in_box, student, two_modes

good = functools.partial(case, is_good=True)

CASES: list[Case] = [
    good(
        "sgld, standard normal, small step",
        "The step is a hundredth of the variance and chains are long.",
        gaussian((1.0,)),
        iso.sgld(0.01),
        chains(16, 400_000, burn_in=5_000, thinning=50),
    ),
    good(
        "sgld, coordinates of 1e5",
        "Around 1e5 single precision rounds positions to multiples of 1/128, which noise evens out.",
        gaussian((1.0,), center=1e5),
        iso.sgld(2e-3),
        chains(16, 400_000, burn_in=20_000, thinning=100),
        init=lambda key: 1e5 + jax.random.normal(key, (1,)),
    ),
    good(
        "sgld, one long chain",
        "One chain of many autocorrelation times.",
        autoregressive(2, 0.5),
        iso.sgld(0.02),
        chains(1, 4_000_000, burn_in=10_000, thinning=100),
    ),
    good(
        "sgld, correlated pair",
        "The step is small for the narrow direction and the run long for the wide one.",
        autoregressive(2, 0.9),
        iso.sgld(2e-3),
        chains(16, 1_000_000, burn_in=20_000, thinning=200),
    ),
    good(
        "sghmc, 50 correlated dimensions",
        "Step times largest curvature is 0.02.",
        autoregressive(50, 0.7),
        iso.sghmc(3e-3),
        chains(8, 200_000, burn_in=5_000, thinning=50),
    ),
    good(
        "sgld, 50 dimensions of several scales",
        "Small for the stiffest direction, long for the widest.",
        gaussian(tuple(np.geomspace(1.0, 0.3, 50))),
        iso.sgld(1.5e-3),
        chains(8, 500_000, burn_in=20_000, thinning=200),
    ),
    good(
        "psgld, frozen after the burn-in",
        "Coordinates of very different scales, with a preconditioner that no longer moves when draws are kept.",
        gaussian((0.2, 1.0, 5.0)),
        iso.psgld(0.002, decay=0.9995, freeze_after=20_000),
        chains(16, 3_000_000, burn_in=20_000, thinning=300),
    ),
    good(
        "sgld, Student t",
        "Ten degrees of freedom, a small step and long chains.",
        student(3, 10.0),
        iso.sgld(0.01),
        chains(16, 2_500_000, burn_in=10_000, thinning=200),
    ),
    good(
        "sghmc, Student t",
        "Eight degrees of freedom in ten dimensions, with momentum.",
        student(10, 8.0),
        iso.sghmc(5e-3),
        chains(16, 500_000, burn_in=10_000, thinning=50),
    ),
    good(
        "sgld in a box",
        "A small step in a box that cuts the law off on both sides.",
        slope_in_box(1.0, -1.0, 2.0),
        iso.sgld(2e-3, box=(-1.0, 2.0)),
        chains(16, 1_000_000, burn_in=10_000, thinning=100),
        init=uniform(1, -1.0, 2.0),
    ),
    good(
        "sghmc in a box",
        "Momentum turns round at the walls.",
        slope_in_box(0.0, 0.5, 3.0),
        iso.sghmc(5e-4, friction=0.2, box=(0.5, 3.0)),
        chains(16, 1_000_000, burn_in=10_000, thinning=100),
        init=uniform(1, 0.5, 3.0),
    ),
    good(
        "sgld, skewed well, small step",
        "The step is small even on the steep side.",
        log_gamma(2.0),
        iso.sgld(5e-3),
        chains(16, 1_000_000, burn_in=10_000, thinning=100),
    ),
    good(
        "sgld, banana, small step",
        "The step is small for the narrowest part of the banana.",
        banana(0.5, 0.5),
        iso.sgld(5e-3),
        chains(16, 6_000_000, burn_in=20_000, thinning=400),
    ),
    good(
        "sgld, falling step",
        "The step falls slowly from a small start.",
        autoregressive(5, 0.5),
        iso.sgld(iso.schedules.Annealed(0.02, 1.1, 50_000)),
        chains(8, 500_000, burn_in=10_000, thinning=50),
    ),
    good(
        "sgld, low barrier",
        "Two modes so close that chains cross hundreds of times.",
        two_modes(0.7, 1.3),
        iso.sgld(0.02),
        chains(16, 500_000, burn_in=5_000, thinning=50),
    ),
    good(
        "sgld, large batches",
        "Batches of 200 out of 1000 add two hundredths of the injected noise.",
        normal_mean(1_000, 2, batch_size=200),
        iso.sgld(1e-5),
        chains(8, 100_000, burn_in=5_000, thinning=20),
    ),
    good(
        "sghmc, batches, linear regression",
        "The step is small enough for the noise of batches of 100.",
        linear_regression(1_000, 20, 2.0, batch_size=100),
        iso.sghmc(4e-7, friction=0.3),
        chains(8, 400_000, burn_in=10_000, thinning=100),
    ),
    good(
        "sghmc, gradient variance known",
        "The noise of batches is known and left out of what is injected.",
        normal_mean(1_000, 2, batch_size=50, batching="independent", is_batch_shared=False),
        iso.sghmc(1.5e-6, gradient_variance=1.9e4),
        chains(8, 100_000, burn_in=5_000, thinning=20),
    ),
    good(
        "sgld, batches, logistic regression",
        "A small step for batches of 100 out of 400.",
        logistic_regression(400, batch_size=100),
        iso.sgld(4e-4),
        chains(16, 300_000, burn_in=10_000, thinning=50),
    ),
    good(
        "cycsgld, one mode, held step",
        "The sampling stage holds a small step for many relaxation times.",
        autoregressive(2, 0.5),
        iso.cycsgld(0.2, cycle_length=2_000, sampling_from=0.5, hold_from=0.8),
        chains(8, 400_000, burn_in=10_000, thinning=10),
    ),
    good(
        "svgd on a line",
        "Two hundred particles in one dimension.",
        gaussian((1.0,)),
        iso.svgd(0.1),
        chains(200, 4_000, burn_in=3_500, thinning=50),
    ),
]
