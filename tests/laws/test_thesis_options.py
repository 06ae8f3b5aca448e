"""Options of the thesis from the named constructors: each does what it says."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.cli.user_file import build_sampler
from isotherm.exchange import Adjacent, Corrected, EquiAcceptance, Exchange
from isotherm.foundation.gains import PolynomialGain
from isotherm.foundation.schedules import Annealed, CyclicalCosine, Following, as_schedule

NORMAL = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))
DATA = np.random.default_rng(0).normal(1.0, 2.0, 60).astype(np.float32)
FAMILY = {
    "naive_resgld": iso.naive_resgld,
    "resgld": iso.resgld,
    "resghmc": iso.resghmc,
    "vr_resgld": iso.vr_resgld,
    "vr_resghmc": iso.vr_resghmc,
}


def coupling_of(sampler) -> Exchange:
    assert isinstance(sampler.coupling, Exchange)
    return sampler.coupling


@pytest.mark.parametrize("name", [*FAMILY, "cvr_resghmc"])
def test_shared_options_reach_their_parts(name):
    constructor: Any = iso.cvr_resghmc if name == "cvr_resghmc" else FAMILY[name]
    needed = {"cycle_length": 100} if name == "cvr_resghmc" else {}
    adaptation = EquiAcceptance(0.1, of="temperature")
    options = {"intensity": 0.3, "cooling": 7, "gate_log_correction": 0.5, "box": (-1.0, 1.0)}
    even = coupling_of(constructor(0.1, temperatures=(1.0, 2.0, 4.0), adaptation=adaptation, **options, **needed))
    assert (even.intensity, even.cooling) == (0.3, 7)
    assert isinstance(even.rule, Corrected)
    assert even.rule.gate_log_correction == 0.5
    assert even.adaptation is adaptation
    fresh = coupling_of(
        constructor(0.1, temperatures=(1.0, 2.0, 4.0), scheme=Adjacent(), fresh_energies=True, **needed)
    )
    assert fresh.fresh_energies
    with pytest.raises(ValueError, match=r"`coolin` must be an option of .* Did you mean `cooling`"):
        constructor(0.1, coolin=3, **needed)


@pytest.mark.parametrize("name", FAMILY)
def test_factors_scale_every_rung(name):
    """Step sizes and temperatures of all rungs fall together, and so do the moves."""
    steps, temperatures = Annealed(1.0, 2.0, every=10), Annealed(1.0, 4.0, every=10, stop_at=25)
    options = {"temperatures": (1.5, 6.0), "step_factor": steps, "temperature_factor": temperatures}
    sampler = FAMILY[name](0.2, **options)
    assert float(as_schedule(sampler.step_size)(25)) == pytest.approx(0.2 / 4)
    assert float(as_schedule(sampler.temperature)(40)) == pytest.approx(1.5 / 16)
    assert dataclasses.replace(sampler).name == name


def test_annealed_exchange_cools_down_and_its_correction_follows():
    """A quadratic energy at a temperature that falls from 1 to 1/16: the target rung ends there."""
    factor = Annealed(1.0, 2.0, every=2_000, stop_at=8_000)
    sampler = iso.resgld(
        0.002, temperatures=(1.0, 3.0), temperature_factor=factor, correction_factor=Following(2.0, factor)
    )
    settings: dict[str, Any] = {"num_steps": 40_000, "burn_in": 12_000, "thinning": 10, "num_runs": 32}
    run = iso.sample(NORMAL, sampler, init=jnp.zeros(2), **settings)
    square = np.mean(np.asarray(run.draws) ** 2, axis=(1, 2, 3))
    assert abs(square.mean() * 16 - 1) < 4 * 16 * square.std(ddof=1) / np.sqrt(32) + 0.03
    assert run.temperature == pytest.approx(1 / 16)
    rule = coupling_of(sampler).rule
    assert isinstance(rule, Corrected)
    assert rule.correction_factor is not None
    assert float(as_schedule(rule.correction_factor)(9_000)) == pytest.approx(32.0)


def test_adapted_temperatures_accept_equally():
    adaptation = EquiAcceptance(PolynomialGain(5.0, 0.8, 100.0), of="temperature")
    sampler = iso.naive_resgld(0.1, temperatures=(1.0, 1.2, 20.0), adaptation=adaptation)
    run = iso.sample(NORMAL, sampler, num_steps=40_000, num_runs=4, thinning=100, init=jnp.zeros(8))
    late = np.asarray(run.observed["num_accepted"])
    rates = (late[:, 0, -1] - late[:, 0, 200]) / ((run.num_draws - 1 - 200) * 100)
    spread = np.ptp(rates.mean(axis=0))
    fixed = iso.sample(NORMAL, iso.naive_resgld(0.1, temperatures=(1.0, 1.2, 20.0)), num_steps=4_000, init=jnp.zeros(8))
    assert spread < 0.05
    assert np.ptp(fixed.stats["acceptance"][0]) > 0.4


def test_fresh_energies_let_adjacent_pairs_share_a_replica():
    """Noisy energies with a right correction: rung means are those of the temperatures only if every pair has its own."""
    noisy = iso.with_noise(NORMAL, energy_scale=2.0)
    options: dict[str, Any] = {"temperatures": (1.0, 2.0, 4.0), "scheme": Adjacent()}
    with pytest.raises(ValueError, match="`fresh_energies` must be True for Adjacent with noisy energies"):
        iso.sample(noisy, iso.resgld(0.05, **options), num_steps=10, init=jnp.zeros(2))
    sampler = iso.resgld(0.05, fresh_energies=True, **options)
    settings: dict[str, Any] = {"num_steps": 20_000, "burn_in": 2_000, "thinning": 5, "num_runs": 32}
    run = iso.sample(noisy, sampler, init=jnp.zeros(2), **settings)
    square = np.mean(np.asarray(run.draws) ** 2, axis=(1, 2, 3))
    exact = 1 / (1 - 0.05 / 2)
    assert abs(square.mean() - exact) < 4 * square.std(ddof=1) / np.sqrt(32) + 0.03


def test_cycles_fall_to_their_floor_and_may_explore_with_noise():
    schedule = CyclicalCosine(0.5, 100, floor=0.1)
    assert float(schedule(0)) == pytest.approx(0.5)
    assert float(schedule(50)) == pytest.approx(0.3)
    assert float(schedule(99)) == pytest.approx(0.1, abs=1e-3)
    held = CyclicalCosine(0.5, 100, hold_from=0.5, floor=0.1)
    assert float(held(99)) == pytest.approx(0.3)
    sampler = iso.cycsgld(0.5, cycle_length=100, temperature=2.0, floor=0.1, exploration_temperature=0.5)
    assert float(as_schedule(sampler.temperature)(10)) == pytest.approx(0.5)
    assert float(as_schedule(sampler.temperature)(97)) == pytest.approx(2.0)
    momentum = iso.cycsghmc(0.5, cycle_length=100, floor=0.1, exploration_temperature=0.5)
    assert float(as_schedule(momentum.step_size)(99)) == pytest.approx(0.1, abs=1e-3)
    with pytest.raises(ValueError, match=r"`floor` must be a finite real number at least 0 and at most 0\.5"):
        iso.cycsgld(0.5, cycle_length=100, floor=0.6)
    with pytest.raises(ValueError, match="`exploration_temperature` must be a finite real number at least 0"):
        iso.cycsgld(0.5, cycle_length=100, exploration_temperature=-1.0)


def test_a_floor_keeps_cycles_sampling():
    """Within a cycle the chain must move enough to follow the law; falling to zero it freezes where it was."""
    settings: dict[str, Any] = {"num_steps": 20_000, "num_runs": 32, "init": jnp.zeros(2)}
    floor = iso.cycsgld(0.2, cycle_length=200, sampling_from=0.5, floor=0.05, temperature=2.0)
    run = iso.sample(NORMAL, floor, **settings)
    square = np.mean(np.asarray(run.draws) ** 2, axis=(1, 2, 3))
    assert 1.7 < square.mean() < 2.3
    last = np.asarray(run.draws)[:, :, 99::100]
    before = np.asarray(run.draws)[:, :, 98::100]
    assert np.std(last - before) > 0.3


def test_the_command_line_knows_shared_options():
    sampler = build_sampler("resgld", {"step_size": 0.1, "cooling": 5})
    assert coupling_of(sampler).cooling == 5
    with pytest.raises(ValueError, match="`--set colling` must be an option of resgld"):
        build_sampler("resgld", {"step_size": 0.1, "colling": 5})
    with pytest.raises(ValueError, match="`--step-size` must be given for resgld"):
        build_sampler("resgld", {})
