"""The document's SQL fails at records: they go to quarantine, and the stream goes on."""

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

SCHEMA = "order_id string, version long, op string, created_at timestamp, position int"
TRANSFORM = (
    "SELECT *, element_at(array(10, 20), position) AS picked, date_format(created_at, 'yyyy-MM-dd') AS dt FROM events"
)


def put(lab: Lab, name: str) -> None:
    """Four records; position 0 is none of an array's, and Spark fails at it."""
    event = {"order_id": name, "op": "c", "created_at": "2026-01-31T12:00:00Z"}
    records = [{**event, "version": version, "position": position} for version, position in enumerate((1, 0, 2, 0))]
    entries = [{"Data": json.dumps(record).encode(), "PartitionKey": name} for record in records]
    lab.stream.server.client().put_records(StreamName=lab.stream.name, Records=entries)


def quarantined(lab: Lab) -> Counter[tuple[str, int]]:
    found = read_quarantine(f"{lab.writer.checkpoint}/quarantine")["data"].to_pylist()
    return Counter((record["order_id"], record["version"]) for record in map(json.loads, found))


@pytest.mark.parametrize("table", [Table.JSON, Table.MOR_INSERT])
def test_the_records_at_which_it_fails_are_left_out(labs: Labs, spark: SparkSession, table: Table) -> None:
    """From a batch that is killed, and from one that is not."""
    lab = labs.make(table)
    lab.document["spec"] |= {"schema": SCHEMA, "transform": TRANSFORM, "quarantine": {"maxFraction": 0.5}}
    put(lab, "first")
    # Begun, left behind, begun anew without them, and killed at that.
    killed = lab.start(crash_at="written")
    assert killed.wait() == -signal.SIGKILL, killed.tail()
    put(lab, "second")
    driver = lab.start(until_caught_up=True)
    assert driver.wait() == 0, driver.tail()
    names = ("first", "second")
    assert quarantined(lab) == Counter((name, version) for name in names for version in (1, 3)), lab.evidence()
    if table is Table.JSON:
        rows = read_json_lake(lab.writer.path).to_pylist()
    else:
        rows = [row.asDict() for row in spark.read.format("hudi").load(uri_of(lab.writer.path)).collect()]
        assert all(row["picked"] == 10 * row["position"] for row in rows)
    assert sorted((row["order_id"], row["version"]) for row in rows) == [(name, at) for name in names for at in (0, 2)]
    lab.close()
