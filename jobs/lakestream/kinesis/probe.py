"""The planner's questions to Kinesis: what comes next in a shard, and where to cut it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from lakestream.errors import StreamNotFoundError
from lakestream.kinesis.pages import arrival_micros, arrival_time, pages
from lakestream.kinesis.port import MAX_RECORDS_PER_CALL, IteratorStart, KinesisClient, RecordPage, Sleep
from lakestream.model import Cursor, Reading, Unpinned, after, at

_LONG_TAIL = timedelta(seconds=10)
"""A tail that may cover more than this is halved by time instead of read: at full load it has 10 MB, one page."""


@dataclass(frozen=True, slots=True)
class Record:
    """Where a record is, and when it arrived."""

    sequence: int
    arrival: datetime

    @classmethod
    def of(cls, page: RecordPage | Tail, index: int) -> Record:
        return cls(int(page.sequences[index]), arrival_time(page.arrivals[index]))


@dataclass(frozen=True, slots=True)
class Idle:
    """There is none yet."""

    seen_at: datetime
    """Kinesis time at which there was none."""
    iterator: str
    """Gives what comes next, for five minutes."""


@dataclass(frozen=True, slots=True)
class Ended:
    """There is none, and the shard is closed."""


@dataclass(frozen=True, slots=True)
class Before:
    """Cut just before this record, the first at or after the horizon."""

    record: Record


@dataclass(frozen=True, slots=True)
class Behind:
    """Cut just behind this record, the last of the shard so far."""

    record: Record
    idle: Idle | None
    """None: what followed may have been trimmed while it was looked for."""


@dataclass(frozen=True, slots=True)
class Closed:
    """Take all the rest: the shard is closed, and nothing in it is at or after the horizon."""


Cut: TypeAlias = Before | Behind | Closed


@dataclass(frozen=True, slots=True)
class Tail:
    """Records that came with one answer, and what the answer said of those behind them."""

    sequences: Sequence[str]
    arrivals: Sequence[int]
    end: Behind | Closed | None
    """Where to cut behind all of them; None: more follow."""

    @classmethod
    def of(cls, page: RecordPage, seen_at: datetime) -> Tail:
        """`page` has a record; `seen_at` is Kinesis time, not behind that of the answer."""
        end: Behind | Closed | None = None
        if page.next_iterator is None:
            end = Closed()
        elif page.at_tip:
            end = Behind(Record.of(page, len(page) - 1), Idle(seen_at, page.next_iterator))
        return cls(page.sequences, page.arrivals, end)

    def cut(self, horizon: datetime) -> Cut | None:
        """Where a range that begins with them ends, if the horizon lies before the answer; None: they do not tell."""
        young = _first_at(self, horizon)
        return self.end if young is None else Before(young)


@dataclass(frozen=True, slots=True)
class Next:
    """There is an unread record."""

    record: Record
    tail: Tail | None = None
    """What came along with it, itself included; None: nothing else was asked for."""


Peek: TypeAlias = Next | Idle | Ended


def lasting(peek: Peek) -> Peek:
    """What of a peek the next plan may go by: where records end does not stay so."""
    return Next(peek.record) if isinstance(peek, Next) else peek


def seen(cursor: Unpinned | Reading, peek: Peek) -> Cursor:
    """The cursor with what a peek at its place adds: it is pinned, or nothing is unread up to now."""
    match cursor, peek:
        case Unpinned(shard_id), Next(record):
            return Reading(shard_id, at(record.sequence), record.arrival, None)
        case Unpinned(shard_id, since), Idle(seen_at):
            return Unpinned(shard_id, since, seen_at)
        case Reading(shard_id, position, arrival), Idle(seen_at):
            return Reading(shard_id, after(position.sequence), arrival, seen_at)
    return cursor


def _full() -> int:
    return MAX_RECORDS_PER_CALL


class Prober:
    """Asks one stream. Thread-safe; of what it finds it keeps what `has_found` says."""

    def __init__(self, client: KinesisClient, sleep: Sleep) -> None:
        self._client = client
        self._sleep = sleep
        self._found: dict[str, int] = {}

    def peek(self, shard_id: str, start: IteratorStart, live: Idle | None = None, *, most: int = 1) -> Peek:
        """What comes at `start`. With a `live` answer from the same place it costs one GetRecords call.

        Args:
            shard_id: of the shard.
            start: a place in it.
            live: the last answer from there.
            most: records to ask for; those beyond the first one may tell where to cut, and save asking for that.
        """
        iterator = None if live is None else live.iterator
        seen_at = self._client.now()
        for page in pages(self._client, shard_id, start, limit=lambda: most, sleep=self._sleep, iterator=iterator):
            if page.sequences:
                return Next(Record.of(page, 0), Tail.of(page, seen_at) if most > 1 else None)
            if page.next_iterator is None:
                break
            if page.at_tip:
                return Idle(seen_at, page.next_iterator)
            seen_at = self._client.now()
        return Ended()

    def has_shard(self, shard_id: str) -> bool:
        """Whether Kinesis has a shard, whatever ListShards says of it."""
        try:
            self._client.get_shard_iterator(shard_id, None)
        except StreamNotFoundError:
            return False
        return True

    def finds(self, shard_id: str, sequence: int) -> bool:
        """Whether a record is there: then so is all that has come behind it."""
        found = self.peek(shard_id, at(sequence))
        return isinstance(found, Next) and found.record.sequence == sequence

    def has_found(self, shard_id: str, sequence: int) -> bool:
        """Whether a record was there when it was asked for first; later it may be trimmed in its time."""
        if self._found.get(shard_id) != sequence and self.finds(shard_id, sequence):
            self._found[shard_id] = sequence
        return self._found.get(shard_id) == sequence

    def cut(self, shard_id: str, first: Record, horizon: datetime, *, is_short: bool) -> Cut:
        """Where a range that begins with `first`, which arrived before the horizon, ends.

        Args:
            shard_id: of the range.
            first: its first record.
            horizon: arrival time that it ends before.
            is_short: whether the range should be a few records only. Then reading it costs less than first asking for a
                record at the horizon: a quiet shard has none, and each shard answers five calls a second, to all
                consumers together.
        """
        if is_short:
            return self._read_tail(shard_id, first, horizon)
        match self.peek(shard_id, horizon):
            case Next(record) if record.sequence > first.sequence:
                return Before(record)
            case Ended():
                return Closed()
            case _:
                # Nothing that young, or (arrival times are approximate) only in front of `first`.
                return self._read_tail(shard_id, first, horizon)

    def _read_tail(self, shard_id: str, first: Record, horizon: datetime) -> Cut:
        cut = self._walk(shard_id, first, horizon, long_tail=_LONG_TAIL)
        while isinstance(cut, Record):
            cut = self._walk(shard_id, self._skip_ahead(shard_id, cut, horizon), horizon, long_tail=None)
        return cut

    def _walk(self, shard_id: str, start: Record, horizon: datetime, long_tail: timedelta | None) -> Cut | Record:
        """Read on from `start` until there is a place to cut. A record as answer: it is still far from there."""
        last = start
        seen_at = self._client.now()
        for page in pages(self._client, shard_id, at(start.sequence), limit=_full, sleep=self._sleep):
            if (young := _first_at(page, horizon)) is not None:
                return Before(young)
            if page.sequences:
                last = Record.of(page, len(page) - 1)
            if page.next_iterator is None:
                break
            if page.at_tip:
                return Behind(last, Idle(seen_at, page.next_iterator))
            if long_tail is not None and horizon - last.arrival > long_tail:
                return last
            seen_at = self._client.now()
        return Closed()

    def _skip_ahead(self, shard_id: str, start: Record, horizon: datetime) -> Record:
        """A record at most a few seconds of arrival time before the horizon, or before the last one."""
        low, high = start, horizon
        while high - low.arrival > _LONG_TAIL:
            middle = low.arrival + (high - low.arrival) / 2
            match self.peek(shard_id, middle):
                case Next(record) if record.sequence > low.sequence and record.arrival < horizon:
                    low = record
                case _:
                    high = middle
        return low


def _first_at(page: RecordPage | Tail, horizon: datetime) -> Record | None:
    """The first record at or after the horizon."""
    bound = arrival_micros(horizon)
    young = next((i for i, arrival in enumerate(page.arrivals) if arrival >= bound), None)
    return None if young is None else Record.of(page, young)
