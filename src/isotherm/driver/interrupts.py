"""Ctrl-C and SIGTERM end a run after its block, so that nothing is lost."""

import contextlib
import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Handlers that a program has when nobody asked for others. Those of a user stay.
_USUAL = (signal.SIG_DFL, signal.default_int_handler)


class Interrupts(contextlib.AbstractContextManager["Interrupts"]):
    """While it is entered, the first signal is only noted; a second one does what it always does.

    Attributes:
        received: the signal that came; None so far.
    """

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in _SIGNALS}
            self._before = {number: handler for number, handler in handlers.items() if handler in _USUAL}
            for number in self._before:
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self._restore()
        print("\nStopping after this block. Press Ctrl-C again to stop at once.", file=sys.stderr, flush=True)

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def finish(self) -> None:
        """Do what the signal asked for, once everything is safe: SIGTERM ends the process; Ctrl-C has ended the run."""
        if self.received is signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
