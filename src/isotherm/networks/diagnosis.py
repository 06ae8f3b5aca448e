"""Checks on a network that no single weight shows: its prior, and whether it has learned anything."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView

if TYPE_CHECKING:
    from isotherm.networks.potential import NetworkPotential

# Draws whose loss is compared, from the last part of a run.
_NUM_DRAWS, _FROM = 32, 0.75


def diagnose(potential: "NetworkPotential", precision: float | None, run: RunView) -> list[Check]:
    """The checks on a network with a Gaussian prior of that precision, or another; see `Potential.diagnose`."""
    found, prior = [], potential.log_prior
    if prior is None and run.claims_distribution:
        found.append(
            checks.NO_PRIOR.found(
                "The network has no prior: weights on which the data say little wander for as long as the run lasts.",
                "Pass `weight_decay`, the precision of a Gaussian prior, such as 1.0.",
            )
        )
    if precision is not None and 0.0 < precision < checks.WEAK_PRIOR.limit and run.claims_distribution:
        found.append(
            checks.WEAK_PRIOR.found(
                f"The prior of precision {precision:.2g} allows weights as large as {precision**-0.5:.2g}.",
                "Weight decay of optimizers belongs to a mean loss: `iso.potentials.to_bayesian` translates it.",
                precision=precision,
            )
        )
    constant = potential.loss_without_inputs
    if constant is None or (prior is not None and precision is None):
        return found
    loss = _lowest_loss(run, precision or 0.0)
    if loss > checks.UNTRAINED.limit * constant:
        found.append(
            checks.UNTRAINED.found(
                f"The network predicts no better than without its inputs: its loss over all examples is {loss:.3g}, and "
                f"{constant:.3g} for the same prediction everywhere.",
                "Scale the inputs, or check its initial weights, the step size and the prior.",
                loss=loss,
                constant_loss=constant,
            )
        )
    return found


def _lowest_loss(run: Any, precision: float) -> float:
    """The mean loss late in the run of the chain with the lowest one."""
    number = run.log_weights.shape[-1]
    places = np.unique(np.linspace(int(_FROM * (number - 1)), number - 1, _NUM_DRAWS).astype(int))
    late = (*(slice(None),) * (run.log_weights.ndim - 1), places)
    lead = np.asarray(run.energies)[late].shape
    squares = sum(
        np.sum(np.asarray(leaf[late], np.float64).reshape(*lead, -1) ** 2, axis=-1)
        for leaf in jax.tree.leaves(run.draws)
    )
    losses = np.asarray(run.energies, np.float64)[late] - 0.5 * precision * squares
    return float(np.min(np.nan_to_num(np.mean(losses, axis=-1), nan=np.inf)))
