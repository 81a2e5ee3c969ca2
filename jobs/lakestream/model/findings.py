"""What reading ranges found that their records do not tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lakestream.model.ranges import Loss, Position


@dataclass(frozen=True, slots=True)
class Finding:
    """Of one shard in one batch."""

    shard_id: str
    losses: tuple[Loss, ...] = ()
    """Records that were trimmed between planning and reading, and skipped."""
    misplaced: int = 0
    """User records of KPL aggregates that belong to other shards, where their producer put them as well: left out."""

    def __or__(self, other: Finding) -> Finding:
        """What two readings of one range found. The later may have lost more, and nobody knows which of them went to
        the sink: the greater loss counts."""
        greatest: dict[Position | None, Loss] = {}
        for loss in (*self.losses, *other.losses):
            known = greatest.get(loss.start)
            if known is None or (known.end is not None and (loss.end is None or loss.end > known.end)):
                greatest[loss.start] = loss
        losses = tuple(sorted(greatest.values(), key=_start))
        return Finding(self.shard_id, losses, max(self.misplaced, other.misplaced))


def united(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One for each shard, sorted."""
    known: dict[str, Finding] = {}
    for finding in findings:
        before = known.get(finding.shard_id)
        known[finding.shard_id] = finding if before is None else before | finding
    return tuple(known[shard_id] for shard_id in sorted(known))


def _start(loss: Loss) -> tuple[bool, Position | None]:
    return loss.start is not None, loss.start
