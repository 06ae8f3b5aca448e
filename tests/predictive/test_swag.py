"""SWAG: moments of a path, draws with the right covariance, and statistics of their own."""

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.foundation.schedules import as_schedule
from isotherm.predictive import Ensemble, fit_swag, joined, predict, refresh_statistics, trained

RNG = np.random.default_rng(0)


# A path of 30 networks in two chains, without model state.
PATH = Ensemble(
    {"a": RNG.standard_normal((2, 30, 4)).cumsum(axis=1), "b": RNG.standard_normal((2, 30, 2))},
    (),
    np.zeros((2, 30)),
)


def flat(tree):
    return np.concatenate([np.asarray(leaf).reshape(*leaf.shape[:-1], -1) for leaf in jax.tree.leaves(tree)], axis=-1)


def columns_by_hand(path, rank):
    means = np.cumsum(path, axis=0) / np.arange(1, len(path) + 1)[:, None]
    return (path - means)[-rank:]


@dataclasses.dataclass
class Timed:
    """A path with the iterations of its networks."""

    draws: Any
    model_state: Any
    log_weights: np.ndarray
    iterations: np.ndarray


@pytest.mark.parametrize(("cycle_length", "num_gaussians", "length"), [(None, 2, 30), (70, 6, 10)])
def test_moments_are_those_of_the_paths(cycle_length, num_gaussians, length):
    timed = Timed(*PATH, 7 * np.arange(30))
    swag = fit_swag(timed, rank=5, cycle_length=cycle_length)
    assert swag.num_gaussians == num_gaussians
    path = flat(PATH.draws)[0, :length]
    np.testing.assert_allclose(flat(swag.means)[0], path.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(flat(swag.variances)[0], path.var(axis=0), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(flat(swag.deviations)[0], columns_by_hand(path, 5), rtol=1e-3, atol=1e-5)


def test_draws_have_the_covariance_of_low_rank_and_diagonal():
    swag = fit_swag(PATH, rank=6)
    drawn = flat(swag.sample(20_000, seed=1, scale=1.5).draws)[1]
    path = flat(PATH.draws)[1]
    columns = columns_by_hand(path, 6)
    expected = 1.5 / 2 * (np.diag(path.var(axis=0)) + columns.T @ columns / 5)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    # Correlations of 20,000 draws: standard deviation below 0.01.
    assert np.abs((np.cov(drawn.T) - expected) / scale).max() < 0.05
    np.testing.assert_allclose(drawn.mean(axis=0), path.mean(axis=0), atol=0.1)
    # The control: the diagonal alone is not it.
    assert np.abs((np.cov(drawn.T) - np.diag(np.diag(expected))) / scale).max() > 0.2


def test_networks_with_batch_norm_get_statistics_of_their_own():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.norm = nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, momentum=0.5, rngs=rngs)
            self.last = nnx.Linear(4, 2, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.norm(self.first(x))))

    x = (2.0 + RNG.standard_normal((200, 3))).astype(np.float32)
    y = (x[:, 0] > 2.0).astype(np.int32)
    potential = iso.networks.from_nnx(Net, "cross_entropy", (x, y), batch_size=50, weight_decay=1.0)
    run = iso.sample(
        potential,
        iso.swag(1e-3),
        num_steps=200,
        burn_in=100,
        thinning=4,
        num_chains=2,
        init=potential.init,
        progress=False,
    )
    swag = fit_swag(run, rank=10)
    with pytest.raises(ValueError, match="`potential` must be given for networks with BatchNorm"):
        swag.sample(2)
    ensemble = swag.sample(3, potential=potential, num_refresh=20)
    weights = jax.tree.map(lambda leaf: leaf[1, 2], ensemble.draws)
    hidden = x @ weights["first.kernel"] + weights["first.bias"]
    found = ensemble.model_state["norm.mean"][1, 2]
    # Running means of batches of 50, half of the weight on the last: an error of about sd / 50^0.5 / 3^0.5.
    assert np.abs(found - hidden.mean(axis=0)).max() < 4 * hidden.std(axis=0).max() / np.sqrt(50)
    again = refresh_statistics(potential, weights, {"norm.mean": np.zeros(4), "norm.var": np.ones(4)}, 20)
    np.testing.assert_allclose(again["norm.mean"], found, atol=1e-3)
    prediction = predict(ensemble, potential, x, labels=y)
    assert len(prediction.draw_weights) == 6
    assert np.mean(prediction.probabilities.argmax(axis=1) == y) > 0.8


def test_cycles_are_collected_late_and_fitted_apart():
    sampler = iso.swag(0.1, cycle_length=50, sampling_from=0.8)
    run = iso.sample(lambda x: (x**4).sum() / 4, sampler, num_steps=150, num_chains=2, init=np.ones(3), progress=False)
    assert run.iterations.tolist() == [50 * cycle + k for cycle in range(3) for k in range(40, 50)]
    assert fit_swag(run, rank=4, cycle_length=50).num_gaussians == 6
    steps = [float(as_schedule(sampler.step_size)(k)) for k in (0, 39, 40, 49)]
    assert steps[0] == pytest.approx(0.1)
    assert steps[1] > steps[2] == steps[3] > 0
    with pytest.raises(ValueError, match="`step_size` must be the largest value of a cycle"):
        iso.swag(lambda k: 0.1, cycle_length=50)


@pytest.mark.parametrize("thinning", [3, 7])
def test_no_gaussian_spans_two_cycles(thinning):
    """Cycles of 50 iterations are not multiples of the thinning, so that they hold different numbers of draws."""
    sampler = iso.swag(0.1, cycle_length=50, sampling_from=0.5)
    run = iso.sample(lambda x: (x**2).sum() / 2, sampler, num_steps=500, thinning=thinning, init=np.ones(1))
    swag = fit_swag(run, rank=2, cycle_length=50)
    assert swag.num_gaussians == 10
    for cycle in range(10):
        inside = run.draws[0, run.iterations // 50 == cycle]
        np.testing.assert_allclose(swag.means[cycle], inside.mean(axis=0), rtol=1e-5)


def test_drawn_networks_are_trained_for_an_epoch():
    """The energy is quadratic: after an epoch of plain SGD a weight has shrunk by a known factor, each from its own start."""
    x = np.zeros((40, 1), np.float32)
    potential = iso.networks.from_nnx(
        lambda rngs: nnx.Linear(1, 1, rngs=rngs), "squared_error", (x, x[:, 0]), batch_size=10, weight_decay=3.0
    )
    start = np.arange(1.0, 7.0, dtype=np.float32).reshape(1, 2, 3, 1, 1)
    zero = np.zeros((1, 2, 3, 1), np.float32)
    ensemble = Ensemble({"kernel": start, "bias": zero}, (), np.zeros((1, 2, 3)))
    after = trained(ensemble, potential, iso.sgd(0.05))
    np.testing.assert_allclose(after.draws["kernel"], start * (1 - 0.05 * 3.0) ** 4, rtol=1e-5)
    longer = trained(ensemble, potential, iso.sgd(0.05), num_steps=7)
    np.testing.assert_allclose(longer.draws["kernel"], start * (1 - 0.05 * 3.0) ** 7, rtol=1e-5)


def test_joined_ensembles_count_as_they_are_told():
    """Ten pretrained networks of weight 10, and two of a run whose weights are 3 to 1."""
    first = Ensemble({"a": np.zeros((1, 10, 1, 2))}, (), np.zeros((1, 10, 1)))
    second = Ensemble({"a": np.ones((2, 1, 1, 2))}, (), np.log([3.0, 1.0]).reshape(2, 1, 1))
    both = joined((first, 10.0), (second, 1.0))
    assert both.draws["a"].shape == (1, 12, 2)
    weights = np.exp(both.log_weights - both.log_weights[0, -1]).reshape(-1)
    np.testing.assert_allclose(weights[-2:], [3.0, 1.0])
    np.testing.assert_allclose(weights[:10].sum() / weights[10:].sum(), 100.0 / 2.0)
    with pytest.raises(ValueError, match="`factor` must be a finite real number above 0"):
        joined((first, 0.0))
    with pytest.raises(ValueError, match="`parts` must be at least one pair"):
        joined()


def test_networks_of_a_path_count_with_their_weights():
    """Whole weights are repeats; columns are scaled so that A A^T / (K - 1) has them too."""
    counts = RNG.integers(1, 4, 30)
    weighted = Ensemble(*PATH[:2], np.log(np.stack([counts, np.ones(30)])) + 700.0)
    swag = fit_swag(weighted, rank=30)
    path = flat(PATH.draws)[0]
    repeated = np.repeat(path, counts, axis=0)
    np.testing.assert_allclose(flat(swag.means)[0], repeated.mean(axis=0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(flat(swag.variances)[0], repeated.var(axis=0), rtol=1e-3, atol=1e-5)
    means = np.cumsum(counts[:, None] * path, axis=0) / np.cumsum(counts)[:, None]
    columns = (path - means) * np.sqrt(counts / counts.mean())[:, None]
    np.testing.assert_allclose(flat(swag.deviations)[0], columns, rtol=1e-3, atol=1e-4)
    # A network that is drawn counts as the mean one of its path does.
    masses = np.exp(swag.sample(5).log_weights)
    np.testing.assert_allclose(masses, np.tile([[1.0], [1.0 / counts.mean()]], 5), rtol=1e-6)


def test_draws_without_weight_are_no_part_of_a_path():
    """A chain that diverged early has no Gaussian, and one that diverged late that of its first draws."""
    log_weights = np.zeros((3, 30))
    log_weights[1, 12:], log_weights[2, 1:] = -np.inf, -np.inf
    every = {"a": np.concatenate([PATH.draws["a"], PATH.draws["a"][:1]]), "b": RNG.standard_normal((3, 30, 2))}
    held = lambda leaf: np.where(np.isfinite(log_weights)[..., None], leaf, np.nan)  # noqa: E731
    draws = jax.tree.map(held, every)
    swag = fit_swag(Ensemble(draws, (), log_weights), rank=20)
    assert swag.num_gaussians == 2
    for number, length in ((0, 30), (1, 12)):
        path = flat(every)[number, :length]
        np.testing.assert_allclose(flat(swag.means)[number], path.mean(axis=0), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(flat(swag.variances)[number], path.var(axis=0), rtol=1e-3, atol=1e-5)
        columns, kept = columns_by_hand(path, 20), flat(swag.deviations)[number]
        np.testing.assert_allclose(kept.T @ kept / 19, columns.T @ columns / (len(columns) - 1), rtol=1e-3, atol=1e-4)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(swag.sample(50).draws))
    log_weights[:2, 1:] = -np.inf
    with pytest.raises(ValueError, match=r"`run` must be one with two draws of weight in some path; got none\."):
        fit_swag(Ensemble(draws, (), log_weights))


def test_wrong_input_is_refused():
    with pytest.raises(ValueError, match="`run` must be at least two draws for every Gaussian"):
        fit_swag(Timed(*PATH, 7 * np.arange(30)), cycle_length=7)
    with pytest.raises(ValueError, match="`run` must be one with the iterations of its draws; got Ensemble"):
        fit_swag(PATH, cycle_length=7)
    with pytest.raises(ValueError, match="`rank` must be an integer of at least 2"):
        fit_swag(PATH, rank=1)
    with pytest.raises(ValueError, match="`num` must be an integer of at least 1"):
        fit_swag(PATH).sample(0)
