"""Hive-style partition paths."""

from __future__ import annotations

import pytest

from lakestream.sinks.hive_paths import partition_path


@pytest.mark.parametrize(
    ("values", "path"),
    [
        (("2026-01-31", "new"), "dt=2026-01-31/status=new"),
        ((None, "new"), "dt=__HIVE_DEFAULT_PARTITION__/status=new"),
        (("", "new"), "dt=__HIVE_DEFAULT_PARTITION__/status=new"),
        (("2026-01-31 10:00:00", "a/b=c%"), "dt=2026-01-31 10%3A00%3A00/status=a%2Fb%3Dc%25"),
        (("..", "Zoë\n\x7f\0"), "dt=../status=Zoë%0A%7F%00"),
    ],
)
def test_paths_are_escaped_as_spark_does(values: tuple[str | None, ...], path: str) -> None:
    assert partition_path(("dt", "status"), values) == path


def test_without_columns_there_is_no_path() -> None:
    assert partition_path((), ()) == ""
