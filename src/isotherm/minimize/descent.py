"""Local descents for global searches: L-BFGS within a budget, on functions that may not be finite everywhere."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

# Iterations of a descent, and evaluations of one of its line searches, at most.
_DESCENT = 60
MOST_TRIES = 20


def guarded(function: Callable[[Array], Array], ceiling: float) -> Callable[[Array], Array]:
    """`function`, with a value of `ceiling` and no gradient where either of its own is not finite."""

    @jax.custom_vjp
    def finite(z):
        return forward(z)[0]

    def forward(z):
        value, gradient = jax.value_and_grad(function)(z)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        return jnp.where(jnp.isfinite(value), value, ceiling), jnp.where(is_finite, gradient, 0.0)

    finite.defvjp(forward, lambda gradient, cotangent: (cotangent * gradient,))
    return finite


def descend_from(function: Callable[[Array], Array], start: Array, allowed: Array) -> tuple[Array, Array, Array]:
    """The end of L-BFGS, its value, and how many evaluations it took, at most `allowed`."""
    import optax

    search = optax.scale_by_zoom_linesearch(max_linesearch_steps=MOST_TRIES, initial_guess_strategy="one")
    solver = optax.lbfgs(linesearch=search)
    look = optax.value_and_grad_from_state(function)

    def step(loop):
        z, state, spent, _, number = loop
        value, gradient = look(z, state=state)
        updates, state = solver.update(gradient, state, z, value=value, grad=gradient, value_fn=function)
        tries = optax.tree.get(state, "num_linesearch_steps")
        after: Any = optax.apply_updates(z, updates)
        moved = jnp.max(jnp.abs(after - z))
        is_sane = jnp.all(jnp.isfinite(after))
        return jnp.where(is_sane, after, z), state, spent + tries, jnp.where(is_sane, moved, 0.0), number + 1

    def goes_on(loop):
        return (loop[4] < _DESCENT) & (loop[3] > 1e-7) & (loop[2] + MOST_TRIES <= allowed)

    # The value at the start, and that at the end.
    begin = (start, solver.init(start), jnp.full((), 2, jnp.int32), jnp.ones((), start.dtype), jnp.zeros((), jnp.int32))
    end, _, spent, _, _ = jax.lax.while_loop(goes_on, step, begin)
    return end, function(end), spent
