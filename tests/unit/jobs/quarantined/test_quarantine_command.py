"""`lakestream quarantine`: the unusable records of committed batches."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from lakestream.main import app
from lakestream.model import BatchCommit, FileEntry
from lakestream.sinks.quarantine import COLUMNS
from lakestream.testing.logs import EPOCH_TIME, log_at, plan_of

DOCUMENT = """
apiVersion: lakestream.dev/v1alpha1
kind: LakeStream
metadata: {{name: orders}}
spec:
  source: {{kinesis: {{stream: orders, region: eu-west-1}}}}
  schema: order_id string
  writers:
    - name: json
      json: {{path: {lake}/json}}
  checkpoint: {lake}/checkpoint
"""
TYPES = {"data": pa.binary(), "sub_sequence": pa.int64(), "arrival": pa.timestamp("us", tz="UTC")}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in COLUMNS])


class Kept:
    """The quarantine of a writer, without a driver."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        (lake / "orders.yaml").write_text(DOCUMENT.format(lake=lake))
        (lake / "json").mkdir()
        self.log = log_at(lake / "checkpoint" / "json")

    def batch(self, number: int, records: Sequence[tuple[bytes, str]], *, commit: bool = True) -> None:
        plan = plan_of(number, self.log.epoch)
        self.log.put_plan(plan)
        arrival = EPOCH_TIME + timedelta(minutes=number)
        rows = [(data, "key", str(i), 0, "shardId-000000000000", arrival, why) for i, (data, why) in enumerate(records)]
        name = f"b{number:012d}-00000-5e0c11aa.parquet"
        path = self.lake / "checkpoint" / "json" / "quarantine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=SCHEMA)
        pq.write_table(table, path)
        if commit:
            rejects = (FileEntry(name, len(rows), path.stat().st_size, ""),)
            done = BatchCommit.of(plan, epoch=self.log.epoch, committed_at=plan.planned_at, rejects=rejects)
            self.log.put_commit(done)

    def ask(self, command: str, *arguments: str) -> Result:
        done = CliRunner().invoke(
            app, ["quarantine", command, "-f", f"{self.lake}/orders.yaml", "--writer", "json", *arguments]
        )
        assert done.exit_code == 0, done.stderr
        return done


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Three records of two batches; those of a third batch are not committed."""
    kept = Kept(tmp_path)
    kept.batch(0, [(b'{"id":', "not JSON"), (b"\xff\xfe{", "not UTF-8")])
    kept.batch(1, [(b'{"name": "\xc3\xbc"}', "missing: order_id"), (b"{", "not JSON")])
    kept.batch(2, [(b"", "empty")], commit=False)
    return kept


def test_records_are_counted_by_reason(kept: Kept) -> None:
    head, *lines = kept.ask("list").stdout.splitlines()
    assert head.split() == ["records", "batches", "arrived", "reason"]
    assert [" ".join(line.split()) for line in lines] == [
        "2 0–1 2026-01-31 12:00:00 UTC – 2026-01-31 12:01:00 UTC not JSON",
        "1 1 2026-01-31 12:01:00 UTC – 2026-01-31 12:01:00 UTC missing: order_id",
        "1 0 2026-01-31 12:00:00 UTC – 2026-01-31 12:00:00 UTC not UTF-8",
    ]


def test_records_are_shown_as_text(kept: Kept) -> None:
    rows = [orjson.loads(line) for line in kept.ask("show", "-o", "jsonl").stdout.splitlines()]
    assert [(row["batch"], row["reason"], row["data"]) for row in rows] == [
        (0, "not JSON", '{"id":'),
        (0, "not UTF-8", "\\xff\\xfe{"),
        (1, "missing: order_id", '{"name": "ü"}'),
        (1, "not JSON", "{"),
    ]
    assert rows[3]["sequence_number"] == "1"


def test_records_are_chosen_by_the_beginning_of_their_reason(kept: Kept) -> None:
    done = kept.ask("show", "--reason", "not", "--limit", "2", "-o", "csv")
    assert done.stdout.count("\n") == 3
    assert "missing" not in done.stdout
    assert "2 records (there may be more: --limit)" in done.stderr


def test_other_engines_get_the_bytes_as_they_came(kept: Kept) -> None:
    rows = pq.read_table(io.BytesIO(kept.ask("show", "-o", "parquet").stdout_bytes))
    assert rows["data"].to_pylist() == [b'{"id":', b"\xff\xfe{", b'{"name": "\xc3\xbc"}', b"{"]


def test_an_empty_quarantine_is_told(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.ask("list").stdout == "the quarantine is empty\n"
    assert "0 records" in kept.ask("show").stderr
