"""What the folder of a Hudi table tells of its past: versions, their times, and how far back files reach."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakestream.query.history import Version
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.moments import Commit
from lakestream.query.question import Changes, Snapshot
from lakestream.query.spans import span_of
from lakestream.storage import LakePath, S3Settings, StoreSettings

PROPERTIES = "hoodie.table.name=orders\nhoodie.table.version=9\nhoodie.timeline.layout.version=2\n"
REPLACE: Any = {"type": "record", "name": "R", "fields": [{"name": "operationType", "type": "string"}]}
NOW = datetime(2026, 1, 31, 12, 1, tzinfo=UTC)


def instant(second: int) -> str:
    return f"202601311200{second:02}000"


def at(second: int) -> datetime:
    return datetime(2026, 1, 31, 12, 0, second, tzinfo=UTC)


class Table:
    """The timeline of a table, and nothing else of it."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "orders"
        self._timeline = self._path / ".hoodie" / "timeline"
        self._timeline.mkdir(parents=True)
        (self._path / ".hoodie" / "hoodie.properties").write_text(PROPERTIES)

    def write(self, name: str, schema: Any = None, **content: Any) -> None:
        with (self._timeline / name).open("wb") as file:
            if schema is not None:
                fastavro.writer(file, schema, [content])

    def commit(self, begun: int, completed: int) -> None:
        self.write(f"{instant(begun)}_{instant(completed)}.commit")

    def replace(self, begun: int, completed: int, operation: str) -> None:
        self.write(f"{instant(begun)}_{instant(completed)}.replacecommit", REPLACE, operationType=operation)

    def look(self) -> HudiFolder:
        return HudiFolder.look(StoreSettings(LakePath.parse(str(self._path)), S3Settings("")))


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Five commits."""
    made = Table(tmp_path)
    for begun in (0, 10, 20, 30, 50):
        made.commit(begun, begun + 3)
    return made


def test_a_clustering_that_ends_late_makes_no_batch_late(table: Table) -> None:
    table.replace(5, 40, "CLUSTER")
    folder = table.look()
    assert [(one.name, one.at) for one in folder.history.versions] == [
        (instant(begun), at(begun + 3)) for begun in (0, 10, 20, 30, 50)
    ]
    found = span_of(Snapshot(at(25)), folder.history, NOW)
    assert found.last == Version(instant(20), at(23))
    found = span_of(Changes(at(25)), folder.history, NOW)
    assert [one.name for one in found.commits or ()] == [instant(30), instant(50)]
    # By its name the rows are meant that were there when it was begun.
    found = span_of(Snapshot(Commit(instant(5))), folder.history, NOW)
    assert found.last == Version(instant(0), at(3))
    # Its files may be all that is left of that version.
    assert folder.as_of(Version(instant(0), at(3))) == instant(5)


def test_what_overwrites_rows_is_a_version(table: Table) -> None:
    table.replace(40, 41, "INSERT_OVERWRITE")
    history = table.look().history
    assert history.as_of(at(45), "--at", NOW) == Version(instant(40), at(41))
