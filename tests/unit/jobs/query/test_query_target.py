"""Which table is asked, and how long its store is waited for."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from lakestream.query.target import at_path, of_writer
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import DOCUMENT, log_at
from lakestream_api import load_lakestream


def test_nobody_waits_for_a_store_as_long_as_a_driver_does(tmp_path: Path) -> None:
    table = StoreSettings(LakePath.parse(str(tmp_path / "json")), S3Settings("eu-west-1"))
    checkpoint = tmp_path / "checkpoint" / "json"
    owner = Owner(log_at(checkpoint).checkpoint, str(checkpoint), "orders", "json")
    TableClaim(table, table / "_lakestream", owner).take(wrote=False)
    document = load_lakestream(DOCUMENT.format(lake=tmp_path))
    for target in (at_path(str(tmp_path / "json"), {}), of_writer(document, "json", {})):
        assert target.required_log().path == LakePath.parse(str(checkpoint))
        for place in (target.table, target.required_log()):
            assert place.patience <= timedelta(seconds=30) < table.patience
