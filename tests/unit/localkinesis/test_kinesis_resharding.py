"""SplitShard, MergeShards, UpdateShardCount and ListShards."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from lakestream_localkinesis.core.hashing import even_ranges
from lakestream_localkinesis.core.stream import HOUR_MS

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api


def name(index: int) -> str:
    return f"shardId-{index:012d}"


def indices(shards: list[dict]) -> list[int]:
    return [int(shard["ShardId"][-12:]) for shard in shards]


@pytest.fixture
def orders(api: Api) -> Api:
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    return api


def split(api: Api, index: int, key: int) -> None:
    api.call("SplitShard", StreamName="orders", ShardToSplit=name(index), NewStartingHashKey=str(key))


def merge(api: Api, lower: int, upper: int) -> None:
    api.call("MergeShards", StreamName="orders", ShardToMerge=name(lower), AdjacentShardToMerge=name(upper))


def test_a_split_shard_ends_and_its_children_go_on(orders: Api):
    before = orders.put("orders", b"before", ExplicitHashKey="7")
    split(orders, 0, 1000)
    left, right = orders.put("orders", b"l", ExplicitHashKey="999"), orders.put("orders", b"r", ExplicitHashKey="1000")

    parent, _, *children = orders.shards("orders")
    assert [child["HashKeyRange"] for child in children] == [
        {"StartingHashKey": "0", "EndingHashKey": "999"},
        {"StartingHashKey": "1000", "EndingHashKey": str(2**127 - 1)},
    ]
    assert all(child["ParentShardId"] == name(0) and "AdjacentParentShardId" not in child for child in children)
    assert (left["ShardId"], right["ShardId"]) == (name(2), name(3))
    end = int(parent["SequenceNumberRange"]["EndingSequenceNumber"])
    assert int(before["SequenceNumber"]) < end
    for child, record in zip(children, (left, right), strict=True):
        assert end < int(child["SequenceNumberRange"]["StartingSequenceNumber"]) < int(record["SequenceNumber"])
    page = orders.read(orders.iterator("orders", name(0)))
    assert orders.payloads(page) == [b"before"]
    assert page["NextShardIterator"] is None
    assert page["ChildShards"] == [
        {"ShardId": child["ShardId"], "ParentShards": [name(0)], "HashKeyRange": child["HashKeyRange"]}
        for child in children
    ]


def test_only_the_last_page_of_a_closed_shard_names_its_children(orders: Api):
    for data in (b"1", b"2", b"3"):
        orders.put("orders", data, ExplicitHashKey="0")
    split(orders, 0, 1000)
    page = orders.read(orders.iterator("orders", name(0)), Limit=2)
    assert page["MillisBehindLatest"] > 0
    assert "ChildShards" not in page
    page = orders.read(page["NextShardIterator"], Limit=2)
    assert page["NextShardIterator"] is None
    assert indices(page["ChildShards"]) == [2, 3]


def test_an_iterator_at_the_tip_sees_the_shard_close(orders: Api):
    iterator = orders.iterator("orders", name(0), "LATEST")
    split(orders, 0, 1000)
    page = orders.read(iterator)

    assert (page["Records"], page["NextShardIterator"]) == ([], None)
    assert indices(page["ChildShards"]) == [2, 3]


def test_merged_shards_end_and_their_child_goes_on(orders: Api):
    merge(orders, 0, 1)
    *parents, child = orders.shards("orders")

    assert (child["ParentShardId"], child["AdjacentParentShardId"]) == (name(0), name(1))
    assert child["HashKeyRange"] == {"StartingHashKey": "0", "EndingHashKey": str(2**128 - 1)}
    start = int(child["SequenceNumberRange"]["StartingSequenceNumber"])
    assert all(int(parent["SequenceNumberRange"]["EndingSequenceNumber"]) < start for parent in parents)
    for index in (0, 1):
        page = orders.read(orders.iterator("orders", name(index)))
        assert page["ChildShards"][0]["ParentShards"] == [name(0), name(1)]


def test_sequences_stay_ordered_through_changes_in_one_second(orders: Api):
    newest = (0, 1)
    for _ in range(3):
        merge(orders, *newest)
        merged = newest[1] + 1
        split(orders, merged, 1000)
        newest = (merged + 1, merged + 2)
    bounds = {shard["ShardId"]: shard for shard in orders.shards("orders")}
    for shard in bounds.values():
        start = int(shard["SequenceNumberRange"]["StartingSequenceNumber"])
        for parent in (shard.get("ParentShardId"), shard.get("AdjacentParentShardId")):
            if parent:
                assert int(bounds[parent]["SequenceNumberRange"]["EndingSequenceNumber"]) < start


@pytest.mark.parametrize("key", [0, 1, 2**127 - 1, 2**127, 2**128 - 1])
def test_a_split_needs_a_key_well_inside(orders: Api, key: int):
    refused = orders.refused("SplitShard", StreamName="orders", ShardToSplit=name(0), NewStartingHashKey=str(key))
    assert refused.code == "InvalidArgumentException"
    assert f"NewStartingHashKey {key} used in SplitShard() on shard {name(0)}" in refused.message


def test_what_cannot_be_split_or_merged(orders: Api):
    split(orders, 0, 1000)

    def code(operation: str, **fields: str) -> str:
        return orders.refused(operation, StreamName="orders", **fields).code

    assert code("SplitShard", ShardToSplit=name(0), NewStartingHashKey="500") == "InvalidArgumentException"
    assert code("SplitShard", ShardToSplit=name(9), NewStartingHashKey="500") == "ResourceNotFoundException"
    for lower, upper in ((0, 1), (2, 1), (3, 2), (1, 1)):
        assert (
            code("MergeShards", ShardToMerge=name(lower), AdjacentShardToMerge=name(upper))
            == "InvalidArgumentException"
        )
    merge(orders, 2, 3)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 4), (4, 2), (3, 5), (5, 3), (4, 4), (7, 9), (100, 70)])
def test_scaling_ends_with_equal_ranges_and_no_gap(api: Api, before: int, after: int):
    api.call("CreateStream", StreamName="orders", ShardCount=before)
    answer = api.call("UpdateShardCount", StreamName="orders", TargetShardCount=after, ScalingType="UNIFORM_SCALING")

    assert (answer["CurrentShardCount"], answer["TargetShardCount"]) == (before, after)
    opened = api.shards("orders", ShardFilter={"Type": "AT_LATEST"})
    ranges = sorted(
        (int(shard["HashKeyRange"]["StartingHashKey"]), int(shard["HashKeyRange"]["EndingHashKey"])) for shard in opened
    )
    assert ranges == [(part.start, part.end) for part in even_ranges(after)]


def test_scaling_is_bounded_by_double_half_and_ten_a_day(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=4)

    def scale(target: int) -> None:
        api.call("UpdateShardCount", StreamName="orders", TargetShardCount=target, ScalingType="UNIFORM_SCALING")

    def refused(target: int) -> str:
        return api.refused(
            "UpdateShardCount", StreamName="orders", TargetShardCount=target, ScalingType="UNIFORM_SCALING"
        ).code

    assert refused(9) == refused(1) == "InvalidArgumentException"
    for target in (8, 4) * 5:
        scale(target)
    assert refused(8) == "LimitExceededException"
    api.clock.advance(24 * HOUR_MS)
    scale(8)


def test_the_filters_of_list_shards(orders: Api):
    """Shards 0 and 1 from the start; at +1 h 0 splits into 2 and 3; at +2 h 2 and 3 merge into 4."""
    start_s = 1_700_000_000
    orders.clock.advance(HOUR_MS)
    split(orders, 0, 1000)
    orders.clock.advance(HOUR_MS)
    merge(orders, 2, 3)
    orders.clock.advance(HOUR_MS)

    def listed(kind: str, **fields: object) -> list[int]:
        return indices(orders.shards("orders", ShardFilter={"Type": kind, **fields}))

    assert indices(orders.shards("orders")) == [0, 1, 2, 3, 4]
    assert listed("AT_LATEST") == [1, 4]
    assert listed("AT_TRIM_HORIZON") == [0, 1]
    assert listed("FROM_TRIM_HORIZON") == [0, 1, 2, 3, 4]
    assert listed("AFTER_SHARD_ID", ShardId=name(2)) == [3, 4]
    assert listed("AT_TIMESTAMP", Timestamp=start_s) == [0, 1]
    assert listed("AT_TIMESTAMP", Timestamp=start_s - 9999) == [0, 1]
    # Who closed at that time is among those that were open then, as are its children.
    assert listed("AT_TIMESTAMP", Timestamp=start_s + 3600) == [0, 1, 2, 3]
    assert listed("AT_TIMESTAMP", Timestamp=start_s + 3600.001) == [1, 2, 3]
    assert listed("AT_TIMESTAMP", Timestamp=start_s + 7200) == [1, 2, 3, 4]
    assert listed("FROM_TIMESTAMP", Timestamp=start_s + 3601) == [1, 2, 3, 4]
    assert listed("FROM_TIMESTAMP", Timestamp=start_s + 7201) == [1, 4]
    orders.clock.advance(22 * HOUR_MS)  # the horizon is at the split
    assert listed("AT_TRIM_HORIZON") == [0, 1, 2, 3]
    orders.clock.advance(HOUR_MS // 2)  # the horizon is between the split and the merge
    assert listed("AT_TRIM_HORIZON") == [1, 2, 3]
    assert indices(orders.shards("orders")) == [1, 2, 3, 4]
    orders.clock.advance(HOUR_MS)
    assert indices(orders.shards("orders")) == [1, 4]
    refused = orders.refused("GetShardIterator", StreamName="orders", ShardId=name(2), ShardIteratorType="TRIM_HORIZON")
    assert refused.code == "ResourceNotFoundException"


def test_list_shards_comes_in_pages_that_expire(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=5)
    first = api.call("ListShards", StreamName="orders", MaxResults=2, ShardFilter={"Type": "AT_LATEST"})
    second = api.call("ListShards", NextToken=first["NextToken"], MaxResults=2)
    third = api.call("ListShards", NextToken=second["NextToken"])

    assert [indices(page["Shards"]) for page in (first, second, third)] == [[0, 1], [2, 3], [4]]
    assert "NextToken" not in third
    assert indices(api.shards("orders", ExclusiveStartShardId=name(3))) == [4]
    api.clock.advance(300_001)
    assert api.refused("ListShards", NextToken=first["NextToken"]).code == "ExpiredNextTokenException"
    assert api.refused("ListShards", NextToken="forged").code == "InvalidArgumentException"


def test_a_page_of_list_shards_has_1000_at_most(api: Api):
    api.call("CreateStream", StreamName="wide", ShardCount=1001)
    for asked in ({}, {"MaxResults": 10_000}):
        page = api.call("ListShards", StreamName="wide", **asked)
        rest = api.call("ListShards", NextToken=page["NextToken"], **asked)
        assert [len(one["Shards"]) for one in (page, rest)] == [1000, 1]
        assert "NextToken" not in rest


def test_a_token_of_list_shards_goes_with_nothing_that_it_stands_for(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    token = api.call("ListShards", StreamName="orders", MaxResults=1)["NextToken"]
    given = {
        "StreamName": "orders",
        "StreamARN": api.application.account.arn("orders"),
        "StreamCreationTimestamp": 1_700_000_000,
        "ExclusiveStartShardId": name(0),
        "ShardFilter": {"Type": "AT_LATEST"},
    }
    while given:
        refused = api.refused("ListShards", NextToken=token, **given)
        assert refused.code == "InvalidArgumentException"
        # With several of them the first is named.
        assert refused.message == f"NextToken and {next(iter(given))} cannot be provided together."
        del given[next(iter(given))]


def test_list_shards_tells_streams_of_one_name_apart(orders: Api):
    assert len(orders.shards("orders", StreamCreationTimestamp=1_700_000_000)) == 2
    refused = orders.refused("ListShards", StreamName="orders", StreamCreationTimestamp=1_600_000_000)
    assert refused.code == "ResourceNotFoundException"


def test_filters_that_lack_what_they_need(orders: Api):
    for kind in ("AFTER_SHARD_ID", "AT_TIMESTAMP", "FROM_TIMESTAMP"):
        refused = orders.refused("ListShards", StreamName="orders", ShardFilter={"Type": kind})
        assert refused.code == "InvalidArgumentException"
        assert kind in refused.message
    future = {"Type": "AT_TIMESTAMP", "Timestamp": 1_700_000_001}
    assert orders.refused("ListShards", StreamName="orders", ShardFilter=future).code == "InvalidArgumentException"
    unknown = orders.refused("ListShards", StreamName="orders", ShardFilter={"Type": "SOME"})
    assert "at 'shardFilter.type' failed to satisfy constraint: Member must satisfy enum value set" in unknown.message
