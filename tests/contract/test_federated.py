"""Federated samplers through `iso.sample`: shapes, times of averages, batches, stops, loops by hand, refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import isotherm as iso
from isotherm.foundation.errors import InputError
from isotherm.kernels import FederatedLangevin, scaled

ROWS = [np.arange(5.0, dtype=np.float32), np.arange(5.0, 8.0, dtype=np.float32), np.arange(8.0, 20.0, dtype=np.float32)]


def log_likelihood(x, rows):
    return -0.5 * (rows - x["a"][0]) ** 2 - 0.1 * (rows - x["b"]) ** 2


def log_prior(x):
    return -0.5 * jnp.sum(x["a"] ** 2) - 0.5 * x["b"] ** 2


START = {"a": np.array([0.5, 0.1], np.float32), "b": np.float32(2.0)}


def clients_of(**options):
    return iso.from_clients(log_likelihood, log_prior, ROWS, **options)


def sampler_of(clients, **options):
    return iso.fald(1e-3, **{"weights": clients.weights, "local_steps": 4, **options})


def run_of(clients, sampler, **options):
    settings: dict[str, Any] = {"num_steps": 32, "num_chains": 2, "init": clients.start(START), "progress": False}
    return iso.sample(clients, sampler, **{**settings, **options})


SAMPLERS: dict[str, dict[str, Any]] = {"all": {}, "some": {"participation": 2, "shared_noise": 0.5}}


@pytest.mark.parametrize("options", SAMPLERS.values(), ids=SAMPLERS)
def test_clients_meet_every_few_iterations(options):
    clients = clients_of(batch_size=2)
    run = run_of(clients, sampler_of(clients, **options), num_runs=2)
    assert run.draws["a"].shape == (2, 2, 32, 3, 2)
    assert run.draws["b"].shape == (2, 2, 32, 3)
    apart = np.ptp(run.draws["a"], axis=3).max(axis=(0, 1, 3))
    np.testing.assert_array_equal(apart == 0.0, np.arange(32) % 4 == 0)
    # Chains and runs are federations of their own.
    assert len(np.unique(run.draws["b"][:, :, 31])) == 12


def test_draws_can_be_averages():
    clients = clients_of()
    sampler = sampler_of(clients)
    whole, averaged = run_of(clients, sampler), run_of(clients, sampler, collect=clients.average)
    assert averaged.draws["a"].shape == (2, 32, 2)
    for name in START:
        expected = np.tensordot(whole.draws[name], clients.weights, axes=([2], [0]))
        np.testing.assert_allclose(averaged.draws[name], expected, rtol=1e-5)
    thinned = run_of(clients, sampler, thinning=4)
    assert np.ptp(thinned.draws["b"], axis=2).max() == 0.0


def test_the_bias_is_not_measured_on_copies():
    clients = clients_of()
    run = run_of(clients, sampler_of(clients), num_steps=400)
    assert run.claims_distribution
    assert run.bias is None


@pytest.mark.parametrize("batch_size", [None, 3])
def test_where_clients_agree_the_energy_is_that_of_all_data(batch_size):
    clients = clients_of(batch_size=batch_size)
    together = iso.from_likelihood(log_likelihood, log_prior, np.concatenate(ROWS))
    x = jax.tree.map(jnp.asarray, clients.start(START))
    expected = float(together.full_energy(START))
    assert float(clients.full_energy(x)) == pytest.approx(expected, rel=1e-5)
    assert float(clients.prior_energy(x)) == pytest.approx(float(-log_prior(START)), rel=1e-5)
    key, period = jnp.array([1, 2], jnp.uint32), 20
    energies = [float(clients.evaluate(x, clients.batch(key, jnp.asarray(k)), (), ()).energy) for k in range(period)]
    if batch_size is None:
        assert energies == pytest.approx([expected] * period, rel=1e-5)
    else:
        assert np.std(energies) > 1.0


def test_clients_draw_batches_independently():
    rows = [np.arange(12.0, dtype=np.float32)] * 2
    clients = iso.from_clients(log_likelihood, None, rows, batch_size=3)
    first, second = clients.batch(jnp.array([1, 2], jnp.uint32), jnp.asarray(0)).examples
    assert set(np.asarray(first)) != set(np.asarray(second))


@pytest.mark.parametrize("batching", ["epochs", "independent", "replacement"])
def test_batches_hold_rows_of_their_client(batching):
    clients = clients_of(batch_size=3, batching=batching)
    key = jnp.array([1, 2], jnp.uint32)
    seen = [clients.batch(key, jnp.asarray(k)) for k in range(40)]
    for client, rows in enumerate(ROWS):
        values = np.concatenate([np.asarray(one.examples[client])[np.asarray(one.weights[client]) > 0] for one in seen])
        assert set(values) == set(rows)
    np.testing.assert_array_equal(seen[0].num_data, [5, 3, 12])


def test_gradients_of_a_client_read_its_rows_alone():
    clients = clients_of(weights=(1.0, 1.0, 2.0))
    assert clients.weights == (0.25, 0.25, 0.5)
    x = jax.tree.map(jnp.asarray, clients.start(START))
    x["b"] = x["b"] + jnp.arange(3.0)
    batch = clients.batch(jnp.zeros(2, jnp.uint32), jnp.asarray(0))
    found = jax.grad(lambda x: clients.evaluate(x, batch, (), ()).energy)(x)
    for client, rows in enumerate(ROWS):
        b = 2.0 + client
        expected = clients.weights[client] * b - 0.2 * np.sum(rows - b)
        assert float(found["b"][client]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("options", SAMPLERS.values(), ids=SAMPLERS)
def test_a_stopped_run_continues_with_the_same_bytes(options, tmp_path):
    clients = clients_of(batch_size=2)
    sampler, collect = sampler_of(clients, **options), clients.average
    whole = run_of(clients, sampler, collect=collect, num_steps=30)
    # A stop between two averages.
    run_of(clients, sampler, collect=collect, num_steps=14, out=tmp_path / "run")
    resumed = iso.resume(tmp_path / "run", clients, sampler, collect=collect, num_steps=30, progress=False)
    for name in START:
        np.testing.assert_array_equal(resumed.draws[name], whole.draws[name])


@pytest.mark.parametrize("chain_mode", ["vmap", "map"])
def test_a_loop_by_hand_does_the_same(chain_mode):
    clients = clients_of(batch_size=2)
    sampler = sampler_of(clients, **SAMPLERS["some"])
    run = run_of(clients, sampler, num_steps=9, seed=3, chain_mode=chain_mode)
    state = sampler.init(clients, clients.start(START), num_chains=2)
    step = jax.jit(sampler.step)
    for _ in range(8):
        state, _ = step(jax.random.key(3), state)
    np.testing.assert_allclose(state.position["a"], run.draws["a"][:, 8], rtol=1e-5)


def test_double_precision():
    with jax.enable_x64(True):
        rows = [own.astype(np.float64) for own in ROWS]
        clients = iso.from_clients(log_likelihood, log_prior, rows, batch_size=2)
        start = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), clients.start(START))
        run = run_of(clients, sampler_of(clients, participation=2), init=start)
    assert run.draws["a"].dtype == np.float64


CLIENTS = clients_of()
WEIGHTS = (0.25, 0.25, 0.5)
REFUSED = {
    "an unequal sum": (lambda: iso.fald(0.1, weights=(0.5, 0.2)), r"`weights` must be shares with sum 1; got .* 0\.7"),
    "a weight of zero": (lambda: iso.fald(0.1, weights=(1.0, 0.0)), r"`weights` must be .* above 0; got 0\.0"),
    "a list": (lambda: FederatedLangevin([1.0]), r"`weights` must be a tuple of numbers"),  # pyright: ignore
    "no local steps": (lambda: iso.fald(0.1, weights=(1.0,), local_steps=0), r"`local_steps` must be an integer"),
    "a correlation above 1": (lambda: iso.fald(0.1, weights=(1.0,), shared_noise=1.1), r"`shared_noise` must be .*"),
    "no participants": (lambda: iso.fald(0.1, weights=(1.0,), participation=0), r"`participation` must be an integer"),
    "too many participants": (
        lambda: iso.fald(0.1, weights=(0.5, 0.5), participation=3, replacement=False),
        r"`participation` must be at most the number of clients, 2, without replacement; got 3",
    ),
    "a uniform draw of unequal clients": (
        lambda: iso.fald(0.1, weights=WEIGHTS, participation=2, replacement=False),
        r"`replacement` must be True for clients of unequal weights",
    ),
    "steps of coordinates": (lambda: iso.fald(np.ones(2), weights=(1.0,)), r"`step_size` must be .* one step size"),  # pyright: ignore
    "a pilot": (lambda: iso.fald("auto", weights=(1.0,)), r"`step_size` must be .*; got 'auto'"),  # pyright: ignore
    "scales": (
        lambda: run_of(
            CLIENTS, iso.Sampler(scaled(FederatedLangevin(CLIENTS.weights), {"a": 1.0, "b": 2.0}), 1e-3), num_steps=4
        ),
        r"`step_size` must be one number for clients, which are averaged",
    ),
    "optax": (lambda: iso.as_optax(iso.fald(0.1, weights=(1.0,))), r"`sampler` must be one that needs only gradients"),
    "one position": (
        lambda: run_of(CLIENTS, sampler_of(CLIENTS), init=START),
        r"`init` must be one position per client, a leading axis of 3",
    ),
    "another sampler": (
        lambda: run_of(CLIENTS, iso.sgld(1e-3), init=START),
        r"`init` must be one position per client, a leading axis of 3",
    ),
    "other weights": (
        lambda: run_of(CLIENTS, sampler_of(CLIENTS, weights=(0.5, 0.5))),
        r"`init` must be one position per client, a leading axis of 2 .* got leading axes \[3\]",
    ),
    "one array": (lambda: iso.from_clients(log_likelihood, None, ROWS[0]), r"`data` must be a list with the data of"),  # pyright: ignore
    "no clients": (lambda: iso.from_clients(log_likelihood, None, []), r"`data` must be a list .*; got none"),
    "unlike clients": (
        lambda: iso.from_clients(log_likelihood, None, [np.zeros(3), np.zeros((3, 2))]),
        r"`data` must be alike for all clients",
    ),
    "a batch above the smallest client": (
        lambda: clients_of(batch_size=4),
        r"`batch_size` must be at most .*, 3; got 4",
    ),
    "weights of other clients": (
        lambda: clients_of(weights=(1.0, 2.0)),
        r"`weights` must be one per client, 3 numbers",
    ),
    "no batch": (lambda: CLIENTS.as_batch(None), r"`batch` must be a pytree of examples; got None"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refusals(case):
    call, message = case
    with pytest.raises(InputError, match=message):
        call()
