"""What people read of a table while its drivers live and die, by `lakestream query`."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.commands import Answer, call

if TYPE_CHECKING:
    from chaos.world import World

_NOTHING_YET = (
    *("there is no folder", "there is no checkpoint", "has no commits yet", "is no Hudi table"),
    "no batch with rows is committed yet",
)
"""Why a table may not be there."""
_PAST = ("were cleaned", "the table can be read as of", "that can be read is")
"""Why it may not be asked any more as it was."""
_AS_OF = re.compile(r", as of (\d{17}|batch \d+) ")
_QUERY = """SELECT id, site, day, version, op, amount, "at", note, _shard_id, _sequence_number, _sub_sequence, _arrival,
_partition_key FROM lake"""
_BY_SPARK = "--engine spark"
"""In what is said where hudi-rs does not read a table, or not right: while a compaction of a dead driver is pending, or
where log files have another type of a column that is wider by now."""


@dataclass(frozen=True)
class Reading:
    """A table as it was read once."""

    file: Path
    """Parquet."""
    told: int
    """Rows in batches that drivers had told of as committed before that."""
    restores: int
    """That had been asked for."""
    as_of: str | None
    """The newest commit of it; None: it had none."""
    again: Path | None = None
    """The table as of this commit, as it was read when all was over; None: it was not."""
    since: Path | None = None
    """What commits have written behind that of the reading before, up to this one, likewise."""


class Readings:
    """The readings of a scenario, in order."""

    def __init__(self, world: World) -> None:
        self.taken: list[Reading] = []
        self._world = world
        self._commands = 0

    def take(self) -> None:
        """Read the table. Without faults that has to succeed, if there is one."""
        world, stressed = self._world, self._world.stressed
        self._commands += 1
        name = f"reading-{self._commands}"
        file, told = world.folder / f"{name}.parquet", self._told()
        answer = self._ask(name, file)
        if answer.status == 0:
            as_of = _AS_OF.search(answer.said)
            self.taken.append(Reading(file, told, world.asked.restores, as_of and as_of[1]))
        elif not stressed and (told or not any(reason in answer.said for reason in _NOTHING_YET)):
            world.faults.append(f"the table could not be read: {answer.said}")

    def repeat(self) -> None:
        """Read the table as it was at each reading, and what was written from one to the next, as far as there is that
        past. Nothing is wrong any more."""
        if self._world.asked.restores:
            return
        commits = [None, *(one.as_of for one in self.taken)]
        self.taken = [self._repeated(one, before) for one, before in zip(self.taken, commits, strict=False)]

    def _repeated(self, reading: Reading, before: str | None) -> Reading:
        if reading.as_of is None:
            return reading
        again = self._past(reading, "again", "--at", reading.as_of)
        if before in (None, reading.as_of):
            return replace(reading, again=again)
        since = self._past(reading, "since", "--since", str(before), "--until", reading.as_of)
        return replace(reading, again=again, since=since)

    def _past(self, reading: Reading, name: str, *moments: str) -> Path | None:
        file = reading.file.with_suffix(f".{name}.parquet")
        answer = self._ask(reading.file.stem, file, *moments)
        if answer.status == 0:
            return file
        if not any(reason in answer.said for reason in _PAST):
            self._world.faults.append(f"the table could not be read by {' '.join(moments)}: {answer.said}")
        return None

    def _ask(self, name: str, file: Path, *options: str) -> Answer:
        """By the engine that takes no JVM; by Spark where that is what it says, and nothing else is in the way."""
        answer = self._ask_by("native", _QUERY, name, file, *options)
        if answer.status != 0 and _BY_SPARK in answer.said and not self._world.stressed:
            answer = self._ask_by("spark", _QUERY.replace('"', "`"), name, file, *options)
        return answer

    def _ask_by(self, engine: str, sql: str, name: str, file: Path, *options: str) -> Answer:
        command = ("query", "--engine", engine, "--output", "parquet", "--sql", sql, *options)
        answer = call(self._world, name, command, file)
        self._world.tell(f"{' '.join(('read', *options))}: {answer.said}")
        return answer

    def _told(self) -> int:
        """By batch, as two drivers may tell of one."""
        commits = [commit for driver in self._world.drivers for commit in driver.commits()]
        return sum({commit["batch"]: commit["rowsWritten"] for commit in commits}.values())
