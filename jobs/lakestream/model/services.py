"""How the work on a table beside its batches goes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One kind of this work, since the driver's start."""

    name: str
    """`compaction`, `clustering`, `cleaning`, `archiving` or `catalog`."""
    completed: int = 0
    """Runs."""
    failed: int = 0
    """Runs."""
    failing: int = 0
    """Runs in a row that failed, up to the last one; 0: the last one succeeded."""
    failing_since: datetime | None = None
    """When the first of these ended; None: the last one succeeded."""
    error: str = ""
    """Of the last run, in a line; empty: it succeeded."""
    seconds: float = 0.0
    """That the last completed run took."""
    behind: int = 0
    """Commits since the last completed run began: what waits to be compacted, cleaned or archived."""

    def failed_again(self, error: Exception, now: datetime) -> ServiceStatus:
        """After a run that failed now."""
        since, line = self.failing_since or now, in_a_line(error)
        return replace(self, failed=self.failed + 1, failing=self.failing + 1, failing_since=since, error=line)

    def completed_again(self, seconds: float, behind: int) -> ServiceStatus:
        """After a run that took so long, since the beginning of which so many commits have come."""
        return ServiceStatus(
            self.name, completed=self.completed + 1, failed=self.failed, seconds=seconds, behind=behind
        )


def in_a_line(error: BaseException) -> str:
    """What an error says first; its type, if it says nothing."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0]


class Upkeep(Protocol):
    """A table beside its batches: what it says of itself, and what has to be done for it; a sink is one."""

    @property
    def services(self) -> tuple[ServiceStatus, ...]:
        """How the work beside the batches goes, which fails none of them; empty if there is no such work."""
        ...

    @property
    def remembered_deletes(self) -> int:
        """Deletes that an older version of their key is held against; 0 if none are remembered."""
        ...

    @property
    def largest_file(self) -> int:
        """Bytes of the largest file written since the driver's start that later batches add to; 0: there is none."""
        ...

    def tend(self) -> None:
        """Try again what has failed of this work, if its time has come. Between two batches, and about every second
        while there are none, by the thread that writes them; raises nothing."""
        ...
