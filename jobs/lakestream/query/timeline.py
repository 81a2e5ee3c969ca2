"""Hudi's timeline as names of objects tell it. Pure.

    20260131120000123.deltacommit.requested
    20260131120000123.deltacommit.inflight
    20260131120000123_20260131120000456.deltacommit     completed, and when: layout 2, from version 8 on
    20260131120000123.deltacommit                       completed: layout 1, up to version 6

Names alone say what is there and since when; what an instant did is in the object. Where they do not say when it was
completed, that is the time of the object, as Hudi has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum

WRITES = frozenset({"commit", "deltacommit", "replacecommit", "clustering"})
"""Actions by which rows or files become visible."""

SAVEPOINT = "savepoint"
REPLACE = "replacecommit"
"""What a clustering is once it is completed, as is what overwrites rows; its object says which."""

# Of fourteen digits, to the second, those before Hudi 0.10 are.
_COMPLETED = re.compile(r"(\d{17}|\d{14})(?:_(\d{17}))?\.([a-z]+)")
_BEGUN = re.compile(r"(\d{17}|\d{14})\.(?:([a-z]+)\.)?(requested|inflight)")


class State(IntEnum):
    """How far an instant has come."""

    REQUESTED = 0
    INFLIGHT = 1
    COMPLETED = 2


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """An action on the table."""

    requested: str
    """When it was begun, as Hudi writes it, to the millisecond: its name."""
    action: str
    """Of a compaction `compaction` until it is completed, and `commit` then."""
    state: State
    completed: str | None = None
    file: str = ""
    """Name of its newest object in the timeline's folder."""

    @property
    def requested_at(self) -> datetime:
        return time_of(self.requested)

    @property
    def completed_at(self) -> datetime | None:
        return None if self.completed is None else time_of(self.completed)


@dataclass(frozen=True, slots=True)
class Listed:
    """An object of the timeline's folder."""

    name: str
    modified: datetime


def time_of(instant: str) -> datetime:
    """The time that an instant's name is, in the table's zone, which is UTC for tables that LakeStream made."""
    return datetime.strptime(f"{instant}000", "%Y%m%d%H%M%S%f").replace(tzinfo=UTC)


def name_of(time: datetime) -> str:
    """The name of an instant that began at a time."""
    return f"{time.astimezone(UTC):%Y%m%d%H%M%S}{time.microsecond // 1000:03}"


@dataclass(frozen=True)
class Timeline:
    """The active timeline: one entry for each instant, in the state that it has reached, by the time it was begun."""

    instants: tuple[Instant, ...]
    merges_on_read: bool
    """Then a `commit` is a compaction, which changes no row."""
    layout: int = 2
    """In layout 1 the name of a log file has the instant of its base file; in layout 2 that of its delta commit."""

    @classmethod
    def of(
        cls, listed: Iterable[Listed], *, merges_on_read: bool, layout: int = 2, undone: frozenset[str] = frozenset()
    ) -> Timeline:
        """Read names of objects; others than those of instants are passed over.

        Args:
            listed: what is in the timeline's folder.
            merges_on_read: the table type.
            layout: of the timeline.
            undone: instants that were rolled back, which are none, whatever has come of them since.
        """
        newest: dict[tuple[str, bool], Instant] = {}
        for entry in listed:
            found = _instant(entry)
            if found is None or found.requested in undone:
                continue
            # A savepoint bears the name of the commit that it keeps.
            key = found.requested, found.action == SAVEPOINT
            known = newest.get(key)
            if known is None or known.state < found.state:
                newest[key] = found
        return cls(tuple(sorted(newest.values())), merges_on_read, layout)

    @property
    def batches(self) -> tuple[Instant, ...]:
        """Completed commits, oldest first, other than compactions. Clusterings are among them: names do not tell."""
        return tuple(one for one in self._completed if not self._compacts(one) and one.action != "clustering")

    @property
    def compactions(self) -> tuple[Instant, ...]:
        """Completed ones, oldest first."""
        return tuple(one for one in self._completed if self._compacts(one))

    @property
    def pending(self) -> tuple[Instant, ...]:
        """What was begun and is not completed, oldest first."""
        return tuple(one for one in self.instants if one.state < State.COMPLETED)

    def completed(self, action: str) -> tuple[Instant, ...]:
        """Completed instants of an action, oldest first."""
        return tuple(one for one in self.instants if one.action == action and one.state is State.COMPLETED)

    @property
    def _completed(self) -> tuple[Instant, ...]:
        return tuple(one for one in self.instants if one.action in WRITES and one.state is State.COMPLETED)

    def _compacts(self, instant: Instant) -> bool:
        return self.merges_on_read and instant.action == "commit"


def _instant(entry: Listed) -> Instant | None:
    # Before the completed ones: of a commit that is in flight Hudi leaves the action out.
    if match := _BEGUN.fullmatch(entry.name):
        return Instant(match[1], match[2] or "commit", State[match[3].upper()], None, entry.name)
    if match := _COMPLETED.fullmatch(entry.name):
        # S3 tells the time of an object to the second, which may be before the instant.
        completed = match[2] or max(match[1], name_of(entry.modified))
        return Instant(match[1], match[3], State.COMPLETED, completed, entry.name)
    return None
