"""ListShards: every filter, in pages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lakestream_localkinesis.core.account import Account, find_shard
from lakestream_localkinesis.core.shard import Shard
from lakestream_localkinesis.core.stream import Stream, first_opened_ms
from lakestream_localkinesis.core.token import Payload
from lakestream_localkinesis.errors import InvalidArgumentException
from lakestream_localkinesis.fields import SHARD_ID, Fields, Text
from lakestream_localkinesis.operations.answer import Answer, describe_shard
from lakestream_localkinesis.operations.paging import MOST_ASKED, NEXT_TOKEN, check_age

PAGE_SHARDS = 1000

NOT_WITH_TOKEN = ("StreamName", "StreamARN", "StreamCreationTimestamp", "ExclusiveStartShardId", "ShardFilter")
"""What a NextToken stands for already; of several that are given, the first is named."""

FILTER_TYPE = Text(
    choices=("AFTER_SHARD_ID", "AT_TRIM_HORIZON", "FROM_TRIM_HORIZON", "AT_LATEST", "AT_TIMESTAMP", "FROM_TIMESTAMP")
)


@dataclass(frozen=True, slots=True)
class ShardFilter:
    """Which shards are listed; the default is all that are open or retained."""

    type: str = "FROM_TRIM_HORIZON"
    after_index: int = -1
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """What a NextToken goes on with."""

    stream: str
    stream_id: str
    after_index: int
    filter: ShardFilter
    as_of_ms: int | None = None
    """Of an answer that is out of date: the time that it tells of."""


def list_shards(account: Account, fields: Fields, now_ms: int, as_of_ms: int | None = None) -> Answer:
    """A page of a stream's shards, oldest first; with `as_of_ms` as they were then, and so in the pages that follow."""
    limit = min(fields.optional_integer("MaxResults", most=MOST_ASKED) or PAGE_SHARDS, PAGE_SHARDS)
    token = fields.optional_text("NextToken", NEXT_TOKEN)
    if token is None:
        listing = replace(_new_listing(account, fields, now_ms), as_of_ms=as_of_ms)
    else:
        listing = _continued(account, fields, token, now_ms)
    stream = account.opened_stream(listing.stream, now_ms)
    account.admit_to(stream, "ListShards", now_ms)
    if stream.id != listing.stream_id:
        raise InvalidArgumentException("NextToken belongs to a stream that has been deleted.")
    shards = [shard for shard in _listed(stream, listing, now_ms) if shard.index > listing.after_index]
    page = shards[:limit]
    answer: dict[str, Any] = {"Shards": [describe_shard(shard) for shard in page]}
    if len(shards) > limit:
        answer["NextToken"] = _seal(account, replace(listing, after_index=page[-1].index), now_ms)
    return answer


def _new_listing(account: Account, fields: Fields, now_ms: int) -> Listing:
    if fields.values.get("StreamName") is None and fields.values.get("StreamARN") is None:
        fields.refuse(InvalidArgumentException("Either NextToken or StreamName should be provided."))
        name = ""
    else:
        name = fields.stream_name(account)
    after = fields.optional_text("ExclusiveStartShardId", SHARD_ID)
    created_ms = fields.timestamp_ms("StreamCreationTimestamp")
    wanted = fields.structure("ShardFilter")
    kind = wanted.text("Type", FILTER_TYPE) if wanted else None
    filter_shard = wanted.optional_text("ShardId", SHARD_ID) if wanted else None
    filter_ms = wanted.timestamp_ms("Timestamp") if wanted else None
    fields.check()
    stream = account.opened_stream(name, now_ms)
    # The API takes seconds; streams that differ by less cannot be told apart by it.
    if created_ms is not None and created_ms // 1000 != stream.created_ms // 1000:
        raise account.not_found(name)
    after_index = -1 if after is None else find_shard(account, stream, after).index
    chosen = ShardFilter() if kind is None else _new_filter(account, stream, kind, filter_shard, filter_ms, now_ms)
    return Listing(name, stream.id, after_index, chosen)


def _new_filter(
    account: Account, stream: Stream, kind: str, shard: str | None, timestamp_ms: int | None, now_ms: int
) -> ShardFilter:
    if kind == "AFTER_SHARD_ID":
        if shard is None:
            raise InvalidArgumentException("ShardId must be provided in ShardFilter of type AFTER_SHARD_ID.")
        return ShardFilter(kind, after_index=find_shard(account, stream, shard).index)
    if kind.endswith("_TIMESTAMP"):
        if timestamp_ms is None:
            raise InvalidArgumentException(f"Timestamp must be provided in ShardFilter of type {kind}.")
        if timestamp_ms > now_ms:
            raise InvalidArgumentException(
                f"Timestamp in ShardFilter must not be in the future. Timestamp: {timestamp_ms}, current: {now_ms}"
            )
        return ShardFilter(kind, timestamp_ms=timestamp_ms)
    return ShardFilter(kind)


def _continued(account: Account, fields: Fields, token: str, now_ms: int) -> Listing:
    fields.check()
    for name in NOT_WITH_TOKEN:
        if name in fields.names():
            raise InvalidArgumentException(f"NextToken and {name} cannot be provided together.")
    match account.sealer.open(token):
        case [
            "shards",
            str(name),
            str(ident),
            int(after),
            str(kind),
            int(filter_after),
            int(filter_ms),
            None | int() as as_of_ms,
            int(at),
        ]:
            check_age(at, now_ms)
            return Listing(name, ident, after, ShardFilter(kind, filter_after, filter_ms), as_of_ms)
        case _:
            raise InvalidArgumentException("NextToken is invalid.")


def _seal(account: Account, listing: Listing, now_ms: int) -> str:
    chosen = listing.filter
    where: Payload = [chosen.type, chosen.after_index, chosen.timestamp_ms, listing.as_of_ms]
    return account.sealer.seal(["shards", listing.stream, listing.stream_id, listing.after_index, *where, now_ms])


def _listed(stream: Stream, listing: Listing, now_ms: int) -> list[Shard]:
    if listing.as_of_ms is None:
        return _filter(list(stream.shards.values()), listing.filter, stream.horizon_ms(now_ms))
    shards = stream.shards_at(listing.as_of_ms)
    # The retention may have been longer, or the clock have made a leap: what was listed was not behind the horizon.
    closed_ms = [shard.closed_ms for shard in shards if shard.closed_ms is not None]
    return _filter(shards, listing.filter, min([stream.horizon_ms(listing.as_of_ms), *closed_ms]))


def _filter(shards: list[Shard], chosen: ShardFilter, horizon_ms: int) -> list[Shard]:
    # Before the stream was there nothing was open: its first shards stand for the time before.
    at_ms = max(chosen.timestamp_ms, horizon_ms, first_opened_ms(shards))
    match chosen.type:
        case "AFTER_SHARD_ID":
            return [shard for shard in shards if shard.index > chosen.after_index]
        case "AT_LATEST":
            return [shard for shard in shards if shard.is_open]
        case "AT_TRIM_HORIZON" | "AT_TIMESTAMP":
            return [shard for shard in shards if shard.created_ms <= at_ms and _retained(shard, at_ms)]
        case _:
            return [shard for shard in shards if _retained(shard, at_ms)]


def _retained(shard: Shard, from_ms: int) -> bool:
    return shard.closed_ms is None or shard.closed_ms >= from_ms
