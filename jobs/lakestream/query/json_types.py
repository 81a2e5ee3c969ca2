"""Types of DuckDB for the columns of JSON lines, so that none of them alters a value. Pure.

A schema declares them as it is now, and lines may have been written while it was another one.
"""

from __future__ import annotations

import re

# Names of fields are passed over, which are in quotes.
_LEAF = re.compile(r'"(?:[^"]|"")*"|DECIMAL\(\d+, \d+\)|\b(?:TINYINT|SMALLINT|INTEGER|BIGINT|BOOLEAN|DATE)\b')


def as_written(kind: str) -> str:
    """The type to read a declared column as first: with what DuckDB would round, or take for something else, left as
    it is in the lines. Decimals are doubles on the way in any case."""

    def leaf(found: re.Match[str]) -> str:
        if found[0].startswith('"'):
            return found[0]
        return "DOUBLE" if found[0].startswith("DECIMAL") else "VARCHAR"

    return _LEAF.sub(leaf, kind)


def exactly(column: str, read: str, kind: str, file: str) -> str:
    """SQL of a value that was read as it was written, as what it is declared as; an error if that is another value.

    Args:
        column: its name.
        read: SQL of what was read.
        kind: what it is declared as.
        file: SQL of the path that it came from.
    """
    written = as_written(kind)
    if written == kind:
        return f"CAST({read} AS {kind})"
    says = text(
        f": column {column} is {kind} by the schema as it is now, which does not hold what was written (name other "
        "columns in --sql, or ask for later batches by --since): "
    )
    return (
        f"CASE WHEN CAST(TRY_CAST({read} AS {kind}) AS {written}) IS NOT DISTINCT FROM CAST({read} AS {written}) "
        f"THEN TRY_CAST({read} AS {kind}) ELSE error({file} || {says} || left(CAST({read} AS VARCHAR), 80)) END"
    )


def text(value: str) -> str:
    """A text in SQL."""
    return "'" + value.replace("'", "''") + "'"
