"""Replica exchange and contour samplers that are right."""

import functools

import isotherm as iso
from tests.silent.case import Case, case, chains, ladders
from tests.silent.data_targets import normal_mean, signed_mean
from tests.silent.targets import gaussian, nine_modes, two_modes

good = functools.partial(case, is_good=True)

CASES: list[Case] = [
    good(
        "resgld, two modes",
        "The hot rung crosses the barrier, and swaps are frequent.",
        two_modes(0.7, 3.0, 0.7, 0.7),
        iso.resgld(0.01, temperatures=(1.0, 3.0, 10.0)),
        ladders(8, 300_000, burn_in=5_000, thinning=50),
    ),
    good(
        "naive_resgld, exact energies, nine modes",
        "Naive swaps are right where energies are exact.",
        nine_modes(3.0, 0.6),
        iso.naive_resgld(0.01, temperatures=(1.0, 3.0, 9.0)),
        ladders(8, 300_000, burn_in=5_000, thinning=50),
    ),
    good(
        "resghmc, two modes in 5 dimensions",
        "A ladder of four rungs close enough to swap.",
        two_modes(0.6, 3.0, dimension=5),
        iso.resghmc(0.01, temperatures=(1.0, 1.8, 3.2, 6.0)),
        ladders(8, 150_000, burn_in=5_000, thinning=50),
    ),
    good(
        "resgld, batches",
        "Batches of 36 out of 40, which the replicas share, leave little noise to correct.",
        signed_mean(40, 0.5, shift=0.9, batch_size=36, batching="independent"),
        iso.resgld(2e-3, temperatures=(1.0, 2.0, 4.0)),
        ladders(12, 60_000, burn_in=4_000, thinning=20),
    ),
    good(
        "vr_resgld, batches",
        "Control variates and large batches leave little noise in the energies of swaps.",
        signed_mean(40, 0.5, shift=0.9, batch_size=36, batching="independent"),
        iso.vr_resgld(2e-3, temperatures=(1.0, 2.0, 4.0), refresh_every=20),
        ladders(10, 60_000, burn_in=4_000, thinning=20),
    ),
    good(
        "icsgld, batches",
        "A pilot makes bins as wide as the noise of energies.",
        normal_mean(200, 2, batch_size=100, batching="independent"),
        iso.icsgld(1e-4, partition="auto"),
        chains(8, 100_000, burn_in=10_000, thinning=20),
    ),
    good(
        "csgld, two modes",
        "Bins that fit, and a small step.",
        two_modes(0.7, 2.5, 0.7, 0.7),
        iso.csgld(0.005, partition=(0.8, 8.0, 30)),
        chains(8, 1_000_000, burn_in=100_000, thinning=100),
    ),
    good(
        "icsgld, bins by a pilot",
        "A pilot finds the bins, and chains learn them together.",
        nine_modes(2.5, 0.6),
        iso.icsgld(0.005, partition="auto"),
        chains(16, 500_000, burn_in=50_000, thinning=50),
    ),
    good(
        "csghmc, two modes",
        "Momentum at a small step under the multiplier.",
        two_modes(0.6, 2.0),
        iso.csghmc(0.002, partition=(1.5, 8.0, 20)),
        chains(8, 1_000_000, burn_in=100_000, thinning=100),
    ),
    good(
        "awsgld, small gain",
        "Theta is learned slowly beside a chain that mixes, and the multiplier stays small.",
        gaussian((1.0,)),
        iso.awsgld(0.01, partition=(0.2, 5.0, 10), zeta=0.5, gain=1e-5),
        chains(16, 1_000_000, burn_in=200_000, thinning=200),
    ),
]
