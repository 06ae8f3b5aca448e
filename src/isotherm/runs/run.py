"""What `sample` returns: weighted draws, and all that can be asked of them."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np

from isotherm.foundation.errors import check_folder, check_real, refuse
from isotherm.runs import energies as by_energy
from isotherm.runs import estimates, saving
from isotherm.runs.bias import Bias, is_small
from isotherm.runs.record_times import RecordTimes


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """Draws with their weights, and how they came about. Axes are (chain, draw, ...); with `num_runs`, (run, chain, draw, ...).

    Attributes:
        draws: a pytree like a position. Arrays on disk are read when they are indexed.
        log_weights: log importance weights; all zero for samplers that do not weigh. A draw of a diverged chain has -inf.
        energies: the stochastic energy at each draw, as the sampler saw it.
        times: when each draw was taken; see `iterations`.
        stats: what was seen at every iteration (`best_energy`, `best_position`, `first_hit`, `diverged_at`) and what the coupling
            and the kernel report.
        observed: what the coupling recorded with every draw, with the draws where those of positions are.
        model_state: model states of the draws, such as BatchNorm statistics.
        config: what was asked for.
        environment: versions and device.
        num_steps: iterations done.
        seconds: wall-clock time since the run was last started or resumed, without `compile_seconds`.
        compile_seconds: what the compiler took before that.
        checkup: measures the bias when somebody asks, or what was measured; None where nothing is known of it.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(step_size=0.1), num_steps=5000, num_chains=8, init=jnp.zeros(2))
        >>> mean = run.expectation(lambda x: x)
    """

    draws: Any
    log_weights: Any
    energies: Any
    times: Any
    stats: dict[str, Any]
    observed: dict[str, Any]
    model_state: Any
    config: dict[str, Any]
    environment: dict[str, Any]
    num_steps: int
    seconds: float
    compile_seconds: float
    checkup: Any = None

    @classmethod
    def assemble(
        cls,
        arrays: dict[str, Any],
        times: Any,
        stats: dict[str, Any],
        config: dict[str, Any],
        environment: dict[str, Any],
        **totals: Any,
    ) -> Self:
        """A run from its records; those past the end of a run that stopped early are left out."""
        run = cls(
            arrays["draws"],
            arrays["log_weights"],
            arrays["energies"],
            times,
            stats,
            arrays["observed"],
            arrays["model_state"],
            config,
            environment,
            **totals,
        )
        count = times.before(run.num_steps) if isinstance(times, RecordTimes) else len(times)
        return run if count == len(times) else run.select(slice(count))

    @functools.cached_property
    def bias(self) -> Bias | None:
        """How far the step size and gradient noise move the law of the draws; None where that is not known.

        Measured when it is first asked for, from gradients at some of the draws; see `isotherm.runs.bias`.
        """
        # All repeats have the same law: one of them is looked at.
        first = self.split_runs()[0]
        return None if first.checkup is None else first.checkup.measure(first)

    @property
    def iterations(self) -> np.ndarray:
        """When each draw was taken."""
        return np.asarray(self.times[:])

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return self.log_weights.shape[-1]

    @property
    def name(self) -> str:
        """The name of the sampler."""
        return self.config["sampler"]["name"]

    @property
    def has_run_axis(self) -> bool:
        """Whether the leading axis is that of independent repeats."""
        return self.log_weights.ndim == 3

    def split_runs(self) -> list[Self]:
        """The independent repeats, each as a run of its own, without an axis for them."""
        if not self.has_run_axis:
            return [self]
        return [self._at(number) for number in range(self.log_weights.shape[0])]

    def of_sampler(self, number: int, config: dict[str, Any], checkup: Any) -> Self:
        """What belongs to one sampler of a sweep, whose axis comes first."""
        return dataclasses.replace(self._at(number), config=config, checkup=checkup)

    def _at(self, number: int) -> Self:
        """Everything at one place of the first axis."""
        kept = {name: jax.tree.map(lambda leaf: leaf[number], getattr(self, name)) for name in (*saving.DRAWN, "stats")}
        checkup = self.checkup if self.checkup is None else self.checkup.at(number)
        return dataclasses.replace(self, checkup=checkup, **kept)

    def select(self, draws: Any) -> Self:
        """The run with some of its draws: those that an index array or a slice picks."""
        place = (*(slice(None),) * (self.log_weights.ndim - 1), draws)
        picked = {name: jax.tree.map(lambda leaf: leaf[place], getattr(self, name)) for name in saving.DRAWN}
        return dataclasses.replace(self, times=np.asarray(self.times[draws]), **picked)

    def expectation(self, function: Callable[[Any], Any]) -> Any:
        """The weighted mean of `function(position)` over all draws."""
        return estimates.expectation(function, self.draws, np.asarray(self.log_weights))

    def estimate(self, function: Callable[[Any], Any]) -> estimates.Estimate:
        """The weighted mean of `function(position)` with its standard error, its interval, and what limits them.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(0.1), num_steps=5000, num_chains=4, init=jnp.zeros(2))
            >>> found = run.estimate(lambda x: x[0])
            >>> low, high = found.interval(0.95)
        """
        are_particles = bool(self.config.get("is_joint"))
        # That of a large position says nothing of a function of all of it.
        bias = self.bias if is_small(self.draws, self.log_weights.ndim) else None
        return estimates.estimate(function, self.draws, np.asarray(self.log_weights), bias, are_particles)

    def effective_sample_size(self) -> float:
        """The effective number of draws by their weights alone (Kish); autocorrelation is not in it."""
        return estimates.effective_sample_size(np.asarray(self.log_weights))

    def resample(self, num: int, seed: int = 0) -> Any:
        """`num` draws of equal weight, with a leading axis of `num`."""
        return estimates.resample(self.draws, np.asarray(self.log_weights), num, seed)

    def mode_masses(self, modes: Any, num_modes: int | None = None) -> np.ndarray:
        """The weight in each mode; `modes` are centers, or a function from a position to the number of its mode."""
        return estimates.mode_masses(modes, self.draws, np.asarray(self.log_weights), num_modes)

    def energy_histogram(self, num_cells: int = 50) -> by_energy.Histogram:
        """The weighted law of the energy in cells of equal width."""
        return by_energy.energy_histogram(np.asarray(self.energies), np.asarray(self.log_weights), num_cells)

    @property
    def temperature(self) -> float:
        """The temperature of the draws. A run whose temperature changed between its draws has none."""
        found = self.config.get("temperature")
        if found is None:
            remedy = "Draw at one temperature: leave out the annealed part with `burn_in`."
            refuse("temperature", "one and the same for all draws", "a schedule that changes between them", remedy)
        return check_real("temperature", found, "Draws without noise follow no law in the energy.", above=0.0)

    def log_density_of_states(self, num_cells: int = 50) -> by_energy.Histogram:
        """Log of the volume per energy, up to a constant."""
        return by_energy.log_density_of_states(self.energy_histogram(num_cells), self.temperature)

    def log_z_ratio(self, to: float) -> estimates.Estimate:
        """Log Z(to) - log Z(T) of the integrals of exp(-U / T), with its error; T is the temperature of the run.

        For samplers that flatten the energy: the draws of others hardly overlap with another temperature. Warns where the overlap
        is too small, and takes off what noise on the energies adds, where that is known.
        """
        log_weights = np.asarray(self.log_weights)
        finite = log_weights[np.isfinite(log_weights)]
        if finite.size == 0 or np.ptp(finite) < 1e-6:
            remedy = "Use a contour sampler such as `iso.icsgld`; or `reweighted(to)`, and look at its effective draws."
            refuse("run", "one that flattened the energy", f"{self.name}, whose draws all weigh the same", remedy)
        measured = float(np.mean(self.stats.get("energy_noise", np.nan)))
        noise = 0.0 if self.config.get("is_exact") else (measured if np.isfinite(measured) else None)
        return by_energy.log_z_ratio(np.asarray(self.energies), log_weights, self.temperature, to, noise)

    def reweighted(self, to: float) -> Self:
        """The same draws with the weights of another temperature.

        Exact when energies are; also with Gaussian noise that is the same everywhere, which weighs all draws alike.
        """
        tilt = by_energy.log_tilt(np.asarray(self.energies), self.temperature, to)
        log_weights = np.asarray(self.log_weights, np.float64)
        # Draws of a diverged chain have no energy, and go on counting for nothing.
        log_weights = log_weights + np.where(np.isfinite(log_weights), tilt, 0.0)
        return dataclasses.replace(self, log_weights=log_weights, config={**self.config, "temperature": float(to)})

    def summary(self) -> Any:
        """Means, spreads and diagnostics per coordinate, with warnings in words; print it."""
        from isotherm.runs.summary import summary_of

        return summary_of(self)

    def to_arviz(self, weighted: bool = False) -> Any:
        """ArviZ's DataTree: draws of equal weight, or, with `weighted`, raw draws with their log weights beside."""
        from isotherm.runs.arviz import to_arviz

        return to_arviz(self, weighted)

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

    def save(self, folder: str | pathlib.Path) -> None:
        """Write the run to a new folder, in the form that `sample(out=...)` writes."""
        saving.save(self, check_folder("folder", folder, 'Write `run.save("my-run")`, say.'))

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Self:
        """A finished run from its folder. Draws are read when they are indexed."""
        return cls.assemble(**saving.load(check_folder("folder", folder, 'Write `iso.load("my-run")`, say.')))


load = Run.load
