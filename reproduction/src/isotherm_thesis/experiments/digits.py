"""What the two experiments with handwritten digits share: data, networks, and runs that are judged as they go."""

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

import jax
import numpy as np

import isotherm as iso
from isotherm.demo.result import Row
from isotherm.networks import CNN, Crop, Flip, InTurn, Normalize
from isotherm.predictive import Prediction, accuracy, predict
from isotherm.run.run import Run
from isotherm_thesis.data import load
from isotherm_thesis.experiments import small_sets

LOSS_RANGE = "loss range, last half"


@dataclasses.dataclass(frozen=True)
class DigitsConfig:
    """Settings of both experiments.

    Attributes:
        num_runs: independent repeats.
        data_dir: where MNIST lies; None takes scikit-learn's digits of 8 x 8 pixels.
        num_epochs: of every method.
        batch_size: n.
        filters: feature maps of the two convolutions.
        hidden: units.
        weight_decay: precision of the prior.
        compute_dtype: what networks compute in.
        num_kept: draws that are averaged and projected, from the second half.
        grid: points along a side of a landscape.
        num_tuning: gradient steps of a grid point.
    """

    num_runs: int = 5
    data_dir: str | None = "data"
    num_epochs: int = 500
    batch_size: int = 2_500
    filters: tuple[int, int] = (32, 64)
    hidden: int = 50
    weight_decay: float = 12.5
    compute_dtype: str | None = "bfloat16"
    num_kept: int = 50
    grid: int = 12
    num_tuning: int = 10


# Sizes and settings of the quick versions of both experiments.
QUICK_SETTINGS: dict[str, Any] = {
    "num_runs": 2,
    "data_dir": None,
    "num_epochs": 20,
    "batch_size": 200,
    "filters": (8, 16),
    "step_size": 1e-4,
    "weight_decay": 1.0,
    "compute_dtype": None,
    "num_bins": 1_000,
    "width": 2.0,
    "num_kept": 10,
    "grid": 5,
    "num_tuning": 2,
}


class Digits(NamedTuple):
    """Images of some classes for training and testing, and images of other classes."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    unknown: np.ndarray


class Judged(NamedTuple):
    """A run with what its networks say.

    Attributes:
        losses: the likelihood's energy, of every chain at every epoch, (P, E).
        accuracies: on test images, of every chain at the epochs `judged_at`, (P, J).
        judged_at: epochs.
        test: the average's prediction of the test images, over draws of the second half with the run's weights.
        unknown: and of the other classes.
        kept: draws at the epochs `judged_at`, leaves (P, J, ...).
        stats: of the run.
    """

    losses: np.ndarray
    accuracies: np.ndarray
    judged_at: np.ndarray
    test: Prediction
    unknown: Prediction
    kept: Any
    stats: dict[str, Any]


def load_digits(config: DigitsConfig, num_classes: int) -> Digits:
    """Digits below `num_classes`, and those from 5 on as unknown."""
    if config.data_dir is None:
        inputs, labels = small_sets.digits()
        images = np.round(inputs * 255).astype(np.uint8).reshape(-1, 8, 8, 1)
        parts = (images[::2], labels[::2]), (images[1::2], labels[1::2])
    else:
        data = load("mnist", config.data_dir)
        parts = tuple((data[f"{part}_inputs"], data[f"{part}_labels"]) for part in ("train", "test"))
    known = [(x[y < num_classes], y[y < num_classes].astype(np.int32)) for x, y in parts]
    return Digits(known[0], known[1], parts[1][0][parts[1][1] >= 5])


def potential_of(config: DigitsConfig, digits: Digits, num_classes: int) -> Any:
    """The thesis' CNN with its prior and augmentation: crops, and, odd for digits, mirrors."""
    shape = digits.train[0].shape[1:]
    padding = 4 if shape[0] > 8 else 1
    return iso.networks.from_nnx(
        lambda rngs: CNN(shape, num_classes, filters=config.filters, hidden=config.hidden, rngs=rngs),
        "cross_entropy",
        digits.train,
        batch_size=min(config.batch_size, len(digits.train[0])),
        weight_decay=config.weight_decay,
        coupling_includes_prior=False,
        compute_dtype=config.compute_dtype,
        prepare=Normalize((0.1307,), (0.3081,)),
        augment=InTurn((Crop(padding), Flip())),
    )


def sample_and_judge(
    config: DigitsConfig, potential: Any, sampler: Any, digits: Digits, seed: int, num_chains: int, num_runs: int = 1
) -> list[Judged | None]:
    """All runs of a method in one program, a draw an epoch; None for a run in which a chain diverged."""
    steps_per_epoch = -(-potential.num_data // potential.batch_size)
    found = iso.sample(
        potential,
        sampler,
        num_steps=config.num_epochs * steps_per_epoch,
        thinning=steps_per_epoch,
        num_chains=num_chains,
        num_runs=num_runs,
        init=potential.init,
        seed=seed,
        progress=False,
    )
    return [
        None if np.any(np.asarray(one.stats["diverged_at"]) >= 0) else _judge(config, potential, one, digits)
        for one in found.split_runs()
    ]


def _judge(config: DigitsConfig, potential: Any, found: Run, digits: Digits) -> Judged:
    priors = jax.vmap(jax.vmap(potential.prior_energy))(jax.tree.map(np.asarray, found.draws))
    losses = np.asarray(found.energies) - np.asarray(priors)
    epochs = np.unique(np.linspace(found.num_draws // 2, found.num_draws - 1, config.num_kept).astype(int))
    sparse = np.unique(np.linspace(0, found.num_draws - 1, 2 * config.num_kept).astype(int))
    late, seen = found.select(epochs), found.select(sparse)
    alone = predict(_equal(seen), potential, digits.test[0], labels=digits.test[1], batch_size=2_000)
    assert alone.draw_accuracy is not None
    accuracies = alone.draw_accuracy.reshape(len(losses), -1)
    test = predict(late, potential, digits.test[0], labels=digits.test[1], batch_size=2_000)
    unknown = predict(late, potential, digits.unknown, batch_size=2_000)
    return Judged(losses, accuracies, sparse, test, unknown, dict(seen.draws), found.stats)


def finished_runs(found: dict[str, list[Judged | None]]) -> tuple[dict[str, list[Judged]], list[Row]]:
    """Of every method the runs in which no method diverged, so that runs stay paired, and how many diverged."""
    rows = [
        Row(name, "diverged runs", None, float(sum(judged is None for judged in runs)), None, len(runs))
        for name, runs in found.items()
    ]
    together = [number for number, runs in enumerate(zip(*found.values(), strict=True)) if None not in runs]
    if not together:
        raise RuntimeError("some method diverged in every run: " + ", ".join(f"{r.method} {r.ours:g}" for r in rows))
    kept = {name: [runs[number] for number in together] for name, runs in found.items()}
    return cast("dict[str, list[Judged]]", kept), rows


def loss_rows(name: str, found: list[Judged], digits: Digits) -> list[Row]:
    """Ranges and levels of losses over the last half, the accuracy of the average, and what the contour did.

    "effective networks" is one over the sum of the squared weights of the average: 1 where a single network has all of the weight.
    """
    halves = [judged.losses[:, judged.losses.shape[1] // 2 :] for judged in found]
    rows = [
        Row.of_runs(name, LOSS_RANGE, [loss_range(judged.losses) for judged in found]),
        Row.of_runs(name, "lowest loss", [float(np.min(half)) for half in halves]),
        Row.of_runs(name, "median loss", [float(np.median(half)) for half in halves]),
        Row.of_runs(name, "accuracy", [accuracy(judged.test.probabilities, digits.test[1]) for judged in found]),
        Row.of_runs(name, "effective networks", [float(1 / np.sum(judged.test.draw_weights**2)) for judged in found]),
    ]
    for stat, metric, over in (
        ("lowest_multiplier", "multiplier, lowest", np.min),
        ("highest_multiplier", "multiplier, highest", np.max),
    ):
        if stat in found[0].stats:
            rows.append(Row.of_runs(name, metric, [float(over(judged.stats[stat])) for judged in found]))
    return rows


def ratio_of_ranges(rows: Sequence[Row], one: str, other: str) -> Row:
    """How many times the range of losses of one method is that of another, run by run."""
    values = {row.method: np.array(row.values) for row in rows if row.metric == LOSS_RANGE}
    return Row.of_runs(one, f"loss range over {other}'s", values[one] / values[other])


def loss_range(losses: np.ndarray) -> float:
    """The range of losses over the last half, between their 5 and 95 % points, the mean over chains."""
    last = losses[:, losses.shape[1] // 2 :]
    low, high = np.quantile(last, [0.05, 0.95], axis=1)
    return float(np.mean(high - low))


def _equal(run: Run) -> Run:
    return dataclasses.replace(run, log_weights=np.zeros_like(run.log_weights))
