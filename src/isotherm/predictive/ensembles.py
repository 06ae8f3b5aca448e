"""Ensembles of networks from elsewhere than a run: trained further, or joined from several."""

from typing import Any, NamedTuple

import jax
import numpy as np

from isotherm.api import sample
from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.networks.potential import NetworkPotential
from isotherm.potentials.start import per_chain
from isotherm.predictive.average import Draws
from isotherm.predictive.checks import check_draws, check_fit
from isotherm.run.estimates import normalized_weights
from isotherm.samplers.sampler import Sampler, check_sampler


class Ensemble(NamedTuple):
    """Networks from elsewhere than a run, for `predict`. Axes (chain, draw, ...)."""

    draws: Any
    model_state: Any
    log_weights: np.ndarray


@checked_call(prefix="iso.predictive.")
def trained(
    ensemble: Draws, potential: NetworkPotential, sampler: Sampler, *, num_steps: int | None = None, seed: int = 0
) -> Ensemble:
    """The networks of an ensemble after further training of each.

    The thesis evaluates networks drawn from SWAG's Gaussians after an epoch of SGD with momentum: ``trained(swag.sample(10,
    potential=potential), potential, iso.msgd(step_size))``. The networks are the chains of one run. BatchNorm statistics start
    from the potential's own: train for an epoch or more. Draws without weight, such as those of a diverged chain, are not
    trained and keep weight zero. So does a network that diverges in training.

    Args:
        ensemble: draws of networks' weights.
        potential: the potential of these draws.
        sampler: the optimizer, such as `iso.msgd(step_size)` with the last step size of the path.
        num_steps: iterations; None is one epoch.
        seed: of batches and noise.
    """
    check_draws("ensemble", ensemble)
    check_fit("ensemble", ensemble, potential)
    check_sampler(sampler)
    number = -(-potential.num_data // (potential.batch_size or potential.num_data))
    if num_steps is not None:
        number = check_integer("num_steps", num_steps, 1, "Give iterations, or None for one epoch.")
    log_weights = np.asarray(ensemble.log_weights)
    is_used = normalized_weights(log_weights).reshape(-1) > 0
    # A network without weight starts, as a placeholder, where the first one with weight does.
    places = np.where(is_used, np.arange(log_weights.size), np.argmax(is_used))
    starts = jax.tree.map(lambda leaf: leaf[places], _flat(ensemble.draws, log_weights.ndim))
    run = sample(
        potential,
        sampler,
        num_steps=number + 1,
        burn_in=number,
        num_chains=log_weights.size,
        init=per_chain(starts),
        seed=seed,
        progress=False,
    )

    def back(leaf):
        return np.asarray(leaf)[:, 0].reshape(*log_weights.shape, *leaf.shape[2:])

    draws, model_state, after = jax.tree.map(back, (run.draws, run.model_state, run.log_weights))
    return Ensemble(draws, model_state, np.where(np.isneginf(after), -np.inf, log_weights))


def joined(*parts: tuple[Draws, float]) -> Ensemble:
    """One ensemble from several, with a factor each: ``joined((pretrained, 10.0), (run, 1.0))``.

    The weight of a draw is its factor times its weight over the mean weight of its part. The thesis' averages of exchange
    samplers start with pretrained networks of weight 10, to which every epoch adds one of weight 1.
    """
    if not parts:
        refuse("parts", "at least one pair (ensemble, factor)", "none", "Give pairs.")
    networks, weights, shapes = [], [], []
    for part in parts:
        if not isinstance(part, tuple) or len(part) != 2:
            refuse("parts", "pairs (ensemble, factor)", short(part), "Write `joined((run, 1.0), (other, 1.0))`, say.")
        ensemble, factor = part
        check_draws("ensemble", ensemble)
        check_real("factor", factor, "Give the weight of a draw of this part.", above=0.0)
        log_weights = np.asarray(ensemble.log_weights, np.float64)
        shapes.append(_shapes(ensemble, log_weights.ndim))
        if shapes[-1] != shapes[0]:
            rule = f"of one network, with leaves {shapes[0]}"
            refuse("parts", rule, shapes[-1], "Join ensembles of the same network.")
        with np.errstate(divide="ignore"):
            relative = np.log(normalized_weights(log_weights) * log_weights.size)
        weights.append(np.log(factor) + relative.reshape(-1))
        networks.append(_flat((ensemble.draws, ensemble.model_state), log_weights.ndim))
    draws, states = jax.tree.map(lambda *leaves: np.concatenate(leaves)[None], *networks)
    return Ensemble(draws, states, np.concatenate(weights)[None])


def _shapes(ensemble: Draws, lead: int) -> str:
    """Names and shapes of the leaves of one network and its state."""
    found = jax.tree_util.tree_leaves_with_path((ensemble.draws, ensemble.model_state))
    return ", ".join(f"{jax.tree_util.keystr(path[1:])} {np.shape(leaf)[lead:]}" for path, leaf in found)


def _flat(tree: Any, lead: int) -> Any:
    """Leaves with one axis for all draws in place of the first `lead`."""
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[lead:]), tree)
