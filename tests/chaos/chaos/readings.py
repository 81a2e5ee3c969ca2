"""What people read of a table while its drivers live and die, by `lakestream query`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chaos.commands import call

if TYPE_CHECKING:
    from chaos.world import World

_NOTHING_YET = ("there is no folder", "there is no checkpoint", "has no commits yet", "is no Hudi table")
"""Why a table may not be there."""
_QUERY = """SELECT id, site, day, version, op, amount, "at", note, _shard_id, _sequence_number, _sub_sequence, _arrival,
_partition_key FROM lake"""


@dataclass(frozen=True)
class Reading:
    """A table as it was read once."""

    file: Path
    """Parquet."""
    told: int
    """Rows in batches that drivers had told of as committed before that."""
    restores: int
    """That had been asked for."""


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
        reading = Reading(world.folder / f"{name}.parquet", self._told(), world.asked.restores)
        query = ("query", "--engine", "native", "--output", "parquet", "--sql", _QUERY)
        answer = call(world, name, query, reading.file)
        world.tell(f"read: {answer.said}")
        if answer.status == 0:
            self.taken.append(reading)
        elif not stressed and (reading.told or not any(reason in answer.said for reason in _NOTHING_YET)):
            world.faults.append(f"the table could not be read: {answer.said}")

    def _told(self) -> int:
        """By batch, as two drivers may tell of one."""
        commits = [commit for driver in self._world.drivers for commit in driver.commits()]
        return sum({commit["batch"]: commit["rowsWritten"] for commit in commits}.values())
