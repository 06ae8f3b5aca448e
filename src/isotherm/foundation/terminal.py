"""A terminal for untrusted texts."""

from typing import Any

from rich.console import Console
from rich.text import Text

from isotherm.foundation.printable import printable


class PlainConsole(Console):
    r"""A console that prints strings literally, without markup and with control characters escaped.

    Pass styles as arguments, or in a `rich.text.Text`.

    Example:
        >>> PlainConsole().print("runs/[red]x[/]/:dog:" + chr(27) + "[2J")
        runs/[red]x[/]/:dog:\x1b[2J
    """

    def __init__(self, **options: Any):
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)
