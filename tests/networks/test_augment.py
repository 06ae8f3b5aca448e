"""Augmentation: what it may do to an image, and that it follows the run's seed."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import isotherm as iso
from isotherm.networks.augment import Crop, Erase, Flip, InTurn, Normalize, cifar_augmentation

KEY = jax.random.key(0)
IMAGES = jnp.asarray(np.random.default_rng(0).integers(1, 255, (400, 12, 10, 3)).astype(np.uint8))
LABELS = jnp.arange(400)


def test_crops_are_all_the_shifts_of_the_padded_image():
    found, labels = Crop(2)(KEY, (IMAGES, LABELS))
    assert found.dtype == jnp.uint8
    assert np.array_equal(labels, LABELS)
    padded = np.pad(np.asarray(IMAGES), ((0, 0), (2, 2), (2, 2), (0, 0)))
    shifts = []
    for before, after in zip(padded, np.asarray(found), strict=True):
        hits = [(i, j) for i in range(5) for j in range(5) if np.array_equal(before[i : i + 12, j : j + 10], after)]
        assert len(hits) == 1
        shifts += hits
    # 25 equally likely shifts of 400 images: each 16 times, with a standard deviation of 4.
    counts = np.bincount([5 * i + j for i, j in shifts], minlength=25)
    assert counts.min() > 2
    assert counts.max() < 36


def test_half_of_the_images_are_mirrored():
    found = np.asarray(Flip()(KEY, (IMAGES, LABELS))[0])
    same = (found == np.asarray(IMAGES)).all(axis=(1, 2, 3))
    mirrored = (found == np.asarray(IMAGES)[:, :, ::-1]).all(axis=(1, 2, 3))
    assert np.all(same ^ mirrored)
    assert abs(same.mean() - 0.5) < 0.1


def test_erased_rectangles_have_the_sizes_they_should():
    images = jnp.zeros((2_000, 32, 32, 3), jnp.uint8)
    found = np.asarray(Erase()(KEY, (images, jnp.zeros(2_000)))[0])
    is_filled = found[..., 0] == 151
    np.testing.assert_array_equal(found[is_filled][0], [151, 147, 137])
    shares = is_filled.mean(axis=(1, 2))
    assert abs((shares > 0).mean() - 0.5) < 0.04
    filled = is_filled[shares > 0]
    assert shares[shares > 0].min() > 0.01
    assert shares.max() < 0.43
    assert shares[shares > 0].mean() == pytest.approx(0.21, abs=0.02)
    for image in filled[:50]:
        rows, columns = np.flatnonzero(image.any(axis=1)), np.flatnonzero(image.any(axis=0))
        assert image.sum() == (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)


def test_pixels_are_scaled_in_training_and_prediction():
    scaled = Normalize((0.5, 0.25, 0.0), (0.5, 0.25, 1.0))(jnp.full((1, 1, 1, 3), 51, jnp.uint8))
    np.testing.assert_allclose(scaled[0, 0, 0], [-0.6, -0.2, 0.2], atol=1e-6)
    np.testing.assert_allclose(Normalize((0.5,), (0.5,))(jnp.full((1, 1, 1, 1), 0.75)), 0.5)
    np.testing.assert_allclose(Normalize((0.5,), (0.5,))(jnp.ones((2, 3), bool)), 1.0)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.uint16, np.uint32])
def test_only_bytes_say_what_white_is(dtype):
    """65,535 of 16 bits is white, and 1 of a mask: neither is a number out of 255."""
    with pytest.raises(
        ValueError, match=rf"`images` must be of type uint8, or .*; got type {np.dtype(dtype)}\. Convert"
    ):
        Normalize((0.5,), (0.5,))(jnp.ones((1, 1, 1, 1), dtype))


def test_several_in_turn_use_keys_of_their_own():
    both = InTurn((Flip(), Flip()))(KEY, (IMAGES, LABELS))[0]
    # With one key for both, every image would be mirrored twice or not at all.
    assert not np.array_equal(both, IMAGES)
    assert cifar_augmentation()(KEY, (IMAGES, LABELS))[0].shape == IMAGES.shape


def potential(augment):
    def log_likelihood(position, examples):
        return -0.5 * (jnp.mean(examples[0].astype(jnp.float32), axis=(1, 2, 3)) / 100 - position) ** 2

    data = (np.asarray(IMAGES), np.asarray(LABELS))
    return iso.from_likelihood(log_likelihood, None, data, batch_size=50, augment=augment)


def energies(seed, **options):
    run = iso.sample(
        potential(Erase(1.0)),
        iso.sgd(1e-9),
        num_steps=6,
        num_chains=2,
        init=jnp.zeros(()),
        seed=seed,
        progress=False,
        **options,
    )
    return np.asarray(run.energies)


def test_augmentation_follows_the_seed_alone():
    one = energies(0)
    np.testing.assert_array_equal(one, energies(0, block_length=1))
    assert not np.array_equal(one, energies(1))
    # Chains that share batches see the same changes, and every iteration sees others.
    np.testing.assert_array_equal(one[0], one[1])
    plain = iso.sample(potential(None), iso.sgd(1e-9), num_steps=6, init=jnp.zeros(()), progress=False)
    assert not np.allclose(one[0], np.asarray(plain.energies)[0], rtol=1e-4)


def test_an_anchor_sees_the_same_augmented_batch():
    sampler = iso.vr_resgld(1e-15, temperatures=(1.0, 2.0), refresh_every=3)
    run = iso.sample(potential(Erase(1.0)), sampler, num_steps=9, init=jnp.ones(()), progress=False)
    # Nothing moves, so that every energy is that of the full pass: any other augmentation would leave its noise.
    assert np.ptp(np.asarray(run.energies)) < 1e-3


def halved(images):
    return images[::2]


AUGMENTATIONS = {
    "of one argument": (
        lambda batch: batch,
        r"`augment` must be a function of 2 arguments; got one of \(batch\)\. Write `la",
    ),
    "none": ("flip", "`augment` must be a function; got 'flip'"),
    "images alone": (lambda key, batch: batch[0], r"as many arrays as it was given; got 1 for 2\. Return .* labels"),
    "fewer examples": (
        lambda key, batch: jax.tree.map(halved, batch),
        r"one row for each of 50 examples; got .*\(25, 12, 10",
    ),
    "on NumPy": (
        lambda key, batch: (np.asarray(batch[0]), batch[1]),
        "`augment` must be .*NumPy was called on an array of JAX",
    ),
    "failing": (lambda key, batch: batch["images"], "`augment` must be a function of .*; got TypeError: tuple indices"),
}


@pytest.mark.parametrize("name", AUGMENTATIONS)
def test_augmentations_that_cannot_be_one_are_refused_when_the_potential_is_built(name):
    augment, message = AUGMENTATIONS[name]
    with pytest.raises(ValueError, match=message):
        potential(augment)
    network = lambda rngs: nnx.Sequential(lambda x: x.reshape(len(x), -1) / 255, nnx.Linear(360, 400, rngs=rngs))  # noqa: E731
    build: Any = iso.from_nnx
    with pytest.raises(ValueError, match=message):
        build(network, "cross_entropy", (IMAGES, LABELS), batch_size=50, augment=augment, prepare=jnp.asarray)


@pytest.mark.parametrize(
    "augment",
    [
        lambda key, batch: [batch[0] / 255.0, batch[1]],
        lambda key, batch, scale=2: batch,
        lambda key, batch: (batch[0][:, 2:, 2:], batch[1]),
        functools.partial(lambda size, key, batch: batch, 3),
        InTurn((Flip(), lambda key, batch: batch)),
    ],
    ids=["a list of reals", "an option", "smaller images", "a part", "in turn"],
)
def test_augmentations_may_change_types_and_sizes(augment):
    assert potential(augment).augment is augment


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Normalize((0.5,), (0.0,)), "`deviation` must be a finite real number above 0"),
        (lambda: Normalize((0.5, np.nan), (1.0, 1.0)), "`mean` must be a finite real number; got nan"),
        (lambda: Normalize((0.5, 0.5), (1.0, 1.0, 1.0)), "`deviation` must be as many numbers as `mean`; got 2 and 3"),
        (lambda: Normalize((), ()), "`deviation` must be as many numbers as `mean`; got 0 and 0"),
        (
            lambda: Normalize((0.5,) * 3, (0.5,) * 3)(jnp.ones((4, 5, 5, 1))),
            r"`images` must be with channels last, 3 of them .*; got shape \(4, 5, 5, 1\)",
        ),
        (lambda: Crop(0), "`padding` must be an integer of at least 1"),
        (lambda: Erase(2.0), "`probability` must be"),
        (lambda: Erase(area=(0.4, 0.1)), "`area` must be a range"),
        (lambda: Erase(fill=(1.0,))(KEY, (IMAGES, LABELS)), "`fill` must be one value for each of 3 channels"),
    ],
)
def test_wrong_settings_are_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
