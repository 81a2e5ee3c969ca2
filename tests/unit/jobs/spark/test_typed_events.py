"""Raw records to events, record by record and batch by batch."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from lakestream.kinesis import SCHEMA
from lakestream.kinesis.batches import REASON
from lakestream.kinesis.texts import expanded
from lakestream.model import RecordFormat
from lakestream.spark.events import DATA, METADATA, EventReader, events_schema, typed


def struct(**types: st.DataType) -> st.StructType:
    return st.StructType([st.StructField(name, type) for name, type in types.items()])


STRING, DOUBLE, TIMESTAMP = st.StringType(), st.DoubleType(), st.TimestampType()
FIELDS = struct(id=STRING, amount=DOUBLE)
INNER = struct(at=TIMESTAMP, n=st.ByteType())
NESTED = struct(
    at=TIMESTAMP,
    all=st.ArrayType(TIMESTAMP),
    by_name=st.MapType(STRING, INNER),
    inner=INNER,
    items=st.ArrayType(INNER),
    text=STRING,
    price=st.DecimalType(5, 2),
    local=st.TimestampNTZType(),
    float=st.FloatType(),
)


def inner(n: int | None = None) -> dict[str, Any]:
    return {"at": None, "n": n}


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[arg-type,misc]


class Seen(NamedTuple):
    """What a record became; columns that are null are left out."""

    event: dict[str, Any]
    rescued: str | None = None
    reason: str | None = None


def seen(datas: Sequence[bytes], schema: st.StructType) -> list[Seen]:
    found = EventReader(schema).read(datas)
    rows = zip(*(column.to_pylist() for column in found.columns), strict=True)
    events = [{name: value for name, value in zip(schema.names, row, strict=True) if value is not None} for row in rows]
    return [Seen(*each) for each in zip(events, found.rescued.to_pylist(), found.reasons.to_pylist(), strict=True)]


def look_at(data: bytes, schema: st.StructType) -> Seen:
    (found,) = seen([data], schema)
    return found


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" ", "not JSON"),
        (b'{"id": 1', "not JSON"),
        (b'{"id": 1}{"id": 2}', "JSON with more behind it"),
        (b'\n{"id": 1}\n{"id": 2}\n', "JSON with more behind it"),
        (b'{"id": 1},', "JSON with more behind it"),
        (b"{'id': 1}", "not JSON"),
        (b'{"id": NaN}', "not JSON"),
        (b'{"id": 01}', "not JSON"),
        (b'{"id": "\\ud800"}', "not JSON"),
        (b'\xef\xbb\xbf{"id": 1}', "not JSON"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b"\x1f\x8b\x07\x00", "not UTF-8"),
        (b"\x1f\x8b\x08\x00", "gzip that is damaged, or more than 16 MiB of text"),
        (b"\x03\x00" + bytes(range(200, 216)) + b"\x02a", "in a frame of the Glue Schema Registry, and not JSON"),
        (b"\x03\x00" + b"a" * 16 + b"\x02a", "in a frame of the Glue Schema Registry, and not JSON"),
        (b'"{}"', "not a JSON object"),
        (b'[{"id": 1}]', "not a JSON object"),
        (b"null", "not a JSON object"),
        (b"7", "not a JSON object"),
        (b'{"x": "\\ud800"}', "not JSON"),
        (b'{"x": ' + b"[" * 2000 + b"]" * 2000 + b"}", "nested too deeply"),
        (b'{"id": ' + b"[" * 2000 + b"]" * 2000 + b"}", "nested too deeply"),
        (b'{"amount": 1e400}', "does not fit double: amount"),
        (b'{"amount": ' + b"9" * 5000 + b"}", "does not fit double: amount"),
    ],
)
def test_what_cannot_be_used_has_a_reason(data: bytes, reason: str) -> None:
    assert look_at(data, FIELDS) == Seen({}, reason=reason)


@pytest.mark.parametrize(
    ("data", "rescued"),
    [
        (b"{}", None),
        (b'{"id": 1, "amount": 2.5}', None),
        (b' {"id":1}\n', None),
        (b'{"id": 1, "id": 2}', None),
        (b'{"ID": 1}', '{"ID":1}'),
        (b'{"x": 1.10, "y": [-0, 1E400]}', '{"x":1.10,"y":[-0,1E400]}'),
        (b'{"x": null}', '{"x":null}'),
        (b'{"id": 1, "more": {"a": [1, null]}}', '{"more":{"a":[1,null]}}'),
        (b'{"big": 123456789012345678901234567890}', '{"big":123456789012345678901234567890}'),
        ('{"name": "Zoë"}'.encode(), '{"name":"Zoë"}'),
        (b'{"x": 1, "x": 2}', '{"x":2}'),
    ],
)
def test_unknown_fields_are_rescued(data: bytes, rescued: str | None) -> None:
    look = look_at(data, FIELDS)
    assert (look.rescued, look.reason) == (rescued, None)


@pytest.mark.parametrize(
    ("data", "event", "rescued"),
    [
        (b'{"inner": {"n": 1, "z": 1.10}}', {"inner": inner(1)}, '{"inner":{"z":1.10}}'),
        (
            b'{"items": [{"n": 1}, {"n": 2, "z": 3}, null, {"z": {"n": 4}}, {}], "new": 5}',
            {"items": [inner(1), inner(2), None, inner(), inner()]},
            '{"new":5,"items":[null,{"z":3},null,{"z":{"n":4}}]}',
        ),
        (
            b'{"by_name": {"a": {"n": 1}, "b": {"at": null, "z": null}}}',
            {"by_name": [("a", inner(1)), ("b", inner())]},
            '{"by_name":{"b":{"z":null}}}',
        ),
        (b'{"inner": {"z": 1}, "inner": {"n": 1}, "z": 2}', {"inner": inner(1)}, '{"z":2}'),
    ],
)
def test_what_is_rescued_is_where_it_was(data: bytes, event: dict[str, Any], rescued: str) -> None:
    assert look_at(data, NESTED) == Seen(event, rescued)


@pytest.mark.parametrize(
    ("data", "event"),
    [
        (b'{"text": 1.10}', {"text": "1.10"}),
        (b'{"text": 100000000000000000000.5}', {"text": "100000000000000000000.5"}),
        (b'{"text": {"z": [1E5, true], "y": "\\u00e9"}}', {"text": '{"z":[1E5,true],"y":"é"}'}),
        (b'{"price": 1.2e1}', {"price": Decimal("12.00")}),
        (b'{"price": 0e100000000}', {"price": Decimal("0.00")}),
        (b'{"price": 1.25' + b"0" * 5000 + b"}", {"price": Decimal("1.25")}),
        (b'{"price": "+1.5"}', {"price": Decimal("1.50")}),
        (b'{"by_name": {"a": {"n": 1}, "a": {"n": 2}}}', {"by_name": [("a", inner(2))]}),
        (b'{"at": 1767574923}', {"at": utc(2026, 1, 5, 1, 2, 3)}),
        (b'{"at": "2026-01-05T01:02:03Z"}', {"at": utc(2026, 1, 5, 1, 2, 3)}),
        (b'{"at": "2026-01-05 01:02"}', {"at": utc(2026, 1, 5, 1, 2)}),
        (b'{"at": "2026-01-05"}', {"at": utc(2026, 1, 5)}),
        (b'{"at": "2026-01-05T01:02:03.5+05:30"}', {"at": utc(2026, 1, 4, 19, 32, 3, 500000)}),
        (b'{"at": "2026-1-5 1:2:3 UTC"}', {"at": utc(2026, 1, 5, 1, 2, 3)}),
        (b'{"at": "2028-02-29T00:00:00-1800"}', {"at": utc(2028, 2, 29, 18)}),
        (b'{"at": "0001-01-01T00:00:00Z"}', {"at": utc(1, 1, 1)}),
        (b'{"at": "9999-12-31T23:59:59Z"}', {"at": utc(9999, 12, 31, 23, 59, 59)}),
        (b'{"at": "2026-01-31T12:00:00.123456789012"}', {"at": utc(2026, 1, 31, 12, 0, 0, 123456)}),
        (b'{"at": "2026-01-31T12:00:00.123456789Z"}', {"at": utc(2026, 1, 31, 12, 0, 0, 123456)}),
        (
            b'{"local": "2026-01-31T12:00:00.123456789"}',
            {"local": utc(2026, 1, 31, 12, 0, 0, 123456).replace(tzinfo=None)},
        ),
    ],
)
def test_values_come_out_equal(data: bytes, event: dict[str, Any]) -> None:
    assert look_at(data, NESTED) == Seen(event)


@pytest.mark.parametrize(
    ("digits", "nearest"),
    [
        (b"16777217", 16777216.0),
        (b"16777217.000000000000001", 16777218.0),
        (b"16777218.999999999999999", 16777218.0),
        (b"-16777217.000000000000001", -16777218.0),
        (b"1.00000005960464477540", 1.00000011920928955078125),
        (b"1e-400", 0.0),
        (b"1e-45", 2.0**-149),
        (b"7.0064923216240854e-46", 2.0**-149),
        (b"7.0064923216240853e-46", 0.0),
        (b"3.4028235e38", (2 - 2.0**-23) * 2.0**127),
        (b"3.4028235677973366e38", (2 - 2.0**-23) * 2.0**127),
    ],
)
def test_a_float_is_the_one_nearest_to_its_digits(digits: bytes, nearest: float) -> None:
    # By way of a double, the nearest to the digits, it would be another one where that lies between two floats.
    assert look_at(b'{"x": ' + digits + b"}", struct(x=st.FloatType())) == Seen({"x": nearest})


@pytest.mark.parametrize("digits", ["-0", "0", "-0.0", "-0e0", "-0.0e5", "-0E-3", "-1e-400"])
@pytest.mark.parametrize("type", [st.DoubleType(), st.FloatType()])
def test_a_zero_has_its_sign_whatever_else_is_in_the_record_and_beside_it(type: st.DataType, digits: str) -> None:
    """By Spark's own reader of JSON, and in plain records, the integer -0 is 0."""
    zero, day = digits.encode(), b'"at": "2026-1-5"'
    plain = b'{"x": ' + zero + b', "all": [' + zero + b"]}"
    reader = EventReader(struct(x=type, all=st.ArrayType(type), at=st.TimestampType()))
    for batch in (
        [plain],
        [plain[:-1] + b', "new": 1}'],
        [plain[:-1] + b", " + day + b"}"],
        [plain, b"{" + day + b"}"],
    ):
        one, several, _ = (column.to_pylist()[0] for column in reader.read(batch).columns)
        assert {str(one), str(several[0])} == {"0.0" if zero in (b"0", b"-0") else "-0.0"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"float": 3.4028235677973367e38}', "does not fit float: float"),
        (b'{"price": 1.239}', "does not fit decimal(5,2): price"),
        (b'{"price": 1e100000000}', "does not fit decimal(5,2): price"),
        (b'{"price": 1e99999999999999999999}', "does not fit decimal(5,2): price"),
        (b'{"price": "1e99999999999999999999"}', "does not fit decimal(5,2): price"),
        (b'{"price": "1_0"}', "does not match the schema: price"),
        (b'{"price": "NaN"}', "does not match the schema: price"),
        (b'{"price": "1,5"}', "does not match the schema: price"),
        (b'{"inner": {"n": 128}}', "does not fit tinyint: inner.n"),
        (b'{"items": [{}, {"n": 1.0}]}', "does not match the schema: items[1].n"),
        (b'{"at": 1769860800000}', "seconds since the epoch expected, these look like milliseconds: at"),
        (b'{"all": [1769860800000000]}', "seconds since the epoch expected, these look like microseconds: all[0]"),
        (b'{"at": 9223372036854775807}', "seconds since the epoch expected, these look like nanoseconds: at"),
        (b'{"at": -9223372036854775808000}', "does not fit timestamp: at"),
        (b'{"at": "0000-01-01T00:00:00Z"}', "does not match the schema: at"),
        (b'{"at": "0001-01-01T00:00:00+00:01"}', "does not match the schema: at"),
        (b'{"at": "2026-01-31T12:00:00+18:01"}', "does not match the schema: at"),
        (b'{"at": "2026-01-31T12:00:00+19:00"}', "does not match the schema: at"),
        (b'{"at": "2026-02-30T12:00:00Z"}', "does not match the schema: at"),
        (b'{"at": "2026-01-31T24:00:00Z"}', "does not match the schema: at"),
        (b'{"local": "2026-01-31T12:00:00Z"}', "does not match the schema: local"),
        (b'{"at": "2026"}', "does not match the schema: at"),
        (b'{"at": "2026-10-25 02:30:00 Europe/Berlin"}', "does not match the schema: at"),
        (b'{"at": "9999-12-31T23:59:59-01:00"}', "does not match the schema: at"),
        (b'{"at": "2026-01-31T12:00:00.' + b"1" * 5000 + b'x"}', "does not match the schema: at"),
    ],
)
def test_what_is_not_exact_is_refused_with_its_path(data: bytes, reason: str) -> None:
    assert look_at(data, NESTED) == Seen({}, reason=reason)


def test_names_that_the_decoder_does_not_know_are_read_all_the_same() -> None:
    schema = st.StructType([st.StructField('a"b', STRING)])
    assert look_at(b'{"a\\"b": "x"}', schema) == Seen({'a"b': "x"})


def test_a_null_within_a_column_is_told_where_it_may_not_be() -> None:
    inner = st.StructType([st.StructField("n", st.IntegerType(), nullable=False)])
    assert look_at(b'{"inner": {"n": null}}', struct(inner=inner)) == Seen({}, reason="missing: inner.n")
    assert look_at(b'{"inner": null}', struct(inner=inner)) == Seen({})


def test_a_null_is_told_in_an_array_or_a_map_that_has_none() -> None:
    """As the columns of a table may be: Spark does not look whether one is null, and fails."""
    numbers = st.MapType(STRING, st.ArrayType(st.IntegerType(), containsNull=False), valueContainsNull=False)
    schema = struct(words=st.ArrayType(STRING, containsNull=False), numbers=numbers)
    assert seen([b'{"words":["a",""],"numbers":{"x":[0]}}'], schema)[0].reason is None
    assert seen([b'{"words":null,"numbers":{},"new":1}'], schema) == [Seen({"numbers": []}, '{"new":1}')]
    for data, where in ((b'{"words":["a",null]}', "words[1]"), (b'{"numbers":{"x":null}}', "numbers.x")):
        assert seen([data], schema) == [Seen({}, reason=f"missing: {where}")]
    assert seen([b'{"numbers":{"x":[1,null]}}'], schema) == [Seen({}, reason="missing: numbers.x[1]")]


def test_types_that_json_has_not_are_refused() -> None:
    for type in (st.DayTimeIntervalType(), st.NullType(), st.MapType(st.IntegerType(), STRING)):
        with pytest.raises(TypeError, match=r"a value of .* is not read from JSON"):
            EventReader(struct(column=st.ArrayType(type)))


def test_a_record_of_one_mebibyte_is_looked_at_whole() -> None:
    padding = b"x" * (1 << 20)
    assert look_at(b'{"id": "' + padding + b'"}', FIELDS) == Seen({"id": padding.decode()})
    assert look_at(b'{"id": "' + padding, FIELDS) == Seen({}, reason="not JSON")


def test_a_batch_becomes_its_events_with_their_metadata_and_bytes() -> None:
    arrival = utc(2026, 1, 31, 12)
    raw = {"partition_key": "k", "sequence_number": "7", "sub_sequence": 0, "shard_id": "shard", "arrival": arrival}
    datas = (b'{"id":1}', b"", b'{"new":1}')
    batch = pa.RecordBatch.from_pylist([{"data": data, **raw} for data in datas], SCHEMA)
    (events,) = typed([batch], FIELDS)
    assert events.schema.names == events_schema(FIELDS).names == ["id", "amount", *METADATA, DATA, REASON]
    assert events.column("id").to_pylist() == ["1", None, None]
    assert events.column("_rescued").to_pylist() == [None, None, '{"new":1}']
    assert events.column(REASON).to_pylist() == [None, "empty", None]
    assert events.column(DATA).to_pylist() == [*datas]
    assert events.select(METADATA[1:]).to_pylist()[0] == {f"_{name}": value for name, value in raw.items()}


def test_compressed_records_are_read_as_their_texts_and_keep_their_bytes() -> None:
    datas = [gzip.compress(b'{"id":1,"new":2}'), b'{"id":2}', gzip.compress(b"[]"), gzip.compress(b"{}")[:-1]]
    rows = [{"data": data, "shard_id": "shard", "sequence_number": "7", "sub_sequence": 0} for data in datas]
    (events,) = typed(expanded([pa.RecordBatch.from_pylist(rows, SCHEMA)]), FIELDS)
    assert events.schema.names == events_schema(FIELDS).names
    assert events.column("id").to_pylist() == ["1", "2", None, None]
    assert events.column("_rescued").to_pylist() == ['{"new":2}', None, None, None]
    assert events.column(REASON).to_pylist() == [
        *(None, None, "not a JSON object"),
        "gzip that is damaged, or more than 16 MiB of text",
    ]
    assert events.column(DATA).to_pylist() == datas


def test_texts_are_a_column_as_they_are() -> None:
    schema = st.StructType([st.StructField("line", STRING)])
    datas = [b" GET /\t200 \n", b"", b"\xff", gzip.compress("ü\n".encode()), b'{"line":"a"}', b"\x00"]
    rows = [{"data": data, "shard_id": "shard", "sequence_number": "7", "sub_sequence": 0} for data in datas]
    (events,) = typed(expanded([pa.RecordBatch.from_pylist(rows, SCHEMA)]), schema, RecordFormat.TEXT)
    assert events.schema.names == events_schema(schema).names
    assert events.column("line").to_pylist() == [" GET /\t200 \n", None, None, "ü\n", '{"line":"a"}', "\x00"]
    assert events.column(REASON).to_pylist() == [None, "empty", "not UTF-8", None, None, None]
    assert events.column("_rescued").null_count == len(datas)
    assert events.column(DATA).to_pylist() == datas


def test_no_records_are_no_events() -> None:
    assert seen([], NESTED) == []


def test_a_field_that_must_not_be_null_is_a_reason_where_there_is_no_other() -> None:
    schema = st.StructType([st.StructField("id", STRING, False), st.StructField("n", st.LongType(), False)])
    datas = [b'{"id":"a","n":1}', b"{}", b'{"id":null,"n":1}', b'{"id":"a"}', b"oops"]
    assert [row.reason for row in seen(datas, schema)] == [None, "missing: id", "missing: id", "missing: n", "not JSON"]


def test_one_time_in_many_that_is_none_is_told_by_its_record_alone() -> None:
    times = [b'{"at":"2026-01-31T12:00:00Z"}'] * 300
    times[217] = b'{"at":"2026-02-31T12:00:00Z"}'
    found = seen(times, NESTED)
    assert found.pop(217) == Seen({}, reason="does not match the schema: at")
    assert found == [Seen({"at": utc(2026, 1, 31, 12)})] * 299


def test_times_of_all_kinds_may_be_in_one_column() -> None:
    noon = utc(2026, 1, 31, 12)
    texts = [b'"2026-01-31T12:00:00Z"', b"1769860800", b"null", b'"2026-01-31 12:00"', b'"2026-01-31T14:00:00+0200"']
    texts += [b'"2026-01-31T12:00:00.0000009"', b'"2026-1-31 12 GMT"', b'"12:00"']
    found = seen([b'{"all":[' + b",".join(texts[:-1]) + b"]}", b'{"all":[]}', b'{"all":[' + texts[-1] + b"]}"], NESTED)
    assert found == [
        Seen({"all": [noon, noon, None, noon, noon, noon, noon]}),
        Seen({"all": []}),
        Seen({}, reason="a time without a date: all[0]"),
    ]


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (b'{"at": "12:00"}', "at"),
        (b'{"at": "T12:00:00Z"}', "at"),
        (b'{"at": " 9:30:00.5 "}', "at"),
        (b'{"all": ["2026-01-31", "12:00"]}', "all[1]"),
        (b'{"by_name": {"a": {"at": null}, "b": {"at": "12:00"}}}', "by_name.b.at"),
        (b'{"inner": {"at": "12:00"}}', "inner.at"),
    ],
)
def test_a_time_without_a_date_would_be_another_one_tomorrow(data: bytes, where: str) -> None:
    assert look_at(data, NESTED) == Seen({}, reason=f"a time without a date: {where}")
