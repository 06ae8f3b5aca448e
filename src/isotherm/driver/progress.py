"""A progress bar on terminals."""

import contextlib
import contextvars
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from isotherm.distributed import process_index
from isotherm.foundation.printable import printable


class Status(NamedTuple):
    """How far a run is.

    Attributes:
        iteration: iterations done.
        best_energy: the lowest energy of each chain, shape (chains,) or (runs, chains).
        best_position: its position, unconstrained; () if best positions are not tracked.
        first_hit: the first iteration that reached the target energy, shape as `best_energy`; -1 for not yet.
    """

    iteration: int
    best_energy: np.ndarray
    best_position: Any
    first_hit: np.ndarray

    @classmethod
    def of(cls, iteration: int, milestones: Any) -> Self:
        found = jax.tree.map(np.asarray, milestones)
        return cls(iteration, found.best_energy, found.best_position, found.first_hit)


# Bars that a larger display draws; None where each run draws its own.
_INSIDE: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar("inside", default=None)


@contextlib.contextmanager
def bars_inside(bars: list[Any] | None) -> Iterator[None]:
    """Collect the bars of runs in a list instead of drawing them: a terminal can have one display at a time."""
    token = _INSIDE.set(bars)
    try:
        yield
    finally:
        _INSIDE.reset(token)


def say(text: str, is_shown: bool | None) -> None:
    """Print a line on standard error, wherever a run would draw its own progress bar."""
    if _INSIDE.get() is None and process_index() == 0 and (sys.stderr.isatty() if is_shown is None else is_shown):
        print(text, file=sys.stderr, flush=True)


class Progress:
    """Shows iterations, speed, energy and time left on standard error; `is_shown=None` shows them on a terminal."""

    def __init__(self, name: str, first: int, last: int, num_chains: int, is_shown: bool | None):
        self._name, self._first, self._last = name or "sampling", first, last
        self._num_chains, self._inside = num_chains, _INSIDE.get()
        self._bar: Any = None
        is_watched = self._inside is not None or sys.stderr.isatty()
        self.is_shown = is_watched if is_shown is None else is_shown

    def __enter__(self) -> Self:
        if self.is_shown:
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            from isotherm.foundation.terminal import PlainConsole

            name = TextColumn("{task.description}", style="bold", markup=False)
            texts = TextColumn("{task.fields[speed]}"), TextColumn("{task.fields[energy]}")
            columns = name, BarColumn(), MofNCompleteColumn(), *texts, TimeRemainingColumn()
            self._bar = Bar(*columns, console=PlainConsole(stderr=True))
            if self._inside is None:
                self._bar.start()
            else:
                self._inside.append(self._bar)
            fields = {"completed": self._first, "speed": "compiling", "energy": ""}
            self._task = self._bar.add_task(printable(self._name), total=self._last, **fields)
        self._began = time.perf_counter()
        return self

    def update(self, iteration: int, energy: float) -> None:
        """Show that the iterations before `iteration` are done, at an energy."""
        if self._bar is not None:
            speed = self._num_chains * (iteration - self._first) / max(time.perf_counter() - self._began, 1e-9)
            fields = {"speed": f"{_short(speed)} gradients/s", "energy": f"energy {energy:.4g}"}
            self._bar.update(self._task, completed=iteration, **fields)

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.stop() if self._inside is None else self._inside.remove(self._bar)


def _short(number: float) -> str:
    size, unit = (1e6, " M") if number >= 1e6 else (1e3, " k") if number >= 1e3 else (1.0, "")
    return f"{number / size:.3g}{unit}"
