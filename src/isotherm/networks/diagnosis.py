"""Checks on a network as a whole: its prior, and whether it has learned anything."""

from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from isotherm.foundation import checks
from isotherm.foundation.checks import Check, RunView

if TYPE_CHECKING:
    from isotherm.networks.potential import NetworkPotential

# Draws whose loss is compared, and the fraction of the run after which they lie.
_NUM_DRAWS, _FROM = 32, 0.75


def diagnose(potential: "NetworkPotential", precision: float | None, run: RunView) -> list[Check]:
    """The checks on a network; `precision` is that of a Gaussian prior, None for any other. See `Potential.diagnose`."""
    found, prior = [], potential.log_prior
    if prior is None and run.claims_distribution:
        found.append(
            checks.NO_PRIOR.found(
                "The network has no prior: weights that the data do not determine drift for the whole run.",
                "Pass `weight_decay`, the precision of a Gaussian prior, such as 1.0.",
            )
        )
    if precision is not None and 0.0 < precision < checks.WEAK_PRIOR.limit and run.claims_distribution:
        found.append(
            checks.WEAK_PRIOR.found(
                f"The prior of precision {precision:.2g} allows weights as large as {precision**-0.5:.2g}.",
                "Optimizers' weight decay is relative to a mean loss: convert it with `iso.potentials.to_bayesian`.",
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
                f"The network predicts no better than without its inputs: its loss over all examples is {loss:.3g}; that of "
                f"a constant prediction is {constant:.3g}.",
                "Scale the inputs, or check the initial weights, the step size and the prior.",
                loss=loss,
                constant_loss=constant,
            )
        )
    return found


def _lowest_loss(run: Any, precision: float) -> float:
    """The lowest of the chains' mean losses over the last part of the run."""
    last = run.log_weights.shape[-1] - 1
    chosen = np.unique(np.linspace(int(_FROM * last), last, _NUM_DRAWS).astype(int))
    late = (*(slice(None),) * (run.log_weights.ndim - 1), chosen)
    losses = np.asarray(run.energies, np.float64)[late]
    for leaf in jax.tree.leaves(run.draws):
        squares = np.asarray(leaf[late], np.float64).reshape(*losses.shape, -1) ** 2
        losses = losses - 0.5 * precision * np.sum(squares, axis=-1)
    return float(np.min(np.nan_to_num(np.mean(losses, axis=-1), nan=np.inf)))
