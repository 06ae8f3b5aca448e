"""What a run was made with, in JSON: for people to read, and for `resume` to compare."""

import dataclasses
import platform
import zlib
from typing import Any

import jax
import numpy as np

_PROBES = (0, 1, 10, 100, 1_000, 10_000, 100_000)


def describe(value: Any) -> Any:
    """A description of a sampler, a potential or any of their fields that is equal for equal settings in any process."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: describe(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"class": type(value).__name__, **fields}
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.ascontiguousarray(value)
        return {"shape": list(array.shape), "dtype": str(array.dtype), "crc32": zlib.crc32(array.view(np.uint8).data)}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__name__), "values": _schedule_values(value)}
    return type(value).__name__


def environment() -> dict[str, Any]:
    """Versions and device of this process."""
    import jaxlib

    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": jaxlib.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device.device_kind,
        "num_devices": jax.device_count(),
        "x64": bool(jax.config.jax_enable_x64),
    }


def _schedule_values(function: Any) -> list[float] | None:
    """Values of a schedule at a few iterations; None for functions that are not schedules."""
    try:
        shape = jax.eval_shape(function, jax.ShapeDtypeStruct((), np.int32))
        if shape.shape != ():
            return None
        return [float(function(probe)) for probe in _PROBES]
    except Exception:  # Energies and likelihoods take positions: whatever they raise on a number, they are no schedules.
        return None
