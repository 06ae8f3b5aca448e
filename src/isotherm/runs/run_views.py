"""A run as text, as a table, and in pictures."""

from typing import Any

from isotherm.runs.run_estimates import RunEstimates


class RunViews(RunEstimates):
    """What people look at."""

    def __repr__(self) -> str:
        from isotherm.runs.headline import lines_of

        return "\n  ".join(lines_of(self))

    def _repr_html_(self) -> str:
        from isotherm.runs.headline import html_of

        return html_of(self)

    def summary(self) -> Any:
        """Means, spreads and diagnostics per coordinate, with warnings in words; print it."""
        from isotherm.runs.summary import summary_of

        return summary_of(self)

    def to_arviz(self, weighted: bool = False) -> Any:
        """ArviZ's DataTree: draws of equal weight, or, with `weighted`, raw draws with their log weights beside."""
        from isotherm.runs.arviz import to_arviz

        return to_arviz(self, weighted)

    def to_dataframe(self) -> Any:
        """All draws in a pandas.DataFrame, a row for each: chain, draw, coordinates such as `beta[3]`, log_weight and energy.

        With `num_runs` a column `run` comes first. pandas' own statistics ignore the weights; `mean`, `std` and `quantile` of
        the run honor them. All draws are read into memory.
        """
        from isotherm.runs.dataframe import to_dataframe

        return to_dataframe(self)

    def plot_trace(self, **options: Any) -> Any:
        """Coordinates against iterations; see `isotherm.runs.plots.plot_trace`."""
        from isotherm.runs.plots import plot_trace

        return plot_trace(self, **options)

    def plot_density(self, **options: Any) -> Any:
        """Weighted histograms of one or two coordinates; see `isotherm.runs.plots.plot_density`."""
        from isotherm.runs.plots import plot_density

        return plot_density(self, **options)

    def plot_energy(self, **options: Any) -> Any:
        """Energies against iterations, and their distribution; see `isotherm.runs.plots.plot_energy`."""
        from isotherm.runs.plots import plot_energy

        return plot_energy(self, **options)
