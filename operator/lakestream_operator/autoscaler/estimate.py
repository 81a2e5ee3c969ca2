"""What batches cost and how much arrives.

Spark measures the core-seconds of each batch's tasks. What a record costs is their median over the last batches,
whether others ran beside them or not, beyond what a batch takes however small it is; that is told by batches of
different sizes. A part of it goes by the byte: half, until records of different sizes tell; so those of another size
are not taken for another load. `a` is what the stages of batches that ran alone took beyond these
core-seconds on their slots.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from lakestream_operator.autoscaler.inputs import ScalingWindow
from lakestream_operator.autoscaler.rates import Rate, rate_of
from lakestream_operator.autoscaler.samples import FEW, read_bytes, with_fetched
from lakestream_operator.autoscaler.state import BatchModel, Sample, ScalingState
from lakestream_operator.lag import lag_before, read_until

WINDOW = timedelta(minutes=10)
"""For what batches cost; longer if it has fewer than `FEW` samples."""
_SURE = 3
"""Batches from which on the model can be trusted…"""
_SPREAD = 0.25
"""…if half of them lie within this share of the median."""
_START_DELAY = 30.0
"""Until one was measured."""
_LEAST_COST = 1e-9
_BATCHES, _DEARER = 3.0, 1.15
"""Largest through smallest batch, in records, from which on they tell what goes by the batch, if records of the small
ones cost by so much more than noise does."""
_SIZES = 1.5
"""Largest through smallest mean size of records, from which on batches tell what goes by the byte."""


@dataclass(frozen=True, slots=True)
class Load:
    """What arrives and what is left."""

    rate: Rate
    record_bytes: float
    """Mean size, of the last that came."""
    lag: float
    """Age of the oldest record when the last batch was committed, or of what is not in the table yet, in seconds."""
    backlog: float
    """Records left unread by the newest batch."""
    open_shards: int
    shard_load: float
    """What the fullest shard gets per second, as a share of what may be read from it."""
    consumers: int = 1
    """Writers that ask for the stream's records; 0: they are pushed to this one."""
    even_shards: float = math.inf
    """As many shards as full as the fullest would get what all get together; infinite: not known."""
    groups: int = 0
    """File groups that a batch is written to; 0: no bound."""
    fullest_shard: str = ""
    """Its id; empty: not known."""


def fit(state: ScalingState, window: ScalingWindow, now: datetime) -> ScalingState:
    """The state with a model that fits its samples; what they cannot tell stays as it was."""
    full = [sample for sample in state.samples if not sample.is_rest]
    full = [sample for sample in full if sample.measured] or full
    if not full:
        return state
    before = state.model or BatchModel(0.0, math.inf, 0.0)
    share = _byte_share(full, before)
    model = replace(
        before,
        size=_size(with_fetched(full, window)[-1:]),
        byte_share=before.byte_share if share is None else share,
    )
    told = _told(full, model)
    recent = [one for one in told if now - one.sample.at <= WINDOW]
    recent = recent if len(recent) >= FEW else told[-FEW:]
    model = _with_base(model, told)
    writes = _rated([one.sample.write_work for one in recent], model.write_base, recent)
    fetches = _rated([one.sample.fetch_work for one in recent], model.fetch_base, recent)
    # How long tasks wait for a shard at its read limit says nothing about executors; it only sets a bound.
    free = [fetch for fetch, one in zip(fetches, recent, strict=True) if not one.sample.shard_bound]
    fetch = statistics.median(free) if 2 * len(free) >= len(recent) else min(statistics.median(fetches), before.fetch)
    fixed = [one.sample.fixed for one in recent if one.sample.fixed is not None]
    model = replace(
        model,
        fixed=statistics.median(fixed) if fixed else before.fixed,
        fetch=fetch,
        write=max(statistics.median(writes), _LEAST_COST),
        # Compaction comes in lumps, of many batches at once.
        services=sum([one.services for one in full]) / sum([one.alike for one in told]),
        longest_stage=statistics.median([one.sample.longest / max(one.sample.stages, _LEAST_COST) for one in recent]),
        is_sure=recent[0].sample.measured
        and sum([one.sample.batches for one in recent]) >= _SURE
        and _agree(_costs(recent, model)),
    )
    return replace(state, model=model)


class _Told(NamedTuple):
    """A sample, and how many records of the size that comes now cost as much as its own: worked out once for all that
    is asked of it, since models are fitted every five seconds for each writer."""

    sample: Sample
    alike: float


def _told(samples: Sequence[Sample], model: BatchModel) -> list[_Told]:
    return [_Told(sample, model.alike(sample.records, sample.bytes)) for sample in samples]


def _rated(works: Sequence[float], base: float, told: Sequence[_Told]) -> list[float]:
    """Core-seconds of a record of the size that comes now, by each sample."""
    return [max(0.0, work - base * sample.batches) / alike for work, (sample, alike) in zip(works, told, strict=True)]


def _costs(told: Sequence[_Told], model: BatchModel) -> list[float]:
    return _rated([one.sample.fetch_work + one.sample.write_work for one in told], model.base, told)


def _with_base(model: BatchModel, samples: Sequence[_Told]) -> BatchModel:
    """The model with what a batch takes however small it is.

    Where all batches are of about one size, that stays as it was, but for what the smallest of them allow.
    """
    told = [one for one in samples if one.sample.measured and not one.sample.shard_bound]
    if not told:
        return model
    sizes = [alike / sample.batches for sample, alike in told]
    fetches = [sample.fetch_work / sample.batches for sample, _ in told]
    writes = [sample.write_work / sample.batches for sample, _ in told]
    return replace(
        model,
        fetch_base=_base(model.fetch_base, sizes, fetches),
        write_base=_base(model.write_base, sizes, writes),
    )


def _base(before: float, sizes: Sequence[float], works: Sequence[float]) -> float:
    """Where the line through the medians of small and of large batches begins."""
    groups = _apart(sizes, works, _BATCHES)
    if groups is None:
        return min(before, *works)
    (small, cheap), (large, dear) = groups
    if cheap / small < _DEARER * dear / large:
        return 0.0
    return min(max(0.0, cheap - max(0.0, dear - cheap) / (large - small) * small), *works)


def _apart(
    sizes: Sequence[float], costs: Sequence[float], factor: float
) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Medians of size and cost of the small ones and of the large; None: too few, or all are of about one size."""
    least, most = min(sizes), max(sizes)
    if most < factor * least:
        return None
    middle = math.sqrt(least * most)
    groups = [[one for one in zip(sizes, costs, strict=True) if (one[0] > middle) == large] for large in (False, True)]
    if min(len(group) for group in groups) < _SURE:
        return None
    small, large = (
        (statistics.median(size for size, _ in group), statistics.median(cost for _, cost in group)) for group in groups
    )
    return small, large


def cost(samples: Sequence[Sample], model: BatchModel) -> float:
    """Core-seconds of a record of the size that comes now: the median of samples that are not rests."""
    return statistics.median(_costs(_told(samples, model), model))


def _byte_share(samples: Sequence[Sample], model: BatchModel) -> float | None:
    """What goes by the byte, by the medians of small and of large records; None: all are of about one size."""
    sizes = [sample.bytes / sample.records for sample in samples]
    works = [max(0.0, one.fetch_work + one.write_work - model.base * one.batches) / one.records for one in samples]
    groups = _apart(sizes, works, _SIZES)
    if groups is None:
        return None
    (small, cheap), (large, dear) = groups
    by_byte = max(0.0, (dear - cheap) / (large - small))
    whole = max(cheap + by_byte * (sizes[-1] - small), _LEAST_COST)
    return min(by_byte * sizes[-1] / whole, 1.0)


def _agree(costs: Sequence[float]) -> bool:
    usual = statistics.median(costs)
    return statistics.median(abs(one / max(usual, _LEAST_COST) - 1) for one in costs) <= _SPREAD


def _size(samples: Sequence[Sample]) -> float:
    return sum(sample.bytes for sample in samples) / max(1.0, sum(sample.records for sample in samples))


def load_of(state: ScalingState, window: ScalingWindow, now: datetime) -> Load | None:
    """The load as samples and the batch in hand have it; None before the first batch whose arrival rate is known."""
    samples = with_fetched(state.samples, window)
    came = [sample for sample in samples if not sample.is_rest]
    rate = None if state.model is None else rate_of(samples, state.model)
    if rate is None or not came or not window.batches:
        return None
    newest = window.batches[-1]
    rests = samples[-1].is_rest
    recent = came[-3:]
    reading = sum(sample.reading for sample in recent)
    read = sum(sample.bytes for sample in recent) / read_bytes(window.consumers)
    size = _size(came[-FEW:])
    return Load(
        rate=rate,
        record_bytes=size,
        lag=0.0 if rests else lag_of(window, now),
        backlog=0.0 if rests else newest.backlog_records or 0.0,
        open_shards=max(1, newest.open_shards),
        # Of so many bytes as come now, not of the last seconds' noise.
        shard_load=rate.now * size * reading / sum(sample.bytes for sample in recent) if reading > 0 else 0.0,
        consumers=window.consumers,
        even_shards=read / reading if reading > 0 else math.inf,
        groups=max(sample.groups for sample in came[-FEW:]),
        fullest_shard=window.fullest_shard,
    )


def lag_of(window: ScalingWindow, now: datetime) -> float:
    """How old the oldest record of the last batch was when it came into the table, or what is to come is by now."""
    newest = window.batches[-1]
    if (until := read_until(newest)) is None:
        return lag_before(newest)
    # What a driver that says nothing does meanwhile nobody knows.
    unread_since = max(until, window.caught_up_at or until)
    waits = (min(now, window.reported_at or now) - unread_since).total_seconds()
    # Until the next batch can be there nothing is told by the time that it has not come.
    due = window.limits.interval + newest.seconds.total
    return max(lag_before(newest), waits if waits > due else 0.0)


def start_delay(state: ScalingState) -> float:
    """`D`: seconds until an executor that is asked for works."""
    return statistics.median(state.start_delays) if state.start_delays else _START_DELAY
