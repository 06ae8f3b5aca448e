"""SGLD on the 25-mode energy in the plane, beside BlackJAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from isotherm.api import sample
from isotherm.potentials import from_energy
from isotherm.samplers import sgld
from isotherm_thesis.bench.peers import rows_beside
from isotherm_thesis.bench.timing import Measurement

_STEP_SIZE = 3e-3
_THINNING = 100


def plane_energy(x: Any) -> Any:
    """The 25-mode energy without its wall."""
    return 0.2 * jnp.sum(x**2) - 2.0 * jnp.sum(jnp.cos(2 * jnp.pi * x))


def sgld_rows(num_chains: int, num_steps: int) -> list[Measurement]:
    """Chain-steps per second, thinned by 100, beside BlackJAX's kernel in two forms of a scan."""
    potential, sampler = from_energy(plane_energy), sgld(step_size=_STEP_SIZE)
    settings = {"num_steps": num_steps, "num_chains": num_chains, "thinning": _THINNING, "progress": False}

    def ours():
        return sample(potential, sampler, init=jnp.zeros(2), **settings).draws

    work = f"SGLD, 25 modes in the plane, {num_chains} chain{'s' * (num_chains > 1)}, thinned by {_THINNING}, chain-steps/s"
    forms = {"all draws kept": (num_chains, num_steps, None), "nested scan": (num_chains, num_steps, _THINNING)}
    return rows_beside(work, (num_chains * num_steps, ours), "BlackJAX", blackjax_sgld, forms)


def blackjax_sgld(num_chains: int, num_steps: int, thinning: int | None) -> Callable[[], Any]:
    """BlackJAX's SGLD on the same energy."""
    import blackjax  # pyright: ignore[reportMissingImports]

    kernel: Any = blackjax.sgld(lambda x, _: -jax.grad(plane_energy)(x))

    def step(x, key):
        return kernel.step(key, x, 0.0, _STEP_SIZE)

    def all_kept(key, x):
        return lax.scan(lambda x, k: (step(x, k),) * 2, x, jax.random.split(key, num_steps))[1]

    def nested(key, x):
        length = thinning or 1

        def outer(x, key):
            x, _ = lax.scan(lambda x, k: (step(x, k), None), x, jax.random.split(key, length))
            return x, x

        return lax.scan(outer, x, jax.random.split(key, num_steps // length))[1]

    one = all_kept if thinning is None else nested
    many = one if num_chains == 1 else jax.vmap(one)
    shape = (2,) if num_chains == 1 else (num_chains, 2)
    key = jax.random.key(0)
    keys = key if num_chains == 1 else jax.random.split(key, num_chains)
    compiled = jax.jit(many)
    return lambda: compiled(keys, jnp.zeros(shape))
