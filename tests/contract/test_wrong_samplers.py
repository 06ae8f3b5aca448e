"""Samplers with wrong settings: each is refused with what was wrong and the call that is right."""

import numpy as np
import pytest

import isotherm as iso
from tests.contract.calls import NUMPY, UNKNOWN, Iso, assert_refused, start

CASES = {
    "stepsize": (lambda: Iso.sgld(stepsize=0.1), "`stepsize` " + UNKNOWN.format("sgld") + "Did you mean `step_size`"),
    "lr": (lambda: Iso.sgld(lr=0.1), r"Did you mean `step_size`"),
    "momentum": (lambda: Iso.sghmc(0.1, momentum=0.9), r"Did you mean `friction`\? It is one minus the momentum"),
    "temprature": (lambda: Iso.sgld(0.1, temprature=1.0), r"Did you mean `temperature`"),
    "one temperature": (lambda: Iso.resgld(0.1, temperature=1.0), r"Did you mean `temperatures`"),
    "partitoin": (lambda: Iso.icsgld(0.1, partitoin="auto"), r"Did you mean `partition`"),
    "zeto": (lambda: Iso.icsgld(0.1, zeto=1.0), r"Did you mean `zeta`"),
    "num_replica": (lambda: Iso.deo_star_sgd((0.1, 0.2), num_replica=3), r"Did you mean `num_replicas`"),
    "for sample": (lambda: Iso.icsgld(0.1, num_chains=4), r"Pass it to `iso.sample\(..., num_chains=...\)`"),
    "not for awsgld": (lambda: Iso.awsgld(0.1, partition=(0.0, 1.0, 5), bounds=(0, 2)), r"It takes: step_size, part"),
    "nothing": (lambda: Iso.sgld(), r"`step_size` must be given to `iso.sgld`; got nothing. Call `iso.sgld\(step_size"),
    "twice": (lambda: Iso.sgld(0.1, step_size=0.1), r"`step_size` must be given once; got it by position and by name"),
    "two by place": (lambda: Iso.sgld(0.1, 1.0), r"Name the others: `iso.sgld\(step_size, temperature=...\)`"),
    "no cycle": (lambda: Iso.cycsgld(0.1), r"Call `iso.cycsgld\(step_size, cycle_length=...\)`"),
    "no partition": (lambda: Iso.awsgld(0.1), r"`partition` must be given to `iso.awsgld`"),
    "text": (lambda: Iso.sgld("0.1"), r"`step_size` must be a finite real number above 0; got '0.1'. Give a number"),
    "None": (lambda: Iso.sgld(None), r"`step_size` must be .*; got None"),
    "array": (lambda: Iso.sgld(-np.ones(2)), r"`step_size` must be a number above 0, or an array .*; got array"),
    "text as zeta": (lambda: Iso.icsgld(0.1, zeta="1"), r"`zeta` must be .*; got '1'"),
    "temperatures=1": (lambda: Iso.resgld(0.1, temperatures=1.0), r"got 1.0. Write `temperatures=\(1.0, 10.0\)`"),
    "hot": (
        lambda: Iso.resgld(0.1, temperatures="hot"),
        r"`temperatures` must be a tuple of temperatures.*; got 'hot'",
    ),
    "cycle ladder": (lambda: Iso.cvr_resghmc(0.1, cycle_length=9, temperatures=1.0), r"`temperatures` must be a tuple"),
    "cycle steps": (lambda: Iso.cvr_resghmc((0.1, 0.2), cycle_length=9), r"`step_size` must be .*; got \(0.1, 0.2\)"),
    "ratio": (lambda: Iso.cvr_resghmc(0.1, cycle_length=9, step_ratio="a"), r"`step_ratio` must be .*; got 'a'"),
    "ladder text": (lambda: Iso.resgld("0.1"), r"`step_size` must be a number, or one for every rung; got '0.1'"),
    "ladder schedule": (lambda: Iso.resgld(lambda k: 0.1), r"got a function. Give numbers, .* as `step_factor`"),
    "three steps": (lambda: Iso.resgld((0.1, 0.2, 0.3)), r"`step_size` must be .*; got 3 for 2 temperatures"),
    "scheme": (lambda: Iso.resgld(0.1, scheme="deo"), r"`scheme` must be .*; got 'deo'. Write `scheme=iso.exchange"),
    "adaptation": (
        lambda: Iso.resgld(0.1, adaptation=0.4),
        r"`adaptation` must be an `exchange.EquiAcceptance`, or None",
    ),
    "one end": (lambda: Iso.deo_sgd(0.1), r"`step_size` must be \(first, last\).*; got 0.1. Write `iso.deo_sgd"),
    "box": (lambda: Iso.sgld(0.1, box=1.0), r"`box` must be \(low, high\).*; got 1.0. Write `box=\(-1.0, 1.0\)`"),
    "box of three": (lambda: Iso.sgld(0.1, box=(0, 1, 2)), r"`box` must be .*; got \(0, 1, 2\)"),
    "box of words": (lambda: Iso.sgld(0.1, box=("a", "b")), r"`box` must be .*; got \('a', 'b'\)"),
    "box of a wrong shape": (
        lambda: start(sampler=iso.sgld(0.1, box=(np.zeros(3), np.ones(3)))),
        r"`box` must be \(low, high\) of shape \(2,\), as the position; got ends of shape \(3,\). Give numbers",
    ),
    "box on a rung": (
        lambda: start(sampler=iso.resgld(0.1, box=(-np.ones((4, 2)), np.ones((4, 2))))),
        r"`box` must be .* of shape \(2,\)",
    ),
    "ends of two shapes": (
        lambda: Iso.sgld(0.1, box=(np.zeros(3), np.ones(2))),
        r"`box` must be \(low, high\) of one shape, or numbers; got shapes \(3,\) and \(2,\)",
    ),
    "bounds": (lambda: Iso.csgld(0.1, bounds=2.0), r"`bounds` must be \(low, high\) with 1 between them; got 2.0"),
    "bins of words": (lambda: Iso.csgld(0.1, partition=("a", "b", 5)), r"`partition` must be .*; got 'a'. Give \(low"),
    "field": (lambda: Iso.csgld(0.1, field=[1]), r"`field` must be one of .*; got \[1\]"),
    "theta": (lambda: Iso.ksgld(0.1, partition=(0.0, 1.0, 5), theta=["a"] * 5), r"`theta` must be positive numbers"),
    "weights": (lambda: Iso.csgld(0.1, weight_rule="exact"), r"`weight_rule` must be a `contour.RegularizedWeights`"),
    "perturbation": (lambda: Iso.csgld(0.1, perturbation=-1.0), r"`perturbation` must be .* at least 0"),
    "estimator": (lambda: Iso.csgld(0.1, estimator="plain"), r"`estimator` must be an object of `iso.estimators`"),
    "NumPy schedule": (lambda: Iso.sgld(lambda k: np.ones(3)[k]), "`step_size` must be a function of the.*" + NUMPY),
    "branching schedule": (lambda: Iso.sgld(lambda k: 0.1 if k < 9 else 0.2), r"got `if` on a value.*`jnp.where"),
    "schedule of nothing": (lambda: Iso.sgld(lambda: 0.1), r"`step_size` must be a function of the iteration"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_sampler_says_what_is_right(name):
    assert_refused(*CASES[name])
