"""For how long deletes are remembered, by the time of the stream: pure.

A batch may be read long after its records came, behind a writer that was suspended. An old version in it may have come
minutes behind its delete, so the delete must be known still. But deletes bear a time by which they had come, mostly
that at which they were written, and of a backlog those of days are written in an hour.
"""

from __future__ import annotations

from collections import deque

from lakestream.sinks.contract import Arrived, BatchRef


def come_by(ref: BatchRef, now: float) -> float:
    """A time by which all records of a batch have come, in seconds since 1970.

    Args:
        ref: says it by Kinesis's clock, but for a replay and files.
        now: by this machine's clock, which may be behind; the driver that forgets the deletes may have another.
    """
    told = ref.asked_until if ref.arrived is None else ref.arrived.before
    return now if told is None else max(now, told.timestamp())


class DeleteAge:
    """Which deletes are too old for the batches that come, by when they had come (`come_by`)."""

    def __init__(self, retain: float) -> None:
        """`retain`: seconds by which a version may come later than a delete of its key."""
        self._retain = retain
        self._written: deque[tuple[float, float]] = deque()
        self.oldest = float("-inf")
        """Deletes that had come by a time before this are not needed any more: seconds since 1970."""

    def tell(self, arrived: Arrived, by: float) -> None:
        """A batch is about to be written, which has come by that time, and with which the stream is so far."""
        if arrived.oldest is not None:
            needed = min(by, arrived.oldest.timestamp()) - self._retain
            # What was written longer ago than that came before it as well.
            self.oldest = max(self.oldest, needed)
            while self._written and self._written[0][0] <= needed:
                self.oldest = max(self.oldest, self._written.popleft()[1])
        self._written.append((arrived.before.timestamp(), by))
