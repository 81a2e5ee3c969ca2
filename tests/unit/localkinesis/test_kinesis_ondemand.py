"""How on-demand streams grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.ondemand import OBSERVED_MS, Demand
from lakestream_localkinesis.core.state import stream_state, update_stream

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api, Host


def test_a_new_stream_has_four_shards(api: Api):
    api.call("CreateStream", StreamName="orders")
    assert len(api.shards("orders")) == 4


def test_a_stream_that_was_provisioned_keeps_its_shards_and_grows_from_there(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    arn = api.application.account.arn("orders")
    api.call("UpdateStreamMode", StreamARN=arn, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    api.clock.advance(1000)
    assert [shard["ShardId"] for shard in api.shards("orders")] == ["shardId-000000000000"]
    for _ in range(OBSERVED_MS // 1000):
        api.put_many("orders", *[(b"", str(number)) for number in range(500)])
        api.put_many("orders", *[(b"", str(number)) for number in range(250)])
        api.clock.advance(1000)
    summary = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
    assert summary["OpenShardCount"] == 2, "750 records a second, to one shard"


def minute(api: Api, *, records: int, key: str) -> list[tuple[str, str]]:
    """Write so many records a second to one hash key; returns the open shards and the first key of each."""
    for _ in range(OBSERVED_MS // 1000):
        for count in (records // 2, records - records // 2):
            entries = [{"Data": "", "PartitionKey": "k", "ExplicitHashKey": key}] * count
            api.call("PutRecords", StreamName="orders", Records=entries)
        api.clock.advance(1000)
    shards = [one for one in api.shards("orders") if "EndingSequenceNumber" not in one["SequenceNumberRange"]]
    return sorted((one["ShardId"][-2:], one["HashKeyRange"]["StartingHashKey"]) for one in shards)


def test_the_hot_shard_is_split_and_no_other(api: Api):
    """It was not, as long as the stream as a whole had twice the room."""
    api.call("CreateStream", StreamName="orders")
    quarter = 2**126
    assert minute(api, records=510, key=str(quarter)) == [
        ("00", "0"),
        ("02", str(2 * quarter)),
        ("03", str(3 * quarter)),
        ("04", str(quarter)),
        ("05", str(quarter * 3 // 2)),
    ]
    assert minute(api, records=510, key=str(quarter))[-2:] == [("06", str(quarter)), ("07", str(quarter * 5 // 4))]
    assert len(minute(api, records=490, key=str(quarter))) == 6


def test_a_shard_is_split_above_half_of_either_rate_in_a_minute():
    begun, hot = Demand().observe(0, [(0, 100, 100), (1, 0, 0), (2, 0, 0), (3, 0, 0)])
    assert hot == []
    given = [(0, 100 + 60 * 500, 100), (1, 60 * 500 + 1, 0), (2, 0, 30 * MIB), (3, 0, 30 * MIB + 1), (4, 30_001, 0)]
    assert begun.observe(OBSERVED_MS - 1, given) == (begun, []), "a burst within a minute is averaged"
    following, hot = begun.observe(OBSERVED_MS, given)
    assert hot == [1, 3, 4]
    assert following.observe(2 * OBSERVED_MS, given)[1] == []


def test_a_shard_of_two_hash_keys_is_not_split(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for shard in ("0", "2"):
        middle = str(2**127 + int(shard))
        split = {"ShardToSplit": f"shardId-00000000000{shard}", "NewStartingHashKey": middle}
        api.call("SplitShard", StreamName="orders", **split)
    arn = api.application.account.arn("orders")
    api.call("UpdateStreamMode", StreamARN=arn, StreamModeDetails={"StreamMode": "ON_DEMAND"})
    assert len(minute(api, records=510, key=str(2**127))) == 3


def test_demand_outlives_a_restart(host: Host):
    api = host.start()
    api.call("CreateStream", StreamName="orders")
    api.put("orders", b"")
    demand = api.application.account.streams["orders"].demand
    assert len(demand.given) == 4
    assert host.start().application.account.streams["orders"].demand == demand


def test_a_demand_of_a_journal_from_before_begins_anew(api: Api):
    api.call("CreateStream", StreamName="orders")
    stream = api.application.account.streams["orders"]
    older = {"since_ms": 5, "records": 9, "size": 9, "peak_records_per_s": 1.5, "peak_bytes_per_s": 2.5}
    assert update_stream(None, {**stream_state(stream), "demand": older}, stream.limits).demand == Demand()
