"""How many rows there are, by one stage of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def count(rows: DataFrame) -> int:
    """As `DataFrame.count`, which adds up in tasks of their own: a shuffle, and two jobs where plans are adaptive."""
    return int(rows.select()._jdf.queryExecution().toRdd().count())  # without columns, none is read that need not be
