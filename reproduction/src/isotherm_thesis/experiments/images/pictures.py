"""Figures of the image experiments, from the records of cells."""

import numpy as np
from matplotlib.figure import Figure

from isotherm.demo.result import Row
from isotherm_thesis.experiments.figures import color_of, legend_below, page, panels, styled
from isotherm_thesis.experiments.images.study import Records


@styled
def draw_averages(records: Records) -> Figure:
    """Accuracy and likelihood of the running average against epochs, and of single networks: means over seeds, and their errors.

    The scale is that of the second half of the curves, where methods differ little.
    """
    figure, axes = page(1, 3, gridspec_kw={"wspace": 0.08})
    kinds = {
        "accuracy, logits": ("accuracy in %", "average of networks so far"),
        "NLL, logits": ("mean NLL", "average of networks so far"),
        "accuracy, single": ("accuracy in %", "single networks"),
    }
    found = _with_curves(records)
    for axis, (kind, (measure, title)) in zip(axes[0], kinds.items(), strict=True):
        late, begins = [], []
        for label, cells in found.items():
            seen = np.array([cell["curves"][kind] for cell in cells])
            mean, error = seen.mean(axis=0), np.std(seen, axis=0, ddof=min(len(seen) - 1, 1)) / np.sqrt(len(seen))
            epochs = cells[0]["curves"]["epoch"]
            axis.fill_between(epochs, mean - error, mean + error, alpha=0.3, linewidth=0)
            axis.plot(epochs, mean, linewidth=1.0, label=label)
            begins.append(epochs[len(epochs) // 4])
            late += [*(mean - error)[len(mean) // 2 :], *(mean + error)[len(mean) // 2 :]]
        axis.set(xlabel="epoch", ylabel=measure, title=title)
        if late:
            room = 0.05 * (max(late) - min(late)) + 1e-6
            axis.set_ylim(min(late) - room, max(late) + room)
            axis.set_xlim(left=min(begins))
    if found:
        legend_below(figure, axes[0, 0])
    return figure


@styled
def draw_variances(records: Records) -> Figure:
    """The variance of the difference of swap energies, and the exact correction over the loss, against epochs; the first seed.

    A variance of zero, which chains have that start from the same weights, has no place on the scale.
    """
    figure, axes = page(1, 2)
    for label, cells in records.items():
        report = cells[0]["coupling"]
        if "variance over time" in report:
            for axis, kind, name in zip(axes[0], ("variance", "correction"), ("variance", "ratio"), strict=True):
                seen = report[f"{kind} over time"]
                values = np.array(seen[name])
                axis.plot(seen["epoch"], np.where(values > 0, values, np.nan), linewidth=1.0, label=label)
    axes[0, 0].set(xlabel="epoch", ylabel="variance", yscale="log", title="difference of swap energies")
    axes[0, 1].set(xlabel="epoch", ylabel="ratio", yscale="log", title="correction at F = 1 over loss")
    if axes[0, 0].lines:
        axes[0, 0].legend(loc="lower right")
    return figure


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


def draw_ladders(records: Records) -> Figure:
    """Step sizes of the rungs over the lowest, and acceptances of the pairs, at the end."""
    figure, axes = panels(1, 2, (4.4, 3.4))
    for label, cells in records.items():
        report = cells[0]["coupling"]
        if "step size ratios" in report:
            axes[0, 0].plot(report["step size ratios"], "o-", markersize=3, label=label)
            axes[0, 1].plot(report["acceptance of pairs"], "o-", markersize=3, label=label)
    axes[0, 0].set(xlabel="rung", ylabel="over the lowest", title="learning rates at the end")
    axes[0, 1].set(xlabel="pair", ylabel="rate", title="acceptance")
    if axes[0, 0].lines:
        axes[0, 0].legend(fontsize=7)
    return figure


def _with_curves(records: Records) -> Records:
    """Without the cells of which only the scores were kept."""
    kept = {label: [cell for cell in cells if cell["curves"]] for label, cells in records.items()}
    return {label: cells for label, cells in kept.items() if cells}
