"""What was rolled back stays rolled back.

Hudi looks whether a commit is still there, and then completes it by a request of its own. A driver that is frozen
between the two, or dies with that request on its way, may so complete a commit that its successor has rolled back in
the meantime: the timeline then has a completed commit, with the mark of a batch, whose files are gone. Nothing can keep
such a request from arriving, at any time; so the table's timeline is looked through at the start and after each commit.

The request that begins a commit may come as late. It would stay begun, and nothing later be cleaned or archived.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from lakestream.sinks.hudi.late_files import LateFiles
from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles, instants_in, keep_newest

_KEPT = 1_000
"""Rolled back instants that are remembered; each is a driver that was killed."""

_COMMITS = ("commit", "deltacommit")
"""Actions whose instants end with their rollback. That of a compaction is begun again under the same instant."""

_CLUSTERINGS = ("clustering", "replacecommit")
"""As compactions; but what is begun again writes other files. That of a compaction are the same."""

_UNDONE = 100
"""Commits of a restore that are remembered, the newest: a request that is still on its way is of a driver that has died
lately."""


def rolled_back(table: HudiTable) -> SideFiles:
    """Where the instants of these commits are kept, as names of empty files."""
    return SideFiles(table, "rolled-back")


def remember(table: HudiTable, undone: Sequence[str]) -> None:
    """Write down that commits are none, whatever becomes of them.

    Args:
        table: that they are commits of.
        undone: instants, oldest first.
    """
    names = rolled_back(table)
    known = set(names.list())
    for instant in undone[-_UNDONE:]:
        if instant not in known:
            names.put(instant, b"")


class Rollbacks:
    """The commits of a table that were rolled back.

    Hudi archives a rollback with the commits of its time, and would not know any more that a completed one is none. So
    their names are kept in files of ours as well.
    """

    def __init__(self, table: HudiTable) -> None:
        self._table = table
        self._client = table.meta_client()
        self._plan_of = table.hudi.table.action.rollback.RollbackUtils.getRollbackPlan
        self._names = names = rolled_back(table)
        self.late = LateFiles(table, SideFiles(table, "late-files"), self.time_of)
        """What these commits may have written, and has not come."""
        self._seen: set[str] = set()
        self.instants = set(keep_newest(names, _KEPT))
        """The instants of these commits, as of the last look."""
        self.newest: datetime | None = None
        """Time of the newest instant of any kind, as of the last look."""

    def look(self) -> list[str]:
        """Look through the timeline, while no batch is written: one listing, and a file for each rollback that is new.

        Returns:
            The commits that have to be rolled back, oldest first: those that are completed nevertheless, and those that
            a dead driver has begun.
        """
        timeline = self._client.reloadActiveTimeline()
        self.newest = self._table.newest_time(self._client)
        rollbacks = timeline.getRollbackTimeline()
        if not self._seen.issuperset(instants_in(rollbacks)):
            for rollback in rollbacks.getInstants():
                self._learn(rollback)
        late = self.instants.intersection(instants_in(timeline.getCommitsTimeline().filterCompletedInstants()))
        return sorted(late.union(self._table.pending_commits(timeline)))

    def time_of(self, instant: str) -> datetime:
        """When an instant was begun."""
        return self._table.time_of(instant, self._client)

    def _learn(self, rollback: Any) -> None:
        if (name := str(rollback.requestedTime())) in self._seen:
            return
        plan = json.loads(self._plan_of(self._client, rollback).toString())
        undone = plan["instantToRollback"]
        instant, action = undone["commitTime"], undone["action"]
        if action in _COMMITS and instant not in self.instants:
            self._names.put(instant, b"")
            self.instants.add(instant)
        if action in (*_COMMITS, *_CLUSTERINGS):
            self.late.expect(name, _deleted(plan))
        self._seen.add(name)


def _deleted(plan: Mapping[str, Any]) -> list[str]:
    """The files that a rollback deletes, by their paths in the table."""
    requests = plan["RollbackRequests"]
    names = [(one["partitionPath"], file.rpartition("/")[2]) for one in requests for file in one["filesToBeDeleted"]]
    return [f"{partition}/{name}" if partition else name for partition, name in names]
