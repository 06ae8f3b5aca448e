"""Estimates from a run: all honor the weights of its draws."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from isotherm.diagnostics.bias import Bias, is_small
from isotherm.diagnostics.bias_notes import contradicts
from isotherm.foundation.errors import refuse
from isotherm.run import contour_noise, estimates, moments
from isotherm.run import energies as by_energy
from isotherm.run import modes as by_mode
from isotherm.run.run_data import RunData


class RunEstimates(RunData):
    """Means, spreads, masses and energies."""

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
        bias, log_weights = self._small_bias(), np.asarray(self.log_weights)
        given = (function, self.draws, log_weights, bias, self.are_particles, self.shares_noise)
        return self._noted(estimates.estimate(*given))

    def mean(self) -> Any:
        """The weighted mean of every coordinate, a pytree like a position. `estimate(lambda x: x)` adds its error.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> start = {"a": jnp.zeros(2), "b": jnp.zeros(())}
            >>> run = iso.sample(lambda x: x["a"] @ x["a"] + x["b"] ** 2, iso.sgld(0.1), num_steps=500, num_chains=4, init=start)
            >>> run.mean()["a"].shape, run.std()["b"].shape, run.quantile([0.05, 0.95])["a"].shape
            ((2,), (), (2, 2))
        """
        return moments.mean(self.draws, np.asarray(self.log_weights))

    def std(self) -> Any:
        """The weighted standard deviation of every coordinate, a pytree like a position."""
        return moments.std(self.draws, np.asarray(self.log_weights))

    def quantile(self, q: Any) -> Any:
        """Weighted quantiles of every coordinate: the smallest draw up to which at least `q` of the weight lies.

        That is `numpy.quantile` with `weights` and method="inverted_cdf". Draws on disk are read once for every
        `moments.GROUP_BYTES` of their coordinates.

        Args:
            q: a probability, or an array of them, whose axes then come first.

        Returns:
            A pytree like a position.
        """
        return moments.quantile(q, self.draws, np.asarray(self.log_weights))

    def effective_sample_size(self) -> float:
        """The effective number of draws by their weights alone (Kish); autocorrelation is not in it."""
        return estimates.effective_sample_size(np.asarray(self.log_weights))

    def resample(self, num: int, seed: int = 0) -> Any:
        """`num` draws of equal weight, with a leading axis of `num`."""
        return estimates.resample(self.draws, np.asarray(self.log_weights), num, seed)

    def mode_masses(self, modes: Any, num_modes: int | None = None) -> np.ndarray:
        """The weight in each mode; `estimate_mode_masses` adds errors.

        Args:
            modes: centers, shape (num_modes, *position shape): a draw belongs to the nearest one; or a function that maps a
                position to the number of its mode.
            num_modes: how many modes there are, where `modes` is a function.
        """
        return by_mode.mode_masses(modes, self.draws, np.asarray(self.log_weights), num_modes)

    def estimate_mode_masses(self, modes: Any, num_modes: int | None = None) -> estimates.Estimate:
        """The weight in each mode with its standard error, as `estimate` gives it; arguments are those of `mode_masses`.

        Example:
            >>> import isotherm as iso, jax.numpy as jnp
            >>> wells = lambda x: 2.0 * jnp.sum((x**2 - 1.0) ** 2)
            >>> run = iso.sample(wells, iso.sgld(0.05), num_steps=20_000, num_chains=8, init=jnp.zeros(1))
            >>> found = run.estimate_mode_masses([[-1.0], [1.0]])
            >>> bool(abs(found.mean[0] - 0.5) < 5 * found.std_error[0])
            True
        """
        given = (modes, self.draws, np.asarray(self.log_weights), num_modes, self._small_bias())
        return self._noted(by_mode.estimate_mode_masses(*given, self.are_particles, self.shares_noise))

    def energy_histogram(self, num_cells: int = 50) -> by_energy.Histogram:
        """The weighted distribution of the energy in cells of equal width."""
        return by_energy.energy_histogram(np.asarray(self.energies), np.asarray(self.log_weights), num_cells)

    def log_density_of_states(self, num_cells: int = 50) -> by_energy.Histogram:
        """Log of the volume per energy, up to a constant."""
        self._refuse_jacobians()
        return by_energy.log_density_of_states(self.energy_histogram(num_cells), self.temperature)

    def log_z_ratio(self, to: float) -> estimates.Estimate:
        """Log Z(to) - log Z(T) of the integrals of exp(-U / T), with its error; T is the temperature of the run.

        For samplers that flatten the energy: the draws of others hardly overlap with another temperature. Warns where the overlap
        is too small, and takes off what noise on the energies adds, where that is known.
        """
        self._refuse_jacobians()
        log_weights = np.asarray(self.log_weights)
        finite = log_weights[np.isfinite(log_weights)]
        if finite.size == 0 or np.ptp(finite) < 1e-6:
            remedy = "Use a contour sampler such as `iso.icsgld`; or `reweighted(to)`, and look at its effective draws."
            refuse("run", "one that flattened the energy", f"{self.name}, whose draws all weigh the same", remedy)
        tilt, left = self._log_tilt(to)
        given = (log_weights, tilt, self.temperature, to, self._small_bias())
        found = self._noted(by_energy.log_z_ratio(*given, self.shares_noise))
        return found._replace(notes=(*found.notes, *by_energy.notes_on_noise(left, 1.0 / self.temperature - 1.0 / to)))

    def reweighted(self, to: float) -> Self:
        """The same draws with the weights of another temperature.

        Exact when energies are; also with Gaussian noise that is the same everywhere, and little beside the temperatures.
        """
        self._refuse_jacobians()
        tilt, left = self._log_tilt(to)
        log_weights = np.asarray(self.log_weights, np.float64)
        # Draws of a diverged chain have no energy, and go on counting for nothing.
        log_weights = log_weights + np.where(np.isfinite(log_weights), tilt, 0.0)
        # What the steps do to the draws is that of their own temperature.
        bias = None if self.bias is None else self.bias.reweighted(1.0 / self.temperature - 1.0 / to)
        config = {**self.config, "temperature": float(to), **({} if left is None else {"weight_error": left})}
        return dataclasses.replace(self, log_weights=log_weights, config=config, checkup=bias)

    def _log_tilt(self, to: float) -> tuple[np.ndarray, float | None]:
        """What log weights gain at another temperature, without what noise on the energies adds, and the most that is left of that.

        None where it is not known what the noise adds.
        """
        energies = np.asarray(self.energies)
        tilt = by_energy.log_tilt(energies, self.temperature, to)
        if self.config.get("is_exact"):
            return tilt, 0.0
        slope = 1.0 / self.temperature - 1.0 / to
        if "weight_error" not in self.config or "weight_slopes" not in self.stats:
            return tilt, None
        at_once = contour_noise.of_runs(energies, self.stats, self.config, slope)
        before = contour_noise.of_runs(energies, self.stats, self.config)
        if at_once is None or before is None:
            return tilt, None
        return tilt - (at_once[0] - before[0]), at_once[1]

    @functools.cached_property
    def law_notes(self) -> tuple[str, ...]:
        """What is wrong with the distribution of the draws, and so with every estimate."""
        from isotherm.diagnostics.law_notes import notes_on_law

        return notes_on_law(self)

    def _noted(self, found: estimates.Estimate) -> estimates.Estimate:
        """With notes on the distribution of the draws, and on what of the bias is not known, or not in its estimate."""
        if not self.claims_distribution:
            return found._replace(notes=(*found.notes, estimates.NO_DISTRIBUTION))
        if np.any(np.asarray(self.stats.get("diverged_at", 0)) < 0):
            found = found._replace(notes=(*found.notes, *self.law_notes))
        bias = self._small_bias()
        if bias is not None and contradicts(bias):
            return found._replace(notes=(*found.notes, estimates.TOO_HOT))
        return found.with_bias_noted()

    def _small_bias(self) -> Bias | None:
        """That of a large position says nothing of a function of all of it."""
        return self.bias if is_small(self.draws, self.log_weights.ndim) else None

    def _refuse_jacobians(self) -> None:
        if self.config.get("is_constrained"):
            remedy = "The Jacobian depends on the temperature: sample again, with `constrain(..., temperature=...)`."
            refuse("run", "one of free parameters", "energies that hold a Jacobian", remedy)
