"""The protocol of a transform: a smooth map from free numbers z to constrained values x, one to one."""

from typing import Any

from jax import Array

from isotherm.foundation.parts import Part


class Transform(Part):
    """Base of all transforms. All act on one leaf of a position, and allow leading axes.

    Attributes:
        rule: what x must be, in words.
    """

    rule: str = ""

    def forward(self, z: Any) -> Array:
        """X, from free numbers."""
        raise TypeError(f"{type(self).__name__} must define `forward`.")

    def inverse(self, x: Any) -> Array:
        """Z, from values that are strictly inside the constraint; NaN or infinite elsewhere."""
        raise TypeError(f"{type(self).__name__} must define `inverse`.")

    def log_jacobian(self, z: Any) -> Array:
        """The log of the absolute determinant of dx/dz, summed over the whole leaf."""
        raise TypeError(f"{type(self).__name__} must define `log_jacobian`.")

    def is_inside(self, x: Any) -> Any:
        """Whether x is strictly inside the constraint."""
        raise TypeError(f"{type(self).__name__} must define `is_inside`.")
