"""Ladders, rules and schemes that cannot work are refused."""

import jax.numpy as jnp
import pytest

import isotherm as iso
from isotherm.exchange import (
    Adjacent,
    AllPairs,
    Corrected,
    Deterministic,
    DeterministicEvenOdd,
    EquiAcceptance,
    Exchange,
    Ladder,
    geometric_ladder,
    optimal_window,
)


def energy(x):
    return jnp.sum(x**2)


NOISY = iso.with_noise(iso.from_energy(energy), energy_scale=1.0)


def start(potential, sampler, **options):
    return iso.sample(potential, sampler, num_steps=5, init=jnp.zeros(1), **options)


CASES = {
    "unsorted": (
        lambda: iso.resgld(0.1, temperatures=(1.0, 3.0, 2.0)),
        r"`temperatures` must be strictly rising.*Sort them",
    ),
    "repeated": (
        lambda: iso.resgld(0.1, temperatures=(1.0, 1.0)),
        r"`temperatures` must be strictly rising.*no two be equal",
    ),
    "one replica": (lambda: iso.resgld(0.1, temperatures=(1.0,)), r"`ladder` must be of at least 2 rungs; got 1"),
    "cold": (lambda: iso.resgld(0.1, temperatures=(0.0, 1.0)), r"`temperatures` must be .* above 0; got 0.0"),
    "one of many": (
        lambda: iso.deo_sgd((0.1, 0.2), num_replicas=1),
        r"`num_replicas` must be an integer of at least 2",
    ),
    "F": (lambda: Corrected(0.0), r"`correction_factor` must be .* above 0; got 0.0"),
    "negative F": (lambda: iso.resghmc(0.1, correction_factor=-1.0), r"`correction_factor` must be"),
    "S of 1": (lambda: Deterministic(target=1.0), r"`target` must be .* above 0 and below 1; got 1.0"),
    "S of 0": (lambda: iso.deo_star_sgd((0.1, 0.2), target=0.0), r"`target` must be|`rejection` must be"),
    "gain of the ladder": (lambda: EquiAcceptance(-0.1), r"`gain` must be"),
    "W": (lambda: DeterministicEvenOdd(0), r"`window` must be an integer of at least 1; got 0"),
    "W in words": (lambda: DeterministicEvenOdd("best"), r'`window` must be an integer, "optimal" or "formula"; got'),
    "W for what": (lambda: DeterministicEvenOdd("optimal"), r"`rejection` must be given with window='optimal'"),
    "ends": (lambda: geometric_ladder(4, (0.2, 0.1), (1.0, 2.0)), r"`step_sizes` must be .*wrong way round"),
    "hot ends": (
        lambda: iso.resgld((0.1, 0.1), temperatures=(9.0, 1.0), num_replicas=4),
        r"`temperatures` must be .*wrong way",
    ),
    "no ends": (
        lambda: iso.resgld(0.1, temperatures=(1.0, 2.0, 3.0), num_replicas=5),
        r"`temperatures` must be \(first, last\)",
    ),
    "ladder in cycles": (
        lambda: iso.cvr_resghmc(0.1, cycle_length=50, ladder="auto"),
        r"`ladder` must be None for a sampler with cycles; got .auto.. A pilot runs at one temperature",
    ),
    "lengths": (lambda: Ladder((0.1,), (1.0, 2.0)), r"`ladder` must be as many step sizes as temperatures; got 1 .* 2"),
    "rising steps": (
        lambda: Exchange(Ladder((0.2, 0.1), (1.0, 0.0)), rule=Deterministic()),
        r"`step_sizes` must be strictly rising",
    ),
    "measured": (lambda: Corrected(num_measured=1), r"`num_measured` must be an integer of at least 2"),
    "intensity": (lambda: Exchange(Ladder((0.1, 0.1), (1.0, 2.0)), intensity=0.0), r"`intensity` must be"),
    "adaptive sweeps": (
        lambda: Exchange(Ladder((0.1,) * 3, (1.0, 2.0, 3.0)), Adjacent(), adaptation=EquiAcceptance(0.1)),
        r"`adaptation` must be used with disjoint pairs; got Adjacent",
    ),
    "needless": (
        lambda: Exchange(Ladder((0.1,) * 3, (1.0, 2.0, 3.0)), fresh_energies=True),
        r"`fresh_energies` must be False for disjoint pairs",
    ),
    "reused noise": (
        lambda: start(NOISY, iso.resgld(0.1, temperatures=(1.0, 2.0, 3.0), scheme=AllPairs())),
        r"`fresh_energies` must be True for AllPairs with noisy energies; got False\. Several pairs would use",
    ),
    "chains": (
        lambda: start(energy, iso.resgld(0.1), num_chains=5),
        r"`num_chains` must be the number of rungs, 2; got 5",
    ),
    "no batches": (
        lambda: start(energy, iso.vr_resgld(0.1)),
        r"`estimator` must be plain for a potential without batches; got a control variate",
    ),
    "rejection": (lambda: optimal_window(5, 1.0), r"`rejection` must be .* below 1; got 1.0"),
}


@pytest.mark.parametrize("name", CASES)
def test_refused(name):
    action, message = CASES[name]
    with pytest.raises(ValueError, match=message):
        action()


def test_what_is_right_is_taken():
    start(energy, iso.resgld(0.1, temperatures=(1.0, 2.0, 3.0), scheme=AllPairs()))
    filled = iso.resgld((0.1, 0.4), temperatures=(1.0, 4.0), num_replicas=3).coupling
    assert isinstance(filled, Exchange)
    assert filled.ladder.step_sizes == pytest.approx((0.1, 0.2, 0.4))
    naive = iso.naive_resgld(0.1).coupling
    assert isinstance(naive, Exchange)
    assert naive.rule.is_naive
