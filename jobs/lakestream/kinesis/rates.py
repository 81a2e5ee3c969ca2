"""How much arrival time a batch may cover, so that it comes near its limits."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

from lakestream.kinesis.settings import PlannerSettings
from lakestream.model import PAUSE, TABLE_SERVICES, BatchCommit

_SHARD_RECORDS = 1_000.0
_SHARD_BYTES = 1024.0 * 1024.0
"""Kinesis's write limits per shard and second, so also the most that can arrive."""

_MEMORY = 0.5
"""What a batch counts for in the rates, one batch later."""
_GROWTH = 2.0
"""A slice is at most this many times the one before: traffic may be denser where we have not read yet."""
_MAX_BURST = 16.0
"""For the same reason a slice is at most this many times as long as one at the write limits would be…"""
_SHORT = timedelta(seconds=60)
"""…but never held below this on that ground: streams of thousands of shards are never full in all of them."""
_FEW = 50
"""Records: some kilobytes. A shard with more of them in ten seconds mostly has one within the settle time."""
_LEAST = timedelta(milliseconds=1)
"""Resolution of arrival times."""
_OVERLOADED = 1.5
"""Trigger intervals for which a batch may be at work: one that takes long tells late that executors are missing, and is
of no use to those that come meanwhile…"""
_FIXED = 3.0
"""…but for no less than so many times what the quickest of the last batches took: it may be fixed cost, and smaller
batches would only pay it more often."""
_PACES = 10
"""Batches that are looked back to for it."""
_LATE = 1.75
"""Trigger intervals whose arrivals are one batch, if the one before has left nothing: one that comes late, and would
have to be followed by what it leaves."""
_ANSWER = 0.8 * 10_000_000
"""Bytes of a shard that come in one answer, which has up to 10 MB; less, as a rate is what was before. What is beyond
comes five seconds later ("subsequent calls made within the next 5 seconds throw an exception", developer guide of
Kinesis Data Streams, quotas and limits), and a task waits for it with its slot."""
_PUSHED = 6 * 2_000_000
"""Bytes of a shard that are pushed in six seconds: for five the consumer is refused the shard again, and a batch that
came earlier would have to ask for its records."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How quick a batch was."""

    seconds: float
    """That its longer stage took: so often there can be a batch."""
    records: float
    """Per second and task."""
    waits: float
    """Seconds that it waited besides, for table services or on purpose."""


@dataclass(frozen=True, slots=True)
class Covered:
    """What a batch had of the stream."""

    span: timedelta
    """Of arrival time."""
    records: float
    bytes: float
    fullest: float
    """Bytes of the shard that had most."""
    caught_up: bool
    """Whether it had all that there was."""
    pace: Pace | None
    """None: it is not known."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Records and bytes per second of *arrival* time, as the last batches had them; recent ones count more.

    Counted in user records, after KPL de-aggregation.
    """

    records: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0
    """Decayed sums over batches; a rate is a ratio of two."""
    last: timedelta = timedelta(0)
    """Arrival time that the last batch covered."""
    fullest: float = 0.0
    """Bytes per second of the shard that had most in that."""
    is_behind: bool = False
    """Whether the last batch has left something."""
    by_shard: Mapping[str, float] = field(default_factory=dict)
    """Records per second in the last batch that had the shard."""
    paces: tuple[Pace, ...] = ()
    """Of the last batches of which it is known."""

    def observe(self, commit: BatchCommit, tasks: int = 1) -> Rates:
        """The rates once this batch, read by so many tasks, is known too. A heartbeat says nothing."""
        if commit.base is None:
            return self
        span = max(commit.horizon - commit.base, _LEAST)
        seconds = span.total_seconds()
        by_shard = {**self.by_shard, **{s.shard_id: s.records / seconds for s in commit.shards}}
        fullest = max((s.stored_bytes for s in commit.shards), default=0)
        covered = Covered(span, commit.records, commit.bytes, fullest, commit.caught_up, _pace(commit, tasks))
        return replace(self.after(covered), by_shard=by_shard)

    def after(self, batch: Covered) -> Rates:
        """The rates once this batch is known too, but for those of single shards."""
        return replace(
            self,
            records=self.records * _MEMORY + batch.records,
            bytes=self.bytes * _MEMORY + batch.bytes,
            seconds=self.seconds * _MEMORY + batch.span.total_seconds(),
            last=batch.span,
            fullest=batch.fullest / batch.span.total_seconds(),
            is_behind=not batch.caught_up,
            paces=(*self.paces, batch.pace)[-_PACES:] if batch.pace else self.paces,
        )

    def slice(self, settings: PlannerSettings, shards: int, slots: int = 1) -> timedelta:
        """The arrival time that the next batch may cover, with so many shards to read from, and tasks at once.

        Before anything was observed: what is within the limits even if all shards were full.
        """
        shards = max(shards, 1)
        full = min(settings.max_records / (_SHARD_RECORDS * shards), settings.max_bytes / (_SHARD_BYTES * shards))
        if self.seconds == 0:
            return max(_floor(full), _LEAST)
        wanted = self.seconds * min(
            settings.max_records / max(self.records, 1.0), settings.max_bytes / max(self.bytes, 1.0)
        )
        grown = max(_GROWTH * self.last.total_seconds(), full)
        capped = max(_MAX_BURST * full, _SHORT.total_seconds())
        tasks = min(slots, shards)
        fit = min(wanted, grown, capped, self._manageable(settings, tasks), self._at_once(settings, tasks))
        return max(_floor(fit), _LEAST)

    def _manageable(self, settings: PlannerSettings, tasks: int) -> float:
        """Seconds of arrival time whose records so many tasks work on in time.

        What others took beyond it was fixed cost or chance: a small batch, or one that a busy machine held up.
        """
        if not self.paces:
            return math.inf
        return self._done_in(max(_OVERLOADED * settings.interval.total_seconds(), _FIXED * self._quickest), tasks)

    def _at_once(self, settings: PlannerSettings, tasks: int) -> float:
        """Seconds of arrival time of which the fullest shard gives all at once, or in one subscription.

        But for no less than what arrives while a batch is at work or waits, or a backlog would stay; nor than what is
        worked on in a trigger interval, as so often everybody can have a batch; nor, at the tip, than what a late one
        finds.
        """
        if not self.paces or self.fullest <= 0:
            return math.inf
        interval = settings.interval.total_seconds()
        at_the_tip = 0.0 if self.is_behind else _LATE * interval
        arrive = _OVERLOADED * self._quickest + self.paces[-1].waits
        once = _PUSHED if settings.pushed else _ANSWER
        return max(once / self.fullest, at_the_tip, arrive, self._done_in(interval, tasks))

    @property
    def _quickest(self) -> float:
        """Seconds of it, of the last batches."""
        return min(pace.seconds for pace in self.paces)

    def _done_in(self, seconds: float, tasks: int) -> float:
        """Seconds of arrival time whose records so many tasks work on in that time, by the best of the last batches."""
        if self.records <= 0:
            return math.inf
        return seconds * tasks * max(pace.records for pace in self.paces) * self.seconds / self.records

    def expect(self, shard_id: str, span: timedelta) -> int:
        """Estimate of the records of a shard in a span of arrival time; 0: no idea."""
        return round(self.by_shard.get(shard_id, 0.0) * span.total_seconds())

    def worth_peeking_at(self, shard_id: str, span: timedelta) -> int:
        """Records to ask for where the first is looked for, as the shard may have got some in that span: one; or, where
        they should be few, so many that all of them come along."""
        return 2 * _FEW if self.are_few(shard_id, span) else 1

    def are_few(self, shard_id: str, span: timedelta) -> bool:
        """Whether a shard should have so few records in a span that reading them costs less than asking for its end."""
        return self.by_shard.get(shard_id, math.inf) * span.total_seconds() <= _FEW


def _pace(commit: BatchCommit, tasks: int) -> Pace | None:
    """What no work was done in does not count: waiting for table services, or on purpose. None: it is not known."""
    waits = sum(commit.sink.seconds.get(stage, 0.0) for stage in (TABLE_SERVICES, PAUSE)) if commit.sink else 0.0
    prepare = commit.seconds.get("plan", 0.0) + commit.seconds.get("fetch", 0.0)
    seconds = max(prepare, commit.seconds.get("write", 0.0) - waits)
    return Pace(seconds, commit.records / seconds / tasks, waits) if seconds > 0 and commit.records else None


def _floor(seconds: float) -> timedelta:
    return timedelta(milliseconds=int(seconds * 1000))
