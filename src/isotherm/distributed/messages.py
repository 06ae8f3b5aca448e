"""Messages between the processes of a run, through JAX's coordination service: a few bytes, in about a millisecond.

Not through devices: a collective that one process never enters hangs the others without a message. Every wait here ends with an
error that names what was waited for, and for whom.
"""

import collections
import math
import struct
import threading
import zlib
from collections.abc import Sequence
from typing import Any, TypeVar

import jax
from jax.experimental import multihost_utils

from isotherm.foundation.errors import check_real, refuse, short

# A block of iterations lasts half a second, but its first compilation or a checkpoint on a slow disk minutes.
_TIMEOUT = 600.0
_MAX_BYTES = 1 << 21  # gRPC refuses messages of 4 MiB.
_Text = TypeVar("_Text", str, bytes)
_LOCK = threading.Lock()
_ROUNDS: collections.Counter[str] = collections.Counter()


class ProcessError(TimeoutError):
    """Raised when another process is lost, or does not arrive where this one waits for it."""


def process_count() -> int:
    """The number of processes of this run. Does not start JAX's backends."""
    return _state().num_processes if jax.distributed.is_initialized() else 1


def process_index() -> int:
    """The number of this process, from 0 on. Does not start JAX's backends."""
    return _state().process_id if jax.distributed.is_initialized() else 0


def agree(value: _Text, name: str, timeout: float = _TIMEOUT) -> _Text:
    """Give every process the value of process 0, such as a seed or the name of a folder.

    Args:
        value: text or bytes, up to 2 MiB. Read on process 0 only.
        name: what is agreed on, for messages. All processes must call with the same names in the same order.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    if not isinstance(value, (str, bytes)):
        refuse("value", "text or bytes", short(value), "Encode it, with json.dumps, say.")
    content = value.encode() if isinstance(value, str) else value
    if len(content) > _MAX_BYTES:
        refuse("value", f"at most {_MAX_BYTES:,} bytes", f"{len(content):,}", "Write it to a file that all can read.")
    kind = b"s" if isinstance(value, str) else b"b"
    found = _gather(name, kind + content if process_index() == 0 else b"", timeout)[0]
    return found[1:].decode() if found[:1] == b"s" else found[1:]  # pyright: ignore[reportReturnType]


def barrier(name: str, timeout: float = _TIMEOUT) -> None:
    """Wait until every process is here.

    Args:
        name: what is waited for, for messages.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    _gather(name, b"", timeout)


def any_true(flag: bool, name: str = "flag", timeout: float = _TIMEOUT) -> bool:
    """Whether `flag` is true on any process: the same answer everywhere.

    Args:
        flag: such as whether this process has received SIGTERM.
        name: what is asked, for messages.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    return any(each == b"1" for each in _gather(name, b"1" if flag else b"0", timeout))


def max_of(number: float, name: str = "number", timeout: float = _TIMEOUT) -> float:
    """The largest `number` of all processes; NaN if one is NaN.

    Args:
        number: such as the seconds that a block took.
        name: what is compared, for messages.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    return largest_of((number,), name, timeout)[0]


def largest_of(numbers: Sequence[float], name: str = "numbers", timeout: float = _TIMEOUT) -> tuple[float, ...]:
    """The largest of each of several numbers over all processes, in one message; NaN if one is NaN.

    Args:
        numbers: as many on every process.
        name: what is compared, for messages.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    form = f"<{len(numbers)}d"
    found = [struct.unpack(form, each) for each in _gather(name, struct.pack(form, *numbers), timeout)]
    return tuple(math.nan if any(map(math.isnan, each)) else max(each) for each in zip(*found, strict=True))


def check_equal(content: bytes, name: str, remedy: str, timeout: float = _TIMEOUT) -> None:
    """Refuse values that differ between processes.

    Args:
        content: what must be equal; its checksum is sent.
        name: what it is, for messages.
        remedy: what to do where they differ.
        timeout: seconds after which a `ProcessError` names the processes that did not arrive.
    """
    own = zlib.crc32(content)
    found = [int.from_bytes(each, "little") for each in _gather(name, own.to_bytes(4, "little"), timeout)]
    if len(set(found)) > 1:
        others = [str(number) for number, each in enumerate(found) if each != found[0]]
        got = f"others in process{'es' * (len(others) > 1)} {', '.join(others)} than in process 0"
        refuse(name, "equal in all processes", got, remedy)


def reached_preemption(step: int) -> bool:
    """Whether a process was told to end, by SIGTERM, and `step` is the one after which all should save and stop.

    All processes must call it for the same steps. JAX receives SIGTERM from `initialize` on. A handler that Python installs later
    replaces JAX's: use `any_true` at the end of blocks with such a handler.

    Args:
        step: the number of this step. The first step for which the answer is true is the same on all processes.
    """
    return process_count() > 1 and multihost_utils.reached_preemption_sync_point(step)


def _gather(name: str, value: bytes, timeout: float) -> list[bytes]:
    """The values of all processes."""
    if not isinstance(name, str) or not name or "/" in name:
        refuse("name", "text without a slash", short(name), "Name what the processes wait for, such as 'checkpoint'.")
    seconds = check_real("timeout", timeout, "Give seconds.", above=0.0)
    count, index = process_count(), process_index()
    if count == 1:
        return [value]
    with _LOCK:
        number = _ROUNDS[name]
        _ROUNDS[name] += 1
    client, folder = _state().client, f"isotherm/{name}"
    try:
        client.key_value_set_bytes(f"{folder}/{number}/{index}", b"=" + value)
        client.wait_at_barrier(folder, int(1000 * seconds))
        found = {key.rpartition("/")[2]: each for key, each in client.key_value_dir_get_bytes(f"{folder}/{number}/")}
        # All processes are in this round, so they have read the last one.
        if number:
            client.key_value_delete(f"{folder}/{number - 1}/{index}")
    except RuntimeError as error:
        raise _lost(client, f"{folder}/{number}/", name, seconds, error) from None
    return [found[str(each)][1:] for each in range(count)]


def _lost(client: Any, folder: str, name: str, seconds: float, error: RuntimeError) -> ProcessError:
    count, reason = process_count(), str(error).partition("\n")[0]
    if "DEADLINE_EXCEEDED" not in reason:
        return ProcessError(f"Lost another process at {name!r}: {reason}")
    arrived = {key.rpartition("/")[2] for key, _ in client.key_value_dir_get_bytes(folder)}
    missing = [str(each) for each in range(count) if str(each) not in arrived]
    who = f"process{'es' * (len(missing) > 1)} {', '.join(missing)} of {count}" if missing else "the other processes"
    remedy = "It is stuck, slower than that, or never came here: see its log."
    return ProcessError(f"Waited {seconds:g} s at {name!r} for {who}. {remedy}")


def _state() -> Any:
    # JAX has no public way to its coordination service.
    from jax._src import distributed

    return distributed.global_state
