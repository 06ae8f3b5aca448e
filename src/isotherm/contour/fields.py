"""The random fields that move theta: the strength with which a chain raises the weight of its bin."""

import dataclasses
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from isotherm.foundation.errors import check_real, refuse
from isotherm.foundation.parts import Part


class FieldInputs(NamedTuple):
    """The P chains of a field; logarithms of theta are without its scale."""

    log_scale: Array  # Of theta.
    log_theta: Array  # At the bins.
    log_psi: Array  # Log Psi at the energies, without bounds.
    log_heaviest: Array  # Log theta at the heaviest covered bin of the last fold of the scale.
    zeta: Any  # How far to flatten.


class Field(Part):
    """Base of the fields f in theta <- theta + gain * f * (hit - theta).

    Attributes:
        is_cumulative: whether theta is a running sum: a chain hits all bins from its own on, and the top bin has a slope.
    """

    is_cumulative: bool = False

    def strength(self, inputs: FieldInputs) -> Array:
        """The strength f of each chain, shape (P,), at most 1."""
        raise TypeError(f"{type(self).__name__} must define `strength`.")


@dataclasses.dataclass(frozen=True, eq=False)
class Psi(Field):
    """f = Psi^zeta at the energy over that of a heavy bin, so that theta moves for any number of bins and any zeta.

    Its fixed point is the mass of each bin, and stable.
    """

    def strength(self, inputs: FieldInputs) -> Array:
        return jnp.exp(inputs.zeta * jnp.minimum(inputs.log_psi - inputs.log_heaviest, 0.0))


@dataclasses.dataclass(frozen=True, eq=False)
class ThetaPower(Field):
    """f = theta^zeta at the bin: the thesis' CSGLD. At a large zeta theta hardly moves: for 200 bins and zeta 10, f is 200^-10.

    Attributes:
        perturbation: added to f, so that theta moves at a large zeta. The fixed point is then not the mass of each bin; weights
            remain correct for the theta in use.
    """

    perturbation: float = 0.0

    def __post_init__(self):
        check_real("perturbation", self.perturbation, "Give a small number, such as 1e-3.", minimum=0.0, maximum=1.0)

    def strength(self, inputs: FieldInputs) -> Array:
        return jnp.minimum(jnp.exp(inputs.zeta * (inputs.log_scale + inputs.log_theta)) + self.perturbation, 1.0)


@dataclasses.dataclass(frozen=True, eq=False)
class Theta(Field):
    """f = theta at the bin: the thesis' ICSGLD.

    It has no fixed point when chains reach the top bin, where psi is 1: theta runs away into that bin.
    """

    def strength(self, inputs: FieldInputs) -> Array:
        return jnp.exp(inputs.log_scale + inputs.log_theta)


@dataclasses.dataclass(frozen=True, eq=False)
class Cumulative(Theta):
    """f = theta at the bin, where theta is a running sum: the thesis' AWSGLD."""

    is_cumulative = True


FIELDS = {"psi": Psi, "theta^zeta": ThetaPower, "theta": Theta, "cumulative": Cumulative}


def as_field(given: Any) -> Field:
    """A field, given as such or by its name."""
    if isinstance(given, Field):
        return given
    if not isinstance(given, str) or given not in FIELDS:
        names = ", ".join(map(repr, FIELDS))
        refuse("field", f"one of {names}, or an object of `isotherm.contour`", repr(given), "Choose one of them.")
    return FIELDS[given]()
