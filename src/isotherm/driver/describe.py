"""A run's sampler, potential and environment in JSON, for readers and for `resume` to compare."""

import dataclasses
import os
import platform
import textwrap
import zlib
from importlib import metadata
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from isotherm.foundation.errors import short

# Larger arrays become a checksum.
_MAX_NUMBERS = 1_000
# Longer lists and dicts are cut in messages.
_MAX_LISTED = 8
_SCHEDULES = ("step_size", "temperature")
_PROBES = (0, 1, 10, 100, 1_000, 10_000, 100_000)


def describe(value: Any) -> Any:
    """A description of a sampler, a potential or a field, equal for equal settings in any process."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return {"class": type(value).__name__} | {name: _describe_field(name, getattr(value, name)) for name in names}
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        array = np.ascontiguousarray(value)
        if array.size <= _MAX_NUMBERS and array.dtype.kind in "fiu":
            return np.asarray(value).tolist()
        return {"shape": list(array.shape), "dtype": str(array.dtype), "crc32": zlib.crc32(array.view(np.uint8).data)}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__name__)}
    return type(value).__name__


def differences(name: str, old: Any, new: Any) -> list[tuple[str, str, str]]:
    """Differences between two descriptions: names such as `potential.data[0][3]`, and both values in short.

    Example:
        >>> differences("data", [1.0, [2.0, 3.0]], (1.0, [2.0, 4.0]))
        [('data[1][1]', '3.0', '4.0')]
    """
    new = list(new) if isinstance(new, tuple) else new
    if old == new or (old != old and new != new):
        return []
    if isinstance(old, dict) and isinstance(new, dict) and old.keys() == new.keys() and "crc32" not in old:
        return [found for key in old for found in differences(f"{name}.{key}", old[key], new[key])]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [found for place, pair in pairs for found in differences(f"{name}[{place}]", *pair)]
    texts = _in_words(old), _in_words(new)
    return [(name, *texts)] if texts[0] != texts[1] else [(name, texts[0], f"{texts[1]} with other values")]


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        if "crc32" in value:
            return f"{value['dtype']}{value['shape']}"
        if "class" in value or "function" in value:
            return str(value.get("class", value.get("function")))
        names = [*list(value)[:_MAX_LISTED], *["..."] * (len(value) > _MAX_LISTED)]
        return f"a dict of {', '.join(names)}"
    if isinstance(value, list) and len(value) > _MAX_LISTED:
        return f"a list of {len(value)}"
    return textwrap.shorten(value, 80) if isinstance(value, str) else short(value)


def environment() -> dict[str, Any]:
    """Versions, devices and compiler options of this process."""
    device = jax.devices()[0]
    return {
        "isotherm": _version("isotherm"),
        "python": platform.python_version(),
        "jax": jax.__version__,
        "jaxlib": _version("jaxlib"),
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device.device_kind,
        "num_devices": jax.device_count(),
        "x64": jnp.result_type(float) == jnp.float64,
        "matmul_precision": getattr(jax.config, "jax_default_matmul_precision"),  # noqa: B009
        "XLA_FLAGS": os.environ.get("XLA_FLAGS"),
        "NPROC": os.environ.get("NPROC"),
        "num_cpus": os.cpu_count(),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _describe_field(name: str, value: Any) -> Any:
    """The description of a field; schedules that are plain functions become values at a few iterations."""
    if name in _SCHEDULES and callable(value) and not dataclasses.is_dataclass(value):
        return {**describe(value), "values": [np.asarray(value(probe)).item() for probe in _PROBES]}
    return describe(value)
