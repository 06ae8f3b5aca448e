"""Temperatures over whole positions: against exact laws, and notes on networks whose single weights show nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from sklearn.datasets import load_digits

import isotherm as iso
from isotherm.foundation.checks import UNKNOWN_BIAS, WRONG_TEMPERATURE
from isotherm.run.bias import error_of
from tests.laws.test_bias import momentum_excess

MEAN, TEMPERATURE, STEP, NOISE = 3.0, 2.0, 0.1, 4.0
RATES = {"loose": 1.0, "stiff": 5.0}
SIZES = {"loose": 60, "stiff": 20}
NAMED = "numbers of the position, gradients at the draws correspond to"


def bowl(x):
    return jnp.sum(jnp.stack([0.5 * rate * jnp.sum((x[name] - MEAN) ** 2) for name, rate in RATES.items()]))


def start(key):
    return {name: MEAN + jax.random.normal(key, (size,)) for name, size in SIZES.items()}


def heats_of(run):
    assert run.bias is not None
    return run.bias.leaf_heats[0], error_of(run.bias.leaf_heats)


def sampled(potential, sampler, **changes):
    settings = {"num_steps": 40_000, "num_chains": 4, "burn_in": 1_000, "thinning": 20, "init": start} | changes
    return iso.sample(potential, sampler, progress=False, **settings)


def langevin_excess(rate, noise=0.0):
    """That of x <- x - eps (rate x + noise) + sqrt(2 eps tau) xi, an autoregression."""
    return (1.0 + STEP * noise**2 / (2.0 * TEMPERATURE)) / (1.0 - 0.5 * STEP * rate) - 1.0


@pytest.mark.parametrize(
    ("potential", "sampler", "excess"),
    [
        (bowl, iso.sgld(STEP, temperature=TEMPERATURE), langevin_excess),
        (
            iso.with_noise(iso.from_energy(bowl), gradient_scale=NOISE),
            iso.sgld(STEP, temperature=TEMPERATURE),
            lambda rate: langevin_excess(rate, NOISE),
        ),
        (
            bowl,
            iso.sghmc(STEP, temperature=TEMPERATURE, friction=0.5),
            lambda rate: momentum_excess(STEP * rate, 0.5),
        ),
    ],
    ids=["sgld", "noise", "sghmc"],
)
def test_leaves_of_a_normal_law(potential, sampler, excess):
    found, errors = heats_of(sampled(potential, sampler))
    of_leaves = [excess(RATES[name]) for name in sorted(RATES)]
    whole = np.average(of_leaves, weights=[SIZES[name] for name in sorted(RATES)])
    assert np.all(np.abs(found - [whole, *of_leaves]) < 4 * errors)
    # A temperature that is off by a tenth would be seen in each.
    assert np.all(4 * errors < 0.1)


def test_a_box_leaves_them_unknown():
    box = (MEAN - 1.0, MEAN + 1.0)
    run = sampled(
        bowl,
        iso.sgld(0.01, box=box),
        init=lambda key: {name: jnp.full(size, MEAN) for name, size in SIZES.items()},
        num_steps=2_000,
    )
    assert np.all(heats_of(run)[0] == 0.0)


@pytest.mark.parametrize(
    ("step", "num_steps", "word"),
    [
        (STEP, 20_000, "energies, losses and scales are too high"),
        (1e-4, 2_000, "still in the burn-in"),
        (2e-3, 60_000, None),
    ],
)
def test_notes_on_large_positions(step, num_steps, word):
    # With a little noise, so that the temperatures of single coordinates are too uncertain to say the same.
    potential = iso.with_noise(iso.from_energy(bowl), gradient_scale=0.1)
    run = sampled(potential, iso.sgld(step, temperature=TEMPERATURE), num_steps=num_steps)
    notes = [note for note in run.summary().notes if NAMED in note]
    assert [word in note for note in notes] == [True] * (word is not None)
    if word is not None and step == STEP:
        assert "in `stiff` to 1.3" in notes[0]


@pytest.fixture(scope="module")
def digits():
    inputs, labels = load_digits(return_X_y=True)
    return (inputs[:500, :32] / 16.0).astype(np.float32), labels[:500].astype(np.int32)


def test_a_network_whose_loss_is_too_high_is_named(digits):
    """Every weight is widened by too little to be seen; the loss is off by many errors."""

    class Small(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(32, 8, rngs=rngs), nnx.Linear(8, 10, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.first(x)))

    potential = iso.from_nnx(Small, "cross_entropy", digits, batch_size=50, weight_decay=5.0)
    settings = {"num_chains": 4, "burn_in": 5_000, "thinning": 50, "progress": False}
    long = iso.sample(potential, iso.sghmc(5e-4), num_steps=20_000, **settings)
    short = iso.sample(potential, iso.sghmc(2.5e-5), num_steps=60_000, **settings)
    energies = [float(np.mean(np.asarray(run.energies))) for run in (long, short)]
    named = [[note for note in run.summary().notes if NAMED in note] for run in (long, short)]
    assert energies[0] > energies[1] + 15.0
    assert [len(notes) for notes in named] == [1, 0]
    assert "larger batches" in named[0][0]


def test_they_are_kept_in_a_folder(tmp_path):
    run = sampled(bowl, iso.sgld(STEP), num_steps=2_000, out=tmp_path / "run")
    loaded = iso.load(tmp_path / "run")
    assert loaded.bias is not None
    assert np.array_equal(heats_of(run)[0], heats_of(loaded)[0])


def names_of(found):
    return {check.name for check in found.checks}


def test_a_bias_that_is_not_known_is_noted():
    large = sampled(bowl, iso.sgld(0.01), num_steps=2_000)
    assert UNKNOWN_BIAS.name in names_of(large.estimate(lambda x: x["loose"][0]))
    assert UNKNOWN_BIAS.name not in names_of(large.summary())
    small = iso.sample(lambda x: 0.5 * x @ x, iso.sgld(0.1), num_steps=2_000, num_chains=4, init=jnp.zeros(2))
    assert UNKNOWN_BIAS.name not in names_of(small.estimate(lambda x: x))
    descent = sampled(bowl, iso.sgd(0.01), num_steps=2_000)
    assert UNKNOWN_BIAS.name not in names_of(descent.estimate(lambda x: x["loose"][0]))


def regression_with_a_scale(num_coefficients, batch_size):
    """Coefficients and the scale of the noise, whose batches heat all of them a little, and the scale most."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(2_000, num_coefficients))
    targets = inputs @ rng.normal(size=num_coefficients) + rng.normal(size=2_000)

    def log_likelihood(x, examples):
        inputs, targets = examples
        return -0.5 * ((targets - inputs @ x["beta"]) / x["sigma"]) ** 2 - jnp.log(x["sigma"])

    log_prior = lambda x: -0.5 * jnp.sum(x["beta"] ** 2) - 0.5 * x["sigma"] ** 2  # noqa: E731
    data = (inputs.astype(np.float32), targets.astype(np.float32))
    potential = iso.from_likelihood(log_likelihood, log_prior, data, batch_size=batch_size)
    return iso.transforms.constrain(potential, {"sigma": iso.transforms.positive()})


@pytest.mark.parametrize(("batch_size", "is_named"), [(20, True), (2_000, False)])
def test_small_positions_are_named_as_a_whole_too(batch_size, is_named):
    """No single one of 41 numbers is wider than its error; together they are, and the scale is off by two deviations."""
    potential = regression_with_a_scale(40, batch_size)

    def apart(key):
        return {"beta": 0.3 * jax.random.normal(key, (40,)), "sigma": jnp.exp(0.3 * jax.random.normal(key))}

    run = sampled(potential, iso.sgld(2.5e-5), num_steps=20_000, burn_in=4_000, init=apart)
    assert any(NAMED in note for note in run.summary().notes) == is_named
    assert (WRONG_TEMPERATURE.name in names_of(run.estimate(lambda x: x["sigma"]))) == is_named
    shown = [row.name for row in run.summary().rows]
    assert "sigma" in shown


def test_slow_chains_do_not_look_cold():
    """Around means of their own they would, by the share of the distribution that they have not seen."""
    slow = sampled(bowl, iso.sgld(2e-3, temperature=TEMPERATURE), num_steps=3_000, num_chains=8)
    found, errors = heats_of(slow)
    assert abs(found[0]) < 4 * errors[0] + 0.02
    assert slow.bias is not None
    own = np.mean(np.var(slow.bias.values, axis=1)) / np.mean(np.var(slow.bias.values, axis=(0, 1)))
    assert own < 0.9


def two_narrow_wells(x):
    """Normal laws of variance 1/4 around 5 and -5, of masses .7 and .3."""
    wells = [jnp.log(mass) - 2.0 * jnp.sum((x - center) ** 2) for mass, center in ((0.7, 5.0), (0.3, -5.0))]
    return -jnp.logaddexp(*wells)


def in_either_well(key):
    center = jnp.where(jax.random.bernoulli(key, 0.7), 5.0, -5.0)
    return center + 0.5 * jax.random.normal(jax.random.fold_in(key, 1), (2,))


@pytest.mark.parametrize("energy_scale", [0.0, 3.0])
def test_noise_widens_each_of_several_wells(energy_scale):
    """x' = x - eps (4 x + noise) + sqrt(2 eps) xi in each well: across both, gradients say little of how wide either is."""
    step, noise = 0.02, 4.0
    potential = iso.with_noise(iso.from_energy(two_narrow_wells), energy_scale=energy_scale, gradient_scale=noise)
    settings = {"num_steps": 20_000, "num_chains": 16, "burn_in": 500, "thinning": 10, "init": in_either_well}
    run = sampled(potential, iso.sgld(step), **settings)
    variance = (2.0 * step + (step * noise) ** 2) / (1.0 - (1.0 - 4.0 * step) ** 2)
    found = run.estimate(lambda x: (jnp.abs(x[0]) - 5.0) ** 2)
    assert abs(found.mean - variance) < 4.0 * found.std_error
    assert found.bias == pytest.approx(variance - 0.25, rel=0.1)
    excess, error = heats_of(run)
    np.testing.assert_allclose(excess[0], 4.0 * variance - 1.0, atol=4.0 * error[0])
    assert error[0] < 0.05
    assert not any("jumps" in note or "differ by about" in note for note in run.summary().notes)
