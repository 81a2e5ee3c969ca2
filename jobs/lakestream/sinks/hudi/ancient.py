"""Times that Spark writes into a Hudi table, and does not read from it.

Spark's Parquet reader fails at timestamps before 1900 and dates before 15 October 1582 in files that do not say who
wrote them (`READ_ANCIENT_DATETIME`), because Spark 2 wrote them by another calendar. Hudi 1.2.0's base files do not say
it, unless a compaction made them. So one row with the zero time of Go or .NET (`0001-01-01T00:00:00Z`) would end all
queries of a reader with Spark's defaults. Of TIMESTAMP_NTZ there were none in Spark 2, and all are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, DateType, MapType, StructType, TimestampType

from lakestream.spark.parse import quoted


def ancient(output: StructType) -> Iterator[Column]:
    """By column that has times: null, or the reason that a row cannot be written."""
    for field in output.fields:
        found = _has_ancient(sf.col(quoted(field.name)), field.dataType)
        if found is not None:
            yield sf.when(found, sf.lit(f"a timestamp before 1900 or a date before 1582-10-15: {field.name}"))


def _has_ancient(value: Column, type: DataType) -> Column | None:
    """True, false or null; None: a value of the type has no times."""
    match type:
        case TimestampType():
            return value < sf.expr("timestamp'1900-01-01 00:00:00Z'")
        case DateType():
            return value < sf.expr("date'1582-10-15'")
        case ArrayType():
            return _any_ancient(value, type.elementType)
        case MapType():
            return _either(
                _any_ancient(sf.map_keys(value), type.keyType), _any_ancient(sf.map_values(value), type.valueType)
            )
        case StructType():
            return _either(*(_has_ancient(value.getField(field.name), field.dataType) for field in type.fields))
    return None


def _any_ancient(values: Column, type: DataType) -> Column | None:
    if _has_ancient(sf.lit(None), type) is None:
        return None

    def is_ancient(value: Column) -> Column:
        found = _has_ancient(value, type)
        assert found is not None
        return found

    return sf.exists(values, is_ancient)


def _either(*found: Column | None) -> Column | None:
    conditions = [condition for condition in found if condition is not None]
    return reduce(or_, conditions) if conditions else None
