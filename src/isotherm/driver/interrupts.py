"""Ctrl-C and SIGTERM end a run after its block, so that nothing is lost."""

import signal
import sys
import threading
from types import FrameType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Handlers that a user installed stay.
_DEFAULTS = (signal.SIG_DFL, signal.default_int_handler)


class Interrupts:
    """A context in which the first signal is stored in `received`; a second one has its usual effect."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handlers = {number: signal.getsignal(number) for number in _SIGNALS}
            self._before = {number: handler for number, handler in handlers.items() if handler in _DEFAULTS}
            for number in self._before:
                signal.signal(number, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.received = signal.Signals(number)
        self.__exit__()
        print("\nStopping after this block. Press Ctrl-C again to stop at once.", file=sys.stderr, flush=True)

    def finish(self) -> None:
        """End the process after SIGTERM, once everything is saved. Ctrl-C has ended the run."""
        if self.received is signal.SIGTERM:
            raise SystemExit(128 + signal.SIGTERM)
