"""DryRun: every check of the request, and nothing done.

Source: "Test your permissions and request inputs with dry run" in the developer guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

SHARD = "shardId-000000000000"
RECORD = {"Data": "eA==", "PartitionKey": "k"}


@pytest.fixture
def orders(limited: Api) -> Api:
    limited.call("CreateStream", StreamName="orders", ShardCount=1)
    limited.put("orders", b"before")
    return limited


def requests(api: Api) -> dict[str, dict[str, Any]]:
    """A request of each operation that has DryRun and an answer, each of which would succeed."""
    return {
        "PutRecord": {"StreamName": "orders", **RECORD},
        "PutRecords": {"StreamName": "orders", "Records": [RECORD]},
        "GetShardIterator": {"StreamName": "orders", "ShardId": SHARD, "ShardIteratorType": "TRIM_HORIZON"},
        "GetRecords": {"ShardIterator": api.iterator("orders", SHARD)},
    }


def test_a_request_that_would_succeed_is_told_so(orders: Api):
    for operation, fields in requests(orders).items():
        refused = orders.refused(operation, **fields, DryRun=True)
        assert (refused.status, refused.code) == (400, "DryRunOperationException")


def test_nothing_is_written_and_no_rate_used_up(orders: Api):
    for operation, fields in requests(orders).items():
        for _ in range(2000 if operation == "PutRecord" else 20):
            assert orders.refused(operation, **fields, DryRun=True).code == "DryRunOperationException"

    assert orders.read_all("orders", SHARD) == [b"before"]
    for operation, fields in requests(orders).items():
        orders.call(operation, **fields, DryRun=False)


def test_what_is_wrong_is_told_as_ever(orders: Api):
    large = orders.encoded(b"x" * 1024 * 1024)
    cases = [
        ("PutRecord", {"StreamName": "none", **RECORD}, "ResourceNotFoundException"),
        ("PutRecord", {"StreamName": "orders", "Data": large, "PartitionKey": "k"}, "InvalidArgumentException"),
        ("PutRecords", {"StreamName": "orders", "Records": []}, "ValidationException"),
        (
            "GetShardIterator",
            {"StreamName": "orders", "ShardId": SHARD, "ShardIteratorType": "AT_TIMESTAMP"},
            "InvalidArgumentException",
        ),
        ("GetRecords", {"ShardIterator": "forged"}, "InvalidArgumentException"),
    ]
    for operation, fields, code in cases:
        assert orders.refused(operation, **fields, DryRun=True).code == code
    assert orders.refused("PutRecord", StreamName="orders", **RECORD, DryRun="yes").code == "SerializationException"
    iterator = orders.iterator("orders", SHARD)
    orders.clock.advance(300_001)
    assert orders.refused("GetRecords", ShardIterator=iterator, DryRun=True).code == "ExpiredIteratorException"
