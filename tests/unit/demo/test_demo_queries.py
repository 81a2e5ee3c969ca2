from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_demo.folders import FolderSize, folder_size
from lakestream_demo.queries import Query, TableCommit, choose_instant, script, three_looks


def commits(*completed: int) -> list[TableCommit]:
    return [TableCommit(f"{time - 1:03}", f"{time:03}") for time in completed]


@pytest.mark.parametrize(
    ("completed", "since", "chosen"),
    [
        ((10,), "000", "010"),
        ((10, 20), "000", "010"),
        ((10, 20, 30), "000", "020"),
        ((30, 10, 50, 20, 40), "000", "030"),
        (tuple(range(1, 101)), "071", "085"),
        ((10, 20), "030", "020"),
    ],
)
def test_the_moment_is_half_way_or_what_cleaning_has_left(completed: tuple[int, ...], since: str, chosen: str) -> None:
    assert choose_instant(commits(*completed), since) == chosen


def test_the_looks_share_one_moment() -> None:
    snapshot, changes, travel = three_looks("20260101000000000")
    assert "20260101000000000" not in snapshot.sql
    assert "orders WHERE _hoodie_commit_time > '20260101000000000'" in changes.sql
    assert "orders TIMESTAMP AS OF '20260101000000000'" in travel.sql


def test_the_script_can_be_run_by_spark_sql() -> None:
    assert script("/lake/orders_hudi", [Query("Snapshot", "SELECT 1")]) == (
        "CREATE TABLE orders USING hudi LOCATION '/lake/orders_hudi';\n\n-- Snapshot\nSELECT 1;\n"
    )


def test_data_files_are_counted_and_bookkeeping_is_not(tmp_path: Path) -> None:
    for name, size in (
        (".hoodie/timeline/1.commit", 7),
        ("dt=2026-01-01/.hoodie_partition_metadata", 7),
        ("dt=2026-01-01/.f1_1.log.1_0-1-1", 10),
        ("dt=2026-01-01/f1_0-1-1_1.parquet", 20),
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    place = StoreSettings(LakePath.parse(str(tmp_path)), S3Settings("eu-west-1"))
    assert folder_size(place) == FolderSize(files=2, bytes=30)
