"""Networks have the published numbers of weights, start as they should, and carry statistics."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from isotherm.networks import CNN, MLP, bottleneck_resnet, num_parameters, resnet
from isotherm_thesis.models import wide_resnet

KEY = nnx.Rngs(0)


def shapes_only(build):
    """The module with abstract weights: counts without memory."""
    return nnx.eval_shape(lambda: build(nnx.Rngs(0)))


# With padded shortcuts, as published beside He et al.'s 0.27, 0.46 and 0.85 million; wide ones: 36.5 and 11.0 million.
PUBLISHED = {
    "ResNet-20": (lambda r: resnet(20, 10, shortcut="padding", rngs=r), 269_722),
    "ResNet-32": (lambda r: resnet(32, 10, shortcut="padding", rngs=r), 464_154),
    "ResNet-56": (lambda r: resnet(56, 10, shortcut="padding", rngs=r), 853_018),
    "WRN-28-10": (lambda r: wide_resnet(28, 10, 10, rngs=r), 36_479_194),
    "WRN-28-10, 100 classes": (lambda r: wide_resnet(28, 10, 100, rngs=r), 36_536_884),
    "WRN-16-8": (lambda r: wide_resnet(16, 8, 10, rngs=r), 10_961_370),
    "MLP 784-50-10": (lambda r: MLP(784, (50,), 10, rngs=r), 784 * 50 + 50 + 510),
    "CNN": (lambda r: CNN(rngs=r), 832 + 51_264 + 49 * 64 * 50 + 50 + 255),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_numbers_of_weights(name):
    build, number = PUBLISHED[name]
    assert num_parameters(shapes_only(build)) == number


@pytest.mark.parametrize("depth", [20, 32, 56])
def test_projections_add_two_small_layers(depth):
    # 1 x 1 convolutions 16 -> 32 and 32 -> 64 with BatchNorm: 512 + 64 + 2048 + 128.
    counts = [
        num_parameters(shapes_only(lambda r, s=s: resnet(depth, 10, shortcut=s, rngs=r)))
        for s in ("projection", "padding")
    ]
    assert counts[0] - counts[1] == 2752


def test_the_thesis_resnet_56_has_83_layers():
    module = shapes_only(lambda r: bottleneck_resnet(100, rngs=r))
    kernels = [leaf for leaf in jax.tree.leaves(nnx.state(module, nnx.Param)) if len(leaf.shape) == 4]
    shortcuts = 3
    assert len(kernels) - shortcuts + 1 == 83
    # By hand: stem 448 + 32; a stage of width w with inputs i: 4 convolutions' weights and BatchNorms.
    total, inputs = 16 * 27 + 32, 16
    for width in (16, 32, 64):
        for block in range(9):
            total += inputs * width + 9 * width**2 + 4 * width**2 + 2 * (2 * width + 4 * width)
            total += inputs * 4 * width + 8 * width if block == 0 else 0
            inputs = 4 * width
    assert num_parameters(module) == total + 256 * 100 + 100


def test_convolutions_start_by_fan_out():
    module = resnet(20, 10, rngs=nnx.Rngs(0))
    kernel = np.asarray(module.blocks[-1].convolutions[1].kernel[...])
    assert kernel.std() == pytest.approx(np.sqrt(2 / (9 * 64)), rel=0.03)
    # Not cut off at two standard deviations.
    assert np.abs(kernel).max() > 3 * kernel.std()


@pytest.mark.parametrize(
    "build",
    [
        lambda r: resnet(8, 10, rngs=r),
        lambda r: bottleneck_resnet(10, num_blocks=1, rngs=r),
        lambda r: wide_resnet(10, 1, 10, rngs=r),
    ],
)
def test_image_networks_give_logits_and_keep_statistics(build):
    module = build(nnx.Rngs(0))
    before = jax.tree.map(jnp.copy, nnx.state(module, nnx.BatchStat))
    outputs = module(jax.random.normal(jax.random.key(1), (4, 32, 32, 3)))
    assert outputs.shape == (4, 10)
    assert np.all(np.isfinite(outputs))
    after = nnx.state(module, nnx.BatchStat)
    moved = [not np.allclose(a, b) for a, b in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)]
    assert all(moved)


def test_wrong_depths_are_refused():
    with pytest.raises(ValueError, match="`depth` must be 6 n"):
        resnet(21, 10, rngs=KEY)
    with pytest.raises(ValueError, match="`depth` must be 6 n"):
        wide_resnet(20, 2, 10, rngs=KEY)
    with pytest.raises(ValueError, match="`shortcut` must be one of"):
        resnet(20, 10, shortcut="none", rngs=KEY)
