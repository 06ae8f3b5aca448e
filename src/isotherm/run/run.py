"""What `sample` returns: weighted draws, estimates from them, plots, and the folder on disk."""

import dataclasses
import functools
import pathlib
from collections.abc import Callable
from typing import Any, Self

import jax
import numpy as np

from isotherm.contour.energy_noise import noise_correction
from isotherm.foundation.checks import Check
from isotherm.foundation.errors import check_folder, check_real, check_written_path, refuse, short
from isotherm.run import energies as by_energy
from isotherm.run import estimates, export, plots
from isotherm.run.bias import Bias, is_small
from isotherm.run.estimates import Estimate
from isotherm.run.evidence import log_evidence
from isotherm.run.record_times import RecordTimes
from isotherm.run.storage import saving


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Weighted draws. Axes are (chain, draw, ...); with `num_runs`, (run, chain, draw, ...).

    Attributes:
        draws: a pytree like a position. Arrays on disk are read when they are indexed.
        log_weights: log importance weights, zero for samplers without weights and -inf for draws of a diverged chain.
        energies: the stochastic energy at each draw, as the sampler saw it.
        times: the iterations of the draws; see `iterations`.
        stats: statistics over all iterations (`best_energy`, `best_position`, `first_hit`, `diverged_at`), of the coupling and of
            the kernel.
        observed: what the coupling recorded with every draw.
        model_state: model states of the draws, such as BatchNorm statistics.
        config: the configuration of the run.
        environment: versions and device.
        num_steps: iterations done.
        seconds: wall-clock time of sampling since the run was last started or resumed.
        compile_seconds: of preparation before that, nearly all of it compilation.
        bias_probe: measures the bias, or the measured bias; None if it is unknown.
        parts: the sampler and the potential, or their checks when the run ended; None if neither is known.
        pilot_seconds: of pilot runs that chose a partition or a ladder, with their compilation.
        earlier_seconds: of all these before the run was resumed, each up to its last checkpoint.

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
    bias_probe: Any = None
    parts: Any = None
    pilot_seconds: float = 0.0
    earlier_seconds: float = 0.0

    @classmethod
    def assemble(cls, arrays: dict[str, Any], times: Any, **others: Any) -> Self:
        """A run from its records, without those after the end of a run that stopped early."""
        run = cls(**arrays, times=times, **others)
        count = times.before(run.num_steps) if isinstance(times, RecordTimes) else len(times)
        return run if count == run.num_draws else run.select(slice(count))

    def without_noise(self) -> Self:
        """The run with the weights of a contour sampler corrected for energy noise, which is known at the end."""
        if "weight_slopes" not in self.stats or self.config.get("is_exact") or "weight_error" in self.config:
            return self
        found = noise_correction(np.asarray(self.energies), self.stats, self.config)
        if found is None:
            return self
        weights = np.asarray(self.log_weights)
        corrected = np.where(np.isfinite(weights), weights - found[0], weights)
        return dataclasses.replace(self, log_weights=corrected, config={**self.config, "weight_error": found[1]})

    @functools.cached_property
    def bias(self) -> Bias | None:
        """The bias by the step size and gradient noise, measured lazily from gradients at some of the draws; None if unknown."""
        # All repeats have the same distribution: one is enough.
        first = self.split_runs()[0]
        return None if first.bias_probe is None else first.bias_probe.measure(first)

    @functools.cached_property
    def part_checks(self) -> list[Check]:
        """Checks of the coupling, the kernel and the potential."""
        return [] if self.parts is None else self.parts.diagnose(self)

    @functools.cached_property
    def distribution_checks(self) -> list[Check]:
        """Checks on the distribution of the draws, which limit every estimate."""
        from isotherm.diagnostics.distribution import distribution_checks

        return distribution_checks(self)

    @property
    def checks(self) -> list[Check]:
        """Warnings about the run, with numbers, thresholds and remedies. `summary` prints them.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(0.1), num_steps=500, init=jnp.zeros(2))
            >>> [check.name for check in run.checks][:1]
            ['one-chain']
        """
        return self.summary().checks

    @property
    def choices(self) -> list[dict[str, Any]]:
        """The choices of pilot runs, each with its name, value and reason."""
        return self.config.get("choices", [])

    @property
    def is_network(self) -> bool:
        """Whether the draws are weights of a network."""
        return bool(self.config.get("is_network"))

    @property
    def are_particles(self) -> bool:
        """Whether chains are particles, which represent the distribution together."""
        return bool(self.config.get("is_joint"))

    @property
    def is_adjusted(self) -> bool:
        """Whether moves were accepted or rejected by exact energies, which leaves no bias by the step size."""
        return bool(self.config.get("is_adjusted"))

    @property
    def shares_noise(self) -> bool:
        """Whether the chains of a run see the same mini-batches."""
        return self.config.get("batch_size") is not None and bool(self.config.get("is_batch_shared"))

    @property
    def iterations(self) -> np.ndarray:
        """The iteration of each draw."""
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
    def claims_distribution(self) -> bool:
        """Whether draws follow exp(-U / T). Those of a descent without noise, or with swaps by a buffer, do not."""
        return bool(self.config.get("claims_distribution", True))

    @property
    def has_died(self) -> bool:
        """Whether every chain diverged; False for a run that has not ended."""
        return bool(np.all(np.asarray(self.stats.get("diverged_at", -1)) >= 0))

    @property
    def has_run_axis(self) -> bool:
        """Whether the first axis is that of independent runs."""
        return self.log_weights.ndim == 3

    def split_runs(self) -> list[Self]:
        """The independent runs, each without their axis."""
        if not self.has_run_axis:
            return [self]
        return [self._at(number) for number in range(self.log_weights.shape[0])]

    def of_sampler(self, number: int, config: dict[str, Any], bias_probe: Any, parts: Any) -> Self:
        """The run of one sampler of a sweep, whose axis comes first."""
        return dataclasses.replace(self._at(number), config=config, bias_probe=bias_probe, parts=parts)

    def _at(self, number: int) -> Self:
        """The run at one index of the first axis."""
        kept = {name: jax.tree.map(lambda leaf: leaf[number], getattr(self, name)) for name in (*saving.DRAWN, "stats")}
        probe = None if self.bias_probe is None else self.bias_probe.at(number)
        return dataclasses.replace(self, bias_probe=probe, **kept)

    def select(self, draws: Any) -> Self:
        """The run with the draws at an index array or a slice."""
        if not isinstance(draws, slice) and np.asarray(draws).dtype.kind not in "biu":
            remedy = "Write `run.select(slice(100, None))`, say."
            refuse("draws", "a slice or an array of integers", short(draws), remedy)
        place = (*(slice(None),) * (self.log_weights.ndim - 1), draws)
        picked = {name: jax.tree.map(lambda leaf: leaf[place], getattr(self, name)) for name in saving.DRAWN}
        return dataclasses.replace(self, times=np.asarray(self.times[draws]), **picked)

    @property
    def temperature(self) -> float:
        """The temperature of the draws; refused if it changed between them."""
        found = self.config.get("temperature")
        if found is None:
            remedy = "Leave out the annealed part with `burn_in`."
            refuse("temperature", "one and the same for all draws", "a schedule that changes between them", remedy)
        return check_real("temperature", found, "Draws without noise follow no distribution.", above=0.0)

    def expectation(self, function: Callable[[Any], Any]) -> Any:
        """The weighted mean of `function(position)` over all draws."""
        return estimates.mean(self.draws, np.asarray(self.log_weights), estimates.for_each(function))

    def estimate(self, function: Callable[[Any], Any]) -> Estimate:
        """The weighted mean of `function(position)` with its standard error, interval, bias and checks.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> run = iso.sample(lambda x: x @ x / 2, iso.sgld(0.1), num_steps=5000, num_chains=4, init=jnp.zeros(2))
            >>> found = run.estimate(lambda x: x[0])
            >>> low, high = found.interval(0.95)
        """
        return self._estimate_each(estimates.for_each(function))

    def mean(self) -> Any:
        """The weighted mean of every coordinate, a pytree like a position. `estimate(lambda x: x)` adds its error.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> start = {"a": jnp.zeros(2), "b": jnp.zeros(())}
            >>> run = iso.sample(lambda x: x["a"] @ x["a"] + x["b"] ** 2, iso.sgld(0.1), num_steps=500, num_chains=4, init=start)
            >>> run.mean()["a"].shape, run.std()["b"].shape, run.quantile([0.05, 0.95])["a"].shape
            ((2,), (), (2, 2))
        """
        return estimates.mean(self.draws, np.asarray(self.log_weights))

    def std(self) -> Any:
        """The weighted standard deviation of every coordinate, a pytree like a position."""
        return estimates.std(self.draws, np.asarray(self.log_weights))

    def quantile(self, q: Any) -> Any:
        """Weighted quantiles of every coordinate: the smallest draw up to which at least `q` of the weight lies.

        That is `numpy.quantile` with `weights` and method="inverted_cdf". Draws on disk are read once for every
        `estimates.GROUP_BYTES` of their coordinates.

        Args:
            q: a probability, or an array of them, whose axes then come first.

        Returns:
            A pytree like a position.
        """
        return estimates.quantile(q, self.draws, np.asarray(self.log_weights))

    def effective_sample_size(self) -> float:
        """The effective number of draws by their weights alone (Kish), without autocorrelation."""
        return estimates.effective_sample_size(np.asarray(self.log_weights))

    def resample(self, num: int, seed: int = 0) -> Any:
        """`num` draws of equal weight, with a leading axis of `num`, by systematic resampling over all chains."""
        weights = estimates.normalized_weights(np.asarray(self.log_weights))
        places = np.unravel_index(estimates.systematic_indices(weights.reshape(-1), num, seed), weights.shape)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[places], self.draws)

    def mode_masses(self, modes: Any, num_modes: int | None = None) -> np.ndarray:
        """The weight in each mode; `estimate_mode_masses` adds errors.

        Args:
            modes: centers, shape (num_modes, *position shape), of which each draw belongs to the nearest; or a function from a
                position to the number of its mode.
            num_modes: the number of modes, if `modes` is a function.
        """
        return estimates.mode_masses(modes, self.draws, np.asarray(self.log_weights), num_modes)

    def estimate_mode_masses(self, modes: Any, num_modes: int | None = None) -> Estimate:
        """The weight in each mode as an `Estimate`; arguments are those of `mode_masses`.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> wells = lambda x: 2.0 * jnp.sum((x**2 - 1.0) ** 2)
            >>> run = iso.sample(wells, iso.sgld(0.05), num_steps=20_000, num_chains=8, init=jnp.zeros(1))
            >>> found = run.estimate_mode_masses([[-1.0], [1.0]])
            >>> bool(abs(found.mean[0] - 0.5) < 5 * found.std_error[0])
            True
        """
        return self._estimate_each(estimates.mode_indicators(modes, self.draws, self.log_weights.ndim, num_modes))

    energy_histogram = by_energy.energy_histogram
    log_density_of_states = by_energy.log_density_of_states

    def log_z_ratio(self, to: float) -> Estimate:
        """Log Z(to) - log Z(T), with its error, where Z(T) is the integral of exp(-U / T) and T the temperature of the run.

        For samplers that flatten the energy: draws of others hardly overlap with another temperature. Warns if the overlap is too
        small. Corrects for noise on the energies if it is known.
        """
        by_energy.refuse_jacobians(self)
        log_weights = np.asarray(self.log_weights)
        finite = log_weights[np.isfinite(log_weights)]
        if finite.size == 0 or np.ptp(finite) < 1e-6:
            remedy = "Use a contour sampler such as `iso.icsgld`; or `reweighted(to)`, and check its effective draws."
            refuse("run", "one that flattened the energy", f"{self.name}, whose draws have equal weight", remedy)
        tilt, left = self._log_tilt(to)
        given = (log_weights, tilt, self.temperature, to, self._small_bias())
        found = self._with_checks(by_energy.log_z_ratio(*given, self.shares_noise))
        noise = by_energy.check_noise(left, 1.0 / self.temperature - 1.0 / to)
        return found._replace(checks=(*found.checks, *noise))

    def log_evidence(self) -> Estimate:
        """Log of the integral of exp(-U), with its error: the evidence, if U is that of a likelihood and a normalized prior.

        For runs along a path from a reference that is normalized and can be drawn (`iso.with_reference`). Example:
        `isotherm.run.evidence.log_evidence`. Contour samplers give a ratio of two constants, `log_z_ratio`.
        """
        return self._with_checks(log_evidence(self))

    def reweighted(self, to: float) -> Self:
        """The same draws with the weights of another temperature.

        Exact for exact energies, and for normal noise that is the same everywhere and small beside the temperatures.
        """
        by_energy.refuse_jacobians(self)
        tilt, left = self._log_tilt(to)
        log_weights = np.asarray(self.log_weights, np.float64)
        # Draws of a diverged chain have no energy, and keep weight zero.
        log_weights = log_weights + np.where(np.isfinite(log_weights), tilt, 0.0)
        bias = None if self.bias is None else self.bias.reweighted(1.0 / self.temperature - 1.0 / to)
        config = {**self.config, "temperature": float(to), **({} if left is None else {"weight_error": left})}
        return dataclasses.replace(self, log_weights=log_weights, config=config, bias_probe=bias)

    def _log_tilt(self, to: float) -> tuple[np.ndarray, float | None]:
        """What reweighting adds to the log weights, corrected for energy noise, and the error left by it; None if unknown."""
        energies = np.asarray(self.energies)
        tilt = by_energy.log_tilt(energies, self.temperature, to)
        if self.config.get("is_exact"):
            return tilt, 0.0
        slope = 1.0 / self.temperature - 1.0 / to
        if "weight_error" not in self.config or "weight_slopes" not in self.stats:
            return tilt, None
        at_once = noise_correction(energies, self.stats, self.config, slope)
        before = noise_correction(energies, self.stats, self.config)
        if at_once is None or before is None:
            return tilt, None
        return tilt - (at_once[0] - before[0]), at_once[1]

    def _estimate_each(self, each: Callable[[Any], Any]) -> Estimate:
        given = (self.draws, np.asarray(self.log_weights), self._small_bias(), self.are_particles, self.shares_noise)
        return self._with_checks(estimates.estimate(each, *given))

    def _with_checks(self, found: Estimate) -> Estimate:
        from isotherm.diagnostics.distribution import with_checks

        return with_checks(self, found, self._small_bias())

    def _small_bias(self) -> Bias | None:
        """The bias, if it was measured at all coordinates, as functions of the position need."""
        return self.bias if is_small(self.draws, self.log_weights.ndim) else None

    def __repr__(self) -> str:
        from isotherm.diagnostics.summary import headlines

        return "\n  ".join(headlines(self))

    def _repr_html_(self) -> str:
        from isotherm.diagnostics.summary import html_table

        return html_table(self)

    def summary(self) -> Any:
        """Means, spreads and diagnostics of the coordinates, and the checks of the run; print it.

        Its `rows` are the coordinates of the table. Its `notes` are the lines below: a headline, and the checks in words.
        """
        from isotherm.diagnostics.summary import summary_of

        return summary_of(self)

    to_arviz = export.to_arviz
    to_dataframe = export.to_dataframe
    plot_trace = plots.plot_trace
    plot_density = plots.plot_density
    plot_energy = plots.plot_energy

    def save(self, folder: str | pathlib.Path) -> None:
        """Write the run to a new folder for `iso.load`. It cannot be resumed; for that use `sample(out=...)`."""
        place = check_folder("folder", folder, 'Write `run.save("my-run")`, say.')
        check_written_path("folder", place)
        saving.save(self, place)

    @classmethod
    def load(cls, folder: str | pathlib.Path) -> Self:
        """A run from its folder, finished or not. Draws are read when they are indexed."""
        found = saving.load(check_folder("folder", folder, 'Write `iso.load("my-run")`, say.'))
        return cls.assemble(**found).without_noise()


load = Run.load
