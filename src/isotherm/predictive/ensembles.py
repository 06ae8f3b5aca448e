"""Ensembles of networks that are no run: trained on, or joined from several."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from isotherm.api import sample
from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_integer, check_real, refuse, short
from isotherm.networks.potential import NetworkPotential
from isotherm.potentials.start import per_chain
from isotherm.predictive.average import Draws
from isotherm.predictive.checks import check_draws, check_fit, check_network
from isotherm.run.estimates import normalized_weights
from isotherm.samplers.sampler import Sampler, check_sampler


class Ensemble(NamedTuple):
    """Networks from elsewhere than a run, as `predict` takes them. Axes (chain, draw, ...)."""

    draws: Any
    model_state: Any
    log_weights: np.ndarray


@checked_call(prefix="iso.predictive.")
def trained(
    ensemble: Draws, potential: NetworkPotential, sampler: Sampler, *, num_steps: int | None = None, seed: int = 0
) -> Ensemble:
    """The networks of an ensemble after each was trained on.

    The thesis evaluates networks drawn from SWAG's Gaussians after an epoch of SGD with momentum:
    ``trained(swag.sample(10, potential=potential), potential, iso.msgd(step_size))``. Networks train side by side, as chains of one
    run. BatchNorm statistics start from the potential's own and follow the training, so that it should take an epoch or more. Draws
    without weight, such as those of a chain that diverged, are not trained, and keep no weight.

    Args:
        ensemble: draws of networks' weights.
        potential: the potential that they came from.
        sampler: how to train, such as `iso.msgd(step_size)` with the last step size of the path.
        num_steps: iterations; None is one epoch.
        seed: of batches and noise.
    """
    check_draws("ensemble", ensemble)
    check_network(potential)
    check_fit("ensemble", ensemble, potential)
    check_sampler(sampler)
    number = -(-potential.num_data // (potential.batch_size or potential.num_data))
    if num_steps is not None:
        number = check_integer("num_steps", num_steps, 1, "Give iterations, or None for one epoch.")
    log_weights = np.asarray(ensemble.log_weights)
    shape = log_weights.shape
    is_used = normalized_weights(log_weights).reshape(-1) > 0
    # What is not trained starts where the first of the others does.
    places = np.where(is_used, np.arange(log_weights.size), np.argmax(is_used))
    flat = _flat(log_weights.ndim)
    starts = jax.tree.map(lambda leaf: flat(leaf)[places], ensemble.draws)
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
    back = lambda leaf: np.asarray(leaf)[:, 0].reshape(*shape, *leaf.shape[2:])  # noqa: E731
    # A network that diverged in training counts no more.
    lost = np.isneginf(np.asarray(run.log_weights)[:, 0].reshape(shape))
    kept = np.where(lost, -np.inf, log_weights)
    return Ensemble(jax.tree.map(back, run.draws), jax.tree.map(back, run.model_state), kept)


def joined(*parts: tuple[Draws, float]) -> Ensemble:
    """One ensemble from several with a factor each: ``joined((pretrained, 10.0), (run, 1.0))``.

    A draw counts with its factor times its weight over the mean weight of its own part. The thesis' averages of exchange samplers
    start from pretrained networks of weight 10, to which every epoch adds one of weight 1.
    """
    if not parts:
        refuse("parts", "at least one pair (ensemble, factor)", "none", "Give pairs.")
    draws, states, weights, shapes = [], [], [], []
    for part in parts:
        if not isinstance(part, tuple) or len(part) != 2:
            refuse("parts", "pairs (ensemble, factor)", short(part), "Write `joined((run, 1.0), (other, 1.0))`, say.")
        ensemble, factor = part
        check_draws("ensemble", ensemble)
        check_real("factor", factor, "Give what a draw of this part counts.", above=0.0)
        log_weights = np.asarray(ensemble.log_weights, np.float64)
        shapes.append(_shapes(ensemble, log_weights.ndim))
        if shapes[-1] != shapes[0]:
            remedy = "Join ensembles of the same network."
            refuse("parts", f"of one network, with leaves {shapes[0]}", shapes[-1], remedy)
        with np.errstate(divide="ignore"):
            relative = np.log(normalized_weights(log_weights) * log_weights.size)
        weights.append(np.log(factor) + relative.reshape(-1))
        draws.append(jax.tree.map(_flat(log_weights.ndim), ensemble.draws))
        states.append(jax.tree.map(_flat(log_weights.ndim), ensemble.model_state))

    def together(trees):
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[None], *trees)

    return Ensemble(together(draws), together(states), np.concatenate(weights)[None])


def _shapes(ensemble: Draws, lead: int) -> str:
    """Names and shapes of the leaves of one network and its state."""
    found = jax.tree_util.tree_leaves_with_path((ensemble.draws, ensemble.model_state))
    return ", ".join(f"{jax.tree_util.keystr(path[1:])} {np.shape(leaf)[lead:]}" for path, leaf in found)


def _flat(lead: int) -> Callable[[Any], np.ndarray]:
    """Makes one axis of the first `lead` of a leaf: one for all draws."""
    return lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[lead:])
