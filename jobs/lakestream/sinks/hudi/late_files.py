"""Files that come after their commit was rolled back.

Hudi deletes what a commit has written when it rolls it back, and does not look again. A request that was on its way, or
that a frozen process goes on with, brings a file after that. Readers pass over it as long as they know that its commit
is none, which they tell by the active timeline: what began before that counts as committed. So the file's rows turn up
when the commits of its time are archived, a second time if they were inserted; and with the bucket index the table
refuses writes, for a bucket has two file groups.

Which files may come is in the plan of the rollback, by names that no other commit uses. So they are looked for again
and again, and deleted.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles, forget, keep_newest
from lakestream.spark.failures import SPARK_ERRORS, in_our_words

logger = logging.getLogger(__name__)

_PERIOD = timedelta(days=1)
"""For which files are looked for. A request is under way for minutes; a process that is frozen for longer finds its
connections closed, and is ended by its driver, or as its driver, soon after it wakes."""

_SOON = timedelta(minutes=15)
"""For which nothing is archived that is as new as their commit: most of them come so soon, and no reader sees one."""

_KEPT = 30
"""Rollbacks whose files are looked for, the newest: each is a driver that was killed within a commit."""

_LATER = 2
"""How many times as long after the rollback as the last time is the next. What came late is so deleted no later than
that many times as long after the rollback as it took to come, and a day is fewer than twenty looks."""


@dataclass(slots=True)
class _Rollback:
    at: datetime
    files: Sequence[str]
    looked_at: datetime

    def is_due(self, now: datetime) -> bool:
        return now - self.at >= min(_LATER * (self.looked_at - self.at), _PERIOD)


class LateFiles:
    """The files of a table that may come late. `expect` is for the thread that commits; `sweep` may run beside it."""

    def __init__(
        self,
        table: HudiTable,
        names: SideFiles,
        time_of: Callable[[str], datetime],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Remember what earlier drivers expected.

        Args:
            table: the table.
            names: remembers; a file for each rollback, since Hudi archives its own.
            time_of: when an instant was begun.
            now: the clock that instants are made by.
        """
        self._table = table
        self._names = names
        self._time_of = time_of
        self._now = now
        self._rollbacks: dict[str, _Rollback] = {}
        for name in keep_newest(names, _KEPT):
            if (files := _decode(names.get(name))) is None:
                forget(names, name)
            else:
                self._remember(name, files, time_of(name))

    def expect(self, rollback: str, files: Sequence[str]) -> None:
        """Look for files from now on.

        Args:
            rollback: instant.
            files: that it deletes: paths in the table.
        """
        if not files or rollback in self._rollbacks or (at := self._time_of(rollback)) < self._now() - _PERIOD:
            return
        self._names.put(rollback, json.dumps([*files]).encode())
        self._remember(rollback, files, at)

    def shown_since(self, since: datetime) -> datetime:
        """The time from which on the active timeline has to have all commits, if others need those from `since` on."""
        soon = self._now() - _SOON
        return min([since, *(one.at for one in list(self._rollbacks.values()) if one.at > soon)])

    def sweep(self, *, all_of_them: bool = False) -> list[str]:
        """Delete what has come: one listing for each partition that is looked at.

        Args:
            all_of_them: and not only the files of rollbacks whose turn it is.

        Returns:
            What was deleted: paths in the table.
        """
        now = self._now()
        due = {name: one for name, one in list(self._rollbacks.items()) if all_of_them or one.is_due(now)}
        by_partition: dict[str, set[str]] = defaultdict(set)
        for rollback in due.values():
            for file in rollback.files:
                by_partition[file.rpartition("/")[0]].add(file)  # partitions may be nested, or none
        deleted: list[str] = []
        left: set[str] = set()
        for partition, files in by_partition.items():
            there = set(self._table.names_in(partition))
            came = sorted(file for file in files if file.rpartition("/")[2] in there)
            deleted += filter(self._delete, came)
            left |= set(came).difference(deleted)
        # Of a look that failed the next one is no later, and what it should have deleted is not forgotten.
        for name, rollback in due.items():
            rollback.looked_at = now
            over = now - rollback.at >= _PERIOD and left.isdisjoint(rollback.files)
            if over and self._rollbacks.pop(name, None) is not None:
                forget(self._names, name)
        return deleted

    def _delete(self, file: str) -> bool:
        """Whether it could be deleted. A right that is missing is no reason to write no more."""
        came = (
            f"{file} of the table {self._table.settings.path} came after its commit was rolled back: from a driver or "
            "executor that was frozen, or by a request that was long on its way"
        )
        try:
            self._table.delete(file)
        except SPARK_ERRORS as error:
            logger.error(
                "%s. It cannot be deleted: %s. Delete it, or its rows may be read once the commits of its time are "
                "archived",
                came,
                in_our_words(error),
            )
            return False
        logger.warning("%s. It is deleted", came)
        return True

    def _remember(self, rollback: str, files: Sequence[str], at: datetime) -> None:
        self._rollbacks[rollback] = _Rollback(at, files, looked_at=at)


def _decode(content: bytes) -> list[str] | None:
    """None: it was cut short, on a folder, by a kill. Its rollback is expected again, since it is in the timeline yet:
    nothing is archived before all of them are."""
    try:
        files: list[str] = json.loads(content)
    except ValueError:  # also of what is no text
        return None
    return files
