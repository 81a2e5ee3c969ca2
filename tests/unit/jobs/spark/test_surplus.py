"""What decoders in C read beside plain records, as it is read with every digit: fields that the schema lacks, and any
value in a column of STRING."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
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
from lakestream.spark.exact import Read, exact_reader
from lakestream.spark.plain import NotPlain, loose_strings, plain_decoder, tells_of_surplus
from lakestream.spark.surplus import surplus_decoder

INNER = sql.StructType([sql.StructField("a", sql.StringType())])
SCHEMA = sql.StructType(
    [
        sql.StructField("id", sql.StringType()),
        sql.StructField("n", sql.LongType()),
        sql.StructField("inner", INNER),
    ]
)
EXACTLY, QUICKLY, LOOSELY = exact_reader(SCHEMA), surplus_decoder(SCHEMA), surplus_decoder(SCHEMA, [0])

VALUES = (
    *("0", "-0", "1.10", "1E+5", "1e400", "123456789012345678901234567890", "true", "false", "null"),
    *('""', '"x"', '"é"', '"\\u00e9"', '"a\\/b"', '"\\ud83d\\ude00"', '"\\u0000"', '"a\u2028b"', '"[{"'),
    *("[]", "{}", "[ 1, 2.50 ]", '{"a" : 1.0}', '{"a":1,"a":2}', '{"k":{"z":[null]}}'),
)
NO_VALUES = (
    *("01", "1.", ".5", "+1", "1e", "-", "NaN", "Infinity", "-Infinity", "nul", "1_0", "0x1", "00", "1.0.0"),
    *('"\\ud800"', '"\\udc00\\ud800"', '"\\x"', '"a\nb"', '"\\"', "[1,]", "[", '{"a"}', "1 2", ""),
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


def by(decoder: Callable[[bytes], Any], data: bytes) -> Any:
    """What a decoder gives; nothing: it leaves the record to others."""
    try:
        values, lacking = decoder(data)
    except NotPlain:
        return None
    return tuple(astuple(value) if isinstance(value, Struct) else value for value in values), lacking


texts = st.lists(
    st.tuples(*(st.sampled_from(each) for each in (BLANKS, NAMES, BLANKS, VALUES + NO_VALUES, BLANKS))),
    max_size=4,
).map(lambda fields: "{" + ",".join(f'{a}"{name}"{b}:{value}{c}' for a, name, b, value, c in fields) + "}")
damaged = st.tuples(texts, st.integers(0, 200), st.binary(max_size=2), st.integers(0, 2)).map(
    lambda drawn: drawn[0].encode()[: drawn[1]] + drawn[2] + drawn[0].encode()[drawn[1] + drawn[3] :]
)


@given(texts.map(str.encode) | damaged)
@example(b'{"x":"\xff"}')
@example(b'{"\xff":1}')
def test_what_the_decoders_take_is_what_every_digit_gives(data: bytes) -> None:
    for decoder in (QUICKLY, LOOSELY):
        assert by(decoder, data) in (read(data), None)


# There is no time in the schema, of which all of a batch are read together.
@given(st.lists(texts.map(str.encode) | damaged, max_size=8))
@example([b'{"x":"\\ud800"}', b'{"\\ud800":1}', b'{"x":["\\udc00"]}', b'{"x":"\xff"}', b'{"\xff":1}'])
@example([b'{"id":1.0}', b'{"id":1.0,"x":"\\ud800"}', b'{"id":[1],"x":"\xff"}', b'{"id":"\\ud800"}', b'{"id":"\xff"}'])
def test_a_record_is_the_same_whatever_is_read_before_it_and_asked_for(datas: list[bytes]) -> None:
    asked, passed_over = EventReader(SCHEMA).read(datas), EventReader(SCHEMA, rescues=False).read(datas)
    one_by_one = [EventReader(SCHEMA).read([data]) for data in datas]
    for at in range(len(SCHEMA.fields)):
        alone = [one.columns[at][0].as_py() for one in one_by_one]
        assert asked.columns[at].to_pylist() == passed_over.columns[at].to_pylist() == alone
    reasons = [one.reasons[0].as_py() for one in one_by_one]
    assert asked.reasons.to_pylist() == passed_over.reasons.to_pylist() == reasons
    assert asked.rescued.to_pylist() == [one.rescued[0].as_py() for one in one_by_one]


@pytest.mark.parametrize("value", VALUES)
def test_values_of_every_kind_are_taken(value: str) -> None:
    for decoder, data in (
        (QUICKLY, f'{{"id":"a","x":{value},"n":1}}'),
        (LOOSELY, f'{{"id":{value},"n":1}}'),
        (LOOSELY, f'{{"id" : {value} , "x": {value}}}'),
    ):
        assert by(decoder, data.encode()) == read(data.encode())


@pytest.mark.parametrize("value", NO_VALUES)
def test_what_is_no_json_is_not_skipped(value: str) -> None:
    assert by(QUICKLY, f'{{"id":"a","x":{value},"n":1}}'.encode()) is None
    assert by(LOOSELY, f'{{"id":{value},"n":1}}'.encode()) is None


@pytest.mark.parametrize(
    "data",
    [b'{"n":1.0,"x":2}', b'{"inner":{"a":1,"c":1},"x":2}', b'{"x":"\xff"}', b'{"id":"\xff"}', b"[]", b"", b'{"id":'],
)
def test_what_is_unusual_in_another_way_is_left_to_every_digit(data: bytes) -> None:
    assert by(QUICKLY, data) is by(LOOSELY, data) is None


def test_the_library_says_of_which_records_it_is() -> None:
    decode = plain_decoder(SCHEMA)
    for data, is_surplus in ((b'{"id":"a","x":1}', True), (b'{"id":1}', False), (b'{"n":1.5}', False), (b"{", False)):
        with pytest.raises(NotPlain) as raised:
            decode(data)
        assert tells_of_surplus(raised.value) is is_surplus


@pytest.fixture
def exactly(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The records that readers read with every digit."""
    found: list[bytes] = []

    def reader(schema: sql.StructType) -> Callable[[bytes], Read]:
        read = exact_reader(schema)

        def noted(data: bytes) -> Read:
            found.append(data)
            return read(data)

        return noted

    monkeypatch.setattr(events, "exact_reader", reader)
    return found


PLAIN, MORE, UNUSUAL = b'{"id":"a"}', b'{"id":"b","x":1}', b'{"inner":{"a":1,"b":1}}'


def test_no_record_is_read_with_every_digit_for_what_the_schema_lacks(exactly: list[bytes]) -> None:
    within = b'{"inner":{"a":"b","c":[1, 2]},"n":1,"y":{}}'
    datas = [PLAIN, MORE, within, PLAIN, PLAIN, UNUSUAL, MORE, UNUSUAL, PLAIN, within]
    found = EventReader(SCHEMA).read(datas)
    assert exactly == [UNUSUAL, UNUSUAL]
    assert found.columns[0].to_pylist() == ["a", "b", None, "a", "a", None, "b", None, "a", None]
    more, some, unusual = '{"x":1}', '{"y":{},"inner":{"c":[1,2]}}', '{"inner":{"b":1}}'
    assert found.rescued.to_pylist() == [None, more, some, None, None, unusual, more, unusual, None, some]


def test_what_nobody_asks_for_is_passed_over(exactly: list[bytes]) -> None:
    within, number, unfit, cut = b'{"inner":{"a":"b","c":1.0}}', b'{"id":1.0,"y":2}', b'{"n":"1","x":1}', b'{"x":1'
    datas = [PLAIN, MORE, within, number, number, UNUSUAL, unfit, cut, b'{"x":"\xff"}', b'{"x":NaN}']
    reader, asked = EventReader(SCHEMA, rescues=False), EventReader(SCHEMA)
    found, wanted = reader.read(datas), asked.read(datas)
    assert found.columns == wanted.columns
    assert found.reasons == wanted.reasons
    assert found.rescued.null_count == len(datas) > wanted.rescued.null_count
    exactly.clear()
    reader.read([PLAIN, MORE, within, number])
    assert exactly == []


def test_the_first_values_that_are_no_strings_tell_of_the_others(exactly: list[bytes]) -> None:
    number, array, both = b'{"id":1.0}', b'{"id":[1.0]}', b'{"id":2.0,"x":[ ]}'
    reader = EventReader(SCHEMA)
    found = reader.read([PLAIN, number, number, PLAIN, array, both, UNUSUAL, number])
    assert exactly == [number, UNUSUAL]
    assert found.columns[0].to_pylist() == ["a", "1.0", "1.0", "a", "[1.0]", "2.0", None, "1.0"]
    assert found.rescued.to_pylist() == [None, None, None, None, None, '{"x":[]}', '{"inner":{"b":1}}', None]
    reader.read([number])
    assert exactly == [number, UNUSUAL], "in the next batch it is known"


def test_records_that_nothing_is_learnt_of_are_looked_at_ever_less(
    exactly: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[bytes] = []

    def look(schema: sql.StructType, data: bytes) -> frozenset[int]:
        looked.append(data)
        return loose_strings(schema, data)

    monkeypatch.setattr(events, "loose_strings", look)
    reader = EventReader(SCHEMA)
    reader.read([UNUSUAL] * 100)
    assert (len(looked), len(exactly)) == (7, 100)


def test_a_decimal_may_be_a_text(exactly: list[bytes]) -> None:
    price = sql.StructType([sql.StructField("price", sql.DecimalType(5, 2))])
    texts = ("1.50", " +1.5e0\t", "-.5", "0e9999")
    found = EventReader(price).read([f'{{"price":"{text}"}}'.encode().replace(b"\t", b"\\t") for text in texts])
    assert (exactly, found.reasons.null_count) == ([], len(texts))
    assert found.columns[0].to_pylist() == [Decimal("1.50"), Decimal("1.50"), Decimal("-0.50"), Decimal("0.00")]
