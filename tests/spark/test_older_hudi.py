"""Tables of version 6 are read right by the Hudi that other engines have: release 0.15, in a Spark of its own. And the
tables that it has made are taken over."""

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


def test_tables_that_hudi_0_15_has_made_are_written_on(spark: SparkSession, tmp_path: Path) -> None:
    in_old_spark("make", tmp_path, *TableType)
    for table_type in TableType:
        made = (tmp_path / table_type / ".hoodie/hoodie.properties").read_text()
        assert "hoodie.table.precombine.field=version" in made
        assert "hoodie.table.ordering.fields" not in made
        write(spark, replace(settings(tmp_path, table_type, table_type, 100), delete_when=None))
    rows = {**FIRST, "a": 6, "b": 9, "c": 2, "h": 1, "old": 3}
    assert {name: found["snapshot"] for name, found in read(tmp_path).items()} == dict.fromkeys(TableType, rows)


def read(folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    """The rows of all tables in a folder, by query."""
    found: dict[str, dict[str, dict[str, int]]] = json.loads(in_old_spark("read", folder).splitlines()[-1])
    return found


def in_old_spark(*arguments: object) -> str:
    """What this file prints that runs as a program."""
    child = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False
    )
    assert child.returncode == 0, child.stderr[-3000:]
    return child.stdout


def main() -> None:
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
    match sys.argv[1:]:
        case ["read", folder]:
            sys.stdout.write(json.dumps(read_all(old, Path(folder))))
        case ["make", folder, *table_types]:
            for table_type in table_types:
                make(old, Path(folder), table_type)


def read_all(old: SparkSession, folder: Path) -> dict[str, dict[str, dict[str, int]]]:
    def rows(table: Path, query: str) -> dict[str, int]:
        frame = old.read.format("hudi").option("hoodie.datasource.query.type", query).load(str(table))
        return {row[0]: row.version for row in frame.select("_hoodie_record_key", "version").collect()}

    tables = sorted(path.parent for path in folder.glob("*/.hoodie"))
    return {table.name: {query: rows(table, query) for query in ("snapshot", "read_optimized")} for table in tables}


def make(old: SparkSession, folder: Path, table_type: str) -> None:
    rows = [("a", 3, "u", "2026-01-31"), ("old", 3, "u", "2026-01-31")]
    options = {
        "hoodie.table.name": table_type,
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "version",
        "hoodie.datasource.write.partitionpath.field": "dt",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.DefaultHoodieRecordPayload",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.metadata.enable": "false",
    }
    frame = old.createDataFrame(rows, "id string, version long, op string, dt string")
    frame.write.format("hudi").options(**options).save(str(folder / table_type))


if __name__ == "__main__":
    main()
