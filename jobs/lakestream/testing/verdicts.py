"""Verdicts over what was planned and what was read. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from lakestream.model import BatchPlan, Finished, Position, after


def tiling_faults(plans: Iterable[BatchPlan]) -> list[str]:
    """Where the ranges of successive plans do not tile their shards: gaps, overlaps, ranges behind the end. A loss of
    which the plan takes nothing behind it is no gap; where its end is not known, what its cursor stood at is lost."""
    faults: list[str] = []
    ends: dict[str, Position] = {}
    closed: set[str] = set()
    for plan in plans:
        finished = {c.shard_id for c in plan.cursors if isinstance(c, Finished)}
        for piece in plan.ranges:
            if piece.shard_id in closed:
                faults.append(f"batch {plan.batch}: {piece.shard_id} goes on behind its end")
            if (expected := ends.get(piece.shard_id, piece.start)) != piece.start:
                faults.append(
                    f"batch {plan.batch}: {piece.shard_id} starts {piece.start}, the one before ended {expected}"
                )
            if piece.closes_shard != (piece.shard_id in finished):
                faults.append(
                    f"batch {plan.batch}: {piece.shard_id} closes, but its cursor is not finished, or vice versa"
                )
            ends[piece.shard_id] = piece.end
        taken = {piece.shard_id for piece in plan.ranges}
        for loss in plan.losses:
            begins_anew = loss.end or (loss.start and after(loss.start.sequence))
            if begins_anew and loss.shard_id not in taken and ends.get(loss.shard_id) == loss.start:
                ends[loss.shard_id] = begins_anew
        closed |= finished
    return faults


def delivery_faults(expected: Iterable[int], read: Iterable[int]) -> dict[str, list[int]]:
    """Records that were read too rarely, too often, or although they were not put; empty if all is well."""
    put, got = Counter(expected), Counter(read)
    faults = {
        "missing": sorted(put - got),
        "doubled": sorted(record for record, times in got.items() if times > 1),
        "unknown": sorted(got.keys() - put.keys()),
    }
    return {name: records for name, records in faults.items() if records}


def order_faults(batches: Sequence[Sequence[tuple[str, int]]], parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Where a shard's records are out of order, or a child comes before its parent's last batch.

    Args:
        batches: (shard, sequence number) of each record, by batch, in the order that they were read.
        parents: of each shard.
    """
    faults: list[str] = []
    last: dict[str, int] = {}
    first_batch: dict[str, int] = {}
    last_batch: dict[str, int] = {}
    for number, batch in enumerate(batches):
        for shard_id, sequence in batch:
            if sequence <= last.get(shard_id, -1):
                faults.append(f"{shard_id}: {sequence} is read behind {last[shard_id]}")
            last[shard_id] = sequence
            first_batch.setdefault(shard_id, number)
            last_batch[shard_id] = number
    for shard_id, of_shard in parents.items():
        for parent in of_shard:
            if shard_id in first_batch and last_batch.get(parent, -1) >= first_batch[shard_id]:
                faults.append(f"{shard_id} begins in batch {first_batch[shard_id]}, its parent {parent} is not done")
    return faults
