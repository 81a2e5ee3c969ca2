"""Answers of Kinesis, as values and errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from lakestream.errors import (
    ExpiredIteratorError,
    KinesisError,
    KinesisRejectedError,
    KinesisUnavailableError,
    PermanentError,
    RetryLaterError,
    StreamNotFoundError,
    ThrottledError,
)
from lakestream.kinesis import answers
from lakestream.kinesis.pages import arrival_time
from lakestream.kinesis.port import Shard, StreamSummary


def test_a_page_of_records() -> None:
    page = answers.record_page(
        b'{"Records":[{"SequenceNumber":"495","ApproximateArrivalTimestamp":1769860800.123,'
        b'"Data":"AP8=","PartitionKey":"k\\u00e9"}],"NextShardIterator":"AAA","MillisBehindLatest":7}'
    )
    assert (page.sequences, page.data, page.partition_keys) == (["495"], [b"\x00\xff"], ["ké"])
    assert arrival_time(page.arrivals[0]) == datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=UTC)
    assert (page.next_iterator, page.at_tip, len(page)) == ("AAA", False, 1)


def test_a_record_of_a_stream_that_distributes_by_itself_has_no_partition_key() -> None:
    page = answers.record_page(
        b'{"Records":[{"SequenceNumber":"495","ApproximateArrivalTimestamp":1769860800.123,"Data":"AP8="}],'
        b'"NextShardIterator":"AAA","MillisBehindLatest":7}'
    )
    assert (page.sequences, page.data, page.partition_keys) == (["495"], [b"\x00\xff"], [None])


@pytest.mark.parametrize("next_iterator", [b"", b',"NextShardIterator":null'])
def test_the_end_of_a_closed_shard(next_iterator: bytes) -> None:
    page = answers.record_page(b'{"Records":[],"MillisBehindLatest":0' + next_iterator + b',"ChildShards":[]}')
    assert page.next_iterator is None
    assert page.at_tip


@pytest.mark.parametrize("millis", [0, 1, 123, 999])
def test_arrivals_keep_their_milliseconds(millis: int) -> None:
    for second in range(1_769_860_800, 1_769_860_900):
        body = orjson.dumps(
            {
                "Records": [
                    {
                        "SequenceNumber": "1",
                        "ApproximateArrivalTimestamp": float(f"{second}.{millis:03d}"),
                        "Data": "",
                        "PartitionKey": "k",
                    }
                ],
                "MillisBehindLatest": 0,
            }
        )
        assert answers.record_page(body).arrivals == [second * 1_000_000 + millis * 1000]


def test_a_page_of_shards() -> None:
    keys = {"StartingHashKey": "0", "EndingHashKey": "9"}
    body = orjson.dumps(
        {
            "NextToken": "more",
            "Shards": [
                {"ShardId": "s-0", "HashKeyRange": keys, "SequenceNumberRange": {"StartingSequenceNumber": "1"}},
                {
                    "ShardId": "s-1",
                    "ParentShardId": "s-0",
                    "AdjacentParentShardId": "s-9",
                    "HashKeyRange": keys,
                    "SequenceNumberRange": {"StartingSequenceNumber": "1", "EndingSequenceNumber": "5"},
                },
            ],
        }
    )
    assert answers.shard_page(body) == ([Shard("s-0", (), None), Shard("s-1", ("s-0", "s-9"), 5)], "more")


def test_a_summary() -> None:
    body = orjson.dumps(
        {
            "StreamDescriptionSummary": {
                "StreamARN": "arn:x",
                "StreamCreationTimestamp": 1769860800.5,
                "RetentionPeriodHours": 48,
                "OpenShardCount": 3,
                "StreamStatus": "UPDATING",
            }
        }
    )
    created = datetime(2026, 1, 31, 12, 0, 0, 500000, tzinfo=UTC)
    assert answers.stream_summary(body) == StreamSummary("arn:x", created, timedelta(days=2), 3, is_updating=True)


@pytest.mark.parametrize(
    ("status", "body", "kind", "meaning", "text"),
    [
        (400, {"__type": "ExpiredIteratorException", "message": "old"}, ExpiredIteratorError, RetryLaterError, "old"),
        (400, {"__type": "ResourceInUseException"}, KinesisUnavailableError, RetryLaterError, "ResourceInUse"),
        (400, {"__type": "a.b#ResourceNotFoundException"}, StreamNotFoundError, PermanentError, "ResourceNotFound"),
        (400, {"__type": "ProvisionedThroughputExceededException:x"}, ThrottledError, RetryLaterError, "Provisioned"),
        (400, {"__type": "AccessDeniedException", "Message": "no"}, KinesisRejectedError, PermanentError, "no"),
        (400, {"__type": "ExpiredTokenException"}, KinesisUnavailableError, RetryLaterError, "ExpiredToken"),
        (500, {"__type": "Whatever"}, KinesisUnavailableError, RetryLaterError, "Whatever"),
        (503, "<html>busy</html>", KinesisUnavailableError, RetryLaterError, "HTTP 503.*busy"),
        (404, "[]", KinesisRejectedError, PermanentError, "HTTP 404"),
    ],
)
def test_errors(status: int, body: object, kind: type[KinesisError], meaning: type[Exception], text: str) -> None:
    content = body.encode() if isinstance(body, str) else orjson.dumps(body)
    error = answers.error(status, content)
    assert type(error) is kind
    assert isinstance(error, meaning)
    with pytest.raises(kind, match=text):
        raise error
