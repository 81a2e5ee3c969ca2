"""GetRecords."""

from __future__ import annotations

from typing import Any

from lakestream_localkinesis.core.account import Account, missing_shard
from lakestream_localkinesis.core.iterator import ShardIterator, open_iterator, seal_iterator
from lakestream_localkinesis.core.shard import PAGE_RECORDS, Page, Shard, shard_id
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import (
    DryRunOperationException,
    InvalidArgumentException,
    ProvisionedThroughputExceededException,
)
from lakestream_localkinesis.fields import Fields, Text
from lakestream_localkinesis.operations.answer import Answer, describe_children, with_records
from lakestream_localkinesis.operations.put_record import rate_exceeded

SHARD_ITERATOR = Text(shortest=1, longest=512)


def get_records(account: Account, fields: Fields, now_ms: int) -> Answer:
    """The page at an iterator, and the iterator that goes on from there.

    At the end of a closed shard that is null, and ChildShards says where its keys went.
    """
    token = fields.text("ShardIterator", SHARD_ITERATOR)
    limit = fields.optional_integer("Limit", most=PAGE_RECORDS) or PAGE_RECORDS
    named = fields.stream_of_arn(account)
    dry_run = fields.boolean("DryRun")
    fields.check()
    iterator = open_iterator(account.sealer, token, now_ms)
    if named not in (None, iterator.stream):
        raise InvalidArgumentException(f"ShardIterator is one of stream {iterator.stream}, and StreamARN of {named}.")
    stream, shard = _locate(account, iterator, now_ms)
    if dry_run:
        raise DryRunOperationException
    if not shard.read_rate.admit(now_ms):
        shard.counters.read_throttles += 1
        raise ProvisionedThroughputExceededException(rate_exceeded(account, stream.name, shard.id))
    horizon_ms = stream.horizon_ms(now_ms)
    shard.trim(horizon_ms)
    page = shard.read(iterator.cursor, limit, now_ms, horizon_ms)
    _count(shard, page)
    if page.following is None:
        return _page_json(page.records, None, page.behind_ms, describe_children(stream, shard))
    following = seal_iterator(account.sealer, stream, shard, page.following, now_ms)
    return _page_json(page.records, following, page.behind_ms, None)


def empty_page(account: Account, fields: Fields, now_ms: int) -> Answer:
    """A page without records that stays where the iterator stands; Kinesis gives such pages at any time."""
    iterator = open_iterator(account.sealer, fields.text("ShardIterator", SHARD_ITERATOR), now_ms)
    stream, shard = _locate(account, iterator, now_ms)
    following = seal_iterator(account.sealer, stream, shard, iterator.cursor, now_ms)
    return _page_json([], following, max(1, now_ms - iterator.cursor.scanned_ms), None)


def _page_json(
    records: list[bytes], following: str | None, behind_ms: int, children: list[dict[str, Any]] | None
) -> bytes:
    rest: dict[str, Any] = {"NextShardIterator": following, "MillisBehindLatest": behind_ms}
    if children is not None:
        rest["ChildShards"] = children
    return with_records(records, rest)


def _locate(account: Account, iterator: ShardIterator, now_ms: int) -> tuple[Stream, Shard]:
    stream = account.data_stream(iterator.stream, now_ms)
    shard = stream.shards.get(iterator.shard_index)
    if shard is None or stream.id != iterator.stream_id:
        raise missing_shard(account, stream.name, shard_id(iterator.shard_index))
    return stream, shard


def _count(shard: Shard, page: Page) -> None:
    shard.read_rate.charge(page.size)
    counters = shard.counters
    counters.outgoing_records += len(page.records)
    counters.outgoing_bytes += page.size
    counters.iterator_age_ms = page.behind_ms
