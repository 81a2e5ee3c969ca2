"""How many executors a load asks for, by the model of what batches cost.

A batch of `n` records on `p` task slots follows the one before after

    T = max( B,  r,  W/min(p, g),  s·(a + max(F/p, r) + W/min(p, g)) )        B = (max(F, t·r) + W + w₃·n)/p
    F = c₁ + w₁·n        W = c₂ + w₂·n

seconds, if the pipeline never rests: while one batch is written the next is fetched, on the same cores, and so is
compaction and the like (`w₃`). `r` is how long a batch may wait for the fullest shard (see `waiting`); `t` tasks hold
their slots meanwhile. No more than `g` tasks write a batch that touches `g` file groups. What is fixed, `a`, is hidden
behind the other stage's work, but for the share `s` of a batch that is its longer stage.

Steady: a batch of `n = λ·P` records each `P` seconds. The fewest executors are wanted on which

    B ≤ U′·P        T < 0.97·P

`U′` is the target utilization `U`, or what noise leaves of it (see `target_of`). `P` is the trigger interval; longer
where `a` alone takes up more than half of `U·I` (batches then grow until it does not), and `M/λ` where the largest
batch allowed has room for less than what arrives in an interval.

Behind, batches of `n = R·P` records are to be worked off with `T < 0.97·P`, by cores that do not rest. What of `r` lies
before Kinesis's first answer is added to `F/p` there: nobody who waits for it has anything to do.

More than `g·(w₁ + w₂)/w₂` slots are of no use: while `g` of them write a batch, the others have read the next one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakestream_api import Scaling
from lakestream_operator.autoscaler.estimate import Load
from lakestream_operator.autoscaler.inputs import BatchLimits
from lakestream_operator.autoscaler.samples import RANGES_AT_ONCE, parallelism, waiting
from lakestream_operator.autoscaler.state import BatchModel, LimitReason, ScalingCondition

_LEAST_SHARE = 0.1
"""Of a batch's time that is left for its records; below that no number of executors makes up for the rest."""
_SATURATED = 0.95
"""Share of what a shard may be read at from which on it holds the whole batch up: throttling begins before 1."""
_RARE = 9.0
"""Minus the logarithm of the share of the time in which noise may make a backlog: a minute a week."""
_MINUTE = 60.0
BEHIND_SHARE = 0.8
"""Of `maxLag`; a lag beyond it is a backlog, if it is beyond that of a pipeline that keeps up as well."""
FULL = 0.97
"""Share of the time between two batches that may be filled, so that the next one is not late."""
_MOST_WAITING = 3.0
"""Times the slots that the work alone would take: more are not worth having, only to wait for shards side by side."""
_ROUNDING = 1e-9
"""What differs by less from a limit is at it, which `B` may be and `T` may not: no last digit decides."""
_FINE = 1.02
"""Steps in which slots are looked for."""
_ROUND = 0.08
"""Of an executor that is not worth another one: with few of them the next is a large step."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the load calls for, before `minExecutors`, `maxExecutors` and the policy have their say."""

    steady: float
    """Executors to keep up with what arrives, in fractions."""
    wanted: int
    """Executors to work off the backlog in time as well."""
    limit: ScalingCondition | None
    """What would keep even more executors from helping."""


def clamp(spec: Scaling, executors: int) -> int:
    """As many as the spec allows."""
    return min(max(executors, spec.min_executors), spec.max_executors)


def batch_seconds(spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, rate: float) -> float:
    """`P`: how often there is a batch."""
    stretched = max(limits.interval, 2 * model.fixed / spec.target_utilization)
    return min(stretched, _largest_batch(limits, load) / rate) if rate > 0 else stretched


def usual_lag(limits: BatchLimits, model: BatchModel) -> float:
    """`L`: how old records become in a pipeline that keeps up: one interval to wait, and a busy one in the stages."""
    return 2.5 * limits.interval + model.fixed


def high_lag(spec: Scaling, limits: BatchLimits, model: BatchModel) -> float:
    """`B₀`: what is older is a backlog."""
    return max(usual_lag(limits, model), BEHIND_SHARE * spec.max_lag.total_seconds())


def target_of(spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load) -> float:
    """`U′`: so busy executors should be: `targetUtilization`, or less, so that noise alone makes no backlog.

    Arrivals whose minutes are by `σ` apart from their mean leave a backlog of over `b` seconds for a share of the time
    of exp(-2·(1/U′ - 1)·b / (60 s·σ²)), as a random walk between walls does.
    """
    room = max(high_lag(spec, limits, model) - usual_lag(limits, model), limits.interval)
    return min(spec.target_utilization, 1 / (1 + _RARE * _MINUTE * load.rate.noise**2 / (2 * room)))


def utilization(
    spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, *, rate: float, executors: int
) -> float:
    """Share of the time that so many executors would be busy."""
    seconds = batch_seconds(spec, limits, model, load, rate)
    _, whole = _seconds(model, load, rate * seconds, executors * limits.cores, _reading(load, rate) * seconds)
    return whole / seconds


def demand(
    spec: Scaling,
    limits: BatchLimits,
    model: BatchModel,
    load: Load,
    *,
    rate: float,
    reading: float = 0.0,
    extra: float = 0.0,
) -> Demand:
    """Executors for a load.

    Args:
        spec: `U` and `K`.
        limits: the trigger.
        model: what batches cost.
        load: what arrives.
        rate: `λ` to count with, in records per second.
        reading: `R`, in records per second; 0: there is no backlog.
        extra: share that is needed beyond what the model says, in steady times.
    """
    dear = model.times(1 + extra)
    seconds = batch_seconds(spec, limits, model, load, rate)
    shard = _reading(load, rate) * seconds
    steady = _slots(dear, load, rate * seconds, seconds, shard, target_of(spec, limits, model, load))
    slots = steady
    if reading > 0:
        if load.shard_load > 0:
            # Shards are read side by side: when the fullest is at its limit, so is the stream.
            reading = min(reading, max(rate, FULL * load.rate.now / load.shard_load))
        shard = _reading(load, reading) * seconds
        slots = max(slots, _slots(model, load, reading * seconds, seconds, shard, FULL, behind=True))
    files = load.groups * (model.fetch + model.write) / model.write if load.groups else math.inf
    useful = min(load.open_shards, files)
    return Demand(
        steady=min(steady, useful) / limits.cores,
        wanted=in_whole(min(slots, useful) / limits.cores),
        limit=_tasks_limit(load, slots, files) or _batch_limit(spec, limits, model, load, rate),
    )


def _reading(load: Load, rate: float) -> float:
    """Share of what may be read from the fullest shard, at so many records per second in all."""
    return load.shard_load * rate / load.rate.now if load.rate.now > 0 else load.shard_load


def _seconds(
    model: BatchModel, load: Load, records: float, slots: float, reading: float, *, behind: bool = False
) -> tuple[float, float]:
    """`B`, and `T`."""
    if records <= 0:
        return 0.0, 0.0
    tasks = max(1.0, min(slots, parallelism(records, math.ceil(slots), load.open_shards)))
    # Whole shards are dealt out to tasks, each of which asks for some at once.
    each = math.ceil(load.open_shards / tasks)
    holding = min(load.open_shards / each, load.even_shards)
    first, between = waiting(reading, load.consumers)
    between *= max(1.0, each / RANGES_AT_ONCE)
    # Who is behind asks as soon as others do, and has nothing to do meanwhile; at the tip that is rare.
    idle, waits = (first, between) if behind else (0.0, first + between)
    fetch, write = model.fetching(records), model.writing(records)
    writing = write / (min(tasks, load.groups) if load.groups else tasks)
    stage = model.longest_stage * (model.fixed + idle + max(fetch / tasks, waits) + writing)
    busy = (holding * idle + max(fetch, holding * waits) + write + model.services * records) / tasks
    return busy, max(busy, idle + waits, writing, stage)


def _slots(
    model: BatchModel, load: Load, records: float, seconds: float, reading: float, share: float, *, behind: bool = False
) -> float:
    """The fewest task slots that so many records keep busy for that share of the seconds at most."""
    if records <= 0:
        return 0.0  # there is no batch
    least = (model.fetching(records) + model.writing(records) + model.services * records) / (share * seconds)
    # Where no number would do, that of the work alone counts: what is fixed, or a shard's limit, is told.
    files = load.groups / model.write if load.groups else math.inf
    most = min(_MOST_WAITING * least, float(load.open_shards), files * (model.fetch + model.write))
    slots = least
    while slots <= most:
        busy, whole = _seconds(model, load, records, slots, reading, behind=behind)
        if busy <= share * seconds * (1 + _ROUNDING) and whole <= FULL * seconds * (1 - _ROUNDING):
            return slots
        slots = max(slots + 1, _FINE * slots)
    return least


def _largest_batch(limits: BatchLimits, load: Load) -> float:
    return max(1.0, min(limits.max_records, limits.max_bytes / max(load.record_bytes, 1.0)))


def in_whole(executors: float) -> int:
    """As many as that takes, but for a small part of one.

    The last wave of tasks need not be full: what one stage leaves idle in it, the other stage's tasks take.
    """
    return max(1, math.ceil(executors - _ROUND))


def _tasks_limit(load: Load, slots: float, files: float) -> ScalingCondition | None:
    if load.shard_load >= _SATURATED:
        which = f", {load.fullest_shard}," if load.fullest_shard else ""
        return ScalingCondition(
            LimitReason.SHARD_LIMITED,
            f"the fullest shard{which} gets {load.shard_load:.0%} of what this writer may read from it; split it, or "
            "have fewer readers on the stream",
        )
    if slots > files and files < load.open_shards:
        return ScalingCondition(
            LimitReason.FILE_GROUP_LIMITED,
            f"a batch is written to {load.groups:,} file groups of the table (partitions that it touches × "
            f"index.buckets), each by one task; {math.ceil(slots):,} task slots are called for, and more than "
            f"{math.ceil(files):,} would be of no use. A new table with more buckets has room for more",
        )
    if slots > load.open_shards:
        return ScalingCondition(
            LimitReason.SHARD_LIMITED,
            f"{load.open_shards} shards make {load.open_shards} tasks at most, {math.ceil(slots):,} are called for; "
            "split shards",
        )
    return None


def _batch_limit(
    spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, rate: float
) -> ScalingCondition | None:
    largest = _largest_batch(limits, load)
    if rate > 0 and largest / rate * spec.target_utilization <= model.fixed * (1 + _LEAST_SHARE):
        return ScalingCondition(
            LimitReason.BATCH_TOO_SMALL,
            f"{largest:,.0f} records a batch at {model.fixed:.1f} s of fixed cost are too few for {rate:,.0f} "
            "records/s; raise trigger.maxRecordsPerBatch and maxBytesPerBatch",
        )
    if model.fixed >= spec.target_utilization * limits.interval:
        return ScalingCondition(
            LimitReason.TRIGGER_TOO_SHORT,
            f"a batch costs {model.fixed:.1f} s apart from its records, trigger.interval is {limits.interval:g} s; "
            "raise it",
        )
    return None
