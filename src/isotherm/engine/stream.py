"""Batches that were gathered on the host."""

from typing import Any, NamedTuple

from jax import Array


class Stream(NamedTuple):
    """Batches of the iterations first, ..., first + L - 1. For one run without the axis R.

    Attributes:
        first: the first of them.
        examples: leaves (R, L, B, n, ...), or (R, L, B, P, n, ...) where chains have batches of their own.
        weights: of the examples, likewise.
        num_data: N.
    """

    first: Array
    examples: Any
    weights: Array
    num_data: Array
