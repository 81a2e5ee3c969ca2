"""The first look at raw records."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakestream.kinesis import SCHEMA
from lakestream.spark.screen import look_at, screen

FIELDS = frozenset({"id", "amount"})


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
