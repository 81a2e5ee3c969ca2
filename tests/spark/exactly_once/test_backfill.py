"""Files are taken into a table while its stream flows, and drivers are killed meanwhile: each record is there once."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from datetime import datetime
from io import BytesIO
from unittest.mock import patch

import obstore
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from lab.chain import Lab, Labs, Table
from lab.lake import commits_of, plans_of
from lab.links import VISIBLE, AtStep
from lab.stream import MAX_RECORDS_PER_BATCH
from lab.verdict import require_exactly_once
from lakestream.backfill import cut
from lakestream.faults import STEPS
from lakestream.main import app
from lakestream.storage import LakePath, S3Settings, StoreSettings, open_store
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.records import Record

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]

_KILLS = [AtStep(step, 1 + number % 2) for number, step in enumerate(STEPS)]
"""The second time it is not the batch that the kill before has left."""


def backfill(lab: Lab, *arguments: str) -> str:
    """What `lakestream backfill` says."""
    lab.save()
    with lab.writer.environment(), patch.object(cut, "_PART_BYTES", 10_000):
        done = CliRunner().invoke(app, ["backfill", *arguments, "-f", str(lab.path), "--writer", lab.writer.name])
    return done.output.strip()


def put(lab: Lab, name: str, content: bytes) -> tuple[str, datetime]:
    """A file beside the lake; its path, and when it was written."""
    path = LakePath.parse(f"{lab.writer.path}-incoming/{name}")
    with lab.writer.environment():
        store = open_store(StoreSettings(path, S3Settings("us-east-1", lab.writer.s3)).root)
        obstore.put(store, path.key, content)
        return str(path), obstore.head(store, path.key)["last_modified"]


def put_lines(lab: Lab, name: str, records: list[Record]) -> None:
    content = b"".join(record.data + b"\n" for record in records)
    path, written = put(lab, name, gzip.compress(content) if name.endswith(".gz") else content)
    at = 0
    for record in records:
        lab.stream.expect((path, at, 0), record.data, written)
        at += len(record.data) + 1


def put_parquet(lab: Lab, name: str, records: list[Record]) -> None:
    good = [record.data for record in records if not record.malformed]
    rows = [orjson.loads(data) for data in good]
    for row in rows:
        row |= {field: datetime.fromisoformat(row[field]) for field in ("created_at", "updated_at")}
    pq.write_table(pa.Table.from_pylist(rows, schema=EVENT_SCHEMA), buffer := BytesIO(), row_group_size=25)
    path, written = put(lab, name, buffer.getvalue())
    for number, data in enumerate(good):
        lab.stream.expect((path, number, 0), data, written)


def put_files(lab: Lab) -> str:
    """Orders that the stream has as well, earlier and later versions of them, and others; their folder."""
    for number in range(3):
        put_lines(lab, f"dt=x/overlapping-{number}.json", lab.stream.lines(100))
        lab.stream.put(1)
    damaged_first = sorted(lab.stream.lines(50), key=lambda record: not record.malformed)
    put_lines(lab, "overlapping.json.gz", damaged_first)
    put_parquet(lab, "overlapping.parquet", lab.stream.lines(80))
    put_lines(lab, "disjoint.json", lab.stream.lines(150, prefix="old"))
    path, _ = put(lab, "empty.json", b"")
    return path.rpartition("/")[0]


def sizes(lab: Lab) -> list[int]:
    """Records of each committed batch of a backfill."""
    with lab.writer.environment():
        return [commit.records for commit in commits_of(lab.writer) if commit.backfills]


def run(lab: Lab, spark: SparkSession, kills: Sequence[AtStep] = _KILLS) -> None:
    lab.stream.put(2)
    lab.catch_up(spark)
    folder = put_files(lab)
    assert backfill(lab, folder, "--despite-deletes").startswith("backfill 1: about ")
    assert "backfill 1 has come to part 0 of" in backfill(lab, "status")
    for kill in kills:
        kill.carry_out(lab)
        with lab.writer.environment():
            backfills = plans_of(lab.writer)[-1].backfills
        lab.story.append(f"{lab.drivers[-1].name}: {kill}; {'of the backfill' if backfills else 'of the stream'}")
    small = sizes(lab)
    lab.document["spec"]["trigger"]["maxRecordsPerBatch"] = most = 3 * MAX_RECORDS_PER_BATCH
    lab.stream.put(2)
    lab.catch_up(spark)
    assert backfill(lab, "status") == "backfill 1 is done"
    taken = sizes(lab)
    assert len(taken) > 2, "several batches are one backfill"
    assert max(small, default=0) <= MAX_RECORDS_PER_BATCH + 20, "of which the request has estimates"
    assert max(taken) <= most + 20
    require_exactly_once(lab, spark)


# The one chain of a copy-on-write table that is upserted. Of the other steps, the reader's is in
# test_quarantine_replay.py; those of the engine and the log, which are the same for all requests, are in test_span.py.
def test_what_is_backfilled_is_in_the_table_once_whenever_a_driver_is_killed(
    labs: Labs, spark_on_s3: SparkSession
) -> None:
    lab = labs.make(Table.COW)
    with lab.explained():
        run(lab, spark_on_s3, [kill for kill in _KILLS if kill.step in VISIBLE])


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "s3"])
@pytest.mark.parametrize("table", Table)
def test_the_same_for_every_sink(table: Table, place: str, labs: Labs, spark_on_s3: SparkSession) -> None:
    run(labs.make(table, place), spark_on_s3)
