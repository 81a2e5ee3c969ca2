"""Reads the ranges of a plan on an executor: the same records however often, or an error."""

from __future__ import annotations

import logging
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache, partial

import pyarrow as pa

from lakestream.errors import (
    DataLossError,
    KinesisAnswerError,
    KinesisDeniedError,
    KinesisError,
    RangeError,
    StreamNotFoundError,
)
from lakestream.kinesis.batches import record_batches
from lakestream.kinesis.client import HttpKinesisClient
from lakestream.kinesis.pages import arrival_micros, pages
from lakestream.kinesis.port import MAX_RECORDS_PER_CALL, KinesisClient, Monotonic, RecordPage, Sleep, Subscribe
from lakestream.kinesis.prefetch import in_order
from lakestream.kinesis.probe import Next, Prober, Record
from lakestream.kinesis.settings import LEAST_RETENTION, KinesisSettings
from lakestream.model import Finding, Loss, Position, ShardRange, after, at

log = logging.getLogger(__name__)

_RANGES_AT_ONCE = 4
"""Ranges of one task that are read at once: most of the time that a full shard takes is waiting for its next answer."""
_AHEAD_BYTES = 16 * 1024 * 1024
"""That each of them holds ahead of Spark: one full answer, 10 MB, as columns."""
_MARGIN = 1.25
"""Ask for so many times the records that are expected: a second call costs more than some records too many."""
_LEAST_LIMIT = 100
_RESOLUTION = timedelta(milliseconds=1)
"""Of arrival times."""
_TRIM_MARGIN = timedelta(minutes=5)
"""Records are looked after when they have this long to live: more than any call takes."""


def read_ranges(settings: KinesisSettings, ranges: Sequence[ShardRange]) -> Iterator[pa.RecordBatch | Finding]:
    """The user records of the ranges, range by range and in the order of each shard; columns as in `batches.SCHEMA`.
    Behind the records of a range comes what else there is to say of it, if anything.

    A resumable task derives everything from its arguments, so that a retry gives the same rows.

    Raises:
        DataLossError: records of a range were trimmed, and the settings do not allow to skip them.
        RangeError: a range cannot be read as planned.
        KinesisError: Kinesis did not answer.
    """
    client, arn = _client(settings), settings.consumer_arn
    reader = RangeReader(client, settings, subscribe=None if arn is None else partial(client.subscribe, arn))
    return in_order(map(reader.read, ranges), at_once=_RANGES_AT_ONCE, size=_size, most=_AHEAD_BYTES)


def _size(part: pa.RecordBatch | Finding) -> int:
    return 0 if isinstance(part, Finding) else int(part.nbytes)


@lru_cache(maxsize=4)
def _client(settings: KinesisSettings) -> HttpKinesisClient:
    """Spark uses a Python worker for many tasks: they share connections and credentials."""
    return HttpKinesisClient(settings)


@dataclass(slots=True)
class _Progress:
    """How far a range has been read."""

    last: Record | None = None
    """The last record seen."""
    limit: int = MAX_RECORDS_PER_CALL
    """Most records that the next call should give."""
    tip_since: float | None = None
    """Monotonic time since when there has been nothing behind the last record."""
    losses: list[Loss] = field(default_factory=list)
    """What was skipped."""
    misplaced: int = 0
    """User records that were left out."""

    def position(self, piece: ShardRange) -> Position:
        """Where to go on."""
        return at(piece.first) if self.last is None else after(self.last.sequence)


class RangeReader:
    """Reads ranges of one stream. Thread-safe."""

    def __init__(
        self,
        client: KinesisClient,
        settings: KinesisSettings,
        *,
        subscribe: Subscribe | None = None,
        sleep: Sleep = time.sleep,
        monotonic: Monotonic = time.monotonic,
    ) -> None:
        self._client = client
        self._subscribe = subscribe
        self._settings = settings
        self._sleep = sleep
        self._monotonic = monotonic
        self._prober = Prober(client, sleep)

    def read(self, piece: ShardRange) -> Iterator[pa.RecordBatch | Finding]:
        """The records, a page in one batch mostly, then what was found. Raises as `read_ranges`."""
        progress = _Progress(limit=_limit(piece.expected_records))
        try:
            yield from self._records(piece, progress)
        except StreamNotFoundError as error:
            self._lose(piece, progress, f"the shard is gone ({error})", cause=error)
        if progress.losses or progress.misplaced:
            yield Finding(piece.shard_id, tuple(progress.losses), progress.misplaced)

    def _records(self, piece: ShardRange, progress: _Progress) -> Iterator[pa.RecordBatch]:
        for number, page in enumerate(self._pages(piece, progress)):
            count = _count_before_end(page, piece)
            if page.sequences:
                self._check_beginning(piece, progress, page)
                progress.last = Record.of(page, len(page) - 1)
            if count:
                for batch, misplaced in record_batches(piece.shard_id, page, count, piece.hash_keys):
                    progress.misplaced += misplaced
                    yield batch
            if count < len(page) or (count and after(int(page.sequences[count - 1])) >= piece.end):
                return
            if self._is_out_of_patience(piece, progress, page, is_first=number == 0):
                self._end_early(piece, progress, is_closed=False)
                return
            progress.limit = _next_limit(piece, page)
        self._end_early(piece, progress, is_closed=True)

    def _pages(self, piece: ShardRange, progress: _Progress) -> Iterator[RecordPage]:
        for page in self._pushed(piece, progress):
            yield page
            if page.next_iterator is None:
                return
        start = progress.position(piece)
        yield from pages(self._client, piece.shard_id, start, limit=lambda: progress.limit, sleep=self._sleep)

    def _pushed(self, piece: ShardRange, progress: _Progress) -> Iterator[RecordPage]:
        """What is pushed, up to where it has to be asked for."""
        if self._subscribe is None:
            return
        try:
            for page in self._subscribe(piece.shard_id, progress.position(piece)):
                if page.sequences and at(int(page.sequences[0])) < progress.position(piece):
                    raise KinesisAnswerError.of("SubscribeToShard", f"it goes back to {page.sequences[0]}")
                yield page
        except KinesisDeniedError:
            raise
        except KinesisError as error:
            log.info("%s: records are asked for, as none are pushed: %s", piece.shard_id, error)

    def _check_beginning(self, piece: ShardRange, progress: _Progress, page: RecordPage) -> None:
        """Records are trimmed from the front, so the first one stands for all, at the time when it was read."""
        found = Record.of(page, 0)
        if progress.last is None and found.sequence != piece.first:
            what = f"its first record {piece.first} was trimmed"
        elif progress.last is not None and self._may_have_lost(piece, progress.last):
            what = f"reading was overtaken behind {progress.last.sequence}"
        else:
            return
        self._lose(piece, progress, f"{what}, the oldest left is {found.sequence}", before=found)

    def _may_have_lost(self, piece: ShardRange, last: Record) -> bool:
        """Whether records behind the last one may have been trimmed before the next call: they were not while that one
        is there."""
        if self._client.now() - last.arrival < min(self._settings.retention, LEAST_RETENTION) - _TRIM_MARGIN:
            return False
        return not self._prober.finds(piece.shard_id, last.sequence)

    def _is_out_of_patience(self, piece: ShardRange, progress: _Progress, page: RecordPage, *, is_first: bool) -> bool:
        """Whether the shard has had nothing behind the last record for too long, although the range goes on.

        Where all of the range is older than the stream keeps it, there is nothing to wait for, nor to look for behind
        hours of silence.
        """
        if not page.sequences and (is_first or page.at_tip) and self._is_trimmed(piece):
            return True
        if page.sequences or not page.at_tip:
            progress.tip_since = None
            return False
        now = self._monotonic()
        progress.tip_since = now if progress.tip_since is None else progress.tip_since
        return now - progress.tip_since >= self._settings.patience

    def _is_trimmed(self, piece: ShardRange) -> bool:
        """Whether the stream keeps nothing of the range any more, also if its retention was raised since."""
        age = self._client.now() - piece.end_arrival - _TRIM_MARGIN
        return age > self._settings.retention and age > self._client.describe_stream_summary().retention

    def _end_early(self, piece: ShardRange, progress: _Progress, *, is_closed: bool) -> None:
        """Nothing comes any more. Right only where the end of a closed shard is the planned end."""
        if progress.last is None:
            self._lose(piece, progress, f"none of its records is left, the first was {piece.first}")
        elif self._may_have_lost(piece, progress.last):
            self._lose(piece, progress, f"reading was overtaken behind {progress.last.sequence}, and nothing is left")
        elif not (is_closed and piece.closes_shard):
            raise RangeError(
                f"{piece.shard_id}: the shard's records end after {progress.last.sequence}, before the planned end "
                f"{piece.end}. The stream is not the one that the batch was planned for, or Kinesis lost records that "
                "it had shown."
            )

    def _lose(
        self,
        piece: ShardRange,
        progress: _Progress,
        what: str,
        *,
        before: Record | None = None,
        cause: Exception | None = None,
    ) -> None:
        """The rest of the range, or what of it lies before a record, is lost."""
        start, since = piece.start, piece.first_arrival
        if progress.last is not None:
            start, since = after(progress.last.sequence), progress.last.arrival
        end = piece.end if before is None else min(piece.end, at(before.sequence))
        message = f"records from {start} to {end} were trimmed before they were read: {what}"
        if not self._settings.skip_losses:
            raise DataLossError.of(piece.shard_id, message) from cause
        log.warning("%s: skipping: %s", piece.shard_id, message)
        # Arrival times are approximate, and need not rise.
        until = max(since, self._arrival_at(piece, end, before))
        progress.losses.append(Loss(piece.shard_id, start, end, since, until))

    def _arrival_at(self, piece: ShardRange, end: Position, left: Record | None) -> datetime:
        """Before when all records arrived that are lost before `end`; `left` is the first that is left, if known."""
        if end.after and not piece.closes_shard:  # the last record of the range, when it was planned
            return piece.end_arrival + _RESOLUTION
        # The plan may have found what ends the range behind others that were gone by then.
        if left is None and not end.after:
            with suppress(StreamNotFoundError):
                found = self._prober.peek(piece.shard_id, end)
                left = found.record if isinstance(found, Next) else None
        return self._client.now() if left is None else left.arrival


def _count_before_end(page: RecordPage, piece: ShardRange) -> int:
    """How many of the page's records belong to the range."""
    return bisect_left(page.sequences, True, key=lambda sequence: at(int(sequence)) >= piece.end)


def _limit(expected: int) -> int:
    if expected == 0:
        return MAX_RECORDS_PER_CALL
    return max(_LEAST_LIMIT, min(int(expected * _MARGIN), MAX_RECORDS_PER_CALL))


def _next_limit(piece: ShardRange, page: RecordPage) -> int:
    """As many records as the rest of the range should have, if they come as densely as on the last page.

    What is read behind the range's end counts against the shard's 2 MB/s all the same.
    """
    if len(page) < 2:
        return MAX_RECORDS_PER_CALL
    span = page.arrivals[-1] - page.arrivals[0]
    rest = arrival_micros(piece.end_arrival) - page.arrivals[-1]
    if span <= 0 or rest <= 0:
        return MAX_RECORDS_PER_CALL
    return _limit(max(1, len(page) * rest // span))
