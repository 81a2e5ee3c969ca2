"""GetShardIterator: all five types."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.iterator import seal_iterator
from lakestream_localkinesis.core.sequence import created_s_of, is_sequence, shard_index_of
from lakestream_localkinesis.core.shard import Cursor, Shard, shard_id
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import (
    DryRunOperationException,
    InvalidArgumentException,
    ProvisionedThroughputExceededException,
)
from lakestream_localkinesis.fields import SEQUENCE_NUMBER, SHARD_ID, Fields, Text
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.put_record import rate_exceeded

ITERATOR_TYPE = Text(choices=("AFTER_SEQUENCE_NUMBER", "LATEST", "AT_TIMESTAMP", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"))


def get_shard_iterator(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A token for a place in a shard; it lives five minutes."""
    name = fields.stream_name(account)
    shard_name = fields.text("ShardId", SHARD_ID)
    kind = fields.text("ShardIteratorType", ITERATOR_TYPE)
    sequence = fields.optional_text("StartingSequenceNumber", SEQUENCE_NUMBER)
    timestamp_ms = fields.timestamp_ms("Timestamp")
    dry_run = fields.boolean("DryRun")
    fields.check()
    stream = account.data_stream(name, now_ms)
    shard = find_shard(account, stream, shard_name)
    if not (dry_run or shard.iterator_rate.admit(now_ms)):
        raise ProvisionedThroughputExceededException(rate_exceeded(account, name, shard.id))
    shard.trim(stream.horizon_ms(now_ms))
    match kind:
        case "TRIM_HORIZON" | "LATEST":
            _refuse_sequence(kind, sequence)
            cursor = shard.at_horizon() if kind == "TRIM_HORIZON" else shard.at_tip(now_ms)
        case "AT_TIMESTAMP":
            cursor = _at_timestamp(shard, timestamp_ms, now_ms)
        case _:
            number = _checked_sequence(account, stream, shard, kind, sequence)
            cursor = shard.at_sequence(number + (kind == "AFTER_SEQUENCE_NUMBER"))
    if dry_run:
        raise DryRunOperationException
    return {"ShardIterator": seal_iterator(account.sealer, stream, shard, cursor, now_ms)}


def _refuse_sequence(kind: str, sequence: str | None) -> None:
    if sequence is not None:
        raise InvalidArgumentException(_SEQUENCE_MISMATCH.format(kind, "also a"))


def _at_timestamp(shard: Shard, timestamp_ms: int | None, now_ms: int) -> Cursor:
    if timestamp_ms is None:
        raise InvalidArgumentException(
            "Must specify timestampInMillis parameter for iterator of type AT_TIMESTAMP. "
            "Current request has no timestamp parameter."
        )
    if timestamp_ms > now_ms:
        raise InvalidArgumentException(
            "The timestampInMillis parameter cannot be greater than the currentTimestampInMillis. "
            f"timestampInMillis: {timestamp_ms}, currentTimestampInMillis: {now_ms}"
        )
    return shard.at_time(timestamp_ms)


def _checked_sequence(account: Account, stream: Stream, shard: Shard, kind: str, sequence: str | None) -> int:
    if sequence is None:
        raise InvalidArgumentException(_SEQUENCE_MISMATCH.format(kind, "no"))
    number = int(sequence)
    used = (
        f"StartingSequenceNumber {sequence} used in GetShardIterator on shard {shard.id} in stream {stream.name} "
        f"under account {account.settings.id} is invalid"
    )
    if not is_sequence(number):
        raise InvalidArgumentException(f"{used}.")
    if shard_index_of(number) != shard.index:
        raise InvalidArgumentException(
            f"Invalid StartingSequenceNumber. It encodes {shard_id(shard_index_of(number))}, "
            f"while it was used in a call to a shard with {shard.id}"
        )
    if created_s_of(number) != shard.created_s:
        raise InvalidArgumentException(f"{used} because it did not come from this stream.")
    return number


_SEQUENCE_MISMATCH = (
    "Must either specify (1) AT_SEQUENCE_NUMBER or AFTER_SEQUENCE_NUMBER and StartingSequenceNumber or "
    "(2) TRIM_HORIZON or LATEST and no StartingSequenceNumber. "
    "Request specified {} and {} StartingSequenceNumber."
)
