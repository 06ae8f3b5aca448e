"""Every method builds, has the thesis' settings at full scale, and keeps its schedules' values when it is scaled."""

import importlib

import numpy as np
import pytest

from isotherm.foundation.schedules import Annealed, values_at
from isotherm_thesis.experiments import EXPERIMENTS
from isotherm_thesis.experiments.images.plan import Frame
from isotherm_thesis.experiments.images.schedules import Delayed, Stepwise

IMAGES = ("cifar-resghmc", "cifar-vr", "ood-svhn", "cifar-deo", "cifar-csghmc", "cifar-icsghmc", "cifar-hmc-reference")


def module_of(name):
    return importlib.import_module(f"isotherm_thesis.experiments.{EXPERIMENTS[name]}")


def frame_of(name, label, scale=1.0):
    module = module_of(name)
    size = module.ARMS[label].changes.get("batch_size", module.FULL.batch_size)
    return Frame(50_000, -(-50_000 // size), scale, module.FULL.data_set)


def plan_of(name, label, scale=1.0):
    return module_of(name).ARMS[label].plan(frame_of(name, label, scale))


def at(schedule, plan, epoch):
    return float(values_at(schedule, np.array([plan.clock.at(epoch)]))[0])


ARMS = [(name, label) for name in IMAGES for label in module_of(name).ARMS]


@pytest.mark.parametrize(("name", "label"), ARMS)
def test_schedules_scale(name, label):
    whole, part = plan_of(name, label), plan_of(name, label, 0.2)
    assert part.clock.num_epochs == round(0.2 * whole.clock.num_epochs)
    assert part.average_from == pytest.approx(0.2 * whole.average_from, abs=part.clock.steps_per_epoch)
    assert part.learns_from == round(0.2 * whole.learns_from)
    assert (part.clock.num_steps - 1 - part.first_record) % part.thinning == 0
    for schedule in ("step_size", "temperature"):
        for share in (0.0, 0.3, 0.5, 0.6, 0.76, 0.9):
            values = [
                at(getattr(plan.sampler, schedule), plan, share * plan.clock.thesis_epochs) for plan in (whole, part)
            ]
            # A factor per epoch is taken at other epochs.
            assert values[1] == pytest.approx(values[0], rel=0.2)


def test_labels_of_both_versions_exist():
    for name in IMAGES:
        module = module_of(name)
        assert set(module.FULL.methods) | set(module.QUICK.methods) <= set(module.ARMS)


def test_resghmc_has_the_thesis_settings():
    plan = plan_of("cifar-resghmc", "reSGHMC")
    sampler, clock = plan.sampler, plan.clock
    assert (clock.num_epochs, clock.steps_per_epoch, plan.chains, plan.average_from) == (500, 196, 2, 200 * 196)
    assert at(sampler.step_size, plan, 0) == at(sampler.step_size, plan, 200) == pytest.approx(2e-6)
    assert at(sampler.step_size, plan, 300) == pytest.approx(2e-6 * 0.984**100, rel=1e-5)
    assert at(sampler.temperature, plan, 100) == pytest.approx(0.01 / 1.02**100, rel=1e-5)
    ladder = sampler.coupling.ladder
    assert ladder.step_sizes[1] / ladder.step_sizes[0] == pytest.approx(1.5)
    assert ladder.temperatures[1] / ladder.temperatures[0] == pytest.approx(5.0)
    rule = sampler.coupling.rule
    assert (rule.measure_every, rule.num_measured, rule.smoothing) == (196, 10, 0.3)
    # F grows as the temperature falls.
    for epoch in (0, 100, 499):
        product = float(rule.correction_factor(clock.at(epoch))) * at(sampler.temperature, plan, epoch)
        assert product == pytest.approx(3e5 * 0.01, rel=1e-4)


def test_variance_reduction_has_the_thesis_settings():
    plan = plan_of("cifar-vr", "VR-reSGHMC")
    assert plan.sampler.estimator.refresh_every == plan.sampler.coupling.rule.measure_every == 392
    assert plan.sampler.coupling.cooling == 196
    assert float(plan.sampler.coupling.rule.correction_factor(0)) == pytest.approx(1.5e5)
    final = [at(plan.sampler.temperature, plan, epoch) for epoch in (300, 499)]
    assert final[0] == final[1] == pytest.approx(0.01 / 1.02**300, rel=1e-4)
    cyclical = plan_of("cifar-vr", "cycSGHMC")
    assert cyclical.sampler.window.cycle_length == 200 * 196
    assert [at(cyclical.sampler.temperature, cyclical, epoch) for epoch in (0, 139, 141)] == [0.0, 0.0, 0.001]
    assert plan_of("cifar-vr", "cVR-reSGHMC").sampler.window.cycle_length == 250 * 196
    assert plan_of("cifar-vr", "VR-reSGHMC, m = 50", 0.2).sampler.estimator.refresh_every == 50


def test_icsghmc_has_the_thesis_settings():
    plan = plan_of("cifar-icsghmc", "ICSGHMC x P4")
    contour = plan.sampler.coupling
    assert (plan.chains, plan.clock.num_epochs, plan.average_from) == (4, 500, 400 * 196)
    assert (contour.zeta, contour.gain, contour.bounds, contour.warm_up) == (3e6, 0.003, (-5.0, 5.0), 375 * 196)
    assert (contour.partition.low, contour.partition.width, contour.partition.num_bins) == (2e4, 200.0, 200)
    steps = [at(plan.sampler.step_size, plan, epoch) for epoch in (249, 251, 376)]
    assert steps == pytest.approx([2e-6, 4e-7, 8e-8], rel=1e-5)
    assert (plan.sampler.estimator.refresh_every, plan.sampler.estimator.start) == (392, 400 * 196)
    exchange = plan_of("cifar-icsghmc", "reSGHMC x P4").sampler.coupling
    assert (exchange.rule.buffer, exchange.rule.start, exchange.cooling) == (4000.0, 400 * 196, 196)
    assert exchange.ladder.temperatures == pytest.approx((3e-4, 9e-4, 27e-4, 81e-4))


def test_deo_has_the_thesis_settings():
    plan = plan_of("cifar-deo", "DEO*-mSGD x P10")
    exchange = plan.sampler.coupling
    assert (exchange.ladder.step_sizes[0], exchange.ladder.step_sizes[-1]) == pytest.approx((1e-7, 4e-7))
    assert (exchange.scheme.length(10), exchange.rule.target, exchange.rule.buffer) == (626, 0.005, 5000.0)
    # In the units of mean losses the buffer's gain is a tenth of the ladder's.
    assert exchange.rule.buffer_gain / 50_000 == pytest.approx(0.1)
    assert float(exchange.rule.gain(0)) == 0.5
    assert plan.pretraining.clock.num_epochs == 300
    assert plan_of("cifar-deo", "DEO-mSGD x P10").sampler.coupling.scheme.length(10) == 1


def test_csghmc_has_the_thesis_settings():
    plan = plan_of("cifar-csghmc", "CSGHMC")
    assert (plan.clock.steps_per_epoch, plan.clock.num_epochs, plan.thinning) == (50, 1000, 500)
    assert plan.sampler.step_size == pytest.approx(2e-7)
    assert plan.sampler.coupling.partition.width == 5000.0
    annealed = plan_of("cifar-csghmc", "saCSGHMC")
    assert at(annealed.sampler.step_size, annealed, 500) == pytest.approx(2e-6 / 1.01**100, rel=1e-4)
    assert at(annealed.sampler.temperature, annealed, 500) == pytest.approx(0.01 / 1.01**500, rel=1e-4)


def test_energies_follow_the_number_of_images():
    arm = module_of("cifar-icsghmc").ARMS["ICSGHMC x P4"]
    plan = arm.plan(Frame(45_000, 176, 1.0, "cifar100"))
    assert plan.sampler.coupling.partition.width == pytest.approx(180.0)
    # A multiplier depends on zeta tau / width, which stays.
    assert plan.sampler.coupling.zeta / plan.sampler.coupling.partition.width == pytest.approx(3e6 / 200)


def test_the_last_network_is_averaged_however_short_the_run():
    plan = module_of("cifar-icsghmc").ARMS["M-SGD x P4"].plan(Frame(16, 1, 0.002, "cifar100"))
    assert plan.clock.num_steps == 1
    assert plan.first_averaged == plan.first_record == 0


def test_delayed_and_stepwise():
    iterations = np.arange(8)
    assert values_at(Delayed(Annealed(8.0, 2.0), 5), iterations).tolist() == [8, 8, 8, 8, 8, 8, 4, 2]
    assert values_at(Stepwise(1.0, 0.5, (2, 6)), iterations).tolist() == [1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
