"""Where energies and gradients come from: the protocol of an estimator.

An estimator turns one batch into the gradient that the kernel follows and the energy that the coupling reads. It may keep a
state with each chain, such as an anchor of a control variate, which is refreshed at fixed multiples of the iteration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

from isotherm.foundation.parts import Part
from isotherm.foundation.periodic import Periodic
from isotherm.potentials.potential import Potential


class Curvature(NamedTuple):
    """A probe v of random signs and the product of the Hessian with it, for kernels that ask for them."""

    probe: Any
    product: Any


class EnergyAndGradient(NamedTuple):
    """What one pass at one position gives.

    Attributes:
        energy: the energy that couplings read and the run records.
        prior_energy: its part that belongs to the prior.
        gradient: the gradient that the kernel follows.
        curvature: a Hessian product along the probe, where the kernel asked for it.
        model_state: the model state after the pass.
        residuals: of the energy; see `Evaluation`.
    """

    energy: Array
    prior_energy: Array
    gradient: Any
    curvature: Curvature | None
    model_state: Any
    residuals: Array | None = None


class Estimator(Part):
    """Base of all estimators; its defaults are those of one without state.

    Attributes:
        num_batches: how many independent batches an iteration needs.
        reduces_variance: whether it lowers the noise of energies.
    """

    num_batches: int = 1
    reduces_variance: bool = False

    def check(self, potential: Potential) -> None:
        """Refuse, before any work, a potential that this estimator cannot use."""

    def init(self, potential: Potential, position: Any, model_state: Any) -> Any:
        """The state that a chain starts with."""
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
        """Energy and gradient of one chain, and the estimator's next state."""
        raise TypeError(f"{type(self).__name__} must define `evaluate`.")

    def measure(
        self, potential: Potential, state: Any, position: Any, model_state: Any, batch: Any, noise: Any
    ) -> tuple[Array, Array, Array | None]:
        """Energy, prior energy and residuals of one chain on a further batch, as the coupling would read them. No gradient."""
        found = potential.evaluate(position, batch, noise, model_state)
        return found.energy, found.prior_energy, found.residuals

    def periodic(self) -> tuple[Periodic, ...]:
        """Work at multiples of the iteration. `apply` is given (potential, state, `Refreshed`) of one chain, and gives its state.

        It comes after the measurements of the coupling, which see the estimator at its greatest age.
        """
        return ()


class Refreshed(NamedTuple):
    """What periodic work of an estimator sees of a chain.

    Attributes:
        position: of the chain.
        model_state: of the chain.
        full_energy: at the position, on all data.
        batch: maps a number below `num_regressed` of the estimator to a batch, the same for all chains and times.
    """

    position: Any
    model_state: Any
    full_energy: Array
    batch: Callable[[Array], Any]
