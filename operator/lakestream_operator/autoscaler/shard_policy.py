"""How many shards a provisioned stream should have, within what UpdateShardCount allows. Pure.

Kinesis's rules: at most twice and at least half the open shards in one call, at most ten calls per rolling 24 hours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pydantic import AwareDatetime

from lakestream_api import DriverReport, Shards
from lakestream_operator.autoscaler.remembered import Remembered
from lakestream_operator.model import Emit

SHARD_WRITE_BYTES = 1024 * 1024
SHARD_WRITE_RECORDS = 1_000
_TARGET = 0.7
"""Share of the write limits that should be taken up."""
_HIGH = 0.85
_LOW = 0.4
_CALLS = 10
_KEPT = 2
"""Calls of a day that are left for growing: shards too many cost money, too few cost records."""
_DAY = timedelta(hours=24)
_UP_AFTER = timedelta(minutes=3)
"""A burst that is over by then costs its writers some retries, and no call."""
_DOWN_AFTER = timedelta(hours=1)
_GAP = timedelta(minutes=15)
"""After so long without a decision, what was so before it says nothing about the time since."""
_PAUSE = timedelta(minutes=10)
"""Between two calls: resharding takes minutes, and its effect a few more."""
_SHORTEST = timedelta(seconds=30)
"""Of arrival time, for rates of a stream."""
_OLD = timedelta(minutes=10)
"""What arrived longer ago says nothing of what arrives now."""


@dataclass(frozen=True, slots=True)
class StreamObservation:
    """A provisioned stream."""

    open_shards: int
    bytes_per_second: float
    records_per_second: float
    """As Kinesis counts them: aggregates are one record."""
    busiest_share: float = 0.0
    """Of its write limit, what the fullest shard gets; throttling of writers begins at 1."""
    busiest: str = ""
    """Id of the one that was the fullest last; empty: not known."""


def observe_stream(report: DriverReport | None, now: datetime) -> StreamObservation | None:
    """What arrives in a stream, by the batches of a driver; None: they do not tell.

    Args:
        report: what the driver said last; None: nothing yet.
        now: the time.
    """
    recent = report.lately if report else None
    arrived = recent.arrived if recent else None
    if report is None or arrived is None or now - arrived.until > _OLD or arrived.until - arrived.since < _SHORTEST:
        return None
    open_shards = report.batches[-1].open_shards
    if open_shards == 0:
        return None
    seconds = (arrived.until - arrived.since).total_seconds()
    return StreamObservation(
        open_shards=open_shards,
        bytes_per_second=arrived.bytes / seconds,
        records_per_second=arrived.kinesis_records / seconds,
        busiest_share=max(
            arrived.largest_shard_bytes / SHARD_WRITE_BYTES / seconds,
            arrived.largest_shard_kinesis_records / SHARD_WRITE_RECORDS / seconds,
        ),
        busiest=report.fullest_shard,
    )


@dataclass(frozen=True, slots=True)
class ShardState(Remembered):
    """What is remembered between two decisions."""

    calls: tuple[AwareDatetime, ...] = ()
    """Of UpdateShardCount in the last 24 hours."""
    low_since: AwareDatetime | None = None
    """Since when fewer shards would do."""
    high_since: AwareDatetime | None = None
    """Since when more are called for."""
    decided_at: AwareDatetime | None = None
    explanation: str = ""
    """What was said then."""
    told: str = ""
    """What the last event said that would otherwise be repeated: a refusal, or what a dry run would do."""


@dataclass(frozen=True, slots=True)
class ShardDecision:
    """What to do."""

    target: int | None
    """Open shards to ask Kinesis for; None: there is nothing to do."""
    state: ShardState
    """To be given to the next decision."""
    events: tuple[Emit, ...] = ()


def decide_shards(
    limits: Shards, observed: StreamObservation | None, state: ShardState, now: datetime
) -> ShardDecision:
    """Choose the number of shards. To be called once a minute, but not while Kinesis follows an order.

    Args:
        limits: `source.kinesis.shards`.
        observed: the stream; rates over some minutes. None: nobody knows what arrives.
        state: that of the decision before.
        now: the time.
    """
    state = _since(state, now)
    if observed is None:
        text = "no change until batches tell how much arrives"
        return _said(None, text, replace(state, low_since=None, high_since=None))
    full = max(observed.bytes_per_second / SHARD_WRITE_BYTES, observed.records_per_second / SHARD_WRITE_RECORDS)
    current, share = observed.open_shards, full / observed.open_shards
    called_for = math.ceil(full / _TARGET)
    wanted = min(max(called_for, limits.min), limits.max)
    low_since = (state.low_since or now) if share < _LOW and wanted < current else None
    high_since = (state.high_since or now) if share > _HIGH and called_for > current else None
    state = replace(state, low_since=low_since, high_since=high_since)
    seen = f"{current} shard{'s are' if current != 1 else ' is'} {share:.0%} full"
    is_high = high_since is not None and now - high_since >= _UP_AFTER
    grows = current < limits.min or (is_high and wanted > current)
    shrinks = current > limits.max or (low_since is not None and now - low_since >= _DOWN_AFTER)
    if high_since is not None and wanted == current:
        text = f"{seen}: {called_for} are called for, and shards.max is {limits.max}"
        return _at_maximum(text, state) if is_high else _said(None, text, state)
    if not grows and not shrinks:
        return _said(None, f"{seen}: {_why_not(observed, share, wanted, state)}", state)
    if state.calls and now - state.calls[-1] < _PAUSE:
        return _said(None, f"{seen}: {wanted} wanted, but the last change was less than {_minutes(_PAUSE)} ago", state)
    if len(state.calls) >= _CALLS - (0 if grows else _KEPT):
        return _said(None, f"{seen}: {wanted} wanted, but Kinesis allows {_CALLS} changes a day", state)
    target = min(wanted, 2 * current) if grows else max(wanted, math.ceil(current / 2))
    state = replace(state, calls=(*state.calls, now), low_since=None, high_since=None, told="")
    return _said(target, f"{seen}: {current} → {target}", state)


def _since(state: ShardState, now: datetime) -> ShardState:
    """The state as it is now, before anything is seen."""
    # By a clock that was put back, what was may be yet to come.
    state = replace(state, calls=tuple(min(call, now) for call in state.calls if now - call < _DAY))
    if state.decided_at is None or abs(now - state.decided_at) > _GAP:
        state = replace(state, low_since=None, high_since=None)
    return replace(state, decided_at=now)


def _why_not(observed: StreamObservation, share: float, wanted: int, state: ShardState) -> str:
    if observed.busiest_share > _HIGH and share < _TARGET:
        which = observed.busiest or "one of them"
        return f"{which} is {observed.busiest_share:.0%} full; split it, more shards alone may not help"
    if state.high_since is not None:
        return f"{wanted} wanted, if it stays so for {_minutes(_UP_AFTER)}"
    if state.low_since is not None:
        return f"{wanted} would do, if it stays so for {_minutes(_DOWN_AFTER)}"
    return "that is right"


def _at_maximum(explanation: str, state: ShardState) -> ShardDecision:
    """Told by an event once: from within, nobody sees that those who write are throttled."""
    event = Emit("ShardsAtMaximum", f"{explanation}; who writes more is throttled", warning=True)
    events = () if state.told == event.reason else (event,)
    return ShardDecision(None, replace(state, explanation=explanation, told=event.reason), events)


def _minutes(span: timedelta) -> str:
    return f"{span // timedelta(minutes=1)} minutes"


def _said(target: int | None, explanation: str, state: ShardState) -> ShardDecision:
    return ShardDecision(target, replace(state, explanation=explanation))
