"""What a run says of its starts, its data and its sign."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.foundation.errors import DivergenceError, DivergenceWarning
from isotherm.run.bias import NUM_GROUPS, bias_of

NORMAL = iso.from_energy(lambda x: 0.5 * jnp.sum(x**2))


def anywhere(key):
    return jax.random.normal(key, (2,))


def test_a_start_outside_of_the_box_is_refused():
    for sampler in (iso.sgld(0.1, box=(0.0, 1.0)), iso.sghmc(0.1, box=(jnp.zeros(2), jnp.ones(2)))):
        with pytest.raises(
            ValueError, match=r"`init` must be inside the box, .*; got a start from -1 to 3\. Start inside"
        ):
            iso.sample(NORMAL, sampler, num_steps=10, init=jnp.array([-1.0, 3.0]))
    assert iso.sample(NORMAL, iso.sgld(0.1, box=(0.0, 1.0)), num_steps=10, init=jnp.array([0.0, 1.0])).num_draws == 10


def test_numbers_of_the_data_that_are_not_finite_are_blamed_for_a_divergence():
    data = np.zeros(60, np.float32)
    data[3] = np.nan
    potential = iso.from_likelihood(lambda x, y: -0.5 * (y - x[0]) ** 2, lambda x: -jnp.sum(x**2), data, batch_size=6)
    with pytest.warns(DivergenceWarning, match=r"Numbers in the data that are not finite .*: 1\. Remove or") as told:
        iso.sample(potential, iso.sgld(1e-3), num_steps=40, num_chains=2, init=jnp.zeros(1))
    assert "step_size" not in str(told[0].message)


@pytest.mark.parametrize(
    ("options", "note"),
    [
        ({"num_chains": 4, "init": jnp.zeros(2)}, "All chains started at one point"),
        ({"init": anywhere}, "One chain: convergence cannot be checked"),
    ],
)
def test_contours_are_no_reason_to_trust_one_start(options, note):
    run = iso.sample(NORMAL, iso.csgld(0.05, partition=(0.0, 8.0, 30)), num_steps=2_000, **options)
    assert note in " ".join(run.summary().notes)


@pytest.mark.parametrize("step_size", [0.002, 0.01, 0.05])
def test_a_sign_that_is_wrong_is_named_before_anything_overflows(step_size):
    run = iso.sample(lambda x: -0.5 * jnp.sum(x**2), iso.sgld(step_size), num_steps=500, num_chains=4, init=anywhere)
    assert "write `iso.from_log_density(log_density)`" in " ".join(run.summary().notes)


def test_chains_that_diverged_leave_the_bias_of_others_known():
    rng = np.random.default_rng(0)
    values, tilts = rng.standard_normal((3, 200, 2)), rng.standard_normal((1 + NUM_GROUPS, 3, 200))
    log_weights = np.zeros((3, 200))
    log_weights[2] = -np.inf
    expected = bias_of(np.where(np.isfinite(log_weights)[..., None], values, 5.0), tilts, log_weights)
    values[2] = np.inf
    for found, known in zip(bias_of(values, tilts, log_weights), expected, strict=True):
        np.testing.assert_array_equal(found, known)
        assert np.all(np.isfinite(found))


def test_an_estimate_prints_a_line_for_every_number():
    run = iso.sample(NORMAL, iso.sgld(0.05), num_steps=2_000, num_chains=4, init=anywhere)
    found = run.estimate(lambda x: {"square": x[0] ** 2, "both": x})
    head, *lines = str(found).splitlines()
    assert head.split() == ["mean", "error", "bias", "sd", "ess", "r_hat"]
    assert [line.split()[0] for line in lines[:3]] == ["both[0]", "both[1]", "square"]
    assert float(lines[2].split()[1]) == pytest.approx(float(found.mean["square"]), rel=1e-3)
    assert "... 70 more" in str(run.estimate(lambda x: jnp.zeros(120) + x[0]))
    assert str(run.estimate(lambda x: x[0])).splitlines()[1].split()[0] == f"{float(run.mean()[0]):.4g}"


def test_a_burn_in_that_leaves_nothing_is_named():
    with pytest.raises(ValueError, match=r"`burn_in` must be below `num_steps`, 500; got 1000\. Lower it"):
        iso.sample(NORMAL, iso.sgld(0.1), num_steps=500, burn_in=1_000, init=jnp.zeros(2))


def test_a_log_prior_that_is_no_number_is_named():
    potential = iso.from_likelihood(lambda x, y: -((y - x[0]) ** 2), lambda x: -(x**2), np.zeros(6, np.float32))
    with pytest.raises(
        ValueError, match=r"`log_prior` must be a function that returns one real scalar; got float32\[2\]"
    ):
        iso.sample(potential, iso.sgld(0.1), num_steps=5, init=jnp.zeros(2))


X = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)


def test_a_learning_rate_for_mean_losses_is_named():
    potential = iso.from_nnx(lambda rngs: nnx.Linear(3, 2, rngs=rngs), "squared_error", (X, X[:, :2]), weight_decay=1.0)
    with pytest.raises(
        DivergenceError, match=r"sums over all N examples, .*`iso.potentials.to_bayesian\(learning_rate"
    ):
        iso.sample(potential, iso.sgld(1.0), num_steps=600, burn_in=500, num_chains=2)


def test_a_model_without_hidden_units_is_not_excused():
    potential = iso.from_nnx(lambda rngs: nnx.Linear(3, 1, rngs=rngs), "squared_error", (X, X[:, 0]), weight_decay=1.0)
    run = iso.sample(potential, iso.sgld(1e-6), num_steps=400, num_chains=4)
    notes = " ".join(run.summary().notes)
    assert "Chains disagree" in notes
    assert "change places" not in notes


def test_a_linen_class_is_no_module_and_bytes_have_a_remedy():
    with pytest.raises(
        ValueError, match=r"`module` must be a linen module; got the class Dense\. Make one of it: `iso.fr"
    ):
        iso.from_linen(linen.Dense, "squared_error", (X, X[:, 0]))
    images = jnp.full((1, 2, 2, 1), 255, jnp.uint8)
    np.testing.assert_allclose(iso.networks.Normalize((0.5,), (0.25,))(images), 2.0)
