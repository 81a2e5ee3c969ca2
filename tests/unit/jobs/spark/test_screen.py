"""The first look at raw records."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql import types as st

from lakestream.kinesis import SCHEMA
from lakestream.spark.screen import Look, looker, screen


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
)


def look_at(data: bytes, schema: st.StructType) -> Look:
    return looker(schema)(data)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (b" ", "not JSON"),
        (b'{"id": 1', "not JSON"),
        (b'{"id": 1}{"id": 2}', "not JSON"),
        (b'{"id": 1},', "not JSON"),
        (b"{'id': 1}", "not JSON"),
        (b'{"id": NaN}', "not JSON"),
        (b'{"id": 01}', "not JSON"),
        (b'{"id": "\\ud800"}', "not JSON"),
        (b'\xef\xbb\xbf{"id": 1}', "not JSON"),
        (b'{"id": "\xff"}', "not UTF-8"),
        (b"\x1f\x8b\x08\x00", "not UTF-8"),
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
    assert look_at(data, FIELDS) == Look(reason=reason)


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
    ("data", "text", "rescued"),
    [
        (b'{"inner": {"n": 1, "z": 1.10}}', '{"inner":{"n":1}}', '{"inner":{"z":1.10}}'),
        (
            b'{"items": [{"n": 1}, {"n": 2, "z": 3}, null, {"z": {"n": 4}}, {}], "new": 5}',
            '{"items":[{"n":1},{"n":2},null,{},{}]}',
            '{"new":5,"items":[null,{"z":3},null,{"z":{"n":4}}]}',
        ),
        (
            b'{"by_name": {"a": {"n": 1}, "b": {"at": null, "z": null}}}',
            '{"by_name":{"a":{"n":1},"b":{}}}',
            '{"by_name":{"b":{"z":null}}}',
        ),
        (b'{"inner": {"z": 1}, "inner": {"n": 1}, "z": 2}', '{"inner":{"n":1}}', '{"z":2}'),
    ],
)
def test_what_is_rescued_is_where_it_was(data: bytes, text: str, rescued: str) -> None:
    assert look_at(data, NESTED) == Look(text, rescued)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b'{"text": 1.10}', '{"text":"1.10"}'),
        (b'{"text": 100000000000000000000.5}', '{"text":"100000000000000000000.5"}'),
        (b'{"text": {"z": [1E5, true], "y": "\\u00e9"}}', '{"text":"{\\"z\\":[1E5,true],\\"y\\":\\"é\\"}"}'),
        (b'{"price": 1.2e1}', None),
        (b'{"price": 0e100000000}', None),
        (b'{"price": 1.25' + b"0" * 5000 + b"}", '{"price":1.25}'),
        (b'{"price": "+1.5"}', '{"price":1.50}'),
        (b'{"by_name": {"a": {"n": 1}, "a": {"n": 2}}}', '{"by_name":{"a":{"n":2}}}'),
        (b'{"at": "2026-1-5 1:2:3 UTC"}', '{"at":"2026-01-05T01:02:03Z"}'),
        (b'{"at": "9999-12-31T23:59:59Z"}', '{"at":"9999-12-31T23:59:59Z"}'),
        (b'{"at": "2026-01-31T12:00:00.123456789012"}', '{"at":"2026-01-31T12:00:00.123456Z"}'),
    ],
)
def test_what_spark_would_alter_is_written_anew(data: bytes, text: str | None) -> None:
    assert look_at(data, NESTED) == Look(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"price": 1.239}', "does not fit decimal(5,2): price"),
        (b'{"price": 1e100000000}', "does not fit decimal(5,2): price"),
        (b'{"price": "1,5"}', "does not match the schema: price"),
        (b'{"inner": {"n": 128}}', "does not fit tinyint: inner.n"),
        (b'{"items": [{}, {"n": 1.0}]}', "does not match the schema: items[1].n"),
        (b'{"at": 1769860800000}', "seconds since the epoch expected, these look like milliseconds: at"),
        (b'{"all": [1769860800000000]}', "seconds since the epoch expected, these look like microseconds: all[0]"),
        (b'{"at": 9223372036854775807}', "seconds since the epoch expected, these look like nanoseconds: at"),
        (b'{"at": -9223372036854775808000}', "does not fit timestamp: at"),
        (b'{"at": "2026"}', "does not match the schema: at"),
        (b'{"at": "2026-10-25 02:30:00 Europe/Berlin"}', "does not match the schema: at"),
        (b'{"at": "9999-12-31T23:59:59-01:00"}', "does not match the schema: at"),
        (b'{"at": "2026-01-31T12:00:00.' + b"1" * 5000 + b'x"}', "does not match the schema: at"),
    ],
)
def test_what_is_not_exact_is_refused_with_its_path(data: bytes, reason: str) -> None:
    assert look_at(data, NESTED) == Look(reason=reason)


def test_names_that_the_decoder_does_not_know_are_read_all_the_same() -> None:
    schema = st.StructType([st.StructField('a"b', STRING)])
    assert look_at(b'{"a\\"b": "x"}', schema) == Look('{"a\\"b":"x"}')


def test_a_null_within_a_column_is_told_where_it_may_not_be() -> None:
    inner = st.StructType([st.StructField("n", st.IntegerType(), nullable=False)])
    assert look_at(b'{"inner": {"n": null}}', struct(inner=inner)) == Look(reason="missing: inner.n")
    assert look_at(b'{"inner": null}', struct(inner=inner)) == Look()


def test_types_that_json_has_not_are_refused() -> None:
    for type in (st.DayTimeIntervalType(), st.NullType(), st.MapType(st.IntegerType(), STRING)):
        with pytest.raises(TypeError, match=r"a value of .* is not read from JSON"):
            looker(struct(column=st.ArrayType(type)))


def test_a_record_of_one_mebibyte_is_looked_at_whole() -> None:
    padding = b"x" * (1 << 20)
    assert look_at(b'{"id": "' + padding + b'"}', FIELDS) == Look()
    assert look_at(b'{"id": "' + padding, FIELDS) == Look(reason="not JSON")


def test_columns_are_added_to_each_batch_and_the_rest_stays() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"data": data, "shard_id": "shardId-000000000000"} for data in (b'{"id":1}', b"", b'{"new":1}')],
        schema=pa.schema([field.with_nullable(True) for field in SCHEMA]),
    )
    (screened,) = screen([batch], FIELDS)
    assert screened.select(batch.schema.names) == batch
    assert screened.column("_text").to_pylist() == ['{"id":"1"}', None, "{}"]
    assert screened.column("_rescued").to_pylist() == [None, None, '{"new":1}']
    assert screened.column("_reason").to_pylist() == [None, "empty", None]


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
    assert look_at(data, NESTED) == Look(reason=f"a time without a date: {where}")
