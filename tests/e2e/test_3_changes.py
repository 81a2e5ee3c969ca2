"""Changes of the spec while events flow: what can be taken up in place restarts nothing, the rest is drained first.

Meanwhile the stream is read once more from its beginning: a request outlives the drivers that work on it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cluster.commands import Kubectl, Object
from cluster.installation import LAKE
from cluster.lake import Lake
from cluster.load import start_load, stop_load
from cluster.stream import STARTS, WRITERS, Stream
from cluster.waiting import eventually, steadily
from lakestream_api import ConditionType, Phase
from lakestream_loadgen.audit import read_json_lake

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module", autouse=True)
def events(orders: Stream, lake: Lake) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    start_load(LAKE, lake.ledger, 200, seed=3)


def drivers(orders: Stream) -> dict[str, str]:
    return {writer: orders.driver_uid(writer) for writer in WRITERS}


def generations(orders: Stream) -> list[tuple[str, int]]:
    found = [orders.application(writer) for writer in WRITERS]
    return [(item["metadata"]["uid"], item["metadata"]["generation"]) for item in found if item]


@pytest.fixture(scope="module", autouse=True)
def asked_again(orders: Stream, lake: Lake, events: None, s3: dict[str, str]) -> int:
    """A span is asked for, from before the first record up to now, within the hour for which the table remembers
    deletes; how many records there are in it, at least."""
    records = read_json_lake(lake.json).num_rows
    told = orders.command("hudi", "backfill", "span", "--from", "50 minutes ago")
    assert told.startswith("backfill 1: what arrived in orders from "), told
    return records


@pytest.fixture(scope="module")
def bad(kubectl: Kubectl, example: Object) -> Iterator[Stream]:
    """A stream whose schema cannot be read."""
    spec = {**example["spec"], "schema": "order_id strin", "checkpoint": "s3a://lake/_checkpoints/bad"}
    spec["writers"] = [{"name": "json", "json": {"path": "s3a://lake/bad_json"}}]
    del spec["transform"]
    kubectl.apply({**example, "metadata": {"name": "bad"}, "spec": spec})
    yield Stream(kubectl, "bad")
    kubectl.delete("lakestream", "bad")


def test_a_change_of_scaling_restarts_nothing(orders: Stream) -> None:
    before = drivers(orders), generations(orders)
    orders.change({"scaling": {"maxLag": "45s", "catchUp": "3m"}})
    orders.wait_for(
        "the change is seen", lambda status: status.observed_generation == orders.object["metadata"]["generation"]
    )
    steadily(
        "the same drivers and applications",
        lambda: (drivers(orders), generations(orders)) == before,
        10,
        lambda: (drivers(orders), generations(orders)),
    )


def test_a_change_of_the_trigger_is_drained_and_goes_on(orders: Stream) -> None:
    before, batches = drivers(orders), {writer: orders.writer(writer).last_batch or 0 for writer in WRITERS}
    restarts = {writer: orders.writer(writer).restarts for writer in WRITERS}
    orders.change({"trigger": {"interval": "2s"}})
    for writer in WRITERS:
        orders.wait_for_another_driver(writer, before[writer])
    orders.wait_for_condition(ConditionType.READY, "True")
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    for writer in WRITERS:
        assert (orders.writer(writer).last_batch or 0) > batches[writer]
        assert orders.writer(writer).restarts <= restarts[writer], "a change counts as a failure"
        report = orders.report(writer)
        assert report is not None
        assert report.batches[-1].trigger_interval.total_seconds() == 2


@pytest.mark.usefixtures("bad")  # the next test's, which starts meanwhile
def test_suspended_and_resumed(orders: Stream, kubectl: Kubectl) -> None:
    orders.change({"suspend": True})
    orders.wait_for("suspended", lambda status: status.phase is Phase.SUSPENDED)
    assert [orders.driver(writer) for writer in WRITERS] == [None, None] or all(
        pod["status"]["phase"] == "Succeeded" for pod in map(orders.driver, WRITERS) if pod
    )
    orders.change({"suspend": False})
    orders.wait_for_condition(ConditionType.READY, "True")
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)


def test_an_unreadable_schema_is_a_condition_and_not_a_crash_loop(bad: Stream) -> None:
    condition = bad.wait_for_condition(ConditionType.SPEC_VALID, "False")
    assert "spec.schema" in condition.message
    bad.wait_for_condition(ConditionType.STALLED, "True")
    pod = bad.driver("json")
    uid = pod["metadata"]["uid"] if pod else None
    steadily(
        "it is not started again",
        lambda: (bad.driver("json") or {"metadata": {"uid": uid}})["metadata"]["uid"] == uid,
        10,
        lambda: bad.driver("json"),
    )


def test_the_stream_was_read_once_more_beside_all_that(orders: Stream, asked_again: int) -> None:
    def status() -> str:
        return orders.command("hudi", "backfill", "status")

    def records() -> int | None:
        done = re.search(r"^backfill 1 is done: .*, ([\d,]+) records$", status(), re.M)
        return int(done[1].replace(",", "")) if done else None

    read = eventually("the span is read", records, STARTS, status)
    assert read >= asked_again > 1000


def test_nothing_was_lost_or_doubled(orders: Stream, lake: Lake, spark: SparkSession, scratch: Path) -> None:
    stop_load(LAKE)
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))
