"""Work at fixed multiples of the iteration, declared by the parts and run by the engine."""

from collections.abc import Callable
from typing import Any, NamedTuple

ONCE = 1 << 30


class Periodic(NamedTuple):
    """Work that a part wants done before the iterations 0, `every`, 2 `every`, and so on.

    Attributes:
        every: iterations between two calls; `ONCE` for iteration 0 alone. Part of the structure: it is never swept.
        apply: the new state of the part, from what `Coupling.periodic` or `Estimator.periodic` says it is given.
        needs_data: whether it looks at data. Where these stream, such work is done between two blocks of iterations.
    """

    every: int
    apply: Callable[..., Any]
    needs_data: bool = True
