"""Wrong runs by somebody who had not seen the checks."""

import functools

import jax.numpy as jnp
import numpy as np

import isotherm as iso
from tests.silent import blind_energies as energies
from tests.silent.blind_data import REGRESSION_MEAN, logistic, regression, square
from tests.silent.case import Case, case, chains, ladders

wrong = functools.partial(case, is_good=False)

CASES: list[Case] = [
    wrong(
        "regression sgld batches too small",
        "batches of 10 of 500 at this step add half the temperature as gradient noise",
        regression(10),
        iso.sgld(1e-4),
        chains(4, 30_000, burn_in=2_000, thinning=10),
        init=energies.spread(REGRESSION_MEAN, 0.1),
    ),
    wrong(
        "regression sgld schedule freezes",
        "the step decays as 1 / k, and chains come to rest before they have seen the posterior",
        regression(100),
        iso.sgld(lambda k: 2e-3 / (k + 40.0)),
        chains(4, 20_000, burn_in=2_000, thinning=5),
        init=energies.spread(REGRESSION_MEAN, 0.1),
    ),
    wrong(
        "chain50 sgld step too long",
        "the step is near the limit of stability for differences of neighbours",
        energies.autoregressive(50, 0.8),
        iso.sgld(0.08),
        chains(4, 20_000, burn_in=1_000, thinning=10),
        init=energies.spread(np.zeros(50), 1.0),
    ),
    wrong(
        "loggamma psgld adapts forever",
        "the preconditioner follows the gradient of a skewed density to the end",
        energies.log_gamma(1.5),
        iso.psgld(0.02, decay=0.9),
        chains(4, 100_000, burn_in=5_000, thinning=10),
        init=energies.spread(0.0, 1.0),
    ),
    wrong(
        "heavy sgld short",
        "tails of a Cauchy law that chains from the middle do not reach in time",
        energies.cauchy(),
        iso.sgld(0.01),
        chains(4, 4_000, burn_in=500, thinning=4),
        init=energies.spread(0.0, 0.5),
    ),
    wrong(
        "far modes resgld hot rung too cool",
        "a hot rung of 1.3 crosses the barrier as rarely as the target",
        energies.mixture((0.3, 0.7), (-4.0, 4.0), (1.0, 1.0)),
        iso.resgld(0.02, temperatures=(1.0, 1.3)),
        ladders(4, 30_000, burn_in=1_000, thinning=10),
        init=energies.uniform((), -6.0, 6.0),
    ),
    wrong(
        "narrow well sgld",
        "a narrow well that few chains enter and none leave",
        energies.mixture((0.8, 0.2), (0.0, 4.0), (1.0, 0.1), at=3.0),
        iso.sgld(1e-3),
        chains(8, 60_000, burn_in=2_000, thinning=20),
        init=energies.uniform((), -1.0, 6.0),
    ),
    wrong(
        "one chain few crossings",
        "one chain of sgld that crossed a barrier a handful of times",
        energies.mixture((0.5, 0.5), (-2.2, 2.2), (0.7, 0.7)),
        iso.sgld(0.01),
        chains(1, 25_000, burn_in=500, thinning=5),
        init=jnp.array(0.0),
    ),
    wrong(
        "cycsgld masses of descents",
        "cycles visit both modes in the proportions of their basins",
        energies.mixture((0.75, 0.25), (-1.5, 2.0), (0.3, 1.0), at=-0.5),
        iso.cycsgld(
            0.05, cycle_length=1000, sampling_from=0.7, hold_from=0.8, floor=0.002, exploration_temperature=6.0
        ),
        chains(4, 100_000, thinning=5),
        init=energies.uniform((), -4.0, 4.0),
    ),
    wrong(
        "funnel sgld",
        "the neck is narrower than the step and the mouth is far away",
        energies.funnel(2.0, 5),
        iso.sgld(0.05),
        chains(4, 40_000, burn_in=2_000, thinning=10),
        init=energies.spread(np.zeros(6), 1.0),
    ),
    wrong(
        "box beta sgld at the walls",
        "an arcsine law whose walls attract: near them every move leaves the box and is rejected",
        energies.beta(),
        iso.sgld(2e-3, box=(1e-6, 1.0 - 1e-6)),
        chains(4, 60_000, burn_in=2_000, thinning=10),
        init=energies.uniform((), 0.1, 0.9),
    ),
    wrong(
        "jump sgld",
        "a penalty switched on beyond a line has no gradient",
        energies.jump(1.5),
        iso.sgld(0.02),
        chains(4, 40_000, burn_in=1_000, thinning=10),
        init=energies.spread(np.zeros(2), 1.5),
    ),
    wrong(
        "far coordinates sgld float32",
        "map coordinates in metres, whose spacing in float32 exceeds a move",
        energies.normal_at((4_649_776.0, 448_262.0), 1.5),
        iso.sgld(0.02),
        chains(4, 40_000, burn_in=1_000, thinning=10),
        init=energies.spread((4_649_776.0, 448_262.0), 2.0),
    ),
    wrong(
        "logistic sghmc variance overstated",
        "the variance of batches of 20 is taken off while batches hold 150",
        logistic(150),
        iso.sghmc(1e-4, gradient_variance=500.0),
        chains(6, 40_000, burn_in=3_000, thinning=10),
        init=energies.spread(np.zeros(2), 0.7),
    ),
    wrong(
        "near scales icsgld weights on few draws",
        "flattening with zeta = 4 leaves some fifty of 11,200 draws with the weight",
        energies.near(),
        iso.icsgld(0.004, partition=(0.5, 40.0, 80), zeta=4.0, bounds=None),
        chains(4, 60_000, burn_in=4_000, thinning=20),
        init=energies.near_start,
    ),
    wrong(
        "square root resgld on halves",
        "swaps that read energies of halves of the data take mass from the lesser mode, while swaps on all data do not",
        square(50),
        iso.resgld((5e-4, 8e-4, 1e-3), temperatures=(1.0, 3.5, 12.0)),
        ladders(8, 60_000, burn_in=4_000, thinning=20),
        init=energies.uniform((), -1.5, 1.5),
    ),
]
