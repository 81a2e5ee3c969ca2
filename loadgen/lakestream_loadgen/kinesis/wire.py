"""PutRecords as bytes: the request built by hand, the answer read in one pass. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii
from operator import itemgetter

import orjson
from pybase64 import b64encode_as_string

from lakestream_loadgen.errors import NotWrittenError, OutcomeUnknownError, PutRecordsError, RefusedError
from lakestream_loadgen.records import Record

MAX_RECORDS = 500
"""Records in a PutRecords request, at most (Kinesis's limit)."""
MAX_BYTES = 5 * 1024 * 1024
"""Data and partition keys of a request, at most. Kinesis takes 10 MiB by now, older endpoints 5."""

_PARTITION_KEY = itemgetter(1)
_DATA = itemgetter(2)

THROTTLED = "ProvisionedThroughputExceededException"

_THROTTLES = frozenset(
    {
        THROTTLED,
        "LimitExceededException",
        "KMSThrottlingException",
        "ThrottlingException",
        "RequestLimitExceeded",
        # As AWS's own SDKs count what other services and proxies call throttling.
        "Throttling",
        "ThrottledException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
    }
)
# A new signature, with the credentials of that time, may do.
_SIGN_AGAIN = frozenset({"ExpiredTokenException", "ExpiredToken", "RequestExpired", "InvalidSignatureException"})
# Whoever says so below 500 has given up waiting, which says nothing of what was written.
_PASSING = frozenset(
    {
        "RequestTimeout",
        "RequestTimeoutException",
        "RequestAbortedException",
        "PriorRequestNotComplete",
        "InternalFailure",
        "InternalFailureException",
        "ServiceUnavailable",
    }
)


# Kinesis counts from 1: "Value '' at 'records.7.member.partitionKey' failed to satisfy constraint: …"
_NAMED = re.compile(r"\brecords\.([1-9][0-9]{0,2})\.member")


def size_of(record: Record) -> int:
    """Bytes that count against the limits: data, before base64, and partition key.

    Raises:
        UnicodeEncodeError: the key has half a pair of surrogates; Kinesis refuses all of a call, and names no record.
    """
    return len(record[1].encode()) + len(record[2])


def sizes_of(records: Sequence[Record]) -> tuple[int, int]:
    """Bytes of data, and those that count against the limits, of many records; likewise."""
    data = sum(map(len, map(_DATA, records)))
    return data, data + sum(map(len, map(str.encode, map(_PARTITION_KEY, records))))


def encode_request(stream: str, records: Sequence[Record]) -> bytes:
    """The body of a PutRecords request."""
    data = map(b64encode_as_string, map(_DATA, records))
    keys = map(encode_basestring_ascii, map(_PARTITION_KEY, records))
    # ASCII, all of it. As text, since bytes take twice as long to put together.
    entries = ",".join([f'{{"Data":"{text}","PartitionKey":{key}}}' for text, key in zip(data, keys, strict=True)])
    return f'{{"StreamName":{encode_basestring_ascii(stream)},"Records":[{entries}]}}'.encode("ascii")


@dataclass(frozen=True)
class Answer:
    """Per record, in the order of the request: where it was written, or why not."""

    shard_ids: Sequence[str | None]
    sequence_numbers: Sequence[str | None]
    errors: Sequence[str | None] = ()
    """Error codes, None for what was written; empty when everything was."""


def decode_answer(body: bytes, count: int) -> Answer:
    """Read the answer to a request of ``count`` records.

    Raises:
        OutcomeUnknownError: the answer is not one to such a request, so the records may have been written.
    """
    try:
        answer = orjson.loads(body)
        entries = answer["Records"]
        if len(entries) != count:
            raise ValueError(f"{len(entries)} records in the answer, {count} in the request")
        if not answer["FailedRecordCount"]:
            return Answer([entry["ShardId"] for entry in entries], [entry["SequenceNumber"] for entry in entries])
        errors = [entry.get("ErrorCode") for entry in entries]
        if any(error is None and not entry["SequenceNumber"] for entry, error in zip(entries, errors, strict=True)):
            raise ValueError("a record with neither an error nor a sequence number")
        return Answer(
            [entry.get("ShardId") for entry in entries],
            [entry.get("SequenceNumber") for entry in entries],
            errors,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutcomeUnknownError("UnreadableAnswer", str(error)) from error


def call_error(status: int, body: bytes) -> PutRecordsError:
    """What an HTTP status other than 200 means for the records of the call."""
    code, message = _error_of(body)
    code = code or f"HTTP {status}"
    if status == 429 or code in _THROTTLES or code in _SIGN_AGAIN:
        return NotWrittenError(code, message)
    if status >= 500 or status == 408 or code in _PASSING:
        return OutcomeUnknownError(code, message)
    return RefusedError(code, message)


def records_named(message: str) -> set[int]:
    """The places, from 0, of the records for which a call was refused as a whole, as far as the message names them."""
    return {int(place) - 1 for place in _NAMED.findall(message)}


def _error_of(body: bytes) -> tuple[str, str]:
    try:
        answer = orjson.loads(body)
        # Some services put a namespace before the name: "com.amazonaws…#ResourceNotFoundException".
        code = str(answer.get("__type", "")).rpartition("#")[2]
        return code, str(answer.get("message") or answer.get("Message") or "")
    except (ValueError, AttributeError):
        return "", ""
