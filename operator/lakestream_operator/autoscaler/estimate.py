"""What batches cost and how much arrives, from the batches of a window.

A batch of `n` records on `p` task slots that runs alone takes

    a + F + w₂·n/p        F = max( w₁·n/p,  r )

seconds: `a` for planning and committing, which executors make no shorter; `F` for fetching, `w₁` core-seconds per
record, or the time `r` in which Kinesis gives away the batch's share of the fullest shard at 2 MB/s; and `w₂`
core-seconds per record for writing. While one batch is written the next is fetched, on the same cores. So a pipeline
that never rests has a batch each

    T = max( F + w₂·n/p,  s·(a + F + w₂·n/p) )

seconds: what is fixed in one stage is hidden behind the other stage's work, unless the longer stage, a share `s` of
the batch, has most of both. Stages that ran side by side each look slower than they are; so batches tell something of
the first sum if they ran alone, and of `T` if they followed each other without a rest.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby, takewhile

from lakestream_api import Scaling
from lakestream_operator.autoscaler.observations import BatchObservation, ScalingWindow
from lakestream_operator.autoscaler.state import BatchModel, Sample, ScalingState

SHARD_READ_BYTES = 2_000_000.0
"""Per second, what Kinesis lets all polling consumers together read from a shard."""
RECORDS_PER_TASK = 10_000
"""The data plane's planner makes no more tasks than a batch has records for."""

WINDOW = timedelta(minutes=10)
"""For what batches cost; longer if it has fewer than `FEW` samples."""
RATE_WINDOW = timedelta(minutes=5)
"""For what arrives; the same holds. Shorter with a shorter `scaleDownAfter`, which would mean little otherwise."""
MEMORY = timedelta(hours=2)
"""For telling `a` from `w`, which takes batches of different sizes."""
_THIN = timedelta(minutes=4)
"""Between two samples that are older than the window, but for those from a backlog, which are rare."""
FEW = 5
_MAX_SAMPLES = 80
_SPREAD = 2.0
"""Largest through smallest `n/p` (10 % at either end left out) from which on a slope can be trusted."""
_MIN_DISTANCE = 1.1
"""Two samples nearer to each other than this say nothing about a slope."""
_BOUND = 0.75
"""Share of the fetch that the fullest shard's read limit accounts for, from which on that is what it waited for."""
_START_DELAY = 30.0
"""Until one was measured."""
_LEAST_COST = 1e-9
_LEAST_RATE = 1e-6
"""Records per second; less is none."""
_OVERDUE = 1.05
"""Trigger intervals from one commit to the next, from which on it is not the trigger that they wait for."""
_CHAINED = 3
"""Samples from a backlog in a row from which on they are believed."""
_ASSUMED_FIXED = 0.15
"""Share of a batch, until it is measured. At a steady load there is nothing to measure it by; if it is less, executors
turn out too few, batches follow each other without rest, and so it is measured."""
_MOST_LEARNT = 0.5
"""Share that is believed: of more, too few executors would be the price of a wrong measurement."""


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives and what is left."""

    rate: float
    """`λ`: records per second, over the window."""
    recent_rate: float
    """The median of the last three samples: a change shows with the second one, a single outlier does not."""
    record_bytes: float
    """Mean size, of the last that came."""
    backlog: float
    """`B`: records left unread by the newest batch."""
    lag: float
    """Age of the oldest record when the newest batch was committed, in seconds. Batches that grow with what has come
    meanwhile reach the tip each time, and report no lag; their records are late all the same."""
    open_shards: int
    shard_load: float
    """What the fullest shard gets per second, as a share of what may be read from it."""
    samples: int
    """That `rate` is the mean of."""
    groups: int = 0
    """File groups that a batch is written to; 0: no bound."""


def parallelism(records: float, slots: int, shards: int) -> int:
    """Tasks of a batch that run at once: the planner's own rule."""
    return max(1, min(slots, shards, math.ceil(records / RECORDS_PER_TASK)))


def take_in(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """The state once what is new in this window, batches or a rest, is among its samples."""
    samples = list(state.samples)
    new = [_Spaced.of(*three, window.caught_up_at, window.limits.interval) for three in _with_neighbours(state, window)]
    full = [batch for batch in new if batch.seen.records > 0]
    for _, group in groupby(full, key=lambda batch: (batch.seen.executors, batch.alone, batch.chained)):
        samples.append(_sample(list(group), window))
    kept = [sample for sample in samples if sample.is_rest and now - sample.at <= RATE_WINDOW]
    kept += _thinned(_of_batches(samples), now)
    kept += _rest(samples, window)
    kept = sorted(kept, key=lambda sample: sample.at)[-_MAX_SAMPLES:]
    if not new:
        return replace(state, samples=tuple(kept))
    newest = new[-1].seen
    return replace(state, samples=tuple(kept), last_finished_at=newest.finished_at, last_batch=newest.batch)


def _of_batches(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if not sample.is_rest]


def _thinned(samples: Sequence[Sample], now: datetime) -> list[Sample]:
    """All of the window, few of those before it."""
    kept: list[Sample] = []
    # Of an idle stream the last few stay, however old.
    for index, sample in enumerate(samples, -len(samples)):
        age = now - sample.at
        spaced = not kept or sample.at - kept[-1].at >= _THIN or sample.chained
        if age <= WINDOW or index >= -FEW or (age <= MEMORY and spaced):
            kept.append(sample)
    return kept


def _rest(samples: Sequence[Sample], window: ScalingWindow) -> list[Sample]:
    """The time since the last sample, if the driver has looked for records meanwhile and found none."""
    if window.caught_up_at is None or not samples or window.caught_up_at <= samples[-1].at:
        return []
    last = samples[-1]
    return [
        Sample(
            at=window.caught_up_at,
            batches=0,
            records=0.0,
            bytes=0.0,
            prepare=0.0,
            finish=0.0,
            busy=0.0,
            alone=False,
            chained=False,
            late=0.0,
            executors=last.executors,
            slots=last.slots,
            span=(window.caught_up_at - last.at).total_seconds(),
        )
    ]


@dataclass(frozen=True, slots=True)
class _Before:
    """The batch before."""

    finished_at: datetime
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class _Spaced:
    """A batch, and how it lay in time beside its neighbours."""

    seen: BatchObservation
    busy: float
    """Seconds that it took up at most."""
    alone: bool
    """Whether neither of its stages ran beside one of another batch."""
    chained: bool
    """Whether it began as soon as the one before let it."""
    late: float

    @classmethod
    def of(
        cls,
        before: _Before | None,
        batch: BatchObservation,
        after: BatchObservation | None,
        looked_at: datetime | None,
        interval: float,
    ) -> _Spaced:
        stages = batch.prepare_seconds + batch.finish_seconds
        period = stages if before is None else (batch.finished_at - before.finished_at).total_seconds()
        alone = before is not None and stages <= period
        if after is None:
            # The next one begins an interval after this one began, unless it has a backlog before it.
            alone = alone and batch.lag_seconds == 0 and stages <= interval
        else:
            rest = (after.finished_at - batch.finished_at).total_seconds()
            alone = alone and after.prepare_seconds + after.finish_seconds <= rest
        overlapped = before is not None and 0 < period <= stages
        chained = before is not None and overlapped and (before.lag_seconds > 0 or period > _OVERDUE * interval)
        # Its oldest record came just after the batch before was planned, even if it was read to the tip; or after the
        # driver had looked for records in vain.
        waited = period
        if looked_at is not None and looked_at < batch.finished_at:
            waited = min(waited, (batch.finished_at - looked_at).total_seconds())
        late = max(batch.lag_seconds, stages + max(waited, 0.0))
        return cls(batch, min(stages, period) if period > 0 else stages, alone, chained, late)


def _with_neighbours(
    state: ScalingState, window: ScalingWindow
) -> list[tuple[_Before | None, BatchObservation, BatchObservation | None]]:
    """The batches not seen before; each with the one before it, and the one behind it."""
    batches = window.batches
    known = state.last_batch
    if known is not None and batches and batches[-1].batch < known:
        known = None  # numbers begin again: the checkpoint was made anew
    ends = {batch.batch: _Before(batch.finished_at, batch.lag_seconds) for batch in batches}
    if known is not None and state.last_finished_at is not None:
        ends.setdefault(known, _Before(state.last_finished_at, 0.0))
    followers = [*batches[1:], None][: len(batches)]
    return [
        (ends.get(batch.batch - 1), batch, follower)
        for batch, follower in zip(batches, followers, strict=True)
        if known is None or batch.batch > known
    ]


def _sample(batches: Sequence[_Spaced], window: ScalingWindow) -> Sample:
    seen = [batch.seen for batch in batches]
    last = seen[-1]
    records = _mean(seen, lambda batch: batch.records)
    reading = _mean(seen, lambda batch: batch.largest_shard_bytes) * window.consumers / SHARD_READ_BYTES
    fetch = _mean(seen, lambda batch: batch.fetch_seconds)
    return Sample(
        at=last.finished_at,
        batches=len(seen),
        records=records,
        bytes=_mean(seen, lambda batch: batch.bytes),
        prepare=_mean(seen, lambda batch: batch.prepare_seconds),
        finish=_mean(seen, lambda batch: batch.finish_seconds),
        busy=sum(batch.busy for batch in batches) / len(seen),
        alone=batches[0].alone,
        chained=batches[0].chained,
        late=batches[-1].late,
        executors=last.executors,
        slots=parallelism(records, last.executors * window.limits.cores, max(1, last.open_shards)),
        span=sum(_span(batch) for batch in seen),
        reading=reading,
        shard_bound=0 < fetch <= reading / _BOUND,
        groups=max(batch.file_groups for batch in seen),
    )


def _span(batch: BatchObservation) -> float:
    rate = batch.arrival_rate
    return batch.records / rate if rate is not None and rate > _LEAST_RATE else 0.0


def _mean(batches: Sequence[BatchObservation], value: Callable[[BatchObservation], float]) -> float:
    return sum(value(batch) for batch in batches) / len(batches)


def fit(state: ScalingState, now: datetime) -> ScalingState:
    """The state with a model that fits its samples; what they cannot tell stays as it was."""
    samples = _of_batches(state.samples)
    recent = [sample for sample in samples if now - sample.at <= WINDOW] or samples[-FEW:]
    alone = [sample for sample in recent if sample.alone]
    # A single batch that ran into the next one shows little: it takes a row of them, up to now.
    chained = list(takewhile(lambda sample: sample.chained, reversed(recent)))
    model = state.model
    if alone and len(chained) < _CHAINED:
        return replace(state, model=_fit_alone(samples, alone, model))
    if model is None:
        costs = [sample.busy / _per_slot(sample) for sample in chained or recent]
        return replace(state, model=BatchModel(0.0, 0.0, statistics.median(costs))) if costs else state
    if len(chained) >= _CHAINED:
        off = statistics.median(
            s.busy / model.seconds(s.records, model.tasks(s.slots, s.groups), s.reading) for s in chained
        )
        # In a backlog what is fixed is hidden; so this tells how much it is.
        share = 1 - off * (1 - _share(model))
        learnt = min(max(share, 0.0), _MOST_LEARNT)
        return replace(
            state, model=replace(model, fetch=off * model.fetch, write=off * model.write, fixed_share=learnt)
        )
    return state


def _share(model: BatchModel | None) -> float:
    return _ASSUMED_FIXED if model is None or model.fixed_share is None else model.fixed_share


def _fit_alone(samples: Sequence[Sample], recent: Sequence[Sample], before: BatchModel | None) -> BatchModel:
    """By batches that ran alone."""
    measured = _fixed_share([sample for sample in samples if sample.alone and not sample.shard_bound])
    share = _share(before) if measured is None else measured
    fetch = statistics.median((1 - share) * s.prepare / _per_slot(s) for s in recent)
    if before is not None and before.fetch > 0 and 2 * sum(sample.shard_bound for sample in recent) > len(recent):
        # How long a shard's read limit lasts says nothing about executors; it only sets a bound.
        fetch = min(fetch, before.fetch)
    return BatchModel(
        fixed=share * statistics.median(_stages(sample) for sample in recent),
        fetch=fetch,
        write=max(statistics.median((1 - share) * s.finish / _per_writer(s) for s in recent), _LEAST_COST),
        longest_stage=statistics.median(max(s.prepare, s.finish) / _stages(s) for s in recent),
        fixed_share=share if measured is not None else before.fixed_share if before else None,
    )


def _stages(sample: Sample) -> float:
    return sample.prepare + sample.finish


def _per_slot(sample: Sample) -> float:
    return sample.records / sample.slots


def _per_writer(sample: Sample) -> float:
    return sample.records / (min(sample.slots, sample.groups) if sample.groups else sample.slots)


def _fixed_share(samples: Sequence[Sample]) -> float | None:
    """The part of a batch that is fixed, if batches are different enough to tell."""
    points = sorted((_per_slot(sample), _stages(sample)) for sample in samples)
    inner = points[len(points) // 10 : len(points) - len(points) // 10]
    if len(points) < FEW or inner[-1][0] < _SPREAD * inner[0][0]:
        return None
    usual = statistics.median(seconds for _, seconds in points)
    return min(_intercept(points) / usual, _MOST_LEARNT)


def _intercept(points: Sequence[tuple[float, float]]) -> float:
    """By the slopes between all pairs (Theil–Sen: up to 29 % of the points may be off)."""
    slopes = [
        (t1 - t0) / (x1 - x0)
        for index, (x0, t0) in enumerate(points)
        for x1, t1 in points[index + 1 :]
        if x1 >= _MIN_DISTANCE * x0
    ]
    slope = statistics.median(slopes)
    return max(0.0, statistics.median(t - max(slope, 0.0) * x for x, t in points))


def load_of(spec: Scaling, state: ScalingState, window: ScalingWindow, now: datetime) -> Load | None:
    """The load as the samples have it; None before the first batch whose arrival rate is known."""
    known = [sample for sample in state.samples if sample.span > 0]
    came = _of_batches(known)
    if not came or not window.batches:
        return None
    newest = window.batches[-1]
    inside = [sample for sample in known if now - sample.at <= min(RATE_WINDOW, spec.scale_down_after)]
    inside = inside if len(inside) >= FEW else known[-FEW:]
    recent = known[-3:]
    # What the last batch left behind is read by now if the driver has since found nothing to read.
    rests = known[-1].is_rest
    late = 0.0 if rests else max(newest.lag_seconds, known[-1].late)
    left = 0.0 if rests else newest.backlog_records
    rate = _rate(inside)
    last = came[-FEW:]
    return Load(
        rate=rate,
        recent_rate=statistics.median(_rate([sample]) for sample in recent),
        record_bytes=sum(s.bytes * s.batches for s in last) / sum(s.records * s.batches for s in last),
        backlog=max(left, rate * max(0.0, late - 2 * window.limits.interval)),
        lag=late,
        open_shards=max(1, newest.open_shards),
        shard_load=sum(s.reading * s.batches for s in recent) / sum(s.span for s in recent),
        samples=len(inside),
        groups=max(sample.groups for sample in last),
    )


def _rate(samples: Sequence[Sample]) -> float:
    return sum(sample.records * sample.batches for sample in samples) / sum(sample.span for sample in samples)


def start_delay(state: ScalingState) -> float:
    """`D`: seconds until an executor that is asked for works."""
    return statistics.median(state.start_delays) if state.start_delays else _START_DELAY
