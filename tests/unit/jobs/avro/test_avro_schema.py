"""Values in Avro as JSON: each is equal to what was sent, and what is none is told."""

from __future__ import annotations

import base64
import json
import math
import struct
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.avro.schema import AvroSchema, SchemaError, ValueUnreadableError
from lakestream.testing.avro import blocks, branch, decimal, double, long, record, sized, text

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=9)


def read(schema: Any, payload: bytes) -> bytes:
    return AvroSchema(json.dumps(schema)).json_of(payload)


@dataclass(frozen=True)
class Sent:
    """A value with its schema, and what of it is to be read."""

    schema: Any
    payload: bytes
    value: Any


def decimal_of(unscaled: int, scale: int) -> Sent:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": scale}
    sign, digits, _ = Decimal(unscaled).as_tuple()
    return Sent(schema, decimal(unscaled), Decimal((sign, digits, -scale)))


def array_of(items: list[Sent], cut: int) -> Sent:
    schema = {"type": "array", "items": items[0].schema}
    payloads = [item.payload for item in items]
    return Sent(schema, blocks(payloads[:cut], payloads[cut:]), [item.value for item in items])


SIMPLE = st.one_of(
    st.just(Sent("null", b"", None)),
    st.booleans().map(lambda value: Sent("boolean", bytes([value]), value)),
    st.integers(-(2**31), 2**31 - 1).map(lambda value: Sent("int", long(value), value)),
    LONGS.map(lambda value: Sent("long", long(value), value)),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda value: Sent("double", double(value), value)),
    st.floats(allow_nan=False, allow_infinity=False, width=32).map(
        lambda value: Sent("float", struct.pack("<f", value), value)
    ),
    st.binary(max_size=9).map(lambda value: Sent("bytes", sized(value), base64.b64encode(value).decode())),
    TEXTS.map(lambda value: Sent("string", text(value), value)),
    st.builds(decimal_of, st.integers(-(10**38), 10**38), st.integers(0, 9)),
)


def wrapped(inner: st.SearchStrategy[Sent]) -> st.SearchStrategy[Sent]:
    several = st.lists(inner, max_size=4)
    return st.one_of(
        inner.map(lambda one: Sent(["null", one.schema], branch(1, one.payload), one.value) if bare(one) else one),
        inner.filter(lambda one: one.payload != b"").flatmap(
            lambda one: st.builds(array_of, st.just([one, one, one]), st.integers(0, 3))
        ),
        st.tuples(TEXTS, inner).map(
            lambda pair: Sent(
                {"type": "map", "values": pair[1].schema},
                blocks([text(pair[0]) + pair[1].payload]),
                {pair[0]: pair[1].value},
            )
        ),
        several.filter(lambda ones: all(map(unnamed, ones))).map(
            lambda ones: Sent(
                record("R", {f"f{at}": one.schema for at, one in enumerate(ones)}),
                b"".join(one.payload for one in ones),
                {f"f{at}": one.value for at, one in enumerate(ones)},
            )
        ),
    )


def bare(one: Sent) -> bool:
    return one.schema != "null" and not isinstance(one.schema, list)


def unnamed(one: Sent) -> bool:
    return '"name": "R"' not in json.dumps(one.schema)


SENT = st.recursive(SIMPLE, wrapped, max_leaves=9)


def same(found: Any, sent: Any) -> bool:
    """With the digits of decimals, and the zeros of doubles."""
    if isinstance(sent, float):
        return float(found) == sent and math.copysign(1, float(found)) == math.copysign(1, sent)
    if isinstance(sent, dict):
        return found.keys() == sent.keys() and all(same(found[key], value) for key, value in sent.items())
    if isinstance(sent, list):
        return len(found) == len(sent) and all(map(same, found, sent))
    if isinstance(sent, Decimal):
        return Decimal(found).as_tuple() == sent.as_tuple() or Decimal(found) == sent == 0
    return bool(found == sent)


@given(SENT)
def test_a_value_is_read_as_it_was_sent(sent: Sent) -> None:
    assert same(json.loads(read(sent.schema, sent.payload), parse_float=Decimal), sent.value)


@given(SENT, st.data())
def test_no_bytes_raise_anything_else(sent: Sent, data: st.DataObject) -> None:
    """Cut off, with more behind, and altered."""
    schema = AvroSchema(json.dumps(sent.schema))
    at = data.draw(st.integers(0, len(sent.payload)))
    for payload in (sent.payload[:at], sent.payload[:at] + data.draw(st.binary(max_size=9)) + sent.payload[at:]):
        with suppress(ValueUnreadableError):
            json.loads(schema.json_of(payload))


@pytest.mark.parametrize(
    ("kind", "logical", "payload", "expected"),
    [
        ("int", "date", long(-719_162), date(1, 1, 1).isoformat()),
        ("int", "time-millis", long(43_200_001), "12:00:00.001000"),
        ("long", "time-micros", long(1), "00:00:00.000001"),
        ("long", "timestamp-millis", long(-1), "1969-12-31T23:59:59.999000Z"),
        ("long", "timestamp-micros", long(253_402_300_799_999_999), "9999-12-31T23:59:59.999999Z"),
        ("long", "local-timestamp-micros", long(1), "1970-01-01T00:00:00.000001"),
        ("long", "local-timestamp-millis", long(1), "1970-01-01T00:00:00.001000"),
        ("int", "time-millis", long(86_399_999), "23:59:59.999000"),
        ("string", "uuid", text("123e4567-e89b-12d3-a456-426614174000"), "123e4567-e89b-12d3-a456-426614174000"),
        ("string", "uuid", text("{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"), "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}"),
        ("string", "uuid", text("order-1"), "order-1"),
        ("long", "of-some-other-kind", long(7), 7),
    ],
)
def test_logical_types_are_told_as_columns_take_them(kind: str, logical: str, payload: bytes, expected: object) -> None:
    assert json.loads(read({"type": kind, "logicalType": logical}, payload)) == expected


def test_enums_fixed_and_named_types() -> None:
    kind = {"type": "enum", "name": "shop.Kind", "symbols": ["new", "paid"]}
    schema = record(
        "shop.Order", {"kind": kind, "before": "shop.Kind", "hash": {"type": "fixed", "name": "H", "size": 2}}
    )
    assert read(schema, long(1) + long(0) + b"\x00\xff") == b'{"kind":"paid","before":"new","hash":"AP8="}'


def test_a_decimal_keeps_digits_beyond_the_precision_that_its_schema_tells() -> None:
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    assert read(schema, decimal(123_456)) == b"1234.56"
    assert read({**schema, "type": "fixed", "name": "D", "size": 2}, b"\xff\xff") == b"-0.01"


@pytest.mark.parametrize(
    ("schema", "payload", "reason"),
    [
        ("double", double(math.nan), "NaN or Infinity, which JSON does not have"),
        (
            record("R", {"a": {"type": "map", "values": "float"}}),
            long(1) + text("k") + b"\x00\x00\x80\x7f\x00",
            "NaN or",
        ),
        ("string", sized(b"\xff"), "not what its schema says"),
        ("string", sized(b"\xed\xa0\x80"), "not what its schema says"),
        ({"type": "long", "logicalType": "timestamp-millis"}, long(2**62), "not what its schema says"),
        ({"type": "int", "logicalType": "time-millis"}, long(-1), "not what its schema says"),
        ({"type": "int", "logicalType": "time-millis"}, long(86_400_000), "not what its schema says"),
        ({"type": "long", "logicalType": "time-micros"}, long(-1), "not what its schema says"),
        ({"type": "long", "logicalType": "time-micros"}, long(2**62), "not what its schema says"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, sized(b"\x01" * 65), "not what its schema says"),
        ({"type": "array", "items": "boolean"}, long(2**62) + b"\x01", "not what its schema says"),
        (["null", "int"], long(2) + long(7), "not what its schema says"),
    ],
)
def test_what_json_does_not_have_is_told(schema: Any, payload: bytes, reason: str) -> None:
    with pytest.raises(ValueUnreadableError, match=reason):
        read(schema, payload)


def doubled(times: int) -> Any:
    """A record of no bytes that has the one before twice, so many times."""
    schema = record("N0", {})
    for number in range(times):
        schema = record(f"N{number + 1}", {"a": schema, "b": f"N{number}"})
    return schema


NOTHING = record("Nothing", {"a": "null", "b": {"type": "fixed", "name": "F", "size": 0}})


@pytest.mark.parametrize(
    ("definition", "reason"),
    [
        ("{", "is no schema of Avro"),
        ("3", "is no schema of Avro"),
        ('"order"', "is no schema of Avro"),
        ('{"type":"map"}', "is no schema of Avro"),
        ("[" * 100_000, "is no schema of Avro"),
        (json.dumps({"type": "array", "items": "null"}), "items that take no bytes"),
        (json.dumps(record("R", {"n": NOTHING, "many": {"type": "array", "items": "Nothing"}})), "take no bytes"),
        (json.dumps(record("a.R", {"next": ["null", "a.R"]})), "is recursive: a.R is part of itself"),
        (json.dumps(doubled(40)), "has more than 10,000 values in one"),
        (json.dumps({"type": "map", "values": doubled(40)}), "has more than 10,000 values in one"),
    ],
)
def test_schemas_by_which_nothing_is_read(definition: str, reason: str) -> None:
    """A few bytes of such a value could take all of the memory, or of the stack."""
    with pytest.raises(SchemaError, match=reason):
        AvroSchema(definition)


def test_a_record_may_have_thousands_of_values() -> None:
    assert json.loads(read(doubled(12), b""))["b"]["b"] == json.loads(read(doubled(10), b""))


def test_long_runs_of_bytes_are_told_without_their_memory() -> None:
    with pytest.raises(ValueUnreadableError):
        read("bytes", long(2**62) + b"abc")
