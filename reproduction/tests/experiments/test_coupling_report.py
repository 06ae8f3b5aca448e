"""What a coupling did, whether the draws of one rung or of all are recorded."""

import numpy as np
import pytest

import isotherm as iso
from isotherm.exchange import Corrected, DeterministicEvenOdd, Exchange, Ladder
from isotherm.samplers.sampler import Sampler
from isotherm_thesis.experiments.images.coupling_report import coupling_report
from isotherm_thesis.experiments.images.plan import Clock, Plan
from isotherm_thesis.experiments.images.variants import PooledExchange, Uncoupled

DATA = np.random.default_rng(0).normal(size=40)
POTENTIAL = iso.from_likelihood(lambda m, x: -0.5 * (x - m) ** 2, lambda m: -0.5 * m**2, DATA, batch_size=8)
CLOCK = Clock(steps_per_epoch=5, num_epochs=8, thesis_epochs=8)


def reported(kind, num_rungs=2, average_from=0):
    ladder = Ladder((0.01,) * num_rungs, tuple(0.1 * 10.0**rung for rung in range(num_rungs)))
    rule = Corrected(measure_every=5, variance="tracked")
    coupling = kind(ladder, DeterministicEvenOdd(), rule)
    sampler = Sampler(iso.kernels.SGHMC(), 0.01, 0.1, coupling=coupling, name="some")
    plan = Plan(sampler, CLOCK, None, average_from, thinning=5)
    run = iso.sample(
        POTENTIAL, sampler, num_steps=40, num_ladders=1, init=np.zeros(()), thinning=5, burn_in=4, progress=False
    )
    return coupling_report(run, plan)


@pytest.mark.parametrize("num_rungs", [2, 3])
def test_corrections_of_pooled_draws_are_those_of_the_target_rungs(num_rungs):
    target, pooled = (reported(kind, num_rungs)["variance over time"] for kind in (Exchange, PooledExchange))
    assert target["epoch"] == pooled["epoch"] == list(range(1, 9))
    assert len(set(pooled["variance"])) > 1
    np.testing.assert_array_equal(pooled["variance"], target["variance"])


def test_networks_of_replicas_are_those_of_the_target_rung_that_are_averaged():
    whole, half = (reported(Exchange, average_from=first)["networks of replicas"] for first in (0, 20))
    assert sum(whole) == 8
    assert sum(half) == 4
    assert all(part <= all_of for part, all_of in zip(half, whole, strict=True))
    assert "networks of replicas" not in reported(PooledExchange)


def test_uncoupled_chains_never_swap_and_still_measure():
    report = reported(Uncoupled)
    assert (report["swaps"], report["swap rate"]) == (0, 0.0)
    assert report["variance, last"] > 0
    assert reported(PooledExchange)["swaps"] > 0
