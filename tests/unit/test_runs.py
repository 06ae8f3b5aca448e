"""Runs: estimates with weights, summaries, ArviZ, pictures, disk."""

import dataclasses
import json
import types
from typing import Any

import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import isotherm as iso
from isotherm.driver import layout as module
from isotherm.driver.layout import Layout
from isotherm.engine.records import Records
from isotherm.run import estimates
from isotherm.run.storage.pytree_json import describe_structure, named_leaves, rebuild
from isotherm.run.storage.store import StoredArray


@pytest.fixture(scope="module")
def plain():
    return iso.sample(
        lambda x: 0.5 * jnp.sum((x - 1.0) ** 2),
        iso.sgld(step_size=0.2),
        num_steps=3_000,
        num_chains=3,
        num_runs=2,
        init=jnp.ones(2),
    )


@pytest.fixture(scope="module")
def weighted(plain):
    # Weights that tilt N(1, s) by exp(x_0): the mean of x_0 moves, that of x_1 does not.
    return dataclasses.replace(plain, log_weights=plain.draws[..., 0].astype(np.float64))


def test_expectation_honors_weights(plain, weighted):
    weights = np.exp(weighted.log_weights)
    expected = (weighted.draws * weights[..., None]).sum(axis=(0, 1, 2)) / weights.sum()
    np.testing.assert_allclose(weighted.expectation(lambda x: x), expected, rtol=1e-5)
    np.testing.assert_allclose(plain.expectation(lambda x: x), plain.draws.mean(axis=(0, 1, 2)), rtol=1e-4)
    assert weighted.expectation(lambda x: x)[0] > plain.expectation(lambda x: x)[0] + 0.8


def test_expectation_does_not_depend_on_how_draws_are_cut(weighted, monkeypatch):
    whole = weighted.expectation(lambda x: {"square": x**2, "first": x[0]})
    monkeypatch.setattr(estimates, "_PIECE_BYTES", 1_000)
    cut = weighted.expectation(lambda x: {"square": x**2, "first": x[0]})
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), whole, cut)


def test_a_draw_of_weight_zero_may_be_anything(plain):
    draws = plain.draws.copy()
    log_weights = np.zeros(draws.shape[:3])
    draws[0, 0, 5:], log_weights[0, 0, 5:] = np.nan, -np.inf
    run = dataclasses.replace(plain, draws=draws, log_weights=log_weights)
    assert np.isfinite(run.expectation(lambda x: x)).all()
    assert np.isfinite(run.resample(100)).all()
    assert run.mode_masses(np.array([[0.0, 0.0], [2.0, 2.0]])).sum() == pytest.approx(1.0)
    nothing = dataclasses.replace(plain, log_weights=np.full(draws.shape[:3], -np.inf))
    with pytest.raises(ValueError, match=r"`log_weights` must be finite for some draw; got -inf"):
        nothing.expectation(lambda x: x)


def test_systematic_resampling_draws_each_as_often_as_its_weight_says():
    weights = np.array([0.5, 0.25, 0.125, 0.125])
    for seed in range(5):
        counts = np.bincount(estimates.systematic_indices(weights, 80, seed), minlength=4)
        assert counts.tolist() == [40, 20, 10, 10]
    counts = np.bincount(estimates.systematic_indices(np.array([0.3, 0.0, 0.7]), 10, 1), minlength=3)
    assert counts.tolist() == [3, 0, 7]


def test_resampled_draws_have_the_weighted_mean(weighted):
    drawn = weighted.resample(20_000, seed=1)
    assert drawn.shape == (20_000, 2)
    np.testing.assert_allclose(drawn.mean(axis=0), weighted.expectation(lambda x: x), atol=0.02)


def test_mode_masses_by_centers_and_by_function(weighted):
    centers = np.array([[0.0, 0.0], [3.0, 3.0]])
    by_function = weighted.mode_masses(lambda x: x.sum() > 3.0, num_modes=2)
    np.testing.assert_allclose(weighted.mode_masses(centers), by_function, atol=1e-6)
    with pytest.raises(ValueError, match=r"`num_modes` must be an integer"):
        weighted.mode_masses(lambda x: x.sum() > 3.0)


def test_mode_masses_have_the_errors_of_indicators(weighted):
    centers = np.array([[0.0, 0.0], [3.0, 3.0]])
    found = weighted.estimate_mode_masses(centers)
    np.testing.assert_allclose(found.mean, weighted.mode_masses(centers), rtol=1e-12)
    expected = weighted.estimate(lambda x: jnp.stack([x.sum() <= 3.0, x.sum() > 3.0]))
    for name in ("mean", "std_error", "effective_draws", "r_hat", "bias"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)
    assert np.all(found.std_error > 0)
    by_function = weighted.estimate_mode_masses(lambda x: x.sum() > 3.0, num_modes=3)
    np.testing.assert_allclose(by_function.mean, [*found.mean, 0.0])
    with pytest.raises(ValueError, match=r"`modes` must be centers of shape"):
        weighted.estimate_mode_masses(centers[:, :1])


def test_arviz_gets_draws_of_equal_weight_or_raw_ones(plain, weighted):
    raw = weighted.to_arviz(weighted=True)
    assert raw.posterior["x"].shape == (6, 3_000, 2)
    np.testing.assert_array_equal(raw.sample_stats["log_weight"], weighted.log_weights.reshape(6, -1))
    equal = weighted.to_arviz()
    assert "log_weight" not in equal.sample_stats
    np.testing.assert_allclose(
        equal.posterior["x"].mean(("chain", "draw")), weighted.expectation(lambda x: x), atol=0.03
    )
    np.testing.assert_array_equal(plain.to_arviz().posterior["x"], plain.draws.reshape(6, -1, 2))


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("num_runs", [None, 2])
def test_arviz_gets_no_leaves_without_numbers(is_weighted, num_runs):
    run = iso.sample(
        lambda x: jnp.sum(x["a"] ** 2) + jnp.sum(x["empty"]),
        iso.sgld(0.1),
        num_steps=10,
        num_chains=2,
        num_runs=num_runs,
        init={"a": jnp.zeros(3), "empty": jnp.zeros((2, 0))},
        progress=False,
    )
    uneven = np.array(run.log_weights)
    uneven[..., ::2] = -np.inf
    for log_weights in (run.log_weights, uneven):
        found = dataclasses.replace(run, log_weights=log_weights).to_arviz(weighted=is_weighted)
        assert list(found.posterior.data_vars) == ["a"]
        assert found.posterior["a"].shape == (2 * (num_runs or 1), 10, 3)
        summarize: Any = arviz_stats.summary  # pyright: ignore[reportPrivateImportUsage]
        assert list(summarize(found).index) == ["a[0]", "a[1]", "a[2]"]


def test_arviz_summarizes_a_run(plain):
    summarize: Any = arviz_stats.summary  # pyright: ignore[reportPrivateImportUsage]
    table = summarize(plain.to_arviz(), round_to="none")
    assert list(table.index) == ["x[0]", "x[1]"]
    np.testing.assert_allclose(table["mean"], plain.draws.mean(axis=(0, 1, 2)), rtol=1e-4)
    np.testing.assert_allclose(table["mcse_mean"], plain.estimate(lambda x: x).std_error, rtol=0.3)


def test_summary_says_means_and_warns_of_few_effective_draws(plain):
    text = str(plain.summary())
    assert "x[0]" in text
    assert "18000 draws of sgld in 3000 iterations" in text
    degenerate = dataclasses.replace(plain, log_weights=20.0 * plain.draws[..., 0].astype(np.float64))
    assert "A few draws carry the weight" in str(degenerate.summary())
    stuck = dataclasses.replace(plain, draws=plain.draws + 10.0 * np.arange(2)[:, None, None, None])
    assert "Chains disagree" in str(stuck.summary())


def test_pictures_are_drawn(plain):
    for figure in (plain.plot_trace(), plain.plot_density(), plain.plot_density(coordinates=(0,)), plain.plot_energy()):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        assert len(np.unique(np.asarray(canvas.buffer_rgba()))) > 20


def test_save_and_load_give_back_everything(plain, weighted, tmp_path):
    weighted.save(tmp_path / "run")
    back = iso.load(tmp_path / "run")
    for name in ("draws", "log_weights", "energies", "iterations"):
        np.testing.assert_array_equal(np.asarray(getattr(back, name)), np.asarray(getattr(weighted, name)))
    assert back.stats.keys() == weighted.stats.keys()
    assert json.loads(json.dumps(back.config)) == json.loads(json.dumps(weighted.config))
    np.testing.assert_allclose(back.expectation(lambda x: x), weighted.expectation(lambda x: x))
    with pytest.raises(ValueError, match="`folder` must be a new or empty folder"):
        plain.save(tmp_path / "run")
    assert not [path for path in (tmp_path / "run").rglob("*") if path.suffix in (".pkl", ".pickle")]


def test_stored_arrays_index_like_numpy(plain, tmp_path):
    plain.save(tmp_path / "run")
    stored, array = iso.load(tmp_path / "run").draws, plain.draws
    assert isinstance(stored, StoredArray)
    assert "StoredArray(shape=(2, 3, 3000, 2)" in repr(stored)
    for index in (
        0,
        -1,
        (0, 1),
        (..., 1),
        np.s_[:, :, 10:20],
        np.s_[:, -1, ::500],
        np.s_[1, :, 2_990:9_999],
        np.s_[:, :, ::-1],
    ):
        np.testing.assert_array_equal(stored[index], array[index])
    chosen = np.array([1, 5, 7])
    np.testing.assert_array_equal(stored[0, 0, chosen], array[0, 0, chosen])
    with pytest.raises(IndexError):
        stored[5]


def test_runs_can_be_taken_apart(plain):
    first, second = plain.split_runs()
    np.testing.assert_array_equal(second.draws, plain.draws[1])
    np.testing.assert_array_equal(first.stats["best_energy"], plain.stats["best_energy"][0])


def test_structures_survive_json():
    tree = {"b": [np.zeros(1), (np.ones(2), None)], "a": {"c": np.arange(3)}}
    leaves = named_leaves(tree)
    back = rebuild(json.loads(json.dumps(describe_structure(tree))), leaves.__getitem__)
    assert jax.tree.structure(back) == jax.tree.structure(tree)
    assert all(a is b for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(tree), strict=True))


def test_collect_keeps_only_what_is_asked(tmp_path):
    run = iso.sample(
        lambda x: jnp.sum(x**2),
        iso.sgld(step_size=0.1),
        num_steps=10,
        init=jnp.ones(5),
        collect=lambda x: {"norm": jnp.sum(x**2)},
    )
    assert run.draws["norm"].shape == (1, 10)
    np.testing.assert_allclose(run.draws["norm"], run.energies, rtol=1e-6)


def test_progress_is_shown_when_asked_and_quiet_otherwise(capfd):
    options: dict[str, Any] = {"num_steps": 2_000, "thinning": 100, "init": jnp.ones(2)}
    iso.sample(lambda x: jnp.sum(x**2), iso.sgld(step_size=0.1), **options)
    assert capfd.readouterr().err == ""
    iso.sample(lambda x: jnp.sum(x**2), iso.sgld(step_size=0.1), progress=True, **options)
    shown = capfd.readouterr().err
    assert "sgld" in shown
    assert "2000/2000" in shown
    assert "gradients/s" in shown
    assert "energy" in shown


def test_some_draws_of_a_run(tmp_path):
    run = iso.sample(
        lambda x: 0.5 * jnp.sum(x["a"] ** 2),
        iso.resgld(0.1, temperatures=(1.0, 2.0)),
        num_steps=30,
        num_runs=2,
        init={"a": jnp.ones(3)},
        out=tmp_path / "run",
    )
    for picked in (slice(-4, None), np.array([3, 17, 29])):
        some = run.select(picked)
        np.testing.assert_array_equal(some.draws["a"], np.asarray(run.draws["a"])[:, :, picked])
        np.testing.assert_array_equal(some.energies, np.asarray(run.energies)[:, :, picked])
        np.testing.assert_array_equal(some.observed["rung"], np.asarray(run.observed["rung"])[:, :, picked])
        np.testing.assert_array_equal(some.iterations, run.iterations[picked])
        assert some.num_draws == some.log_weights.shape[2] == len(some.iterations)


@pytest.mark.parametrize("small_bytes", [0, 1_000, 10**9])
def test_an_accelerator_sends_the_records_that_there_are(monkeypatch, small_bytes):
    records = Records(jnp.arange(60.0).reshape(10, 2, 3), (), jnp.arange(20.0).reshape(10, 2), None, {})
    program: Any = types.SimpleNamespace(records_to_host=lambda records: jax.device_get(records))
    expected = module.records_to_host(program, records, 3, Layout(None, 1, None))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(module, "_SMALL_BYTES", small_bytes)
    sent = []
    device_get = jax.device_get
    monkeypatch.setattr(jax, "device_get", lambda tree: sent.append(tree) or device_get(tree))
    found = module.records_to_host(program, records, 3, Layout(None, 1, None))
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert found["draws"].shape == (1, 2, 3, 3)
    # 32 bytes a record: four of them, the power of two that holds three, or as many as are small.
    assert len(sent[0].draws) == {0: 4, 1_000: 10, 10**9: 10}[small_bytes]
