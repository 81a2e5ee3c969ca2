"""Consumers with enhanced fan-out: registered, described, listed, deregistered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"


def register(api: Api, name: str = "lake") -> dict[str, Any]:
    consumer: dict[str, Any] = api.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName=name)["Consumer"]
    return consumer


@pytest.fixture
def orders(api: Api) -> Api:
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    return api


def test_a_consumer_is_found_by_its_arn_or_its_name_or_both(orders: Api):
    consumer = register(orders)

    assert consumer == {
        "ConsumerName": "lake",
        "ConsumerARN": f"{ARN}/consumer/lake:1700000000",
        "ConsumerStatus": "ACTIVE",
        "ConsumerCreationTimestamp": 1_700_000_000.0,
    }
    by_arn = {"ConsumerARN": consumer["ConsumerARN"]}
    by_name = {"StreamARN": ARN, "ConsumerName": "lake"}
    for fields in (by_arn, by_name, {**by_arn, **by_name}):
        described = orders.call("DescribeStreamConsumer", **fields)["ConsumerDescription"]
        assert described == {**consumer, "StreamARN": ARN}
    summary = orders.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]
    assert summary["ConsumerCount"] == 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "InvalidArgumentException"),
        ({"StreamARN": ARN}, "InvalidArgumentException"),
        ({"ConsumerName": "lake"}, "InvalidArgumentException"),
        ({"StreamARN": ARN, "ConsumerName": "other"}, "ResourceNotFoundException"),
        ({"StreamARN": f"{ARN}2", "ConsumerName": "lake"}, "ResourceNotFoundException"),
        ({"ConsumerARN": f"{ARN}/consumer/lake:1"}, "ResourceNotFoundException"),
        ({"ConsumerARN": f"{ARN}/consumer/lake:1700000000", "ConsumerName": "other"}, "InvalidArgumentException"),
        ({"ConsumerARN": f"{ARN}/lake"}, "ValidationException"),
        ({"ConsumerARN": f"{ARN}/consumer/lake:1".replace("000000000000", "123456789012")}, "AccessDeniedException"),
    ],
)
def test_consumers_that_are_not_found(orders: Api, fields: dict, code: str):
    register(orders)

    for operation in ("DescribeStreamConsumer", "DeregisterStreamConsumer"):
        assert orders.refused(operation, **fields).code == code


def test_consumers_are_listed_in_pages(orders: Api):
    for name in ("c", "a", "b"):
        register(orders, name)

    first = orders.call("ListStreamConsumers", StreamARN=ARN, MaxResults=2)
    rest = orders.call("ListStreamConsumers", StreamARN=ARN, NextToken=first["NextToken"])

    assert [consumer["ConsumerName"] for consumer in first["Consumers"]] == ["a", "b"]
    assert [consumer["ConsumerName"] for consumer in rest["Consumers"]] == ["c"]
    assert "NextToken" not in rest
    assert (
        len(orders.call("ListStreamConsumers", StreamARN=ARN, StreamCreationTimestamp=1_700_000_000)["Consumers"]) == 3
    )
    other = orders.refused("ListStreamConsumers", StreamARN=ARN, StreamCreationTimestamp=1_600_000_000)
    assert other.code == "ResourceNotFoundException"
    assert orders.refused("ListStreamConsumers", StreamARN=ARN, NextToken="forged").code == "InvalidArgumentException"
    orders.clock.advance(300_001)
    expired = orders.refused("ListStreamConsumers", StreamARN=ARN, NextToken=first["NextToken"])
    assert expired.code == "ExpiredNextTokenException"


def test_a_stream_has_twenty_consumers_of_different_names(orders: Api):
    for number in range(20):
        register(orders, f"c{number}")

    assert orders.refused("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="c0").code == "ResourceInUseException"
    assert orders.refused("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="x").code == "LimitExceededException"
    orders.call("DeregisterStreamConsumer", StreamARN=ARN, ConsumerName="c0")
    assert register(orders, "x")["ConsumerStatus"] == "ACTIVE"


def test_consumers_take_their_time_to_come_and_go(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=1)
    assert slow.refused("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="x").code == "ResourceInUseException"
    slow.clock.advance(10_000)

    def status() -> str:
        fields = {"StreamARN": ARN, "ConsumerName": "c0"}
        return slow.call("DescribeStreamConsumer", **fields)["ConsumerDescription"]["ConsumerStatus"]

    for number in range(5):
        assert register(slow, f"c{number}")["ConsumerStatus"] == "CREATING"
    sixth = slow.refused("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="c5")
    assert sixth.code == "LimitExceededException"
    slow.clock.advance(10_000)
    assert status() == "ACTIVE"
    slow.call("DeregisterStreamConsumer", StreamARN=ARN, ConsumerName="c0")
    assert status() == "DELETING"
    slow.clock.advance(10_000)
    gone = slow.refused("DescribeStreamConsumer", StreamARN=ARN, ConsumerName="c0")
    assert gone.code == "ResourceNotFoundException"


def test_a_stream_with_consumers_is_deleted_when_that_is_enforced(orders: Api):
    register(orders)

    assert orders.refused("DeleteStream", StreamName="orders").code == "ResourceInUseException"
    assert orders.refused("DeleteStream", StreamName="orders", EnforceConsumerDeletion=False).status == 400
    orders.call("DeleteStream", StreamName="orders", EnforceConsumerDeletion=True)
    orders.call("CreateStream", StreamName="orders", ShardCount=1)
    assert orders.call("ListStreamConsumers", StreamARN=ARN)["Consumers"] == []


@pytest.mark.parametrize(
    ("operation", "rate"),
    [("DescribeStreamConsumer", 20), ("DeregisterStreamConsumer", 5), ("ListStreamConsumers", 5)],
)
def test_operations_on_consumers_have_a_rate_per_stream(limited: Api, operation: str, rate: int):
    for name in ("orders", "others"):
        limited.call("CreateStream", StreamName=name, ShardCount=1)

    def code(stream: str) -> str:
        fields = {"StreamARN": ARN.replace("orders", stream)}
        named = {} if operation == "ListStreamConsumers" else {"ConsumerName": "lake"}
        response = limited.respond(operation, **fields, **named)
        return "LimitExceeded" if b"LimitExceeded" in response.body else "admitted"

    assert [code("orders") for _ in range(rate + 1)] == ["admitted"] * rate + ["LimitExceeded"]
    assert code("others") == "admitted"
