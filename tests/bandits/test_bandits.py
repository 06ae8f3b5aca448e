"""Bandits: rewards as they should be, agents that learn, and a buffer that grows in one program."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.bandits import Agent, BanditSettings, Wheel, play, psgld_agent
from isotherm.bandits.play import Loop, chosen_error, make_potential
from isotherm.coupling import Independent
from isotherm.engine.random_inputs import draw_batches, open_streams
from isotherm.estimators import Plain
from isotherm.foundation.periodic import Periodic
from isotherm.kernels import SGLD
from isotherm.samplers.sampler import Sampler, resolved
from isotherm_thesis.bandits import Mushrooms, const_sgd, dropout, eps_greedy, pcsgld_agent, picsgld_agent

FEATURES = np.eye(6, dtype=np.float32)[np.arange(60) % 6]
ENVIRONMENT = Mushrooms(FEATURES, (np.arange(60) % 6 >= 3).astype(np.int32))
SMALL = BanditSettings(num_steps=60, num_pulls=10, num_initial=128, capacity=256, batch_size=64, hidden=(16,))


def test_mushrooms_pay_what_they_should():
    arrivals = ENVIRONMENT.arrive(jax.random.key(0), 20_000, ENVIRONMENT.feed())
    is_poisonous = np.asarray(arrivals.contexts).argmax(axis=1) >= 3
    eaten, left = np.asarray(arrivals.rewards).T
    assert set(np.unique(eaten[~is_poisonous])) == {5.0}
    assert set(np.unique(eaten[is_poisonous])) == {5.0, -35.0}
    # Mean -15 with a standard error of 20 / 10,000^0.5 = 0.2.
    assert eaten[is_poisonous].mean() == pytest.approx(-15.0, abs=0.8)
    assert not left.any()
    np.testing.assert_array_equal(arrivals.oracle, np.where(is_poisonous, 0.0, 5.0))


def test_the_wheel_pays_by_quadrant_outside_its_circle():
    wheel = Wheel(0.6, deviation=0.0)
    arrivals = wheel.arrive(jax.random.key(0), 20_000, ())
    x, y = np.asarray(arrivals.contexts).T
    is_far = x**2 + y**2 > 0.36
    assert np.all(x**2 + y**2 <= 1 + 1e-5)
    assert is_far.mean() == pytest.approx(0.64, abs=0.02)
    best = np.asarray(arrivals.rewards).argmax(axis=1)
    assert np.all(best[~is_far] == 0)
    assert np.all(best[is_far & (x > 0) & (y > 0)] == 1)
    assert np.all(best[is_far & (x < 0) & (y > 0)] == 2)
    assert np.all(best[is_far & (x < 0) & (y < 0)] == 3)
    assert np.all(best[is_far & (x > 0) & (y < 0)] == 4)
    np.testing.assert_allclose(arrivals.oracle, np.where(is_far, 50.0, 1.2), rtol=1e-6)


def test_only_the_action_that_was_taken_is_learned_from():
    outputs, taken = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([[1.0, 5.0], [0.0, 3.5]])
    np.testing.assert_allclose(chosen_error(outputs, taken), [9.0, 0.25])


AGENTS = {
    "EpsGreedy": lambda: eps_greedy(step_size=5e-5),
    "ConstSGD": lambda: const_sgd(step_size=1e-5),
    "Dropout": lambda: dropout(step_size=1e-5, rate=0.2),
    "pSGLD": lambda: psgld_agent(step_size=5e-5),
    "pSGLD, single": lambda: psgld_agent(step_size=5e-5, rule="single"),
    "pICSGLD": lambda: picsgld_agent(step_size=5e-5, warm_up=100, width=100.0),
    "pCSGLD": lambda: pcsgld_agent(step_size=1e-5, warm_up=400, width=100.0),
}


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_learns(name):
    played = play(ENVIRONMENT, AGENTS[name](), SMALL, num_runs=2)
    assert played.regret.shape == (2, 60)
    steps = np.diff(played.regret, axis=1, prepend=0.0).mean(axis=0)
    # A random agent loses 10 per pull: half of 5 where edible, half of 15 where not. The last third must be far better.
    assert steps[40:].mean() < 0.3 * 100 / 2
    assert steps[40:].mean() < steps[:5].mean()


ANY = {
    "sghmc": iso.sghmc(5e-6, temperature=0.1),
    "resgld": iso.resgld(1e-5, temperatures=(0.1, 0.3), measure_every=5),
    "fresh": iso.resgld(1e-5, temperatures=(0.1, 0.3), measure_every=5, energy_batch="fresh"),
    "vr_resgld": iso.vr_resgld(1e-5, temperatures=(0.1, 0.3), refresh_every=7),
}


@pytest.mark.parametrize("name", ANY)
def test_any_sampler_of_the_library_serves(name):
    agent = Agent(name, ANY[name], num_chains=2)
    played = play(ENVIRONMENT, agent, dataclasses.replace(SMALL, num_steps=40))
    steps = np.diff(played.regret[0], prepend=0.0)
    assert steps[25:].mean() < 0.5 * 100 / 2


def test_measurements_reach_the_coupling_and_the_target_acts():
    agent = Agent("resgld", ANY["resgld"], num_chains=2)
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    carry = loop.begin(jax.random.key(0), ENVIRONMENT.feed())
    np.testing.assert_array_equal(carry.log_weights, [0.0, -np.inf])
    statistics = lambda carry: agent.sampler.coupling.statistics(carry.chains.chains.coupling)  # noqa: E731
    before = statistics(carry)
    carry, _ = jax.jit(loop._step)(jax.random.key(0), jax.random.key(1), carry, ENVIRONMENT.feed())
    after = statistics(carry)
    assert not np.array_equal(before["variance_of_difference"], after["variance_of_difference"])
    # One replica acts: the one that was on the target rung when it was weighed.
    assert np.isfinite(carry.log_weights).sum() == 1


class Counting(Plain):
    """Counts its refreshes, and tells the count as its energy."""

    def periodic(self):
        return (Periodic(1, lambda potential, state, seen: state + 1.0),)

    def init(self, potential, position, model_state):
        return jnp.zeros(())

    def measure(self, potential, state, position, model_state, batch, noise):
        return state, jnp.zeros(()), None


class Listening(Independent):
    """Keeps the first energy that it was measured with."""

    def init(self, num_chains):
        return jnp.full(num_chains, -1.0)

    def periodic(self, is_exact):
        return (Periodic(1, self._measured),)

    def _measured(self, state, measure):
        measured = measure(2)
        return jnp.where(state < 0, measured.energies[0] + measured.prior_energies[0], state)


def test_bandits_measure_before_they_refresh():
    """What a coupling measures belongs to the old anchor, as everywhere."""
    sampler = Sampler(SGLD(), 1e-6, estimator=Counting(), coupling=Listening())
    agent = Agent("counting", sampler, num_chains=2)
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    carry = loop.begin(jax.random.key(0), ENVIRONMENT.feed())
    state, _ = jax.jit(sampler.step)(jax.random.key(1), carry.chains)
    np.testing.assert_array_equal(state.chains.estimator, 1.0)
    np.testing.assert_array_equal(state.chains.coupling, 0.0)


def test_pilots_and_wrong_numbers_of_chains_are_refused():
    with pytest.raises(ValueError, match="`sampler` must be a sampler without options left to a pilot run"):
        Agent("ICSGLD", iso.icsgld(1e-6, partition="auto"))
    with pytest.raises(ValueError, match="`num_chains` must be the number of rungs, 2"):
        Agent("reSGLD", iso.resgld(1e-6), num_chains=4)


def test_the_buffer_keeps_the_last_pulls_and_grows_in_one_program():
    agent = psgld_agent()
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    feed, key = ENVIRONMENT.feed(), jax.random.key(0)
    carry = loop.begin(key, feed)
    step: Any = jax.jit(loop._step)
    seen = []
    for number in range(20):
        seen.append(int(carry.buffer.num_seen))
        carry, _ = step(key, jax.random.key(number), carry, feed)
    assert seen == list(range(128, 328, 10))
    assert step._cache_size() == 1
    # 328 pulls in 256 places: none is empty, and the oldest have made room.
    assert np.all(np.asarray(carry.buffer.contexts).sum(axis=1) == 1)


def test_chains_have_batches_of_their_own_from_what_is_there():
    agent = psgld_agent()
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    buffer = loop.begin(jax.random.key(0), ENVIRONMENT.feed()).buffer
    numbered = buffer._replace(taken=jnp.stack([jnp.zeros(256), jnp.arange(256.0)], axis=1))
    keys = jax.vmap(jax.random.key_data)(jax.random.split(jax.random.key(1), 4))
    batch = jax.vmap(lambda key: loop.potential.holding(numbered).batch(key, jnp.array(0)))(keys)
    rows = np.asarray(batch.examples[1][..., 1])
    assert rows.shape == (4, 64)
    assert rows.max() < 128
    assert all(len(np.unique(row)) == 64 for row in rows)
    assert not np.array_equal(rows[0], rows[1])
    # As many examples as the buffer can hold count, or as many as it does.
    assert int(batch.num_data[0]) == 256
    growing = make_potential(ENVIRONMENT, agent, dataclasses.replace(SMALL, is_full=False))
    assert int(growing.holding(numbered).batch(keys[0], jnp.array(0)).num_data) == 128


def test_weights_belong_to_the_networks_that_act():
    """A contour whose weights are those of its energies: what acts is what was weighed, not where it moved next."""
    agent = picsgld_agent(warm_up=0, step_size=1e-5)
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    key, feed = jax.random.key(0), ENVIRONMENT.feed()
    carry, _ = jax.jit(loop._step)(key, jax.random.key(1), loop.begin(key, feed), feed)
    contour: Any = agent.sampler.coupling
    state = carry.chains.chains.coupling
    np.testing.assert_allclose(carry.log_weights, contour.log_weights(state), rtol=1e-5)
    # The last iteration saw the positions that act; those of the state came after it.
    potential, number = carry.chains.potential, int(carry.chains.iteration) - 1
    keys = open_streams(jax.random.key_data(key), np.zeros((), np.int32), 4)
    batches = draw_batches(resolved(agent.sampler).parts(potential, "vmap", jnp.float32), keys, jnp.array(number), None)

    def losses(weights):
        found = jax.vmap(lambda w, b: potential.evaluate(w, b, (), ()))(weights, batches[0])
        return found.energy - found.prior_energy

    np.testing.assert_allclose(losses(carry.acting), state.energies, rtol=2e-6)
    assert not np.allclose(losses(carry.chains.position), state.energies, rtol=2e-6)


def test_weights_decide_between_networks():
    agent = psgld_agent()
    loop = Loop(ENVIRONMENT, agent, SMALL, make_potential(ENVIRONMENT, agent, SMALL))
    carry = loop.begin(jax.random.key(0), ENVIRONMENT.feed())
    contexts = jnp.asarray(FEATURES[:6])
    outputs = jax.vmap(lambda w: loop.potential.outputs(w, contexts))(carry.acting)
    for rule in ("average", "single"):
        ruled = dataclasses.replace(loop, agent=dataclasses.replace(agent, rule=rule))
        for chain in range(4):
            alone = jnp.where(jnp.arange(4) == chain, 0.0, -1e3)
            found = ruled._act(jax.random.key(2), carry._replace(log_weights=alone), contexts)
            np.testing.assert_array_equal(found, np.argmax(outputs[chain], axis=1))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: BanditSettings(num_initial=100, batch_size=200), "`num_initial` must be such that"),
        (lambda: BanditSettings(num_steps=0), "`num_steps` must be"),
        (lambda: Wheel(2.0), "`radius` must be"),
        (lambda: Mushrooms(FEATURES, np.zeros(3)), "`inputs` must be features"),
        (lambda: psgld_agent(rule="vote"), "`rule` must be one of"),
    ],
)
def test_wrong_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
