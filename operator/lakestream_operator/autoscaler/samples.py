"""From batches to samples: what each batch brought and what it cost, few enough to be remembered for half an hour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from lakestream_api import BatchSummary
from lakestream_operator.autoscaler.inputs import ScalingWindow
from lakestream_operator.autoscaler.state import Sample, ScalingState

SHARD_READ_BYTES = 2_000_000.0
"""Per second, what Kinesis lets all polling consumers together read from a shard, and what it pushes to another one."""
_ANSWER_SECONDS = 5.0
"""That the largest answer, 10 MB, takes at this rate; it comes at once, and keeps the next one waiting."""
RECORDS_PER_TASK = 10_000
"""The data plane's planner makes no more tasks than a batch has records for."""
RANGES_AT_ONCE = 4
"""Shards that a task asks at once."""
MEMORY = timedelta(minutes=25)
FEW = 5
"""Samples of batches that stay however old they are: what a batch costs is known after a night of silence too."""
_FINE = timedelta(minutes=4)
"""Younger samples are single batches, but for very short ones; older ones are put together."""
_SHORT, _LONG = 5.0, 60.0
"""Seconds of arrival time that a sample covers at least, while it is young and later."""
_MANY = 300
"""Samples from which on fewer are made also of batches that are not alike in turn: these are in an annotation."""
_BOUND = 0.25
"""Share of fetching tasks' time that waiting for the fullest shard may account for, from which on they may have."""
_LEAST_RATE = 1e-6
"""Records per second; less is none."""


def parallelism(records: float, slots: int, shards: int) -> int:
    """Tasks of a batch that run at once: the planner's own rule."""
    return max(1, min(slots, shards, math.ceil(records / RECORDS_PER_TASK)))


def take_in(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """The state once what is new in this window, batches or a rest, is among its samples."""
    known = state.last_batch
    if known is not None and window.batches and window.batches[-1].batch < known:
        known = None  # numbers begin again: the checkpoint was made anew
    new = [batch for batch in window.batches if known is None or batch.batch > known]
    samples = [*state.samples, *(_sample(batch, window) for batch in new if batch.records > 0)]
    samples = _merged(samples, now)
    samples = samples if len(samples) <= _MANY else _thinned(samples, now)
    samples += _rest(samples, window)
    last = [sample for sample in samples if not sample.is_rest][-FEW:]
    kept = tuple(sample for sample in samples if now - sample.at <= MEMORY or sample in last)
    if not new:
        return replace(state, samples=kept)
    return replace(state, samples=kept, last_finished_at=new[-1].finished_at, last_batch=new[-1].batch)


def with_fetched(samples: Sequence[Sample], window: ScalingWindow) -> tuple[Sample, ...]:
    """The samples, and the batch that is being written: what it cost is not known yet, but what arrived is."""
    fetched, last = window.fetched, window.batches[-1].batch if window.batches else -1
    if fetched is None or fetched.batch <= last or not fetched.slice_seconds or fetched.records <= 0:
        return tuple(samples)
    return (
        *samples,
        Sample(
            fetched.fetched_at,
            records=fetched.records,
            bytes=fetched.bytes,
            span=fetched.slice_seconds,
            reading=_reading(fetched.largest_shard_bytes, window),
        ),
    )


def _sample(batch: BatchSummary, window: ScalingWindow) -> Sample:
    slots = parallelism(batch.records, batch.executors * window.limits.cores, max(1, batch.open_shards))
    seconds, work = batch.seconds, batch.core_seconds
    stages = seconds.prepare + seconds.finish
    reading = _reading(batch.largest_shard_bytes, window)
    # A driver that does not tell: all slots were at work all the time, at most.
    fetch = work.fetch if work else seconds.prepare * slots
    write = work.write if work else seconds.finish * slots
    alone = stages <= window.limits.interval and batch.lag_seconds == 0
    return Sample(
        at=batch.finished_at,
        batches=1,
        records=batch.records,
        bytes=batch.bytes,
        span=_span(batch),
        fetch_work=fetch,
        write_work=write,
        services=work.services if work else 0.0,
        measured=work is not None,
        fixed=max(0.0, stages - (fetch + write) / slots) if work and alone else None,
        stages=stages,
        longest=max(seconds.prepare, seconds.finish),
        executors=batch.executors,
        reading=reading,
        shard_bound=0 < fetch <= slots * sum(waiting(reading, window.consumers)) / _BOUND,
        groups=batch.file_groups or 0,
    )


def _span(batch: BatchSummary) -> float:
    rate = batch.arrival_rate
    return batch.records / rate if rate is not None and rate > _LEAST_RATE else 0.0


def _reading(largest: int, window: ScalingWindow) -> float:
    return largest / read_bytes(window.consumers)


def read_bytes(consumers: int) -> float:
    """Of a shard per second, for each of so many that ask; for one that is pushed to, 0."""
    return SHARD_READ_BYTES / max(1, consumers)


def waiting(reading: float, consumers: int) -> tuple[float, float]:
    """Seconds that a batch may wait for a shard's first answer, and from there to its last one.

    `reading` is how long Kinesis takes to give as much to all consumers. An answer of up to 10 MB comes at once, and
    keeps whoever asks next waiting until it is paid off. What is pushed comes evenly.
    """
    if consumers == 0:
        return 0.0, reading
    answer = min(reading / consumers, _ANSWER_SECONDS)
    return (consumers - 1) * answer, reading - consumers * answer


def _merged(samples: Sequence[Sample], now: datetime) -> list[Sample]:
    """Short samples put together, as long as they ran on the same executors."""
    kept: list[Sample] = []
    for sample in samples:
        last = kept[-1] if kept else None
        if last is not None and last.span + sample.span <= _least(sample, now) and _alike(last, sample):
            kept[-1] = _sum(last, sample)
        else:
            kept.append(sample)
    return kept


def _thinned(samples: Sequence[Sample], now: datetime) -> list[Sample]:
    """Of each kind one sample in as much time as one covers at least, where kinds alternate from batch to batch."""
    kept: dict[tuple[object, ...], Sample] = {}
    for sample in samples:
        least = _least(sample, now)
        kind = () if sample.is_rest else (sample.executors, sample.shard_bound, sample.measured)
        key = (least, sample.at.timestamp() // least, *kind)
        kept[key] = _sum(kept[key], sample) if key in kept else sample
    return sorted(kept.values(), key=lambda sample: sample.at)


def _least(sample: Sample, now: datetime) -> float:
    """Seconds that it covers at least."""
    return _SHORT if now - sample.at <= _FINE else _LONG


def _alike(one: Sample, other: Sample) -> bool:
    return (one.executors, one.shard_bound, one.measured) == (other.executors, other.shard_bound, other.measured) or (
        one.is_rest and other.is_rest
    )


def _sum(one: Sample, other: Sample) -> Sample:
    fixed = [sample.fixed for sample in (one, other) if sample.fixed is not None]
    return replace(
        other,
        batches=one.batches + other.batches,
        records=one.records + other.records,
        bytes=one.bytes + other.bytes,
        span=one.span + other.span,
        fetch_work=one.fetch_work + other.fetch_work,
        write_work=one.write_work + other.write_work,
        services=one.services + other.services,
        # Of each batch, not of all.
        fixed=sum(fixed) / len(fixed) if fixed else None,
        stages=one.stages + other.stages,
        longest=one.longest + other.longest,
        reading=one.reading + other.reading,
        groups=max(one.groups, other.groups),
    )


def _rest(samples: Sequence[Sample], window: ScalingWindow) -> list[Sample]:
    """The time since the last sample, if the driver has looked for records meanwhile and found none."""
    if window.caught_up_at is None or not samples or window.caught_up_at <= samples[-1].at:
        return []
    last = samples[-1]
    span = (window.caught_up_at - last.at).total_seconds()
    return [Sample(window.caught_up_at, span=span, executors=last.executors)]
