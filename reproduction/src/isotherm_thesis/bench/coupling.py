"""What couplings cost: networks that exchange rungs, or learn contours, beside the same number that do not."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.potentials import Potential, from_likelihood
from isotherm.samplers import icsgld, naive_resgld, sgld
from isotherm.samplers.sampler import AnySampler
from isotherm_thesis.bench.network import init_weights, log_likelihood, log_prior, make_data
from isotherm_thesis.bench.timing import Measurement, rates

_SIZES = (64, 963, 963, 10)
_NUM_REPLICAS, _BATCH = 16, 64
_STEP_SIZE = 1e-8


def swap_rows(num_steps: int = 20) -> list[Measurement]:
    """Steps per second of a ladder of networks, beside independent chains of the same kernel."""
    start = init_weights(jax.random.key(0), _SIZES)
    potential = from_likelihood(log_likelihood, log_prior, make_data(_SIZES), batch_size=_BATCH)
    ladder = tuple(float(value) for value in np.geomspace(1.0, 10.0, _NUM_REPLICAS))
    settings = {"num_steps": num_steps, "thinning": num_steps, "init": start, "progress": False}
    settings |= {"collect": lambda weights: jnp.sum(weights[0][1]), "num_chains": _NUM_REPLICAS}
    samplers = naive_resgld(_STEP_SIZE, temperatures=ladder), sgld(step_size=_STEP_SIZE)
    with_swaps, without = rates(
        num_steps, *(functools.partial(_energies, potential, sampler, settings) for sampler in samplers), repeats=9
    )
    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    work = f"Exchange, {_NUM_REPLICAS} perceptrons of {size} weights, batch {_BATCH}, steps/s"
    return [Measurement(work, "no exchange", with_swaps, without)]


def contour_rows(num_steps: int = 500) -> list[Measurement]:
    """Steps per second of four interacting contour chains of a network, beside independent chains of the same kernel."""
    start = init_weights(jax.random.key(0))
    potential = from_likelihood(log_likelihood, log_prior, make_data(), batch_size=256)
    settings = {"num_steps": num_steps, "thinning": num_steps, "init": start, "progress": False}
    settings |= {"collect": lambda weights: jnp.sum(weights[0][1]), "num_chains": 4}
    samplers = icsgld(_STEP_SIZE, partition=Partition(1e4, 10.0, 10_000)), sgld(step_size=_STEP_SIZE)
    mine, independent = rates(
        num_steps, *(functools.partial(_energies, potential, sampler, settings) for sampler in samplers), repeats=15
    )
    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    work = f"ICSGLD, 4 perceptrons of {size} weights, batch 256, 10000 bins, steps/s"
    return [Measurement(work, "no contours", mine, independent)]


def _energies(potential: Potential, sampler: AnySampler, settings: dict[str, Any]) -> Any:
    return sample(potential, sampler, num_ladders=1, **settings).energies
