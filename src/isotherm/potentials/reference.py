"""References: distributions that can be drawn, from which a path leads to the target."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from scipy.special import expit

from isotherm.foundation import checks
from isotherm.foundation.bennett import LARGEST, log_ratio, slope
from isotherm.foundation.calls import checked_call
from isotherm.foundation.checks import Check, RunView
from isotherm.foundation.errors import refuse, short
from isotherm.foundation.parts import Part, Static
from isotherm.foundation.transfers import transfers_on_purpose
from isotherm.foundation.user_functions import call_traced, check_function
from isotherm.potentials.potential import Evaluation, Potential, WrappedPotential

# Energies above this count as infinite. A draw from a reference may have no density under the target, and swaps read its energy.
LARGEST_ENERGY = 1e15
# Draws whose density is checked before a run, and after it, in as many dimensions.
_NUM_CHECKED, _NUM_DRAWN, _MAX_SIZE = 256, 2_048, 200
# Numbers of these draws, of large positions.
_MAX_NUMBERS = 4_000_000
# Units of the spread at which fitted draws are clipped; the smallest mean acceptance with which an integral is known.
_WIDEST, _MIN_OVERLAP = 4.0, 0.02
# Errors, and logs of the integral, beyond which it is reported.
_LARGEST_Z, _SMALLEST = 6.0, 0.02


class Reference(Part):
    """Base of distributions that can be drawn and whose normalized density is known."""

    def draw(self, key: Any) -> Any:
        """A position."""
        raise TypeError(f"{type(self).__name__} must define `draw`.")

    def log_density(self, position: Any) -> Array:
        """The log of the normalized density."""
        raise TypeError(f"{type(self).__name__} must define `log_density`.")


@dataclasses.dataclass(frozen=True, eq=False)
class Given(Reference):
    """A reference by functions of the user. Without a `density` it is that of the potential's own prior."""

    draws: Static[Callable[[Any], Any]]
    density: Static[Callable[[Any], Array] | None]

    def draw(self, key: Any) -> Any:
        return call_traced("draw", "a function of a key that returns a position", self.draws, key)

    def log_density(self, position: Any) -> Array:
        assert self.density is not None
        return jnp.asarray(call_traced("log_density", "a function of a position", self.density, position))


@dataclasses.dataclass(frozen=True, eq=False)
class Normal(Reference):
    """A normal distribution over all numbers of a position.

    Attributes:
        mean: a position.
        factor: L with covariance L L^T, lower triangular, over the flattened position.

    Example:
        >>> reference = Normal(jnp.zeros(2), 2.0 * jnp.eye(2))
        >>> round(float(reference.log_density(jnp.zeros(2))), 3)
        -3.224
    """

    mean: Any
    factor: Any

    def draw(self, key: Any) -> Any:
        mean, structured = ravel_pytree(self.mean)
        return structured(mean + jnp.asarray(self.factor) @ jax.random.normal(key, mean.shape, mean.dtype))

    def log_density(self, position: Any) -> Array:
        away = ravel_pytree(position)[0] - ravel_pytree(self.mean)[0]
        unit = jax.scipy.linalg.solve_triangular(jnp.asarray(self.factor), away, lower=True)
        volume = jnp.sum(jnp.log(jnp.abs(jnp.diagonal(jnp.asarray(self.factor)))))
        return -0.5 * (unit @ unit) - volume - 0.5 * away.size * np.log(2.0 * np.pi)


@dataclasses.dataclass(frozen=True, eq=False)
class ReferencedPotential(WrappedPotential):
    """A potential with a reference U_0 = -log_density in the place of its prior: the energy stays, and couplings read U - U_0.

    Attributes:
        inner: U.
        reference: U_0.
    """

    reference: Reference

    coupling_includes_prior = False
    has_reference = True

    @property
    def init(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.reference.draw if self.inner.init is None else self.inner.init

    def draw(self, key_shared: Array, key_own: Array, iterations: Array, position: Any) -> Any:
        return self.inner.draw(key_shared, key_own, iterations, position)

    def draw_reference(self, key: Any) -> Any:
        return self.reference.draw(key)

    def evaluate(self, position: Any, batch: Any, noise: Any, model_state: Any) -> Evaluation:
        found = self.inner.evaluate(position, batch, noise, model_state)
        prior = self.prior_energy(position).astype(found.energy.dtype)
        # Outside the reference's support a chain has diverged. Inside it the target may have no density, or none that is a number.
        is_drawn = ~(found.energy < jnp.inf) & (prior < jnp.inf)
        energy = jnp.where(is_drawn, LARGEST_ENERGY, found.energy).astype(found.energy.dtype)
        return found._replace(energy=energy, prior_energy=prior)

    def prior_energy(self, position: Any) -> Array:
        if isinstance(self.reference, Given) and self.reference.density is None:
            return self.inner.prior_energy(position)
        return -self.reference.log_density(position)

    def full_energy(self, position: Any, model_state: Any = None) -> Array:
        return self.inner.full_energy(position, model_state)


@checked_call()
def with_reference(
    potential: Any, draw: Callable[[Any], Any] | Reference, log_density: Callable[[Any], Any] | None = None
) -> Potential:
    """A potential with a distribution that can be drawn, such as its prior: the start of a path, and of the evidence.

    The energy stays as it is. Rungs of a path have U_0 + beta (U - U_0) with U_0 = -log_density: from the reference at beta = 0,
    which is drawn exactly, to the target at beta = 1.

    Args:
        potential: a potential or an energy function.
        draw: a function of a key of JAX that returns a position; or a `potentials.Normal(mean, factor)`, which has both.
        log_density: the log density of these draws, normalized; None takes the `log_prior` of `potential`.

    Example:
        >>> import isotherm as iso, jax, jax.numpy as jnp
        >>> log_prior = lambda x: -0.5 * x @ x - jnp.log(2 * jnp.pi)
        >>> energy = lambda x: 20.0 * (x @ x - 1.0) ** 2 - log_prior(x)
        >>> problem = iso.with_reference(energy, lambda key: jax.random.normal(key, (2,)), log_prior)
        >>> problem.has_reference
        True
    """
    from isotherm.potentials.energy import from_energy

    if not isinstance(potential, Potential):
        potential = from_energy(potential)
    if isinstance(draw, Reference):
        return ReferencedPotential(potential, draw)
    if potential.space is not None:
        remedy = "Write `constrain(iso.with_reference(potential, draw, log_density), transforms)`."
        refuse("potential", "one without constraints, which come after the reference", short(potential), remedy)
    check_function("draw", draw, "lambda key: jax.random.normal(key, (2,))")
    if log_density is None:
        if not potential.has_data:
            remedy = "Give the normalized log density of the draws."
            refuse("log_density", "given for an energy function, whose prior is unknown", "None", remedy)
        return ReferencedPotential(potential, Given(draw, None))
    if potential.is_streamed:
        remedy = "Leave it out: the path then starts at the potential's own prior."
        refuse("log_density", "None for data that stream", "a function", remedy)
    check_function("log_density", log_density, "lambda x: -0.5 * x @ x")
    return ReferencedPotential(potential, Given(draw, log_density))


@transfers_on_purpose
def check_reference(potential: Potential, position: Any) -> None:
    """Refuse a reference whose draws are no positions, leaves (run, chain, ...), or have no density."""
    drawn = jax.eval_shape(potential.draw_reference, jax.random.key(0))
    shapes = [
        jax.tree.map(lambda leaf, lead=lead: leaf.shape[lead:], tree) for tree, lead in ((drawn, 0), (position, 2))
    ]
    if shapes[0] != shapes[1]:
        refuse(
            "draw",
            f"a function that returns positions of shape {shapes[1]}, as `init`",
            shapes[0],
            "Return the same tree.",
        )
    size = sum(leaf.size for leaf in jax.tree.leaves(drawn))
    checked = min(_NUM_CHECKED, max(_MAX_NUMBERS // max(size, 1), 1))
    draws = jax.vmap(potential.draw_reference)(jax.random.split(jax.random.key(0), checked))
    densities = -np.asarray(jax.vmap(potential.prior_energy)(draws))
    number = int(np.sum(~np.isfinite(densities)))
    if number:
        got = f"{densities[~np.isfinite(densities)][0]} at {number} of {checked}"
        refuse("log_density", "finite at every position that `draw` returns", got, "Give the density of these draws.")


@dataclasses.dataclass(frozen=True, eq=False)
class ReferenceChecks:
    """Whether the density of a potential's reference is that of its draws, and normalized.

    Draws of the reference and of normal distributions fitted to them give its integral, by Bennett's acceptance ratio. That
    needs no tails and no smoothness; where the two overlap too little, nothing is known.
    """

    potential: Potential

    def diagnose(self, run: RunView) -> list[Check]:
        """A check if the integral is not 1, or depends on the normal distribution."""
        return self._found

    @functools.cached_property
    def _found(self) -> list[Check]:
        if not self.potential.has_reference:
            return []
        known = [found for number in range(2) if (found := _log_integral(self.potential, number)) is not None]
        off = [(value, error) for value, error in known if abs(value) > max(_LARGEST_Z * error, _SMALLEST)]
        if not off:
            return []
        value, error = np.exp(off[0][0]), np.exp(off[0][0]) * off[0][1]
        text = f"By its draws the density of the reference integrates to {value:.3g} ± {error:.1g}, not 1."
        remedy = "Normalize `log_density` (or `log_prior`), and let `draw` return draws of that density."
        return [checks.REFERENCE.found(text, remedy, integral=value, error=error)]


@transfers_on_purpose
def _log_integral(potential: Potential, number: int) -> tuple[float, float] | None:
    """Log of the integral of the reference's density, and its error, by the `number`-th normal distribution."""
    one = jax.eval_shape(potential.draw_reference, jax.random.key(0))
    size = sum(leaf.size for leaf in jax.tree.leaves(one))
    if not 0 < size <= _MAX_SIZE:
        return None
    draws = jax.vmap(potential.draw_reference)(jax.random.split(jax.random.key(1 + number), 2 * _NUM_DRAWN))
    flat = np.asarray(jax.vmap(lambda x: ravel_pytree(x)[0])(draws))
    fitted, judged = np.split(flat.astype(np.float64), 2)
    # Quantiles, since a Cauchy distribution has no moments.
    center, scale = (
        np.median(fitted, axis=0),
        0.5 * (np.quantile(fitted, 0.84, axis=0) - np.quantile(fitted, 0.16, axis=0)),
    )
    if np.any(scale <= 0.0):
        return None
    unit = np.clip((fitted - center) / scale, -_WIDEST, _WIDEST)
    # In many dimensions a narrower normal distribution would have no overlap.
    shrunk = 1.0 - min(0.3, 2.0 / np.sqrt(size))
    covariance = shrunk * np.atleast_2d(np.cov(unit, rowvar=False)) + 1e-6 * np.eye(size)
    rng = np.random.default_rng(number)
    away = rng.normal(size=size)
    # The second one lies beside the first.
    mean = unit.mean(axis=0) + 0.7 * number * np.linalg.cholesky(covariance) @ (away / np.linalg.norm(away))
    factor = np.linalg.cholesky(covariance)
    normal = (center + scale * (mean + rng.normal(size=(_NUM_DRAWN, size)) @ factor.T)).astype(flat.dtype)
    structured = ravel_pytree(jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), one))[1]
    density = jax.vmap(lambda x: -potential.prior_energy(structured(x)))

    def works(x):
        z = np.linalg.solve(factor, ((x.astype(np.float64) - center) / scale - mean).T)
        log_normal = (
            -0.5 * np.sum(z**2, axis=0) - np.sum(np.log(np.diagonal(factor) * scale)) - 0.5 * size * np.log(2.0 * np.pi)
        )
        given = np.asarray(density(jnp.asarray(x, flat.dtype)), np.float64)
        return np.clip(log_normal - np.where(np.isnan(given), -np.inf, given), -LARGEST, LARGEST)[:, None]

    own, others = works(judged), works(normal)
    found = log_ratio(own, others)
    accepted = [expit(own + found), expit(-others - found)]
    if min(float(np.mean(values)) for values in accepted) < _MIN_OVERLAP:
        return None
    variance = sum(_NUM_DRAWN * float(np.var(values)) for values in accepted)
    return float(found[0]), float(np.sqrt(variance) / slope(own, others, found)[0])
