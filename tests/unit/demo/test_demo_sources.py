from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from lakestream_api import Freshness, Progress, ShardProgress, StageSeconds
from lakestream_demo.observed import LoadSeen, StreamSeen, WriterSeen
from lakestream_demo.sources import after_lines, load_seen, stream_seen
from lakestream_localkinesis.core.account import Account, AccountSettings
from lakestream_localkinesis.core.stream import StreamMode
from lakestream_localkinesis.errors import ProvisionedThroughputExceededException
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.metrics import render_metrics
from lakestream_localkinesis.operations import OPERATIONS

LOCUST = """Type,Name,Request Count,Failure Count,Median Response Time
kinesis,orders: KiB acknowledged,2000,0,0
kinesis,orders: PutRecords,310,0,9
kinesis,orders: records acknowledged,41000,0,52
kinesis,orders: records failed,3,3,0
kinesis,orders: records throttled,90,0,0
kinesis,orders: records unknown,2,2,0
,Aggregated,41005,5,52
"""

ARRIVAL = datetime(2026, 1, 1, 12, tzinfo=UTC)


def progress(batch: int, records: int, freshness: float | None) -> bytes:
    busy = ShardProgress(
        shard_id="s0", last_arrival=ARRIVAL, tip_reached=False, lag_seconds=1.5, records=records, bytes=9
    )
    idle = ShardProgress(
        shard_id="s1", last_arrival=ARRIVAL - timedelta(hours=1), tip_reached=True, lag_seconds=0, records=0, bytes=0
    )
    return (
        Progress(
            stream="orders",
            writer="json",
            batch=batch,
            epoch=1,
            finished_at=datetime(2026, 1, 1, tzinfo=UTC),
            records=records,
            bytes=9,
            quarantined=1,
            rows_written=records - 1,
            seconds=StageSeconds(plan=0.1, fetch=0.2, write=0.3, commit=0.4),
            trigger_interval=timedelta(seconds=2),
            executors=1,
            cores=1,
            shards=(busy, idle),
            lag_seconds=1.5,
            freshness=None if freshness is None else Freshness(p50_seconds=freshness, p99_seconds=freshness + 1),
            caught_up=False,
        )
        .model_dump_json()
        .encode()
    )


def put(account: Account, stream: str, records: int) -> None:
    for number in range(records):
        fields = Fields({"StreamName": stream, "PartitionKey": str(number), "Data": "eA=="})
        with suppress(ProvisionedThroughputExceededException):
            OPERATIONS["PutRecord"](account, fields, 0)


def test_kinesis_figures_are_summed_over_the_shards_of_the_stream() -> None:
    account = Account(AccountSettings())
    for name, shards in (("orders", 2), ("others", 1)):
        account.create(name, StreamMode.PROVISIONED, shards, {}, 0)
    put(account, "orders", 5)
    put(account, "others", 1_003)
    metrics = render_metrics(account)
    assert len(account.streams["orders"].shards) == 2
    assert stream_seen(metrics, "orders") == StreamSeen(records=5, throttled=0)
    assert stream_seen(metrics, "others") == StreamSeen(records=1_000, throttled=3)


def test_throttled_records_were_sent_too() -> None:
    assert StreamSeen(records=100, throttled=7).sent == 107


def test_locust_counts_by_outcome() -> None:
    assert load_seen(LOCUST, "orders") == LoadSeen(acknowledged=41_000, failed=5)
    assert load_seen(LOCUST, "others") == LoadSeen()


def test_a_torn_table_takes_nothing_back() -> None:
    before = load_seen(LOCUST, "orders")
    for length in range(len(LOCUST)):
        assert before.grown(load_seen(LOCUST[:length], "orders")) == before


def test_a_writer_is_the_sum_of_its_batches_and_the_state_of_the_last() -> None:
    seen = after_lines(WriterSeen("json"), [progress(0, 10, 2.5), progress(1, 30, None)])
    assert seen.batches == 2
    assert (seen.records, seen.rows, seen.quarantined) == (40, 38, 2)
    assert seen.read_until == ARRIVAL
    assert (seen.last_records, seen.last_seconds) == (30, 1.0)
    assert seen.freshness_seconds == 2.5
