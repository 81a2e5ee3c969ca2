"""GetShardIterator: all five types."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.iterator import seal_iterator
from lakestream_localkinesis.errors import (
    DryRunOperationException,
    ProvisionedThroughputExceededException,
)
from lakestream_localkinesis.fields import SEQUENCE_NUMBER, SHARD_ID, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.position import POSITION_TYPE, Position
from lakestream_localkinesis.operations.put_record import rate_exceeded


def get_shard_iterator(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A token for a place in a shard; it lives five minutes."""
    name = fields.stream_name(account)
    shard_name = fields.text("ShardId", SHARD_ID)
    position = Position(
        fields.text("ShardIteratorType", POSITION_TYPE),
        fields.optional_text("StartingSequenceNumber", SEQUENCE_NUMBER),
        fields.timestamp_ms("Timestamp"),
    )
    dry_run = fields.boolean("DryRun")
    fields.check()
    stream = account.data_stream(name, now_ms)
    shard = find_shard(account, stream, shard_name)
    if not (dry_run or shard.iterator_rate.admit(now_ms)):
        raise ProvisionedThroughputExceededException(rate_exceeded(account, name, shard.id))
    cursor = position.cursor(account, stream, shard, now_ms)
    if dry_run:
        raise DryRunOperationException
    return {"ShardIterator": seal_iterator(account.sealer, stream, shard, cursor, now_ms)}
