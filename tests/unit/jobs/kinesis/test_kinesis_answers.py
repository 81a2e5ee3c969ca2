"""Answers of Kinesis, as values and errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pybase64 import b64decode

from lakestream.errors import (
    AccessDeniedError,
    ExpiredIteratorError,
    KinesisDeniedError,
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
from lakestream.model import HashKeys


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


def answer_of(*records: object, **fields: object) -> dict[str, object]:
    return {"Records": list(records), "NextShardIterator": "AAA", "MillisBehindLatest": 7, **fields}


def record_of(sequence: object = "495", **fields: object) -> dict[str, object]:
    return {
        "SequenceNumber": sequence,
        "ApproximateArrivalTimestamp": 1769860800.123,
        "Data": "AP8=",
        "PartitionKey": "k",
        **fields,
    }


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([], "."),
        (None, "."),
        ("Records", "."),
        ({}, "Records"),
        (answer_of(Records=None), "Records is None"),
        (answer_of(Records=""), "Records is ''"),
        (answer_of(MillisBehindLatest=None), "MillisBehindLatest is None"),
        (answer_of(NextShardIterator=7), "NextShardIterator is 7"),
        (answer_of(None), "record 0 of 1 is no object"),
        (answer_of(record_of(), record_of(None)), r"record 1 of 2 \(SequenceNumber None\): SequenceNumber is None"),
        (answer_of(record_of(495)), "SequenceNumber is 495"),
        (answer_of(record_of("")), "SequenceNumber is ''"),
        (answer_of(record_of("-5")), "SequenceNumber is '-5'"),
        (answer_of(record_of("495"), record_of("49x"), record_of("500")), "record 1 of 3.*SequenceNumber is '49x'"),
        (answer_of(record_of("495"), record_of("495")), "record 1 of 2: SequenceNumber 495 comes behind 495"),
        (answer_of(record_of("99"), record_of("100"), record_of("98")), "SequenceNumber 98 comes behind 100"),
        (answer_of(record_of(ApproximateArrivalTimestamp=None)), "ApproximateArrivalTimestamp is None"),
        (answer_of(record_of(ApproximateArrivalTimestamp="1769860800")), "ApproximateArrivalTimestamp is '1769860800'"),
        (answer_of(record_of(ApproximateArrivalTimestamp=1769860800123.0)), "ApproximateArrivalTimestamp"),
        (answer_of(record_of(ApproximateArrivalTimestamp=-1)), "ApproximateArrivalTimestamp is -1"),
        (answer_of(record_of(PartitionKey=5)), r"\(SequenceNumber '495'\): PartitionKey is 5"),
        (answer_of(record_of(Data=None)), "Data is None"),
        (answer_of(record_of(Data="AP8")), "Data is 'AP8'"),
        (answer_of(record_of(Data="AP 8=")), "Data is 'AP 8='"),
    ],
)
def test_a_page_that_makes_no_sense(answer: object, told: str) -> None:
    with pytest.raises(answers.NONSENSE, match=told):
        answers.record_page(orjson.dumps(answer))


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4)
    | st.sampled_from(["495", "496", "0", "AP8=", "9" * 60]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=4,
)


@given(numbers=st.lists(st.integers(0, 10**56), unique=True, max_size=4).map(sorted), damage=st.data())
def test_a_damaged_page_is_nonsense_or_still_a_page(numbers: list[int], damage: st.DataObject) -> None:
    """Whatever Kinesis sends instead of one value: what is taken for a page has its types and its order."""
    answer = answer_of(*(record_of(str(number)) for number in numbers))
    records = answer["Records"]
    assert isinstance(records, list)
    target = damage.draw(st.sampled_from([answer, *records]))
    name = damage.draw(st.sampled_from(sorted(target)))
    if damage.draw(st.booleans()):
        del target[name]
    else:
        target[name] = damage.draw(values)
    try:
        page = answers.record_page(orjson.dumps(answer))
    except answers.NONSENSE:
        return
    assert [str(int(text)) for text in page.sequences] == [r["SequenceNumber"] for r in answer["Records"]]  # type: ignore[attr-defined]
    assert [int(text) for text in page.sequences] == sorted({int(text) for text in page.sequences})
    assert all(isinstance(data, bytes) for data in page.data)
    assert all(isinstance(key, str | None) for key in page.partition_keys)
    assert all(arrival_time(micros) for micros in page.arrivals)
    assert isinstance(page.next_iterator, str | None)
    assert isinstance(page.millis_behind, int)


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
    hash_keys = {"StartingHashKey": "0", "EndingHashKey": "9"}
    body = orjson.dumps(
        {
            "NextToken": "more",
            "Shards": [
                {"ShardId": "s-0", "HashKeyRange": hash_keys, "SequenceNumberRange": {"StartingSequenceNumber": "1"}},
                {
                    "ShardId": "s-1",
                    "ParentShardId": "s-0",
                    "AdjacentParentShardId": "s-9",
                    "HashKeyRange": hash_keys,
                    "SequenceNumberRange": {"StartingSequenceNumber": "1", "EndingSequenceNumber": "5"},
                },
            ],
        }
    )
    assert answers.shard_page(body) == (
        [Shard("s-0", (), HashKeys(0, 9), None), Shard("s-1", ("s-0", "s-9"), HashKeys(0, 9), 5)],
        "more",
    )


@pytest.mark.parametrize(
    "shard",
    [
        None,
        {},
        {"ShardId": 5, "SequenceNumberRange": {}},
        {"ShardId": "s-0", "HashKeyRange": {"StartingHashKey": "0", "EndingHashKey": "9"}},
        {"ShardId": "s-0", "SequenceNumberRange": {}},
        {
            "ShardId": "s-0",
            "SequenceNumberRange": {},
            "HashKeyRange": {"StartingHashKey": "9", "EndingHashKey": "0"},
        },
        {"ShardId": "s-0", "SequenceNumberRange": {"EndingSequenceNumber": "x"}},
        {"ShardId": "s-0", "SequenceNumberRange": {}, "ParentShardId": 3},
    ],
)
def test_shards_that_make_no_sense(shard: object) -> None:
    with pytest.raises(answers.NONSENSE):
        answers.shard_page(orjson.dumps({"Shards": [shard]}))


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
    assert answers.stream_summary(body) == StreamSummary("arn:x", created, timedelta(days=2), 3, True, True)


@pytest.mark.parametrize(("strategy", "by_key"), [("USER_PARTITION_KEY", True), ("AUTO", False)])
def test_who_places_records(strategy: str, by_key: bool) -> None:
    summary = {
        "StreamARN": "arn:x",
        "StreamCreationTimestamp": 1769860800.5,
        "RetentionPeriodHours": 48,
        "OpenShardCount": 3,
        "StreamStatus": "ACTIVE",
        "RecordDistributionStrategy": strategy,
    }
    assert answers.stream_summary(orjson.dumps({"StreamDescriptionSummary": summary})).places_by_key == by_key


@pytest.mark.parametrize(
    ("status", "body", "kind", "meaning", "text"),
    [
        (400, {"__type": "ExpiredIteratorException", "message": "old"}, ExpiredIteratorError, RetryLaterError, "old"),
        (400, {"__type": "ResourceInUseException"}, KinesisUnavailableError, RetryLaterError, "ResourceInUse"),
        (400, {"__type": "a.b#ResourceNotFoundException"}, StreamNotFoundError, PermanentError, "ResourceNotFound"),
        (400, {"__type": "ProvisionedThroughputExceededException:x"}, ThrottledError, RetryLaterError, "Provisioned"),
        (400, {"__type": "AccessDeniedException", "Message": "no"}, KinesisDeniedError, AccessDeniedError, "no"),
        (400, {"__type": "UnrecognizedClientException"}, KinesisDeniedError, PermanentError, "Unrecognized"),
        (400, {"__type": "ValidationException"}, KinesisRejectedError, PermanentError, "Validation"),
        (400, {"__type": "ExpiredTokenException"}, KinesisUnavailableError, RetryLaterError, "ExpiredToken"),
        (
            400,
            {"__type": "InvalidSignatureException", "message": "Signature expired: 20260131T120000Z is now"},
            KinesisUnavailableError,
            RetryLaterError,
            "Signature expired",
        ),
        (
            400,
            {"__type": "InvalidSignatureException", "message": "Signature not yet current: 20260131T120000Z is still"},
            KinesisUnavailableError,
            RetryLaterError,
            "not yet current",
        ),
        (
            400,
            {"__type": "InvalidSignatureException", "message": "The request signature we calculated does not match"},
            KinesisDeniedError,
            AccessDeniedError,
            "does not match",
        ),
        (
            400,
            {
                "__type": "InvalidArgumentException",
                "message": "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
                "timestampInMillis: 1593030726246, currentTimestampInMillis: 1593030726240",
            },
            KinesisUnavailableError,
            RetryLaterError,
            "cannot be greater",
        ),
        (
            400,
            {"__type": "InvalidArgumentException", "message": "Invalid"},
            KinesisRejectedError,
            PermanentError,
            "Inv",
        ),
        (500, {"__type": "Whatever"}, KinesisUnavailableError, RetryLaterError, "Whatever"),
        (503, "<html>busy</html>", KinesisUnavailableError, RetryLaterError, "HTTP 503.*busy"),
        (404, "[]", KinesisRejectedError, PermanentError, "HTTP 404"),
        (408, "", KinesisUnavailableError, RetryLaterError, "HTTP 408"),
        (429, "slow down", ThrottledError, RetryLaterError, "HTTP 429: slow down"),
        (400, {"__type": "RequestTimeoutException"}, KinesisUnavailableError, RetryLaterError, "RequestTimeout"),
        (400, {"__type": "TooManyRequestsException"}, ThrottledError, RetryLaterError, "TooManyRequests"),
    ],
)
def test_errors(status: int, body: object, kind: type[KinesisError], meaning: type[Exception], text: str) -> None:
    content = body.encode() if isinstance(body, str) else orjson.dumps(body)
    error = answers.error(status, content)
    assert type(error) is kind
    assert isinstance(error, meaning)
    with pytest.raises(kind, match=text):
        raise error


@given(st.text("ABab01+/=- _\n", max_size=8))
def test_data_is_strict_base64_or_refused(text: str) -> None:
    body = orjson.dumps(answer_of(record_of(Data=text)))
    try:
        expected = b64decode(text, None, True)
    except ValueError:
        with pytest.raises(answers.NONSENSE, match="Data is"):
            answers.record_page(body)
    else:
        assert answers.record_page(body).data == [expected]
