"""Texts that somebody else has given. Pure."""

from __future__ import annotations

from unicodedata import category, east_asian_width


def is_utf8(text: str) -> bool:
    """Whether UTF-8 has it: an argument of the command line may have bytes that no text has."""
    return text.isascii() or text == text.encode(errors="replace").decode()


def printable(text: str) -> str:
    """With control characters as `\\x..`: a terminal carries out what they tell it, and anybody may have sent them."""
    return text if text.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def printable_lines(text: str) -> str:
    """Several lines of it, as of a message, in which what somebody has sent is quoted."""
    return "\n".join(map(printable, text.split("\n")))


def aligned(text: str, width: int, *, right: bool = False) -> str:
    """With spaces before or behind it, to be so many columns of a terminal wide."""
    spaces = " " * (width - columns(text))
    return spaces + text if right else text + spaces


def columns(text: str) -> int:
    """Columns of a terminal that it takes: two for a character of East Asia or an emoji, none for a mark on another."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(char: str) -> int:
    return 0 if category(char) in ("Mn", "Me") else 2 if east_asian_width(char) in ("W", "F") else 1
