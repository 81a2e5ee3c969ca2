"""When files that come after their rollback are looked for; a table and its side files are played."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from py4j.protocol import Py4JError

from lakestream.sinks.hudi.clock import newest_time
from lakestream.sinks.hudi.late_files import LateFiles
from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)
FILES = ["day=1/a_0-1-2_7.parquet", "day=1/b_0-1-2_7.parquet", "day=2/hour=3/c_0-1-2_7.parquet"]


class Stored:
    """What `LateFiles` needs of a table, and of the files beside it."""

    settings = SimpleNamespace(path="s3://lake/orders")

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.names: dict[str, bytes] = {}
        self.listed: list[str] = []
        self.now = BEGIN
        self.is_kept = False
        self.is_away = False

    def time_of(self, instant: str) -> datetime:
        time = newest_time(instant, UTC)
        assert time is not None
        return time

    def names_in(self, partition: str) -> list[str]:
        if self.is_away:
            raise Py4JError("503")
        self.listed.append(partition)
        return [name for at, _, name in (file.rpartition("/") for file in self.files) if at == partition]

    def delete(self, file: str) -> None:
        if self.is_kept:
            raise Py4JError("AccessDenied")
        self.files.remove(file) if file in self.files else self.names.pop(file)

    def put(self, name: str, content: bytes) -> None:
        self.names[name] = content

    def get(self, name: str) -> bytes:
        return self.names[name]

    def list(self) -> list[str]:
        return [*self.names]

    def opened(self) -> LateFiles:
        """As by a driver that starts."""
        return LateFiles(cast(HudiTable, self), cast(SideFiles, self), self.time_of, lambda: self.now)


@pytest.fixture(name="stored")
def _stored() -> Stored:
    return Stored()


def instant(at: datetime) -> str:
    return f"{at:%Y%m%d%H%M%S}000"


def test_what_has_come_is_deleted_and_nothing_else(stored: Stored) -> None:
    late = stored.opened()
    late.expect(instant(BEGIN), FILES)
    stored.files = {FILES[0], FILES[2], "day=1/committed_0-1-2_8.parquet"}
    assert late.sweep() == [FILES[0], FILES[2]]
    assert stored.files == {"day=1/committed_0-1-2_8.parquet"}
    assert stored.listed == ["day=1", "day=2/hour=3"]


def test_a_table_without_partitions_is_listed_itself(stored: Stored) -> None:
    late = stored.opened()
    late.expect(instant(BEGIN), ["a_0-1-2_7.parquet"])
    stored.files = {"a_0-1-2_7.parquet"}
    assert late.sweep() == ["a_0-1-2_7.parquet"]
    assert stored.listed == [""]


def test_a_day_takes_a_dozen_looks_and_what_comes_late_is_there_no_longer_than_it_took_to_come(stored: Stored) -> None:
    late = stored.opened()
    late.expect(instant(BEGIN), FILES[:1])
    looks = []
    for second in range(1, 100_000):
        stored.now = BEGIN + timedelta(seconds=second)
        stored.listed.clear()
        late.sweep()
        if stored.listed:
            looks.append(second)
    assert len(looks) < 20
    assert all(later <= 2 * sooner for sooner, later in itertools.pairwise(looks))
    # A last look when the day is over, or soon after it; then it is forgotten.
    assert looks[-1] >= 86_400
    assert not stored.names


@pytest.mark.parametrize("trouble", ["is_away", "is_kept"])
def test_what_the_last_look_could_not_delete_is_not_forgotten(stored: Stored, trouble: str) -> None:
    late = stored.opened()
    late.expect(instant(BEGIN), FILES)
    stored.now += timedelta(hours=25)
    stored.files = {FILES[0]}
    setattr(stored, trouble, True)
    with pytest.raises(Py4JError) if trouble == "is_away" else nullcontext():
        assert late.sweep() == []
    setattr(stored, trouble, False)
    assert late.sweep(all_of_them=trouble == "is_kept") == [FILES[0]]
    assert not stored.names


def test_a_driver_that_starts_looks_for_what_its_predecessors_expected(stored: Stored) -> None:
    stored.opened().expect(instant(BEGIN), FILES)
    stored.now += timedelta(hours=20)
    stored.files = {FILES[1]}
    assert stored.opened().sweep() == [FILES[1]]


def test_a_look_at_all_of_them_heeds_no_turn(stored: Stored) -> None:
    late = stored.opened()
    late.expect(instant(BEGIN), FILES)
    stored.now += timedelta(minutes=5)
    late.sweep()
    stored.files = {FILES[0]}
    assert late.sweep() == []
    assert late.sweep(all_of_them=True) == [FILES[0]]


@pytest.mark.parametrize(
    ("ago", "files"), [(timedelta(hours=25), FILES), (timedelta(0), [])], ids=["too long ago", "no files"]
)
def test_what_need_not_be_looked_for_is_not_remembered(stored: Stored, ago: timedelta, files: list[str]) -> None:
    stored.opened().expect(instant(BEGIN - ago), files)
    assert not stored.names


def test_the_newest_rollbacks_are_kept(stored: Stored) -> None:
    late = stored.opened()
    for second in range(50):
        late.expect(instant(BEGIN + timedelta(seconds=second)), FILES)
    stored.opened()
    assert sorted(stored.names) == [instant(BEGIN + timedelta(seconds=second)) for second in range(20, 50)]


@pytest.mark.parametrize("left", [b"", b"[", b'["day=1/a_0-1-2_7.parq', b"\0\0\0\0\0"])
def test_names_that_were_cut_short_are_learned_again(stored: Stored, left: bytes) -> None:
    stored.names[instant(BEGIN)] = left
    late = stored.opened()
    assert not stored.names
    late.expect(instant(BEGIN), FILES)
    stored.files = {FILES[0]}
    assert late.sweep() == [FILES[0]]


def test_who_may_delete_nothing_goes_on_and_says_what_to_do(stored: Stored, caplog: pytest.LogCaptureFixture) -> None:
    stored.opened().expect(instant(BEGIN), FILES)
    stored.files, stored.is_kept = {FILES[0]}, True
    stored.now += timedelta(hours=25)
    late = stored.opened()
    assert late.sweep() == []
    assert f"{FILES[0]} of the table s3://lake/orders came after its commit was rolled back" in caplog.text
    assert "AccessDenied. Delete it" in caplog.text


def test_for_a_while_no_commit_is_archived_that_is_newer_than_a_rollback(stored: Stored) -> None:
    """However short the time is for which they are kept: a file that came then would be read."""
    late = stored.opened()
    assert late.shown_since(stored.now) == BEGIN
    late.expect(instant(BEGIN - timedelta(minutes=2)), FILES[:1])
    late.expect(instant(BEGIN), FILES[1:])
    for minutes, since in ((0, -2), (12, -2), (14, 0), (16, 16)):
        stored.now = BEGIN + timedelta(minutes=minutes)
        assert late.shown_since(stored.now) == BEGIN + timedelta(minutes=since)
        assert late.shown_since(stored.now - timedelta(hours=1)) == stored.now - timedelta(hours=1)
