"""The first look at raw records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakestream.kinesis import SCHEMA
from lakestream.spark.screen import Each, Expected, Timestamp, look_at, screen

FIELDS = Expected(frozenset({"id", "amount"}), {})
TIMES = Expected(
    frozenset({"at", "all", "by_name", "inner", "text"}),
    {"at": Timestamp(), "all": Each(Timestamp()), "by_name": Each({"at": Timestamp()}), "inner": {"at": Timestamp()}},
)


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
        (b'{"x": ' + b"[" * 2000 + b"]" * 2000 + b"}", "not JSON"),
    ],
)
def test_what_cannot_be_used_has_a_reason(data: bytes, reason: str) -> None:
    assert look_at(data, FIELDS) == (None, reason)


@pytest.mark.parametrize(
    ("data", "rescued"),
    [
        (b"{}", None),
        (b'{"id": 1, "amount": 2.5}', None),
        (b' {"id":1}\n', None),
        (b'{"id": 1, "id": 2}', None),
        (b'{"ID": 1}', '{"ID":1}'),
        (b'{"id": 1, "more": {"a": [1, null]}}', '{"more":{"a":[1,null]}}'),
        (b'{"big": 123456789012345678901234567890}', '{"big":123456789012345678901234567890}'),
        ('{"name": "Zoë"}'.encode(), '{"name":"Zoë"}'),
        (b'{"x": 1, "x": 2}', '{"x":2}'),
    ],
)
def test_unknown_fields_are_rescued(data: bytes, rescued: str | None) -> None:
    assert look_at(data, FIELDS) == (rescued, None)


def test_a_record_of_one_mebibyte_is_looked_at_whole() -> None:
    padding = b"x" * (1 << 20)
    assert look_at(b'{"id": "' + padding + b'"}', FIELDS) == (None, None)
    assert look_at(b'{"id": "' + padding, FIELDS) == (None, "not JSON")


def test_columns_are_added_to_each_batch_and_the_rest_stays() -> None:
    batch = pa.RecordBatch.from_pylist(
        [{"data": data, "shard_id": "shardId-000000000000"} for data in (b'{"id":1}', b"", b'{"new":1}')],
        schema=pa.schema([field.with_nullable(True) for field in SCHEMA]),
    )
    (screened,) = screen([batch], FIELDS)
    assert screened.select(batch.schema.names) == batch
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
    assert look_at(data, TIMES) == (None, f"a time without a date: {where}")


@pytest.mark.parametrize(
    "data",
    [
        b'{"at": "2026-01-31T12:00:00Z"}',
        b'{"at": "2026-01-31"}',
        b'{"at": "2026"}',
        b'{"at": "-0044-03-15 12:00"}',
        b'{"at": 12}',
        b'{"at": null, "all": null, "by_name": {}, "inner": {}}',
        b'{"text": "12:00"}',
        b'{"inner": "12:00"}',
    ],
)
def test_other_values_are_for_spark_to_judge(data: bytes) -> None:
    assert look_at(data, TIMES) == (None, None)


def test_what_is_rescued_of_a_refused_record_is_kept() -> None:
    assert look_at(b'{"at": "12:00", "more": 1}', TIMES) == ('{"more":1}', "a time without a date: at")
