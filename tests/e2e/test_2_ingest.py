"""From `kubectl apply` to tables that can be queried."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cluster.commands import Kubectl, run
from cluster.installation import LAKE, SYSTEM
from cluster.lake import Lake
from cluster.load import load
from cluster.stream import WRITERS, Stream
from lakestream_api import ConditionType, Phase

pytestmark = pytest.mark.timeout(1200)


def test_both_drivers_run(orders: Stream, kubectl: Kubectl) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    assert orders.status.phase is Phase.RUNNING
    for writer in WRITERS:
        application = orders.application(writer)
        assert application is not None
        assert application["status"]["applicationState"]["state"] == "RUNNING"
    header, row = kubectl.run("get", "lks", "orders").splitlines()
    assert header.split()[:3] == ["NAME", "PHASE", "LAG"]
    assert row.split()[:2] == ["orders", "Running"]


def test_what_locust_was_told_is_written_is_in_both_tables_once(
    orders: Stream, lake: Lake, spark: SparkSession, scratch: Path
) -> None:
    with load(LAKE, lake.ledger, 500):
        orders.wait_for(
            "both writers read events",
            lambda status: all((writer.records_per_second or 0) > 0 for writer in status.writers),
        )
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))


def test_queries_answer(lake: Lake, spark: SparkSession) -> None:
    lake.table(spark).createOrReplaceTempView("orders")
    commits = [row[0] for row in spark.sql("SELECT DISTINCT _hoodie_commit_time FROM orders ORDER BY 1").collect()]
    assert len(commits) > 1
    by_status = spark.sql("SELECT status, count(*) AS orders FROM orders GROUP BY status").collect()
    assert sum(row["orders"] for row in by_status) == lake.table(spark).count()
    since = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", commits[-2])
        .load(lake.hudi)
    )
    assert 0 < since.count() < lake.table(spark).count()
    before = spark.read.format("hudi").option("as.of.instant", commits[0]).load(lake.hudi)
    assert 0 < before.count() < lake.table(spark).count()


def test_the_release_tests_itself() -> None:
    run("helm", "test", "lakestream", "-n", SYSTEM, "--timeout", "3m", seconds=200)
