"""What holds of every Kinesis: ours, the npm package, and the real one.

Rules that kinesis-local does not keep are named in conftest's `KNOWN`.
"""

from __future__ import annotations

import datetime
import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from tests.contract.kinesis.conftest import Endpoint

NewStream = Callable[[int], str]
MIDDLE = str(2**127)
LAST = str(2**128 - 1)


def shards(endpoint: Endpoint, stream: str, **fields: Any) -> list[Any]:
    return endpoint.client.list_shards(StreamName=stream, **fields)["Shards"]


def put(endpoint: Endpoint, stream: str, *data: bytes, key: str = "0") -> list[Any]:
    """Put in order to the shard of a hash key; the results."""
    records = [{"Data": value, "PartitionKey": "key", "ExplicitHashKey": key} for value in data]
    answer = endpoint.client.put_records(StreamName=stream, Records=records)
    assert answer["FailedRecordCount"] == 0
    return answer["Records"]


def iterator(endpoint: Endpoint, stream: str, shard: str, kind: str = "TRIM_HORIZON", **fields: Any) -> str:
    answer = endpoint.client.get_shard_iterator(StreamName=stream, ShardId=shard, ShardIteratorType=kind, **fields)
    return answer["ShardIterator"]


def follow(endpoint: Endpoint, start: str, wanted: int | None, **fields: Any) -> tuple[list[Any], dict[str, Any]]:
    """Read `wanted` records, or to a shard's end if None; all records and the last page."""
    records: list[Any] = []
    current: str | None = start
    deadline = time.monotonic() + 60
    while True:
        page = endpoint.client.get_records(ShardIterator=current, **fields)
        records += page["Records"]
        current = page.get("NextShardIterator")
        if current is None or (wanted is not None and len(records) >= wanted):
            return records, page
        assert time.monotonic() < deadline, f"only {len(records)} records after 60 s: {page}"
        time.sleep(0.25 if endpoint.name == "aws" else 0)


def data(records: list[Any]) -> list[bytes]:
    return [record["Data"] for record in records]


def refused(call: Callable[..., Any], **fields: Any) -> str:
    with pytest.raises(ClientError) as caught:
        call(**fields)
    return caught.value.response["Error"]["Code"]


def test_shards_tile_the_key_space(endpoint: Endpoint, new_stream: NewStream):
    ranges = sorted(
        (int(shard["HashKeyRange"]["StartingHashKey"]), int(shard["HashKeyRange"]["EndingHashKey"]))
        for shard in shards(endpoint, new_stream(3))
    )

    assert ranges[0][0] == 0
    assert ranges[-1][1] == 2**128 - 1
    assert [end + 1 for _, end in ranges[:-1]] == [start for start, _ in ranges[1:]]


def test_a_stream_is_found_by_what_its_summary_calls_it(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(2)
    summary = endpoint.client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    # KCL names a stream by a StreamId that it was told, of which SDKs make a host, whatever endpoint they were given.
    told = {"StreamId": summary["StreamId"]} if "StreamId" in summary else {}

    assert len(shards(endpoint, stream, **told)) == 2


def test_keys_are_routed_by_their_md5(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(4)
    known = {shard["ShardId"]: shard["HashKeyRange"] for shard in shards(endpoint, stream)}
    keys = [f"clé-{number}" for number in range(50)]
    answer = endpoint.client.put_records(
        StreamName=stream, Records=[{"Data": b"x", "PartitionKey": key} for key in keys]
    )

    for key, result in zip(keys, answer["Records"], strict=True):
        hashed = int(hashlib.md5(key.encode()).hexdigest(), 16)
        taken = known[result["ShardId"]]
        assert int(taken["StartingHashKey"]) <= hashed <= int(taken["EndingHashKey"])


def test_what_is_put_comes_back_in_order(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    sent = [b"\x00\xff" + b"%d" % number for number in range(100)]
    results = put(endpoint, stream, *sent)
    records, page = follow(endpoint, iterator(endpoint, stream, results[0]["ShardId"]), 100)

    assert data(records) == sent
    assert [record["SequenceNumber"] for record in records] == [result["SequenceNumber"] for result in results]
    numbers = [int(record["SequenceNumber"]) for record in records]
    assert numbers == sorted(set(numbers))
    assert {record["PartitionKey"] for record in records} == {"key"}
    assert page["MillisBehindLatest"] == 0


def test_iterators_begin_where_they_say(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    first = put(endpoint, stream, b"1")[0]
    endpoint.pass_time(1.1)
    second = put(endpoint, stream, b"2")[0]
    third = put(endpoint, stream, b"3")[0]
    shard = first["ShardId"]
    records, _ = follow(endpoint, iterator(endpoint, stream, shard), 3)
    arrivals = [record["ApproximateArrivalTimestamp"] for record in records]

    def start(kind: str, wanted: int, **fields: Any) -> list[bytes]:
        return data(follow(endpoint, iterator(endpoint, stream, shard, kind, **fields), wanted)[0])

    assert start("AT_SEQUENCE_NUMBER", 2, StartingSequenceNumber=second["SequenceNumber"]) == [b"2", b"3"]
    assert start("AFTER_SEQUENCE_NUMBER", 1, StartingSequenceNumber=second["SequenceNumber"]) == [b"3"]
    assert start("AT_TIMESTAMP", 3, Timestamp=arrivals[0] - datetime.timedelta(minutes=1)) == [b"1", b"2", b"3"]
    assert start("AT_TIMESTAMP", 2, Timestamp=arrivals[0] + datetime.timedelta(milliseconds=500)) == [b"2", b"3"]
    latest = iterator(endpoint, stream, shard, "LATEST")
    put(endpoint, stream, b"4")
    assert data(follow(endpoint, latest, 1)[0]) == [b"4"]
    assert int(third["SequenceNumber"]) > int(second["SequenceNumber"])


def test_a_page_keeps_to_its_limit_and_says_that_there_is_more(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    shard = put(endpoint, stream, *[b"%d" % number for number in range(5)])[0]["ShardId"]
    endpoint.pass_time(0.1)
    page = endpoint.client.get_records(ShardIterator=iterator(endpoint, stream, shard), Limit=2)

    assert data(page["Records"]) == [b"0", b"1"]
    if endpoint.name != "aws":  # there, a page may be empty or short at any time
        assert page["MillisBehindLatest"] > 0
    rest, _ = follow(endpoint, page["NextShardIterator"], 3, Limit=2)
    assert data(rest) == [b"2", b"3", b"4"]


def test_a_split_hands_over_to_two_children(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    before = put(endpoint, stream, b"before")[0]
    endpoint.client.split_shard(StreamName=stream, ShardToSplit=before["ShardId"], NewStartingHashKey=MIDDLE)
    endpoint.await_active(stream)
    low, high = put(endpoint, stream, b"low")[0], put(endpoint, stream, b"high", key=LAST)[0]
    parent, *children = shards(endpoint, stream)

    assert [child["ParentShardId"] for child in children] == [parent["ShardId"]] * 2
    assert {low["ShardId"], high["ShardId"]} == {child["ShardId"] for child in children}
    end = int(parent["SequenceNumberRange"]["EndingSequenceNumber"])
    assert int(before["SequenceNumber"]) <= end
    assert all(int(child["SequenceNumberRange"]["StartingSequenceNumber"]) > end for child in children)
    records, page = follow(endpoint, iterator(endpoint, stream, parent["ShardId"]), None)
    assert data(records) == [b"before"]
    assert {child["ShardId"] for child in page["ChildShards"]} == {child["ShardId"] for child in children}
    assert all(child["ParentShards"] == [parent["ShardId"]] for child in page["ChildShards"])


def test_a_merge_hands_over_to_one_child(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(2)
    lower, upper = shards(endpoint, stream)
    put(endpoint, stream, b"low")
    put(endpoint, stream, b"high", key=LAST)
    endpoint.client.merge_shards(
        StreamName=stream, ShardToMerge=lower["ShardId"], AdjacentShardToMerge=upper["ShardId"]
    )
    endpoint.await_active(stream)
    child = shards(endpoint, stream)[-1]

    assert (child["ParentShardId"], child["AdjacentParentShardId"]) == (lower["ShardId"], upper["ShardId"])
    assert child["HashKeyRange"] == {"StartingHashKey": "0", "EndingHashKey": LAST}
    for parent, expected in ((lower, b"low"), (upper, b"high")):
        records, page = follow(endpoint, iterator(endpoint, stream, parent["ShardId"]), None)
        assert data(records) == [expected]
        assert [told["ShardId"] for told in page["ChildShards"]] == [child["ShardId"]]


def test_scaling_ends_with_the_shards_asked_for(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(2)
    endpoint.client.update_shard_count(StreamName=stream, TargetShardCount=4, ScalingType="UNIFORM_SCALING")
    endpoint.await_active(stream)

    opened = shards(endpoint, stream, ShardFilter={"Type": "AT_LATEST"})
    starts = sorted(int(shard["HashKeyRange"]["StartingHashKey"]) for shard in opened)
    assert starts == [2**126 * quarter for quarter in range(4)]


def test_filters_tell_old_shards_from_new(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(2)
    first = shards(endpoint, stream)
    endpoint.pass_time(1.1)
    endpoint.client.split_shard(StreamName=stream, ShardToSplit=first[0]["ShardId"], NewStartingHashKey=str(2**126))
    endpoint.await_active(stream)
    everything = [shard["ShardId"] for shard in shards(endpoint, stream)]

    def listed(kind: str, **fields: Any) -> set[str]:
        return {shard["ShardId"] for shard in shards(endpoint, stream, ShardFilter={"Type": kind, **fields})}

    assert listed("AT_LATEST") == set(everything[1:])
    assert listed("AT_TRIM_HORIZON") == set(everything[:2])
    assert listed("FROM_TRIM_HORIZON") == set(everything)
    assert listed("AFTER_SHARD_ID", ShardId=everything[1]) == set(everything[2:])


def test_list_shards_comes_in_pages(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(5)
    names: list[str] = []
    page = endpoint.client.list_shards(StreamName=stream, MaxResults=2)
    while True:
        names += [shard["ShardId"] for shard in page["Shards"]]
        if "NextToken" not in page:
            break
        page = endpoint.client.list_shards(NextToken=page["NextToken"], MaxResults=2)

    assert names == [f"shardId-{number:012d}" for number in range(5)]


def test_retention_and_tags(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    client = endpoint.client
    client.increase_stream_retention_period(StreamName=stream, RetentionPeriodHours=48)
    endpoint.await_active(stream)
    client.add_tags_to_stream(StreamName=stream, Tags={"a": "1", "b": "2"})
    client.remove_tags_from_stream(StreamName=stream, TagKeys=["a"])

    summary = client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    assert summary["RetentionPeriodHours"] == 48
    assert client.list_tags_for_stream(StreamName=stream)["Tags"] == [{"Key": "b", "Value": "2"}]
    assert (
        refused(client.increase_stream_retention_period, StreamName=stream, RetentionPeriodHours=24)
        == "InvalidArgumentException"
    )


def test_errors_have_their_types(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    client = endpoint.client

    assert refused(client.describe_stream_summary, StreamName="missing") == "ResourceNotFoundException"
    assert refused(client.put_record, StreamName="missing", Data=b"", PartitionKey="k") == "ResourceNotFoundException"
    assert refused(client.create_stream, StreamName=stream, ShardCount=1) == "ResourceInUseException"
    assert (
        refused(
            client.get_shard_iterator,
            StreamName=stream,
            ShardId="shardId-000000000009",
            ShardIteratorType="LATEST",
        )
        == "ResourceNotFoundException"
    )


def test_an_impossible_split_is_refused(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    shard = shards(endpoint, stream)[0]["ShardId"]
    split = {"StreamName": stream, "ShardToSplit": shard, "NewStartingHashKey": "0"}

    assert refused(endpoint.client.split_shard, **split) == "InvalidArgumentException"


def test_a_stream_is_named_by_its_arn(endpoint: Endpoint, new_stream: NewStream):
    stream = new_stream(1)
    summary = endpoint.client.describe_stream_summary(StreamName=stream)["StreamDescriptionSummary"]
    arn = summary["StreamARN"]

    assert arn.endswith(f":stream/{stream}")
    assert endpoint.client.describe_stream_summary(StreamARN=arn)["StreamDescriptionSummary"]["StreamName"] == stream
    assert stream in endpoint.client.list_streams(Limit=100)["StreamNames"]
