"""Fields that a schema lacks: read by decoders in C as they are read with every digit, or not by them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import astuple
from pyspark.sql import types as sql

from lakestream.spark import events
from lakestream.spark.digits import RecordError
from lakestream.spark.events import EventReader
from lakestream.spark.exact import exact_reader
from lakestream.spark.plain import NotPlain, plain_decoder, tells_of_surplus
from lakestream.spark.surplus import surplus_decoder

INNER = sql.StructType([sql.StructField("a", sql.StringType())])
SCHEMA = sql.StructType(
    [
        sql.StructField("id", sql.StringType()),
        sql.StructField("n", sql.LongType()),
        sql.StructField("inner", INNER),
    ]
)
EXACTLY, QUICKLY = exact_reader(SCHEMA), surplus_decoder(SCHEMA)

VALUES = (
    *("0", "-0", "1.10", "1E+5", "1e400", "123456789012345678901234567890", "true", "false", "null"),
    *('""', '"x"', '"é"', '"\\u00e9"', '"a\\/b"', '"\\ud83d\\ude00"', '"\\u0000"', '"a\u2028b"', '"[{"'),
    *("[]", "{}", "[ 1, 2.50 ]", '{"a" : 1.0}', '{"a":1,"a":2}', '{"k":{"z":[null]}}'),
)
NO_VALUES = (
    *("01", "1.", ".5", "+1", "1e", "-", "NaN", "Infinity", "-Infinity", "nul", "1_0", "0x1", "00", "1.0.0"),
    *('"\\ud800"', '"\\x"', '"a\nb"', '"\\"', "[1,]", "[", '{"a"}', "1 2", ""),
)
NAMES = ("id", "n", "inner", "x", "y", "\\u0078", "ID", "", '\\"q', "é", "\\ud800")
BLANKS = ("", " ", "\n", "\t", "\r", "\x0b", "\ufeff")


def read(data: bytes) -> Any:
    """What every digit of it gives; a text: why nothing."""
    try:
        found = EXACTLY(data)
    except RecordError as error:
        return str(error)
    return found.values, found.lacking


def quickly(data: bytes) -> Any:
    values, lacking = QUICKLY(data)
    return tuple(astuple(value) if isinstance(value, Struct) else value for value in values), lacking


def _is_quick(data: bytes) -> bool:
    try:
        QUICKLY(data)
    except NotPlain:
        return False
    return True


texts = st.lists(
    st.tuples(*(st.sampled_from(each) for each in (BLANKS, NAMES, BLANKS, VALUES + NO_VALUES, BLANKS))), max_size=4
).map(lambda fields: "{" + ",".join(f'{a}"{name}"{b}:{value}{c}' for a, name, b, value, c in fields) + "}")
damaged = st.tuples(texts, st.integers(0, 200), st.binary(max_size=2), st.integers(0, 2)).map(
    lambda drawn: drawn[0].encode()[: drawn[1]] + drawn[2] + drawn[0].encode()[drawn[1] + drawn[3] :]
)


@given(texts.map(str.encode) | damaged)
@example(b'{"x":"\xff"}')
@example(b'{"\xff":1}')
def test_what_the_decoders_take_is_what_every_digit_gives(data: bytes) -> None:
    if _is_quick(data):
        assert quickly(data) == read(data)


@pytest.mark.parametrize("value", VALUES)
def test_values_of_every_kind_are_taken_quickly(value: str) -> None:
    data = f'{{"id":"a","x":{value},"n":1}}'.encode()
    assert quickly(data) == read(data)


@pytest.mark.parametrize("value", NO_VALUES)
def test_what_is_no_json_is_not_skipped(value: str) -> None:
    assert not _is_quick(f'{{"id":"a","x":{value},"n":1}}'.encode())


@pytest.mark.parametrize("data", [b'{"id":1,"x":2}', b'{"inner":{"a":"b","c":1},"x":2}', b'{"x":"\xff"}', b"[]", b""])
def test_what_is_unusual_in_another_way_is_left_to_every_digit(data: bytes) -> None:
    assert not _is_quick(data)


def test_the_library_says_of_which_records_it_is() -> None:
    decode = plain_decoder(SCHEMA)
    for data, is_surplus in ((b'{"id":"a","x":1}', True), (b'{"id":1}', False), (b'{"n":1.5}', False), (b"{", False)):
        with pytest.raises(NotPlain) as raised:
            decode(data)
        assert tells_of_surplus(raised.value) is is_surplus


def test_records_with_more_than_the_schema_are_read_with_every_digit_only_where_they_must(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exactly: list[bytes] = []

    def reader(schema: sql.StructType) -> Any:
        def read(data: bytes) -> Any:
            exactly.append(data)
            return exact_reader(schema)(data)

        return read

    monkeypatch.setattr(events, "exact_reader", reader)
    plain, more, number, both = b'{"id":"a"}', b'{"id":"b","x":1}', b'{"id":1.0}', b'{"x":2,"id":2.0}'
    found = EventReader(SCHEMA).read([plain, more, more, plain, plain, number, more, number, both, plain, more])
    assert exactly == [number, number, both]
    assert found.columns[0].to_pylist() == ["a", "b", "b", "a", "a", "1.0", "b", "1.0", "2.0", "a", "b"]
    assert found.rescued.to_pylist() == [
        *(None, '{"x":1}', '{"x":1}', None, None, None, '{"x":1}', None),
        *('{"x":2}', None, '{"x":1}'),
    ]
