"""The protocol of an estimator, and the plain one.

An estimator turns a batch into the gradient of the kernel and the energy of the coupling. It may keep a state with each chain, such
as the anchor of a control variate, refreshed at fixed multiples of the iteration.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import Array

from isotherm.foundation.errors import check_choice
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.potential import Potential


class Curvature(NamedTuple):
    """A probe v of random signs and its product with the Hessian, for kernels with `needs_curvature`."""

    probe: Any
    product: Any


class EnergyAndGradient(NamedTuple):
    """The result of one pass at one position.

    Attributes:
        energy: for couplings and records.
        prior_energy: the prior's part of it.
        gradient: for the kernel.
        curvature: along the probe, for kernels with `needs_curvature`.
        model_state: the model state after the pass.
        residuals: of the energy; see `Evaluation`.
    """

    energy: Array
    prior_energy: Array
    gradient: Any
    curvature: Curvature | None
    model_state: Any
    residuals: Array | None = None


class Refreshed(NamedTuple):
    """A chain in the periodic work of an estimator.

    Attributes:
        full_energy: at the position, on all data.
        batch: maps a number below the estimator's `num_regressed` to a batch, the same for all chains and times.
    """

    position: Any
    model_state: Any
    full_energy: Array
    batch: Callable[[Array], Any]


class Estimator(Part):
    """Base of all estimators; the defaults have no state.

    Attributes:
        num_batches: the number of independent batches per iteration.
        reduces_variance: whether it lowers the energy noise.
    """

    num_batches: int = 1
    reduces_variance: bool = False

    def check(self, potential: Potential) -> None:
        """Refuse, before any work, a potential that this estimator cannot use."""

    def init(self, potential: Potential, position: Any, model_state: Any) -> Any:
        """The state of a chain at the start."""
        return ()

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
        """The estimator's next state, and energy and gradient of one chain."""
        raise TypeError(f"{type(self).__name__} must define `evaluate`.")

    def measure(
        self, potential: Potential, state: Any, position: Any, model_state: Any, batch: Any, noise: Any
    ) -> tuple[Array, Array, Array | None]:
        """Energy, prior energy and residuals of one chain on a further batch, for the coupling; no gradient."""
        found = potential.evaluate(position, batch, noise, model_state)
        return found.energy, found.prior_energy, found.residuals

    def periodic(self) -> tuple[Periodic, ...]:
        """Work at multiples of the iteration: `apply(potential, state, refreshed)` returns the state of one chain.

        It comes after the measurements of the coupling, which therefore use the estimator at its greatest age.
        """
        return ()


@dataclasses.dataclass(frozen=True, eq=False)
class Plain(Estimator):
    """Energy and gradient of the batch, from one `value_and_grad`.

    The energy is the value of the gradient pass, so couplings cost no further pass. Energy and gradient then share their noise,
    which biases couplings by O(step size), about as much as gradient noise itself. The author's code shares the batch.

    Attributes:
        energy_batch: "shared" takes the energy from the gradient's batch; "fresh" from a batch of its own, without that bias, for
            one more forward pass.
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
        energies = read.energy, read.prior_energy
        return state, EnergyAndGradient(*energies, gradient, curvature, found.model_state, read.residuals)
