"""Reports of lost contact, in words.

JAX ends a process when another has been silent for the heartbeat timeout, with a stack trace that names no host. A little earlier
these threads print which contact was lost. They end nothing: a process that is busy in Python may be late without being lost.
"""

import sys
import threading
import time
from typing import Any

_FOLDER = "isotherm-alive"
# The share of the heartbeat timeout after which silence is reported.
_REPORTED = 0.6


class Silence:
    """Threads that exchange signs of life, every eighth of the heartbeat timeout."""

    def __init__(self, client: Any, address: str, num_processes: int, process_id: int, timeout: float) -> None:
        self.client, self.address, self.timeout = client, address, timeout
        self.num_processes, self.process_id = num_processes, process_id
        now = time.monotonic()
        # Process 0 hears from all processes, the others from process 0: its service has answered.
        self.heard = dict.fromkeys(range(num_processes) if process_id == 0 else [0], now)
        self.signs: dict[str, bytes] = {}
        self.reported: set[int] = set()
        self.ended = threading.Event()
        # A request over a broken line blocks its thread: another watches the clock.
        targets = (self._exchange, self._watch)
        self.threads = [threading.Thread(target=each, name="isotherm-silence", daemon=True) for each in targets]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def stop(self) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join(1.0)

    def _exchange(self) -> None:
        beat = 0
        while not self.ended.wait(self.timeout / 8):
            beat += 1
            try:
                own = f"{_FOLDER}/{self.process_id}"
                self.client.key_value_set_bytes(own, str(beat).encode(), allow_overwrite=True)
                signs = dict(self.client.key_value_dir_get_bytes(f"{_FOLDER}/")) if self.process_id == 0 else {}
            except RuntimeError:  # Silence follows.
                continue
            now = time.monotonic()
            for key, sign in signs.items():
                if self.signs.get(key) != sign:
                    self.heard[int(key.rpartition("/")[2])] = now
            self.signs = signs
            self.heard[0] = now

    def _watch(self) -> None:
        while not self.ended.wait(self.timeout / 40):
            for number, when in self.heard.items():
                seconds = time.monotonic() - when
                if seconds < _REPORTED * self.timeout:
                    self.reported.discard(number)
                elif number not in self.reported:
                    self.reported.add(number)
                    print(self._report(number, seconds), file=sys.stderr, flush=True)

    def _report(self, number: int, seconds: float) -> str:
        lost = f"Lost contact with process {number} of {self.num_processes}"
        where = f" at {self.address}" if number == 0 else ""
        remedy = "It has crashed, or its host or the network is down."
        return f"{lost}{where} {seconds:.0f} s ago. {remedy} After {self.timeout:.0f} s process {self.process_id} ends."
