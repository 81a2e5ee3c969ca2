"""SubscribeToShard: what is pushed, from where, how fast, until when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import cbor2
import pytest
from botocore.eventstream import EventStreamBuffer

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.faults import Fault, FaultKind
from lakestream_localkinesis.http import Request
from tests.unit.localkinesis.conftest import Api, subscribe

if TYPE_CHECKING:
    from collections.abc import Iterable

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
SHARD = "shardId-000000000000"


def open_stream(api: Api, **fields: Any) -> str:
    """A stream with a consumer, whose ARN is returned."""
    api.call("CreateStream", StreamName="orders", ShardCount=1, **fields)
    arn: str = api.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="lake")["Consumer"]["ConsumerARN"]
    return arn


def data(events: Iterable[dict[str, Any]]) -> list[bytes]:
    return [record["Data"] for event in events for record in event["Records"]]


def test_records_are_pushed_as_they_come(api: Api):
    consumer = open_stream(api)
    put = api.put("orders", b"before", "clé")
    subscriber = subscribe(api, consumer, SHARD)

    [event] = subscriber.pages()
    [record] = event["Records"]
    assert (record["Data"], record["PartitionKey"]) == (b"before", "clé")
    assert record["SequenceNumber"] == put["SequenceNumber"]
    assert record["ApproximateArrivalTimestamp"].timestamp() == 1_700_000_000
    assert (event["MillisBehindLatest"], "ChildShards" in event) == (0, False)
    api.put("orders", b"after")
    assert data(subscriber.pages()) == [b"after"]
    assert list(subscriber.pages()) == []


def test_a_silent_shard_tells_where_it_is_every_five_seconds(api: Api):
    consumer = open_stream(api)
    subscriber = subscribe(api, consumer, SHARD, "LATEST")

    [first] = subscriber.pages()
    assert (first["Records"], first["MillisBehindLatest"]) == ([], 0)
    api.clock.advance(4_999)
    assert subscriber.poll() is None
    api.clock.advance(1)
    [second] = subscriber.pages()
    assert second["Records"] == []
    # Where it is goes on with the time, so that nobody who comes back looks through the silence again.
    assert int(second["ContinuationSequenceNumber"]) > int(first["ContinuationSequenceNumber"])


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
def test_a_long_silence_is_crossed_also_by_short_subscriptions(api: Api, kind: str):
    consumer = open_stream(api)
    api.put("orders", b"before")
    api.clock.advance(20 * 3600 * 1000)
    api.put("orders", b"after")
    start: dict[str, Any] = {"kind": "TRIM_HORIZON"}
    got: list[bytes] = []
    for _ in range(20 * 4 + 1):
        event = subscribe(api, consumer, SHARD, **start).poll()
        assert event is not None
        got += data([event])
        start = {"kind": kind, "SequenceNumber": event["ContinuationSequenceNumber"]}
        api.clock.advance(5_000)

    assert got == [b"before", b"after"]


@pytest.mark.parametrize("kind", ["AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"])
@pytest.mark.parametrize("start", ["TRIM_HORIZON", "LATEST"])
def test_it_continues_where_it_was_by_either_type(api: Api, kind: str, start: str):
    consumer = open_stream(api)
    subscriber = subscribe(api, consumer, SHARD, start)
    expected: list[bytes] = []
    got: list[bytes] = []
    for number in range(6):
        for event in subscriber.pages():
            got += data([event])
            continuation = event["ContinuationSequenceNumber"]
        api.clock.advance(5_000)
        subscriber = subscribe(api, consumer, SHARD, kind, SequenceNumber=continuation)
        if number % 2 == 0:
            expected += [b"%d" % number, b"more"]
            api.put_many("orders", (b"%d" % number, "k"), (b"more", "k"))
    got += data(subscriber.pages())

    assert got == expected


def test_it_begins_where_it_is_told(api: Api):
    consumer = open_stream(api)
    numbers = []
    for number in range(4):
        numbers.append(api.put("orders", b"%d" % number)["SequenceNumber"])
        api.clock.advance(5_000)

    def first(kind: str, **position: Any) -> list[bytes]:
        api.clock.advance(5_000)
        return data(subscribe(api, consumer, SHARD, kind, **position).pages())

    assert first("AT_SEQUENCE_NUMBER", SequenceNumber=numbers[2]) == [b"2", b"3"]
    assert first("AFTER_SEQUENCE_NUMBER", SequenceNumber=numbers[2]) == [b"3"]
    assert first("AT_TIMESTAMP", Timestamp=1_700_000_009) == [b"2", b"3"]
    assert first("LATEST") == []


def test_the_end_of_a_shard_names_its_children_and_ends(api: Api):
    consumer = open_stream(api)
    api.put("orders", b"last")
    subscriber = subscribe(api, consumer, SHARD)
    api.call("SplitShard", StreamName="orders", ShardToSplit=SHARD, NewStartingHashKey=str(2**127))

    [event] = subscriber.pages()

    assert data([event]) == [b"last"]
    assert [child["ShardId"][-1] for child in event["ChildShards"]] == ["1", "2"]
    assert event["ChildShards"][0]["ParentShards"] == [SHARD]
    assert "ContinuationSequenceNumber" not in event
    assert subscriber.events.ended


def test_it_ends_after_five_minutes(api: Api):
    subscriber = subscribe(api, open_stream(api), SHARD)
    api.clock.advance(299_999)
    assert [event["Records"] for event in subscriber.pages()] == [[]]
    api.put("orders", b"too late")
    api.clock.advance(1)

    assert list(subscriber.pages()) == []
    assert subscriber.events.ended


def test_a_second_subscription_is_refused_and_then_takes_over(api: Api):
    consumer = open_stream(api)
    first = subscribe(api, consumer, SHARD)
    fields = {"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": {"Type": "LATEST"}}

    api.clock.advance(4_999)
    assert api.refused("SubscribeToShard", **fields).code == "ResourceInUseException"
    api.clock.advance(1)
    assert api.refused("SubscribeToShard", **fields, DryRun=True).code == "DryRunOperationException"
    assert data(first.pages()) == []
    second = subscribe(api, consumer, SHARD)
    api.put("orders", b"x")

    [taken] = first.pages()
    assert taken["Code"] == "ResourceInUseException"
    assert first.events.ended
    assert data(second.pages()) == [b"x"]


def test_consumers_do_not_share_what_they_read(limited: Api):
    consumer = open_stream(limited)
    other = limited.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="other")["Consumer"]["ConsumerARN"]
    subscribers = [subscribe(limited, arn, SHARD) for arn in (consumer, other)]
    for _ in range(4):
        limited.put("orders", b"x" * (MIB - 1), "k")
        limited.clock.advance(1000)

    # 2 MiB/s each: half a second for each record, whatever GetRecords and the other have read.
    limited.read(limited.iterator("orders", SHARD))
    for subscriber in subscribers:
        assert len(data(subscriber.pages())) == 1
    for _ in range(3):
        limited.clock.advance(499)
        assert [subscriber.poll() for subscriber in subscribers] == [None, None]
        limited.clock.advance(1)
        assert [len(data(subscriber.pages())) for subscriber in subscribers] == [1, 1]


def test_a_backlog_tells_how_far_behind_it_is(api: Api):
    consumer = open_stream(api)
    for number in range(3):
        api.put("orders", b"%d" % number * (MIB // 2))
        api.clock.advance(1000)

    events = list(subscribe(api, consumer, SHARD).pages())

    assert [len(event["Records"]) for event in events] == [1, 1, 1]
    assert [event["MillisBehindLatest"] for event in events] == [3000, 2000, 0]


@pytest.mark.parametrize("how", ["deregistered", "deleted"])
def test_it_ends_with_its_consumer_or_stream(api: Api, how: str):
    subscriber = subscribe(api, open_stream(api), SHARD)
    if how == "deregistered":
        api.call("DeregisterStreamConsumer", StreamARN=ARN, ConsumerName="lake")
    else:
        api.call("DeleteStream", StreamName="orders", EnforceConsumerDeletion=True)

    [error] = subscriber.pages()

    assert error["Code"] == "ResourceNotFoundException"
    assert subscriber.events.ended


def test_a_request_that_cannot_be_met_is_an_ordinary_error(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=1)
    slow.clock.advance(10_000)
    consumer = slow.call("RegisterStreamConsumer", StreamARN=ARN, ConsumerName="lake")["Consumer"]["ConsumerARN"]
    good = {"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": {"Type": "LATEST"}}

    assert slow.refused("SubscribeToShard", **good).code == "ResourceInUseException"
    slow.clock.advance(10_000)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"ShardId": "shardId-000000000007"}, "ResourceNotFoundException"),
        ({"ConsumerARN": f"{ARN}/consumer/lake:1"}, "ResourceNotFoundException"),
        ({"ConsumerARN": f"{ARN}/consumer/lake:1".replace("orders", "none")}, "ResourceNotFoundException"),
        ({"ConsumerARN": consumer.replace("000000000000", "123456789012")}, "AccessDeniedException"),
        ({"ConsumerARN": None}, "ValidationException"),
        ({"StartingPosition": None}, "ValidationException"),
        ({"StartingPosition": {}}, "ValidationException"),
        ({"StartingPosition": {"Type": "NOW"}}, "ValidationException"),
        ({"StartingPosition": {"Type": "AT_TIMESTAMP"}}, "InvalidArgumentException"),
        ({"StartingPosition": {"Type": "AT_SEQUENCE_NUMBER"}}, "InvalidArgumentException"),
        ({"StartingPosition": {"Type": "AT_SEQUENCE_NUMBER", "SequenceNumber": "1"}}, "InvalidArgumentException"),
    ]
    for change, code in cases:
        assert slow.refused("SubscribeToShard", **{**good, **change}).code == code
    assert data(subscribe(slow, consumer, SHARD).pages()) == []


def test_a_failure_of_the_server_itself_ends_the_stream_with_an_error(api: Api, monkeypatch: pytest.MonkeyPatch):
    subscriber = subscribe(api, open_stream(api), SHARD)

    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("lakestream_localkinesis.core.shard.Shard.read", broken)
    [error] = subscriber.pages()

    assert error["Code"] == "InternalFailureException"


def test_events_have_the_encoding_of_the_request(api: Api):
    consumer = open_stream(api)
    api.put("orders", b"\x00\xff")
    headers = {"x-amz-target": "Kinesis_20131202.SubscribeToShard", "content-type": "application/x-amz-cbor-1.1"}
    fields = {"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": {"Type": "TRIM_HORIZON"}}
    events = api.application.handle(Request("POST", "/", headers, cbor2.dumps(fields))).events
    assert events is not None
    frames = EventStreamBuffer()
    for _ in range(2):
        frames.add_data(events.poll(api.clock.now_ms()))

    opening, event = list(frames)

    assert opening.headers[":event-type"] == "initial-response"
    assert (event.headers[":content-type"], cbor2.loads(opening.payload)) == ("application/cbor", {})
    # The standard's times would be seconds; AWS's are milliseconds.
    told = cbor2.loads(event.payload, semantic_decoders={1: lambda value, _: value})
    [record] = told["Records"]
    assert (record["Data"], record["ApproximateArrivalTimestamp"]) == (b"\x00\xff", 1_700_000_000_000)


def test_a_fault_befalls_the_request(api: Api):
    consumer = open_stream(api)
    api.faults.add(Fault(FaultKind.INTERNAL_FAILURE, frozenset({"SubscribeToShard"}), times=1))
    fields = {"ConsumerARN": consumer, "ShardId": SHARD, "StartingPosition": {"Type": "LATEST"}}

    assert api.refused("SubscribeToShard", **fields).code == "InternalFailure"
    assert data(subscribe(api, consumer, SHARD).pages()) == []
