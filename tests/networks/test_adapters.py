"""Networks of three libraries as potentials: the same numbers from all of them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

import isotherm as iso
from isotherm.networks import Gaussian, from_equinox, from_linen, from_nnx

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 3)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(np.int32)
OPTIONS = {"batch_size": 40, "weight_decay": 2.0}
WEIGHTS = {
    "first.bias": RNG.standard_normal(5).astype(np.float32),
    "first.kernel": RNG.standard_normal((3, 5)).astype(np.float32),
    "last.bias": RNG.standard_normal(2).astype(np.float32),
    "last.kernel": RNG.standard_normal((5, 2)).astype(np.float32),
}


class InNnx(nnx.Module):
    def __init__(self, rngs):
        self.first, self.last = nnx.Linear(3, 5, rngs=rngs), nnx.Linear(5, 2, rngs=rngs)

    def __call__(self, x):
        return self.last(nnx.tanh(self.first(x)))


class InLinen(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(2, name="last")(jnp.tanh(linen.Dense(5, name="first")(x)))


class Dense(eqx.Module):
    bias: jax.Array
    kernel: jax.Array

    def __call__(self, x):
        return x @ self.kernel + self.bias


class InEquinox(eqx.Module):
    first: Dense
    last: Dense

    def __call__(self, x):
        return self.last(jnp.tanh(self.first(x)))


class WithTheirLinear(eqx.Module):
    first: eqx.nn.Linear
    last: eqx.nn.Linear

    def __call__(self, x):
        return self.last(jnp.tanh(self.first(x)))


def nested(flat):
    return {layer: {kind: flat[f"{layer}.{kind}"] for kind in ("bias", "kernel")} for layer in ("first", "last")}


def trajectory(potential, init, sampler):
    run = iso.sample(potential, sampler, num_steps=60, num_chains=2, thinning=20, init=init, progress=False)
    return run, [np.asarray(leaf) for leaf in jax.tree.leaves(run.draws)]


def test_one_network_in_three_libraries_has_one_trajectory():
    sampler = iso.sghmc(1e-3)
    own = InEquinox(
        Dense(jnp.asarray(WEIGHTS["first.bias"]), jnp.asarray(WEIGHTS["first.kernel"])),
        Dense(jnp.asarray(WEIGHTS["last.bias"]), jnp.asarray(WEIGHTS["last.kernel"])),
    )
    cases = [
        (from_nnx(InNnx, "cross_entropy", (X, Y), **OPTIONS), WEIGHTS),
        (from_linen(InLinen(), "cross_entropy", (X, Y), **OPTIONS), nested(WEIGHTS)),
        (from_equinox(own, "cross_entropy", (X, Y), **OPTIONS), WEIGHTS),
    ]
    runs = [trajectory(potential, init, sampler) for potential, init in cases]
    for run, leaves in runs[1:]:
        np.testing.assert_allclose(run.energies, runs[0][0].energies, rtol=1e-5)
        for one, other in zip(leaves, runs[0][1], strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)
    # They moved: otherwise the comparison would say nothing.
    assert not np.allclose(runs[0][1][0][:, :, 0], runs[0][1][0][:, :, -1], atol=1e-3)


def test_layers_of_equinox_follow_the_same_gradients():
    keys = jax.random.split(jax.random.key(0))
    model = WithTheirLinear(eqx.nn.Linear(3, 5, key=keys[0]), eqx.nn.Linear(5, 2, key=keys[1]))
    theirs = from_equinox(model, "cross_entropy", (X, Y), **OPTIONS)
    weights = {
        "first.bias": model.first.bias,
        "first.kernel": model.first.weight.T,
        "last.bias": model.last.bias,
        "last.kernel": model.last.weight.T,
    }
    ours = from_nnx(InNnx, "cross_entropy", (X, Y), **OPTIONS)
    found, _ = trajectory(theirs, theirs.init, iso.msgd(1e-3))
    expected, _ = trajectory(ours, weights, iso.msgd(1e-3))
    np.testing.assert_allclose(
        found.draws["first.weight"], np.swapaxes(expected.draws["first.kernel"], -1, -2), atol=2e-5
    )


@pytest.mark.parametrize("kind", ["module", "function"])
def test_starts_are_the_modules_or_every_chains_own(kind):
    module = InNnx if kind == "function" else InNnx(nnx.Rngs(3))
    potential = from_nnx(module, "cross_entropy", (X, Y), **OPTIONS)
    run = iso.sample(potential, iso.sgld(1e-6), num_steps=1, num_chains=3, init=potential.init, progress=False)
    starts = run.draws["first.kernel"][:, 0]
    assert np.array_equal(starts[0], starts[1]) == (kind == "module")


def test_the_module_comes_back():
    potential = from_nnx(InNnx, "cross_entropy", (X, Y), **OPTIONS)
    module = potential.module(WEIGHTS)
    expected = (
        np.tanh(X @ WEIGHTS["first.kernel"] + WEIGHTS["first.bias"]) @ WEIGHTS["last.kernel"] + WEIGHTS["last.bias"]
    )
    np.testing.assert_allclose(module(X), expected, atol=1e-5)
    np.testing.assert_allclose(potential.outputs(WEIGHTS, X), expected, atol=1e-5)


def test_the_energy_is_that_of_the_formula():
    potential = from_nnx(InNnx, "cross_entropy", (X, Y), weight_decay=2.0)
    logits = (
        np.tanh(X @ WEIGHTS["first.kernel"] + WEIGHTS["first.bias"]) @ WEIGHTS["last.kernel"] + WEIGHTS["last.bias"]
    )
    log_probabilities = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    loss = -log_probabilities[np.arange(len(Y)), Y].sum()
    prior = sum((leaf**2).sum() for leaf in WEIGHTS.values())
    assert float(potential.full_energy(WEIGHTS)) == pytest.approx(loss + prior, rel=1e-5)


def test_losses_of_regressions():
    outputs, targets = jnp.array([[1.0], [2.0]]), jnp.array([3.0, 2.5])
    np.testing.assert_allclose(iso.networks.squared_error(outputs, targets), [4.0, 0.25])
    # -log N(3; 1, 2^2) = 2^2 / (2 * 4) + log 2 + log sqrt(2 pi).
    np.testing.assert_allclose(Gaussian(2.0)(outputs, targets)[0], 0.5 + np.log(2) + 0.5 * np.log(2 * np.pi), rtol=1e-6)


def test_mixed_precision_keeps_weights_and_statistics_single():
    class Net(nnx.Module):
        def __init__(self, rngs):
            self.first, self.norm = nnx.Linear(3, 5, rngs=rngs), nnx.BatchNorm(5, rngs=rngs)
            self.last = nnx.Linear(5, 2, rngs=rngs)
            self.seen = []

        def __call__(self, x):
            hidden = self.norm(self.first(x))
            seen.append(hidden.dtype)
            return self.last(hidden)

    seen = []
    half, single = (
        from_nnx(Net(nnx.Rngs(0)), "cross_entropy", (X, Y), compute_dtype=dtype, **OPTIONS)
        for dtype in (jnp.bfloat16, None)
    )
    seen.clear()
    found = half.full_energy(half.init)
    # BatchNorm's single-precision statistics must not pull what follows up to single precision.
    assert set(seen) == {jnp.dtype(jnp.bfloat16)}
    assert found.dtype == jnp.float32
    assert float(found) == pytest.approx(float(single.full_energy(single.init)), rel=0.02)
    run = iso.sample(half, iso.sghmc(1e-4), num_steps=20, thinning=10, init=half.init, progress=False)
    assert {str(leaf.dtype) for leaf in jax.tree.leaves((run.draws, run.model_state))} == {"float32"}


def test_units_convert_both_ways():
    assert iso.potentials.to_bayesian(0.1, 5e-4, 50_000) == pytest.approx((2e-6, 25.0))
    assert iso.potentials.to_standard(2e-6, 25.0, 50_000) == pytest.approx((0.1, 5e-4))
    with pytest.raises(ValueError, match="`num_data` must be an integer of at least 1"):
        iso.potentials.to_bayesian(0.1, 5e-4, 0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dropout": "maybe"}, "`dropout` must be one of"),
        ({"weight_decay": -1.0}, "`weight_decay` must be"),
        ({"weight_decay": 1.0, "log_prior": lambda w: 0.0}, "`log_prior` must be None beside a weight decay"),
        ({"compute_dtype": jnp.int8}, "`compute_dtype` must be a floating-point type"),
        ({"batch_size": 91}, "`batch_size` must be at most the number of examples, 90"),
        ({"is_streamed": True}, "`batch_size` must be a number of examples; got None"),
        ({"batch_size": 10, "num_used": 200}, "`num_used` must be at most the number of rows, 90"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        from_nnx(InNnx, "cross_entropy", (X, Y), **options)


def test_wrong_modules_data_and_losses_are_refused():
    with pytest.raises(ValueError, match=r"`module` must be an nnx.Module or a function"):
        from_nnx(3, "cross_entropy", (X, Y))
    with pytest.raises(ValueError, match=r"`model` must be an eqx.Module or a function"):
        from_equinox(3, "cross_entropy", (X, Y))
    with pytest.raises(ValueError, match="`data` must be a pair"):
        from_nnx(InNnx, "cross_entropy", X)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="`loss` must be one of"):
        from_nnx(InNnx, "hinge", (X, Y))
