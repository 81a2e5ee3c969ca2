"""What happens to a record between Kinesis and the sink, checked once at the start of a writer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from lakestream.avro import RegistrySettings
from lakestream.errors import ExpressionError, SchemaError, SinkError
from lakestream.kinesis.batches import REASON
from lakestream.model import Filter, RecordFormat
from lakestream.spark.events import RESCUED, ROW, events_schema, unreadable
from lakestream.spark.failing import failing_records, failure_of
from lakestream.spark.origin import ORIGIN, with_origin
from lakestream.spark.parse import (
    IDENTITY,
    RECORD,
    good_events,
    parse_schema,
    rejected_records,
    require_one_text,
)
from lakestream.spark.quoting import quoted
from lakestream.spark.refusals import first_reason
from lakestream.spark.repeatable import why_not_repeatable
from lakestream.spark.transform import VIEW, is_by_row, require_query, takes, transform
from lakestream.spark.utf8 import not_texts

Guard: TypeAlias = Callable[[StructType], Column | None]
"""Says, of rows with these columns, why a sink cannot take one: a column of text, null for rows that it can take. None:
it takes every row."""

FAILS = "spec.transform or deleteWhen fails"
"""The reason of a record at a value of which Spark has no result for an expression of the document's SQL."""

_ROUNDS = 5
"""That records are looked for: where one is gone, a window has another in its place, at which SQL may fail as well."""

_INTERVAL = re.compile(r'"(?:type|elementType|keyType|valueType)":"interval"')
"""Of months, days and seconds, which have no order, in the JSON of a schema; others say of what."""

_WHY = "_lakestream_refusal"
_DELETES = "_lakestream_deletes"


@dataclass(frozen=True)
class Divided:
    """The records of a batch, parted: each is in one of the two, with all the rows that are made of it."""

    rows: DataFrame
    """What goes to the sink."""
    rejected: DataFrame
    """What goes to quarantine: the raw records, with `_reason`."""
    refused: int
    """How many of `rejected` the parser took, and the sink would not have taken."""


@dataclass(frozen=True)
class Screened:
    """The records of a batch once the document's SQL was tried on each."""

    typed: DataFrame
    records: int
    """At how many of them it fails."""
    failure: SinkError
    """What Spark says of one."""
    kept: tuple[DataFrame, ...]
    """What the executors keep of it."""

    def release(self) -> None:
        """Free the executors' memory."""
        for frame in self.kept:
            frame.unpersist()


@dataclass(frozen=True)
class Pipeline:
    """Schema and transform of one writer."""

    schema: StructType
    """Of the events, as `spec.schema` gives it."""
    sql: str | None
    """`spec.transform`."""
    output: StructType
    """Columns that the sink gets."""
    is_by_row: bool
    """Each row is made of one record, so that nothing is shuffled."""
    refusal: Column | None = None
    """Of the sink, for rows of `output`."""
    delete_when: str | None = None
    """Of the sink as well: a predicate that it looks at for each row."""
    filters: tuple[Filter, ...] = ()
    """`spec.filter`: which records are looked at at all."""
    record_format: RecordFormat = RecordFormat.JSON
    """`spec.format`: how they are read."""
    registry: RegistrySettings | None = None
    """Of the schemas of records in Avro."""
    rescues: bool = True
    """Whether rows are made of what the schema lacks; who does not ask for it is not made to wait for it."""

    @classmethod
    def of(
        cls,
        spark: SparkSession,
        ddl: str,
        sql: str | None,
        guard: Guard | None = None,
        delete_when: str | None = None,
        filters: tuple[Filter, ...] = (),
        record_format: RecordFormat = RecordFormat.JSON,
        registry: RegistrySettings | None = None,
    ) -> Pipeline:
        """Check schema and transform against each other and Spark, without reading anything.

        Args:
            spark: the session.
            ddl: `spec.schema`.
            sql: `spec.transform`.
            guard: of the sink.
            delete_when: `spec.writers.hudi.deleteWhen`; the sink checks it.
            filters: `spec.filter`.
            record_format: `spec.format`.
            registry: where the schemas of records in Avro are.

        Raises:
            SchemaError: names `spec.schema` or `spec.transform`, and the column.
            SettingsError: of the guard: the output lacks a column that the sink needs.
        """
        schema = parse_schema(spark, ddl)
        if record_format is RecordFormat.TEXT:
            require_one_text(schema)
        if sql is not None:
            require_query(spark, sql)
        rows = transform(good_events(spark.createDataFrame([], events_schema(schema))), sql)
        _require_known(rows)
        if sql is not None and (reason := why_not_repeatable(rows, sql)) is not None:
            raise SchemaError(f"spec.transform: {reason}")
        _require_names(rows.columns)
        reasons = (None if guard is None else guard(rows.schema), *not_texts(schema, sql, rows.schema))
        return cls(
            schema=schema,
            sql=sql,
            output=rows.schema,
            is_by_row=sql is None or is_by_row(rows),
            refusal=first_reason(reason for reason in reasons if reason is not None),
            delete_when=delete_when,
            filters=filters,
            record_format=record_format,
            registry=registry if record_format is RecordFormat.AVRO else None,
            rescues=sql is None or takes(rows, RESCUED),
        )

    @property
    def of_table(self) -> Pipeline:
        """For rows as the table has them, in JSON: no filter, no transform, all of its columns come from the row."""
        columns = ", ".join(f"{_of_row(field)} AS {quoted(field.name)}" for field in self.output.fields)
        sql = f"SELECT {columns} FROM {VIEW}"
        return replace(self, schema=self.output, sql=sql, filters=(), record_format=RecordFormat.JSON, registry=None)

    def without_failing(self, typed: DataFrame) -> Screened | None:
        """The same records, of which those at which the document's SQL fails have that as their reason; None: it fails
        at none.

        A job makes all rows; if it fails, two more find what it fails at, and look whether that is all.

        Args:
            typed: with the columns of `events_schema`; persisted.

        Raises:
            SinkError: it fails at something that cannot be found, as at what is made of a whole group of records, or
                at no value, as for want of memory.
        """
        if self.sql is None and self.delete_when is None:
            return None
        screened: Screened | None = None
        rounds = 0
        while (failure := failure_of(rows := self._made(screened.typed if screened else typed))) is not None:
            found = failing_records(rows) if rounds < _ROUNDS else None
            if found is None:
                if screened is not None:
                    screened.release()
                raise _of_none(failure)
            screened, rounds = _marked(typed, *found, screened, failure), rounds + 1
        return screened

    def _made(self, typed: DataFrame) -> DataFrame:
        """All that SQL of the document makes of records."""
        rows = transform(good_events(typed), self.sql or f"SELECT * FROM {VIEW}")
        return rows if self.delete_when is None else rows.selectExpr("*", f"({self.delete_when}) AS {_DELETES}")

    def divide(self, typed: DataFrame) -> Divided:
        """Part what goes to the sink from what cannot be used; one job counts the rows that the sink refuses.

        Of a record with such a row no other row goes to the sink either: it is in quarantine, whole. If rows are made
        of several records each, the row itself goes there, as JSON.

        Args:
            typed: with the columns of `events_schema`; persisted.
        """
        events = good_events(typed)
        rows, rejected = transform(events, self.sql), rejected_records(typed)
        if self.refusal is None:
            return Divided(rows, rejected, 0)
        refused = rows.withColumn(_WHY, self.refusal).where(sf.col(_WHY).isNotNull())
        if not (refusals := count_few(refused)):
            return Divided(rows, rejected, 0)
        traced = with_origin(rows) if self.sql else events.select("*", *map(_as_origin, IDENTITY, ORIGIN))
        if traced is None:
            accepted = rows.where(self.refusal.isNull())
            return Divided(accepted, rejected.unionByName(_as_record(refused), allowMissingColumns=True), refusals)
        refused = traced.withColumn(_WHY, self.refusal).where(sf.col(_WHY).isNotNull())
        records = refused.groupBy(*ORIGIN).agg(sf.min(_WHY).alias(_WHY))
        accepted = traced.join(records, list(ORIGIN), "left_anti").drop(*ORIGIN)
        found = records.select(_WHY, *(sf.col(at).alias(name) for name, at in zip(IDENTITY, ORIGIN, strict=True)))
        poison = typed.join(found, [*IDENTITY]).withColumn(REASON, sf.col(_WHY)).selectExpr(*RECORD)
        return Divided(accepted, rejected.unionByName(poison), records.count())


def _of_none(failure: SinkError) -> SinkError:
    """What is said of a failure for which no record is to blame."""
    if not isinstance(failure, ExpressionError):
        return failure
    return SinkError(f"{failure}. At none of the records by itself: mend spec.transform, or deleteWhen")


def _marked(
    typed: DataFrame, failing: DataFrame, records: int, before: Screened | None, failure: SinkError
) -> Screened:
    """Records as `typed`, with a reason for those that fail as well as for those that were found before."""
    so_far = before.typed if before else typed
    why = sf.broadcast(failing.withColumn(_WHY, sf.lit(FAILS)))
    marked = so_far.join(why, [*IDENTITY], "left_outer").withColumn(REASON, sf.coalesce(REASON, _WHY))
    # Kept by itself, or Spark would filter by what the SQL says before it leaves these records out.
    marked = marked.select(*(quoted(name) for name in typed.columns)).persist(typed.storageLevel)
    if before is None:
        return Screened(marked, records, failure, (marked, failing))
    return Screened(marked, before.records + records, before.failure, (*before.kept, marked, failing))


def count_few(rows: DataFrame) -> int:
    """How many there are of what mostly there is none of; one job, of one stage.

    `DataFrame.count` shuffles a number from each task: a second stage, and all planned again in between.
    """
    return int(rows.selectExpr("1")._jdf.collectAsList().size())


def _of_row(field: StructField) -> str:
    """A column of a table's rows; one that is not read from JSON is null, and its rows are in quarantine."""
    return f"CAST(NULL AS {field.dataType.simpleString()})" if unreadable(field) else quoted(ROW + field.name)


def _as_origin(name: str, origin: str) -> Column:
    return sf.col(name).alias(origin)


def _as_record(refused: DataFrame) -> DataFrame:
    """A row in the place of its record."""
    content = sf.to_json(sf.struct(*(sf.col(quoted(name)) for name in refused.columns if name != _WHY)))
    return refused.select(content.cast("binary").alias("data"), sf.col(_WHY).alias("_reason"))


def _require_known(rows: DataFrame) -> None:
    """Check that PySpark knows the type of each column."""
    written = rows._jdf.schema().json()
    for field in json.loads(written)["fields"] if _INTERVAL.search(written) else ():
        if _INTERVAL.search(json.dumps(field, separators=(",", ":"))):
            raise SchemaError(
                f"spec.transform: column {field['name']} is an interval of months, days and seconds, as no table has: "
                "CAST it AS STRING, or make one of days or of months of it"
            )


def _require_names(columns: list[str]) -> None:
    seen: set[str] = set()
    for name in columns:
        if name.lower().startswith("_lakestream_"):
            raise SchemaError(f"spec.transform: its output has column {name}; names that begin so are LakeStream's own")
        if name.lower() in seen:
            raise SchemaError(f"spec.transform: its output has column {name} twice; rename or drop one")
        seen.add(name.lower())
