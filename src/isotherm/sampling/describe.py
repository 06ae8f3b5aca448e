"""What a run was made with, in JSON: for people to read, and for `resume` to compare."""

import dataclasses
import platform
import zlib
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

# Arrays with more are told by a checksum.
_MOST_NUMBERS = 1_000
_SCHEDULES = ("step_size", "temperature")
_PROBES = (0, 1, 10, 100, 1_000, 10_000, 100_000)


def describe(value: Any) -> Any:
    """A description of a sampler, a potential or any of their fields that is equal for equal settings in any process."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: _describe_field(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)
        }
        return {"class": type(value).__name__, **fields}
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.ascontiguousarray(value)
        if array.size <= _MOST_NUMBERS and array.dtype.kind in "fiu":
            return np.asarray(value).tolist()
        return {"shape": list(array.shape), "dtype": str(array.dtype), "crc32": zlib.crc32(array.view(np.uint8).data)}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__name__)}
    return type(value).__name__


def environment() -> dict[str, Any]:
    """Versions and device of this process."""
    device = jax.devices()[0]
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": metadata.version("jaxlib"),
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device.device_kind,
        "num_devices": jax.device_count(),
        "x64": jnp.result_type(float) == jnp.float64,
    }


def _describe_field(name: str, value: Any) -> Any:
    """A schedule that is a plain function is told by its values at a few iterations."""
    if name in _SCHEDULES and callable(value) and not dataclasses.is_dataclass(value):
        return {**describe(value), "values": [np.asarray(value(probe)).item() for probe in _PROBES]}
    return describe(value)
