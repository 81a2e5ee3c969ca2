"""Planner and reader over HTTP, against a server that keeps Kinesis's rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

import pytest

from lakestream.errors import (
    DataLossError,
    KinesisUnavailableError,
    SettingsError,
    StreamNotFoundError,
    StreamRecreatedError,
    ThrottledError,
)
from lakestream.kinesis import RangeReader
from lakestream.model import Finished
from lakestream.testing.consumer import Consume
from lakestream_localkinesis.testing import LocalKinesis

if TYPE_CHECKING:
    from mypy_boto3_kinesis.type_defs import PutRecordsRequestEntryTypeDef, ShardTypeDef

_names = (f"stream-{number}" for number in count())
_values = count()

CLOCK_LAG = 1.1
"""A new client knows Kinesis's time from `Date`, in whole seconds: what is older than this is in its first plan."""


@pytest.fixture
def stream(server: LocalKinesis) -> str:
    name = next(_names)
    server.create_stream(name, shards=2)
    return name


def put(server: LocalKinesis, stream: str, records: int) -> None:
    client = server.client()
    values = [next(_values) for _ in range(records)]
    for at in range(0, records, 500):
        entries: list[PutRecordsRequestEntryTypeDef] = [
            {"Data": b"%d" % v, "PartitionKey": str(v)} for v in values[at : at + 500]
        ]
        assert client.put_records(StreamName=stream, Records=entries)["FailedRecordCount"] == 0


def split(server: LocalKinesis, stream: str) -> None:
    client = server.client()
    shard = open_shards(server, stream)[0]
    keys = shard["HashKeyRange"]
    middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
    client.split_shard(StreamName=stream, ShardToSplit=shard["ShardId"], NewStartingHashKey=str(middle))


def merge(server: LocalKinesis, stream: str) -> None:
    one, other = sorted(open_shards(server, stream), key=lambda s: int(s["HashKeyRange"]["StartingHashKey"]))[:2]
    server.client().merge_shards(StreamName=stream, ShardToMerge=one["ShardId"], AdjacentShardToMerge=other["ShardId"])


def open_shards(server: LocalKinesis, stream: str) -> list[ShardTypeDef]:
    shards = server.client().list_shards(StreamName=stream)["Shards"]
    return [s for s in shards if "EndingSequenceNumber" not in s["SequenceNumberRange"]]


def test_every_record_is_read_once(server: LocalKinesis, stream: str, consume: Consume) -> None:
    for _ in range(5):
        put(server, stream, 700)
        server.clock.advance(0.01)
    consumer = consume(stream, max_records=20)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))
    assert len([p for p in consumer.plans if p.ranges]) > 1, "one batch took all; the limit was not kept"


def test_a_stream_that_goes_on_is_followed(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    for _ in range(4):
        put(server, stream, 50)
        consumer.catch_up(server.clock.now())
        consumer.restart()
    consumer.require_exactly(server.records(stream))


def test_an_empty_stream_gives_nothing_and_wakes(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    consumer.catch_up(server.clock.now())
    assert [p for p in consumer.plans if p.ranges] == []
    put(server, stream, 10)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))


def test_what_arrives_in_the_very_millisecond_that_is_waited_for_is_read(
    server: LocalKinesis, stream: str, consume: Consume
) -> None:
    server.clock.freeze()
    put(server, stream, 10)
    until = server.clock.now()
    server.clock.resume()
    consumer = consume(stream)
    consumer.catch_up(until)
    consumer.require_exactly(server.records(stream))


def test_splits_and_merges_under_load(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    for change in (split, merge, split, split, merge):
        put(server, stream, 200)
        change(server, stream)
        put(server, stream, 200)
        consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))
    assert sum(isinstance(c, Finished) for c in consumer.cursors) == 7


def test_a_closed_shard_with_a_backlog(server: LocalKinesis, stream: str, consume: Consume) -> None:
    put(server, stream, 2000)
    split(server, stream)
    merge(server, stream)
    put(server, stream, 500)
    consumer = consume(stream, max_records=50)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))


def test_update_shard_count(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    put(server, stream, 300)
    consumer.catch_up(server.clock.now())
    server.client().update_shard_count(StreamName=stream, TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    put(server, stream, 300)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))


def test_an_iterator_expires_while_idle(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    put(server, stream, 10)
    consumer.catch_up(server.clock.now())
    server.clock.advance(timedelta(minutes=6))
    put(server, stream, 10)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))


def test_an_iterator_expires_within_a_range(server: LocalKinesis, consume: Consume) -> None:
    stream = next(_names)
    server.create_stream(stream, shards=1)
    put(server, stream, 1000)
    consumer = consume(stream)
    server.clock.advance(CLOCK_LAG)
    consumer.plan()
    (piece,) = consumer.ranges
    reading = RangeReader(consumer.client, consumer.settings).read(replace(piece, expected_records=200))
    rows = next(reading).num_rows
    assert rows < 1000, "the first page held everything; nothing is left to expire"
    server.clock.advance(timedelta(minutes=6))
    assert rows + sum(batch.num_rows for batch in reading) == 1000


READS = ("GetRecords", "GetShardIterator", "ListShards", "DescribeStreamSummary")
Fault = Callable[[LocalKinesis], None]
FAULTS: dict[str, Fault] = {
    "throttled": lambda s: s.faults.throttle("GetRecords", times=3),
    "throttled iterators": lambda s: s.faults.throttle("GetShardIterator", times=3),
    "throttled lists of shards": lambda s: s.faults.throttle("ListShards", "DescribeStreamSummary", times=4),
    "server errors": lambda s: s.faults.internal_failure(*READS, times=4),
    "connections lost after the effect": lambda s: s.faults.drop(*READS, times=4),
    "connections lost before": lambda s: s.faults.drop_before(*READS, times=4),
    "empty pages": lambda s: s.faults.empty_pages(times=9),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_faults_that_pass(server: LocalKinesis, stream: str, consume: Consume, fault: Fault) -> None:
    consumer = consume(stream)
    put(server, stream, 400)
    fault(server)
    consumer.catch_up(server.clock.now())
    fault(server)
    put(server, stream, 400)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))


def test_patience_ends(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream, patience=0.5)
    server.faults.throttle("GetRecords")
    with pytest.raises(ThrottledError, match="ProvisionedThroughputExceededException"):
        consumer.catch_up(server.clock.now())
    server.faults.clear()
    server.faults.drop_before()
    with pytest.raises(KinesisUnavailableError):
        consumer.catch_up(server.clock.now())


def test_an_unknown_stream(consume: Consume) -> None:
    with pytest.raises(StreamNotFoundError, match="ResourceNotFoundException"):
        consume("never-created").plan()


def test_latest_means_from_the_first_plan_on(server: LocalKinesis, stream: str, consume: Consume) -> None:
    put(server, stream, 100)
    server.clock.advance(CLOCK_LAG)
    consumer = consume(stream, starting_position="LATEST")
    first = consumer.plan()
    assert first is not None, "the place was not written down"
    assert first.is_heartbeat
    consumer.restart()
    put(server, stream, 100)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(r for r in server.records(stream) if r.arrival >= first.planned_at)
    assert len(consumer.data) == 100


def test_a_timestamp(server: LocalKinesis, stream: str, consume: Consume) -> None:
    put(server, stream, 100)
    server.clock.advance(0.02)
    put(server, stream, 1)
    since = max(r.arrival for r in server.records(stream))
    put(server, stream, 100)
    consumer = consume(stream, starting_position=since)
    server.clock.advance(CLOCK_LAG)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(r for r in server.records(stream) if r.arrival >= since)
    assert len(consumer.data) >= 101


def test_a_timestamp_in_the_future(server: LocalKinesis, stream: str, consume: Consume) -> None:
    with pytest.raises(SettingsError, match=r"spec\.source\.kinesis\.timestamp .* is in the future"):
        consume(stream, starting_position=server.clock.now() + timedelta(minutes=1)).plan()


def test_a_stream_that_was_created_again(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream, refresh=timedelta(0))
    put(server, stream, 10)
    consumer.catch_up(server.clock.now())
    before = consumer.client.describe_stream_summary()
    server.client().delete_stream(StreamName=stream)
    server.clock.advance(0.01)
    server.create_stream(stream, shards=2)
    after = consumer.client.describe_stream_summary()
    assert (before.arn, before.retention) == (after.arn, after.retention)
    assert before.created_at < after.created_at, "the log could not tell the two streams apart"
    with pytest.raises(StreamRecreatedError, match="deleted and created again"):
        consumer.plan()


def test_records_trimmed_between_plan_and_read(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    put(server, stream, 100)
    server.clock.advance(CLOCK_LAG)
    consumer.plan()
    server.clock.advance(timedelta(hours=25))
    put(server, stream, 100)
    assert len(consumer.ranges) == 2
    for piece in consumer.ranges:
        with pytest.raises(DataLossError, match=f"{piece.shard_id}: .*from {piece.start} to {piece.end} were trimmed"):
            consumer.read(piece)
        assert consumer.read(piece, skip_losses=True) == []


def test_records_trimmed_before_the_plan(server: LocalKinesis, stream: str, consume: Consume) -> None:
    consumer = consume(stream)
    put(server, stream, 10)
    consumer.catch_up(server.clock.now())
    read = len(consumer.data)
    put(server, stream, 10)
    server.clock.advance(timedelta(hours=25))
    put(server, stream, 10)
    consumer.restart()
    with pytest.raises(DataLossError, match=r"shardId-.*may have been trimmed.*onDataLoss: skip"):
        consumer.plan()
    skipping = consume(stream, skip_losses=True)
    skipping.plans = consumer.plans
    skipping.catch_up(server.clock.now())
    assert len(skipping.data) == 10
    assert {loss.shard_id for plan in skipping.plans for loss in plan.losses} == {
        shard.shard_id for shard in consumer.client.list_shards()
    }
    assert read == 10


def test_shards_beyond_one_page_of_list_shards(server: LocalKinesis, consume: Consume) -> None:
    stream = next(_names)
    server.create_stream(stream, shards=1100)
    shards = consume(stream).client.list_shards()
    assert [shard.shard_id for shard in shards] == [f"shardId-{number:012d}" for number in range(1100)]


def test_a_hundred_shards_at_once(server: LocalKinesis, consume: Consume) -> None:
    stream = next(_names)
    server.create_stream(stream, shards=100)
    consumer = consume(stream)
    put(server, stream, 3000)
    consumer.catch_up(server.clock.now())
    consumer.require_exactly(server.records(stream))
