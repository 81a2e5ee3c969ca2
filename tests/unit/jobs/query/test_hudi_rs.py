"""What hudi-rs is not asked for, since it would fail in a way of its own; and what it fails with."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from lakestream.main import app
from lakestream.query.errors import FilesGoneError, UnreadableError
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.hudi_rs import HudiRs
from lakestream.query.question import Asked, Snapshot
from lakestream.query.spans import span_of
from lakestream.storage import LakePath, S3Settings, StoreSettings

PROPERTIES = (
    "hoodie.table.name=orders\nhoodie.table.type=COPY_ON_WRITE\nhoodie.table.version=6\n"
    "hoodie.timeline.layout.version=1\n"
)
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
    (timeline / "hoodie.properties").write_text(PROPERTIES)
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


class Table:
    """Of one row, which each commit writes anew."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._timeline = folder / ".hoodie"
        self._timeline.mkdir()
        (self._timeline / "hoodie.properties").write_text(PROPERTIES)

    def file(self, instant: str) -> Path:
        return self._folder / f"f0_0-0-0_{instant}.parquet"

    def commit(self, instant: str) -> None:
        own = {f"_hoodie_{name}": [""] for name in ("commit_time", "commit_seqno", "record_key", "partition_path")}
        pq.write_table(pa.table({**own, "_hoodie_file_name": [""], "a": [1]}), self.file(instant))
        schema = {"type": "record", "name": "orders", "fields": [{"name": "a", "type": "long"}]}
        stat = {"fileId": "f0", "path": self.file(instant).name, "numWrites": 1}
        commit = {"partitionToWriteStats": {"": [stat]}, "extraMetadata": {"schema": json.dumps(schema)}}
        (self._timeline / f"{instant}.commit").write_text(json.dumps(commit))

    def clean(self, instant: str, keeps_from: str) -> None:
        plan = {"earliestInstantToRetain": {"timestamp": keeps_from}}
        (self._timeline / f"{instant}.clean.requested").write_text(json.dumps(plan))

    def reader(self) -> HudiRs:
        folder = HudiFolder.look(StoreSettings(LakePath.parse(str(self._folder)), S3Settings("")))
        now = datetime.now(UTC)
        return HudiRs(folder, span_of(Snapshot(), folder.history, now), Asked(Snapshot(), None, None, now))


def test_a_file_that_was_cleaned_under_a_query_is_to_be_asked_for_again(tmp_path: Path) -> None:
    """It was an error of the table, for which Spark was asked; one that nobody has cleaned is."""
    first, second, third = (f"2026013112000{second}000" for second in range(3))
    table = Table(tmp_path)
    table.commit(first)
    reader = table.reader()
    table.commit(second)
    table.file(first).unlink()
    with pytest.raises(UnreadableError, match=r"hudi-rs .* cannot read the table"):
        reader.read(["a"]).read_all()
    table.clean(third, keeps_from=second)
    with pytest.raises(FilesGoneError, match=rf"files of {first} .* were removed .* Ask again"):
        reader.read(["a"]).read_all()
    assert table.reader().read(["a"]).read_all().to_pylist() == [{"a": 1}]


def test_rows_are_counted_of_whose_columns_none_is_named(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.commit("20260131120000000")
    with table.reader().answered("SELECT count(*) AS n FROM lake", None) as rows:
        assert rows.read_all().to_pylist() == [{"n": 1}]
