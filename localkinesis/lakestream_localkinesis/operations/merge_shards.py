"""MergeShards."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.changes import Merge
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import SHARD_ID, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.update_shard_count import check_provisioned


def merge_shards(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Close two open shards whose ranges touch and open their child; until then the stream is UPDATING."""
    name = fields.stream_name(account)
    lower_name = fields.text("ShardToMerge", SHARD_ID)
    upper_name = fields.text("AdjacentShardToMerge", SHARD_ID)
    fields.check()
    stream = account.active_stream(name, now_ms)
    check_provisioned(stream)
    lower = find_shard(account, stream, lower_name)
    upper = find_shard(account, stream, upper_name)
    adjacent = lower.hash_range.end + 1 == upper.hash_range.start
    if not (adjacent and lower.is_open and upper.is_open):
        raise InvalidArgumentException(
            f"Shards {lower.id} and {upper.id} in stream {name} under account {account.settings.id} "
            "are not an adjacent pair of shards eligible for merging"
        )
    account.update(stream, Merge(lower.index, upper.index), now_ms)
    return {}
