"""A program is compiled anew when its functions read other values, and only then."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import programs
from isotherm.foundation.dependencies import dependencies

scale = 1.0
table = {"scale": [1.0]}
array = np.ones(1)
holder = types.SimpleNamespace(scale=1.0)


@dataclasses.dataclass
class Spring:
    stiffness: float = 1.0

    def __call__(self, x):
        return 0.5 * self.stiffness * jnp.sum(x**2)


spring = Spring()


def stiffness():
    return scale


def of_global(x):
    return 0.5 * scale * jnp.sum(x**2)


def of_called(x):
    return 0.5 * stiffness() * jnp.sum(x**2)


def of_container(x):
    return 0.5 * table["scale"][0] * jnp.sum(x**2)


def of_array(x):
    return 0.5 * jnp.sum(array * x**2)


def of_attribute(x):
    return 0.5 * holder.scale * jnp.sum(x**2)


def of_instance(x):
    return spring(x)


def of_default(x, factor=array):
    return 0.5 * jnp.sum(factor * x**2)


def closed_over():
    def energy(x):
        return 0.5 * inner() * jnp.sum(x**2)

    def inner():
        return array[0]

    return energy


def change(value):
    global scale
    scale = table["scale"][0] = holder.scale = spring.stiffness = value
    array[:] = value


@pytest.fixture(autouse=True)
def as_before():
    yield
    change(1.0)


ENERGIES = (of_global, of_called, of_container, of_array, of_attribute, of_instance, spring, of_default, closed_over())


def spread(energy):
    settings = {"num_steps": 2_000, "num_chains": 64, "burn_in": 1_000, "thinning": 10, "init": jnp.zeros(1)}
    return float(iso.sample(energy, iso.sgld(0.02), measure_bias=False, **settings).std()[0])


@pytest.mark.parametrize("energy", ENERGIES, ids=lambda e: getattr(e, "__name__", "instance"))
def test_a_changed_value_is_sampled(energy):
    assert spread(energy) == pytest.approx(1.0, abs=0.1)
    change(25.0)
    # Langevin steps of .02 widen a well of curvature 25 by 1 / (1 - .25).
    assert spread(energy) == pytest.approx(0.2 / np.sqrt(0.75), abs=0.03)


def test_nothing_is_compiled_where_nothing_changed():
    spread(of_called)
    number = programs.num_programs()
    spread(of_called)
    assert programs.num_programs() == number


def test_a_loop_by_hand_sees_the_change():
    sampler = iso.sgld(0.02)
    energies = []
    for value in (1.0, 25.0):
        change(value)
        state = sampler.init(of_global, jnp.ones(1))
        energies.append(float(sampler.step(jax.random.key(0), state)[1].energy[0]))
    assert energies == [0.5, 12.5]


def test_estimates_see_the_change():
    run = iso.sample(lambda x: 0.5 * jnp.sum(x**2), iso.sgld(0.1), num_steps=100, init=jnp.ones(1))
    scaled = lambda x: scale * x[0] ** 2  # noqa: E731
    before = run.expectation(scaled)
    change(25.0)
    assert run.expectation(scaled) == pytest.approx(25.0 * before)


def test_the_bias_of_an_energy_that_changed_is_unknown():
    run = iso.sample(of_global, iso.sgld(0.1), num_steps=1_000, num_chains=2, init=jnp.ones(1))
    change(25.0)
    assert run.bias is None


def test_values_of_libraries_are_not_followed():
    # One that walked through NumPy or JAX would take long, and see caches change.
    read = dependencies(of_global)
    assert read == dependencies(of_global)
    assert len(repr(read)) < 1_000


def test_numbers_of_schedules_are_seen():
    rate = [0.1]
    schedule = lambda k: rate[0] / (1.0 + k)  # noqa: E731
    before = dependencies(schedule)
    rate[0] = 0.2
    assert dependencies(schedule) != before


def test_containers_that_hold_themselves_end():
    loop = []
    loop.append(loop)
    function = lambda x: loop  # noqa: E731
    assert dependencies(function) == dependencies(function)
