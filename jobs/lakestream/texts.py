"""Texts that somebody else has given. Pure."""

from __future__ import annotations


def is_utf8(text: str) -> bool:
    """Whether UTF-8 has it: an argument of the command line may have bytes that no text has."""
    return text.isascii() or text == text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """With control characters as `\\x..`: a terminal carries out what they tell it, and anybody may have sent them."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Several lines of it, as of a message, in which what somebody has sent is quoted."""
    return "\n".join(map(printable, text.split("\n")))
