"""What clients hold of a local Kinesis is good after a restart of it, in a folder that stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.testing import LocalKinesis, local_kinesis

STREAM = "orders"


@pytest.fixture
def endpoint() -> None:
    """None but the local one can be started again."""


@pytest.fixture
def known_failures() -> None:
    """Nor does it fail."""


def _put(server: LocalKinesis, *data: bytes) -> list[str]:
    records = [{"Data": each, "PartitionKey": each.decode()} for each in data]
    answer = server.client().put_records(StreamName=STREAM, Records=records)  # type: ignore[arg-type]
    return [record["SequenceNumber"] for record in answer["Records"]]


def _shards(server: LocalKinesis, **fields: Any) -> list[Any]:
    return server.client().list_shards(StreamName=STREAM, **fields)["Shards"]


def test_a_consumer_goes_on_over_a_reshard_and_two_restarts(tmp_path: Path) -> None:
    with local_kinesis(limits=Limits.none(), data=tmp_path) as server:
        server.create_stream(STREAM, shards=1)
        (shard,) = _shards(server)
        numbers = _put(server, b"a", b"b")
        where = {"StreamName": STREAM, "ShardId": shard["ShardId"]}
        iterator = server.client().get_shard_iterator(**where, ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
        page = server.client().get_records(ShardIterator=iterator, Limit=1)
        described = server.client().describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"]
    with local_kinesis(limits=Limits.none(), data=tmp_path) as server:
        assert server.client().describe_stream_summary(StreamName=STREAM)["StreamDescriptionSummary"] == described
        server.client().update_shard_count(StreamName=STREAM, TargetShardCount=2, ScalingType="UNIFORM_SCALING")
        numbers += _put(server, b"c", b"d")
    with local_kinesis(limits=Limits.none(), data=tmp_path) as server:
        rest = server.client().get_records(ShardIterator=page["NextShardIterator"])
        assert [record["Data"] for record in rest["Records"]] == [b"b"]
        assert {child["ShardId"] for child in rest["ChildShards"]} == {
            child["ShardId"] for child in _shards(server, ShardFilter={"Type": "AT_LATEST"})
        }
        assert {record.sequence_number for record in server.records(STREAM)} == set(numbers)
        assert min(int(number) for number in numbers[2:]) > max(int(number) for number in numbers[:2])
        after = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": numbers[0]}
        again = server.client().get_shard_iterator(**where, **after)["ShardIterator"]  # type: ignore[arg-type]
        assert [record["Data"] for record in server.client().get_records(ShardIterator=again)["Records"]] == [b"b"]
