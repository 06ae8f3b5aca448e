"""What is said of networks that cannot be right: no prior, nothing learned, losses and inputs that do not fit."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.networks.losses import binary_cross_entropy, constant_loss, cross_entropy, squared_error
from isotherm.predictive import outputs_of_draws, predict
from tests.networks.test_batch_norm import InEquinox

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3)).astype(np.float32)
LABELS, VALUES = (X[:, 0] > 0).astype(np.int32), 2.0 * X[:, 0]
NO_PRIOR, NOTHING_LEARNED = "The network has no prior", "The network predicts no better than without its inputs"


def linear(number):
    return lambda rngs: nnx.Linear(3, number, rngs=rngs)


def sampled(potential, sampler=None, num_steps=2_000):
    settings = {"num_steps": num_steps, "num_chains": 2, "progress": False}
    return iso.sample(potential, sampler or iso.sghmc(1e-3), **settings)


def named(run, beginning):
    return sum(note.startswith(beginning) for note in run.summary().notes)


def test_a_network_without_a_prior_is_told_so():
    listed: Any = [X, LABELS]
    flat = iso.from_nnx(linear(2), "cross_entropy", listed, batch_size=20)
    assert named(sampled(flat), NO_PRIOR) == 1
    # Descents look for a minimum, and want none.
    assert named(sampled(flat, iso.msgd(1e-3)), NO_PRIOR) == 0
    held = iso.from_nnx(linear(2), "cross_entropy", (X, LABELS), batch_size=20, weight_decay=1.0)
    assert named(sampled(held), NO_PRIOR) == 0


def test_priors_of_optimizers_and_modules_that_are_made_are_told():
    habit = iso.from_nnx(linear(2), "cross_entropy", (X, LABELS), batch_size=20, weight_decay=5e-4)
    assert named(sampled(habit), "The prior of precision 0.0005 allows weights as large as 45") == 1
    made = iso.from_nnx(linear(2)(nnx.Rngs(0)), "cross_entropy", (X, LABELS), batch_size=20, weight_decay=1.0)
    notes = [note for note in sampled(made).summary().notes if note.startswith("All chains started at one point")]
    assert ["Pass the network's class" in note for note in notes] == [True]


@pytest.mark.parametrize(
    ("loss", "targets", "outputs"), [("cross_entropy", LABELS, 2), (iso.networks.Gaussian(0.5), VALUES, 1)]
)
def test_a_network_that_learned_nothing_is_told_so(loss, targets, outputs):
    class Dead(nnx.Module):
        def __init__(self, rngs):
            self.first, self.last = nnx.Linear(3, 8, rngs=rngs), nnx.Linear(8, outputs, rngs=rngs)

        def __call__(self, x):
            return self.last(nnx.relu(self.first(x) - 1e6))

    dead = iso.from_nnx(Dead, loss, (X, targets), batch_size=20, weight_decay=1.0)
    alive = iso.from_nnx(linear(outputs), loss, (X, targets), batch_size=20, weight_decay=1.0)
    assert [named(sampled(potential), NOTHING_LEARNED) for potential in (dead, alive)] == [1, 0]


def test_the_prior_of_a_wide_network_is_no_loss():
    """A thousand weights have a prior energy of about 500 temperatures, and all losses together are 42 at most."""
    wide = lambda rngs: nnx.Sequential(nnx.Linear(3, 170, rngs=rngs), nnx.relu, nnx.Linear(170, 2, rngs=rngs))  # noqa: E731
    potential = iso.from_nnx(wide, "cross_entropy", (X, LABELS), batch_size=20, weight_decay=1.0)
    run = sampled(potential, iso.sghmc(3e-4), num_steps=4_000)
    assert np.mean(np.asarray(run.energies)[:, -1_000:]) > 300.0
    assert named(run, NOTHING_LEARNED) == 0


def test_losses_of_one_prediction_for_all():
    assert constant_loss(cross_entropy, np.array([0, 0, 1, 2])) == pytest.approx(2 * np.log(2) + 2 * np.log(4))
    assert constant_loss(squared_error, np.array([1.0, 2.0, 6.0])) == pytest.approx(4.0 + 1.0 + 9.0)
    scaled = constant_loss(iso.networks.Gaussian(2.0), np.array([[1.0], [3.0]]))
    assert scaled == pytest.approx(0.25 + 2 * np.log(2.0) + np.log(2 * np.pi))
    binary = constant_loss(binary_cross_entropy, np.array([1, 0, 0, 0]))
    assert binary == pytest.approx(-np.log(0.25) - 3 * np.log(0.75))
    assert constant_loss(binary_cross_entropy, np.ones(3)) == 0.0
    assert constant_loss(lambda outputs, targets: targets, np.array([1.0])) is None


def test_losses_that_mix_examples_are_refused():
    own = lambda outputs, targets: (outputs[:, 0] - targets) ** 2  # noqa: E731
    assert iso.from_nnx(linear(1), own, (X, VALUES), batch_size=20).loss is own
    for mixed in (
        lambda outputs, targets: (outputs[:, 0] - jnp.mean(targets)) ** 2,
        lambda outputs, targets: jnp.full(len(outputs), jnp.mean(own(outputs, targets))),
        lambda outputs, targets: -jax.nn.log_softmax(outputs[:, 0]),
    ):
        with pytest.raises(
            ValueError, match="`loss` must be a function whose value for an example is its own; got one"
        ):
            iso.from_nnx(linear(1), mixed, (X, VALUES), batch_size=20)


def test_predictions_want_a_classifier_and_its_inputs():
    own = iso.from_nnx(linear(1), lambda o, t: (o[:, 0] - t) ** 2, (X, VALUES), batch_size=20, weight_decay=1.0)
    run = sampled(own, num_steps=20)
    with pytest.raises(
        ValueError, match="`potential` must be that of a classifier; got a loss of your own that does not"
    ):
        predict(run, own, X)
    for wrong in (X[:, :2], X[0], X[:, :, None]):
        with pytest.raises(
            ValueError, match=r"`inputs` must be of shape \(60, 3\) but for the number of examples; got"
        ):
            outputs_of_draws(run, own, wrong)
    shares = np.stack([0.2 + 0.6 * LABELS, 0.8 - 0.6 * LABELS], axis=1).astype(np.float32)
    soft = lambda outputs, targets: -jnp.sum(targets * jax.nn.log_softmax(outputs), axis=-1)  # noqa: E731
    classes = iso.from_nnx(linear(2), soft, (X, shares), batch_size=20, weight_decay=1.0, outputs="logits")
    assert predict(sampled(classes, num_steps=20), classes, X[:5]).probabilities.shape == (5, 2)


def test_lists_of_numbers_are_no_data():
    with pytest.raises(ValueError, match=r"`data` must be .*; got lists of numbers. Make arrays of them"):
        iso.from_nnx(linear(2), "cross_entropy", (X.tolist(), LABELS.tolist()), batch_size=20)


def test_a_list_in_the_place_of_a_vector_is_told_so():
    with pytest.raises(ValueError, match=r"`init` is a list, .* such as init=jnp.array"):
        iso.sample(lambda x: jnp.sum(x**2), iso.sgld(0.1), num_steps=10, init=[0.0, 0.0])
    fine = iso.sample(lambda x: x[0] ** 2 + x[1] ** 2, iso.sgld(0.1), num_steps=10, init=[0.0, 0.0], progress=False)
    assert [leaf.shape for leaf in fine.draws] == [(1, 10), (1, 10)]


def test_equinox_modules_made_with_their_state():
    potential = iso.from_equinox(
        eqx.nn.make_with_state(InEquinox), "cross_entropy", (X, LABELS), batch_size=20, weight_decay=1.0
    )
    run = sampled(potential, num_steps=200)
    assert predict(run, potential, X).probabilities.shape == (60, 2)
    starts = [jax.tree.leaves(potential.init(jax.random.key(seed)))[0] for seed in (0, 1)]
    assert not np.array_equal(*starts)
    statistics = jax.tree.leaves(run.model_state)
    assert any(np.ptp(np.asarray(leaf, np.float64)) > 0 for leaf in statistics)


def test_networks_and_losses_that_fail_say_on_which_shapes():
    with pytest.raises(ValueError, match=r"`network` must be one that takes the inputs of the data; got .* \(20, 2\)"):
        sampled(iso.from_nnx(linear(2), "squared_error", (X[:, :2], VALUES), batch_size=20))
    with pytest.raises(
        ValueError, match=r"`loss` must be one that takes outputs and targets; got .* targets shape \(20,\)"
    ):
        sampled(iso.from_nnx(linear(2), "squared_error", (X, VALUES), batch_size=20))
    averaged = lambda outputs, targets: jnp.mean((outputs[:, 0] - targets) ** 2)  # noqa: E731
    with pytest.raises(
        ValueError, match=r"`loss` must be a function that returns one value per example, shape \(20,\)"
    ):
        sampled(iso.from_nnx(linear(1), averaged, (X, VALUES), batch_size=20))
