"""What becomes of records, as a ledger notes it. Without PyArrow: a master, and a load without a ledger, need none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum


class Outcome(IntEnum):
    """What became of a record."""

    ACKNOWLEDGED = 1
    """Kinesis gave a shard and a sequence number."""
    FAILED = 2
    """Given up; no attempt can have written it."""
    UNKNOWN = 3
    """Given up, or never settled; some attempt may have written it."""


@dataclass(frozen=True)
class Settled:
    """The outcome of records, in columns."""

    outcome: Outcome
    rows: Sequence[int]
    """Numbers of their SENT rows."""
    attempts: Sequence[int]
    """Sends that may have written each: more than one means that duplicates may be the producer's."""
    shard_ids: Sequence[str | None] = ()
    """Given for acknowledged records only, as are the sequence numbers."""
    sequence_numbers: Sequence[str | None] = ()
