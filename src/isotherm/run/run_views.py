"""A run as text, as a table, and in pictures."""

from typing import Any

from isotherm.run.run_estimates import RunEstimates


class RunViews(RunEstimates):
    """What people look at."""

    def __repr__(self) -> str:
        from isotherm.run.headline import lines_of

        return "\n  ".join(lines_of(self))

    def _repr_html_(self) -> str:
        from isotherm.run.headline import html_of

        return html_of(self)

    def summary(self) -> Any:
        """Means, spreads and diagnostics per coordinate, with warnings in words; print it.

        Its `rows` are the coordinates of the table, and its `notes` the lines below it: the first says what was run, the others
        what to worry about.
        """
        from isotherm.diagnostics.summary import summary_of

        return summary_of(self)

    def to_arviz(self, weighted: bool = False) -> Any:
        """ArviZ's DataTree: draws of equal weight, or, with `weighted`, raw draws with their log weights beside.

        `arviz_stats.summary(run.to_arviz())` is ArviZ's table. `run.to_arviz().to_netcdf("draws.nc")` writes a file, and needs
        h5netcdf: `pip install "h5netcdf[h5py]"`.
        """
        from isotherm.run.arviz import to_arviz

        return to_arviz(self, weighted)

    def to_dataframe(self) -> Any:
        """All draws in a pandas.DataFrame, a row for each: chain, draw, coordinates such as `beta[3]`, log_weight and energy.

        With `num_runs` a column `run` comes first. pandas' own statistics ignore the weights; `mean`, `std` and `quantile` of
        the run honor them. All draws are read into memory.
        """
        from isotherm.run.dataframe import to_dataframe

        return to_dataframe(self)

    def plot_trace(self, coordinates: Any = None, axes: Any = None) -> Any:
        """Coordinates of every chain against iterations. Returns Matplotlib's figure.

        Args:
            coordinates: which ones: names as in the summary, or numbers counted through the leaves of a position; None is the first
                two, or the only one.
            axes: Matplotlib's, one for each of them; None makes a figure.
        """
        from isotherm.run.plots import plot_trace

        return plot_trace(self, coordinates, axes)

    def plot_density(self, coordinates: Any = None, bins: int = 100, limits: Any = None, axes: Any = None) -> Any:
        """The weighted density of one coordinate, or of two, with a color bar. Returns Matplotlib's figure.

        Args:
            coordinates: one or two: names as in the summary, or numbers counted through the leaves of a position; None is the first
                two, or the only one.
            bins: cells along an axis.
            limits: (low, high) of the axes; None is the range of the draws.
            axes: Matplotlib's; None makes a figure.
        """
        from isotherm.run.plots import plot_density

        return plot_density(self, coordinates, bins, limits, axes)

    def plot_energy(self, bins: int = 60, axes: Any = None) -> Any:
        """Energies against iterations, and their weighted distribution. Returns Matplotlib's figure.

        Args:
            bins: cells of the distribution.
            axes: two of Matplotlib's; None makes a figure.
        """
        from isotherm.run.plots import plot_energy

        return plot_energy(self, bins, axes)
