"""Hive-style partition paths, escaped as Hive and Spark escape them."""

from __future__ import annotations

from collections.abc import Sequence

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 32)}
"""As in Spark's `ExternalCatalogUtils.escapePathName` (outside Windows)."""


def partition_path(columns: Sequence[str], values: Sequence[str | None]) -> str:
    """`dt=2026-01-31/kind=a%3Ab`; null and the empty string become `__HIVE_DEFAULT_PARTITION__`, as in Spark."""
    return "/".join(
        f"{_escape(column)}={_escape(value) if value else NULL_PARTITION}"
        for column, value in zip(columns, values, strict=True)
    )


def _escape(text: str) -> str:
    return "".join(f"%{ord(char):02X}" if char in _ESCAPED else char for char in text)
