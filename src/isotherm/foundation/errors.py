"""What isotherm says when an input is wrong or a chain diverges.

Every refusal has one form: `` `name` must be <rule>; got <value>. `` followed by what to do.
"""

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any, NoReturn


class DivergenceError(RuntimeError):
    """Raised after a run with ``throw=True`` when a chain left the finite numbers."""


class DivergenceWarning(UserWarning):
    """Says which chains left the finite numbers, when, and what to change."""


def refuse(name: str, rule: str, value: Any, remedy: str) -> NoReturn:
    """Raise the `ValueError` that every wrong input ends in."""
    raise ValueError(f"`{name}` must be {rule}; got {value}. {remedy}")


def check_integer(name: str, value: Any, minimum: int, remedy: str) -> int:
    """Return `value` as an int of at least `minimum`, or refuse it."""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or int(value) < minimum:
        refuse(name, f"an integer of at least {minimum}", repr(value), remedy)
    return int(value)


def check_real(
    name: str,
    value: Any,
    remedy: str,
    *,
    above: float = -math.inf,
    minimum: float = -math.inf,
    below: float = math.inf,
    maximum: float = math.inf,
) -> float:
    """Return `value` as a finite float inside the given bounds, or refuse it."""
    limits = [
        f"above {above:g}" if above > -math.inf else "",
        f"at least {minimum:g}" if minimum > -math.inf else "",
        f"below {below:g}" if below < math.inf else "",
        f"at most {maximum:g}" if maximum < math.inf else "",
    ]
    rule = " ".join(["a finite real number", " and ".join(filter(None, limits))]).strip()
    try:
        number = float(value)
    except (TypeError, ValueError):
        refuse(name, rule, repr(value), remedy)
    inside = above < number < below and minimum <= number <= maximum
    if isinstance(value, bool) or not math.isfinite(number) or not inside:
        refuse(name, rule, repr(value), remedy)
    return number


def check_options(name: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuse an option that `name` does not take, with the one that was probably meant."""
    for option in options:
        if option not in known:
            close = difflib.get_close_matches(option, known, 1)
            remedy = f"Did you mean `{close[0]}`?" if close else f"It takes: {', '.join(known)}."
            refuse(option, f"an option of `{name}`", "one that it does not take", remedy)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or refuse it."""
    if value not in choices:
        refuse(name, "one of " + ", ".join(map(repr, choices)), repr(value), "Choose one of them.")
    return value
