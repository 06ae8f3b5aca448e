"""Progress of work that has several parts, each of which may hold runs: what is being done, for how long, and what is left."""

import time
from collections.abc import Callable
from typing import Any, Self

from rich.console import Console, Group

from isotherm.driver.progress import bars_inside


class PartProgress:
    """A `log` for work in parts. Call it at the start of every part with the part's name.

    On a terminal a bar shows the part, the time so far and an estimate of what is left, with the bars of runs below it. Elsewhere
    every part is a line. The estimate takes the parts that are left to be as long as those before them on average. A text that
    starts with a space is a remark on the part, not another part.

    Args:
        console: where to print.
        num_parts: how many there will be; None shows the time so far alone.
        clock: seconds, from any start.

    Example:
        >>> with PartProgress(Console(), 2, iter((0.0, 0.0, 60.0, 60.0)).__next__) as log:
        ...     log("SGLD")
        ...     log("CSGLD")
        1 of 2: SGLD ...
        2 of 2: CSGLD ... (60 s so far, about 60 s left)
    """

    def __init__(self, console: Console, num_parts: int | None, clock: Callable[[], float] = time.perf_counter):
        self._console, self._num_parts, self._clock = console, num_parts, clock
        self._number, self._bar, self._live = 0, None, None
        self._inside: list[Any] = []

    def __enter__(self) -> Self:
        self._began = self._part_began = self._clock()
        self._sharing = bars_inside(self._inside if self._console.is_terminal else None)
        self._sharing.__enter__()
        if self._console.is_terminal:
            from rich.live import Live
            from rich.progress import BarColumn, Progress, TextColumn

            columns = [TextColumn("{task.description}", style="bold", markup=False), BarColumn()]
            self._bar = Progress(*columns, TextColumn("{task.fields[told]}", markup=False), console=self._console)
            self._task = self._bar.add_task("starting", total=self._num_parts, told="")
            # Seldom enough not to disturb what is being timed.
            self._live = Live(console=self._console, get_renderable=self._shown, refresh_per_second=2, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._live is not None:
            self._live.stop()
        self._sharing.__exit__(None, None, None)

    def __call__(self, text: str) -> None:
        """Say that the part before has ended and this one begins."""
        if text.startswith(" "):
            self._print(text)
            return
        now = self._clock()
        if self._bar is not None:
            if self._number:
                spent = _in_words(now - self._part_began)
                self._print(f"{self._place}{self._bar.tasks[0].description}: {spent}")
            self._bar.update(self._task, description=text, completed=self._number)
        self._number, self._part_began = self._number + 1, now
        if self._bar is None:
            told = self.told(now)
            self._print(f"{self._place}{text} ..." + (f" ({told})" if told else ""))

    def told(self, now: float) -> str:
        """The time so far, and an estimate of the rest where some parts are done and the number of parts is known."""
        before, finished = self._part_began - self._began, self._number - 1
        words = [f"{_in_words(now - self._began)} so far"] if now - self._began >= 1 else []
        if finished > 0 and self._num_parts is not None and self._number <= self._num_parts and words:
            each = before / finished
            left = each * (self._num_parts - self._number) + max(each - (now - self._part_began), 0.0)
            words.append(f"about {_in_words(left)} left")
        return ", ".join(words)

    @property
    def _place(self) -> str:
        is_known = self._num_parts is not None and self._number <= self._num_parts
        return f"{self._number} of {self._num_parts}: " if is_known else ""

    def _print(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _shown(self) -> Group:
        assert self._bar is not None
        self._bar.update(self._task, told=f"{self._place.rstrip(': ')} {self.told(self._clock())}".strip())
        return Group(self._bar, *self._inside)


def _in_words(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
