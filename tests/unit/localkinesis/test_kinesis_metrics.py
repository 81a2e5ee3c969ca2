"""The figures at /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakestream_localkinesis.http import Request

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api


def figures(api: Api) -> dict[str, int]:
    text = api.application.handle(Request("GET", "/metrics", {}, b"")).body.decode()
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: int(value) for name, value in lines}


def test_what_goes_in_and_out_is_counted(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=1)
    shard = '{stream="orders",shard="shardId-000000000000"}'
    for _ in range(3):
        limited.put_many("orders", *((b"12345", "key") for _ in range(400)))
    limited.clock.advance(7000)
    iterator = limited.iterator("orders", "shardId-000000000000")
    for _ in range(5):
        limited.read(iterator, Limit=100)
    limited.refused("GetRecords", ShardIterator=iterator)

    assert figures(limited) == {
        f"kinesis_incoming_records_total{shard}": 1000,
        f"kinesis_incoming_bytes_total{shard}": 8000,
        f"kinesis_write_throttles_total{shard}": 200,
        f"kinesis_outgoing_records_total{shard}": 500,
        f"kinesis_outgoing_bytes_total{shard}": 4000,
        f"kinesis_read_throttles_total{shard}": 1,
        f"kinesis_iterator_age_milliseconds{shard}": 7000,
        f"kinesis_retained_records{shard}": 1000,
        f"kinesis_shard_open{shard}": 1,
    }


def test_each_figure_says_what_it_is(api: Api):
    text = api.application.handle(Request("GET", "/metrics", {}, b"")).body.decode()

    assert "# TYPE kinesis_incoming_records_total counter\n" in text
    assert "# TYPE kinesis_iterator_age_milliseconds gauge\n" in text
