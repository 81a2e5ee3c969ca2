"""Going through the pages of a shard, the part that planner and reader have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from lakestream.errors import ExpiredIteratorError
from lakestream.kinesis.port import IteratorStart, KinesisClient, RecordPage, Sleep
from lakestream.model import after

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
    """
    position = start
    following = iterator or client.get_shard_iterator(shard_id, position)
    while True:
        try:
            page = client.get_records(following, limit())
        except ExpiredIteratorError:
            following = client.get_shard_iterator(shard_id, position)
            continue
        if page.sequences:
            position = after(int(page.sequences[-1]))
        yield page
        if page.next_iterator is None:
            return
        following = page.next_iterator
        if not page.sequences:
            sleep(EMPTY_PAUSE)


def arrival_time(micros: int) -> datetime:
    """An arrival of a RecordPage as a time."""
    return _EPOCH + timedelta(microseconds=micros)


def arrival_micros(time: datetime) -> int:
    """The inverse of `arrival_time`."""
    return (time - _EPOCH) // timedelta(microseconds=1)
