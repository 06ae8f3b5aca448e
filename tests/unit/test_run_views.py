"""Runs as people meet them: five lines, means, quantiles, tables and pictures."""

import dataclasses
import inspect
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import isotherm as iso
from isotherm.foundation.positions import coordinate_name, coordinate_names, shapes_of
from isotherm.run import estimates
from isotherm.run.run import Run
from isotherm.run.storage.stored_array import StoredArray


def energy(x):
    return 0.5 * jnp.sum((x["beta"] - 1.0) ** 2) + 2.0 * (x["alpha"] + 3.0) ** 2


START = {"beta": jnp.ones((2, 2)), "alpha": jnp.asarray(-3.0)}


@pytest.fixture(scope="module")
def plain():
    return iso.sample(energy, iso.sgld(0.2), num_steps=600, num_chains=3, num_runs=2, thinning=2, init=START)


@pytest.fixture(scope="module")
def weighted(plain):
    """Weights that tilt by exp(beta[0, 0]), with a chain that diverged half-way."""
    draws = jax.tree.map(np.copy, plain.draws)
    log_weights = draws["beta"][..., 0, 0].astype(np.float64)
    draws["beta"][1, 2, 150:], log_weights[1, 2, 150:] = np.nan, -np.inf
    return dataclasses.replace(plain, draws=draws, log_weights=log_weights)


@pytest.fixture(scope="module")
def stored(weighted, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    weighted.save(folder)
    return iso.load(folder)


def rows(run, name):
    """Draws of one leaf that have weight, and their weights."""
    leaf = np.asarray(run.draws[name], np.float64)
    flat, weights = leaf.reshape(leaf[..., 0, 0].size if name == "beta" else leaf.size, -1), np.exp(run.log_weights)
    is_used = weights.reshape(-1) > 0
    return flat[is_used], weights.reshape(-1)[is_used]


@pytest.mark.parametrize("name", ["beta", "alpha"])
def test_moments_honor_weights_and_keep_structure(plain, weighted, name):
    values, weights = rows(weighted, name)
    mean = np.average(values, axis=0, weights=weights)
    std = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    shape = START[name].shape
    np.testing.assert_allclose(weighted.mean()[name], mean.reshape(shape), rtol=1e-10)
    np.testing.assert_allclose(weighted.std()[name], std.reshape(shape), rtol=1e-10)
    levels = np.array([[0.0, 0.05, 0.5], [0.9, 0.95, 1.0]])
    found = weighted.quantile(levels)[name]
    assert found.shape == (2, 3, *shape)
    expected = np.quantile(values, levels, axis=0, weights=weights, method="inverted_cdf")
    np.testing.assert_array_equal(found, expected.reshape(2, 3, *shape))
    assert weighted.quantile(0.5)[name].shape == shape
    # The control: estimates that ignore the weights are elsewhere.
    if name == "beta":
        assert weighted.mean()["beta"][0, 0] > plain.mean()["beta"][0, 0] + 0.5
        assert weighted.quantile(0.5)["beta"][0, 0] > plain.quantile(0.5)["beta"][0, 0] + 0.5


def test_moments_of_draws_on_disk_in_pieces(weighted, stored, monkeypatch):
    asked = lambda run: (run.mean(), run.std(), run.quantile([0.25, 0.75]))  # noqa: E731
    whole = asked(weighted)
    monkeypatch.setattr(estimates, "_PIECE_BYTES", 1_000)
    monkeypatch.setattr(estimates, "GROUP_BYTES", 1)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-10), asked(stored), whole)


def test_a_level_is_a_probability(plain):
    with pytest.raises(ValueError, match=r"`q` must be between 0 and 1; got 95"):
        plain.quantile(95)


def test_a_run_prints_five_lines_and_reads_nothing(plain, stored, monkeypatch):
    def read(*_):
        raise AssertionError("a draw was read")

    monkeypatch.setattr(StoredArray, "__getitem__", read)
    monkeypatch.setattr(StoredArray, "__array__", read)
    monkeypatch.setattr(Run, "bias", property(read))
    for run in (plain, stored):
        lines = repr(run).splitlines()
        assert len(lines) == 5
        assert lines[0] == "Run of sgld(step_size=0.2, temperature=1.0) on EnergyPotential(energy)"
        assert "2 runs x 3 chains x 300 draws of alpha, beta[2, 2]" in lines[1]
        assert "600 steps, thinning 2, burn-in 0" in lines[2]
        assert "1 warning so far: see summary()" in lines[4]
        assert run._repr_html_().count("<tr>") == 4
    lost = dataclasses.replace(plain, config={**plain.config, "texts": {}, "has_one_start": False})
    assert "Run of sgld on EnergyPotential" in repr(lost)
    assert "no warnings so far" in repr(lost)


def test_a_table_has_a_row_for_every_draw(weighted, stored):
    for run in (weighted, stored):
        table = run.to_dataframe()
        names = ["alpha", "beta[0, 0]", "beta[0, 1]", "beta[1, 0]", "beta[1, 1]"]
        assert list(table.columns) == ["run", "chain", "draw", *names, "log_weight", "energy"]
        assert len(table) == 2 * 3 * 300
        row = table.iloc[300 * 4 + 7]
        assert (row["run"], row["chain"], row["draw"]) == (1, 1, 7)
        assert row["beta[1, 0]"] == weighted.draws["beta"][1, 1, 7, 1, 0]
        assert row["log_weight"] == weighted.log_weights[1, 1, 7]
    one = weighted.split_runs()[0].to_dataframe()
    assert list(one.columns)[:2] == ["chain", "draw"]


def test_names_of_coordinates():
    shapes = shapes_of({"b": np.zeros((4, 9, 2)), "a": np.zeros((4, 9))}, 2)
    assert coordinate_names(shapes) == ["a", "b[0]", "b[1]"]
    assert [coordinate_name(shapes, number) for number in range(3)] == ["a", "b[0]", "b[1]"]
    assert coordinate_names(shapes_of(np.zeros((4, 9, 2)), 2)) == ["x[0]", "x[1]"]
    assert coordinate_names(shapes_of({"value": np.zeros((4, 9))}, 2)) == ["value"]
    with pytest.raises(IndexError):
        coordinate_name(shapes, 3)


def test_samplers_and_potentials_print_short():
    data = jnp.zeros((5_000, 784))
    texts = {
        "sgld(step_size=0.003, temperature=1.0)": iso.sgld(0.003),
        "sghmc(step_size=0.1, temperature=0.5, kernel=SGHMC(friction=0.2))": iso.sghmc(
            0.1, temperature=0.5, friction=0.2
        ),
        "sgld(step_size=schedule, temperature=1.0)": iso.sgld(optax.cosine_decay_schedule(0.1, 100)),
        "sgld(step_size=0.1, temperature=1.0, kernel=Within(inner=SGLD(), box=(float64[99], 3.0)))": iso.sgld(
            0.1, box=(-np.ones(99), 3.0)
        ),
        "EnergyPotential(energy)": iso.from_energy(energy),
        "LogDensityPotential(lambda)": iso.from_log_density(lambda x: -x @ x),
        "LikelihoodPotential(5000 examples, batches of 100)": iso.from_likelihood(
            lambda w, x: x @ w, None, data, batch_size=100
        ),
        "LikelihoodPotential(5000 examples, all at once)": iso.from_likelihood(lambda w, x: x @ w, None, data),
        "NoisyPotential(inner=EnergyPotential(energy), energy_scale=0.1)": iso.with_noise(
            iso.from_energy(energy), energy_scale=0.1
        ),
    }
    for text, value in texts.items():
        assert repr(value) == text
    ladder = repr(iso.resgld(0.002, temperatures=(1.0, 3.0)))
    assert ladder.startswith("resgld(step_size=0.002, temperature=1.0, ladder=Ladder(")


def test_plots_name_parameters_and_chains(plain, weighted):
    for run in (plain, weighted):
        trace, density, energies = run.plot_trace(), run.plot_density(coordinates=(0, 2)), run.plot_energy(bins=20)
        assert [axis.get_ylabel() for axis in trace.axes] == ["alpha", "beta[0, 0]"]
        assert trace.axes[0].get_legend().get_texts()[4].get_text() == "run 1, chain 1"
        assert energies.axes[0].get_legend() is not None
        axis, bar = density.axes
        assert (axis.get_xlabel(), axis.get_ylabel(), bar.get_ylabel()) == ("alpha", "beta[0, 1]", "density")
        assert len(run.plot_density(coordinates=(3,)).axes) == 1
        assert len(run.plot_density(coordinates=3).axes) == 1
    for name in ("plot_trace", "plot_density", "plot_energy"):
        kinds = {parameter.kind for parameter in inspect.signature(getattr(iso.Run, name)).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
    with pytest.raises(ValueError, match=r"`coordinates` must be names, or numbers from 0 to 4; got \(7,\)"):
        plain.plot_trace(coordinates=(7,))


def test_importing_isotherm_leaves_heavy_packages_alone():
    heavy = ("pandas", "matplotlib", "blackjax", "flax", "xarray", "arviz_base")
    script = f"import sys, isotherm as iso; iso.sgld; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_a_bias_prints_its_worst_coordinates_and_gives_all():
    rates = jnp.arange(1.0, 9.0)
    stiff = lambda x: 0.5 * jnp.sum(rates * x["a"] ** 2) + x["b"] ** 2  # noqa: E731
    start = {"a": jnp.zeros(8), "b": jnp.zeros(())}
    bias = iso.sample(stiff, iso.sgld(0.1), num_steps=5_000, num_chains=4, init=start).bias
    assert bias is not None
    lines = repr(bias).splitlines()
    assert len(lines) == 7
    assert max(map(len, lines)) < 100
    assert lines[0].endswith("5 of 9 coordinates, worst first")
    assert {line.split()[0] for line in lines[2:4]} <= {"a[7]", "a[6]", "a[5]"}
    found = bias.relative()
    assert [part.shape for part in found] == [(9,)] * 4
    # A step adds eps h / 2 to the relative variance, to first order of what it is.
    off = found.variance[:4] - 0.05 * np.asarray(rates)[:4]
    assert np.all(np.abs(off) < 4.0 * found.variance_error[:4])
    large = iso.sample(lambda x: x @ x, iso.sgld(0.05), num_steps=200, num_chains=2, init=jnp.zeros(200)).bias
    assert all(line.startswith("number ") for line in repr(large).splitlines()[2:])
    assert len(repr(large).splitlines()) == 7
    simplex = iso.transforms.constrain(lambda x: jnp.sum(jnp.log(x["w"])), {"w": iso.transforms.simplex()})
    within = iso.sample(
        simplex, iso.sgld(0.01), num_steps=500, num_chains=2, init={"w": jnp.array([0.2, 0.3, 0.5])}
    ).bias
    assert "w[" in repr(within)


def test_a_summary_names_the_largest_r_hat_without_an_alarm():
    moderate = iso.sample(lambda x: x @ x / 2, iso.sgld(0.05), num_steps=400, num_chains=4, init=jnp.zeros(3), seed=1)
    summary = moderate.summary()
    worst = max(summary.rows, key=lambda row: row.r_hat)
    assert 1.02 < worst.r_hat < 1.2
    assert summary.notes[0].endswith(f" Largest R-hat: {worst.r_hat:.3f}, of `{worst.name}`.")
    assert not any("disagree" in note for note in summary.notes)
    particles = iso.sample(
        energy,
        iso.svgd(0.1),
        num_steps=50,
        num_chains=4,
        init=lambda key: jax.tree.map(lambda leaf: leaf + jax.random.normal(key, leaf.shape), START),
    )
    assert "R-hat" not in particles.summary().notes[0]
