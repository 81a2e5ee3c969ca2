"""RecordDistributionStrategy: on-demand streams that place records themselves.

Source: UpdateStreamRecordDistributionStrategy, CreateStream, PutRecord and Record in the API reference, and
"Producer API behavior with service-managed distribution" in the developer guide.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
ON_DEMAND = {"StreamMode": "ON_DEMAND"}


def create(api: Api, **fields: Any) -> None:
    api.call("CreateStream", StreamName="orders", StreamModeDetails=ON_DEMAND, **fields)


def summary(api: Api) -> dict[str, Any]:
    described: dict[str, Any] = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
    return described


def test_the_summary_of_an_on_demand_stream_tells_its_strategy(api: Api):
    create(api)
    assert summary(api)["RecordDistributionStrategy"] == "USER_PARTITION_KEY"

    api.call("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, RecordDistributionStrategy="AUTO")

    assert summary(api)["RecordDistributionStrategy"] == "AUTO"
    assert summary(api)["StreamStatus"] == "ACTIVE"
    api.call("UpdateStreamMode", StreamARN=ARN, StreamModeDetails={"StreamMode": "PROVISIONED"})
    assert "RecordDistributionStrategy" not in summary(api)
    assert api.refused("PutRecord", StreamName="orders", Data="").code == "ValidationException"


def test_records_without_a_key_go_round_all_shards_and_come_back_without_one(api: Api):
    create(api, RecordDistributionStrategy="AUTO")
    entries = [{"Data": api.encoded(b"%d" % number)} for number in range(500)]

    results = api.call("PutRecords", StreamName="orders", Records=entries)["Records"]
    single = api.call("PutRecord", StreamName="orders", Data=api.encoded(b"500"))

    assert sorted(Counter(result["ShardId"] for result in results).values()) == [125] * 4
    found = []
    for shard in api.shards("orders"):
        page = api.read(api.iterator("orders", shard["ShardId"]))
        assert all("PartitionKey" not in record for record in page["Records"])
        found += page["Records"]
    assert sorted(int(data) for data in api.payloads({"Records": found})) == list(range(501))
    numbers = {result["SequenceNumber"] for result in [*results, single]}
    assert {record["SequenceNumber"] for record in found} == numbers


def test_keys_that_are_given_anyway_come_back_and_place_nothing(api: Api):
    create(api, RecordDistributionStrategy="AUTO")
    entries = [{"Data": "", "PartitionKey": "k", "ExplicitHashKey": "0"}] * 8

    results = api.call("PutRecords", StreamName="orders", Records=entries)["Records"]

    assert sorted(Counter(result["ShardId"] for result in results).values()) == [2] * 4
    page = api.read(api.iterator("orders", results[0]["ShardId"]))
    assert [record["PartitionKey"] for record in page["Records"]] == ["k", "k"]


def test_the_strategy_changes_at_once_and_for_new_records_alone(api: Api):
    create(api)
    by_key = {api.put("orders", b"a", "k")["ShardId"] for _ in range(4)}
    api.call("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, RecordDistributionStrategy="AUTO")
    by_turn = {api.put("orders", b"b", "k")["ShardId"] for _ in range(4)}
    api.call("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, RecordDistributionStrategy="USER_PARTITION_KEY")

    assert (len(by_key), len(by_turn)) == (1, 4)
    assert {api.put("orders", b"a", "k")["ShardId"] for _ in range(4)} == by_key
    refused = api.refused("PutRecords", StreamName="orders", Records=[{"Data": "", "PartitionKey": "k"}, {"Data": ""}])
    assert refused.code == "ValidationException"
    assert "Value null at 'records.2.member.partitionKey' failed to satisfy constraint" in refused.message


def test_what_goes_with_partition_keys_alone_is_refused(api: Api):
    create(api, RecordDistributionStrategy="AUTO")
    ordered = api.refused("PutRecord", StreamName="orders", Data="", SequenceNumberForOrdering="0")
    empty = api.refused("PutRecord", StreamName="orders", Data="", PartitionKey="")

    assert (ordered.code, empty.code) == ("InvalidArgumentException", "ValidationException")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"RecordDistributionStrategy": "AUTO"}, "InvalidArgumentException"),
        ({"RecordDistributionStrategy": "EVENLY"}, "ValidationException"),
        ({}, "ValidationException"),
    ],
)
def test_provisioned_streams_go_by_partition_keys(api: Api, fields: dict, code: str):
    api.call("CreateStream", StreamName="orders", ShardCount=1)

    assert "RecordDistributionStrategy" not in summary(api)
    assert api.refused("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, **fields).code == code
    if fields:
        assert api.refused("CreateStream", StreamName="more", ShardCount=1, **fields).code == code


def test_a_stream_that_is_changing_keeps_its_strategy(slow: Api):
    create(slow)

    refused = slow.refused("UpdateStreamRecordDistributionStrategy", StreamARN=ARN, RecordDistributionStrategy="AUTO")

    assert refused.code == "ResourceInUseException"
