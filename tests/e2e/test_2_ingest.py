"""From `kubectl apply` to tables that can be queried."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession

from cluster.commands import CommandError, Kubectl, Object
from cluster.installation import IMAGES, LAKE, MARK, ROOT, SYSTEM
from cluster.lake import Lake
from cluster.load import RELEASE, load
from cluster.notes import commands_of, typed
from cluster.stream import STARTS, WRITERS, Stream
from cluster.waiting import eventually
from lakestream_api import ConditionType, Phase
from lakestream_loadgen.audit import fold, read_json_lake

QUERY = ROOT / "examples" / "queries" / "orders-by-status.yaml"
ENDS = ("COMPLETED", "FAILED", "SUBMISSION_FAILED")

pytestmark = pytest.mark.timeout(1200)


def state_of(application: Object | None) -> str:
    """What the Spark Operator says of it; empty: nothing yet."""
    state: str = (application or {}).get("status", {}).get("applicationState", {}).get("state", "")
    return state


def marks(orders: Stream, writer: str) -> set[str | None]:
    """Of a writer's pods."""
    driver = orders.driver(writer)
    pods = [*([driver] if driver else []), *orders.executors(writer)]
    return {pod["metadata"].get("annotations", {}).get(MARK) for pod in pods}


def test_both_drivers_run(orders: Stream, kubectl: Kubectl) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    assert orders.status.phase is Phase.RUNNING
    for writer in WRITERS:
        # That is the Spark Operator's word, which may come after the driver's own.
        eventually(
            f"the application of writer {writer} runs",
            lambda writer=writer: state_of(orders.application(writer)) == "RUNNING",  # type: ignore[misc]
            STARTS,
            lambda writer=writer: orders.application(writer),  # type: ignore[misc]
        )
        eventually(
            f"driver and executors of writer {writer} have what the chart's values give to all",
            lambda writer=writer: marks(orders, writer) == {"driver", "executor"},  # type: ignore[misc]
            STARTS,
            lambda writer=writer: marks(orders, writer),  # type: ignore[misc]
        )
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
        (to_audit,) = (line for line in commands_of(RELEASE, LAKE) if " audit --ledger " in line)
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))
    assert "audit passed" in typed(to_audit)


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


def test_a_query_as_an_application_writes_what_the_events_come_to(
    orders: Stream, lake: Lake, spark: SparkSession, kubectl: Kubectl
) -> None:
    *around, application = yaml.safe_load_all(QUERY.read_text("utf-8"))
    application["spec"]["image"] = IMAGES.reference("spark")
    for document in (*around, application):
        kubectl.apply(document)
    name = application["metadata"]["name"]

    def ended() -> str | None:
        state = state_of(kubectl.get("sparkapplication", name))
        return state if state in ENDS else None

    state = eventually("the query ends", ended, STARTS, lambda: kubectl.get("sparkapplication", name))
    log = kubectl.run("logs", f"{name}-driver")
    assert state == "COMPLETED", log
    done = kubectl.get("sparkapplication", name)
    assert done is not None
    assert done["status"]["executorState"], "an executor has done the work"
    told = re.search(
        r"^(\d+) rows of orders_hudi .* written to (s3a://lake/reports/orders_by_status/[\d-]+) in ", log, re.M
    )
    assert told, log
    counts: dict[tuple[str, str], int] = defaultdict(int)
    amounts: dict[tuple[str, str], float] = defaultdict(float)
    for row in fold(read_json_lake(lake.json)).to_pylist():
        key = row["created_at"] and row["created_at"][:10], row["status"]
        counts[key] += 1
        amounts[key] += row["amount"] or 0
    found = {(row.dt, row.status): row for row in spark.read.parquet(told[2]).collect()}
    assert {key: row.orders for key, row in found.items()} == counts
    assert {key: row.amount or 0 for key, row in found.items()} == pytest.approx(amounts)
    assert int(told[1]) == len(counts) > 1
    again = ("query", lake.hudi, "--engine", "spark", "--to", told[2])
    with pytest.raises(CommandError, match=f"{told[2]} is not empty"):
        kubectl.run("exec", orders.names("hudi").driver_pod, "--", "lakestream", *again)


def test_what_a_table_is_can_be_asked_in_a_drivers_pod(orders: Stream) -> None:
    assert "orders_hudi  s3a://lake/orders_hudi\nHudi " in orders.command("hudi", "table")
    assert "nobody has asked" in orders.command("hudi", "backfill", "status")


def test_all_that_there_is_can_be_checked_by_a_release(orders: Stream, kubectl: Kubectl) -> None:
    """As before an upgrade to it (docs/operating.md)."""
    validate = ("lakestream", "validate", "-f", "-")
    there = kubectl.run("get", "lks", "-A", "-o", "yaml")
    told = kubectl.run("exec", "-i", orders.names("json").driver_pod, "--", *validate, stdin=there)
    assert f"LakeStream {LAKE}/orders is valid; writers: hudi " in told


def test_what_the_notes_say_first_can_be_typed() -> None:
    test, explain, *_ = commands_of("lakestream", SYSTEM)
    assert "Succeeded" in typed(test)
    assert "LakeStream" in typed(explain)
