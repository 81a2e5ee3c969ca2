"""Streams: creation, description, quotas, tags, retention, modes."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from lakestream_localkinesis.core.stream import HOUR_MS

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/"


def test_a_new_stream_is_described(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=3, Tags={"team": "lake"})

    described = api.call("DescribeStream", StreamName="orders")["StreamDescription"]

    assert described["StreamARN"] == "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
    assert described["StreamStatus"] == "ACTIVE"
    assert described["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}
    assert described["RetentionPeriodHours"] == 24
    assert described["StreamCreationTimestamp"] == 1_700_000_000.0
    assert described["HasMoreShards"] is False
    assert [shard["ShardId"] for shard in described["Shards"]] == [f"shardId-{i:012d}" for i in range(3)]
    ranges = [shard["HashKeyRange"] for shard in described["Shards"]]
    assert ranges[0]["StartingHashKey"] == "0"
    assert ranges[-1]["EndingHashKey"] == str(2**128 - 1)
    assert all(int(before["EndingHashKey"]) + 1 == int(after["StartingHashKey"]) for before, after in pairwise(ranges))


def test_the_arn_names_the_stream_as_well(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

    assert api.call("DescribeStreamSummary", StreamARN=arn)["StreamDescriptionSummary"]["StreamName"] == "orders"
    assert api.refused("DescribeStreamSummary", StreamARN=arn, StreamName="x").code == "InvalidArgumentException"


def test_description_comes_in_pages(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=5)
    first = api.call("DescribeStream", StreamName="orders", Limit=3)["StreamDescription"]
    rest = api.call("DescribeStream", StreamName="orders", ExclusiveStartShardId=first["Shards"][-1]["ShardId"])

    assert first["HasMoreShards"] is True
    assert [shard["ShardId"][-1] for shard in rest["StreamDescription"]["Shards"]] == ["3", "4"]


def test_a_stream_takes_its_time_to_change(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=2)

    def status() -> str:
        return slow.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]["StreamStatus"]

    assert status() == "CREATING"
    assert slow.refused("PutRecord", StreamName="orders", Data="", PartitionKey="k").code == "ResourceNotFoundException"
    slow.clock.advance(9_999)
    assert status() == "CREATING"
    slow.clock.advance(1)
    assert status() == "ACTIVE"
    slow.call("SplitShard", StreamName="orders", ShardToSplit="shardId-000000000000", NewStartingHashKey="1000")
    assert status() == "UPDATING"
    assert slow.refused("DeleteStream", StreamName="orders").code == "ResourceInUseException"
    assert slow.put("orders", b"still open", ExplicitHashKey="5")["ShardId"] == "shardId-000000000000"
    refused = slow.refused("UpdateShardCount", StreamName="orders", TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    assert refused.code == "ResourceInUseException"
    assert refused.message == "Stream orders under account 000000000000 not ACTIVE, instead in state UPDATING"
    slow.clock.advance(10_000)
    assert slow.put("orders", b"moved", ExplicitHashKey="5")["ShardId"] == "shardId-000000000002"
    slow.call("DeleteStream", StreamName="orders")
    assert status() == "DELETING"
    slow.clock.advance(10_000)
    assert slow.refused("DescribeStreamSummary", StreamName="orders").code == "ResourceNotFoundException"


def test_shards_are_listed_of_a_stream_that_has_them(slow: Api):
    """An empty list would do for a client that does not wait until the stream is there; Kinesis refuses."""
    slow.call("CreateStream", StreamName="orders", ShardCount=2)
    refused = slow.refused("ListShards", StreamName="orders")
    assert refused.code == "ResourceInUseException"
    assert refused.message == (
        "Stream orders under account 000000000000 not ACTIVE or UPDATING, instead in state CREATING"
    )
    slow.clock.advance(10_000)
    page = slow.call("ListShards", StreamName="orders", MaxResults=1)
    slow.call("UpdateShardCount", StreamName="orders", TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    assert len(slow.shards("orders")) == 2
    slow.clock.advance(10_000)
    slow.call("DeleteStream", StreamName="orders")
    assert slow.refused("ListShards", StreamName="orders").code == "ResourceInUseException"
    assert slow.refused("ListShards", NextToken=page["NextToken"]).code == "ResourceInUseException"


def test_what_is_missing_or_there_already_is_said(api: Api):
    missing = api.refused("DescribeStream", StreamName="orders")
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    double = api.refused("CreateStream", StreamName="orders", ShardCount=1)

    assert (missing.status, missing.code) == (400, "ResourceNotFoundException")
    assert missing.message == "Stream orders under account 000000000000 not found."
    assert double.code == "ResourceInUseException"
    assert double.message == "Stream orders under account 000000000000 already exists."


def test_the_accounts_shard_quota(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=19_999)
    refused = api.refused("CreateStream", StreamName="more", ShardCount=2)

    assert refused.code == "LimitExceededException"
    assert "Current shard count for the account: 19999. Limit: 20000." in refused.message


def test_control_operations_have_a_rate(limited: Api):
    for number in range(5):
        limited.call("CreateStream", StreamName=f"s{number}", ShardCount=1)

    refused = limited.refused("CreateStream", StreamName="s5", ShardCount=1)
    assert (refused.code, refused.message) == ("LimitExceededException", "Rate exceeded for account 000000000000.")
    limited.clock.advance(1000)
    limited.call("CreateStream", StreamName="s5", ShardCount=1)


def test_streams_are_listed_in_pages(api: Api):
    for name in ("c", "a", "d", "b"):
        api.call("CreateStream", StreamName=name, ShardCount=1)

    first = api.call("ListStreams", Limit=3)
    second = api.call("ListStreams", NextToken=first["NextToken"])

    assert (first["StreamNames"], first["HasMoreStreams"]) == (["a", "b", "c"], True)
    assert (second["StreamNames"], second["HasMoreStreams"]) == (["d"], False)
    assert "NextToken" not in second
    assert api.call("ListStreams", ExclusiveStartStreamName="b")["StreamNames"] == ["c", "d"]
    assert api.refused("ListStreams", NextToken="forged").code == "InvalidArgumentException"
    api.clock.advance(300_000)
    assert api.call("ListStreams", NextToken=first["NextToken"])["StreamNames"] == ["d"]
    api.clock.advance(1)
    assert api.refused("ListStreams", NextToken=first["NextToken"]).code == "ExpiredNextTokenException"


def test_a_call_lists_a_hundred_however_many_more_it_asks_for(api: Api):
    api.call("CreateStream", StreamName="s000", ShardCount=101)
    for number in range(1, 101):
        api.call("CreateStream", StreamName=f"s{number:03}", ShardCount=1)

    described = api.call("DescribeStream", StreamName="s000", Limit=10_000)["StreamDescription"]
    listed = api.call("ListStreams", Limit=10_000)

    assert (len(described["Shards"]), described["HasMoreShards"]) == (100, True)
    assert (len(listed["StreamNames"]), listed["HasMoreStreams"]) == (100, True)
    assert api.call("ListStreams", NextToken=listed["NextToken"], Limit=101)["StreamNames"] == ["s100"]
    for operation, fields in (("DescribeStream", {"StreamName": "s000"}), ("ListStreams", {})):
        assert api.refused(operation, **fields, Limit=10_001).code == "ValidationException"


def test_retention_is_bounded_and_trims(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.put("orders", b"old")
    api.clock.advance(12 * HOUR_MS)
    api.put("orders", b"new")
    shard = "shardId-000000000000"

    api.clock.advance(12 * HOUR_MS)
    assert api.read_all("orders", shard) == [b"old", b"new"]
    api.clock.advance(1)
    assert api.read_all("orders", shard) == [b"new"]
    api.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)
    api.clock.advance(20 * HOUR_MS)
    assert api.read_all("orders", shard) == [b"new"]
    api.call("DecreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=24)
    assert api.read_all("orders", shard) == []


@pytest.mark.parametrize(
    ("operation", "hours", "message"),
    [
        ("IncreaseStreamRetentionPeriod", 23, "Minimum allowed retention period is 24 hours"),
        ("IncreaseStreamRetentionPeriod", 8761, "Maximum allowed retention period is 8760 hours"),
        ("IncreaseStreamRetentionPeriod", 47, "can not be shorter than existing retention period (48 hours)"),
        ("DecreaseStreamRetentionPeriod", 49, "can not be longer than existing retention period (48 hours)"),
    ],
)
def test_retention_that_is_refused(api: Api, operation: str, hours: int, message: str):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)

    refused = api.refused(operation, StreamName="orders", RetentionPeriodHours=hours)

    assert refused.code == "InvalidArgumentException"
    assert message in refused.message


def test_memory_is_freed_of_streams_that_nobody_asks_about(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(10):
        api.put_many("orders", *((b"x" * 100, "k") for _ in range(500)))
    shard = api.application.account.streams["orders"].shards[0]
    assert len(shard._records) == 5000

    api.clock.advance(24 * HOUR_MS + 1)
    api.application.settle()

    assert len(shard._records) == len(shard._sequences) == len(shard._arrivals) == len(shard._sizes_before) == 0


def test_an_on_demand_stream_grows_with_what_it_takes(api: Api):
    api.call("CreateStream", StreamName="orders", StreamModeDetails={"StreamMode": "ON_DEMAND"})

    def open_shards() -> int:
        return api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]["OpenShardCount"]

    assert open_shards() == 4
    # As if 3,500 records a second had come to one of them for a minute.
    api.application.account.streams["orders"].shards[0].counters.incoming_records = 210_000
    api.clock.advance(59_000)
    assert open_shards() == 4
    api.clock.advance(1000)
    assert open_shards() == 5
    api.clock.advance(60_000)
    assert open_shards() == 5


def test_the_mode_changes_twice_a_day(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
    for mode in ("ON_DEMAND", "PROVISIONED"):
        api.call("UpdateStreamMode", StreamARN=arn, StreamModeDetails={"StreamMode": mode})
        summary = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
        assert summary["StreamModeDetails"] == {"StreamMode": mode}

    third = api.refused("UpdateStreamMode", StreamARN=arn, StreamModeDetails={"StreamMode": "ON_DEMAND"})

    assert third.code == "LimitExceededException"


def test_on_demand_refuses_a_shard_count(api: Api):
    mode = {"StreamMode": "ON_DEMAND"}
    assert (
        api.refused("CreateStream", StreamName="s", ShardCount=2, StreamModeDetails=mode).code
        == "InvalidArgumentException"
    )
    provisioned = {"StreamMode": "PROVISIONED"}
    refused = api.refused("CreateStream", StreamName="s", StreamModeDetails=provisioned)
    assert refused.code == "InvalidArgumentException"


def test_a_stream_of_a_name_alone_is_on_demand(api: Api):
    api.call("CreateStream", StreamName="orders")

    summary = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
    assert (summary["OpenShardCount"], summary["StreamModeDetails"]) == (4, {"StreamMode": "ON_DEMAND"})


@pytest.mark.parametrize("details", [{}, {"StreamMode": "WARM"}])
def test_a_mode_is_one_of_two(api: Api, details: dict):
    refused = api.refused("CreateStream", StreamName="orders", StreamModeDetails=details)

    assert refused.code == "ValidationException"
    assert "streamModeDetails.streamMode" in refused.message


def test_five_streams_are_created_at_a_time(slow: Api):
    for number in range(5):
        slow.call("CreateStream", StreamName=f"s{number}", ShardCount=1)

    refused = slow.refused("CreateStream", StreamName="s5", ShardCount=1)

    assert refused.code == "LimitExceededException"
    slow.clock.advance(10_000)
    slow.call("CreateStream", StreamName="s5", ShardCount=1)


def test_warm_throughput_is_refused_without_its_commitment(api: Api):
    on_demand = {"StreamModeDetails": {"StreamMode": "ON_DEMAND"}, "WarmThroughputMiBps": 100}
    created = api.refused("CreateStream", StreamName="orders", **on_demand)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    changed = api.refused("UpdateStreamMode", StreamARN=f"{ARN}orders", **on_demand)

    assert (created.code, changed.code) == ("ValidationException", "ValidationException")
    assert "MinimumThroughputBillingCommitment" in created.message
    assert api.call("ListStreams")["StreamSummaries"][0]["StreamModeDetails"] == {"StreamMode": "PROVISIONED"}


def test_update_shard_count_has_a_rate_of_ten(limited: Api):
    def scale() -> str:
        return limited.refused(
            "UpdateShardCount", StreamName="s", TargetShardCount=2, ScalingType="UNIFORM_SCALING"
        ).code

    assert [scale() for _ in range(11)] == ["ResourceNotFoundException"] * 10 + ["LimitExceededException"]


@pytest.mark.parametrize("operation", ["DescribeStream", "DeleteStream", "GetShardIterator", "PutRecord", "ListShards"])
def test_the_arn_of_another_account_is_refused(api: Api, operation: str):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    fields = {
        "GetShardIterator": {"ShardId": "shardId-000000000000", "ShardIteratorType": "LATEST"},
        "PutRecord": {"Data": "", "PartitionKey": "k"},
    }.get(operation, {})
    for place, code in (
        ("us-east-1:123456789012", "AccessDeniedException"),
        ("eu-west-1:000000000000", "ResourceNotFoundException"),
    ):
        arn = f"arn:aws:kinesis:{place}:stream/orders"
        refused = api.refused(operation, StreamARN=arn, **fields)
        assert (refused.status, refused.code) == (400, code)
        assert arn in refused.message
    malformed = api.refused(operation, StreamARN="arn:aws:kinesis", **fields)
    assert malformed.code == "ValidationException"


def test_an_on_demand_stream_that_is_deleted_before_it_is_there_is_gone(slow: Api):
    slow.call("CreateStream", StreamName="wide")
    slow.call("DeleteStream", StreamName="wide")
    slow.clock.advance(60_000)

    assert slow.call("ListStreams")["StreamNames"] == []
