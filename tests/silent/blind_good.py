"""Good runs by somebody who had not seen the checks."""

import functools

import numpy as np

import isotherm as iso
from tests.silent import blind_energies as energies
from tests.silent.blind_data import HIERARCHY, LOG_RATES, REGRESSION_MEAN, logistic, poisson, regression, square
from tests.silent.case import Case, case, chains, ladders

good = functools.partial(case, is_good=True)

CASES: list[Case] = [
    good(
        "regression sgld careful",
        "batches of 100 at a short step, eight chains from spread starts",
        regression(100),
        iso.sgld(3e-5),
        chains(8, 60_000, burn_in=2_000, thinning=20),
        init=energies.spread(REGRESSION_MEAN, 0.1),
    ),
    good(
        "counts sghmc careful",
        "large batches, short step, high friction",
        poisson(120),
        iso.sghmc(6e-6, friction=0.2),
        chains(8, 80_000, burn_in=3_000, thinning=40),
        init=energies.spread(LOG_RATES, 0.15),
    ),
    good(
        "chain50 sghmc careful",
        "momentum with a short step, eight chains",
        energies.autoregressive(50, 0.8),
        iso.sghmc(0.006),
        chains(8, 30_000, burn_in=2_000, thinning=40),
        init=energies.spread(np.zeros(50), 1.5),
    ),
    good(
        "loggamma csgld careful",
        "one well, contour weights, exact energies",
        energies.log_gamma(1.5),
        iso.csgld(0.02),
        chains(6, 150_000, burn_in=10_000, thinning=20),
        init=energies.spread(0.0, 1.0),
    ),
    good(
        "student8 cycsgld careful",
        "long sampling stages at short steps",
        energies.student(8.0),
        iso.cycsgld(0.05, cycle_length=5000, sampling_from=0.5, hold_from=0.9, floor=0.008),
        chains(10, 300_000, thinning=25),
        init=energies.spread(np.zeros(3), 2.0),
    ),
    good(
        "two modes icsgld careful",
        "contours over the barrier, eight chains",
        energies.mixture((0.3, 0.7), (-3.0, 3.0), (1.0, 0.7)),
        iso.icsgld(0.015),
        chains(8, 80_000, burn_in=10_000, thinning=20),
        init=energies.uniform((), -5.0, 5.0),
    ),
    good(
        "ten dimensions resghmc careful",
        "four rungs with momentum, eight ladders",
        energies.two_modes_in_ten(),
        iso.resghmc(0.01, temperatures=(1.0, 1.5, 2.2, 3.4)),
        ladders(8, 50_000, burn_in=3_000, thinning=20),
        init=energies.spread(np.zeros(10), 2.0),
    ),
    good(
        "triangle resgld careful",
        "three rungs, eight ladders from anywhere",
        energies.triangle(),
        iso.resgld(0.015, temperatures=(1.0, 2.2, 5.0)),
        ladders(8, 100_000, burn_in=5_000, thinning=20),
        init=energies.uniform((2,), -1.0, 5.0),
    ),
    good(
        "mild funnel sghmc careful",
        "a funnel of scale 0.5 with a short step",
        energies.funnel(0.5, 4, (("var x", lambda x: x[2] ** 2 / float(np.exp(0.125)), 1.0),)),
        iso.sghmc(3e-3),
        chains(8, 60_000, burn_in=2_000, thinning=20),
        init=energies.spread(np.zeros(5), 0.7),
    ),
    good(
        "box normal sgld careful",
        "a truncated normal in a box with a short step",
        energies.truncated_normal(),
        iso.sgld(0.003, box=(0.0, 2.0)),
        chains(6, 120_000, burn_in=5_000, thinning=40),
        init=energies.uniform((2,), 0.1, 1.9),
    ),
    good(
        "offset coordinates sghmc careful",
        "coordinates of a thousand standard deviations, still fine in float32",
        energies.normal_at((1000.0, -500.0), 1.0),
        iso.sghmc(0.02),
        chains(4, 50_000, burn_in=1_000, thinning=20),
        init=energies.spread((1000.0, -500.0), 2.0),
    ),
    good(
        "logistic sgld careful",
        "batches of 100 of 300 at a short step",
        logistic(100),
        iso.sgld(4e-4),
        chains(6, 80_000, burn_in=4_000, thinning=25),
        init=energies.spread(np.zeros(2), 0.7),
    ),
    good(
        "near scales psgld frozen careful",
        "a frozen preconditioner on scales from 0.3 to 3",
        energies.near(),
        iso.psgld(0.008, decay=0.999, freeze_after=20_000),
        chains(10, 300_000, burn_in=20_000, thinning=100),
        init=energies.near_start,
    ),
    good(
        "hierarchy sghmc careful",
        "schools with known spread",
        HIERARCHY,
        iso.sghmc(5e-3),
        chains(6, 60_000, burn_in=2_000, thinning=20),
        init=energies.spread(np.zeros(9), 1.5),
    ),
    good(
        "square root resgld all data careful",
        "two modes of unequal mass, swaps on energies of all data",
        square(None),
        iso.resgld((5e-4, 8e-4, 1e-3), temperatures=(1.0, 3.5, 12.0)),
        ladders(8, 60_000, burn_in=4_000, thinning=20),
        init=energies.uniform((), -1.5, 1.5),
    ),
    good(
        "positive scale sgld careful",
        "a gamma variable through the library's transform",
        energies.positive_scale(),
        iso.sgld(0.01),
        chains(6, 150_000, burn_in=5_000, thinning=25),
        init=energies.positive_start,
    ),
]
