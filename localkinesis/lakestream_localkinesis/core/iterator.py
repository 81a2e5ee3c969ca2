"""Shard iterators: where a reader stands, sealed into a token that lives five minutes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lakestream_localkinesis.core.shard import Cursor, Shard
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.core.token import TokenSealer
from lakestream_localkinesis.errors import ExpiredIteratorException, InvalidArgumentException

LIFETIME_MS = 300_000


@dataclass(frozen=True, slots=True)
class ShardIterator:
    """What an iterator token says."""

    stream: str
    stream_id: str
    """A stream that is deleted and created again has another one."""
    shard_index: int
    cursor: Cursor
    issued_ms: int


def seal_iterator(sealer: TokenSealer, stream: Stream, shard: Shard, cursor: Cursor, now_ms: int) -> str:
    """The token for a cursor in a shard."""
    position = f"{cursor.position:x}"
    return sealer.seal(["iterator", stream.name, stream.id, shard.index, position, cursor.scanned_ms, now_ms])


def open_iterator(sealer: TokenSealer, token: str, now_ms: int) -> ShardIterator:
    """Read a token; one that is not ours, or too old, is an error.

    Quotes around it, as shells leave them, are taken off: so does Kinesis.
    """
    match sealer.open(token.removeprefix('"').removesuffix('"')):
        case ["iterator", str(name), str(ident), int(index), str(position), int(scanned), int(issued)]:
            iterator = ShardIterator(name, ident, index, Cursor(int(position, 16), scanned), issued)
        case _:
            raise InvalidArgumentException("Invalid ShardIterator.")
    if now_ms - iterator.issued_ms > LIFETIME_MS:
        raise ExpiredIteratorException(
            f"Iterator expired. The iterator was created at time {_amz_utc(iterator.issued_ms)} while right now it is "
            f"{_amz_utc(now_ms)} which is further in the future than the tolerated delay of {LIFETIME_MS} milliseconds."
        )
    return iterator


def _amz_utc(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.strftime("%a %b %d %H:%M:%S UTC %Y")
