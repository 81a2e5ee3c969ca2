"""Hive-style partition paths: `dt=2026-01-31/kind=a%3Ab`, as Hive, Spark and Hudi escape them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

ESCAPED = "\"#%'*/:=?\\{[]^\x7f" + "".join(chr(code) for code in range(32))
"""As in Spark's `ExternalCatalogUtils.escapePathName` (outside Windows), and NUL, as in Hudi: neither a folder nor S3
has it in a name. Readers turn back any two digits behind a %."""


def partition_path(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """The path of values; null and the empty string become `__HIVE_DEFAULT_PARTITION__`, as in Spark."""
    return "/".join(
        f"{escape(column)}={escape(value) if value else NULL_PARTITION}"
        for column, value in zip(columns, values, strict=True)
    )


def partition_values(path: str) -> dict[str, str | None]:
    """The values of a path, by column."""
    parts = (part.partition("=") for part in path.split("/") if part)
    return {unquote(column): None if value == NULL_PARTITION else unquote(value) for column, _, value in parts}


def escape(text: str) -> str:
    """A column's name or value as it is in a path."""
    return "".join(f"%{ord(char):02X}" if char in ESCAPED else char for char in text)
