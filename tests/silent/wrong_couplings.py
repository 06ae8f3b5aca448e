"""Replica exchange and contour samplers that finish without a sign of trouble and are wrong."""

import functools
from typing import Any

import jax

import isotherm as iso
from tests.silent.case import Case, case, chains, ladders, uniform
from tests.silent.data_targets import normal_mean, signed_mean
from tests.silent.targets import gaussian, nine_modes, two_modes

wrong = functools.partial(case, is_good=False)


def bold(**options: Any) -> dict[str, Any]:
    """The thesis' bounds and gain, and the exact field: contour samplers as people set them by the book."""
    return iso.thesis.icsgld(**{"field": "psi", **options})


CASES: list[Case] = [
    wrong(
        "picsgld, never frozen",
        "The preconditioner follows the gradient, under a multiplier as without.",
        gaussian((1.0, 3.0, 10.0)),
        iso.picsgld(0.003, **bold(partition=(1.0, 12.0, 30))),
        chains(16, 400_000, burn_in=50_000, thinning=50),
    ),
    wrong(
        "naive swaps, noisy energies",
        "Batches of 5 make energies noisy, and naive swaps let hot states into the target.",
        signed_mean(60, 0.5, batch_size=5, is_batch_shared=False, batching="independent"),
        iso.naive_resgld(1e-3, temperatures=(1.0, 10.0)),
        ladders(16, 80_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "corrected swaps, large correction factor",
        "F = 50 leaves almost nothing of the correction, and swaps are biased as naive ones are.",
        signed_mean(60, 0.5, batch_size=10, is_batch_shared=False, batching="independent"),
        iso.resgld(1e-3, temperatures=(1.0, 10.0), correction_factor=50.0),
        ladders(16, 60_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "corrected swaps, uneven noise",
        "Noise depends on where replicas are: one variance for all corrects most swaps too much.",
        signed_mean(40, 0.5, shift=1.0, batch_size=20, batching="independent"),
        iso.resgld(2e-3, temperatures=(1.0, 9.0)),
        ladders(16, 60_000, burn_in=4_000, thinning=20),
    ),
    wrong(
        "ladder that never swaps",
        "In 20 dimensions the energies at temperatures 1 and 100 do not overlap: targets keep the modes of their starts.",
        two_modes(0.9, 4.0, dimension=20),
        iso.resgld((0.05, 0.05), temperatures=(1.0, 100.0)),
        ladders(128, 8_000, burn_in=1_000, thinning=20),
        init=lambda key: jax.random.normal(key, (20,)).at[0].multiply(5.0),
    ),
    wrong(
        "ladder that carries nothing",
        "Temperatures 1, 1.2 and 1.5 swap all the time, and none of them crosses the barrier.",
        two_modes(0.9, 5.0),
        iso.resghmc(0.02, temperatures=(1.0, 1.2, 1.5)),
        ladders(64, 8_000, burn_in=1_000, thinning=20),
        init=uniform(1, -6.0, 6.0),
    ),
    wrong(
        "ladder, hot step too large",
        "The step of the hot rung is 1.6 times the variance of the narrow mode: its law is off, and swaps bring it down.",
        two_modes(0.7, 3.0, narrow=0.5, wide=1.0),
        iso.resgld((0.01, 0.4), temperatures=(1.0, 8.0)),
        ladders(8, 100_000, burn_in=2_000, thinning=20),
    ),
    wrong(
        "resghmc, step too large",
        "The step times the curvature of the modes is 1.6 on every rung.",
        nine_modes(3.0, 0.5),
        iso.resghmc(0.4, temperatures=(1.0, 3.0, 10.0)),
        ladders(8, 30_000, burn_in=1_000, thinning=10),
    ),
    wrong(
        "ladder, wide window",
        "A window of 30 lets nearly every pair swap, whatever its energies.",
        two_modes(0.8, 3.0, 0.5, 0.5),
        iso.resgld(0.01, temperatures=(1.0, 3.0, 10.0), scheme=iso.exchange.DeterministicEvenOdd(window=30)),
        ladders(8, 50_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "exchange, energies of 1e8",
        "A constant of 1e8 leaves single precision no energies finer than 8: all swaps are accepted.",
        two_modes(0.8, 3.0, offset=1e8),
        iso.resgld(0.05, temperatures=(1.0, 5.0)),
        ladders(8, 50_000, burn_in=2_000, thinning=10),
    ),
    wrong(
        "csgld, first bin out of reach",
        "Bins start below the lowest energy, the multiplier goes to its bound of 5, and the step is five times too large.",
        gaussian((1.0, 1.0, 1.0, 1.0, 1.0)),
        iso.csgld(0.3, **bold(partition=(-10.0, 20.0, 60))),
        chains(8, 50_000, burn_in=5_000, thinning=10),
    ),
    wrong(
        "icsgld, wide bounds of the multiplier",
        "The multiplier of the gradient may reach 30, for which the step is far too large.",
        two_modes(0.6, 2.0, 0.5, 0.5),
        iso.icsgld(0.03, **bold(partition=(0.5, 9.0, 40), zeta=1.0, bounds=(-30.0, 30.0))),
        chains(8, 200_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "icsgld, noisy energies",
        "The noise of energies is a dozen bins wide, and multiplier and weights follow it.",
        normal_mean(200, 2, batch_size=10, batching="independent", is_batch_shared=False),
        iso.icsgld(5e-5, **bold(partition=(150.0, 400.0, 50), zeta=1.0)),
        chains(8, 100_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "csgld, step too small for the gain",
        "Theta is learned within hundreds of steps, in which the chain hardly moves: it pushes instead of flattening.",
        gaussian((1.0,)),
        iso.csgld(1e-4, **bold(partition=(0.2, 6.0, 30))),
        chains(16, 500_000, burn_in=50_000, thinning=100),
    ),
    wrong(
        "icsgld, regularized weights",
        "Regularized weights, made for large values of zeta, belong to another law.",
        two_modes(0.7, 2.0, narrow=0.5, wide=1.0),
        iso.icsgld(0.01, **bold(partition=(1.0, 8.0, 30), zeta=1.0, weight_rule=iso.contour.RegularizedWeights())),
        chains(8, 200_000, burn_in=5_000, thinning=20),
    ),
    wrong(
        "csghmc, step too large under the multiplier",
        "The step suits plain SGHMC, and not five times the gradient.",
        gaussian((1.0, 0.5, 0.25)),
        iso.csghmc(0.04, **bold(partition=(0.2, 10.0, 40), zeta=1.0)),
        chains(8, 50_000, burn_in=5_000, thinning=10),
    ),
    wrong(
        "awsgld, small step",
        "The step is small, as the law asks for, but theta is learned faster than chains mix.",
        gaussian((1.0,)),
        iso.awsgld(2e-3, partition=(0.2, 5.0, 10)),
        chains(16, 400_000, burn_in=50_000, thinning=100),
    ),
]
