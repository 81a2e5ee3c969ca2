"""Where an answer of Spark may be kept."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakestream.errors import SettingsError
from lakestream.query.kept import kept_at
from lakestream.query.target import Kind, Target
from lakestream.storage import LakePath, S3Settings, StoreSettings

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def kept(path: str, table: str) -> str:
    target = Target(Kind.HUDI, StoreSettings(LakePath.parse(table), S3Settings("eu-west-1")), None)
    return str(kept_at(path, target, NOW, on_cluster=False).path)


def test_a_new_folder_of_the_day(tmp_path: Path) -> None:
    assert kept(f"{tmp_path}/orders-{{date}}", f"{tmp_path}/orders") == f"{tmp_path}/orders-2026-01-31"


@pytest.mark.parametrize("below", ["", "/reports/{date}"])
@pytest.mark.parametrize("table", ["/lake/orders", "s3a://lake/orders"])
def test_a_table_is_no_place_for_an_answer(table: str, below: str) -> None:
    """Its readers would take the files for the table's."""
    with pytest.raises(SettingsError, match=r"--to .*: that is in the table itself"):
        kept(f"{table}{below}".replace("s3a", "s3"), table)
