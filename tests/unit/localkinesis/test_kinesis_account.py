"""What is told about the account, and its quota of on-demand streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ON_DEMAND = {"StreamMode": "ON_DEMAND"}


def test_the_limits_and_what_is_used_of_them(api: Api):
    api.call("CreateStream", StreamName="a", ShardCount=3)
    api.call("CreateStream", StreamName="b", ShardCount=2)
    api.call("CreateStream", StreamName="c", StreamModeDetails=ON_DEMAND)

    assert api.call("DescribeLimits") == {
        "ShardLimit": 20_000,
        "OpenShardCount": 5,
        "OnDemandStreamCount": 1,
        "OnDemandStreamCountLimit": 50,
    }


def test_there_are_fifty_on_demand_streams_at_most(api: Api):
    for number in range(50):
        api.call("CreateStream", StreamName=f"s{number}", StreamModeDetails=ON_DEMAND)
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"

    assert api.refused("CreateStream", StreamName="more", StreamModeDetails=ON_DEMAND).code == "LimitExceededException"
    assert api.refused("UpdateStreamMode", StreamARN=arn, StreamModeDetails=ON_DEMAND).code == "LimitExceededException"
    api.call("DeleteStream", StreamName="s0")
    api.call("UpdateStreamMode", StreamARN=arn, StreamModeDetails=ON_DEMAND)


def test_no_throughput_is_committed_to(limited: Api):
    commitment = {"MinimumThroughputBillingCommitment": {"Status": "DISABLED"}}

    assert [limited.call("DescribeAccountSettings") for _ in range(5)] == [commitment] * 5
    assert limited.refused("DescribeAccountSettings").code == "LimitExceededException"


def test_list_shards_has_a_rate_per_stream(limited: Api):
    for name in ("orders", "others"):
        limited.call("CreateStream", StreamName=name, ShardCount=1)
    for _ in range(1000):
        limited.shards("orders")

    assert limited.refused("ListShards", StreamName="orders").message == (
        "Rate exceeded for stream orders under account 000000000000."
    )
    limited.shards("others")
