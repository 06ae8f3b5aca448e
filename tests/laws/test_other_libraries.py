"""Samplers in loops of optax and of BlackJAX: the same law, and the same moves as those of `Sampler.step`."""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import isotherm as iso
from tests.statistics import assert_law
from tests.targets import langevin_variance

PRECISIONS, TEMPERATURE, STEP = np.array([2.0, 0.5]), 1.7, 0.3


def energy(x):
    return 0.5 * jnp.sum(PRECISIONS * (x - 1.0) ** 2)


def loop(transformation, num_steps, start, seed):
    """Positions after every update of a training loop, under jit and scan."""

    def advance(carry, _):
        params, state = carry
        updates, state = transformation.update(jax.grad(energy)(params), state, params)
        params = optax.apply_updates(params, updates)
        return (params, state), params

    state = transformation.init(start)
    state = state._replace(key=jax.random.key_data(seed)) if seed is not None else state
    return jax.lax.scan(advance, (start, state), length=num_steps)[1]


@pytest.fixture(scope="module")
def squares():
    transformation = iso.as_optax(iso.sgld(STEP, temperature=TEMPERATURE))
    keys = jax.random.split(jax.random.key(1), 128)
    draws = jax.jit(jax.vmap(lambda key: loop(transformation, 4_000, jnp.ones(2), key)))(keys)
    return np.mean((np.asarray(draws[:, 500:], np.float64) - 1.0) ** 2, axis=1)


@pytest.mark.parametrize("coordinate", [0, 1])
def test_sgld_of_optax_has_the_variance_of_a_finite_step(squares, coordinate):
    precision = float(PRECISIONS[coordinate])
    truth = TEMPERATURE / (precision * (1.0 - STEP * precision / 2.0))
    assert truth == pytest.approx(langevin_variance(STEP, precision, TEMPERATURE))
    assert_law(squares[:, coordinate], truth, wrong=TEMPERATURE / precision)


SAMPLERS = {
    "sgd": iso.sgd(0.1),
    "msgd": iso.msgd(0.05, friction=0.3),
    "sgld": iso.sgld(optax.cosine_decay_schedule(0.2, 30), temperature=1.7),
    "psgld": iso.psgld(0.1, freeze_after=7),
    "sghmc": iso.sghmc(0.05, friction=0.2, resample_every=4),
    "in a box": iso.sghmc(0.3, box=(0.5, 1.8)),
    "cycsgld": iso.cycsgld(0.2, cycle_length=20),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_updates_are_the_moves_of_the_sampler(name):
    sampler = SAMPLERS[name]
    found = loop(iso.as_optax(sampler, seed=5), 20, jnp.ones(2), None)
    state, expected = sampler.init(energy, jnp.ones(2)), []
    for _ in range(20):
        state, _ = sampler.step(jax.random.key(5), state)
        expected.append(state.position[0])
    np.testing.assert_allclose(np.asarray(found), np.stack(expected), rtol=2e-4, atol=1e-5)


def test_params_are_those_of_the_loop():
    transformation = iso.as_optax(iso.msgd(0.1))
    state = transformation.init(jnp.zeros(2))
    for params in (jnp.zeros(2), jnp.full(2, 50.0)):
        updates, state = transformation.update(jnp.ones(2), state, params)
        assert np.abs(np.asarray(updates)).max() < 0.3
    with pytest.raises(
        ValueError, match=r"`params` must be given to `update`; got None. Call update\(gradient, state, params\)"
    ):
        transformation.update(jnp.ones(2), state)


REFUSED = {
    "independent chains": [
        lambda: iso.resgld(0.1, temperatures=(1.0, 2.0)),
        lambda: iso.icsgld(0.1, partition=(0.0, 5.0, 20)),
        lambda: iso.svgd(0.1),
        lambda: iso.icsgld(0.1),
        lambda: iso.resgld(0.1, ladder="auto"),
    ],
    "only gradients": [lambda: iso.psgld(0.1, curvature_correction=True), lambda: iso.mala(0.1)],
    "a sampler": [lambda: "sgld"],
}


@pytest.mark.parametrize("message", REFUSED)
def test_samplers_that_need_more_are_refused(message):
    for build in REFUSED[message]:
        with pytest.raises(ValueError, match=rf"`sampler` must be (one .*)?{message}"):
            iso.as_optax(build())


has_blackjax = importlib.util.find_spec("blackjax") is not None


@pytest.mark.skipif(has_blackjax, reason="BlackJAX is installed")
def test_a_missing_blackjax_is_named():
    with pytest.raises(ImportError, match="This needs blackjax"):
        iso.to_blackjax(iso.sgld(0.1), energy)


@pytest.mark.skipif(not has_blackjax, reason="BlackJAX is not installed")
class TestBlackJAX:
    def test_steps_have_the_law_under_vmap_and_scan(self):
        algorithm = iso.to_blackjax(iso.sgld(STEP, temperature=TEMPERATURE), energy)
        states = jax.vmap(algorithm.init)(jnp.ones((128, 2)))
        assert states.position.shape == (128, 2)

        def advance(states, key):
            states, info = jax.vmap(algorithm.step)(jax.random.split(key, 128), states)
            return states, (states.position, info.energy)

        scanned = jax.jit(lambda s, k: jax.lax.scan(advance, s, k))
        _, (draws, energies) = scanned(states, jax.random.split(jax.random.key(2), 4_000))
        assert energies.shape == (4_000, 128)
        squares = np.mean((np.asarray(draws[500:], np.float64) - 1.0) ** 2, axis=0)
        for coordinate, precision in enumerate(PRECISIONS):
            truth = langevin_variance(STEP, precision, TEMPERATURE)
            assert_law(squares[:, coordinate], truth, wrong=TEMPERATURE / precision)

    def test_data_are_not_copied_and_several_chains_have_an_axis(self):
        potential = iso.from_likelihood(lambda m, y: -0.5 * (y - m) ** 2, None, jnp.arange(50.0), batch_size=10)
        algorithm = iso.to_blackjax(iso.sgld(1e-3), potential)
        states = jax.vmap(algorithm.init)(jnp.zeros(7))
        assert max(leaf.size for leaf in jax.tree.leaves(states)) == 7
        ladder = iso.to_blackjax(iso.resgld(0.1, temperatures=(1.0, 2.0, 4.0)), energy)
        state, info = ladder.step(jax.random.key(0), ladder.init(jnp.ones(2)))
        assert state.position.shape == (3, 2)
        assert info.energy.shape == (3,)
