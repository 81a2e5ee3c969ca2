"""What batches cost and how much arrives, from the batches of a window.

The model is `T = a + w·n/p`: a batch of `n` records on `p` task slots keeps the pipeline busy for `T` seconds, of
which `a` is planning and committing, and `w` are core-seconds per record.

`T` is not the sum of a batch's stages. While one batch is written the next is fetched by the same cores, so that both
seem slow; but from one commit to the next there passes just the time that one batch takes up. At the tip the pipeline
also rests, and then the stages follow each other. So `T` is the smaller of the two.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from lakestream_operator.autoscaler.observations import BatchObservation, ScalingWindow
from lakestream_operator.autoscaler.state import Sample, ScalingState

SHARD_READ_BYTES = 2_000_000.0
"""Per second, what Kinesis lets all polling consumers together read from a shard."""
RECORDS_PER_TASK = 10_000
"""The data plane's planner makes no more tasks than a batch has records for."""

WINDOW = timedelta(minutes=5)
"""For rates and for `w`; longer if it has fewer than `FEW` samples."""
RECENT = timedelta(seconds=60)
"""For what has changed just now."""
MEMORY = timedelta(minutes=30)
"""For telling `a` from `w`, which takes batches of different sizes."""
FEW = 5
_MAX_SAMPLES = 64
_SPREAD = 1.5
"""Largest through smallest `n/p` (10 % at either end left out) from which on a slope can be trusted."""
_MIN_DISTANCE = 1.1
"""Two samples nearer to each other than this say nothing about a slope."""
_BOUND = 0.8
"""Share of the fetch that the fullest shard's read limit accounts for, when that limit is what it waited for."""
_START_DELAY = 30.0
"""Until one was measured."""


@dataclass(frozen=True, slots=True)
class BatchModel:
    """`T = a + w·n/p`."""

    fixed: float
    """`a`, in seconds."""
    per_record: float
    """`w`, in core-seconds."""

    def seconds(self, records: float, slots: float) -> float:
        """`T` of a batch."""
        return self.fixed + self.per_record * records / slots


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives and what is left."""

    rate: float
    """`λ`: records per second, over the window."""
    recent_rate: float
    """The same over the last minute."""
    record_bytes: float
    """Mean size."""
    backlog: float
    """`B`: records left unread by the newest batch."""
    lag: float
    """Seconds, of the slowest shard after the newest batch."""
    open_shards: int
    shard_load: float
    """What the fullest shard gets per second, as a share of what may be read from it."""
    busy_seconds: float
    """`T` of the newest sample."""


def parallelism(records: float, slots: int, shards: int) -> int:
    """Tasks of a batch that run at once: the planner's own rule."""
    return max(1, min(slots, shards, math.ceil(records / RECORDS_PER_TASK)))


def take_in(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """The state once the batches that are new in this window are among its samples."""
    new = _new_batches(state, window)
    samples = list(state.samples)
    previous, number = state.last_finished_at, state.last_batch
    for _, group in groupby(new, key=lambda batch: batch.executors):
        batches = list(group)
        full = [batch for batch in batches if batch.records > 0]
        if full:
            busy = _busy_seconds(batches, previous, number)
            samples.append(_sample(full, [busy[batch.batch] for batch in full], window))
        previous, number = batches[-1].finished_at, batches[-1].batch
    # Of an idle stream the last few stay, however old.
    young = sum(now - sample.at <= MEMORY for sample in samples)
    kept = samples[-min(max(young, FEW), _MAX_SAMPLES) :]
    return replace(state, samples=tuple(kept), last_finished_at=previous, last_batch=number)


def _new_batches(state: ScalingState, window: ScalingWindow) -> list[BatchObservation]:
    newest = window.batches[-1].batch if window.batches else None
    # A lower number than one seen before: the checkpoint was made anew.
    known = state.last_batch if newest is None or state.last_batch is None or newest >= state.last_batch else None
    return [batch for batch in window.batches if known is None or batch.batch > known]


def _busy_seconds(
    batches: Sequence[BatchObservation], previous: datetime | None, number: int | None
) -> dict[int, float]:
    busy: dict[int, float] = {}
    for batch in batches:
        stages = batch.prepare_seconds + batch.finish_seconds
        follows = previous is not None and number is not None and batch.batch == number + 1
        period = (batch.finished_at - previous).total_seconds() if follows and previous is not None else stages
        busy[batch.batch] = min(stages, period) if period > 0 else stages
        previous, number = batch.finished_at, batch.batch
    return busy


def _sample(batches: Sequence[BatchObservation], busy: Sequence[float], window: ScalingWindow) -> Sample:
    count, last = len(batches), batches[-1]
    records = sum(batch.records for batch in batches) / count
    shard_seconds = sum(b.largest_shard_bytes for b in batches) * window.consumers / SHARD_READ_BYTES
    fetch = sum(batch.fetch_seconds for batch in batches)
    return Sample(
        at=last.finished_at,
        batches=count,
        records=records,
        bytes=sum(batch.bytes for batch in batches) / count,
        seconds=sum(busy) / count,
        executors=last.executors,
        slots=parallelism(records, last.executors * window.limits.cores, max(1, last.open_shards)),
        span=sum(batch.records / batch.arrival_rate for batch in batches if batch.arrival_rate),
        shard_bytes=sum(batch.largest_shard_bytes for batch in batches) / count,
        shard_bound=0 < fetch <= shard_seconds / _BOUND,
    )


def fit(state: ScalingState, now: datetime) -> ScalingState:
    """The state with `a` and `w` as the samples have them; where they cannot tell, as they were before."""
    usable = [sample for sample in state.samples if not sample.shard_bound]
    recent = _within(usable, now, WINDOW)
    if not recent:
        return state
    fixed = _fixed(usable)
    # A batch was at least as long as its fixed part.
    fixed = min(state.fixed if fixed is None else fixed, *(sample.seconds for sample in recent))
    costs = [(sample.seconds - fixed) * sample.slots / sample.records for sample in recent]
    return replace(state, fixed=fixed, per_record=max(statistics.median(costs), 1e-9))


def _fixed(samples: Sequence[Sample]) -> float | None:
    """`a` by the slopes between all pairs (Theil–Sen: up to 29 % of samples may be off); None without spread."""
    points = sorted((sample.records / sample.slots, sample.seconds) for sample in samples)
    cut = len(points) // 10
    inner = points[cut : len(points) - cut]
    if len(points) < FEW or inner[-1][0] < _SPREAD * inner[0][0]:
        return None
    slopes = [
        (t1 - t0) / (x1 - x0)
        for index, (x0, t0) in enumerate(points)
        for x1, t1 in points[index + 1 :]
        if x1 >= _MIN_DISTANCE * x0
    ]
    slope = statistics.median(slopes)
    if slope <= 0:
        return None
    return max(0.0, statistics.median(t - slope * x for x, t in points))


def _within(samples: Sequence[Sample], now: datetime, span: timedelta, few: int = FEW) -> Sequence[Sample]:
    inside = [sample for sample in samples if now - sample.at <= span]
    return inside if len(inside) >= few else samples[-few:]


def load_of(state: ScalingState, window: ScalingWindow, now: datetime) -> Load | None:
    """The load as the samples have it; None before the first batch whose arrival rate is known."""
    known = [sample for sample in state.samples if sample.span > 0]
    if not known or not window.batches:
        return None
    newest = window.batches[-1]
    inside, recent = _within(known, now, WINDOW), _within(known, now, RECENT, few=2)
    read_limit = SHARD_READ_BYTES / window.consumers
    idle = _idle_seconds(window, newest)
    return Load(
        rate=_rate(inside, idle),
        recent_rate=_rate(recent, idle),
        record_bytes=sum(s.bytes * s.batches for s in inside) / sum(s.records * s.batches for s in inside),
        backlog=newest.backlog_records if newest.lag_seconds > 0 else 0.0,
        lag=newest.lag_seconds,
        open_shards=max(1, newest.open_shards),
        shard_load=sum(s.shard_bytes * s.batches for s in recent) / sum(s.span for s in recent) / read_limit,
        busy_seconds=known[-1].seconds,
    )


def _idle_seconds(window: ScalingWindow, newest: BatchObservation) -> float:
    """How long nothing has come: the driver has looked since the last batch, and there was nothing to read."""
    if window.caught_up_at is None:
        return 0.0
    return max(0.0, (window.caught_up_at - newest.finished_at).total_seconds())


def _rate(samples: Sequence[Sample], idle: float) -> float:
    return sum(sample.records * sample.batches for sample in samples) / (sum(sample.span for sample in samples) + idle)


def start_delay(state: ScalingState) -> float:
    """`D`: seconds until an executor that is asked for works."""
    return statistics.median(state.start_delays) if state.start_delays else _START_DELAY
