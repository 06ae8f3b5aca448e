"""Figures of the image experiments, from the records of cells."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row
from isotherm_thesis.experiments.figures import color_of, legend_below, page, panels, styled
from isotherm_thesis.experiments.images.study import Records

_KINDS = {
    "accuracy, logits": ("accuracy in %", "average of networks so far"),
    "NLL, logits": ("mean NLL", "average of networks so far"),
    "accuracy, single": ("accuracy in %", "single networks"),
}
# Points of accuracy between methods that are drawn in rows of their own.
_GAP = 10.0


@styled
def draw_averages(records: Records) -> Figure:
    """Accuracy and likelihood of the running average, and of single networks: means over seeds, and their errors.

    Methods far apart have rows of their own, with scales for the second half of the curves, where methods of a row differ little.
    Where methods run for different numbers of epochs, the axis is the share of the networks of each, not epochs.
    """
    found = _with_curves(records)
    groups = _groups(found)
    figure, axes = page(max(len(groups), 1), 3, 2.6 if len(groups) > 1 else 3.1)
    has_shares = len({(cells[0]["curves"]["epoch"][0], cells[0]["epochs"]) for cells in found.values()}) > 1
    colors = _colors(list(found))
    for row, labels in zip(axes, groups, strict=False):
        for axis, kind in zip(row, _KINDS, strict=True):
            _draw_curves(axis, kind, {label: found[label] for label in labels}, colors, has_shares)
    if found:
        legend_below(figure, *axes[:, 0])
    return figure


def _draw_curves(axis: Any, kind: str, found: Records, colors: dict[str, Any], has_shares: bool) -> None:
    late, begins = [], []
    for label, cells in found.items():
        seen = np.array([cell["curves"][kind] for cell in cells])
        mean, error = seen.mean(axis=0), np.std(seen, axis=0, ddof=min(len(seen) - 1, 1)) / np.sqrt(len(seen))
        places = np.linspace(0, 100, len(mean) + 1)[1:] if has_shares else np.array(cells[0]["curves"]["epoch"])
        axis.fill_between(places, mean - error, mean + error, alpha=0.25, linewidth=0, color=colors[label])
        axis.plot(places, mean, linewidth=1.1, label=label, color=colors[label])
        begins.append(places[len(places) // 4])
        late += [*(mean - error)[len(mean) // 2 :], *(mean + error)[len(mean) // 2 :]]
    measure, title = _KINDS[kind]
    axis.set(xlabel="networks so far, %" if has_shares else "epoch", ylabel=measure, title=title)
    if late:
        room = 0.05 * (max(late) - min(late)) + 1e-6
        axis.set_ylim(min(late) - room, max(late) + room)
        axis.set_xlim(left=min(begins))


def _groups(found: Records) -> list[list[str]]:
    """Labels from the highest accuracy at the end to the lowest, parted where neighbors are far apart."""
    ends = {
        label: float(np.mean([cell["curves"]["accuracy, logits"][-1] for cell in cells]))
        for label, cells in found.items()
    }
    groups: list[list[str]] = []
    for label in sorted(ends, key=lambda label: -ends[label]):
        if groups and ends[groups[-1][-1]] - ends[label] <= _GAP:
            groups[-1].append(label)
        else:
            groups.append([label])
    return groups


def _colors(labels: list[str]) -> dict[str, Any]:
    """The color of each method; where several methods would have the same, colors of the default cycle."""
    own = [color_of(label) for label in labels]
    return dict(
        zip(labels, own if len(set(own)) == len(own) else [f"C{place}" for place in range(len(labels))], strict=True)
    )


# Exact corrections are "thousands of times larger than the losses" (Deng 2021, L768).
_THOUSAND = 1_000.0


@styled
def draw_variances(records: Records) -> Figure:
    """The variance of the difference of swap energies, and the exact correction over the loss, against epochs: means over seeds.

    Bands are from the lowest to the highest seed. A variance of zero, which chains have that start from the same weights, has no
    place on the scale. Lines are broken where nothing was measured.
    """
    figure, axes = page(1, 2)
    kept = {label: cells for label, cells in records.items() if "variance over time" in cells[0]["coupling"]}
    colors = _colors(list(kept))
    for label, cells in kept.items():
        for axis, kind, name in zip(axes[0], ("variance", "correction"), ("variance", "ratio"), strict=True):
            seen = np.array([cell["coupling"][f"{kind} over time"][name] for cell in cells], float)
            epochs, values = _with_gaps(
                cells[0]["coupling"][f"{kind} over time"]["epoch"], np.where(seen > 0, seen, np.nan)
            )
            axis.plot(epochs, values.mean(axis=0), linewidth=1.1, label=label, color=colors[label])
            low, high = values.min(axis=0), values.max(axis=0)
            axis.fill_between(epochs, low, high, alpha=0.2, linewidth=0, color=colors[label])
    axes[0, 0].set(xlabel="epoch", ylabel="variance", yscale="log", title="difference of swap energies")
    axes[0, 1].set(xlabel="epoch", ylabel="ratio", yscale="log", title="correction at F = 1 over loss")
    axes[0, 1].axhline(_THOUSAND, color="black", linestyle=":", linewidth=0.9, label="1,000")
    if kept:
        legend_below(figure, axes[0, 1])
    return figure


def _with_gaps(epochs: list[int], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Epochs and values of shape (seeds, epochs), with a missing value wherever epochs were left out."""
    places = np.array(epochs, float)
    steps = np.diff(places)
    after = np.flatnonzero(steps > 1.5 * steps.min()) + 1 if len(steps) else np.array([], int)
    return np.insert(places, after, np.nan), np.insert(values, after, np.nan, axis=1)


@styled
def draw_scores(rows: list[Row], metric: str, measure: str) -> Figure:
    """One score of every method: single seeds, the mean, and its standard error."""
    found = [row for row in rows if row.metric == metric and " - " not in row.method]
    figure, axes = page(1, 1, 0.8 + 0.3 * len(found))
    for place, row in enumerate(found):
        axes[0, 0].plot(row.values, [place] * len(row.values), ".", color="0.5", markersize=4, zorder=3)
        axes[0, 0].errorbar(row.ours, place, xerr=row.std_error, fmt="o", color=color_of(row.method), capsize=3)
    axes[0, 0].set(xlabel=measure, yticks=range(len(found)), yticklabels=[row.method for row in found])
    axes[0, 0].set_ylim(len(found) - 0.5, -0.5)
    return figure


@styled
def draw_factors(rows: list[Row], factors: dict[str, float], baseline: str) -> Figure:
    """Accuracy and swaps against the correction factor, which `factors` has by method, beside a baseline that never swaps."""
    figure, axes = page(1, 2)
    for axis, metric, measure in zip(
        axes[0], ("accuracy, logits", "swaps"), ("accuracy of the average in %", "swaps in a run"), strict=True
    ):
        found = sorted((factors[row.method], row) for row in rows if row.metric == metric and row.method in factors)
        for factor, row in found:
            axis.plot([factor] * len(row.values), row.values, ".", color="0.5", markersize=4, zorder=3)
        means, errors = [row.ours for _, row in found], [row.std_error or 0.0 for _, row in found]
        axis.errorbar([factor for factor, _ in found], means, errors, fmt="o-", color=color_of("reSG"), capsize=3)
        axis.set(xscale="log", xlabel="correction factor at the start", ylabel=measure)
    plain = next((row for row in rows if row.method == baseline and row.metric == "accuracy, logits"), None)
    if plain is not None:
        error = plain.std_error or 0.0
        axes[0, 0].axhspan(plain.ours - error, plain.ours + error, color=color_of(baseline), alpha=0.3, linewidth=0)
        axes[0, 0].axhline(plain.ours, color=color_of(baseline), label=baseline)
        axes[0, 0].legend(loc="center right")
    return figure


def draw_entropies(records: Records) -> Figure:
    """Distribution functions of entropies on images of no class, with logits as they are and divided by two."""
    figure, axes = panels(1, 2, (4.4, 3.4))
    for label, cells in _with_curves(records).items():
        for axis, scale in zip(axes[0], ("T = 1", "T = 2"), strict=True):
            curves = [cell["entropies"][scale] for cell in cells]
            axis.plot(cells[0]["entropies"]["entropy"], np.mean(curves, axis=0), label=label)
            axis.set(xlabel="entropy", ylabel="share of images", title=scale)
    axes[0, 0].legend(fontsize=7)
    return figure


@styled
def draw_ladders(records: Records, target: float | None = None) -> Figure:
    """Step sizes of the rungs over the lowest, and acceptances of the pairs beside their target, at the end."""
    figure, axes = page(1, 2, 2.9)
    for label, cells in records.items():
        report = cells[0]["coupling"]
        if "step size ratios" in report:
            axes[0, 0].plot(report["step size ratios"], "o-", markersize=3, label=label, color=color_of(label))
            axes[0, 1].plot(report["acceptance of pairs"], "o-", markersize=3, color=color_of(label))
    if target is not None:
        axes[0, 1].axhline(target, color="black", linestyle=":", label=f"target, {target:g}")
    axes[0, 0].set(xlabel="rung", ylabel="over the lowest", title="learning rates at the end")
    axes[0, 1].set(xlabel="pair", ylabel="rate", title="acceptance over the run", ylim=0)
    if axes[0, 0].lines:
        legend_below(figure, *axes[0])
    return figure


def _with_curves(records: Records) -> Records:
    """Without the cells of which only the scores were kept."""
    kept = {label: [cell for cell in cells if cell["curves"]] for label, cells in records.items()}
    return {label: cells for label, cells in kept.items() if cells}
