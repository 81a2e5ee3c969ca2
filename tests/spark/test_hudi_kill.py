"""A driver that is killed within a Hudi commit, for real: its process dies, and the JVM with it."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakestream.errors import InvalidValueError
from lakestream.faults import CRASH_AT, reach
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.spark.session import SessionSettings, build_session
from lakestream_api import Operation, TableType, TableVersion
from quick_spark import quick

BATCHES = 3
ROWS = 50


def settings(folder: str, table_type: TableType, version: TableVersion) -> HudiSettings:
    # Inserts: nothing but the exact handling of batches keeps them from being doubled.
    return HudiSettings(
        path=f"file://{folder}/events",
        table="events",
        record_key=("id",),
        table_type=table_type,
        table_version=version,
        operation=Operation.INSERT,
        partition_by=("part",),
    )


def drive(spark: SparkSession, table: HudiSettings) -> list[str]:
    """Write all batches as an engine would that starts again: look first, write what is not there."""
    sink = HudiSink(spark, table)
    sink.prepare(rows(spark, 0).schema)
    done = []
    for number in range(BATCHES):
        ref = BatchRef(number, "checkpoint")
        found = sink.find(ref)
        if found is None:
            sink.write(ref, rows(spark, number), replay=True)
            reach("sink_committed")
        done.append("written" if found is None else "found")
    sink.close()
    return done


def rows(spark: SparkSession, number: int) -> DataFrame:
    return spark.range(number * ROWS, (number + 1) * ROWS, numPartitions=2).selectExpr("id", "id % 3 as part")


FOUND = {"written": ["found", "written", "written"], "sink_committed": ["found", "found", "written"]}
QUICK_ONES = {
    (TableType.COPY_ON_WRITE, TableVersion.NINE, "written"),
    (TableType.MERGE_ON_READ, TableVersion.SIX, "sink_committed"),
}
"""Both steps, types and versions; the rest is for the slow tests."""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("table_type", "version", "step"),
    [
        pytest.param(*case, marks=() if case in QUICK_ONES else pytest.mark.slow)
        for case in itertools.product(TableType, TableVersion, FOUND)
    ],
)
def test_a_killed_commit_is_all_there_or_not_at_all(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion, step: str
) -> None:
    found = FOUND[step]
    child = subprocess.run(
        [sys.executable, __file__, str(tmp_path), table_type.value, str(version.value)],
        env={**os.environ, **quick(), CRASH_AT: f"{step}:2"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr[-2000:]
    table = settings(str(tmp_path), table_type, version)
    visible = spark.read.format("hudi").load(table.path).count()
    assert visible == ROWS * found.count("found")
    assert drive(spark, table) == found
    ids = [row.id for row in spark.read.format("hudi").load(table.path).select("id").collect()]
    assert sorted(ids) == list(range(BATCHES * ROWS))


def main() -> None:
    folder, table_type, version = sys.argv[1:]
    local_dir = Path(folder) / "spark"
    session = build_session(SessionSettings(app_name="killed", cores=2, hudi=True, local_dir=local_dir))
    drive(session, settings(folder, TableType(table_type), TableVersion(int(version))))
    raise InvalidValueError("nobody killed this process")


if __name__ == "__main__":
    main()
