"""Texts that may come from anywhere, such as a file, on their way to a terminal."""


def printable(text: str) -> str:
    r"""The text with control characters, and others that cannot be printed, written out as in Python's literals.

    Example:
        >>> print(printable("a" + chr(27) + "[2J"))
        a\x1b[2J
    """
    return "".join(one if one.isprintable() or one in "\n\t" else one.encode("unicode_escape").decode() for one in text)
