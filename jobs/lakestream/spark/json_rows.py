"""Rows of Arrow as JSON from which `events` reads the same values, or refuses them. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa

_encode = msgspec.json.Encoder(decimal_format="number").encode
_NOT_FINITE = {True: msgspec.Raw(b"NaN"), False: msgspec.Raw(b"Infinity")}
"""No JSON has them, and so the record is refused. Left to the encoder, they would be null."""


def json_rows(rows: pa.RecordBatch) -> Iterator[bytes]:
    """Each row as an object; nulls are left out.

    Decimals are numbers with all their digits, times ISO 8601 as they are stored, bytes base64.

    Raises:
        pyarrow.ArrowException, ValueError: of a type that JSON has no value for.
    """
    names = rows.schema.names
    columns = [_values(column) for column in rows.columns]
    for row in zip(*columns, strict=True) if columns else iter([()] * rows.num_rows):
        yield _encode({name: value for name, value in zip(names, row, strict=True) if value is not None})


def unreadable_column(schema: pa.Schema) -> str | None:
    """The name and type of a column that rows cannot be made of; None: there is none."""
    for field in schema:
        if not _is_read(field.type):
            return f"{field.name} {field.type}"
    return None


def doubled_column(schema: pa.Schema) -> str | None:
    """The path of a column, or of a field within one, that is there twice: a name has one value in an object."""
    return _doubled(list(schema), "")


def _doubled(fields: Sequence[pa.Field], path: str) -> str | None:
    seen: set[str] = set()
    for field in fields:
        at = f"{path}{field.name}"
        if field.name in seen:
            return at
        seen.add(field.name)
        inner = [field.type.field(position) for position in range(field.type.num_fields)]
        if (doubled := _doubled(inner, f"{at}.")) is not None:
            return doubled
    return None


def _is_read(type: pa.DataType) -> bool:
    if pa.types.is_dictionary(type):
        return _is_read(type.value_type)
    if pa.types.is_map(type):
        return _is_text(type.key_type) and _is_read(type.item_type)
    if pa.types.is_struct(type) or pa.types.is_list(type) or pa.types.is_large_list(type):
        return all(_is_read(type.field(at).type) for at in range(type.num_fields))
    return not (pa.types.is_nested(type) or pa.types.is_duration(type) or pa.types.is_interval(type))


def _values(column: pa.Array) -> list[Any]:
    """The values of a column as the encoder takes them, None for null."""
    type = column.type
    if pa.types.is_dictionary(type):
        return _values(column.dictionary_decode())
    if pa.types.is_temporal(type):
        return _times(column)
    if pa.types.is_floating(type):
        return [value if value is None or math.isfinite(value) else _not_finite(value) for value in column.to_pylist()]
    if pa.types.is_map(type):
        entries = list(zip(column.keys.to_pylist(), _values(column.items), strict=True))
        return _listed(column, lambda start, end: dict(entries[start:end]))
    if pa.types.is_struct(type):
        return _structs(column)
    if pa.types.is_list(type) or pa.types.is_large_list(type):
        values = _values(column.values)
        return _listed(column, lambda start, end: values[start:end])
    if _is_text(type):
        return _texts(column)
    return list(column.to_pylist())


def _texts(column: pa.Array) -> list[Any]:
    """Of one that is not UTF-8 the very bytes, as a text: no JSON has them, and so the record is refused."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [None if value is None else _as_it_is(value) for value in column.cast(pa.large_binary()).to_pylist()]


def _as_it_is(value: bytes) -> msgspec.Raw:
    text = json.dumps(value.decode(errors="surrogateescape"), ensure_ascii=False)
    return msgspec.Raw(text.encode(errors="surrogateescape"))


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _not_finite(value: float) -> msgspec.Raw:
    return _NOT_FINITE[math.isnan(value)]


def _times(column: pa.Array) -> list[Any]:
    type = column.type
    if pa.types.is_timestamp(type) and type.tz is not None:
        column = column.cast(pa.timestamp(type.unit, tz="UTC"))
    elif pa.types.is_date64(type):
        column = column.cast(pa.date32())
    return list(column.cast(pa.string()).to_pylist())


def _listed(column: pa.Array, part: Callable[[int, int], Any]) -> list[Any]:
    offsets, valid = column.offsets.to_pylist(), column.is_valid().to_pylist()
    return [part(offsets[at], offsets[at + 1]) if there else None for at, there in enumerate(valid)]


def _structs(column: pa.StructArray) -> list[Any]:
    names = [column.type.field(at).name for at in range(column.type.num_fields)]
    fields = [_values(column.field(at)) for at in range(column.type.num_fields)]
    rows = zip(*fields, strict=True) if fields else iter([()] * len(column))
    valid = column.is_valid().to_pylist()
    return [
        {name: value for name, value in zip(names, row, strict=True) if value is not None} if there else None
        for row, there in zip(rows, valid, strict=True)
    ]
