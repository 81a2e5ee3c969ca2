"""Deletes, and versions that arrive after a delete of their key: what `tombstones` knows, applied to a batch."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ByteType,
    DataType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakestream.errors import SettingsError
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi.tombstone_files import Files, TombstoneFiles
from lakestream.sinks.hudi.tombstones import Ordering, Tombstone, Tombstones
from lakestream.spark.parse import first_line, quoted
from lakestream.spark.repeatable import why_not_repeatable

logger = logging.getLogger(__name__)

IS_DELETED = "_hoodie_is_deleted"
"""Hudi's own column: a row with true in it deletes its key."""

_KEY, _HASH, _ORDERING, _DELETED = "_key", "_hash", "_ordering", "_deleted"
_FILTER = "lakestream_deleted_keys"
"""Name of a view of one row, the Bloom filter of the keys."""


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
    """How long a delete is remembered."""


class DeleteGuard:
    """Keeps rows out of the table whose key was deleted at a higher version."""

    def __init__(self, rule: DeleteRule, files: Files, clock: Callable[[], float] = time.time) -> None:
        self._rule = rule
        self._clock = clock
        self._known = Tombstones(rule.retain.total_seconds())
        self._kept = TombstoneFiles(files, self._known)

    def load(self) -> None:
        """Read what earlier drivers have left."""
        self._kept.load(self._clock())
        if len(self._known):
            logger.info("%d deleted keys are remembered", len(self._known))

    def apply(self, ref: BatchRef, rows: DataFrame) -> DataFrame:
        """Remember the deletes of a batch, and leave out what older ones have overtaken.

        One Spark job over the persisted rows brings the deletes to the driver, and with them the few rows whose key may
        have been deleted; rows are joined only if one of these was indeed overtaken.
        """
        keyed = self._keyed(rows)
        now = self._clock()
        suspects = keyed.filter(sf.col(_DELETED) | self._maybe_deleted(rows.sparkSession)).collect()
        overtaken = {
            row[_KEY]: self._known.deleted_at(row[_KEY])
            for row in suspects
            if self._known.overtakes(row[_KEY], row[_ORDERING])
        }
        deletes = [Tombstone(row[_KEY], row[_HASH], row[_ORDERING], now) for row in suspects if row[_DELETED]]
        # Before the batch is written: a driver that finds the batch in the table will find its deletes here.
        self._kept.remember(ref, deletes, now)
        return self._without(rows, overtaken) if overtaken else rows

    def _keyed(self, rows: DataFrame) -> DataFrame:
        key = self._key(rows)
        return rows.select(
            key.alias(_KEY),
            sf.xxhash64(key).alias(_HASH),
            self._ordering(rows).alias(_ORDERING),
            sf.expr(is_deleted(self._rule.predicate)).alias(_DELETED),
        )

    def _ordering(self, rows: DataFrame) -> Column:
        return comparable(self._rule.ordering_field, rows.schema[self._rule.ordering_field].dataType)

    def _key(self, rows: DataFrame) -> Column:
        return sf.to_json(sf.struct(*(identifying(name, rows.schema[name].dataType) for name in self._rule.identity)))

    def _maybe_deleted(self, spark: SparkSession) -> Column:
        """`slots` of tombstones.py, in Spark's SQL."""
        if not len(self._known):
            return sf.lit(False)
        # Of a literal, megabytes would be in the texts of each batch's plans, many times over, and Spark keeps these.
        spark.createDataFrame([(self._known.filter,)], "filled binary").createOrReplaceTempView(_FILTER)
        filled, mask = sf.expr(f"(SELECT filled FROM {_FILTER})"), len(self._known.filter) - 1
        first, second = (
            filled.substr(half.bitwiseAND(mask).cast("int") + 1, sf.lit(1)) == sf.lit(bytearray([1]))
            for half in (sf.col(_HASH), sf.shiftright(sf.col(_HASH), 32))
        )
        return first & second

    def _without(self, rows: DataFrame, overtaken: dict[str, Ordering]) -> DataFrame:
        types = f"{_KEY} string, {_ORDERING} {_SQL_TYPES[type(next(iter(overtaken.values())))]}"
        deleted = sf.broadcast(rows.sparkSession.createDataFrame(list(overtaken.items()), types))
        older = (deleted[_KEY] == self._key(rows)) & (self._ordering(rows) < deleted[_ORDERING])
        return rows.join(deleted, older, "left_anti")


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
