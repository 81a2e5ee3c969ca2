"""Rows on the way out: for people, for programs, and for other engines."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakestream.aligned import aligned, widths_of
from lakestream.query.errors import SqlError
from lakestream.query.form import Format
from lakestream.texts import printable

_WIDEST = 50
"""Characters of a cell that people are shown."""


def _otherwise(value: Any) -> str:
    """What JSON has no form for: times with nanoseconds."""
    return str(value.isoformat()) if isinstance(value, date) else str(value)


# Decimals keep their digits; times are as ISO 8601 has them, bytes are base64.
_ENCODER = msgspec.json.Encoder(enc_hook=_otherwise, decimal_format="number")


def write_rows(rows: pa.RecordBatchReader, form: Format, out: BinaryIO) -> int:
    """Write all rows; returns how many there were.

    Raises:
        SqlError: the form has nothing for the type of a column.
    """
    try:
        return _WRITERS[form](rows, out)
    except pa.ArrowException as error:
        raise SqlError(f"-o {form.value}: {error}. Cast the column in --sql, or have another form") from error


def _table(rows: pa.RecordBatchReader, out: BinaryIO) -> int:
    names = [printable(name) for name in rows.schema.names]
    numeric = [pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_decimal(t) for t in rows.schema.types]
    numbers = {column for column, is_number in enumerate(numeric) if is_number}
    cells = [[_cell(value) for value in row] for row in _values(rows)]
    widths = widths_of([names, *cells])
    head = [aligned(names, widths, numbers), "  ".join("─" * width for width in widths)]
    lines = [*head, *(aligned(row, widths, numbers) for row in cells)]
    out.write("".join(f"{text}\n" for text in lines).encode())
    return len(cells)


def _cell(value: Any) -> str:
    text = "·" if value is None else " ".join(_text(value).split()) if isinstance(value, str) else _text(value)
    return printable(text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…")


def _csv(rows: pa.RecordBatchReader, out: BinaryIO) -> int:
    """Null is nothing between two commas, an empty text is `""`. Readers pass over an empty line: of one column null is
    `""` too."""
    null = '""' if len(rows.schema) == 1 else ""
    out.write(f"{','.join(map(_quoted, rows.schema.names))}\n".encode())
    count = 0
    for row in _values(rows):
        count += 1
        out.write(f"{','.join(null if value is None else _quoted(_text(value)) for value in row)}\n".encode())
    return count


def _quoted(text: str) -> str:
    if text and not any(char in text for char in '",\n\r'):
        return text
    return '"' + text.replace('"', '""') + '"'


def _jsonl(rows: pa.RecordBatchReader, out: BinaryIO) -> int:
    names, count = rows.schema.names, 0
    for row in _values(rows):
        count += 1
        out.write(_ENCODER.encode(dict(zip(names, row, strict=True))) + b"\n")
    return count


def _parquet(rows: pa.RecordBatchReader, out: BinaryIO) -> int:
    with pq.ParquetWriter(out, rows.schema, compression="zstd") as writer:
        return _copy(rows, writer)


def _arrow(rows: pa.RecordBatchReader, out: BinaryIO) -> int:
    """The stream format of Arrow's IPC."""
    with pa.ipc.new_stream(out, rows.schema) as writer:
        return _copy(rows, writer)


def _copy(rows: pa.RecordBatchReader, writer: Any) -> int:
    count = 0
    for batch in rows:
        writer.write_batch(batch)
        count += batch.num_rows
    return count


_WRITERS: Mapping[Format, Callable[[pa.RecordBatchReader, BinaryIO], int]] = {
    Format.TABLE: _table,
    Format.CSV: _csv,
    Format.JSONL: _jsonl,
    Format.PARQUET: _parquet,
    Format.ARROW: _arrow,
}


def _values(rows: pa.RecordBatchReader) -> Iterator[tuple[Any, ...]]:
    for batch in rows:
        yield from zip(*map(_listed, batch.columns), strict=True)


def _listed(column: pa.Array) -> list[Any]:
    column = _shortest(column)
    if _has_keys_to_tell(column.type):
        return [_exact(value) for value in column]
    try:
        found: list[Any] = column.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        # Nanoseconds, for which that wants pandas, or times of years that Python has not, before 1 and after 9999.
        return [_exact(value) for value in column]
    return found


def _shortest(column: pa.Array) -> pa.Array:
    """Floats as the doubles of their shortest digits: Python has doubles alone, and of 1.1 it would tell
    1.100000023841858."""
    exact = _with_floats_as(pa.float64(), column.type)
    return column if exact == column.type else column.cast(_with_floats_as(pa.string(), column.type)).cast(exact)


def _with_floats_as(other: pa.DataType, kind: pa.DataType) -> pa.DataType:
    """A type with another one in place of its floats, also within others."""
    if pa.types.is_float32(kind):
        return other
    if pa.types.is_map(kind):
        return pa.map_(*(_with_floats_as(other, part) for part in (kind.key_type, kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(_with_floats_as(other, kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _with_floats_as(other, field.type)) for field in kind.fields])
    return kind


def _has_keys_to_tell(kind: pa.DataType) -> bool:
    """Whether there are maps in it whose keys JSON, or a dictionary of Python, has in no form of its own."""
    if pa.types.is_map(kind):
        key = kind.key_type
        is_told = pa.types.is_decimal(key) or pa.types.is_boolean(key) or pa.types.is_nested(key)
        return is_told or _has_keys_to_tell(kind.item_type)
    return any(_has_keys_to_tell(kind.field(number).type) for number in range(kind.num_fields))


def _key(value: Any) -> Any:
    """A key of a map: decimals, booleans and nested values as text."""
    return _text(value) if isinstance(value, bool | Decimal | list | dict) else value


def _exact(value: pa.Scalar) -> Any:
    """A value, and as text a time that Python has none for."""
    match value:
        case _ if not value.is_valid:
            return None
        case pa.MapScalar():
            keys, values = (value.values.field(number) for number in (0, 1))
            return {_key(_exact(key)): _exact(one) for key, one in zip(keys, values, strict=True)}
        case pa.ListScalar() | pa.LargeListScalar() | pa.FixedSizeListScalar():
            return [_exact(one) for one in value.values]
        case pa.StructScalar():
            return {name: _exact(value[name]) for name in value}
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return _told(value)


_PER_SECOND = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Digits of a unit behind the second."""
_INFINITE = {bits: 2 ** (bits - 1) - 1 for bits in (32, 64)}
"""What DuckDB has for the end of time, by the bits of a type."""
_CYCLE = 146_097
"""Days of 400 years, after which the calendar is the same again."""


def _told(value: pa.Scalar) -> str:
    """A day, or a time in UTC, of any year and with all its digits; or the end or the beginning of time."""
    if isinstance(value, pa.Time64Scalar):
        return str(value.cast(pa.string()).as_py())
    if value.value in (most := _INFINITE[value.type.bit_width], -most):
        return "infinity" if value.value > 0 else "-infinity"
    digits = _PER_SECOND[value.type.unit] if isinstance(value, pa.TimestampScalar) else 0
    seconds, fraction = divmod(value.value, 10**digits) if digits else (value.value, 0)
    days, second = (seconds, 0) if pa.types.is_date32(value.type) else divmod(seconds, 86_400)
    cycles, day = divmod(days, _CYCLE)
    found = date(1970, 1, 1) + timedelta(days=day)
    year = found.year + 400 * cycles
    text = f"{year:0{4 if year >= 0 else 5}d}-{found:%m-%d}"  # a sign is none of the four digits of ISO 8601
    if pa.types.is_date32(value.type):
        return text
    text += f"T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}"
    text += f".{fraction:0{digits}d}" if digits else ""
    return f"{text}+00:00" if value.type.tz else text


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case int() | float():
            return str(value)
        case date() | time():
            return value.isoformat(*([" "] if isinstance(value, datetime) else []))
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return _ENCODER.encode(value).decode()
