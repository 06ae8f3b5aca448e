"""Regressions on four small sets: RMSE of averages of 50 perceptrons (Deng 2021, chapter 5, L1802).

Stochastic energies are N/n times the sum of squared errors of a batch, targets are not scaled, features are. The thesis does not
give the gain, the number of bins, or where the partition starts: here a gain chosen on parts of the training data, 200 bins
from the first multiple of the width, and the field whose fixed point is exact. The rows "auto" have the partition, zeta and gain
that this library finds by itself: its bins are as wide as the energies vary, which at these temperatures is so much that the
multiplier stays at 1. Energy's target is the heating load; the author's other code uses the cooling load. The prior's precision,
1e-4, is nearly flat; "1e-4 per example" reads the thesis' L2 penalty the other way.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

import isotherm as iso
from isotherm.contour import Partition
from isotherm.demo.result import Row
from isotherm.foundation.gains import PolynomialGain
from isotherm.networks import MLP
from isotherm.predictive import outputs_of_draws, predictive_mean, rmse
from isotherm_thesis.data import load
from isotherm_thesis.experiments import small_sets
from isotherm_thesis.experiments.figures import THESIS, color_of, legend_below, mosaic, styled
from isotherm_thesis.experiments.reproduce import Outcome
from isotherm_thesis.experiments.scoring import differences

TITLE = "UCI regressions: RMSE on held-out data"
METHODS = ("SGD", "SGLD", "CSGLD", "M-SGD", "SGHMC", "CSGHMC")
_AUTO = ("CSGLD, auto", "CSGHMC, auto")
_PAIRS = (
    ("SGLD", "SGD"),
    ("CSGLD", "SGLD"),
    ("CSGLD, auto", "SGLD"),
    ("SGHMC", "M-SGD"),
    ("CSGHMC", "SGHMC"),
    ("CSGHMC, auto", "SGHMC"),
)

# Temperature and zeta of each set, and the thesis' RMSE of the six methods.
SETS: dict[str, tuple[float, float, tuple[float, ...] | None]] = {
    "energy": (1.0, 1.0, (1.13, 1.08, 1.02, 0.95, 0.77, 0.76)),
    "concrete": (5.0, 1.0, (4.60, 4.12, 3.98, 4.32, 4.25, 4.15)),
    "yacht": (1.0, 2.5, (0.81, 0.72, 0.69, 0.73, 0.66, 0.72)),
    "wine": (5.0, 10.0, (0.65, 0.63, 0.62, 0.71, 0.67, 0.65)),
    "diabetes": (5.0, 1.0, None),
}


@dataclasses.dataclass(frozen=True)
class Config:
    """Settings of the experiment.

    Attributes:
        num_runs: splits into training and test data.
        data_dir: where the sets lie.
        sets: which of them.
        methods: which of the six.
        num_epochs: passes over the training data.
        num_models: draws that are averaged, from the last fifth of the epochs.
        batch_size: n.
        hidden: units.
        step_size: epsilon.
        weight_decay: precision of the prior.
        per_example: sets that are also run with that precision for every example.
        width: of energy bins.
        num_bins: of the partition.
        gain_scale: of the gain s / (k^0.6 + 100).
        test_share: of the data.
    """

    num_runs: int = 10
    data_dir: str | None = "data"
    sets: tuple[str, ...] = ("energy", "concrete", "yacht", "wine")
    methods: tuple[str, ...] = METHODS + _AUTO
    num_epochs: int = 5_000
    num_models: int = 50
    batch_size: int = 50
    hidden: int = 50
    step_size: float = 5e-6
    weight_decay: float = 1e-4
    per_example: tuple[str, ...] = ("wine",)
    width: float = 100.0
    num_bins: int = 200
    gain_scale: float = 0.1
    test_share: float = 0.1


FULL = Config()
QUICK = Config(num_runs=2, data_dir=None, sets=("diabetes",), num_epochs=300, num_models=20, step_size=5e-7)


def run(config: Config, seed: int, log: Callable[[str], None]) -> Outcome:
    """RMSE of every method on every set."""
    rows: list[Row] = []
    studies = [(name, False) for name in config.sets]
    studies += [(name, True) for name in config.sets if name in config.per_example]
    for name, is_per_example in studies:
        label = f"{name}, L2 per example" if is_per_example else name
        rows += _study(config, name, label, is_per_example, seed, log)
    return Outcome(rows, {"rmse": _picture(config, rows)})


def _study(
    config: Config, name: str, label: str, is_per_example: bool, seed: int, log: Callable[[str], None]
) -> list[Row]:
    """All methods on one set, with paired differences over the splits."""
    temperature, zeta, thesis = SETS[name]
    inputs, targets = _load(name, config.data_dir)
    samplers = _samplers(config, temperature, zeta)
    rows: list[Row] = []
    template: Any = None
    for method in config.methods:
        log(f"{label}, {method}")
        found = []
        for split in range(config.num_runs):
            train, test = split_data(inputs, targets, config.test_share, seed + split)
            if template is None:
                template = _potential(config, train, len(train[0]) if is_per_example else 1)
            potential = dataclasses.replace(template, data=train)
            found.append(_judged(config, potential, samplers[method], test, seed + split))
        has_thesis = thesis is not None and method in METHODS and not is_per_example
        published = thesis[METHODS.index(method)] if thesis is not None and has_thesis else None
        rows.append(Row.of_runs(f"{label}, {method}", "RMSE", [one.rmse for one in found], published))
        if found[0].multipliers is not None:
            lowest, highest = np.transpose([one.multipliers for one in found])
            rows.append(Row.of_runs(f"{label}, {method}", "multiplier, lowest", lowest))
            rows.append(Row.of_runs(f"{label}, {method}", "multiplier, highest", highest))
    return rows + differences(rows, "RMSE", [(f"{label}, {one}", f"{label}, {other}") for one, other in _PAIRS])


def split_data(inputs: np.ndarray, targets: np.ndarray, share: float, seed: int) -> tuple[Any, Any]:
    """Training and test data with features scaled by the training data's means and deviations; targets as they are."""
    order = np.random.default_rng(seed).permutation(len(inputs))
    num_test = round(share * len(inputs))
    test, train = order[:num_test], order[num_test:]
    mean, deviation = inputs[train].mean(axis=0), inputs[train].std(axis=0)
    scaled = ((inputs - mean) / np.where(deviation > 0, deviation, 1.0)).astype(np.float32)
    targets = targets.astype(np.float32)
    return (scaled[train], targets[train]), (scaled[test], targets[test])


def _load(name: str, data_dir: str | None) -> tuple[np.ndarray, np.ndarray]:
    if name == "diabetes":
        return small_sets.diabetes()
    data = load(name, data_dir or "data")
    return data["inputs"], data["targets"]


def _potential(config: Config, train: Any, factor: int) -> Any:
    num_features = train[0].shape[1]
    return iso.networks.from_nnx(
        lambda rngs: MLP(num_features, (config.hidden,), 1, rngs=rngs),
        "squared_error",
        train,
        batch_size=config.batch_size,
        weight_decay=factor * config.weight_decay,
        coupling_includes_prior=False,
    )


def _samplers(config: Config, temperature: float, zeta: float) -> dict[str, Any]:
    step, partition = config.step_size, Partition(config.width, config.width, config.num_bins)
    gain = PolynomialGain(config.gain_scale, 0.6, 100.0)
    own = {"temperature": temperature, "zeta": zeta, "partition": partition, "gain": gain, "field": "psi"}
    contour = iso.thesis.csgld(**own)
    return {
        "SGD": iso.sgd(step),
        "SGLD": iso.sgld(step, temperature=temperature),
        "CSGLD": iso.csgld(step, **contour),
        "M-SGD": iso.msgd(step),
        "SGHMC": iso.sghmc(step, temperature=temperature),
        "CSGHMC": iso.csghmc(step, **contour),
        "CSGLD, auto": iso.csgld(step, temperature=temperature),
        "CSGHMC, auto": iso.csghmc(step, temperature=temperature),
    }


class _Judged(NamedTuple):
    """The error of a run's average, and the lowest and highest multiplier of its contour, if it has one."""

    rmse: float
    multipliers: tuple[float, float] | None


def _judged(config: Config, potential: Any, sampler: Any, test: Any, seed: int) -> _Judged:
    steps_per_epoch = -(-potential.num_data // config.batch_size)
    num_steps = config.num_epochs * steps_per_epoch
    stretch = config.num_epochs // 5 * steps_per_epoch
    found = iso.sample(
        potential,
        sampler,
        num_steps=num_steps,
        burn_in=num_steps - stretch,
        thinning=max(stretch // config.num_models, 1),
        init=potential.init,
        seed=seed,
        progress=False,
    )
    outputs, weights = outputs_of_draws(found, potential, test[0])
    stats, multipliers = found.stats, None
    if "lowest_multiplier" in stats:
        multipliers = float(np.min(stats["lowest_multiplier"])), float(np.max(stats["highest_multiplier"]))
    return _Judged(rmse(predictive_mean(outputs[..., 0], weights), test[1]), multipliers)


@styled
def _picture(config: Config, rows: list[Row]) -> Figure:
    """RMSE of every method on every set, beside the thesis', and what contours change, in % of the plain method's RMSE."""
    errors = {row.method: row for row in rows if row.metric == "RMSE"}
    sets = list(config.sets)
    figure, axes = mosaic([sets, ["change"] * len(sets)], 6.2)
    for name in sets:
        axis = axes[name]
        for place, method in enumerate(config.methods):
            row = errors[f"{name}, {method}"]
            error = 2 * (row.std_error or 0.0)
            axis.errorbar(row.ours, place, xerr=error, fmt="o", markersize=4, color=color_of(method))
            if row.thesis is not None:
                axis.plot(row.thesis, place, "D", color=THESIS, markersize=4, label="thesis")
        axis.set(title=name, xlabel="RMSE", yticks=range(len(config.methods)), yticklabels=config.methods)
        axis.invert_yaxis()
        axis.tick_params(axis="y", labelleft=name == sets[0])
    _draw_changes(axes["change"], errors, sets)
    legend_below(figure, *axes.values())
    return figure


def _draw_changes(axis: Any, errors: dict[str, Row], sets: list[str]) -> None:
    """Paired differences between contour samplers and plain ones, with two standard errors."""
    pairs = [pair for pair in _PAIRS if pair[0].startswith("CSG") and f"{sets[0]}, {pair[0]}" in errors]
    for number, (one, other) in enumerate(pairs):
        style = {"fmt": "s" if "HMC" in one else "o", "mfc": "white" if "auto" in one else color_of(one)}
        for place, name in enumerate(sets):
            row, plain = errors[f"{name}, {one} - {name}, {other}"], errors[f"{name}, {other}"].ours
            error = 200 * (row.std_error or 0.0) / plain
            here = place + 0.16 * (number - (len(pairs) - 1) / 2)
            label = f"{one} - {other}" if place == 0 else None
            axis.errorbar(here, 100 * row.ours / plain, error, color=color_of(one), label=label, **style)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.grid(visible=False, axis="x")
    axis.set(xticks=range(len(sets)), xticklabels=sets, ylabel="change of the RMSE, %")
    # Linear up to 10 %, so that one set with outliers does not hide the others.
    axis.set_yscale("symlog", linthresh=10)
    axis.set_yticks([-20, -10, -5, 0, 5, 10, 20, 50, 100], ["-20", "-10", "-5", "0", "5", "10", "20", "50", "100"])
    axis.set_title("what contours change; below zero they help; two standard errors of the paired difference")
