"""Going through the pages of a shard, the part that planner and reader have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from lakestream.errors import ExpiredIteratorError, KinesisAnswerError, KinesisError
from lakestream.kinesis.port import IteratorStart, KinesisClient, RecordPage, Sleep
from lakestream.kinesis.retry import TRIES_OF_NONSENSE
from lakestream.model import Position, after, at

_EPOCH = datetime.fromtimestamp(0, UTC)

EMPTY_PAUSE = 0.2
"""Seconds between an empty page and the next call: GetRecords is allowed five times a second per shard."""


def pages(
    client: KinesisClient,
    shard_id: str,
    start: IteratorStart,
    *,
    limit: Callable[[], int],
    sleep: Sleep,
    iterator: str | None = None,
) -> Iterator[RecordPage]:
    """The pages from `start` on, without end until the shard is closed: the last page has no next iterator.

    Empty pages are passed on too, since they tell whether the tip is reached. An expired iterator
    is replaced by one after the last record (again at `start`, if there was none).

    Args:
        limit: asked before each call for the most records that the next page may have.
        iterator: one that stands at `start`, to save a GetShardIterator.

    Raises:
        KinesisAnswerError: with the shard, and where it was read; also if records come that lie before that.
        ExpiredIteratorError: several new ones in a row are expired as soon as they are used.
    """
    position = start
    following = iterator or client.get_shard_iterator(shard_id, position)
    while True:
        try:
            page = _page(client, shard_id, position, following, limit, sleep)
        except KinesisAnswerError as error:
            raise error.reading(shard_id, _told(position)) from error
        if page.sequences:
            position = after(int(page.sequences[-1]))
        yield page
        if page.next_iterator is None:
            return
        following = page.next_iterator
        if not page.sequences:
            sleep(EMPTY_PAUSE)


def _page(
    client: KinesisClient, shard_id: str, position: IteratorStart, iterator: str, limit: Callable[[], int], sleep: Sleep
) -> RecordPage:
    """The page at an iterator, or at new ones for its position. Raises as `pages`."""
    vain = 0
    while True:
        useless: KinesisError
        try:
            page = client.get_records(iterator, limit())
            if not page.sequences or not isinstance(position, Position) or at(int(page.sequences[0])) >= position:
                return page
            useless = KinesisAnswerError.of("GetRecords", f"it goes back to sequence number {page.sequences[0]}")
        except ExpiredIteratorError as error:
            useless = error
        vain += 1
        if vain == TRIES_OF_NONSENSE:
            raise useless
        if vain > 1:
            sleep(EMPTY_PAUSE)
        iterator = client.get_shard_iterator(shard_id, position)


def _told(start: IteratorStart) -> str:
    match start:
        case None:
            return "from TRIM_HORIZON"
        case datetime():
            return f"from {start.isoformat()}"
        case Position():
            return f"from {start}"


def arrival_time(micros: int) -> datetime:
    """An arrival of a RecordPage as a time."""
    return _EPOCH + timedelta(microseconds=micros)


def arrival_micros(time: datetime) -> int:
    """The inverse of `arrival_time`."""
    return (time - _EPOCH) // timedelta(microseconds=1)
