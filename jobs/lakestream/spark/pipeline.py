"""What happens to a record between Kinesis and the sink, checked once at the start of a writer."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakestream.errors import SchemaError
from lakestream.spark.parse import good_events, parse, parse_schema, rejected_records, times_in
from lakestream.spark.read import RAW_SCHEMA
from lakestream.spark.repeatable import why_not_repeatable
from lakestream.spark.screen import Expected
from lakestream.spark.transform import transform, unchanged


@dataclass(frozen=True)
class Pipeline:
    """Schema and transform of one writer."""

    schema: StructType
    """Of the events, as `spec.schema` gives it."""
    sql: str | None
    """`spec.transform`."""
    required: tuple[str, ...]
    """Columns of the schema without which a record is quarantined."""
    output: StructType
    """Columns that the sink gets."""

    @classmethod
    def of(cls, spark: SparkSession, ddl: str, sql: str | None, keys: tuple[str, ...] = ()) -> Pipeline:
        """Check schema and transform against each other and Spark, without reading anything.

        Args:
            spark: the session.
            ddl: `spec.schema`.
            sql: `spec.transform`.
            keys: columns of the output that a row may not lack (the record key). A record that lacks one is
                quarantined if the column comes through the transform as it was in the record; if the transform makes
                the column, so that its null is the transform's, it is the sink that refuses the row.

        Raises:
            SchemaError: names `spec.schema` or `spec.transform`, and the column.
        """
        schema = parse_schema(spark, ddl)
        parsed = parse(spark.createDataFrame([], RAW_SCHEMA), schema)
        events = good_events(parsed, schema)
        rows = transform(events, sql)
        if sql is not None and (reason := why_not_repeatable(rows, sql)) is not None:
            raise SchemaError(f"spec.transform: {reason}")
        _require_distinct(rows.columns)
        if lacking := [key for key in keys if key not in rows.columns]:
            where = "spec.schema" if sql is None else "the output of spec.transform"
            raise SchemaError(f"{where} has no column {lacking[0]}, which is part of the record key")
        through = unchanged(events, rows)
        required = tuple(through[key] for key in keys if through.get(key) in schema.names)
        return cls(schema=schema, sql=sql, required=required, output=rows.schema)

    @property
    def expected(self) -> Expected:
        """What the first look at a record is told."""
        return Expected(frozenset(self.schema.names), times_in(self.schema))

    def parse(self, raw: DataFrame) -> DataFrame:
        """Raw records with the typed event and `_reason` (null: good); to be persisted, for the next two."""
        return parse(raw, self.schema, self.required)

    def rows(self, parsed: DataFrame) -> DataFrame:
        """What goes to the sink."""
        return transform(good_events(parsed, self.schema), self.sql)

    def rejected(self, parsed: DataFrame) -> DataFrame:
        """What goes to quarantine: the raw records, with `_reason`."""
        return rejected_records(parsed)


def _require_distinct(columns: list[str]) -> None:
    seen: set[str] = set()
    for name in columns:
        if name.lower() in seen:
            raise SchemaError(f"spec.transform: its output has column {name} twice; rename or drop one")
        seen.add(name.lower())
