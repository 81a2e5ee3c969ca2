"""A stream that is split, merged, throttled, cut off and idle while it is read; and one that was read too late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from lab.chain import BURSTS, Lab, Table, end_with_all
from lab.stream import OrderStream, merge, split
from lab.verdict import require_exactly_once
from lakestream.control.files import read_progress
from lakestream.errors import DataLossError
from lakestream.exits import exit_of
from lakestream.statuses import Exit
from lakestream_api import Progress
from lakestream_localkinesis.core import shard
from lakestream_localkinesis.core.account import Account
from lakestream_localkinesis.fields import Fields
from lakestream_localkinesis.operations import OPERATIONS
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


@pytest.fixture
def own_server() -> Iterator[LocalKinesis]:
    """Its clock and its faults are this test's alone."""
    with local_kinesis(seed=7) as running:
        yield running


def make_lab(server: LocalKinesis, table: Table, folder: Path) -> Lab:
    return Lab(OrderStream(server, "orders", seed=11), table, folder, str(folder / "lake"), None)


@pytest.mark.parametrize("table", [Table.JSON, pytest.param(Table.MOR, marks=pytest.mark.slow)])
def test_a_stream_that_is_resharded_and_failing_under_load_is_read_exactly_once(
    table: Table, own_server: LocalKinesis, tmp_path: Path, spark_on_s3: SparkSession
) -> None:
    lab = make_lab(own_server, table, tmp_path)
    stream = lab.stream
    # A backlog in closed shards, of two generations, before anybody reads.
    stream.put(2)
    split(own_server, stream.name)
    stream.put(2)
    merge(own_server, stream.name)
    stream.put(2)
    with pushed(lab) as subscribed:
        be_read(lab)
    # Most shards live for less than the five seconds after which they may be subscribed to again.
    assert len(subscribed) > 5
    require_exactly_once(lab, spark_on_s3)


def be_read(lab: Lab) -> None:
    """While it is resharded, and fails."""
    stream, own_server = lab.stream, lab.stream.server
    driver = lab.start()
    driver.until_committed(1)
    faults = own_server.faults
    # Reads only: what a producer does about lost answers is tested where the producer is.
    faults.throttle("GetRecords", probability=0.1)
    faults.throttle("GetShardIterator", probability=0.1)
    faults.internal_failure("GetRecords", "ListShards", "GetShardIterator", probability=0.05)
    faults.drop("GetRecords", "SubscribeToShard", probability=0.05)
    faults.empty_pages(probability=0.2)
    for change in (split, split, merge, split):
        with read(lab):
            stream.put(BURSTS)
            change(own_server, stream.name)
    own_server.client().update_shard_count(StreamName=stream.name, TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    with read(lab):
        stream.put(BURSTS)
    # Every iterator that is kept expires.
    own_server.clock.advance(timedelta(minutes=6))
    with read(lab):
        stream.put(1)
    faults.clear()
    end_with_all(lab)


@contextmanager
def pushed(lab: Lab) -> Iterator[list[object]]:
    """The writer has a consumer of its own; gives what it has subscribed to."""
    server, name = lab.stream.server, lab.stream.name
    arn = server.client().describe_stream_summary(StreamName=name)["StreamDescriptionSummary"]["StreamARN"]
    made = server.client().register_stream_consumer(StreamARN=arn, ConsumerName="orders")["Consumer"]
    lab.document["spec"]["writers"][0]["consumerArn"] = made["ConsumerARN"]
    subscribe, subscribed = OPERATIONS["SubscribeToShard"], []

    def counted(account: Account, fields: Fields, now_ms: int) -> Answer:
        subscribed.append(answer := subscribe(account, fields, now_ms))
        return answer

    with patch.dict(OPERATIONS, {"SubscribeToShard": counted}):
        yield subscribed


@contextmanager
def read(lab: Lab) -> Iterator[None]:
    """The driver commits something of what is put meanwhile: told by records, for it may commit all of it before
    anybody counts its batches, and no other one comes."""
    held = lab.stream.truth().records
    yield
    driver = lab.drivers[-1]
    driver.until(lambda: sum(batch.records for batch in driver_batches(lab)) > held, f"more than {held} records")


def driver_batches(lab: Lab) -> list[Progress]:
    return read_progress(lab.drivers[-1].progress)


def test_an_empty_stream_wakes_and_what_is_trimmed_before_it_is_read_is_an_error_unless_it_may_be_skipped(
    own_server: LocalKinesis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark_on_s3: SparkSession
) -> None:
    # Kinesis looks through a quarter of an hour per call, and a driver asks five times a second.
    monkeypatch.setattr(shard, "SCAN_SPAN_MS", 24 * 60 * 60 * 1000)
    lab = make_lab(own_server, Table.JSON, tmp_path)
    driver = lab.start()
    # Its first batch has no records: it writes down where the shards begin.
    driver.until_committed(1)
    assert sum(batch.records for batch in driver_batches(lab)) == 0
    lab.stream.put(2)
    end_with_all(lab)
    require_exactly_once(lab, spark_on_s3)
    lab.stream.put(2)
    own_server.clock.advance(timedelta(hours=25))
    lab.stream.put(1)
    with pytest.raises(DataLossError, match=r"shardId-.*onDataLoss: skip.*retention") as told:
        lab.catch_up(spark_on_s3)
    assert exit_of(told.value) is Exit.DATA_LOSS
    lab.document["spec"]["source"]["kinesis"]["onDataLoss"] = "skip"
    last = lab.catch_up(spark_on_s3)
    assert sum(batch.records for batch in last) == lab.stream.truth().records
