"""How many executors a load asks for, by the model of what batches cost.

Steady: batches of `n = λ·P` records, one each `P` seconds, shall keep the pipeline busy for the share `U` of that time,
`T(n, c·E) ≤ U·P`:

    E = ⌈ max( (w₁ + w₂)·n / b,  w₂·n / (b − r) ) / c ⌉        b = min( U·P,  U·P/s − a )

`P` is the trigger interval; longer where `a` alone takes up more than half of `U·I` (batches then grow until it does
not), and `M/λ` where the largest batch allowed has room for less than what arrives in an interval.

Behind: the backlog `B`, and what arrives until new executors work, is to be read within the catch-up time `K`, beside
what arrives meanwhile: `R = λ + (B + λ·D)/K` records per second, in batches as large as they may be, without rest:
`T(n, c·E) ≤ n/R`.

No more than `g` tasks write a batch that touches `g` file groups. So no more than `g·(w₁ + w₂)/w₂` slots are of use:
while `g` of them write a batch, the others have read the next one.

The larger of the two is wanted, not their sum: what `1 − U` leaves free at a steady load works off a backlog too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from lakestream_api import Scaling
from lakestream_operator.autoscaler.estimate import Load, parallelism
from lakestream_operator.autoscaler.observations import BatchLimits
from lakestream_operator.autoscaler.state import BatchModel, LimitReason, ScalingCondition

_LEAST_SHARE = 0.1
"""Of a batch's time that is left for its records; below that no number of executors makes up for the rest."""
_SATURATED = 0.95
"""Share of what a shard may be read at from which on it holds the whole batch up: throttling begins before 1."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What the load calls for, before `minExecutors`, `maxExecutors` and the policy have their say."""

    steady: int
    """Executors to keep up with what arrives."""
    wanted: int
    """Executors to work off the backlog in time as well."""
    limit: ScalingCondition | None
    """What would keep even more executors from helping."""


def batch_seconds(spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, rate: float) -> float:
    """`P`: how often there is a batch."""
    stretched = max(limits.interval, 2 * model.fixed / spec.target_utilization)
    return min(stretched, _largest_batch(limits, load) / rate) if rate > 0 else stretched


def utilization(
    spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, *, rate: float, executors: int
) -> float:
    """Share of the time that so many executors would be busy."""
    seconds = batch_seconds(spec, limits, model, load, rate)
    records = rate * seconds
    tasks = model.tasks(parallelism(records, executors * limits.cores, load.open_shards), load.groups)
    return model.seconds(records, tasks, load.shard_load * seconds) / seconds


def demand(
    spec: Scaling, limits: BatchLimits, model: BatchModel, load: Load, *, rate: float, delay: float, behind: bool
) -> Demand:
    """Executors for a load.

    Args:
        spec: `U` and `K`.
        limits: the trigger.
        model: what batches cost.
        load: what arrives.
        rate: `λ` to count with, in records per second.
        delay: `D`, in seconds.
        behind: whether there is a backlog to be worked off.
    """
    seconds = batch_seconds(spec, limits, model, load, rate)
    records = rate * seconds
    steady = model.slots(records, spec.target_utilization * seconds, load.shard_load * seconds)
    slots = steady
    if behind and rate > 0:
        reading = rate + (load.backlog + rate * delay) / spec.catch_up.total_seconds()
        if load.shard_load > 0:
            # Shards are read side by side: when the fullest is at its limit, so is the stream.
            reading = min(reading, max(rate, rate / load.shard_load))
        large = min(_largest_batch(limits, load), max(records, load.backlog))
        slots = max(slots, model.slots(large, large / reading, load.shard_load * large / rate))
    files = model.useful(load.groups)
    useful = min(load.open_shards, files)
    return Demand(
        steady=_executors(steady, limits.cores, useful),
        wanted=_executors(slots, limits.cores, useful),
        limit=_tasks_limit(load, slots, files) or _batch_limit(spec, limits, model, load, rate),
    )


def _largest_batch(limits: BatchLimits, load: Load) -> float:
    return max(1.0, min(limits.max_records, limits.max_bytes / max(load.record_bytes, 1.0)))


def _executors(slots: float, cores: int, useful: float) -> int:
    """Executors with so many slots, as far as these are of use: tasks read whole shards, and write whole file groups.

    The last wave of tasks need not be full: what one stage leaves idle in it, the other stage's tasks take.
    """
    return max(1, math.ceil(min(slots, useful) / cores))


def _tasks_limit(load: Load, slots: float, files: float) -> ScalingCondition | None:
    if load.shard_load >= _SATURATED:
        return ScalingCondition(
            LimitReason.SHARD_LIMITED,
            f"the fullest shard gets {load.shard_load:.0%} of what this writer may read from it; split it, or have "
            "fewer readers on the stream",
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
