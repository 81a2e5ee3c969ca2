"""The schema of the document, and the frames of its events and of what is none."""

import json
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkValueError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructType

from lakestream.errors import SchemaError
from lakestream.kinesis.batches import REASON
from lakestream.spark.events import DATA, METADATA, EventReader

IDENTITY = ("_shard_id", "_sequence_number", "_sub_sequence")
"""Those of an event's columns that tell a record from every other one of the stream."""

RECORD = (
    f"{DATA} AS data",
    "_partition_key AS partition_key",
    "_sequence_number AS sequence_number",
    "_sub_sequence AS sub_sequence",
    "_shard_id AS shard_id",
    "_arrival AS arrival",
    f"{REASON} AS _reason",
)
"""A record as it was read, and why it cannot be used."""


def parse_schema(spark: SparkSession, ddl: str) -> StructType:
    """Read `spec.schema` with Spark's own parser.

    Raises:
        SchemaError: no DDL, no columns, a name twice (in any case; in a struct, in the same) or one that LakeStream or
            Hudi uses, a type that JSON is not read into.
    """
    try:
        parsed = jvm(spark).org.apache.spark.sql.types.StructType.fromDDL(ddl)
        schema = StructType.fromJson(json.loads(parsed.json()))
    except (ParseException, AnalysisException, PySparkValueError) as error:
        raise SchemaError(f"spec.schema: {first_line(error)}") from error
    try:
        EventReader(schema)
    except TypeError as error:
        raise SchemaError(f"spec.schema: {error}") from error
    seen: dict[str, str] = {}
    for name in schema.names:
        # Spark resolves columns without regard to case.
        if (folded := name.lower()) in seen:
            raise SchemaError(f"spec.schema: columns {seen[folded]} and {name} differ at most in case; keep one")
        seen[folded] = name
        if folded in (*METADATA, DATA, REASON) or folded.startswith("_hoodie_"):
            raise SchemaError(f"spec.schema: the name of column {name} is taken; LakeStream or Hudi writes it")
    for field in schema.fields:
        if (twice := _twice(field.dataType, field.name)) is not None:
            raise SchemaError(f"spec.schema: column {twice} is there twice; keep one")
    return schema


def require_one_text(schema: StructType) -> None:
    """Check that there is a column for the text of a record, and no other.

    Raises:
        SchemaError: there is not.
    """
    if [type(field.dataType) for field in schema.fields] != [StringType]:
        raise SchemaError(
            "spec.schema: by spec.format a record is a text: give one column for the whole of it, as in `line STRING`, "
            "and take it apart in spec.transform"
        )


def _twice(type: DataType, path: str) -> str | None:
    """A field that some struct has twice, for which Spark takes no columns of Arrow: each batch would fail."""
    match type:
        case ArrayType():
            return _twice(type.elementType, path)
        case MapType():
            return _twice(type.valueType, path)
        case StructType():
            paths = [f"{path}.{name}" for name in type.names]
            inner = (_twice(field.dataType, at) for field, at in zip(type.fields, paths, strict=True))
            return next((at for at in paths if paths.count(at) > 1), None) or next(filter(None, inner), None)
    return None


def good_events(typed: DataFrame) -> DataFrame:
    """The records without a reason, as `spec.transform` sees them: the columns of the schema, and `METADATA`.

    Args:
        typed: has the columns of `events_schema`.
    """
    return typed.where(f"{REASON} IS NULL").drop(DATA, REASON)


def rejected_records(typed: DataFrame) -> DataFrame:
    """The records with a reason, for quarantine: as they were read, and `_reason`."""
    return typed.where(f"{REASON} IS NOT NULL").selectExpr(*RECORD)


def jvm(spark: SparkSession) -> Any:
    """The JVM's packages through py4j, which has no types."""
    return spark._jvm


def first_line(error: BaseException) -> str:
    """Spark appends its whole plan to what it has to say."""
    return str(error).strip().split("\n", 1)[0]
