"""PutRecords as bytes."""

from __future__ import annotations

import base64
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.errors import NotWrittenError, OutcomeUnknownError, PutRecordsError, RefusedError
from lakestream_loadgen.kinesis.retry import RetryPolicy
from lakestream_loadgen.kinesis.wire import call_error, decode_answer, encode_request, records_named, sizes_of
from lakestream_loadgen.records import Record

records = st.builds(Record, st.text(), st.text(max_size=256), st.binary(max_size=300))


@given(st.text(min_size=1), st.lists(records, max_size=20))
def test_a_request_says_what_it_was_given(stream: str, batch: list[Record]) -> None:
    request = json.loads(encode_request(stream, batch))
    assert request["StreamName"] == stream
    assert [base64.b64decode(entry["Data"]) for entry in request["Records"]] == [record.data for record in batch]
    assert [entry["PartitionKey"] for entry in request["Records"]] == [record.partition_key for record in batch]


def test_sizes_count_data_and_keys_before_base64() -> None:
    assert sizes_of([Record("e1", "key", b"12345"), Record("e2", "k", b"")]) == (5, 9)
    assert sizes_of([Record("e3", "誕生日", b"12345")]) == (5, 14)


def answer(*records: dict[str, str], failed: int = 0) -> bytes:
    return json.dumps({"FailedRecordCount": failed, "Records": list(records)}).encode()


def test_an_answer_without_failures_has_no_errors() -> None:
    read = decode_answer(answer({"ShardId": "s0", "SequenceNumber": "7"}, {"ShardId": "s1", "SequenceNumber": "8"}), 2)
    assert (read.shard_ids, read.sequence_numbers, read.errors) == (["s0", "s1"], ["7", "8"], ())


def test_partial_failures_are_read_record_by_record() -> None:
    body = answer({"ShardId": "s0", "SequenceNumber": "7"}, {"ErrorCode": "InternalFailure"}, failed=1)
    read = decode_answer(body, 2)
    assert read.errors == [None, "InternalFailure"]
    assert read.sequence_numbers == ["7", None]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        answer({"ShardId": "s0", "SequenceNumber": "7"}),
        answer({"ShardId": "s0"}, {"ShardId": "s0", "SequenceNumber": "8"}),
        answer({"ErrorCode": "InternalFailure"}, {"ShardId": "s0"}, failed=1),
    ],
)
def test_an_answer_to_something_else_leaves_the_outcome_unknown(body: bytes) -> None:
    with pytest.raises(OutcomeUnknownError):
        decode_answer(body, 2)


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, b'{"__type":"ProvisionedThroughputExceededException"}', NotWrittenError, "Provisioned"),
        (400, b'{"__type":"com.amazonaws#LimitExceededException"}', NotWrittenError, "LimitExceeded"),
        (400, b'{"__type":"ExpiredTokenException","message":"x"}', NotWrittenError, "ExpiredToken"),
        (400, b'{"__type":"ResourceNotFoundException","message":"Stream x"}', RefusedError, "Stream x"),
        (400, b'{"__type":"RequestTimeoutException"}', OutcomeUnknownError, "RequestTimeout"),
        (400, b'{"__type":"TooManyRequestsException"}', NotWrittenError, "TooManyRequests"),
        (403, b'{"__type":"ExpiredToken"}', NotWrittenError, "ExpiredToken"),
        (408, b"<html>", OutcomeUnknownError, "HTTP 408"),
        (408, b'{"__type":"Slow"}', OutcomeUnknownError, "Slow"),
        (429, b"", NotWrittenError, "HTTP 429"),
        (429, b'{"__type":"SlowDown"}', NotWrittenError, "SlowDown"),
        (403, b"", RefusedError, "HTTP 403"),
        (413, b"<html>", RefusedError, "HTTP 413"),
        (500, b'{"__type":"InternalFailure"}', OutcomeUnknownError, "InternalFailure"),
        (503, b"[1]", OutcomeUnknownError, "HTTP 503"),
    ],
)
def test_what_an_error_means_for_the_records(status: int, body: bytes, kind: type[PutRecordsError], code: str) -> None:
    error = call_error(status, body)
    assert type(error) is kind
    assert code in str(error)


@given(st.integers(1, 14), st.integers())
def test_delays_double_up_to_the_cap_and_are_jittered(attempts: int, seed: int) -> None:
    delay = RetryPolicy(base=0.1, cap=5.0, attempts=15).delay(attempts, Random(seed))
    assert delay is not None
    assert 0 <= delay <= min(5.0, 0.1 * 2 ** (attempts - 1))


def test_the_last_attempt_is_the_last() -> None:
    assert RetryPolicy(attempts=3).delay(3, Random(1)) is None
    assert RetryPolicy(attempts=3).delay(2, Random(1)) is not None


@pytest.mark.parametrize(
    ("message", "places"),
    [
        (
            "1 validation error detected: Value '' at 'records.1.member.partitionKey' failed to satisfy constraint: …",
            {0},
        ),
        (
            "2 validation errors detected: Value at 'records.3.member.data' …; Value at 'records.500.member.data' …",
            {2, 499},
        ),
        ("records.7.member.1048577 bytes of data and partition key exceed the maximum record size", {6}),
        ("1 validation error detected: Value 'a b' at 'streamName' failed to satisfy constraint: …", set()),
        ("Stream orders under account 000000000000 not found.", set()),
    ],
)
def test_a_refusal_may_name_the_records_that_it_is_for(message: str, places: set[int]) -> None:
    assert records_named(message) == places
