"""How many shards a provisioned stream should have, within what UpdateShardCount allows. Pure.

Kinesis's rules: at most twice and at least half the open shards in one call, at most ten calls per rolling 24 hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lakestream_api import Shards

SHARD_WRITE_BYTES = 1024 * 1024
SHARD_WRITE_RECORDS = 1_000
_TARGET = 0.7
"""Share of the write limits that the busiest minute of the window should take up."""
_HIGH = 0.85
_LOW = 0.4
_CALLS = 10
_KEPT = 2
"""Calls of a day that are left for growing: shards too many cost money, too few cost records."""
_DAY = timedelta(hours=24)
_DOWN_AFTER = timedelta(hours=1)
_PAUSE = timedelta(minutes=10)
"""Between two calls: resharding takes minutes, and its effect a few more."""


@dataclass(frozen=True, slots=True)
class StreamObservation:
    """A provisioned stream."""

    open_shards: int
    is_active: bool
    """Not being updated at the moment: Kinesis refuses a call meanwhile."""
    bytes_per_second: float
    records_per_second: float
    """As Kinesis counts them: aggregates are one record."""
    busiest_share: float = 0.0
    """Of its write limit, what the fullest shard gets; throttling of writers begins at 1."""


@dataclass(frozen=True, slots=True)
class ShardState:
    """What is remembered between two decisions."""

    calls: tuple[datetime, ...] = ()
    """Of UpdateShardCount in the last 24 hours."""
    low_since: datetime | None = None
    """Since when fewer shards would do."""


@dataclass(frozen=True, slots=True)
class ShardDecision:
    """What to do."""

    target: int | None
    """To call UpdateShardCount with; None: nothing."""
    explanation: str
    state: ShardState


def decide_shards(limits: Shards, observed: StreamObservation, state: ShardState, now: datetime) -> ShardDecision:
    """Choose the number of shards. Call it once a minute, and UpdateShardCount with the target, if there is one.

    Args:
        limits: `source.kinesis.shards`.
        observed: the stream; rates over some minutes.
        state: that of the decision before.
        now: the time.
    """
    state = replace(state, calls=tuple(call for call in state.calls if now - call < _DAY))
    full = max(observed.bytes_per_second / SHARD_WRITE_BYTES, observed.records_per_second / SHARD_WRITE_RECORDS)
    current, share = observed.open_shards, full / observed.open_shards
    wanted = min(max(math.ceil(full / _TARGET), limits.min), limits.max)
    low_since = (state.low_since or now) if share < _LOW and wanted < current else None
    state = replace(state, low_since=low_since)
    seen = f"{current} shards are {share:.0%} full"

    def stay(why: str) -> ShardDecision:
        return ShardDecision(None, f"{seen}: {why}", state)

    if not observed.is_active:
        return stay("the stream is being updated")
    grows = wanted > current and (share > _HIGH or current < limits.min)
    shrinks = wanted < current and (current > limits.max or (low_since is not None and now - low_since >= _DOWN_AFTER))
    if not grows and not shrinks:
        if observed.busiest_share > _HIGH and share < _TARGET:
            return stay(f"one of them is {observed.busiest_share:.0%} full; split it, more shards alone may not help")
        return stay("that is right")
    if state.calls and now - state.calls[-1] < _PAUSE:
        return stay("the last change is too recent")
    if len(state.calls) >= _CALLS - (0 if grows else _KEPT):
        return stay(f"{wanted} wanted, but Kinesis allows {_CALLS} changes a day")
    target = min(wanted, 2 * current) if grows else max(wanted, math.ceil(current / 2))
    state = replace(state, calls=(*state.calls, now), low_since=None)
    return ShardDecision(target, f"{seen}: {current} → {target}", state)
