"""The state that a log of events leads to: the oracle for a table that is kept by upserts and deletes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakestream_loadgen.content import canonical_text, with_room

_SAMPLES = 10
_DELETE = "d"


def fold(rows: pa.Table) -> pa.Table:
    """The latest row of each ``order_id``: highest ``version``; deleted orders are gone.

    A tie (the producer's duplicates) goes to the later arrival, then to the higher sequence number. Rows
    without an order_id take no part: a table with that key quarantines them.

    Args:
        rows: The event's columns, ``_arrival`` and ``_sequence_number``.
    """
    rows = with_room(rows.filter(pc.is_valid(rows["order_id"])))
    if not len(rows):
        return rows
    key = _ranks(rows["order_id"])
    version = pc.fill_null(rows["version"], -1).to_numpy()
    sequence = _ranks(pc.utf8_lpad(rows["_sequence_number"], 60, "0"))
    order = np.lexsort((sequence, _ranks(rows["_arrival"]), version, key))
    is_last = np.r_[key[order][1:] != key[order][:-1], True]
    latest = rows.take(pa.array(order[is_last]))
    return latest.filter(pc.not_equal(pc.fill_null(latest["op"], ""), _DELETE))


@dataclass(frozen=True)
class SnapshotVerdict:
    """A snapshot against the fold of the log, in orders. ``ok`` is the verdict."""

    missing: int
    """Live orders that the snapshot lacks."""
    unexpected: int
    """Orders of the snapshot that are not live: deleted, or never written."""
    different: int
    """Live orders in another version or with other content."""
    doubled: int
    """Rows of the snapshot beyond the first of their order."""
    rows: int
    """Rows of the snapshot."""
    samples: tuple[str, ...]
    """Up to ten order_ids of each kind."""

    @property
    def ok(self) -> bool:
        return not (self.missing or self.unexpected or self.different or self.doubled)


def compare(expected: pa.Table, snapshot: pa.Table) -> SnapshotVerdict:
    """Hold the rows of a snapshot against a fold; both with the event's columns.

    Raises:
        LakeError: the snapshot lacks a column of the event.
    """
    actual_ids, expected_ids = (table["order_id"].combine_chunks() for table in map(with_room, (snapshot, expected)))
    actual_text, expected_text = canonical_text(snapshot), canonical_text(expected)
    position = pc.index_in(actual_ids, value_set=expected_ids)
    unexpected = actual_ids.filter(pc.is_null(position))
    known = pc.is_valid(position)
    same = pc.equal(actual_text.filter(known), expected_text.take(position.filter(known)))
    different = actual_ids.filter(known).filter(pc.invert(same))
    missing = expected_ids.filter(pc.invert(pc.is_in(expected_ids, value_set=actual_ids)))
    doubled = len(actual_ids) - pc.count_distinct(actual_ids, mode="all").as_py()
    samples = [order for found in (missing, unexpected, different) for order in found[:_SAMPLES].to_pylist()]
    return SnapshotVerdict(
        missing=len(missing),
        unexpected=len(unexpected),
        different=len(different),
        doubled=doubled,
        rows=len(snapshot),
        samples=tuple(str(order) for order in samples),
    )


def _ranks(values: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Numbers in the order of the values; null comes last."""
    ranks: npt.NDArray[np.int64] = pc.rank(values, tiebreaker="dense").to_numpy()
    return ranks
