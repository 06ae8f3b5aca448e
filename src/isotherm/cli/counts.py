"""Counts on the command line, such as 1e5."""

import math
from typing import Annotated

from tyro.constructors import PrimitiveConstructorSpec


def count_from(text: str) -> int:
    """An integer in any usual form.

    Example:
        >>> count_from("100_000"), count_from("1e5"), count_from("2.5e3")
        (100000, 100000, 2500)
    """
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number) or number != int(number):
        raise ValueError(f"{text} is not an integer")
    return int(number)


_SPECIFICATION: PrimitiveConstructorSpec[int] = PrimitiveConstructorSpec(
    nargs=1,
    metavar="INT",
    instance_from_str=lambda words: count_from(words[0]),
    is_instance=lambda value: isinstance(value, int),
    str_from_instance=lambda value: [str(value)],
)
Count = Annotated[int, _SPECIFICATION]
