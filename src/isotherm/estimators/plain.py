"""The plain mini-batch estimator: one value and one gradient, in one pass."""

import dataclasses
from typing import Any

import jax

from isotherm.estimators.estimator import Curvature, EnergyAndGradient, Estimator
from isotherm.foundation.errors import check_choice
from isotherm.foundation.parts import Static
from isotherm.potentials.potential import Potential


@dataclasses.dataclass(frozen=True, eq=False)
class Plain(Estimator):
    """Energy and gradient of the batch, from one `value_and_grad`.

    The energy is the value that the gradient pass computes anyway, so couplings cost no further pass. Energy and gradient
    then share their noise, which biases what a coupling does by O(step size), about as much as gradient noise itself.

    Attributes:
        energy_batch: "shared" takes the energy from the gradient's batch; "fresh" from a batch of its own, at the cost of one
            more forward pass, and has no such bias.

    The author's code shares the batch.
    """

    energy_batch: Static[str] = "shared"

    def __post_init__(self):
        check_choice("energy_batch", self.energy_batch, ("shared", "fresh"))

    @property
    def num_batches(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        return 2 if self.energy_batch == "fresh" else 1

    def evaluate(
        self,
        potential: Potential,
        state: Any,
        position: Any,
        model_state: Any,
        batches: tuple[Any, ...],
        noises: tuple[Any, ...],
        probe: Any = None,
    ) -> tuple[Any, EnergyAndGradient]:
        def energy(x):
            found = potential.evaluate(x, batches[0], noises[0], model_state)
            return found.energy, found

        curvature = None
        if probe is None:
            gradient, found = jax.grad(energy, has_aux=True)(position)
        else:
            gradient, product, found = jax.jvp(jax.grad(energy, has_aux=True), (position,), (probe,), has_aux=True)
            curvature = Curvature(probe, product)
        read = found
        if self.energy_batch == "fresh":
            read = potential.evaluate(position, batches[1], noises[1], model_state)
        return state, EnergyAndGradient(
            read.energy, read.prior_energy, gradient, curvature, found.model_state, read.residuals
        )
