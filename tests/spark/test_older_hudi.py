"""Tables of version 6 are read right by the Hudi that other engines have: release 0.15, in a Spark of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream_api import TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:0.15.0"
BATCHES = [
    [("a", 5, "u"), ("b", 2, "u"), ("c", 1, "u"), ("f", 1, "u"), ("g", 7, "u")],
    # Late, newest, deleted; a late delete.
    [("a", 1, "u"), ("b", 9, "u"), ("c", 2, "d"), ("g", 3, "d")],
    [("a", 6, "u"), ("b", 4, "u"), ("c", 1, "u"), ("h", 1, "u")],
]
ROWS = {"a": 6, "b": 9, "f": 1, "g": 7, "h": 1}
FIRST = {"a": 5, "b": 2, "c": 1, "f": 1, "g": 7}


def settings(folder: Path, name: str, table_type: TableType, compact_every: int) -> HudiSettings:
    return HudiSettings(
        path=f"file://{folder}/{name}",
        table=name,
        record_key=("id",),
        ordering_field="version",
        table_type=table_type,
        table_version=TableVersion.SIX,
        partition_by=("dt",),
        delete_when="op = 'd'",
        buckets=2,
        compact_every=compact_every,
    )


def write(spark: SparkSession, table: HudiSettings) -> None:
    columns = "id string, version long, op string, dt string"
    sink = HudiSink(spark, table)
    sink.prepare(spark.createDataFrame([], columns).schema)
    for batch, orders in enumerate(BATCHES):
        rows = spark.createDataFrame([(*order, "2026-01-31") for order in orders], columns)
        sink.write(BatchRef(batch, "checkpoint"), rows.coalesce(1), replay=False)
        sink.finish_services()
    sink.close()


def test_hudi_0_15_reads_the_rows_that_are_there(spark: SparkSession, tmp_path: Path) -> None:
    copied = settings(tmp_path, "copied", TableType.COPY_ON_WRITE, 100)
    merged = replace(copied, path=f"file://{tmp_path}/merged", table_type=TableType.MERGE_ON_READ)
    compacted = replace(merged, path=f"file://{tmp_path}/compacted", compact_every=1)
    for table in (copied, merged, compacted):
        write(spark, table)
    found = read(tmp_path)
    assert found == {
        "copied": {"snapshot": ROWS, "read_optimized": ROWS},
        # Until a compaction, a delete in a log file takes away the row of the base file, also one that is newer.
        "merged": {
            "snapshot": {key: version for key, version in ROWS.items() if key != "g"},
            "read_optimized": FIRST,
        },
        "compacted": {"snapshot": ROWS, "read_optimized": ROWS},
    }


def read(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """The rows of all tables in a folder, by query."""
    child = subprocess.run(
        [sys.executable, __file__, str(folder)], capture_output=True, text=True, timeout=600, check=False
    )
    assert child.returncode == 0, child.stderr[-3000:]
    found: dict[str, dict[str, dict[str, int]]] = json.loads(child.stdout.splitlines()[-1])
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    old = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars.packages", BUNDLE)
        # Spark has them.
        .config("spark.jars.excludes", "org.slf4j:slf4j-api,org.apache.hive:hive-storage-api")
        .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )

    def rows(table: Path, query: str) -> dict[str, int]:
        frame = old.read.format("hudi").option("hoodie.datasource.query.type", query).load(str(table))
        return {row[0]: row.version for row in frame.select("_hoodie_record_key", "version").collect()}

    tables = sorted(path.parent for path in folder.glob("*/.hoodie"))
    found = {table.name: {query: rows(table, query) for query in ("snapshot", "read_optimized")} for table in tables}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main()
