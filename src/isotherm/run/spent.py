"""Where the time of a run went: its fields, and in words."""

from typing import Any

SPENT = {
    "seconds": "of sampling",
    "compile_seconds": "of compiling",
    "pilot_seconds": "of pilots",
    "earlier_seconds": "before it was resumed",
}


def time_of(run: Any) -> str:
    """The seconds of a run, each with what they were spent on. What took no time is left out, but for sampling.

    Example:
        >>> from types import SimpleNamespace
        >>> time_of(SimpleNamespace(seconds=2.5, compile_seconds=1.25, pilot_seconds=0.0, earlier_seconds=60.0))
        '2.5 s of sampling, 1.25 s of compiling, 60 s before it was resumed'
    """
    told = {name: getattr(run, name) for name in SPENT}
    return ", ".join(f"{value:.3g} s {SPENT[name]}" for name, value in told.items() if value or name == "seconds")
