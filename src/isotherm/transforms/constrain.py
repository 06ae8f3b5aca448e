"""Potentials over constrained parameters, sampled in free ones."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from isotherm.foundation.calls import checked_call
from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.short_text import short_text
from isotherm.potentials.energy import from_log_density
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential
from isotherm.transforms.transform import Transform


@dataclasses.dataclass(frozen=True, eq=False)
class Space(Part):
    """Transforms of the leaves of a position; see `constrain`. `space(free)` is the constrained position, leading axes allowed."""

    transforms: Any

    def __post_init__(self):
        _check(self.transforms)

    def __call__(self, free: Any) -> Any:
        return _mapped(self.transforms, free, lambda transform, leaf: transform.forward(leaf))

    def unconstrained(self, position: Any) -> Any:
        """The free position, with leading axes as in `__call__`. Values outside their constraints are refused, unless traced."""

        def inverse(transform, leaf):
            if not isinstance(leaf, Tracer) and not np.all(transform.is_inside(leaf)):
                got = np.array2string(np.asarray(leaf), precision=3, threshold=8)
                refuse("init", transform.rule, got, f"Start inside the constraint {transform!r}.")
            return transform.inverse(leaf)

        return _mapped(self.transforms, position, inverse)

    def log_jacobian(self, free: Any) -> Array:
        """Sum of log |dT/dz| over all leaves."""
        parts: list[Array] = []
        _mapped(self.transforms, free, lambda transform, leaf: parts.append(transform.log_jacobian(leaf)))
        return sum(parts, jnp.zeros(()))

    def rolled(self, free: Any) -> Any:
        """A free position with periodic coordinates in their first period."""
        return _mapped(self.transforms, free, lambda own, leaf: own.forward(leaf) if own.is_periodic else leaf)

    def unrolled(self, position: Any, is_used: np.ndarray) -> Any:
        """Free or constrained positions (chain, draw, ...), with periodic coordinates within half a period of their circular mean.

        There a mode at a cut is whole. `is_used`, of shape (chain, draw), has the draws that count in the mean.
        """
        return _mapped(self.transforms, position, lambda transform, leaf: transform.unrolled(leaf, is_used))

    def periodic_leaves(self, position: Any) -> np.ndarray:
        """Whether each leaf is periodic."""
        none = jax.tree.map(lambda _: False, position)
        found = _mapped(self.transforms, none, lambda transform, _: transform.is_periodic)
        return np.array(jax.tree.leaves(found), bool)

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian depends on the position."""
        parts = jax.tree.leaves(self.transforms, is_leaf=lambda part: isinstance(part, Transform))
        return not all(part.is_periodic for part in parts)

    def places(self, free: Any) -> np.ndarray:
        """For each flat coordinate of a free position, the flat coordinate of the constrained one that it moves."""
        constrained = jax.eval_shape(self, free)
        found, begin = [], 0
        for own, other in zip(jax.tree.leaves(free), jax.tree.leaves(constrained), strict=True):
            numbers = np.arange(other.size).reshape(other.shape)
            found.append(begin + numbers[tuple(slice(size) for size in own.shape)].reshape(-1))
            begin += other.size
        return np.concatenate(found)


@dataclasses.dataclass(frozen=True, eq=False)
class ConstrainedPotential(WrappedPotential):
    r"""The potential of the free position z behind a constrained one, x = T(z).

        U_z(z) = U(T(z)) - tau * log |dT/dz|

    so that exp(-U_z / tau) dz = exp(-U / tau) dx. The Jacobian is part of the prior energy and depends on the temperature: a
    run at another temperature is refused.

    `init`, draws and `best_position` of `iso.sample` are constrained values. The energies of a run are those of U_z. Custom
    loops see z: pass `space.unconstrained(x)` to `Sampler.init`, and read values from `space(state.position)`.

    Attributes:
        inner: U, a function of x.
        map: T, also available as `space`.
        temperature: tau of the draws. 0 leaves out the Jacobian, to minimize U over x. Circular parameters alone have no Jacobian,
            and need no temperature.
    """

    map: Static[Space]
    temperature: float = 1.0

    def __post_init__(self):
        check_real("temperature", self.temperature, "Give the sampler's temperature.", minimum=0.0)

    def short_repr(self, depth: int) -> str:
        transforms = self.map.transforms
        named = transforms if isinstance(transforms, dict) else {"all": transforms}
        inside = [short_text(self.inner, depth + 1), *(f"{k}={short_text(t, depth + 1)}" for k, t in named.items())]
        return f"{type(self).__name__}({', '.join(inside)})"

    @property
    def space(self) -> Space:
        return self.map

    def check_temperature(self, temperature: float | None) -> None:
        if not self.space.has_jacobian:
            return
        if temperature is None or not np.isclose(temperature, self.temperature, rtol=1e-6, atol=0.0):
            got = "a schedule that changes between draws" if temperature is None else temperature
            remedy = "Pass the sampler's temperature to `constrain` too: the Jacobian depends on it."
            refuse("temperature", f"{self.temperature} for all draws, as in the constrained potential", got, remedy)

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return self.inner.draw(key_shared, key_own, iterations, self.space(position))

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        found = self.inner.evaluate(self.space(position), batch, noise, model_state)
        volume = self._volume(position).astype(found.energy.dtype)
        return found._replace(energy=found.energy - volume, prior_energy=found.prior_energy - volume)

    def piece_energy(self, position: Any, model_state: Any, batch: Any, piece: Array) -> Array:
        return self.inner.piece_energy(self.space(position), model_state, batch, piece)

    def draw_reference(self, key: Any) -> Any:
        return self.space.unconstrained(self.inner.draw_reference(key))

    def prior_energy(self, position: Any) -> Array:
        prior = self.inner.prior_energy(self.space(position))
        return prior - self._volume(position).astype(prior.dtype)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        energy = self.inner.full_energy(self.space(position), model_state)
        return energy - self._volume(position).astype(energy.dtype)

    def _volume(self, position: Any) -> Array:
        return self.temperature * self.space.log_jacobian(position)


@checked_call(prefix="iso.transforms.")
def constrain(
    log_density: Callable[[Any], Any] | Potential, transforms: Any, *, temperature: float = 1.0
) -> ConstrainedPotential:
    """A potential over constrained parameters; see `ConstrainedPotential`.

    Args:
        log_density: a function of a constrained position, normalized or not; or a potential, such as
            `iso.from_likelihood(...)`.
        transforms: a transform for the whole position, or a dict of them by the names of a position that is a dict; dicts may
            be nested, and leaves without a name in it stay free.
        temperature: the sampler's temperature, a number; 0 for optimizers.

    Example:
        >>> import isotherm as iso, jax.numpy as jnp
        >>> log_density = lambda x: -3.0 * x["sigma"] + jnp.log(x["sigma"]) - 0.5 * x["mean"] ** 2
        >>> problem = iso.transforms.constrain(log_density, {"sigma": iso.transforms.positive()})
        >>> start = {"sigma": jnp.array(1.0), "mean": jnp.array(0.0)}
        >>> run = iso.sample(problem, iso.sgld(0.05), num_steps=200, num_chains=4, init=start)
        >>> bool(run.draws["sigma"].min() > 0)
        True
    """
    inner = log_density if isinstance(log_density, Potential) else from_log_density(log_density)
    return ConstrainedPotential(inner, Space(transforms), temperature)


def _check(transforms: Any) -> None:
    if isinstance(transforms, dict) and transforms:
        for inner in transforms.values():
            _check(inner)
    elif not isinstance(transforms, Transform):
        rule = "a transform, or a dict of transforms by the names of parameters"
        refuse("transforms", rule, repr(transforms), 'Give {"sigma": iso.transforms.positive()}, say.')


def _mapped(transforms: Any, tree: Any, function: Callable[[Transform, Any], Any]) -> Any:
    """`function(transform, leaf)` at the leaves that have a transform."""
    if transforms is None:
        return tree
    if isinstance(transforms, Transform):
        return jax.tree.map(lambda leaf: function(transforms, leaf), tree)
    if not isinstance(tree, dict) or not set(transforms) <= set(tree):
        got = sorted(map(str, tree)) if isinstance(tree, dict) else type(tree).__name__
        remedy = "The names of the transforms must be its own."
        refuse("init", f"a dict with {', '.join(map(str, transforms))}", got, remedy)
    return {name: _mapped(transforms.get(name), child, function) for name, child in tree.items()}
