"""What is wrong with a network that no single weight shows, in words."""

import jax
import numpy as np

from isotherm.run.described import is_a
from isotherm.run.run_estimates import RunEstimates

# Networks whose loss is looked at, in the last part of a run.
_NUM_LOOKED_AT, _FROM = 32, 0.75
# Of the loss that needs no inputs.
_LEARNED_NOTHING = 0.98
# Of a prior's precision: below it, it is that of a mean loss by mistake.
_LEAST_PRECISION = 0.01


def notes_on_networks(run: RunEstimates) -> list[str]:
    """Whether a network has a prior, and whether it has learned anything; nothing for other potentials."""
    if not run.is_network:
        return []
    prior, notes = run.described_potential.get("log_prior") or {}, []
    if not prior and run.claims_distribution:
        notes.append(
            "The network has no prior, so that nothing holds weights on which the data say little: they wander for as long as the "
            "run lasts. Pass `weight_decay`, the precision of a Gaussian prior, such as 1.0."
        )
    least = run.config.get("loss_without_inputs")
    is_decay = is_a(prior, "WeightDecay")
    precision = prior["precision"] if is_decay else 0.0
    if 0.0 < precision < _LEAST_PRECISION and run.claims_distribution:
        notes.append(
            f"The prior of precision {precision:.2g} lets weights be as large as {precision**-0.5:.2g}, and hardly holds them. "
            "Optimizers' weight decay is that of a mean loss: `iso.potentials.to_bayesian` translates it."
        )
    if least is None or (prior and not is_decay):
        return notes
    loss = _lowest_loss(run, precision)
    if loss > _LEARNED_NOTHING * least:
        notes.append(
            f"The network predicts no better than without its inputs: its loss over all examples is {loss:.3g}, and {least:.3g} "
            "for the same prediction everywhere. Scale the inputs, or look at its first weights, the step size and the prior."
        )
    return notes


def _lowest_loss(run: RunEstimates, precision: float) -> float:
    """The mean loss late in the run of the chain that has the lowest one."""
    number = run.num_draws
    places = np.unique(np.linspace(int(_FROM * (number - 1)), number - 1, _NUM_LOOKED_AT).astype(int))
    late = (*(slice(None),) * (run.log_weights.ndim - 1), places)
    lead = np.asarray(run.energies)[late].shape
    squares = sum(
        np.sum(np.asarray(leaf[late], np.float64).reshape(*lead, -1) ** 2, axis=-1)
        for leaf in jax.tree.leaves(run.draws)
    )
    losses = np.asarray(run.energies, np.float64)[late] - 0.5 * precision * squares
    return float(np.min(np.nan_to_num(np.mean(losses, axis=-1), nan=np.inf)))
