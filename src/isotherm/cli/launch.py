"""`isotherm launch`: several processes of one command on this machine."""

import contextlib
import dataclasses
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import IO, Annotated, Any, ClassVar

import tyro
from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from isotherm.cli.counts import Count
from isotherm.foundation.errors import check_folder, check_integer, refuse
from isotherm.foundation.launch_variables import COORDINATOR, LOCAL_DEVICES, NUM_PROCESSES, PROCESS_ID
from isotherm.foundation.printable import printable
from isotherm.foundation.terminal import PlainConsole

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LINES_PER_PANEL = 6
# After a process failed or a second signal came, the others have so long to save what they can.
_SECONDS_TO_END = 30.0


@dataclasses.dataclass(frozen=True)
class Launch:
    """Run a command as several processes of one run on this machine, such as `isotherm launch -n 2 -- isotherm sample ...`."""

    # The processes compile, this one only watches.
    compiles: ClassVar[bool] = False

    command: tyro.conf.Positional[tuple[str, ...]]
    """The command, after --. It calls iso.distributed.initialize(), as `isotherm sample` does."""
    num_processes: Annotated[Count, tyro.conf.arg(aliases=["-n"])] = 2
    """Number of processes."""
    devices_per_process: Count | None = None
    """Devices of each process: so many virtual CPU devices, or so many GPUs in turn."""
    logs: pathlib.Path | None = None
    """Folder for one log file per process, process-0.log and so on; by default none are written."""

    def run(self, console: Console) -> None:
        """Start the processes, and wait for them. The exit status is that of the first that failed."""
        check_integer("--num-processes", self.num_processes, 1, "Give -n 2, say.")
        if self.devices_per_process is not None:
            check_integer("--devices-per-process", self.devices_per_process, 1, "Leave it out to use what JAX finds.")
        if not self.command:
            refuse("command", "given after --", "nothing", "isotherm launch -n 2 -- python script.py, say.")
        logs = None if self.logs is None else check_folder("--logs", self.logs, "Give --logs my-logs, say.")
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
        status = _run(self.command, self._environments(), logs, console)
        if status:
            sys.exit(status)

    def _environments(self) -> list[dict[str, str]]:
        """The environment of each process."""
        address = f"127.0.0.1:{_free_port()}"
        environments = []
        for number in range(self.num_processes):
            own = {COORDINATOR: address, NUM_PROCESSES: str(self.num_processes), PROCESS_ID: str(number)}
            if self.devices_per_process is not None:
                devices = range(number * self.devices_per_process, (number + 1) * self.devices_per_process)
                # The first is read on CPUs, the second on GPUs.
                own |= {"JAX_NUM_CPU_DEVICES": str(len(devices)), LOCAL_DEVICES: ",".join(map(str, devices))}
            # Lines appear when they are printed, not when a buffer is full.
            environments.append(os.environ | {"PYTHONUNBUFFERED": "1"} | own)
        return environments


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class _Process:
    """One of the processes, with its output."""

    def __init__(self, number: int, command: Sequence[str], environment: dict[str, str], log: IO[bytes] | None) -> None:
        self.number, self.log = number, log
        self.lines: deque[str] = deque(maxlen=_LINES_PER_PANEL)
        self.ended_at: float | None = None
        # Not in the group of the terminal: Ctrl-C reaches it once, from here.
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def read(self, show: "_Show") -> None:
        """Take each line to its places, until the output is closed."""
        assert self.process.stdout is not None
        for line in iter(self.process.stdout.readline, b""):
            if self.log is not None:
                self.log.write(line)
                self.log.flush()
            # Progress bars return to the start of their line.
            text = printable(line.decode(errors="replace").rstrip("\r\n").rpartition("\r")[2])
            self.lines.append(text)
            show.line(self, text)
        self.process.stdout.close()

    def signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    @property
    def status(self) -> int | None:
        """As a shell gives it: 128 and the number of a signal."""
        code = self.process.returncode
        return 128 - code if code is not None and code < 0 else code


class _Show:
    """A panel for each process on a terminal; elsewhere lines with the number of their process."""

    def __init__(self, console: Console) -> None:
        self.console, self.lock = console, threading.Lock()
        self.is_live = console.is_terminal

    def line(self, source: _Process, text: str) -> None:
        if not self.is_live:
            with self.lock:
                print(f"[{source.number}] {text}", flush=True)

    def panels(self, processes: list[_Process]) -> Group:
        return Group(
            *(
                Panel(Text("\n".join(one.lines)), title=Text(f"process {one.number}{_state(one.status)}"))
                for one in processes
            )
        )


def _state(status: int | None) -> str:
    return "" if status is None else ": done" if status == 0 else f": exit status {status}"


def _run(
    command: Sequence[str], environments: list[dict[str, str]], logs: pathlib.Path | None, console: Console
) -> int:
    """Run the processes to their end, and return the status of the first that failed."""
    show, processes, received = _Show(console), [], []
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: [one.signal(signal.SIGKILL) for one in processes if one.process.poll() is None])
        for number, environment in enumerate(environments):
            log = None if logs is None else stack.enter_context((logs / f"process-{number}.log").open("wb"))
            try:
                processes.append(_Process(number, command, environment, log))
            except OSError as error:
                refuse(
                    "command", "a program that can be started", repr(command[0]), f"{error.strerror}: check its name."
                )
        readers = [threading.Thread(target=one.read, args=(show,), daemon=True) for one in processes]
        for reader in readers:
            reader.start()
        stack.enter_context(_forwarding(processes, received))
        live = stack.enter_context(Live(console=console, auto_refresh=False)) if show.is_live else None
        failed = _wait(processes, received, lambda: live and live.update(show.panels(processes), refresh=True))
        for reader in readers:
            reader.join(_SECONDS_TO_END)
    where = "" if logs is None else f" Its log: {logs / f'process-{failed.number}.log'}" if failed else ""
    if failed is not None:
        text = f"Process {failed.number} of {len(processes)} ended first with exit status {failed.status}.{where}"
        PlainConsole(stderr=True).print(text, style="red", soft_wrap=True)
        return failed.status or 1
    return 0


def _wait(processes: list[_Process], received: list[int], refresh: Any) -> _Process | None:
    """Wait for all to end; where one fails, end the others. Returns the first that failed."""
    failed, deadline = None, None
    while any(one.process.poll() is None for one in processes):
        for one in processes:
            if one.process.poll() is not None and one.ended_at is None:
                one.ended_at = time.monotonic()
        bad = [one for one in processes if one.status]
        if bad and failed is None:
            failed = min(bad, key=lambda one: one.ended_at or 0.0)
            deadline = time.monotonic() + _SECONDS_TO_END
            # Those that share its run end by themselves, with a message; others by this.
            time.sleep(1.5)
            for one in processes:
                if one.process.poll() is None:
                    one.signal(signal.SIGTERM)
        if len(received) > 1 and deadline is None:
            deadline = time.monotonic() + _SECONDS_TO_END
        if deadline is not None and time.monotonic() > deadline:
            for one in processes:
                one.signal(signal.SIGKILL)
        refresh()
        time.sleep(0.1)
    refresh()
    return failed or next((one for one in processes if one.status), None)


@contextlib.contextmanager
def _forwarding(processes: list[_Process], received: list[int]) -> Iterator[None]:
    """Send Ctrl-C and SIGTERM on to all processes."""

    def forward(number: int, _: Any) -> None:
        received.append(number)
        for one in processes:
            one.signal(number)

    before = {number: signal.signal(number, forward) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
