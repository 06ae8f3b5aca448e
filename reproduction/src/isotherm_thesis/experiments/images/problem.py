"""Images for training, for choices and for testing, and the posterior of a network on them."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from flax import nnx

import isotherm as iso
from isotherm.foundation.errors import check_choice, refuse
from isotherm.networks import Crop, Flip, InTurn, Normalize, ResNet, bottleneck_resnet, cifar_augmentation, resnet
from isotherm.networks.potential import NetworkPotential
from isotherm_thesis.data import load
from isotherm_thesis.experiments.images.setting import Setting
from isotherm_thesis.models import frn_resnet, wide_resnet

# The split of held-out images is the same for all seeds and methods.
_SPLIT_SEED = 2021
_NUM_KNOWN_DIGITS = 8
_MEAN, _DEVIATION = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)

NETWORKS: dict[str, Callable[[int, int, nnx.Rngs], nnx.Module]] = {
    "resnet8": lambda classes, channels, rngs: ResNet(1, classes, num_channels=channels, rngs=rngs),
    "resnet20": lambda classes, channels, rngs: resnet(20, classes, rngs=rngs),
    "resnet32": lambda classes, channels, rngs: resnet(32, classes, rngs=rngs),
    # What the thesis calls ResNet-56 has bottlenecks; the published network of that name is the other one.
    "resnet56": lambda classes, channels, rngs: bottleneck_resnet(classes, rngs=rngs),
    "resnet56-basic": lambda classes, channels, rngs: resnet(56, classes, rngs=rngs),
    "wrn-16-8": lambda classes, channels, rngs: wide_resnet(16, 8, classes, rngs=rngs),
    "wrn-28-10": lambda classes, channels, rngs: wide_resnet(28, 10, classes, rngs=rngs),
    "frn-resnet8": lambda classes, channels, rngs: frn_resnet(8, classes, num_channels=channels, rngs=rngs),
    "frn-resnet20": lambda classes, channels, rngs: frn_resnet(20, classes, num_channels=channels, rngs=rngs),
}


class ImageData(NamedTuple):
    """Images as stored, with labels.

    Attributes:
        train: images and labels that are trained on.
        held_out: others of the training set, for choices.
        test: images and labels that judge.
        outside: images of no known class.
        num_classes: of the labels.
    """

    train: tuple[np.ndarray, np.ndarray]
    held_out: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    outside: np.ndarray
    num_classes: int


class Problem(NamedTuple):
    """Images and the posterior of a network on them."""

    data: ImageData
    potential: NetworkPotential


def problem_of(setting: Setting) -> Problem:
    """The images of a setting with the posterior of its network."""
    data = load_images(setting)
    return Problem(data, potential_of(setting, data))


def load_images(setting: Setting) -> ImageData:
    """The images of a setting."""
    check_choice("data_set", setting.data_set, ("cifar100", "cifar10", "digits"))
    if setting.data_set == "digits":
        train, test, outside, num_classes = _digits()
    else:
        if setting.data_dir is None:
            refuse("data_dir", f"a folder that holds {setting.data_set} and svhn", "None", "Run `isotherm data get`.")
        data = load(setting.data_set, setting.data_dir)
        train, test = ((data[f"{part}_inputs"], data[f"{part}_labels"]) for part in ("train", "test"))
        outside = load("svhn", setting.data_dir)["test_inputs"]
        num_classes = 100 if setting.data_set == "cifar100" else 10
    order = np.random.default_rng(_SPLIT_SEED).permutation(len(train[0]))
    num_left = len(order) - setting.num_held_out
    num_train = num_left if setting.num_train is None else setting.num_train
    if not setting.batch_size <= num_train <= num_left:
        rule = f"between the batch size, {setting.batch_size}, and what is left of the training images, {num_left}"
        refuse("num_train", rule, num_train, "Give another number, or hold out fewer images.")
    # Without a choice to make the images stay in their order.
    used = np.arange(num_train) if num_train == len(order) else np.sort(order[:num_train])
    kept = np.sort(order[num_left:])
    return ImageData(
        (train[0][used], train[1][used].astype(np.int32)),
        (train[0][kept], train[1][kept].astype(np.int32)),
        (test[0], test[1].astype(np.int32)),
        outside[: setting.num_outside],
        num_classes,
    )


def potential_of(setting: Setting, data: ImageData) -> NetworkPotential:
    """The posterior of the setting's network, with the thesis' augmentation; couplings read the loss without the prior."""
    channels = data.train[0].shape[-1]
    make = NETWORKS[check_choice("network", setting.network, tuple(NETWORKS))]
    is_color = channels == 3
    normalize = Normalize(_MEAN, _DEVIATION) if is_color else Normalize((0.3,), (0.37,))
    augment = cifar_augmentation() if is_color else InTurn((Crop(1), Flip()))
    return iso.networks.from_nnx(
        lambda rngs: make(data.num_classes, channels, rngs),
        "cross_entropy",
        data.train,
        batch_size=setting.batch_size,
        weight_decay=setting.weight_decay,
        coupling_includes_prior=False,
        compute_dtype=setting.compute_dtype,
        prepare=normalize,
        augment=augment if setting.is_augmented else None,
    )


def _digits() -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], np.ndarray, int]:
    """Digits 0 to 7 of 8 x 8 pixels for training and testing; 8 and 9 are unknown."""
    from isotherm_thesis.experiments import small_sets

    inputs, labels = small_sets.digits()
    images = np.round(inputs * 255).astype(np.uint8).reshape(-1, 8, 8, 1)
    is_known = labels < _NUM_KNOWN_DIGITS
    known, classes = images[is_known], labels[is_known]
    return (known[::2], classes[::2]), (known[1::2], classes[1::2]), images[~is_known], _NUM_KNOWN_DIGITS
