"""What goes into a batch, and which task reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import heapreplace

from lakestream.model import ShardRange


@dataclass(frozen=True, slots=True)
class Admission:
    """The bound in arrival time, the same for all shards of a batch."""

    horizon: datetime
    """Records that arrived before it are taken."""
    is_limited: bool
    """True: older than `now - settle`, since a batch must not become too large."""


def admit(arrivals: Iterable[datetime], now: datetime, settle: timedelta, slice_: timedelta) -> Admission:
    """Choose the horizon.

    Args:
        arrivals: of the next unread record of each shard that has one.
        now: Kinesis time.
    """
    newest = now - settle
    base = min(arrivals, default=newest)
    if base + slice_ < newest:
        return Admission(base + slice_, is_limited=True)
    return Admission(newest, is_limited=False)


def assign_tasks(ranges: Sequence[ShardRange], slots: int, records_per_task: int) -> tuple[ShardRange, ...]:
    """Number the tasks: no more than there are slots or than the records are worth, evenly loaded.

    The largest range goes first, each to the task that has least (Graham's LPT rule, within 4/3 of
    the best). Where the number of records is unknown, every slot is used.
    """
    known = all(r.expected_records for r in ranges)
    worth = -(-sum(r.expected_records for r in ranges) // records_per_task) if known else len(ranges)
    # By load and then number, so in the order of a heap.
    loads = [(0, task) for task in range(max(1, min(slots, len(ranges), worth)))]
    tasks: dict[str, int] = {}
    for piece in sorted(ranges, key=lambda r: -r.expected_records):
        load, task = loads[0]
        heapreplace(loads, (load + max(piece.expected_records, 1), task))
        tasks[piece.shard_id] = task
    return tuple(replace(piece, task=tasks[piece.shard_id]) for piece in ranges)
