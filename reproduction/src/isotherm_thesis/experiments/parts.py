"""In how many parts an experiment is run: as often as its `run` calls `log`, for the time that is left."""

from collections.abc import Callable
from typing import Any

from isotherm_thesis.targets import resgld_mixtures

_SCHEMES = 4


def _studies(config: Any) -> int:
    return len(config.sets) + sum(name in config.per_example for name in config.sets)


_NUM_PARTS: dict[str, Callable[[Any], int]] = {
    "mixture-resgld": lambda config: len(resgld_mixtures()),
    "mixture-vr": lambda config: 2 + len(config.batch_sizes),
    "round-trips": lambda config: _SCHEMES * len(config.rungs) + len(config.windows) + len(config.rejections),
    "few-rungs": lambda config: len(config.rungs) + len(config.noises),
    "modes25-deo": lambda config: 8,
    "mixture-csgld": lambda config: 5,
    "csgld-fields": lambda config: 6,
    "modes9": lambda config: 10,
    "modes25-icsgld": lambda config: 2 * len(config.methods) + len(config.others),
    "modes25-resgld": lambda config: 4,
    "energy-cdf": lambda config: 2,
    "landscapes": lambda config: 2,
    "rugged-paths": lambda config: 10,
    "ten-functions": lambda config: len(config.functions),
    "ten-functions-limits": lambda config: len(config.functions),
    "interaction": lambda config: len(config.chains),
    "uci": lambda config: len(config.methods) * _studies(config),
    "mnist-icsgld": lambda config: len(config.methods) + 1,
    "mnist-awsgld": lambda config: len(config.methods) + len(config.path_methods),
}
_OF_IMAGES = (
    "cifar-resghmc",
    "cifar-vr",
    "ood-svhn",
    "cifar-deo",
    "cifar-csghmc",
    "cifar-icsghmc",
    "cifar-hmc-reference",
)
_NUM_PARTS |= dict.fromkeys(_OF_IMAGES, lambda config: config.num_runs * len(config.methods))


def num_parts(name: str, config: Any) -> int | None:
    """The number of parts of an experiment; None where it tells how far it is in other ways."""
    count = _NUM_PARTS.get(name)
    return None if count is None else count(config)
