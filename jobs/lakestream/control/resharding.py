"""The stream's shards: as many as the operator ordered, asked of Kinesis beside ingestion and never in its way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Protocol

from lakestream.errors import KinesisUnavailableError
from lakestream.kinesis import StreamSummary
from lakestream_api.report import Resharding

logger = logging.getLogger(__name__)

_SOON = timedelta(seconds=30)
"""Until the next look at a stream that is being updated: that takes Kinesis minutes."""
_LATER = timedelta(minutes=10)
"""Until a refused order is tried again: rights and quotas are given by people."""


class ShardedStream(Protocol):
    """What is asked of Kinesis; `HttpKinesisClient` has the real one."""

    def describe_stream_summary(self) -> StreamSummary: ...
    def update_shard_count(self, shards: int) -> None: ...


def look(stream: ShardedStream, ordered: int) -> tuple[Resharding, timedelta | None]:
    """Bring a stream nearer to the open shards that were ordered; no error leaves it.

    Returns:
        What became of the order, and in what time to look again; None: the stream has what was ordered.
    """
    known: int | None = None
    try:
        summary = stream.describe_stream_summary()
        known = summary.open_shards
        if summary.is_updating:
            return Resharding(ordered=ordered, open_shards=known, updating=True), _SOON
        if known == ordered:
            logger.info("the stream has %d open shards, as ordered", known)
            return Resharding(ordered=ordered, open_shards=known), None
        stream.update_shard_count(ordered)
    except KinesisUnavailableError as error:
        logger.info("the stream's shards: %s; looking again", error)
        return Resharding(ordered=ordered, open_shards=known), _SOON
    except Exception as error:  # noqa: BLE001 - whatever it is, it is no reason not to ingest
        logger.warning("the stream cannot be given %d shards: %s", ordered, error)
        return Resharding.refused(ordered, known, str(error)), _LATER
    logger.info("asked Kinesis to go from %d to %d open shards", known, ordered)
    return Resharding(ordered=ordered, open_shards=known, updating=True), _SOON


class Resharder:
    """Follows the last order in a thread of its own, which there is none of without an order."""

    def __init__(self, stream: ShardedStream, tell: Callable[[Resharding | None], None]) -> None:
        """`tell` hears what became of each order; None: there is none any more."""
        self._stream = stream
        self._tell = tell
        self._ordered: int | None = None
        self._ended = False
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None

    def order(self, shards: int | None) -> None:
        """Take an order, from any thread. One that was dealt with already changes nothing."""
        with self._news:
            if shards == self._ordered or self._ended:
                return
            self._ordered = shards
            self._news.notify()
            if self._thread is None:
                # A daemon, and not waited for: Kinesis may take minutes to answer.
                self._thread = threading.Thread(target=self._run, name="resharding", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._news:
            self._ended = True
            self._news.notify()

    def _run(self) -> None:
        while not self._ended:
            ordered, again = self._ordered, None
            if ordered is None:
                self._tell(None)
            else:
                told, again = look(self._stream, ordered)
                self._tell(told)
            with self._news:
                self._news.wait_for(
                    lambda ordered=ordered: self._ended or self._ordered != ordered,  # type: ignore[misc]
                    None if again is None else again.total_seconds(),
                )
