"""A client that speaks CBOR, as the SDK for Java does, beside one that speaks JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cbor2

from lakestream_localkinesis.http import Request

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

CBOR = "application/x-amz-cbor-1.1"


def call(api: Api, operation: str, **fields: Any) -> tuple[int, dict[str, Any]]:
    headers = {"x-amz-target": f"Kinesis_20131202.{operation}", "content-type": CBOR}
    response = api.application.handle(Request("POST", "/", headers, cbor2.dumps(fields)))
    assert response.content_type == CBOR
    return response.status, cbor2.loads(response.body, semantic_decoders={1: lambda value, _: ("time", value)})


def test_what_one_puts_the_other_reads(api: Api):
    call(api, "CreateStream", StreamName="orders", ShardCount=1)
    status, put = call(
        api, "PutRecords", StreamName="orders", Records=[{"Data": b"\x00\xffcbor", "PartitionKey": "ключ"}]
    )
    assert (status, put["FailedRecordCount"]) == (200, 0)
    api.put("orders", b"json")

    start = {"StreamName": "orders", "ShardId": "shardId-000000000000"}
    _, iterator = call(
        api,
        "GetShardIterator",
        ShardIteratorType="AT_TIMESTAMP",
        Timestamp=cbor2.CBORTag(1, api.clock.now_ms()),
        **start,
    )
    _, page = call(api, "GetRecords", ShardIterator=iterator["ShardIterator"])

    assert [(record["Data"], record["PartitionKey"]) for record in page["Records"]] == [
        (b"\x00\xffcbor", "ключ"),
        (b"json", "key"),
    ]
    assert page["Records"][0]["ApproximateArrivalTimestamp"] == ("time", 1_700_000_000_000)
    assert api.payloads(api.read(api.iterator("orders", start["ShardId"]))) == [b"\x00\xffcbor", b"json"]


def test_descriptions_and_filters(api: Api):
    call(api, "CreateStream", StreamName="orders", ShardCount=2)
    _, described = call(api, "DescribeStreamSummary", StreamName="orders")
    at = {"Type": "AT_TIMESTAMP", "Timestamp": cbor2.CBORTag(1, api.clock.now_ms())}
    _, listed = call(api, "ListShards", StreamName="orders", ShardFilter=at)

    assert described["StreamDescriptionSummary"]["StreamCreationTimestamp"] == ("time", 1_700_000_000_000)
    assert len(listed["Shards"]) == 2


def test_errors(api: Api):
    assert call(api, "DescribeStreamSummary", StreamName="orders") == (
        400,
        {"__type": "ResourceNotFoundException", "message": "Stream orders under account 000000000000 not found."},
    )


def test_an_answer_without_members(api: Api):
    assert call(api, "CreateStream", StreamName="orders", ShardCount=2) == (200, {})
