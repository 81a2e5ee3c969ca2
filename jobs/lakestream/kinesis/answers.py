"""JSON 1.1 answers of Kinesis as values. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pybase64 import b64decode

from lakestream.errors import (
    ExpiredIteratorError,
    KinesisError,
    KinesisRejectedError,
    KinesisUnavailableError,
    StreamNotFoundError,
    ThrottledError,
)
from lakestream.kinesis.port import RecordPage, Shard, StreamSummary

_ERRORS: dict[str, type[KinesisError]] = {
    "ResourceNotFoundException": StreamNotFoundError,
    "ExpiredIteratorException": ExpiredIteratorError,
    "ProvisionedThroughputExceededException": ThrottledError,
    "LimitExceededException": ThrottledError,
    "KMSThrottlingException": ThrottledError,
    "ThrottlingException": ThrottledError,
    "RequestLimitExceeded": ThrottledError,
    "InternalFailure": KinesisUnavailableError,
    "InternalFailureException": KinesisUnavailableError,
    "ServiceUnavailable": KinesisUnavailableError,
    # The stream is being updated, and will have been soon.
    "ResourceInUseException": KinesisUnavailableError,
    # AWS answers these two when a token has just run out; the next attempt signs with a fresh one.
    "ExpiredTokenException": KinesisUnavailableError,
    "RequestExpired": KinesisUnavailableError,
}


def record_page(body: bytes) -> RecordPage:
    """The answer of GetRecords. The hot path: one pass of orjson, then one comprehension per column."""
    answer = orjson.loads(body)
    records = answer["Records"]
    return RecordPage(
        sequences=[r["SequenceNumber"] for r in records],
        # Kinesis sends seconds with three decimals; a double holds them, but not its product with 1e6.
        arrivals=[round(r["ApproximateArrivalTimestamp"] * 1000) * 1000 for r in records],
        # Streams that distribute records by themselves (RecordDistributionStrategy=AUTO) take them without a key.
        partition_keys=[r.get("PartitionKey") for r in records],
        data=[b64decode(r["Data"]) for r in records],
        next_iterator=answer.get("NextShardIterator"),
        millis_behind=answer["MillisBehindLatest"],
    )


def shard_page(body: bytes) -> tuple[list[Shard], str | None]:
    """One page of ListShards, and the token of the next one."""
    answer = orjson.loads(body)
    return [_shard(shard) for shard in answer["Shards"]], answer.get("NextToken")


def _shard(fields: dict[str, Any]) -> Shard:
    parents = (fields.get("ParentShardId"), fields.get("AdjacentParentShardId"))
    ending = fields["SequenceNumberRange"].get("EndingSequenceNumber")
    return Shard(
        shard_id=fields["ShardId"],
        parents=tuple(parent for parent in parents if parent),
        ending_sequence=None if ending is None else int(ending),
    )


def stream_summary(body: bytes) -> StreamSummary:
    """The answer of DescribeStreamSummary."""
    fields = orjson.loads(body)["StreamDescriptionSummary"]
    return StreamSummary(
        arn=fields["StreamARN"],
        created_at=datetime.fromtimestamp(round(fields["StreamCreationTimestamp"], 3), UTC),
        retention=timedelta(hours=fields["RetentionPeriodHours"]),
        open_shards=fields["OpenShardCount"],
        is_updating=fields["StreamStatus"] == "UPDATING",
    )


def error(status: int, body: bytes) -> KinesisError:
    """The error that an answer other than 200 stands for."""
    try:
        answer = orjson.loads(body)
        # `__type` may carry a namespace ("com.amazonaws.kinesis#…") and, in old answers, a URL behind a colon.
        code = str(answer.get("__type", "")).rpartition("#")[2].partition(":")[0]
        message = answer.get("message") or answer.get("Message") or ""
    except (ValueError, AttributeError):
        code, message = "", body[:200].decode(errors="replace")
    kind = _ERRORS.get(code)
    if kind is None:
        kind = KinesisUnavailableError if status >= 500 else KinesisRejectedError
    return kind(f"{code or f'HTTP {status}'}: {message}")
