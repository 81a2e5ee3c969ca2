"""How the work on a table beside its batches goes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """One kind of this work, since the driver's start."""

    name: str
    """`compaction`, `cleaning` or `archiving`."""
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
