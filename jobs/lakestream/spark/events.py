"""Raw records to typed events, in the Arrow batches they are fetched in, by the rules of docs/records.md.

Spark's `from_json` is lenient where an alteration or a loss would go unseen: it replaces bytes that are not UTF-8,
stops reading behind the first value (`{"a":1}{"a":2}`), drops fields that are not in the schema, prints numbers anew
(`1.10` is `1.1`), rounds decimals, lets times and TINYINT wrap, gives a time without a date that of today, and takes
eight minutes for a DECIMAL of `1e100000000`. So Spark is given values: most records are read as they are (`plain`, or
`surplus`), the others with every digit (`exact`).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as st

from lakestream.kinesis.batches import REASON
from lakestream.kinesis.texts import texts
from lakestream.model import RecordFormat
from lakestream.spark.columns import arrow_type, column_of, columns_of
from lakestream.spark.digits import RecordError, text_in_utf8
from lakestream.spark.exact import MISSING, exact_reader
from lakestream.spark.plain import NotPlain, loose_strings, plain_decoder, tells_of_surplus
from lakestream.spark.surplus import SurplusDecoder, surplus_decoder

RESCUED = "_rescued"
METADATA = (RESCUED, "_shard_id", "_sequence_number", "_sub_sequence", "_arrival", "_partition_key")
"""Columns that every event has beside those of the schema."""

DATA = "_lakestream_data"
"""The bytes of the record."""

_FEW = 64
"""Records of which one is not plain, and that are all read exactly rather than parted again."""


ROW = "_lakestream_row_"
"""In front of the names of columns that are read as those of a table, which has some of `METADATA` among them."""


def events_schema(schema: st.StructType, *, of_table: bool = False) -> st.StructType:
    """What `typed` makes: the columns of the schema, `METADATA`, and `DATA` and `REASON`.

    A table's columns of types that JSON is not read into are texts, and null.
    """
    columns = [
        st.StructField(f"{ROW}{field.name}", st.StringType() if unreadable(field) else field.dataType)
        if of_table
        else st.StructField(field.name, field.dataType)
        for field in schema.fields
    ]
    types = (st.StringType(), st.StringType(), st.StringType(), st.LongType(), st.TimestampType(), st.StringType())
    columns += [st.StructField(name, type) for name, type in zip(METADATA, types, strict=True)]
    return st.StructType([*columns, st.StructField(DATA, st.BinaryType()), st.StructField(REASON, st.StringType())])


def typed(
    batches: Iterable[pa.RecordBatch],
    schema: st.StructType,
    record_format: RecordFormat = RecordFormat.JSON,
    *,
    of_table: bool = False,
    rescues: bool = True,
) -> Iterator[pa.RecordBatch]:
    """Batches of raw records, as `lakestream.kinesis.texts.expanded` or `lakestream.avro.in_json` leaves them, as
    events: with the columns of `events_schema`.

    Field names are compared exactly, with case.

    Args:
        batches: may have `REASON` as well: why a record cannot be used, whatever it holds.
        schema: of the records; of texts, it has the one column that they become.
        record_format: of the records.
        of_table: they are rows of a table, which has a column for everything.
        rescues: somebody wants to know what the schema lacks. If not, `_rescued` is null.
    """
    made = events_schema(schema, of_table=of_table)
    names = made.names
    # The columns of a table are of any type that a transform makes; those of a schema have been looked at.
    if of_table and (why := next(filter(None, map(unreadable, schema.fields)), None)):
        columns = [arrow_type(field.dataType) for field in made.fields[: len(schema.fields)]]
        yield from (_refused(batch, columns, names, why) for batch in batches)
        return
    read = read_texts if record_format is RecordFormat.TEXT else EventReader(schema, rescues=rescues or of_table).read
    for batch in batches:
        events = read(texts(batch))
        reasons = _reasons(batch, events.reasons)
        if of_table:
            reasons = pc.coalesce(reasons, _lacking_columns(events.rescued))
        yield pa.RecordBatch.from_arrays(
            [*events.columns, events.rescued, *_origin(batch), batch.column("data"), reasons], names
        )


def unreadable(field: st.StructField) -> str | None:
    """Why no value of a column can be read from JSON; None: it can."""
    try:
        exact_reader(st.StructType([field]))
    except TypeError as error:
        return f"column {field.name}: {error}"
    return None


def _refused(batch: pa.RecordBatch, types: Sequence[pa.DataType], names: list[str], why: str) -> pa.RecordBatch:
    count = batch.num_rows
    columns = [pa.nulls(count, type) for type in (*types, pa.string())]
    reasons = _reasons(batch, pa.repeat(pa.scalar(why, pa.string()), count))
    return pa.RecordBatch.from_arrays([*columns, *_origin(batch), batch.column("data"), reasons], names)


def _origin(batch: pa.RecordBatch) -> list[pa.Array]:
    """`METADATA` but for what is rescued."""
    return [batch.column(name.removeprefix("_")) for name in METADATA[1:]]


def _reasons(batch: pa.RecordBatch, found: pa.StringArray) -> pa.StringArray:
    """Those that records came with, and those that were found."""
    return pc.coalesce(batch.column(REASON), found) if REASON in batch.schema.names else found


def _lacking_columns(rescued: pa.StringArray) -> pa.StringArray:
    """Why rows cannot be used that have what the table lacks; Hudi's own columns are none of it."""
    if rescued.null_count == len(rescued):
        return rescued
    found = [None if one is None else sorted(orjson.loads(one)) for one in rescued.to_pylist()]
    names = [[name for name in one or () if not name.startswith("_hoodie_")] for one in found]
    return pa.array([f"the table lacks: {', '.join(one)}" if one else None for one in names], pa.string())


@dataclass(frozen=True)
class Events:
    """What was read of some records; of those with a reason there is nothing else."""

    columns: list[pa.Array]
    """In the order of the schema."""
    rescued: pa.StringArray
    """JSON of what the schema lacks; null: nothing."""
    reasons: pa.StringArray
    """Why a record cannot be used; null: it can."""


class EventReader:
    """Reads records of one schema, and if that is wanted what it lacks.

    Raises:
        TypeError: the schema has a type that JSON is not read into.
    """

    def __init__(self, schema: st.StructType, *, rescues: bool = True) -> None:
        self._schema = schema
        self._rescues = rescues
        self._exact = exact_reader(schema)
        self._loose: frozenset[int] = frozenset()
        self._unusual = 0
        self._decode()
        self._types = [column_of(field.dataType) for field in schema.fields]
        self._nothing = (None,) * len(self._types)
        self._needed = [(at, field.name) for at, field in enumerate(schema.fields) if not field.nullable]

    def _decode(self) -> None:
        """Make the decoders, by what is known."""
        self._plain = plain_decoder(self._schema, closed=self._rescues, loose=self._loose)
        self._surplus: SurplusDecoder | None = None  # made once a record has some: a task of others has no need of it

    def read(self, datas: Sequence[bytes]) -> Events:
        """Records to columns."""
        found = _Found([], [None] * len(datas), [None] * len(datas))
        has_surplus = False  # as the record before has, so will this one
        for position, data in enumerate(datas):
            try:
                if not has_surplus:
                    found.rows.append(self._plain(data))
                    continue
            except NotPlain as error:
                has_surplus = tells_of_surplus(error)
            found.rows.append(self._nothing)
            has_surplus = self._read_unusual(found, position, data, has_surplus)
        columns = self._columns(found, datas, 0, len(datas))
        for at, name in self._needed:
            _require(columns[at], name, found.reasons)
        return Events(columns, pa.array(found.rescued, pa.string()), pa.array(found.reasons, pa.string()))

    def _columns(self, found: "_Found", datas: Sequence[bytes], start: int, end: int) -> list[pa.Array]:
        """Of the records from start to end. If one is not plain after all, it and those near to it are read exactly."""
        try:
            return columns_of(self._types, found.rows[start:end])
        except NotPlain:
            if end - start > _FEW:
                middle = (start + end) // 2
                halves = self._columns(found, datas, start, middle), self._columns(found, datas, middle, end)
                return [pa.concat_arrays(both) for both in zip(*halves, strict=True)]
        for position in range(start, end):
            self._read_exactly(found, position, datas[position])
        return columns_of(self._types, found.rows[start:end])

    def _read_unusual(self, found: "_Found", position: int, data: bytes, has_surplus: bool) -> bool:
        """Read a record that may have more than the schema; whether it has, and is plain but for that."""
        if has_surplus:
            if self._surplus is None:
                self._surplus = surplus_decoder(self._schema, self._loose)
            try:
                found.rows[position], found.rescued[position] = self._surplus(data)
                return found.rescued[position] is not None
            except NotPlain:
                pass
        self._read_exactly(found, position, data)
        self._unusual += 1
        # The first, the second, the fourth: to make decoders takes as long as to read a hundred such records.
        if self._unusual.bit_count() == 1:
            self._learn(data)
        return False

    def _learn(self, data: bytes) -> None:
        """Where a record has numbers, objects and the like in columns of STRING, so may all that come."""
        if new := loose_strings(self._schema, data) - self._loose:
            self._loose |= new
            self._decode()

    def _read_exactly(self, found: "_Found", position: int, data: bytes) -> None:
        try:
            read = self._exact(data)
        except RecordError as error:
            found.rows[position], found.reasons[position] = self._nothing, str(error)
        else:
            found.rows[position], found.rescued[position] = read.values, read.lacking if self._rescues else None


def read_texts(datas: Sequence[bytes]) -> Events:
    """Records to the column that their texts become."""
    found: list[str | None] = []
    reasons: list[str | None] = []
    for data in datas:
        try:
            text, reason = text_in_utf8(data), None
        except RecordError as error:
            text, reason = None, str(error)
        found.append(text)
        reasons.append(reason)
    return Events([pa.array(found, pa.string())], pa.nulls(len(datas), pa.string()), pa.array(reasons, pa.string()))


@dataclass(frozen=True)
class _Found:
    """What is known of each record so far."""

    rows: list[tuple[Any, ...]]
    rescued: list[str | None]
    reasons: list[str | None]


def _require(column: pa.Array, name: str, reasons: list[str | None]) -> None:
    """Give those a reason that have no value, and no reason yet."""
    if column.null_count:
        for position, is_null in enumerate(column.is_null().to_pylist()):
            if is_null and reasons[position] is None:
                reasons[position] = f"{MISSING}: {name}"
