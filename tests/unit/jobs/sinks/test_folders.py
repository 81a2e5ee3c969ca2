"""The partitions of a table of JSON files."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakestream.sinks.objects import folders_of
from lakestream.storage import LakePath, S3Settings, StoreSettings


@pytest.mark.parametrize(
    ("depth", "expected"), [(0, []), (1, ["dt=1", "dt=2%3A"]), (2, ["dt=1/kind=a", "dt=1/kind=b", "dt=2%3A/kind=a"])]
)
def test_partitions_are_the_folders_of_that_depth(tmp_path: Path, depth: int, expected: list[str]) -> None:
    for name in (
        "dt=1/kind=a/1.json",
        "dt=1/kind=b/2.json",
        "dt=2%3A/kind=a/3.json",
        "_lakestream/owner",
        "x/y/4.json",
    ):
        path = tmp_path / "table" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    place = StoreSettings(LakePath.parse(f"{tmp_path}/table"), S3Settings("eu-west-1"))
    assert list(folders_of(place, depth)) == expected
