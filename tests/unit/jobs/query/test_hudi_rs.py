"""What hudi-rs is not asked for, since it would fail in a way of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lakestream.main import app

LOCAL_TIME = {"type": "long", "logicalType": "local-timestamp-micros"}


@pytest.mark.parametrize(
    "kind",
    [
        LOCAL_TIME,
        ["null", {"type": "array", "items": ["null", LOCAL_TIME]}],
        {"type": "record", "name": "r", "fields": [{"name": "n", "type": {"type": "map", "values": LOCAL_TIME}}]},
    ],
)
def test_a_column_of_local_times_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: Any) -> None:
    """It ended with a panic of Rust and its backtrace."""
    timeline = tmp_path / ".hoodie"
    timeline.mkdir()
    (timeline / "hoodie.properties").write_text(
        "hoodie.table.name=orders\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"
        "hoodie.timeline.layout.version=1\n"
    )
    schema = {
        "type": "record",
        "name": "orders",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": kind}],
    }
    commit = {"partitionToWriteStats": {}, "extraMetadata": {"schema": json.dumps(schema, separators=(",", ":"))}}
    (timeline / "20260131120000000.commit").write_text(json.dumps(commit))
    done = CliRunner().invoke(app, ["query", str(tmp_path), "--engine", "native"])
    assert done.exit_code == 3
    assert "has a timestamp_ntz column (b), which hudi-rs 0.5.0 does not read; --engine spark does" in done.stderr
    assert "panicked" not in capfd.readouterr().err
