"""A program is compiled anew when its functions read other values, and only then."""

import collections
import dataclasses
import gc
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.engine import program_cache
from isotherm.foundation.dependencies import dependencies

scale = 1.0
table = {"scale": [1.0]}
array = np.ones(1)
holder = types.SimpleNamespace(scale=1.0)
queue, arrays = collections.deque([1.0]), collections.deque([np.ones(1, np.float32)])


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


class Constants:
    scale = 1.0


class Half:
    factor = 1.0

    @property
    def half(self):
        return 0.5 * type(self).factor


half = Half()


def of_class(x):
    return 0.5 * Constants.scale * jnp.sum(x**2)


def of_property(x):
    return half.half * jnp.sum(x**2)


def of_queue(x):
    """A type of a library, which is not looked into: only the trace shows the number."""
    return 0.5 * queue[0] * jnp.sum(x**2)


def of_queued_array(x):
    """One whose text has no numbers either."""
    return 0.5 * jnp.sum(arrays[0] * x**2)


def nested(depth):
    def outer():
        return inner()

    inner = stiffness if depth == 0 else nested(depth - 1)
    return outer


deep = nested(25)


def of_deep_calls(x):
    return 0.5 * deep() * jnp.sum(x**2)


def closed_over():
    def energy(x):
        return 0.5 * inner() * jnp.sum(x**2)

    def inner():
        return array[0]

    return energy


def change(value):
    global scale
    scale = table["scale"][0] = holder.scale = spring.stiffness = queue[0] = Constants.scale = Half.factor = value
    array[:] = arrays[0][:] = value


@pytest.fixture(autouse=True)
def as_before():
    yield
    change(1.0)


ENERGIES = (
    of_global,
    of_called,
    of_container,
    of_array,
    of_attribute,
    of_instance,
    spring,
    of_default,
    of_class,
    of_property,
    of_queue,
    of_queued_array,
    of_deep_calls,
    closed_over(),
)


def spread(energy):
    settings = {"num_steps": 2_000, "num_chains": 64, "burn_in": 1_000, "thinning": 10, "init": jnp.zeros(1)}
    return float(iso.sample(energy, iso.sgld(0.02), measure_bias=False, **settings).std()[0])


@pytest.mark.parametrize("energy", ENERGIES, ids=lambda e: getattr(e, "__name__", "instance"))
def test_a_changed_value_is_sampled(energy):
    assert spread(energy) == pytest.approx(1.0, abs=0.1)
    change(25.0)
    # Langevin steps of .02 widen a well of curvature 25 by 1 / (1 - .25).
    assert spread(energy) == pytest.approx(0.2 / np.sqrt(0.75), abs=0.03)


@pytest.mark.parametrize(
    "energy",
    [e for e in ENERGIES if e not in (of_queue, of_queued_array, of_deep_calls)],
    ids=lambda e: getattr(e, "__name__", "instance"),
)
def test_a_changed_value_is_seen_without_a_trace(energy):
    before = dependencies(energy)
    assert before == dependencies(energy)
    change(25.0)
    assert before != dependencies(energy)


def test_nothing_is_compiled_where_nothing_changed():
    spread(of_called)
    number = program_cache.num_programs()
    spread(of_called)
    assert program_cache.num_programs() == number


def test_potentials_of_one_function_keep_their_programs():
    def log_likelihood(m, x):
        return -0.5 * (x - m) ** 2

    def sampled(**options):
        potential = iso.from_likelihood(log_likelihood, None, np.ones(40, np.float32), **options)
        iso.sample(potential, iso.sgld(1e-3), num_steps=10, init=jnp.zeros(()), measure_bias=False)

    kinds = ({"batch_size": 10}, {"batch_size": 10, "batching": "independent"}, {"batch_size": 20}, {})
    for options in kinds:
        sampled(**options)
    held = set(program_cache._PROGRAMS.values())
    for options in kinds:
        sampled(**options)
    assert set(program_cache._PROGRAMS.values()) == held


def test_traces_of_one_energy_are_recognized():
    """Custom derivatives and loops are named by addresses in some traces, which would compile every run anew."""

    @jax.custom_vjp
    def square(x):
        return x**2

    square.defvjp(lambda x: (x**2, x), lambda x, g: (2.0 * x * g,))

    def energy(x):
        turns = jax.lax.while_loop(lambda k: k < 3, lambda k: k + 1, 0)
        return jnp.sum(square(x)) + jax.nn.logsumexp(x) + jnp.sum(jax.nn.relu(x)) + turns

    spread(energy)
    number = program_cache.num_programs()
    spread(energy)
    assert program_cache.num_programs() == number


@pytest.mark.parametrize("energy", [of_global, of_queue], ids=lambda e: e.__name__)
def test_a_loop_by_hand_sees_the_change(energy):
    sampler = iso.sgld(0.02)
    energies = []
    for value in (1.0, 25.0):
        change(value)
        state = sampler.init(energy, jnp.ones(1))
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


def test_what_was_read_goes_with_its_functions():
    def once():
        factor = np.ones(1)
        iso.sample(lambda x: jnp.sum(factor * x**2), iso.sgld(0.1), num_steps=5, init=jnp.zeros(1), measure_bias=False)

    once()
    gc.collect()
    number = len(program_cache._READ)
    once()
    gc.collect()
    assert len(program_cache._READ) == number
