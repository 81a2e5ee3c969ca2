"""JSON 1.1 answers of Kinesis as values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from operator import lt
from typing import Any, TypeVar

import msgspec
import orjson
from pybase64 import b64decode

from lakestream.errors import (
    ExpiredIteratorError,
    KinesisDeniedError,
    KinesisError,
    KinesisRejectedError,
    KinesisUnavailableError,
    StreamNotFoundError,
    ThrottledError,
)
from lakestream.kinesis.port import Consumer, RecordPage, Shard, StreamSummary
from lakestream.model import HashKeys

T = TypeVar("T")

NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError)
"""What the functions below raise for an answer that Kinesis's API does not allow."""

_ERRORS: dict[str, type[KinesisError]] = {
    "ResourceNotFoundException": StreamNotFoundError,
    "ExpiredIteratorException": ExpiredIteratorError,
    "ExpiredNextTokenException": ExpiredIteratorError,
    "ProvisionedThroughputExceededException": ThrottledError,
    "LimitExceededException": ThrottledError,
    "KMSThrottlingException": ThrottledError,
    "ThrottlingException": ThrottledError,
    "RequestLimitExceeded": ThrottledError,
    # As AWS's own SDKs count what other services and proxies call throttling, and what passes.
    "Throttling": ThrottledError,
    "ThrottledException": ThrottledError,
    "RequestThrottled": ThrottledError,
    "RequestThrottledException": ThrottledError,
    "TooManyRequestsException": ThrottledError,
    "RequestTimeout": KinesisUnavailableError,
    "RequestTimeoutException": KinesisUnavailableError,
    "RequestAbortedException": KinesisUnavailableError,
    "PriorRequestNotComplete": KinesisUnavailableError,
    "InternalFailure": KinesisUnavailableError,
    "InternalFailureException": KinesisUnavailableError,
    "ServiceUnavailable": KinesisUnavailableError,
    # The stream is being updated, and will have been soon.
    "ResourceInUseException": KinesisUnavailableError,
    # AWS answers these two when a token has just run out; the next attempt signs with a fresh one.
    "ExpiredTokenException": KinesisUnavailableError,
    "ExpiredToken": KinesisUnavailableError,
    "RequestExpired": KinesisUnavailableError,
    "AccessDeniedException": KinesisDeniedError,
    "KMSAccessDeniedException": KinesisDeniedError,
    "UnrecognizedClientException": KinesisDeniedError,
    "InvalidSignatureException": KinesisDeniedError,
}
_BY_STATUS: dict[int, type[KinesisError]] = {408: KinesisUnavailableError, 429: ThrottledError}
"""Of an answer below 500 whose code says nothing."""
_CLOCK_IS_WRONG = ("Signature expired", "Signature not yet current")
"""What AWS says of a signature whose time is more than five minutes off, in an InvalidSignatureException."""
_IS_YET_TO_COME = "timestampInMillis parameter cannot be greater than the currentTimestampInMillis"
"""What AWS says of AT_TIMESTAMP, in an InvalidArgumentException. A time that is asked for has passed by the clock of
the server that answered before: that of another one is milliseconds behind."""


class _Record(msgspec.Struct, gc=False):
    SequenceNumber: str
    ApproximateArrivalTimestamp: float
    Data: bytes
    # Streams that distribute records by themselves (RecordDistributionStrategy=AUTO) take them without a key.
    PartitionKey: str | None = None


class _Records(msgspec.Struct, gc=False):
    Records: list[_Record]
    MillisBehindLatest: int
    NextShardIterator: str | None = None
    ContinuationSequenceNumber: str | None = None
    """What a SubscribeToShardEvent has in place of the iterator, unless the shard has ended."""


_RECORDS = msgspec.json.Decoder(_Records)


def record_page(body: bytes) -> RecordPage:
    """The answer of GetRecords, or a SubscribeToShardEvent, with the number to go on behind as its next iterator.

    The hot path: one pass of a decoder in C, then one comprehension per column.
    """
    try:
        found = _RECORDS.decode(body)
        page = RecordPage(
            sequences=[r.SequenceNumber for r in found.Records],
            # Kinesis sends seconds with three decimals; a double holds them, but not its product with 1e6.
            arrivals=[round(r.ApproximateArrivalTimestamp * 1000) * 1000 for r in found.Records],
            partition_keys=[r.PartitionKey for r in found.Records],
            data=[r.Data for r in found.Records],
            next_iterator=found.NextShardIterator or found.ContinuationSequenceNumber or None,
            millis_behind=found.MillisBehindLatest,
        )
        if not _is_sound(page):
            raise ValueError("sequence numbers, arrival times or partition keys")
    except NONSENSE as error:
        answer = orjson.loads(body)
        if fault := _first_fault(_typed(list, answer["Records"], "Records")):
            raise ValueError(fault) from error
        _typed(int, answer["MillisBehindLatest"], "MillisBehindLatest")
        _typed(str, answer.get("NextShardIterator") or "", "NextShardIterator")
        raise
    return page


def _is_sound(page: RecordPage) -> bool:
    """Whether all values are of their type, and the records in order."""
    lengths = set(map(len, page.sequences))
    if not lengths:
        return True
    numbers: Sequence[Any] = page.sequences if len(lengths) == 1 else list(map(int, page.sequences))
    return (
        0 not in lengths
        and "".join(page.sequences).encode().isdigit()
        and all(map(lt, numbers, islice(numbers, 1, None)))
        and min(page.arrivals) >= 0
        and max(page.arrivals) < _END_OF_TIME
    )


_END_OF_TIME = 253_402_300_800_000_000
"""The year 10000, in microseconds."""


def _first_fault(records: list[Any]) -> str | None:
    """What is wrong with the first record that is; None: nothing is."""
    before = -1
    for index, record in enumerate(records):
        where = f"record {index} of {len(records)}"
        if not isinstance(record, dict):
            return f"{where} is no object"
        for name, is_right in _RECORD.items():
            if not _holds(is_right, record.get(name)):
                number = record.get("SequenceNumber")
                return f"{where} (SequenceNumber {_brief(number)}): {name} is {_brief(record.get(name))}"
        if int(record["SequenceNumber"]) <= before:
            return f"{where}: SequenceNumber {record['SequenceNumber']} comes behind {before}"
        before = int(record["SequenceNumber"])
    return None


_RECORD: dict[str, Callable[[Any], bool]] = {
    "SequenceNumber": lambda value: value.isdecimal() and value.isascii(),
    "ApproximateArrivalTimestamp": lambda value: 0 <= round(value * 1000) * 1000 < _END_OF_TIME,
    "PartitionKey": lambda value: value is None or isinstance(value, str),
    "Data": lambda value: b64decode(value, None, True) is not None,
}


def _holds(is_right: Callable[[Any], bool], value: Any) -> bool:
    try:
        return is_right(value)
    except NONSENSE:
        return False


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _typed(kind: type[T], value: Any, name: str) -> T:
    if not isinstance(value, kind):
        raise TypeError(f"{name} is {_brief(value)}")
    return value


def shard_page(body: bytes) -> tuple[list[Shard], str | None]:
    """One page of ListShards, and the token of the next one."""
    answer = orjson.loads(body)
    token = _typed(str, answer.get("NextToken") or "", "NextToken") or None
    return [_shard(shard) for shard in _typed(list, answer["Shards"], "Shards")], token


def shard_iterator(body: bytes) -> str:
    """The answer of GetShardIterator."""
    return _typed(str, orjson.loads(body)["ShardIterator"], "ShardIterator")


def _shard(fields: dict[str, Any]) -> Shard:
    parents = (fields.get("ParentShardId"), fields.get("AdjacentParentShardId"))
    ending = fields["SequenceNumberRange"].get("EndingSequenceNumber")
    return Shard(
        shard_id=_typed(str, fields["ShardId"], "ShardId"),
        hash_keys=_hash_keys(fields["HashKeyRange"]),
        parents=tuple(_typed(str, parent, "ParentShardId") for parent in parents if parent),
        ending_sequence=None if ending is None else int(ending),
    )


def _hash_keys(fields: dict[str, Any]) -> HashKeys:
    return HashKeys(int(fields["StartingHashKey"]), int(fields["EndingHashKey"]))


def stream_summary(body: bytes) -> StreamSummary:
    """The answer of DescribeStreamSummary."""
    fields = orjson.loads(body)["StreamDescriptionSummary"]
    return StreamSummary(
        arn=_typed(str, fields["StreamARN"], "StreamARN"),
        created_at=datetime.fromtimestamp(round(fields["StreamCreationTimestamp"], 3), UTC),
        retention=timedelta(hours=fields["RetentionPeriodHours"]),
        open_shards=_typed(int, fields["OpenShardCount"], "OpenShardCount"),
        is_updating=fields["StreamStatus"] == "UPDATING",
        # Of on-demand streams only; by key before there was a choice.
        places_by_key=fields.get("RecordDistributionStrategy") != "AUTO",
    )


def consumer(body: bytes) -> Consumer:
    """The answer of DescribeStreamConsumer."""
    fields = orjson.loads(body)["ConsumerDescription"]
    return Consumer(
        stream_arn=_typed(str, fields["StreamARN"], "StreamARN"),
        status=_typed(str, fields["ConsumerStatus"], "ConsumerStatus"),
    )


def error(status: int, body: bytes) -> KinesisError:
    """The error that an answer other than 200 stands for."""
    return _error(*said(body), status)


def pushed_error(code: str, body: bytes) -> KinesisError:
    """The error of that name, which ended what Kinesis pushed."""
    return _error(code, said(body)[1], 200)


def _error(code: str, message: str, status: int) -> KinesisError:
    kind = _ERRORS.get(code)
    if code == "InvalidSignatureException" and any(words in message for words in _CLOCK_IS_WRONG):
        # The next attempt is signed by the time of this answer.
        kind = KinesisUnavailableError
    elif code == "InvalidArgumentException" and _IS_YET_TO_COME in message:
        kind = KinesisUnavailableError
    elif kind is None:
        kind = KinesisUnavailableError if status >= 500 else _BY_STATUS.get(status, KinesisRejectedError)
    return kind(f"{code or f'HTTP {status}'}: {message}")


def said(body: bytes) -> tuple[str, str]:
    """What an answer other than 200 calls its error, and says of it; without such a name it is none of Kinesis's."""
    try:
        answer = orjson.loads(body)
        # `__type` may carry a namespace ("com.amazonaws.kinesis#…") and, in old answers, a URL behind a colon.
        code = str(answer.get("__type", "")).rpartition("#")[2].partition(":")[0]
        return code, str(answer.get("message") or answer.get("Message") or "")
    except (ValueError, AttributeError):
        return "", body[:200].decode(errors="replace")
