"""The document is edited between a kill and the next start: what was begun is finished as it was begun."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest
from pyspark.sql import SparkSession

from lab.chain import Lab, Labs, Table
from lab.lake import uri_of
from lakestream_loadgen.audit import read_json_lake, read_quarantine

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

STRICT = "order_id string, version long, op string, created_at timestamp, note string NOT NULL"
RELAXED = STRICT.replace(" NOT NULL", "")
SELECT = "date_format(created_at, 'yyyy-MM-dd') AS dt FROM events"


def put(lab: Lab, name: str) -> None:
    """Four records, two of which lack the note."""
    event = {"order_id": name, "op": "c", "created_at": "2026-01-31T12:00:00Z"}
    notes = [{}, {"note": "one"}, {}, {"note": "two"}]
    records = [{**event, "version": version, **note} for version, note in enumerate(notes)]
    entries = [{"Data": json.dumps(record).encode(), "PartitionKey": name} for record in records]
    lab.stream.server.client().put_records(StreamName=lab.stream.name, Records=entries)


def edit(lab: Lab, schema: str, transform: str = f"SELECT *, {SELECT}", versions: str = "") -> None:
    """`versions`: a digit for each that is taken; all of them, if there is none."""
    filters = [{"path": "version", "values": list(versions)}] if versions else []
    lab.document["spec"] |= {"schema": schema, "transform": transform, "filter": filters}


def crash(lab: Lab, step: str) -> None:
    driver = lab.start(crash_at=step)
    assert driver.wait() == -signal.SIGKILL, driver.tail()


def quarantined(lab: Lab) -> Counter[tuple[str, int]]:
    found = read_quarantine(f"{lab.writer.checkpoint}/quarantine")["data"].to_pylist()
    return Counter((record["order_id"], record["version"]) for record in map(json.loads, found))


def test_a_hudi_table_goes_through_three_definitions(labs: Labs, spark: SparkSession) -> None:
    lab = labs.make(Table.MOR_INSERT)
    # Small files are merged behind each batch, also while drivers are killed.
    lab.document["spec"]["writers"][0]["hudi"]["compaction"] = {"everyCommits": 1}
    edit(lab, STRICT)
    put(lab, "first")
    crash(lab, "sink_committed")
    # The first batch is visible, without our commit; the second one is rolled back.
    edit(lab, RELAXED, versions="012")
    put(lab, "second")
    crash(lab, "written")
    # It is written anew without the column that the third has, and of what the third takes without what it left out.
    edit(lab, STRICT, f"SELECT *, upper(op) AS kind, {SELECT}")
    put(lab, "third")
    lab.catch_up(spark)
    assert quarantined(lab) == Counter([("first", 0), ("first", 2), ("third", 0), ("third", 2)]), lab.evidence()
    table = spark.read.format("hudi").load(uri_of(lab.writer.path))
    assert sorted(tuple(row) for row in table.select("order_id", "version", "kind").collect()) == [
        ("first", 1, None),
        ("first", 3, None),
        *(("second", version, None) for version in range(3)),
        ("third", 1, "C"),
        ("third", 3, "C"),
    ]
    lab.close()


def test_json_that_was_begun_is_finished_as_it_was_begun(labs: Labs, spark: SparkSession) -> None:
    lab = labs.make(Table.JSON)
    edit(lab, STRICT)
    put(lab, "first")
    crash(lab, "written")
    edit(lab, RELAXED)
    put(lab, "second")
    lab.catch_up(spark)
    assert quarantined(lab) == Counter([("first", 0), ("first", 2)]), lab.evidence()
    rows = read_json_lake(lab.writer.path).select(["order_id", "version"]).to_pylist()
    assert sorted((row["order_id"], row["version"]) for row in rows) == [
        ("first", 1),
        ("first", 3),
        *(("second", version) for version in range(4)),
    ]
    lab.close()
