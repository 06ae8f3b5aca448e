"""Errors of a device that runs out of memory."""

import contextlib
import pathlib
import re
from collections.abc import Iterator

import jax

from isotherm.foundation.errors import DeviceMemoryError

# Computations that run asynchronously fail with INTERNAL.
_OUT_OF_MEMORY = re.compile(r"(?:RESOURCE_EXHAUSTED:? ?|INTERNAL: .*(?=out of memory))(.*)", re.IGNORECASE)
_SMALLER = (
    'Take fewer chains or a smaller `batch_size`, compute one chain at a time with `chain_mode="map"`, keep the data on the host '
    "with `is_streamed=True`, or leave more memory to this process."
)


@contextlib.contextmanager
def device_memory(folder: pathlib.Path | None = None, iteration: int | None = None) -> Iterator[None]:
    """Turn XLA's error into a `DeviceMemoryError` with a remedy; `iteration` is that of a run that is going on."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        first = str(error).splitlines()[0]
        found = _OUT_OF_MEMORY.search(first)
        if found is None:
            raise
        reason = found[1] or "no details"
        when = "before the first iteration" if iteration is None else f"after {iteration:,} iterations"
        message = f"The device ran out of memory {when}: {reason[:200].rstrip('.')}. "
        if folder is None or iteration is None:
            raise DeviceMemoryError(message + _SMALLER) from error
        raise DeviceMemoryError(
            f"{message}End other programs on the device, or move to a larger one, then resume from the last checkpoint: "
            f'`iso.resume("{folder}", potential, sampler)` or `isotherm resume {folder}`. For a new run: {_SMALLER}'
        ) from error
