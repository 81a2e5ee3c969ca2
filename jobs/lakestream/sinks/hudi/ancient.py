"""Times that Spark writes into a Hudi table, and does not read from it.

Spark's Parquet reader fails at timestamps before 1900 and dates before 15 October 1582 in files that do not say who
wrote them (`READ_ANCIENT_DATETIME`), because Spark 2 wrote them by another calendar. Hudi 1.2.0's base files do not say
it, unless a compaction made them. So one row with the zero time of Go or .NET (`0001-01-01T00:00:00Z`) would end all
queries of a reader with Spark's defaults. Of TIMESTAMP_NTZ there were none in Spark 2, and all are read.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DateType, StructType, TimestampType

from lakestream.spark.refusals import refusals


def ancient(output: StructType) -> Iterator[Column]:
    """By column that has times: null, or the reason that a row cannot be written."""
    return refusals(output, _is_ancient, "a timestamp before 1900 or a date before 1582-10-15")


def _is_ancient(value: Column, type: DataType) -> Column | None:
    match type:
        case TimestampType():
            return value < sf.expr("timestamp'1900-01-01 00:00:00Z'")
        case DateType():
            return value < sf.expr("date'1582-10-15'")
    return None
