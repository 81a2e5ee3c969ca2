"""Names as SQL writes them. The image's rehearsal has this module and none that it would import."""

from __future__ import annotations


def quoted(name: str) -> str:
    """A column name as SQL writes any name."""
    return "`" + name.replace("`", "``") + "`"
