"""Texts on a terminal as they are: what a user or a file wrote is never taken as markup or as a command to the terminal."""

from typing import Any

from rich.console import Console
from rich.text import Text

from isotherm.foundation.printable import printable


class PlainConsole(Console):
    r"""A console that prints strings as they are: brackets and colons are no markup, and control characters are written out.

    Styles are given as arguments, or in a `rich.text.Text`.

    Example:
        >>> PlainConsole().print("runs/[red]x[/]/:dog:" + chr(27) + "[2J")
        runs/[red]x[/]/:dog:\x1b[2J
    """

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)
