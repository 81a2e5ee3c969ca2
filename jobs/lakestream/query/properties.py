"""Java's properties files, as far as Hudi writes them. Pure."""

from __future__ import annotations

import re

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_PAIR = re.compile(r"((?:\\.|[^\\=:])*?)\s*[=:]\s*(.*)", re.DOTALL)


def parse_properties(text: str) -> dict[str, str]:
    """Names and values; comments and lines without a value are passed over."""
    found = {}
    for line in text.splitlines():
        if line.startswith(("#", "!")) or (match := _PAIR.fullmatch(line.strip())) is None:
            continue
        found[_plain(match[1])] = _plain(match[2])
    return found


def _plain(text: str) -> str:
    return _ESCAPE.sub(lambda match: _character(match[1]), text)


def _character(escaped: str) -> str:
    return chr(int(escaped[1:], 16)) if len(escaped) == 5 else _PLAIN.get(escaped, escaped)
