"""Events of a subscription as pages, wherever the network has cut them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pybase64 import b64encode

from lakestream.errors import (
    KinesisAnswerError,
    KinesisDeniedError,
    KinesisError,
    KinesisUnavailableError,
    SettingsError,
    StreamNotFoundError,
)
from lakestream.kinesis import KinesisSettings, RangeReader, RecordPage
from lakestream.kinesis.consumer import require_consumer
from lakestream.kinesis.port import Consumer
from lakestream.kinesis.subscription import pushed_pages
from lakestream.model import Finding, Position, ShardRange, after, at
from lakestream.testing.fake_kinesis import FakeKinesis
from lakestream_localkinesis.eventstream import render_frame

SHARD = "shardId-000000000000"


def event(numbers: list[int], following: str | None = "1") -> bytes:
    records = [
        {
            "SequenceNumber": str(number),
            "ApproximateArrivalTimestamp": 1.25,
            "Data": b64encode(b"%d" % number).decode(),
            "PartitionKey": "k",
        }
        for number in numbers
    ]
    more = {} if following is None else {"ContinuationSequenceNumber": following}
    payload = orjson.dumps({"Records": records, "MillisBehindLatest": 7, **more})
    return render_frame({":message-type": "event", ":event-type": "SubscribeToShardEvent"}, payload)


BEGINNING = render_frame({":message-type": "event", ":event-type": "initial-response"}, b"{}")
BODY = BEGINNING + event([1, 2]) + event([]) + event([3], following=None)


@given(st.lists(st.integers(0, len(BODY)), max_size=6))
def test_pages_are_whole_however_they_come(cuts: list[int]) -> None:
    ends = [0, *sorted(cuts), len(BODY)]
    pages = list(pushed_pages(BODY[start:end] for start, end in pairwise(ends)))
    assert [list(page.data) for page in pages] == [[b"1", b"2"], [], [b"3"]]
    assert [page.next_iterator for page in pages] == ["1", "1", None]
    assert {(page.millis_behind, *page.arrivals) for page in pages[::2]} == {(7, 1250000, 1250000), (7, 1250000)}


@pytest.mark.parametrize(
    ("frame", "error", "said"),
    [
        (
            render_frame(
                {":message-type": "exception", ":exception-type": "ResourceInUseException"}, b'{"message":"taken"}'
            ),
            KinesisUnavailableError,
            "^ResourceInUseException: taken$",
        ),
        (
            render_frame({":message-type": "exception", ":exception-type": "KMSAccessDeniedException"}, b"{}"),
            KinesisDeniedError,
            "KMSAccessDenied",
        ),
        (
            render_frame({":message-type": "error", ":error-code": "503", ":error-message": "later"}, b""),
            KinesisUnavailableError,
            "503: later",
        ),
        (event([2, 1]), KinesisAnswerError, "SubscribeToShard"),
        (BODY[:-1] + b"?", KinesisAnswerError, "SubscribeToShard"),
    ],
)
def test_what_ends_a_subscription_is_told(frame: bytes, error: type[KinesisError], said: str) -> None:
    with pytest.raises(error, match=said):
        list(pushed_pages([frame]))


def filled() -> tuple[FakeKinesis, ShardRange]:
    stream = FakeKinesis()
    records = []
    for number in range(10):
        records.append(stream.put(SHARD, b"%d" % number))
        stream.advance(timedelta(seconds=1))
    first, last = records[1], records[8]
    piece = ShardRange(
        SHARD, at(first.sequence), after(last.sequence), first.sequence, first.arrival, last.arrival, False, 0, 0
    )
    stream.page_size = 2
    return stream, piece


def read(stream: FakeKinesis, piece: ShardRange, pushed: object = None) -> list[bytes]:
    subscribe = pushed or stream.subscribe
    reader = RangeReader(
        stream,
        KinesisSettings("fake", "eu-west-1", patience=30.0),
        subscribe=subscribe,  # type: ignore[arg-type]
        sleep=stream.sleep,
        monotonic=stream.monotonic,
    )
    parts = [part for part in reader.read(piece) if not isinstance(part, Finding)]
    return [data for part in parts for data in part.column("data").to_pylist()]


ALL = [b"%d" % number for number in range(1, 9)]


@pytest.mark.parametrize(("pages", "asked"), [(4, 0), (9, 0), (3, 1), (-3, 1), (1, 3), (0, 4), (None, 4)])
def test_what_is_not_pushed_is_asked_for(pages: int | None, asked: int) -> None:
    stream, piece = filled()
    stream.pushes.extend([] if pages is None else [pages])
    assert read(stream, piece) == ALL
    assert (stream.calls["GetRecords"], stream.calls["SubscribeToShard"]) == (asked, 1)


def test_pushes_that_go_back_are_not_taken() -> None:
    stream, piece = filled()
    stream.pushes.append(2)

    def pushed(shard_id: str, start: Position) -> Iterator[RecordPage]:
        pages = list(stream.subscribe(shard_id, start))
        yield from (*pages, pages[0])

    assert read(stream, piece, pushed) == ALL


def test_a_right_that_is_missing_is_no_reason_to_ask() -> None:
    stream, piece = filled()

    def pushed(shard_id: str, start: Position) -> Iterator[RecordPage]:
        raise KinesisDeniedError("AccessDeniedException: SubscribeToShard")

    with pytest.raises(KinesisDeniedError):
        read(stream, piece, pushed)


def missing(arn: str) -> Consumer:
    raise StreamNotFoundError("ResourceNotFoundException")


@pytest.mark.parametrize("status", ["ACTIVE", "CREATING"])
def test_a_consumer_that_is_there_is_taken(status: str) -> None:
    require_consumer("its arn", "arn of orders", lambda _: Consumer("arn of orders", status), "field")


@pytest.mark.parametrize(
    ("describe", "said"),
    [
        (missing, "^field: Kinesis knows no consumer its arn.*--stream-arn arn of orders"),
        (lambda _: Consumer("arn of orders", "DELETING"), "^field: .* is being deregistered"),
        (lambda _: Consumer("arn of others", "ACTIVE"), "^field: .* is of arn of others, and arn of orders is read"),
    ],
)
def test_a_consumer_that_nothing_is_pushed_to_is_refused(describe: object, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        require_consumer("its arn", "arn of orders", describe, "field")  # type: ignore[arg-type]
