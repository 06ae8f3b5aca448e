"""Untrusted texts for a terminal."""


def printable(text: str) -> str:
    r"""The text with unprintable characters escaped as in Python literals.

    Example:
        >>> print(printable("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text)
