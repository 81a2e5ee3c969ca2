"""Text on its way to a terminal. Pure."""

from __future__ import annotations


def printable(text: str) -> str:
    """With control characters as `\\x..`: a terminal carries out what they tell it, and anybody may have sent them."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Several lines of it, as of a message, in which what somebody has sent is quoted."""
    return "\n".join(map(printable, text.split("\n")))
