"""When an application is warm: it has done all that it does, and batches take about what later ones will. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from lakestream_api import Progress, TableType, Writer

FEW_BATCHES = 4
"""After so many an application has been through each stage several times."""
STEADY = 0.75
"""A batch that took less than this share of the one before shows that the JVM still compiles what batches run."""


@dataclass(frozen=True)
class WarmUp:
    """What one writer has to do until it is warm."""

    writer: str
    batches: int
    """That it has to commit, at least two."""

    @classmethod
    def of(cls, writer: Writer) -> WarmUp:
        """A round of compaction is part of it: one begins with each `everyCommits` commits after the first."""
        hudi = writer.hudi
        if hudi is None or hudi.table_type is not TableType.MERGE_ON_READ:
            return cls(writer.name, FEW_BATCHES)
        # The one that it begins with, and one during which it ends.
        return cls(writer.name, max(FEW_BATCHES, hudi.compaction.every_commits + 2))

    def warm_at(self, batches: Sequence[Progress]) -> datetime | None:
        """When the writer was warm; None: it is not yet.

        Args:
            batches: of this writer from its start on, in order.
        """
        done = [batch for batch in batches if batch.records]
        for before, last in zip(done[self.batches - 2 :], done[self.batches - 1 :], strict=False):
            if _steady(before, last):
                return last.finished_at
        return None

    def describe(self, batches: Sequence[Progress]) -> str:
        """How many batches of how many are done, and what the last one took."""
        if self.warm_at(batches) is not None:
            return f"{self.writer} warm"
        done = [batch for batch in batches if batch.records]
        took = f" ({done[-1].seconds.total:.1f} s)" if done else ""
        return f"{self.writer} {len(done)} of {max(self.batches, len(done) + 1)}{took}"


def all_warm(warm_ups: Sequence[WarmUp], batches: Mapping[str, Sequence[Progress]]) -> bool:
    """Whether each writer is warm, by their names."""
    return all(warm_up.warm_at(batches[warm_up.writer]) is not None for warm_up in warm_ups)


def _steady(before: Progress, last: Progress) -> bool:
    """Whether a batch keeps pace with its trigger, or is at least not much faster than the one before."""
    seconds = last.seconds.total
    return seconds <= last.trigger_interval.total_seconds() or seconds >= STEADY * before.seconds.total
