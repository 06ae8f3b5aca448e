"""Partitions, fields and gains that cannot work are refused."""

import jax.numpy as jnp
import pytest

import isotherm as iso
from isotherm.contour import Contour, Cumulative, Partition, PartitionSearch

GOOD = Partition(0.0, 1.0, 5)

CASES = {
    "few bins": (lambda: Partition(0.0, 1.0, 2), r"`num_bins` must be an integer of at least 3; got 2"),
    "few bins as a tuple": (
        lambda: iso.csgld(0.1, partition=(0.0, 1.0, 2)),
        r"`num_bins` must be an integer of at least 3",
    ),
    "no width": (lambda: Partition(0.0, 0.0, 5), r"`width` must be .* above 0; got 0.0"),
    "negative width": (lambda: Partition(0.0, -1.0, 5), r"`width` must be .* above 0; got -1.0"),
    "ends": (
        lambda: iso.csgld(0.1, partition=(1.0, 0.0, 9)),
        r"`partition` must be \(low, high, num_bins\) with low below high",
    ),
    "no partition": (
        lambda: iso.csgld(0.1, partition=7),
        r"`partition` must be a Partition, \(low, high, num_bins\), a PartitionSearch, or \"auto\"; got 7",
    ),
    "zeta": (lambda: Contour(GOOD, -0.5), r"`zeta` must be .* at least 0; got -0.5"),
    "bounds": (lambda: Contour(GOOD, bounds=(5.0, -5.0)), r"`bounds` must be \(low, high\) with 1 between them"),
    "gain": (lambda: Contour(GOOD, gain=1.5), r"`gain` must be .* at most 1; got 1.5"),
    "no gain": (lambda: Contour(GOOD, gain=0.0), r"`gain` must be .*; got 0.0"),
    "field": (lambda: iso.csgld(0.1, partition=GOOD, field="phi"), r"`field` must be one of 'psi'"),
    "slopes": (
        lambda: Contour(GOOD, field=Cumulative(), slopes="forward"),
        r"`slopes` must be backward for a cumulative field",
    ),
    "theta": (
        lambda: iso.ksgld(0.1, partition=GOOD, theta=(0.5, 0.5)),
        r"`theta` must be 5 positive numbers; got \(2,\)",
    ),
    "never entered": (
        lambda: iso.sample(
            lambda x: 0.5 * jnp.sum(x**2),
            iso.csgld(0.1, partition=PartitionSearch(200, Partition(1e4, 1.0, 9))),
            num_steps=10,
            init=jnp.zeros(2),
        ),
        r"`partition` must be where energies are; got \(10000, 10007\), never entered. The pilot saw energies from",
    ),
    "start without a pilot": (
        lambda: iso.csgld(0.1, partition=GOOD, initial_theta="pilot"),
        r"`initial_theta` must be .* or an array, for a given partition; got 'pilot'. Give `partition=.auto.` for a pilot",
    ),
    "pilot": (lambda: PartitionSearch(5), r"`num_steps` must be an integer of at least 100; got 5"),
    "unsettled": (
        lambda: iso.csgld(0.1, partition="auto").init(lambda x: jnp.sum(x**2), jnp.zeros(2)),
        r"`partition` must be known; got a search that needs a pilot",
    ),
    "displacement": (
        lambda: iso.awsgld(0.1, partition=GOOD, max_displacement=0.0),
        r"`max_displacement` must be .* above 0",
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_refusals(case):
    build, message = CASES[case]
    with pytest.raises(ValueError, match=message):
        build()
