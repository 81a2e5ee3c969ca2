"""How on-demand streams grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.ondemand import OBSERVED_MS, Demand

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api


def test_a_new_stream_has_four_shards(api: Api):
    api.call("CreateStream", StreamName="orders")
    assert len(api.shards("orders")) == 4
    assert Demand().shards() == 0, "it asks for no more than there are"


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
    assert summary["OpenShardCount"] == 2, "750 records a second, twice"


def test_it_makes_room_for_twice_the_peak_minute():
    demand = Demand().observe(0, records=0, size=0)
    demand = demand.observe(OBSERVED_MS, records=60 * 3000, size=60)
    assert demand.shards() == 6
    demand = demand.observe(2 * OBSERVED_MS, records=60 * 3000, size=60 + 60 * 10 * MIB)
    assert demand.shards() == 20


def test_a_burst_within_a_minute_is_averaged():
    demand = Demand().observe(0, records=0, size=0)
    assert demand.observe(OBSERVED_MS - 1, records=10**6, size=0) is demand
    assert demand.observe(OBSERVED_MS, records=60_000, size=0).shards() == 2


def test_it_does_not_shrink():
    demand = Demand().observe(0, records=0, size=0).observe(OBSERVED_MS, records=600_000, size=0)
    assert demand.observe(100 * OBSERVED_MS, records=600_000, size=0).shards() == 20
