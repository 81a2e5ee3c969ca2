"""DescribeStream, with its shards in pages."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.fields import SHARD_ID, Fields
from lakestream_localkinesis.operations.answer import (
    Answer,
    describe_identity,
    describe_settings,
    describe_shard,
)
from lakestream_localkinesis.operations.paging import MOST_ASKED

PAGE_SHARDS = 100


def describe_stream(account: Account, fields: Fields, now_ms: int) -> Answer:
    """The stream and a page of its shards, oldest first."""
    name = fields.stream_name(account)
    limit = min(fields.optional_integer("Limit", most=MOST_ASKED) or PAGE_SHARDS, PAGE_SHARDS)
    after = fields.optional_text("ExclusiveStartShardId", SHARD_ID)
    fields.check()
    stream = account.stream(name, now_ms)
    shards = list(stream.shards.values())
    if after is not None:
        start = find_shard(account, stream, after).index
        shards = [shard for shard in shards if shard.index > start]
    return {
        "StreamDescription": {
            **describe_identity(stream),
            **describe_settings(stream),
            "Shards": [describe_shard(shard) for shard in shards[:limit]],
            "HasMoreShards": len(shards) > limit,
        }
    }
