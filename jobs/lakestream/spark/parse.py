"""From raw records to typed events, by the schema of the document.

The rules are in docs/records.md: `screen` keeps them, and Spark is given only what it reads by them.
"""

import json
from collections.abc import Iterable
from typing import Any

from pyspark.errors import AnalysisException, ParseException, PySparkValueError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructField, StructType

from lakestream.errors import SchemaError
from lakestream.spark.exact import MISMATCH, MISSING
from lakestream.spark.screen import looker

METADATA = ("_rescued", "_shard_id", "_sequence_number", "_sub_sequence", "_arrival", "_partition_key")
"""Columns that every event has beside those of the schema."""

IDENTITY = ("_shard_id", "_sequence_number", "_sub_sequence")
"""Those of them that tell a record from every other one of the stream."""

_EVENT = "_event"
_CORRUPT = "_corrupt"
_OPTIONS = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowNonNumericNumbers": "false",
    "allowSingleQuotes": "false",
    # Digits of a number: as many as a record of Kinesis can have. 1,000 by default.
    "maxNumLen": str(10 << 20),
}


def parse_schema(spark: SparkSession, ddl: str) -> StructType:
    """Read `spec.schema` with Spark's own parser.

    Raises:
        SchemaError: no DDL, no columns, a name twice (in any case) or one that LakeStream or Hudi uses, a type that
            JSON is not read into.
    """
    try:
        parsed = jvm(spark).org.apache.spark.sql.types.StructType.fromDDL(ddl)
        schema = StructType.fromJson(json.loads(parsed.json()))
    except (ParseException, AnalysisException, PySparkValueError) as error:
        raise SchemaError(f"spec.schema: {first_line(error)}") from error
    try:
        looker(schema)
    except TypeError as error:
        raise SchemaError(f"spec.schema: {error}") from error
    seen: dict[str, str] = {}
    for name in schema.names:
        # Spark resolves columns without regard to case.
        if (folded := name.lower()) in seen:
            raise SchemaError(f"spec.schema: columns {seen[folded]} and {name} differ at most in case; keep one")
        seen[folded] = name
        if folded in (*METADATA, _CORRUPT) or folded.startswith("_hoodie_"):
            raise SchemaError(f"spec.schema: the name of column {name} is taken; LakeStream or Hudi writes it")
    return schema


def parse(raw: DataFrame, schema: StructType) -> DataFrame:
    """Add the typed event to raw records (`RAW_SCHEMA` of `read`), and to `_reason` what is wrong with the others.

    Args:
        raw: screened records.
        schema: of the events.

    Returns:
        The columns of `raw` but `_text`, and a struct for `transform` to take apart; `_reason` is null for good rows.
    """
    text = sf.coalesce("_text", sf.col("data").cast("string"))
    nullable = StructType([StructField(field.name, field.dataType) for field in schema.fields])
    target = nullable.add(_CORRUPT, StringType())
    # Rows without JSON are not parsed again: from_json of null is null.
    event = sf.from_json(sf.when(sf.col("_reason").isNull(), text), target, _OPTIONS)
    events = raw.withColumn(_EVENT, event)
    needed = [field.name for field in schema.fields if not field.nullable]
    reason = sf.coalesce(
        sf.col("_reason"),
        sf.when(_field(_CORRUPT).isNotNull(), _mismatch(text, schema)),
        *(sf.when(_field(name).isNull(), sf.lit(f"{MISSING}: {name}")) for name in needed),
    )
    return events.withColumn("_reason", reason).drop("_text")


def good_events(parsed: DataFrame, schema: StructType) -> DataFrame:
    """The rows without a reason, as `spec.transform` sees them: the columns of the schema, and `METADATA`."""
    return parsed.where(sf.col("_reason").isNull()).select(
        *(_field(name).alias(name) for name in schema.names),
        "_rescued",
        sf.col("shard_id").alias("_shard_id"),
        sf.col("sequence_number").alias("_sequence_number"),
        sf.col("sub_sequence").alias("_sub_sequence"),
        sf.col("arrival").alias("_arrival"),
        sf.col("partition_key").alias("_partition_key"),
    )


def rejected_records(parsed: DataFrame) -> DataFrame:
    """The rows with a reason, as they were read, for quarantine."""
    return parsed.where(sf.col("_reason").isNotNull()).drop(_EVENT, "_rescued")


def jvm(spark: SparkSession) -> Any:
    """The JVM's packages through py4j, which has no types."""
    return spark._jvm


def first_line(error: BaseException) -> str:
    """Spark appends its whole plan to what it has to say."""
    return str(error).strip().split("\n", 1)[0]


def _field(name: str) -> Column:
    return sf.col(f"{_EVENT}.{quoted(name)}")


def quoted(name: str) -> str:
    """A column name as SQL writes any name."""
    return "`" + name.replace("`", "``") + "`"


def _mismatch(text: Column, schema: StructType) -> Column:
    """`does not match the schema: <field>`; only evaluated for the rows that do not.

    The first field of the schema that has a value in the JSON and none in the event is the one.
    """
    fields: Iterable[Column] = (
        sf.when(_field(name).isNull() & sf.get_json_object(text, f"$['{name}']").isNotNull(), sf.lit(f": {name}"))
        # Spark's JSON paths have no escape for a quote.
        for name in schema.names
        if "'" not in name
    )
    return sf.concat(sf.lit(MISMATCH), sf.coalesce(*fields, sf.lit("")))


__all__ = [
    "METADATA",
    "first_line",
    "good_events",
    "jvm",
    "parse",
    "parse_schema",
    "quoted",
]
