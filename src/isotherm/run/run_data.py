"""What a run holds, and runs with a part of it."""

import dataclasses
import functools
from typing import Any, Self

import jax
import numpy as np

from isotherm.diagnostics.bias import Bias
from isotherm.foundation.errors import check_real, refuse, short
from isotherm.run import contour_noise
from isotherm.run.described import innermost_potential, is_a
from isotherm.run.record_times import RecordTimes
from isotherm.run.storage import saving


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RunData:
    """See `Run`, which adds what can be asked of it."""

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
    pilot_seconds: float = 0.0
    earlier_seconds: float = 0.0

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
        return run if count == run.num_draws else run.select(slice(count))

    def without_noise(self) -> Self:
        """The run with weights of a contour sampler corrected for the noise of the energies, which is known at the end."""
        if "weight_slopes" not in self.stats or self.config.get("is_exact") or "weight_error" in self.config:
            return self
        weights, read = np.asarray(self.log_weights), np.asarray(self.energies)
        found = contour_noise.of_runs(read, self.stats, self.config)
        if found is None:
            return self
        corrected = np.where(np.isfinite(weights), weights - found[0], weights)
        return dataclasses.replace(self, log_weights=corrected, config={**self.config, "weight_error": found[1]})

    @functools.cached_property
    def bias(self) -> Bias | None:
        """How far the step size and gradient noise move the distribution of the draws; None where that is not known.

        Measured when it is first asked for, from gradients at some of the draws; see `isotherm.diagnostics.bias`.
        """
        # All repeats have the same distribution: one of them is looked at.
        first = self.split_runs()[0]
        return None if first.checkup is None else first.checkup.measure(first)

    @property
    def is_network(self) -> bool:
        """Whether the draws are weights of a network."""
        return is_a(self.described_potential, "NetworkPotential")

    @property
    def are_particles(self) -> bool:
        """Whether chains stand for the distribution together."""
        return bool(self.config.get("is_joint"))

    @property
    def shares_noise(self) -> bool:
        """Whether the chains of a run see the same mini-batches."""
        potential = self.described_potential
        return potential.get("batch_size") is not None and bool(potential.get("is_batch_shared"))

    @property
    def described_potential(self) -> dict[str, Any]:
        """What the configuration says of the potential, without what is wrapped around it."""
        return innermost_potential(self.config)

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
    def claims_distribution(self) -> bool:
        """Whether draws are to follow exp(-U / T): not those of a descent without noise, nor of swaps by a buffer."""
        rule = self.config["sampler"].get("coupling", {}).get("rule", {})
        return self.config.get("temperature") != 0.0 and not is_a(rule, "Deterministic")

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
        if not isinstance(draws, slice) and np.asarray(draws).dtype.kind not in "biu":
            refuse(
                "draws", "a slice or an array of integers", short(draws), "Write `run.select(slice(100, None))`, say."
            )
        place = (*(slice(None),) * (self.log_weights.ndim - 1), draws)
        picked = {name: jax.tree.map(lambda leaf: leaf[place], getattr(self, name)) for name in saving.DRAWN}
        return dataclasses.replace(self, times=np.asarray(self.times[draws]), **picked)

    @property
    def temperature(self) -> float:
        """The temperature of the draws. A run whose temperature changed between its draws has none."""
        found = self.config.get("temperature")
        if found is None:
            remedy = "Draw at one temperature: leave out the annealed part with `burn_in`."
            refuse("temperature", "one and the same for all draws", "a schedule that changes between them", remedy)
        return check_real("temperature", found, "Draws without noise follow no distribution.", above=0.0)
