"""Deletes, and versions that arrive after a delete of their key: what `delete_files` keeps, applied to a batch."""

from __future__ import annotations

import io
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakestream.errors import SettingsError
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi.delete_age import DeleteAge, come_by
from lakestream.sinks.hudi.delete_files import Chunk, DeleteFiles, Files, decode_earlier
from lakestream.sinks.hudi.delete_index import DeleteIndex
from lakestream.spark.parse import first_line
from lakestream.spark.paths import literally
from lakestream.spark.quoting import quoted
from lakestream.spark.repeatable import why_not_repeatable

logger = logging.getLogger(__name__)

IS_DELETED = "_hoodie_is_deleted"
"""Hudi's own column: a row with true in it deletes its key."""

_KEY, _ORDERING, _DELETED, _SEEN, _COME_BY, _DELETED_AT, _HASH = (
    f"_lakestream_{name}" for name in ("key", "ordering", "deleted", "seen", "come_by", "deleted_at", "hash")
)
"""Times of a delete: it was seen when its batch was written, by the clock that the time of its commit is from as well,
and it is forgotten by when it had come."""

_COLLECTED = 50_000
"""Rows of each task whose deletes the driver collects, to write them: some megabytes."""
_POSITION = f"(monotonically_increasing_id() & {(1 << 33) - 1})"
"""Of a row among those of its task."""

_COMMITTER = {
    # A rename is a copy on S3. Nobody looks into a folder before its manifest is there.
    "mapreduce.fileoutputcommitter.algorithm.version": "2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}


@dataclass(frozen=True)
class DeleteRule:
    """Which rows delete, and what of."""

    predicate: str
    """SQL over the output's columns; true for a row that deletes its key."""
    identity: tuple[str, ...]
    """Columns that tell rows apart."""
    ordering_field: str
    """Column whose highest value wins."""
    retain: timedelta
    """How long a delete is remembered: by how much later than it an older version of its key may come."""


class DataFiles(Files, Protocol):
    """Files that Spark can reach."""

    @property
    def uri(self) -> str:
        """The folder that they are in."""
        ...


class DeleteGuard:
    """Keeps rows out of the table whose key was deleted at a higher version. What is remembered stays with the
    executors, but for a hash of each key."""

    def __init__(self, rule: DeleteRule, files: DataFiles, clock: Callable[[], float] = time.time) -> None:
        self._rule = rule
        self._clock = clock
        self._data = files
        self._files = DeleteFiles(files)
        self._index = DeleteIndex(rule.retain.total_seconds())
        self._age = DeleteAge(rule.retain.total_seconds())
        self._merged: tuple[Chunk, DataFrame] | None = None

    @property
    def remembered(self) -> int:
        """Deletes that are remembered."""
        return self._files.keys

    def load(self, spark: SparkSession, earlier: Files) -> None:
        """Read what earlier drivers have left.

        Args:
            spark: the session.
            earlier: files of the releases that kept all deletes in the driver; they are taken over one by one.
        """
        self._files.load()
        for name in earlier.list():
            if deletes := decode_earlier(earlier.get(name)):
                self._take_over(spark, deletes)
            earlier.delete(name)
        if self.remembered:
            logger.info("%d deletes are remembered", self.remembered)
            self._index_all(spark)

    def _index_all(self, spark: SparkSession) -> None:
        if self.remembered > self._index.most:
            self._index.exceed()
            return
        keys = self._read(spark, self._files.chunks, StructType([StructField(_KEY, StringType())]))
        hashes = _collected(keys.select(sf.xxhash64(_KEY).alias(_HASH)))[_HASH].combine_chunks()
        self._index.add(hashes, max(chunk.newest for chunk in self._files.chunks))

    def _take_over(self, spark: SparkSession, deletes: list[tuple[str, int | float | str, float]]) -> None:
        types = f"{_KEY} string, {_ORDERING} {_SQL_TYPES[type(deletes[0][1])]}, {_SEEN} double"
        frame = spark.createDataFrame(deletes, types)
        self._files.remember(lambda name: self._write(name, frame, len(deletes)), max(seen for _, _, seen in deletes))

    def close(self) -> None:
        """Free the executors' memory."""
        if self._merged is not None:
            self._merged[1].unpersist()

    def apply(self, rows: DataFrame, ref: BatchRef) -> DataFrame:
        """Remember the deletes of a batch, and leave out what older ones have overtaken.

        One Spark job over the persisted rows finds hashes of all keys, and the deletes; only if a key may have been
        deleted before, rows are joined with what is remembered.

        Args:
            rows: of the batch.
            ref: the batch; where its `arrived` has no `oldest`, no delete is forgotten.
        """
        now = self._clock()
        by = come_by(ref, now)
        keyed = self._keyed(rows)
        if ref.arrived is not None:
            self._age.tell(ref.arrived, by)
            self._files.expire(self._age.oldest)
            self._index.expire(self._age.oldest)
        if self._files.is_scattered:
            kept = _distinct(self._live(self._deletes(self._files.chunks, keyed)))
            self._files.merge(lambda name: self._write(name, kept))
        given = sf.expr(f"{_DELETED} AND {_POSITION} < {_COLLECTED}")
        texts = [sf.when(given, sf.col(name)).alias(name) for name in (_KEY, _ORDERING)]
        found = _collected(keyed.select(sf.xxhash64(_KEY).alias(_HASH), _DELETED, *texts))
        overtaken = self._overtaken(keyed) if self._index.may_have(found[_HASH].combine_chunks()) else None
        if (deletes := found.filter(found[_DELETED])).num_rows:
            # Before the batch is written: a driver that finds the batch in the table will find its deletes here.
            self._files.remember(lambda name: self._put(name, keyed, deletes, now, by), by)
            self._index.add(deletes[_HASH].combine_chunks(), by)
        if overtaken is None:
            return rows
        stale = overtaken.groupBy(_KEY).agg(sf.max(_DELETED_AT).alias(_DELETED_AT))
        older = (stale[_KEY] == self._key(rows)) & (self._ordering(rows) < stale[_DELETED_AT])
        return rows.join(stale, older, "left_anti")

    def _overtaken(self, keyed: DataFrame) -> DataFrame:
        """Keys of rows that are older than a remembered delete, with the version of that.

        Inner joins: Spark sends the side that is small, mostly the batch's keys, to where the other one is.
        """
        chunks = self._files.chunks
        merged = [chunk for chunk in chunks if chunk.merged][-1:]
        known = [self._cached(chunk, keyed) for chunk in merged]
        if recent := [chunk for chunk in chunks if chunk not in merged]:
            known.append(self._deletes(recent, keyed))
        found = keyed.where("false").select(_KEY, sf.col(_ORDERING).alias(_DELETED_AT))
        for deletes in known:
            live = self._live(deletes).select(_KEY, sf.col(_ORDERING).alias(_DELETED_AT))
            joined = keyed.join(live, _KEY)
            found = found.union(joined.where(sf.col(_ORDERING) < sf.col(_DELETED_AT)).select(_KEY, _DELETED_AT))
        return found

    def _cached(self, chunk: Chunk, keyed: DataFrame) -> DataFrame:
        """What all but the last batches have deleted, which is much, and is read by each batch."""
        if self._merged is None or self._merged[0] != chunk:
            self.close()
            self._merged = (chunk, self._deletes([chunk], keyed).persist(StorageLevel.MEMORY_AND_DISK_DESER))
        return self._merged[1]

    def _live(self, deletes: DataFrame) -> DataFrame:
        return deletes.where(sf.col(_COME_BY) >= self._age.oldest)

    def _deletes(self, chunks: Sequence[Chunk], keyed: DataFrame) -> DataFrame:
        times = (StructField(name, DoubleType()) for name in (_SEEN, _COME_BY))
        columns = StructType([keyed.schema[_KEY], keyed.schema[_ORDERING], *times])
        # Those of the releases before have no time but when they were seen.
        return self._read(keyed.sparkSession, chunks, columns).withColumn(_COME_BY, sf.greatest(_COME_BY, _SEEN))

    def _read(self, spark: SparkSession, chunks: Sequence[Chunk], columns: StructType) -> DataFrame:
        return spark.read.schema(columns).parquet(*_paths(self._data, chunks))

    def _write(self, name: str, deletes: DataFrame, keys: int | None = None) -> int:
        return _write_to(f"{self._data.uri}/{name}", deletes, keys)

    def _put(self, name: str, keyed: DataFrame, deletes: pa.Table, now: float, by: float) -> int:
        """Write the deletes of a batch: by the executors if not all were collected, and else as one file, for which
        Spark would take two jobs, behind the tasks of the batch that is fetched meanwhile."""
        times = {_SEEN: now, _COME_BY: by}
        if deletes[_KEY].null_count:
            literals = (sf.lit(at).alias(column) for column, at in times.items())
            return self._write(name, keyed.where(_DELETED).select(_KEY, _ORDERING, *literals), deletes.num_rows)
        found = deletes.select([_KEY, _ORDERING])
        # The times are added here: Spark compiles a plan with another time in it anew.
        for column, at in times.items():
            found = found.append_column(column, pa.repeat(pa.scalar(at, pa.float64()), found.num_rows))
        content = io.BytesIO()
        pq.write_table(found, content)
        self._data.put(f"{name}/deletes.parquet", content.getvalue())
        return int(deletes.num_rows)

    def _keyed(self, rows: DataFrame) -> DataFrame:
        return rows.select(
            self._key(rows).alias(_KEY),
            self._ordering(rows).alias(_ORDERING),
            sf.expr(is_deleted(self._rule.predicate)).alias(_DELETED),
        )

    def _ordering(self, rows: DataFrame) -> Column:
        return comparable(self._rule.ordering_field, rows.schema[self._rule.ordering_field].dataType)

    def _key(self, rows: DataFrame) -> Column:
        return sf.to_json(sf.struct(*(identifying(name, rows.schema[name].dataType) for name in self._rule.identity)))


def forget_since(spark: SparkSession, files: DataFiles, time: float) -> None:
    """Forget the deletes that were seen after a time: the batches that they came with are undone.

    Args:
        spark: the session.
        files: of the table.
        time: seconds since 1970, by the clock of the driver that wrote them.
    """
    known = DeleteFiles(files)
    known.load()
    if not any(chunk.newest > time for chunk in known.chunks):
        return
    found = spark.read.option("mergeSchema", "true").parquet(*_paths(files, known.chunks))
    known.merge(lambda name: _write_to(f"{files.uri}/{name}", found.where(sf.col(_SEEN) <= time), None))


def _paths(files: DataFiles, chunks: Sequence[Chunk]) -> list[str]:
    return [literally(f"{files.uri}/{chunk.name}") for chunk in chunks]


def _write_to(path: str, deletes: DataFrame, keys: int | None) -> int:
    """Write deletes; how many, which is counted if the caller does not know."""
    deletes.write.options(**_COMMITTER).parquet(path)
    return deletes.sparkSession.read.parquet(literally(path)).count() if keys is None else keys


def _collected(rows: DataFrame) -> pa.Table:
    # Of no rows there are no batches either.
    return pa.Table.from_batches(rows._collect_as_arrow(), to_arrow_schema(rows.schema))


def _distinct(deletes: DataFrame) -> DataFrame:
    """One row for each version at which a key was deleted.

    The highest version alone would do but for restores, which forget some: of a key it may have come first or last.
    """
    return deletes.groupBy(_KEY, _ORDERING).agg(sf.min(_SEEN).alias(_SEEN), sf.max(_COME_BY).alias(_COME_BY))


_SQL_TYPES = {int: "long", float: "double", str: "string"}


def is_deleted(predicate: str) -> str:
    """The predicate as a column that is never null: `op = 'd'` of a row without op does not delete."""
    return f"coalesce(cast(({predicate}) as boolean), false)"


def identifying(name: str, type: DataType) -> Column:
    """A column of the key or the partition as it tells rows apart in Hudi, where it is a text.

    Of a time that text has microseconds, and JSON only milliseconds. The empty string and null are one partition; in a
    key there is no null, and of its empty values `refusal` sees to it that they are themselves.
    """
    column = sf.col(quoted(name))
    match type:
        case TimestampType():
            column = sf.unix_micros(column)
        case TimestampNTZType():
            column = sf.unix_micros(column.cast("timestamp"))
        case StringType():
            column = sf.nullif(column, sf.lit(""))
    return column.alias(name)


def comparable(name: str, type: DataType) -> Column:
    """The ordering field as something that Python compares as Hudi does.

    Raises:
        SettingsError: another type than those that are tested. Hudi 1.2.0 accepts a date, and fails as soon as it
            merges two (it compares java.lang.Integer with java.time.LocalDate).
    """
    column = sf.col(quoted(name))
    match type:
        case ByteType() | ShortType() | IntegerType() | LongType():
            return column.cast("long")
        case FloatType() | DoubleType():
            return column.cast("double")
        case TimestampType():
            return sf.unix_micros(column)
        case TimestampNTZType():
            return sf.unix_micros(column.cast("timestamp"))
        case StringType():
            return column
    raise SettingsError(
        f"hudi.orderingField: column {name} is a {type.simpleString()}, which Hudi does not order by reliably; "
        "CAST it AS bigint, double, string or timestamp in spec.transform"
    )


def require_predicate(spark: SparkSession, output: StructType, predicate: str) -> None:
    """Check `deleteWhen` against the columns that rows will have.

    Raises:
        SettingsError: says what Spark says, or what may be another answer when the batch is read again.
    """
    rows = spark.createDataFrame([], output)
    try:
        checked = rows.select(sf.expr(f"({predicate})"))
        # Of aggregates a WHERE knows nothing, and a delete is one row's.
        reason = why_not_repeatable(rows.where(sf.expr(is_deleted(predicate))), predicate)
    except PySparkException as error:
        raise SettingsError(f"hudi.deleteWhen: {first_line(error)}") from error
    if checked.schema[0].dataType.simpleString() != "boolean":
        raise SettingsError(f"hudi.deleteWhen: {predicate!r} is not a condition; write one, as op = 'd'")
    if reason is not None:
        raise SettingsError(f"hudi.deleteWhen: {reason}")
