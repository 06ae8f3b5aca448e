"""Small loops as one function each: a limit of XLA on CPUs, raised for the programs of this library alone."""

import contextlib
import functools
import os
import threading
from collections.abc import Iterator
from typing import Any

import jax

_OPTIONS = "xla_backend_extra_options"
_LIMIT = "xla_cpu_small_while_loop_byte_threshold"
# XLA compiles a loop on a CPU into one function if its body touches fewer bytes than this (by default 1,024); otherwise it
# calls each operation by itself, which takes two to seven times as long for a few hundred operations on small arrays.
MAX_WHOLE_LOOP = 16_384
# The two forms round differently, and the bytes that XLA counts are those of one device. So that draws do not depend on the number
# of devices, small iterations always are one function, and others never: by the numbers of all devices. The limit is below the
# bytes of the random numbers of a chunk, whose loop is faster in pieces.
ALWAYS, NEVER = 4 * MAX_WHOLE_LOOP, 0
# Places in XLA's protocol: executable_build_options, its debug_options, and their map xla_backend_extra_options.
_FIELD_NUMBERS = (3, 3, 500)

_local = threading.local()


def whole_loops_flag(max_bytes: int) -> str:
    """The flag in `XLA_FLAGS` that sets the limit for a whole process."""
    return f"--{_OPTIONS}={_LIMIT}={max_bytes}"


@contextlib.contextmanager
def whole_loops(max_bytes: int = MAX_WHOLE_LOOP) -> Iterator[None]:
    """Programs compiled by this thread in this context have this limit, unless `XLA_FLAGS` sets such options.

    `jax.jit` refuses this option, so it is added to the options that JAX hands to XLA. Delete this when `compiler_options`
    takes `xla_backend_extra_options`. Where JAX or XLA have changed, programs are compiled without it, and small loops run
    slower.
    """
    if jax.default_backend() != "cpu" or _OPTIONS in os.environ.get("XLA_FLAGS", ""):
        yield
        return
    _wrap_compile_options()
    _local.max_bytes = max_bytes
    try:
        yield
    finally:
        _local.max_bytes = None


def _wrap_compile_options() -> None:
    try:
        from jax._src import compiler

        original = compiler.get_compile_options
    except (ImportError, AttributeError):
        return
    if hasattr(original, "adds_limit"):
        return

    @functools.wraps(original)
    def get_compile_options(*args: Any, **keywords: Any) -> Any:
        options = original(*args, **keywords)
        max_bytes = getattr(_local, "max_bytes", None)
        return options if max_bytes is None else _with_limit(options, max_bytes)

    get_compile_options.adds_limit = True  # pyright: ignore[reportAttributeAccessIssue]
    compiler.get_compile_options = get_compile_options


def _with_limit(options: Any, max_bytes: int) -> Any:
    try:
        entry = _field(1, _LIMIT.encode()) + _field(2, str(max_bytes).encode())
        for number in reversed(_FIELD_NUMBERS):
            entry = _field(number, entry)
        # Fields of a message that are appended to it are merged into it.
        return type(options).ParseFromString(options.SerializeAsString() + entry)
    except Exception:
        return options


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes in the encoding of protocol buffers."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    return bytes([value & 127 | 128]) + _varint(value >> 7) if value > 127 else bytes([value])
