"""The content of an event as one checksum, taken from the bytes sent or from the columns of a lake's row.

The producer's checksum is the CRC-32 of the record's own bytes, which costs it next to nothing. A row of
the lake has been parsed and typed since; its event is written again in the producer's form and summed.
A record in quarantine still has its raw bytes.
"""

from __future__ import annotations

from itertools import pairwise
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakestream_loadgen.errors import LakeError

EVENT_SCHEMA = pa.schema(
    [
        ("event_id", pa.string()),
        ("order_id", pa.string()),
        ("version", pa.int64()),
        ("op", pa.string()),
        ("status", pa.string()),
        ("customer_id", pa.string()),
        ("amount", pa.float64()),
        ("created_at", pa.timestamp("us", "UTC")),
        ("updated_at", pa.timestamp("us", "UTC")),
        ("note", pa.string()),
    ]
)
"""Columns of an event in a lake, in the order of the JSON text."""

_TEXT = pa.large_string()
"""Nine million events have more text than a column of plain strings holds."""


def event_columns(rows: pa.Table) -> pa.Table:
    """The event's columns of ``rows``, as EVENT_SCHEMA; other columns are left out.

    What cannot be read as its type, as a time that is none, is null: no producer writes that, so the event is altered.

    Raises:
        LakeError: a column is missing.
    """
    missing = [name for name in EVENT_SCHEMA.names if name not in rows.column_names]
    if missing:
        raise LakeError(
            f"the rows lack the event's columns {', '.join(missing)}: the schema and transform of an audited "
            "table must keep all fields of the event"
        )
    columns = [
        pa.chunked_array([part for chunk in rows[field.name].chunks for part in _cast(chunk, field.type)], field.type)
        for field in EVENT_SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=EVENT_SCHEMA)


def _cast(values: pa.Array, to: pa.DataType) -> list[pa.Array]:
    """By halves, down to what cannot be cast."""
    try:
        return [values.cast(to)]
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [pa.nulls(1, to)]
        half = len(values) // 2
        return [*_cast(values[:half], to), *_cast(values[half:], to)]


def with_room(table: pa.Table) -> pa.Table:
    """The table with texts of which a column may have more than 2 GiB: 38 million sequence numbers, say."""
    fields = [field.with_type(pa.large_string()) if pa.types.is_string(field.type) else field for field in table.schema]
    return table.cast(pa.schema(fields))


def canonical_text(rows: pa.Table) -> pa.ChunkedArray:
    """The JSON text that the producer wrote for each event; what is null shows as null and so differs."""
    columns = event_columns(rows)
    parts: list[pa.ChunkedArray | pa.Scalar] = []
    before = "{"
    for field in EVENT_SCHEMA:
        column = columns[field.name]
        quote = '"' if pa.types.is_string(field.type) or pa.types.is_timestamp(field.type) else ""
        parts += [pa.scalar(f'{before}"{field.name}":{quote}', _TEXT), _text(column).cast(_TEXT)]
        before = f"{quote},"
    parts += [pa.scalar('"}', _TEXT), pa.scalar("", _TEXT)]
    return pc.binary_join_element_wise(*parts, null_handling="replace", null_replacement="null")


def checksums(values: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.uint32]:
    """CRC-32 of each string or binary value; that of nothing for null."""
    chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    sums = [_checksums_of_chunk(chunk.cast(pa.large_binary())) for chunk in chunks]
    return np.concatenate(sums) if sums else np.empty(0, dtype=np.uint32)


def _checksums_of_chunk(values: pa.Array) -> npt.NDArray[np.uint32]:
    _, offset_buffer, data = values.buffers()
    if len(values) == 0 or data is None:
        return np.zeros(len(values), dtype=np.uint32)
    offsets = np.frombuffer(offset_buffer, dtype=np.int64)[values.offset : values.offset + len(values) + 1].tolist()
    view = memoryview(data)
    return np.fromiter((crc32(view[start:end]) for start, end in pairwise(offsets)), np.uint32, len(values))


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_timestamp(column.type):
        # The producer writes milliseconds: what has more was not written by it, and must not pass.
        in_milliseconds = column.cast(pa.timestamp("ms", "UTC"), safe=False)
        exact = pc.equal(in_milliseconds.cast(column.type), column)
        # Without the zone, writing is 20 times as fast.
        text = pc.replace_substring(in_milliseconds.cast(pa.timestamp("ms")).cast(pa.string()), " ", "T")
        return pc.if_else(exact, pc.binary_join_element_wise(text, "Z", ""), None)
    if pa.types.is_floating(column.type):
        return _amount(column)
    return column.cast(pa.string())


def _amount(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Two decimals, as the producer writes an amount; anything finer is shown as it is, and so differs."""
    cents = pc.round(pc.multiply(column, 100.0))
    # Beyond 2**53 a double has no cents, and an integer soon no room.
    exact = pc.and_(pc.equal(pc.divide(cents, 100.0), column), pc.less(pc.abs(cents), 2.0**53))
    whole = pc.if_else(exact, cents, 0.0).cast(pa.int64())
    units = pc.divide(whole, 100)
    rest = pc.subtract(whole, pc.multiply(units, 100)).cast(pa.string())
    text = pc.binary_join_element_wise(units.cast(pa.string()), pc.utf8_lpad(rest, 2, "0"), ".")
    return pc.if_else(exact, text, column.cast(pa.string()))
