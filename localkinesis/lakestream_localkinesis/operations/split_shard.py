"""SplitShard."""

from __future__ import annotations

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.changes import Split
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import HASH_KEY, SHARD_ID, Fields
from lakestream_localkinesis.operations.answer import Answer
from lakestream_localkinesis.operations.update_shard_count import check_provisioned


def split_shard(account: Account, fields: Fields, now_ms: int) -> Answer:
    """Close an open shard and open two children; until then the stream is UPDATING."""
    name = fields.stream_name(account)
    shard_name = fields.text("ShardToSplit", SHARD_ID)
    key_text = fields.text("NewStartingHashKey", HASH_KEY)
    fields.check()
    stream = account.active_stream(name, now_ms)
    check_provisioned(stream)
    shard = find_shard(account, stream, shard_name)
    new_start = int(key_text)
    where = f"on shard {shard.id} in stream {name} under account {account.settings.id}"
    if not shard.is_open:
        raise InvalidArgumentException(f"SplitShard() {where} is invalid because the shard is closed.")
    whole = shard.hash_range
    if not whole.start + 1 < new_start < whole.end:
        raise InvalidArgumentException(
            f"NewStartingHashKey {new_start} used in SplitShard() {where} is not both greater than one plus the "
            f"shard's StartingHashKey {whole.start} and less than the shard's EndingHashKey {whole.end}."
        )
    account.check_shard_quota(1)
    account.update(stream, Split(shard.index, new_start), now_ms)
    return {}
