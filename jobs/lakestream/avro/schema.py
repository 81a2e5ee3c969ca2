"""Values of one Avro schema as JSON, each equal to what was sent. Pure.

fastavro reads them, but for decimals, which it rounds to the precision of the schema, for UUIDs, of which it makes
other texts, and for times of the day, which it takes for others where they are none. Times are told by ISO 8601, bytes
by base64, decimals with all their digits: as docs/records.md has columns take them.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from decimal import Context, Decimal
from math import isfinite
from typing import Any, TypeAlias

import fastavro
import msgspec
from fastavro.read import LOGICAL_READERS
from fastavro.schema import SchemaParseException

Schema: TypeAlias = Any
"""As the JSON of a schema has it: a name, a list (a union), or a dict."""

_MOST_DECIMAL = 64
"""Bytes of a decimal: a column has 38 digits at most, and a megabyte of digits would take minutes to print."""
_EXACT = Context(prec=200)

_MOST_VALUES = 10_000
"""In one value. Records that each have the one before twice are 2ⁿ of them, and need not take a byte."""
_DAY, _MIDNIGHT = timedelta(days=1), datetime(1970, 1, 1, tzinfo=UTC)

_NOT_A_SCHEMA = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    SchemaParseException,
    TypeError,
    ValueError,
)
"""What a text raises that is no schema."""
_NOT_ITS_VALUE = (ArithmeticError, EOFError, LookupError, TypeError, ValueError)
"""What bytes raise that are no value of a schema, or that have a time beyond the year 9999."""


class SchemaError(Exception):
    """No records are read by this schema; the text says why."""


class ValueUnreadableError(Exception):
    """These bytes are no value of the schema, or one that JSON does not have; the text says which."""


class AvroSchema:
    """Reads what is written by one schema.

    Args:
        definition: the JSON of the schema.

    Raises:
        SchemaError: it is none, or one whose values have no bound: a few bytes could take all of the memory, or of the
            stack. Neither has a column, either.
    """

    def __init__(self, definition: str) -> None:
        try:
            self._schema = fastavro.parse_schema(json.loads(definition))
            _count(self._schema, {})
            kinds = set(_kinds(self._schema, {}, ()))
        except _NOT_A_SCHEMA as error:
            raise SchemaError("is no schema of Avro") from error
        self._has_floats = not kinds.isdisjoint({"double", "float"})

    def json_of(self, payload: bytes) -> bytes:
        """The JSON of a value.

        Raises:
            ValueUnreadableError: the payload is none of this schema, in full, or one that JSON does not have.
        """
        stream = io.BytesIO(payload)
        try:
            value = fastavro.schemaless_reader(stream, self._schema, None)
            text = _ENCODER.encode(value)
        except _NOT_ITS_VALUE as error:
            raise ValueUnreadableError("not what its schema says") from error
        if stream.tell() != len(payload):
            raise ValueUnreadableError("not what its schema says")
        # The encoder has null for them.
        if self._has_floats and b"null" in text and not _is_finite(value):
            raise ValueUnreadableError("NaN or Infinity, which JSON does not have")
        return text


_ENCODER = msgspec.json.Encoder(decimal_format="number")


def _kinds(schema: Schema, named: dict[str, Schema], within: tuple[str, ...]) -> Iterator[str]:
    """The types of all values in one.

    Args:
        schema: as `parse_schema` leaves it: names are full ones.
        named: gets the types that have a name, as they are met.
        within: names of the types that it is part of.
    """
    if isinstance(schema, str):
        if schema in within:
            raise SchemaError(f"is recursive: {schema} is part of itself")
        yield schema
        return
    if isinstance(schema, dict) and "name" in schema:
        named[schema["name"]] = schema
        within = (*within, schema["name"])
    for part in _parts(schema):
        yield from _kinds(part, named, within)
    if isinstance(schema, dict) and schema["type"] == "array" and not _takes_bytes(schema["items"], named):
        raise SchemaError("has an array of items that take no bytes, of which a record may have any number")


def _count(schema: Schema, counted: dict[str, int]) -> int:
    """How many values are in one at most, without the items of arrays and maps, which take bytes.

    Args:
        schema: as `parse_schema` leaves it.
        counted: gets the same of types that have a name, as they are met.

    Raises:
        SchemaError: more than are read.
    """
    if isinstance(schema, str):
        return counted.get(schema, 1)
    counts = [_count(part, counted) for part in _parts(schema)]
    match schema:
        case list():
            count = max(counts, default=1)
        case {"type": "array" | "map"}:
            count = 1
        case _:
            count = 1 + sum(counts)
    if count > _MOST_VALUES:
        raise SchemaError(f"has more than {_MOST_VALUES:,} values in one")
    if isinstance(schema, dict) and "name" in schema:
        counted[schema["name"]] = count
    return count


def _parts(schema: Schema) -> list[Schema]:
    """What a schema is made of."""
    match schema:
        case list():
            return schema
        case {"type": "record" | "error", "fields": fields}:
            return [field["type"] for field in fields]
        case {"type": "map", "values": part} | {"type": "array", "items": part} | {"type": part}:
            return [part]
    raise SchemaError("is no schema of Avro")


def _takes_bytes(schema: Schema, named: Mapping[str, Schema]) -> bool:
    """Whether each value takes a byte at least."""
    match schema:
        case list():
            return True  # the number of the branch
        case str():
            return schema != "null" and (schema not in named or _takes_bytes(named[schema], named))
        case {"type": "record" | "error", "fields": fields}:
            return any(_takes_bytes(field["type"], named) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size > 0)
    return _takes_bytes(schema["type"], named)


def _is_finite(value: Any) -> bool:
    """Whether no number in a value is NaN or infinite."""
    if isinstance(value, float):
        return isfinite(value)
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(map(_is_finite, parts))


def _decimal(data: bytes, schema: dict[str, Any] | None, _: dict[str, Any] | None) -> Decimal:
    if len(data) > _MOST_DECIMAL:
        raise ValueError(f"a decimal of {len(data)} bytes")
    return _EXACT.scaleb(int.from_bytes(data, "big", signed=True), -(schema or {}).get("scale", 0))


def _time_of_day(unit: timedelta) -> Callable[..., time]:
    def read(number: int, *_: object) -> time:
        if not 0 <= number < _DAY // unit:
            raise ValueError(f"{number} is no time of a day")
        return (_MIDNIGHT + number * unit).time()

    return read


LOGICAL_READERS["bytes-decimal"] = LOGICAL_READERS["fixed-decimal"] = _decimal
LOGICAL_READERS["int-time-millis"] = _time_of_day(timedelta(milliseconds=1))
LOGICAL_READERS["long-time-micros"] = _time_of_day(timedelta(microseconds=1))
del LOGICAL_READERS["string-uuid"]
