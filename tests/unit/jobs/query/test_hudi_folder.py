"""What the folder of a Hudi table tells of its past: versions, their times, and how far back files reach."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from lakestream.errors import SettingsError
from lakestream.query.errors import FilesGoneError, UnreadableError
from lakestream.query.history import Version
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.moments import Commit
from lakestream.query.question import Changes, Snapshot
from lakestream.query.spans import span_of
from lakestream.query.target import Kind, at_path
from lakestream.storage import LakePath, S3Settings, StoreSettings

PROPERTIES = "hoodie.table.name=orders\nhoodie.table.version=9\nhoodie.timeline.layout.version=2\n"
REPLACE: Any = {"type": "record", "name": "R", "fields": [{"name": "operationType", "type": "string"}]}
RETAINED = {"type": "record", "name": "I", "fields": [{"name": "timestamp", "type": "string"}]}
PLAN: Any = {
    "type": "record",
    "name": "P",
    "fields": [{"name": "earliestInstantToRetain", "type": ["null", RETAINED]}],
}
CLEANED: Any = {"type": "record", "name": "C", "fields": [{"name": "earliestCommitToRetain", "type": "string"}]}
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

    def clean(self, begun: int, keeps_from: int) -> None:
        """Begin one."""
        plan = {"timestamp": instant(keeps_from)}
        self.write(f"{instant(begun)}.clean.requested", PLAN, earliestInstantToRetain=plan)

    def undo(self, begun: int) -> None:
        for file in self._timeline.glob(f"{instant(begun)}*"):
            file.unlink()

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


def test_a_version_is_read_with_the_compaction_that_was_planned_while_it_was_written(table: Table) -> None:
    """Its log files are on top of that."""
    table.write(f"{instant(31)}.compaction.requested")
    folder = table.look()
    assert folder.as_of(Version(instant(20), at(23))) == instant(20)
    assert folder.as_of(Version(instant(30), at(33))) == instant(31)


def test_what_overwrites_rows_is_a_version(table: Table) -> None:
    table.replace(40, 41, "INSERT_OVERWRITE")
    history = table.look().history
    assert history.as_of(at(45), "--at", NOW) == Version(instant(40), at(41))


def test_a_clean_that_has_begun_may_have_deleted_already(table: Table) -> None:
    table.clean(40, keeps_from=20)
    folder = table.look()
    assert folder.kept_from == instant(20)
    assert folder.history.versions[folder.history.first_kept].name == instant(20)
    # Its newest object says nothing.
    table.write(f"{instant(40)}.clean.inflight")
    assert table.look().kept_from == instant(20)
    # An older one is completed.
    table.write(f"{instant(35)}_{instant(36)}.clean", CLEANED, earliestCommitToRetain=instant(10))
    assert table.look().kept_from == instant(20)


def test_what_a_savepoint_keeps_is_for_a_restore(table: Table) -> None:
    """Its files are there, so that they were cleaned would be no reason."""
    table.write(f"{instant(0)}_{instant(4)}.savepoint")
    table.clean(40, keeps_from=30)
    history = table.look().history
    for saved in (Commit(instant(0)), at(5)):
        with pytest.raises(
            SettingsError, match=r"a savepoint keeps that for a restore, .*; the table can be read as of"
        ):
            history.as_of(saved, "--at", NOW)
    with pytest.raises(SettingsError, match="files of that time were cleaned"):
        history.as_of(at(13), "--at", NOW)


def test_a_clean_that_says_nothing_or_is_gone_again_takes_nothing(table: Table) -> None:
    table.write(f"{instant(40)}.clean.requested")
    table.write(f"{instant(41)}.clean.inflight")
    assert table.look().kept_from is None


def test_a_clean_by_file_versions_keeps_what_was_there_when_it_was_begun(table: Table) -> None:
    """As of another writer, or `CALL run_clean`: of older versions it may have removed any file."""
    table.write(f"{instant(40)}.clean.requested", PLAN, earliestInstantToRetain=None)
    for _ in range(2):
        history = table.look().history
        assert history.versions[history.first_kept].name == instant(30)
        # And once it is done.
        table.write(f"{instant(40)}_{instant(41)}.clean", CLEANED, earliestCommitToRetain="")


def test_a_clean_that_is_done_and_does_not_say_what_is_damaged(table: Table) -> None:
    """As while it is written: without it, files that are gone would count as there."""
    table.write(f"{instant(50)}_{instant(51)}.clean")
    with pytest.raises(UnreadableError, match=r"\.clean of .* damaged, or being written just now"):
        _ = table.look().history


def test_properties_that_are_no_text_are_of_no_table_that_is_known(table: Table, tmp_path: Path) -> None:
    (tmp_path / "orders" / ".hoodie" / "hoodie.properties").write_bytes(b"\xff\x00\x80=\xe9\n")
    with pytest.raises(UnreadableError, match="timeline layout 0"):
        table.look()


def test_what_was_removed_meanwhile_is_noticed(table: Table) -> None:
    folder = table.look()
    first, _, third, *_ = folder.history.versions
    table.commit(55, 56)
    folder.require_kept(first)
    table.clean(57, keeps_from=20)
    folder.require_kept(None)
    folder.require_kept(third)
    with pytest.raises(FilesGoneError, match=rf"files of {first.name} .* the table can be read as of 4 instants, from"):
        folder.require_kept(first)
    # That it was going on is known from the beginning.
    again = table.look()
    again.require_kept(again.history.versions[again.history.first_kept])


def test_what_was_undone_meanwhile_is_noticed(table: Table) -> None:
    folder = table.look()
    table.undo(50)
    table.write(f"{instant(57)}.restore.requested")
    folder.require_kept(folder.history.versions[-2])
    with pytest.raises(FilesGoneError, match=instant(50)):
        folder.require_kept(folder.history.versions[-1])
    # Also by a restore that was going on when the query began.
    folder = table.look()
    table.undo(30)
    folder.require_kept(folder.history.versions[-2])
    with pytest.raises(FilesGoneError, match=instant(30)):
        folder.require_kept(folder.history.versions[-1])


def test_an_instant_that_is_archived_or_undone_meanwhile_is_to_be_asked_for_again(table: Table) -> None:
    """And does not make a table one that cannot be read."""
    table.replace(55, 56, "CLUSTER")
    folder = table.look()
    table.undo(55)
    for look in (lambda: folder.history, lambda: folder.columns):
        with pytest.raises(FilesGoneError, match=r"20260131120055000 was archived or undone .* Ask again"):
            look()


def test_a_table_whose_properties_are_written_anew_is_one(tmp_path: Path) -> None:
    Table(tmp_path)
    properties = tmp_path / "orders" / ".hoodie" / "hoodie.properties"
    properties.rename(properties.with_suffix(".properties.backup"))
    target = at_path(f"{tmp_path}/orders", {})
    assert target.kind is Kind.HUDI
    with pytest.raises(
        UnreadableError, match=r"has but a copy of .hoodie/hoodie.properties: .* start the table's writer"
    ):
        HudiFolder.look(target.table)
