"""Processes end together: one that fails tells the others at once, instead of after a heartbeat timeout.

JAX by itself lets a process that raised wait for the others to shut down, for minutes, while they wait for it.
"""

import atexit
import contextlib
import os
import sys
import threading
import time
from types import TracebackType
from typing import Any

from isotherm.distributed.silence import Silence

_KEY = "isotherm-failures"
# One request of the watch; it asks again until the process ends.
_WAIT_MS = 3_600_000
# Time for the main thread to print an error of its own before another's ends the process.
_SECONDS_TO_END = 0.5


class _Failures:
    """The watch of this process over the others."""

    def __init__(self, client: Any, num_processes: int, process_id: int, silence: Silence) -> None:
        self.client, self.num_processes, self.process_id, self.silence = client, num_processes, process_id, silence
        self.status: int | None = None
        self.is_ending = False
        self.thread = threading.Thread(target=self._watch, name="isotherm-failures", daemon=True)

    def start(self) -> None:
        previous = sys.excepthook

        def report(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
            previous(kind, error, trace)
            self.tell(f"{kind.__name__}: {error}".partition("\n")[0], 1)

        sys.excepthook = report
        # Runs before JAX's handler, which would wait for the others.
        atexit.register(self._end)
        self.thread.start()
        self.silence.start()

    def tell(self, message: str, status: int) -> None:
        """Tell the others that this process fails, which ends with `status`."""
        if self.status is not None:
            return
        self.status = status
        for number in range(self.num_processes):
            if number != self.process_id:
                text = f"Process {self.process_id} of {self.num_processes} failed: {message}"
                self._set(number, text)

    def _set(self, number: int, text: str) -> None:
        with contextlib.suppress(RuntimeError):  # The service has ended, and with it all processes.
            self.client.key_value_set(f"{_KEY}/{number}", text, allow_overwrite=True)

    def _watch(self) -> None:
        text = None
        while text is None:
            try:
                text = self.client.blocking_key_value_get(f"{_KEY}/{self.process_id}", _WAIT_MS)
            except RuntimeError as error:
                if self.is_ending or "DEADLINE_EXCEEDED" not in str(
                    error
                ):  # The connection is lost; JAX ends the process.
                    return
        if self.is_ending or not text:
            return
        if self.status is None:
            print(f"{text}\nProcess {self.process_id} ends too.", file=sys.stderr, flush=True)
        time.sleep(_SECONDS_TO_END)
        os._exit(1 if self.status is None else self.status)

    def _end(self) -> None:
        self.is_ending = True
        sys.stdout.flush()
        sys.stderr.flush()
        if self.status is not None:
            if self.process_id == 0:  # The service ends with process 0. The others hear of the failure first.
                time.sleep(2 * _SECONDS_TO_END)
            os._exit(self.status)
        self.silence.stop()
        self._set(self.process_id, "")
        self.thread.join(_SECONDS_TO_END)


_FAILURES: list[_Failures] = []


def watch_others(client: Any, address: str, num_processes: int, process_id: int, heartbeat_timeout: float) -> None:
    """Start to watch over the other processes, once."""
    if not _FAILURES:
        silence = Silence(client, address, num_processes, process_id, heartbeat_timeout)
        _FAILURES.append(_Failures(client, num_processes, process_id, silence))
        _FAILURES[0].start()


def fail(message: str, status: int = 1) -> None:
    """Tell the other processes that this one fails. They print `message` and end; this one must exit next, and gets `status`.

    Uncaught exceptions do so by themselves. Does nothing with one process.

    Args:
        message: one line for the logs of the others.
        status: the exit status of this process.
    """
    for failures in _FAILURES:
        failures.tell(message, status)
