"""Which files of a Hudi table are what, by their names alone."""

from __future__ import annotations

from datetime import UTC, datetime

from lakestream.query.timeline import Listed, Timeline
from lakestream.table.files import SMALL, Files, StoredFile, slices_of

DAY = "2026013112000"


def instant(second: int) -> str:
    return f"{DAY}{second}000"


def done(second: int, completed: int, action: str = "deltacommit") -> str:
    return f"{instant(second)}_{instant(completed)}.{action}"


def timeline_of(names: list[str], *, layout: int = 2, merges_on_read: bool = True) -> Timeline:
    listed = [Listed(name, datetime(2026, 1, 31, 12, 0, 9, tzinfo=UTC)) for name in names]
    return Timeline.of(listed, merges_on_read=merges_on_read, layout=layout)


def base(group: str, second: int, size: int = 10, partition: str = "dt=a") -> StoredFile:
    return StoredFile(f"{partition}/{group}-0_0-7-9_{instant(second)}.parquet", size)


def log(group: str, second: int, partition: str = "dt=a") -> StoredFile:
    return StoredFile(f"{partition}/.{group}-0_{instant(second)}.log.1_0-13-17", 1)


def test_base_files_logs_and_what_they_have_replaced() -> None:
    # The third delta commit was in flight when the compaction was begun, so its log is on top of it.
    names = [done(0, 1), done(2, 3), done(4, 7), done(5, 6, "commit"), done(8, 9)]
    files = [base("a", 0), log("a", 2), log("a", 4), base("a", 5, SMALL), log("a", 8), base("b", 0, partition="dt=b")]
    found = slices_of(files, timeline_of(names))
    assert (found.partitions, found.file_groups) == (2, 2)
    assert found.base == Files(2, SMALL + 10)
    assert found.small == Files(1, 10)
    assert found.mergeable == Files(), "it is alone in its partition"
    assert found.waiting == Files(2, 2)
    assert found.replaced == Files(2, 11)
    assert found.unfinished == Files()


def test_what_a_clustering_has_replaced_is_kept_for_time_travel_alone() -> None:
    names = [done(0, 1, "commit"), done(2, 3, "commit"), done(4, 5, "replacecommit")]
    files = [base("a", 0), base("b", 2), base("c", 4), base("a", 0, partition="dt=b")]
    found = slices_of(
        files, timeline_of(names, merges_on_read=False), {("dt=a", "a-0"), ("dt=a", "b-0"), ("gone", "d-0")}
    )
    assert (found.file_groups, found.base, found.replaced) == (2, Files(2, 20), Files(2, 20))


def test_in_layout_1_logs_bear_the_instant_of_their_base_file() -> None:
    names = [
        f"{instant(0)}.deltacommit",
        f"{instant(2)}.deltacommit",
        f"{instant(4)}.commit",
        f"{instant(6)}.deltacommit",
    ]
    files = [base("a", 0), log("a", 0), base("a", 4), log("a", 4), log("b", 2)]
    found = slices_of(files, timeline_of(names, layout=1))
    assert (found.base, found.waiting, found.replaced) == (Files(1, 10), Files(2, 2), Files(2, 11))


def test_in_layout_1_logs_may_be_there_before_their_base_file() -> None:
    names = [f"{instant(0)}.deltacommit", f"{instant(2)}.compaction.requested", f"{instant(3)}.deltacommit"]
    found = slices_of([base("a", 0), log("a", 0), log("a", 2)], timeline_of(names, layout=1))
    assert (found.base, found.waiting, found.unfinished) == (Files(1, 10), Files(2, 2), Files())


def test_logs_are_waiting_until_their_compaction_is_completed() -> None:
    names = [done(0, 1), done(2, 3), f"{instant(4)}.compaction.requested", f"{instant(4)}.compaction.inflight"]
    found = slices_of([base("a", 0), log("a", 2), base("a", 4)], timeline_of(names))
    assert (found.base, found.waiting, found.unfinished) == (Files(1, 10), Files(1, 1), Files(1, 10))


def test_files_of_no_commit_are_told_and_belong_to_nothing() -> None:
    names = [done(1, 2), f"{instant(3)}.deltacommit.requested", f"{instant(3)}.deltacommit.inflight"]
    # Older than the timeline: archived. In no timeline at all: left behind, or rolled back.
    files = [base("a", 0), base("b", 1), log("b", 3), log("b", 5)]
    found = slices_of(files, timeline_of(names))
    assert found.base == Files(2, 20)
    assert found.unfinished == Files(2, 2)


def test_other_objects_are_passed_over() -> None:
    group = "00000001-252c-4e17-9d70-f634cc03af84-0"
    names = [
        f"dt=a/..{group}_{instant(0)}.log.1_1-15-28.crc",
        f"dt=a/.{group}_0-1-2_{instant(0)}.parquet.crc",
        "dt=a/.hoodie_partition_metadata",
        ".hoodie/hoodie.properties",
        f".hoodie/timeline/{done(0, 1)}",
        f".hoodie/metadata/files/.files-0000-0_{instant(0)}.log.1_0-15-28",
        "notes.parquet",
    ]
    found = slices_of([StoredFile(name, 1) for name in names], timeline_of([done(0, 1)]))
    assert found.file_groups == 0
    assert found.unfinished == Files()


def test_a_table_without_partitions() -> None:
    found = slices_of(
        [StoredFile(f"a-0_0-7-9_{instant(0)}.parquet", 5)], timeline_of([done(0, 1, "commit")], merges_on_read=False)
    )
    assert (found.partitions, found.base) == (1, Files(1, 5))
