"""A batch as the table takes it: one row for each key, the newest.

Hudi does this too (`hoodie.combine.before.upsert`), with rows that are Avro records by then. To estimate the size of so
many, to serialize, sort and read them again costs more than to do it here, where they are rows of Spark's.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, DoubleType, FloatType, LongType, StringType

from lakestream.kinesis.objects import STEP
from lakestream.sinks.hudi.deletes import identifying
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.spark.quoting import quoted

_SEQUENCE = {"_sequence_number": StringType(), "_sub_sequence": LongType()}
"""What grows from record to record of a shard, and its types; a number is decimal digits, with no zero in front."""
_POSITION, _RANK = "_lakestream_position", "_lakestream_rank"


def newest(rows: DataFrame, settings: HudiSettings) -> DataFrame:
    """Of upserts, the row of each key with the highest ordering value; of equal ones, the one that came last.

    That is told by the records' sequence numbers, and where rows bear none by the order that they are in.

    Args:
        rows: their ordering value is never null. In the order in which they came, as far as they are of one partition,
            but for those behind a join.
        settings: of the table.
    """
    if settings.ordering_field is None or not settings.upserts:
        return rows
    keys = [_as_text(name, rows.schema[name].dataType) for name in settings.identity]
    ordering = sf.col(quoted(settings.ordering_field))
    came = [*_sequence(rows), sf.col(_POSITION)]
    versions = Window.partitionBy(*keys).orderBy(*(by.desc() for by in (ordering, *came)))
    placed = rows.withColumn(_POSITION, sf.monotonically_increasing_id())
    ranked = placed.withColumn(_RANK, sf.row_number().over(versions))
    return ranked.where(sf.col(_RANK) == 1).drop(_POSITION, _RANK)


def _sequence(rows: DataFrame) -> list[Column]:
    """Nothing if the transform has left it out, or made something else of it."""
    types = {field.name: field.dataType for field in rows.schema.fields}
    if any(types.get(name) != type for name, type in _SEQUENCE.items()):
        return []
    number, sub = (sf.col(name) for name in _SEQUENCE)
    return [sf.length(number), number, sub.bitwiseAND(STEP - 1), sf.shiftright(sub, STEP.bit_length() - 1)]


def nullable(rows: DataFrame) -> DataFrame:
    """The same rows, with columns that all may be null, as those of the table may: Hudi rewrites each record whose
    schema is not the table's. Spark's optimizer leaves nothing of it."""
    return rows.selectExpr(
        *(
            quoted(field.name) if field.nullable else f"if(true, {quoted(field.name)}, null) AS {quoted(field.name)}"
            for field in rows.schema.fields
        )
    )


def _as_text(name: str, type: DataType) -> Column:
    """A column as it tells rows apart in Hudi, where it is a text: Spark takes 0.0 and -0.0 for one value."""
    column = identifying(name, type)
    return column.cast("string") if isinstance(type, FloatType | DoubleType) else column
