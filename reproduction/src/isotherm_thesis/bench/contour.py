"""CSGLD on the 25-mode energy in the plane, beside BlackJAX, for few and for many bins."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from isotherm.api import sample
from isotherm.contour import Partition
from isotherm.potentials import from_energy
from isotherm.samplers import csgld, icsgld, sgld
from isotherm_thesis.bench.peers import rows_beside
from isotherm_thesis.bench.timing import Measurement, rates
from isotherm_thesis.bench.toy import plane_energy

_STEP_SIZE, _GAIN, _THINNING = 3e-3, 1e-3, 100
_LOW, _HIGH = -4.5, 10.0


def csgld_rows(num_bins: int, num_steps: int, num_steps_theirs: int) -> list[Measurement]:
    """Steps per second of one chain, thinned by 100, beside BlackJAX's field and slopes in both forms of a scan."""
    width = (_HIGH - _LOW) / num_bins
    sampler = csgld(_STEP_SIZE, partition=Partition(_LOW, width, num_bins), gain=_GAIN, field="theta")
    potential = from_energy(plane_energy)
    settings = {"thinning": _THINNING, "init": jnp.zeros(2), "progress": False}

    def ours():
        return sample(potential, sampler, num_steps=num_steps, **settings).draws

    work = f"CSGLD, 25 modes in the plane, {num_bins} bins, thinned by {_THINNING}, steps/s"
    names = {"all draws kept": False, "nested scan": True}
    forms = {name: (num_bins, width, num_steps_theirs, is_nested) for name, is_nested in names.items()}
    return rows_beside(work, (num_steps, ours), "BlackJAX", blackjax_csgld, forms, num_steps_theirs)


def icsgld_rows(num_chains: int = 16, num_steps: int = 300_000) -> list[Measurement]:
    """Chain-steps per second of interacting chains, beside independent ones."""
    partition = Partition(_LOW, (_HIGH - _LOW) / 512, 512)
    potential, samplers = (
        from_energy(plane_energy),
        (icsgld(_STEP_SIZE, partition=partition), sgld(step_size=_STEP_SIZE)),
    )
    settings: dict[str, Any] = {"num_steps": num_steps, "num_chains": num_chains, "thinning": _THINNING}
    settings |= {"init": jnp.zeros(2), "progress": False}

    def timed(sampler):
        return lambda: sample(potential, sampler, **settings).draws

    mine, independent = rates(num_steps * num_chains, *map(timed, samplers))
    work = f"ICSGLD, 25 modes in the plane, 512 bins, {num_chains} chains, thinned by {_THINNING}, chain-steps/s"
    return [Measurement(work, "our SGLD", mine, independent)]


def blackjax_csgld(num_bins: int, width: float, num_steps: int, is_nested: bool) -> Callable[[], Any]:
    """BlackJAX's CSGLD on the same energy."""
    import blackjax  # pyright: ignore[reportMissingImports]

    kernel: Any = blackjax.csgld(
        lambda x, _: -plane_energy(x),
        lambda x, _: -jax.grad(plane_energy)(x),
        zeta=0.75,
        num_partitions=num_bins,
        energy_gap=width,
        min_energy=_LOW,
    )

    def step(state, key):
        return kernel.step(key, state, 0.0, _STEP_SIZE, _GAIN)

    def all_kept(state, keys):
        return lax.scan(lambda s, k: (step(s, k), s.position), state, keys)[1]

    def nested(state, keys):
        def several(state, keys):
            state, _ = lax.scan(lambda s, k: (step(s, k), None), state, keys)
            return state, state.position

        return lax.scan(several, state, keys.reshape(-1, _THINNING))[1]

    run = jax.jit(nested if is_nested else all_kept)
    keys = jax.random.split(jax.random.key(0), num_steps)
    start = kernel.init(jnp.zeros(2))
    start = start._replace(energy_idx=jnp.asarray(start.energy_idx))
    return lambda: run(start, keys)
