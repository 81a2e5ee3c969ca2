"""The partitions of a table of JSON files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.sinks.objects import folders_of
from lakestream.storage import LakePath, S3Settings, StoreSettings


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([], []),
        (["dt"], ["dt=1", "dt=2%3A"]),
        (["dt", "kind"], ["dt=1/kind=a", "dt=1/kind=b", "dt=2%3A/kind=a"]),
        (["a:b"], ["a%3Ab=1"]),
    ],
)
def test_partitions_are_the_folders_of_these_columns(tmp_path: Path, columns: list[str], expected: list[str]) -> None:
    for name in (
        "dt=1/kind=a/1.json",
        "dt=1/kind=b/2.json",
        "dt=2%3A/kind=a/3.json",
        "_lakestream/owner",
        "x/y/4.json",
        "backup=old/5.json",
        "dt=1/by=hand/6.json",
        "a%3Ab=1/7.json",
    ):
        path = tmp_path / "table" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    place = StoreSettings(LakePath.parse(f"{tmp_path}/table"), S3Settings("eu-west-1"))
    assert list(folders_of(place, columns)) == expected
