"""What can be seen of a run at one instant. Values only; the view draws them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_api import Progress

WINDOW = timedelta(seconds=6)
"""Over what rates are taken: long enough to hold a few batches."""


@dataclass(frozen=True)
class LoadSeen:
    """What the users have done, as Locust counts."""

    acknowledged: int = 0
    """Records that Kinesis took."""
    failed: int = 0
    """Records given up."""

    def __add__(self, other: LoadSeen) -> LoadSeen:
        return LoadSeen(self.acknowledged + other.acknowledged, self.failed + other.failed)

    def grown(self, later: LoadSeen) -> LoadSeen:
        """What is known after another look, which may have missed something: these counters never shrink."""
        return LoadSeen(max(self.acknowledged, later.acknowledged), max(self.failed, later.failed))


@dataclass(frozen=True)
class StreamSeen:
    """What has reached the stream, as Kinesis counts."""

    records: int = 0
    """Records taken: also those whose acknowledgement was lost on the way."""
    throttled: int = 0
    """Records refused for a shard's limit; each is sent again, and may count several times."""

    @property
    def sent(self) -> int:
        """Records that arrived at Kinesis's door, those sent again counted each time."""
        return self.records + self.throttled


@dataclass(frozen=True)
class WriterSeen:
    """What one application has published."""

    name: str
    batches: int = 0
    records: int = 0
    """Records read, in committed batches."""
    rows: int = 0
    quarantined: int = 0
    read_until: datetime | None = None
    """Arrival of the last record read, in the slowest shard of the last batch. None before the first batch."""
    last_seconds: float = 0.0
    """What the last batch took, waiting for its trigger excluded."""
    last_records: int = 0
    freshness_seconds: float | None = None
    """Median over the last batch's records, from arrival in Kinesis to visible in the lake."""

    def after(self, progress: Progress) -> WriterSeen:
        """The same writer one batch later."""
        arrivals = [shard.last_arrival for shard in progress.shards if shard.records and shard.last_arrival]
        return replace(
            self,
            batches=self.batches + 1,
            records=self.records + progress.records,
            rows=self.rows + progress.rows_written,
            quarantined=self.quarantined + progress.quarantined,
            read_until=min(arrivals, default=self.read_until),
            last_seconds=progress.seconds.total,
            last_records=progress.records,
            freshness_seconds=progress.freshness.p50_seconds if progress.freshness else self.freshness_seconds,
        )


@dataclass(frozen=True)
class Observed:
    """The whole pipeline at one instant."""

    at: datetime
    load: LoadSeen
    stream: StreamSeen
    writers: tuple[WriterSeen, ...]

    def backlog(self, writer: WriterSeen) -> int:
        """Records in the stream that a writer has not made visible yet."""
        return max(0, self.stream.records - writer.records)

    def lag(self, writer: WriterSeen) -> float | None:
        """Age in seconds of what a writer has read last, 0 at the tip; None before its first batch."""
        if writer.read_until is None:
            return None
        return (self.at - writer.read_until).total_seconds() if self.backlog(writer) else 0.0

    @property
    def drained(self) -> bool:
        """Whether each writer has read everything that the stream holds."""
        return all(self.backlog(writer) == 0 for writer in self.writers)


@dataclass(frozen=True)
class Rates:
    """Records a second over the last few seconds."""

    sent: float
    acknowledged: float
    writers: tuple[float, ...]


def rates(window: Sequence[Observed]) -> Rates:
    """Rates between the ends of a window of observations, which is in order of time."""
    first, last = window[0], window[-1]
    # A window of one observation has no length, and nothing happened in it.
    seconds = (last.at - first.at).total_seconds() or 1.0
    return Rates(
        sent=(last.stream.sent - first.stream.sent) / seconds,
        acknowledged=(last.load.acknowledged - first.load.acknowledged) / seconds,
        writers=tuple(
            (now.records - before.records) / seconds for before, now in zip(first.writers, last.writers, strict=True)
        ),
    )
