"""Listings of shards that are out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_localkinesis.core.account import AccountSettings
from lakestream_localkinesis.core.limits import Limits
from lakestream_localkinesis.faults import Fault, FaultKind
from tests.unit.localkinesis.conftest import build_api

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api, Host

SECOND = 1000
HOUR = 3600 * SECOND
PARENT = "shardId-000000000000"


@pytest.fixture
def orders(api: Api) -> Api:
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    api.clock.advance(60 * SECOND)
    return api


def split(api: Api, shard: str = PARENT) -> None:
    [keys] = [one["HashKeyRange"] for one in api.shards("orders") if one["ShardId"] == shard]
    middle = (int(keys["StartingHashKey"]) + int(keys["EndingHashKey"])) // 2
    api.call("SplitShard", StreamName="orders", ShardToSplit=shard, NewStartingHashKey=str(middle))


def stale(api: Api, stale_ms: int, **fields: Any) -> list[dict[str, Any]]:
    api.faults.add(Fault(FaultKind.STALE, times=1, stale_ms=stale_ms))
    return api.shards("orders", **fields)


def numbers(shards: list[dict[str, Any]]) -> list[int]:
    return [int(shard["ShardId"][-12:]) for shard in shards]


def test_a_split_has_not_happened_yet_and_all_but_the_listing_knows_of_it(orders: Api):
    before = orders.shards("orders")
    orders.put("orders", b"x", ExplicitHashKey="0")
    split(orders)
    orders.clock.advance(5 * SECOND)
    now = orders.shards("orders")

    assert stale(orders, 6 * SECOND) == before != now
    assert stale(orders, 4 * SECOND) == now
    assert numbers(stale(orders, 6 * SECOND, ShardFilter={"Type": "AT_LATEST"})) == [0, 1]
    orders.faults.add(Fault(FaultKind.STALE, stale_ms=6 * SECOND))
    assert orders.iterator("orders", "shardId-000000000003")
    page = orders.read(orders.iterator("orders", PARENT))
    assert (orders.payloads(page), page["NextShardIterator"], len(page["ChildShards"])) == ([b"x"], None, 2)
    assert len(orders.call("DescribeStream", StreamName="orders")["StreamDescription"]["Shards"]) == 4
    orders.faults.clear()
    assert orders.shards("orders") == now


def test_a_shard_that_has_expired_is_listed_once_more(orders: Api):
    split(orders)
    orders.clock.advance(SECOND)
    before = orders.shards("orders")
    orders.clock.advance(25 * HOUR)
    now = orders.shards("orders")
    orders.clock.advance(5 * SECOND)

    assert numbers(now) == [1, 2, 3]
    assert stale(orders, 6 * SECOND) == before
    assert stale(orders, 4 * SECOND) == now
    assert numbers(stale(orders, 6 * SECOND, ShardFilter={"Type": "AT_LATEST"})) == [1, 2, 3]
    orders.faults.add(Fault(FaultKind.STALE, stale_ms=6 * SECOND))
    refused = orders.refused("GetShardIterator", StreamName="orders", ShardId=PARENT, ShardIteratorType="TRIM_HORIZON")
    assert refused.code == "ResourceNotFoundException"


def test_one_that_was_gone_by_then_does_not_come_back_with_a_longer_retention(orders: Api):
    split(orders)
    orders.clock.advance(25 * HOUR)
    now = orders.shards("orders")
    orders.call("IncreaseStreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=48)
    orders.clock.advance(5 * SECOND)

    assert stale(orders, SECOND) == now


def test_no_listing_is_from_before_the_stream_was_there(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=2)
    slow.clock.advance(10 * SECOND)
    first = slow.shards("orders")
    split(slow)
    slow.clock.advance(20 * SECOND)

    assert numbers(slow.shards("orders")) == [0, 1, 2, 3]
    assert stale(slow, 24 * HOUR) == first


def test_pages_go_on_as_the_first_one_began(orders: Api):
    before = orders.shards("orders")
    split(orders)
    orders.clock.advance(5 * SECOND)
    true = orders.call("ListShards", StreamName="orders", MaxResults=1)
    orders.faults.add(Fault(FaultKind.STALE, times=1, stale_ms=6 * SECOND))
    follows = orders.call("ListShards", NextToken=true["NextToken"])
    begun = orders.call("ListShards", StreamName="orders", MaxResults=1)
    orders.clock.advance(60 * SECOND)
    ended = orders.call("ListShards", NextToken=begun["NextToken"])

    assert numbers(follows["Shards"]) == [1, 2, 3]
    assert begun["Shards"] + ended["Shards"] == before
    assert "NextToken" not in ended


def test_what_has_expired_is_not_remembered_over_a_restart(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    split(api)
    host.clock.advance(25 * HOUR)
    assert numbers(api.shards("orders")) == [1, 2]
    api = host.start()
    host.clock.advance(SECOND)

    assert numbers(stale(api, 2 * SECOND)) == [1, 2]


STEPS = st.sampled_from(["split", "merge", "retain", SECOND, 7 * SECOND, HOUR, 13 * HOUR, 25 * HOUR])


@given(st.lists(STEPS, max_size=14))
def test_a_stale_listing_is_the_one_of_that_time(history: list[str | int]):
    api = build_api(AccountSettings(limits=Limits.none()))
    api.call("CreateStream", StreamName="orders", ShardCount=2)
    listed = {api.clock.now_ms(): api.shards("orders")}
    for step in history:
        _happen(api, step)
        listed[api.clock.now_ms()] = api.shards("orders")
    now_ms = api.clock.now_ms()
    for at_ms, shards in listed.items():
        if 0 < now_ms - at_ms <= 24 * HOUR:
            assert stale(api, now_ms - at_ms) == shards


def _happen(api: Api, step: str | int) -> None:
    """A reshard, another retention, or time that goes by."""
    shards = api.shards("orders", ShardFilter={"Type": "AT_LATEST"})
    shards.sort(key=lambda shard: int(shard["HashKeyRange"]["StartingHashKey"]))
    names = [shard["ShardId"] for shard in shards]
    match step:
        case "split":
            split(api, names[0])
        case "merge" if len(names) > 1:
            api.call("MergeShards", StreamName="orders", ShardToMerge=names[0], AdjacentShardToMerge=names[1])
        case "retain":
            summary = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
            way, hours = ("Increase", 48) if summary["RetentionPeriodHours"] == 24 else ("Decrease", 24)
            api.call(f"{way}StreamRetentionPeriod", StreamName="orders", RetentionPeriodHours=hours)
            # When a shard expired is known to a second.
            api.clock.advance(SECOND)
        case int():
            api.clock.advance(step)
