"""Several processes of one run: how they find each other, agree, wait for each other, and end together.

    import isotherm as iso

    iso.distributed.initialize()  # Before anything that uses a device. Needs no argument under `isotherm launch`, srun or mpirun.

All messages go through JAX's coordination service on process 0, not through devices. With one process every function is trivial.
"""

from isotherm.distributed.connect import initialize
from isotherm.distributed.failures import fail
from isotherm.distributed.messages import (
    ProcessError,
    agree,
    any_true,
    barrier,
    check_equal,
    largest_of,
    max_of,
    process_count,
    process_index,
    reached_preemption,
)

__all__ = [
    "ProcessError",
    "agree",
    "any_true",
    "barrier",
    "check_equal",
    "fail",
    "initialize",
    "largest_of",
    "max_of",
    "process_count",
    "process_index",
    "reached_preemption",
]
