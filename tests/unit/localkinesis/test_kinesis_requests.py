"""Requests that are not understood, and the wording of constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest

from lakestream_localkinesis.http import Request

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api


def test_all_violations_are_reported_together(api: Api):
    refused = api.refused("CreateStream", StreamName="no spaces!", ShardCount=0)

    assert refused.code == "ValidationException"
    assert refused.message == (
        "2 validation errors detected: Value 'no spaces!' at 'streamName' failed to satisfy constraint: "
        "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+; Value '0' at 'shardCount' failed to "
        "satisfy constraint: Member must have value greater than or equal to 1"
    )


def test_what_is_required_is_said(api: Api):
    assert api.refused("GetShardIterator").message == (
        "3 validation errors detected: Value null at 'streamName' failed to satisfy constraint: Member must not be "
        "null; Value null at 'shardId' failed to satisfy constraint: Member must not be null; Value null at "
        "'shardIteratorType' failed to satisfy constraint: Member must not be null"
    )


@pytest.mark.parametrize(
    ("operation", "fields", "message"),
    [
        ("CreateStream", {"StreamName": 1}, "TruncatingBigNumber can not be converted to an String"),
        ("CreateStream", {"StreamName": ["a"]}, "Start of list found where not expected"),
        ("CreateStream", {"StreamName": "s", "ShardCount": "1"}, "java.lang.String can not be converted to an Integer"),
        ("CreateStream", {"StreamName": "s", "ShardCount": True}, "java.lang.Boolean can not be converted to an Inte"),
        ("CreateStream", {"StreamName": "s", "Tags": "x"}, "Expected map or null"),
        ("CreateStream", {"StreamName": "s", "Tags": {"a": 1}}, "can not be converted to an String"),
        ("CreateStream", {"StreamName": "s", "StreamModeDetails": "x"}, "Expected null"),
        ("PutRecords", {"StreamName": "s", "Records": "x"}, "Expected list or null"),
        ("PutRecords", {"StreamName": "s", "Records": ["x"]}, "Expected null"),
        ("GetShardIterator", {"StreamName": "s", "Timestamp": "now"}, "milliseconds since epoch"),
        ("GetShardIterator", {"StreamName": "s", "Timestamp": -1e30}, "-1e+30 can not be converted to milliseconds"),
    ],
)
def test_wrong_types(api: Api, operation: str, fields: dict, message: str):
    refused = api.refused(operation, **fields)

    assert refused.code == "SerializationException"
    assert message in refused.message


def test_digits_are_those_of_ascii(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)

    for operation, fields in {
        "PutRecord": {"PartitionKey": "k", "Data": "", "ExplicitHashKey": "1\u0661"},
        "SplitShard": {"ShardToSplit": "shardId-000000000000", "NewStartingHashKey": "1\u0661"},
        "GetShardIterator": {
            "ShardId": "shardId-000000000000",
            "ShardIteratorType": "AT_SEQUENCE_NUMBER",
            "StartingSequenceNumber": "1\u0661",
        },
    }.items():
        assert "regular expression pattern" in api.refused(operation, StreamName="orders", **fields).message


def test_an_operation_that_is_not_there(api: Api):
    refused = api.refused("CreateQueue")

    assert (refused.status, refused.code) == (400, "UnknownOperationException")
    assert "Kinesis_20131202.CreateQueue" in refused.message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"\xff"])
def test_a_body_that_is_none(api: Api, body: bytes):
    headers = {"x-amz-target": "Kinesis_20131202.ListStreams", "content-type": "application/x-amz-json-1.1"}
    response = api.application.handle(Request("POST", "/", headers, body))

    assert response.status == 400
    assert orjson.loads(response.body)["__type"] == "SerializationException"


def test_a_body_beyond_all_bounds_is_told_as_that(api: Api):
    headers = {"x-amz-target": "Kinesis_20131202.PutRecords", "content-type": "application/x-amz-json-1.1"}
    response = api.application.handle(Request("POST", "/", headers, None))

    assert response.status == 413
    assert orjson.loads(response.body) == {
        "__type": "RequestEntityTooLargeException",
        "message": "The body has more than 33554432 bytes. Send less at once: PutRecords takes 10 MiB.",
    }


def test_a_request_of_tests_that_is_too_large_is_not_taken_for_an_empty_one(api: Api):
    response = api.application.handle(Request("DELETE", "/_testing/faults", {}, None))

    assert response.status == 400
    assert b"The body has more than 33554432 bytes" in response.body


def test_a_request_without_operation(api: Api):
    response = api.application.handle(Request("POST", "/", {}, b"{}"))

    assert response.status == 403
    assert orjson.loads(response.body)["__type"] == "AccessDeniedException"


def test_answers_bear_a_request_id(api: Api):
    ids = {api.respond("ListStreams").headers["x-amzn-RequestId"] for _ in range(3)}

    assert {len(request_id) for request_id in ids} == {36}
    assert len(ids) == 3


def test_a_failure_of_the_server_itself_is_an_internal_failure(api: Api, monkeypatch: pytest.MonkeyPatch):
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(api.application.account, "settle", broken)
    refused = api.refused("ListStreams")

    assert (refused.status, refused.code) == (500, "InternalFailure")


def test_pages_beside_the_api(api: Api):
    def get(path: str) -> tuple[int, bytes]:
        response = api.application.handle(Request("GET", path, {}, b""))
        return response.status, response.body

    assert get("/healthz") == (200, b"ok\n")
    assert get("/nowhere")[0] == 404


def test_answers_that_were_recorded_of_the_service(api: Api, slow: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    unread = orjson.loads(api.respond("CreateStream", StreamName=1).body)
    unnamed = api.refused("ListShards")
    beyond = api.refused(
        "SplitShard", StreamName="orders", ShardToSplit="shardId-000000000000", NewStartingHashKey="9" * 39
    )
    empty = api.refused("PutRecords", StreamName="orders", Records=[])
    missing = api.refused("RemoveTagsFromStream", StreamName="none", TagKeys=["a;b"])

    assert set(unread) == {"__type", "Message"}
    assert (unnamed.code, unnamed.message) == (
        "InvalidArgumentException",
        "Either NextToken or StreamName should be provided.",
    )
    assert beyond.code == "InvalidArgumentException"
    assert f"NewStartingHashKey {'9' * 39} used in SplitShard() on shard shardId-000000000000" in beyond.message
    assert "Value '[]' at 'records' failed to satisfy constraint" in empty.message
    assert missing.code == "ResourceNotFoundException"
    # A stream may be deleted while it is created.
    slow.call("CreateStream", StreamName="orders", ShardCount=1)
    slow.call("DeleteStream", StreamName="orders")
    slow.clock.advance(10_000)
    assert slow.call("ListStreams")["StreamNames"] == []
