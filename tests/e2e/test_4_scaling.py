"""Executors follow the lag, and shards the load, on the same driver.

Before the kills: what they leave is told as `Degraded` for ten minutes, and a node that is too full must not be.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cluster import nodes
from cluster.commands import Kubectl, Object
from cluster.installation import LAKE, SYSTEM
from cluster.lake import Lake
from cluster.load import load, start_load, stop_load
from cluster.stream import STARTS, WRITERS, Stream
from cluster.waiting import eventually
from lakestream_api import ConditionType, Phase
from lakestream_api.names import CONTROL_KEY

pytestmark = pytest.mark.timeout(1800)

QUOTA: Object = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "no-more-pods"},
    "spec": {"hard": {"pods": "0"}},
}


def identity(orders: Stream, writer: str) -> tuple[Any, ...]:
    """Changes if the driver or its SparkApplication is another one, or is started again."""
    driver, application = orders.driver(writer), orders.application(writer)
    assert driver is not None
    assert application is not None
    metadata = application["metadata"]
    restarts = driver["status"]["containerStatuses"][0]["restartCount"]
    return driver["metadata"]["uid"], restarts, metadata["uid"], metadata["generation"]


def wait_for_executors(orders: Stream, writer: str, count: int) -> None:
    eventually(
        f"writer {writer} has {count} executors",
        lambda: len(orders.executors(writer)) == count and orders.writer(writer).executors.now == count,
        STARTS,
        lambda: orders.object["status"],
    )


def wait_for_shards(orders: Stream, writer: str, count: int) -> None:
    def reads_them() -> bool:
        report = orders.report(writer)
        return report is not None and bool(report.batches) and report.batches[-1].open_shards == count

    eventually(f"writer {writer} reads {count} shards", reads_them, STARTS, lambda: orders.report(writer))


@contextmanager
def executors_set(orders: Stream, count: int) -> Iterator[None]:
    """While entered, the spec asks for this many of each writer; then for one again, also of a test that fails: the
    next one begins with that.
    """
    orders.change({"scaling": {"minExecutors": 1, "maxExecutors": 2, "executors": count}})
    try:
        yield
    finally:
        orders.change({"scaling": {"executors": 1}})
    for writer in WRITERS:
        wait_for_executors(orders, writer, 1)


@pytest.fixture(scope="module")
def resharding(orders: Stream, lake: Lake) -> dict[str, tuple[Any, ...]]:
    """Events flow, and their stream is to have more shards; what must not change of the writers meanwhile."""
    orders.wait_for_condition(ConditionType.READY, "True")
    before = {writer: identity(orders, writer) for writer in WRITERS}
    start_load(LAKE, lake.ledger, 200, seed=6)
    orders.change({"source": {"kinesis": {"shards": {"min": 4, "max": 8}}}})
    return before


def test_set_by_hand(orders: Stream) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    before = identity(orders, "json")
    with executors_set(orders, 2):
        for writer in WRITERS:
            wait_for_executors(orders, writer, 2)
    assert identity(orders, "json") == before


@pytest.mark.usefixtures("resharding")  # the next test's, which goes on meanwhile
def test_a_node_too_full_is_said_and_batches_go_on(orders: Stream) -> None:
    orders.wait_for_condition(ConditionType.DEGRADED, "False")
    before = identity(orders, "json")
    with ExitStack() as until_there_is_room:
        with nodes.full(LAKE):
            until_there_is_room.enter_context(executors_set(orders, 2))
            starved = orders.wait_for_condition(ConditionType.SCALING_LIMITED, "True")
            assert starved.reason == "ResourceStarved"
            assert "1 of 2 executors have not started" in starved.message
            status = orders.status
            assert status.phase is Phase.RUNNING, status
        for writer in WRITERS:
            wait_for_executors(orders, writer, 2)
        orders.wait_for_condition(ConditionType.SCALING_LIMITED, "False")
    assert identity(orders, "json") == before


@pytest.mark.usefixtures("resharding")
def test_a_quota_that_lets_no_executor_be_is_named_and_batches_go_on(orders: Stream) -> None:
    orders.wait_for_condition(ConditionType.SCALING_LIMITED, "False")
    before = identity(orders, "json")
    with ExitStack() as until_there_is_room:
        with orders.kubectl.applied(QUOTA):
            until_there_is_room.enter_context(executors_set(orders, 2))
            starved = orders.wait_for_condition(ConditionType.SCALING_LIMITED, "True")
            assert starved.reason == "ResourceStarved"
            assert "ResourceQuota no-more-pods leaves no room for one more: pods of" in starved.message
            orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
        for writer in WRITERS:
            wait_for_executors(orders, writer, 2)
        orders.wait_for_condition(ConditionType.SCALING_LIMITED, "False")
    assert identity(orders, "json") == before


def test_a_stream_with_too_few_shards_is_resharded_under_its_readers(
    orders: Stream, resharding: dict[str, tuple[Any, ...]]
) -> None:
    try:
        # A minute to decide, half a one until the driver looks again, and another one to decide that all is well.
        orders.wait_for("the stream has 4 shards", lambda status: status.shards.startswith("4 shards are"), 2 * STARTS)
        orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
        for writer in WRITERS:
            wait_for_shards(orders, writer, 4)
    finally:
        stop_load(LAKE)
    orders.change({"source": {"kinesis": {"shards": None}}})
    orders.wait_for("nothing is said of shards any more", lambda status: status.shards == "")
    assert {writer: identity(orders, writer) for writer in WRITERS} == resharding


@pytest.mark.parametrize("content", ["not JSON", '{"executors": "many"}', None])
def test_a_control_configmap_that_is_nonsense_or_gone(orders: Stream, kubectl: Kubectl, content: str | None) -> None:
    before = identity(orders, "json")
    name = orders.names("json").control
    if content is None:
        kubectl.delete("configmap", name)
    else:
        kubectl.patch("configmap", name, {"data": {CONTROL_KEY: content}})

    def mended() -> bool:
        found = kubectl.get("configmap", name)
        return (
            found is not None
            and found["data"][CONTROL_KEY] != content
            and "executors" in json.loads(found["data"][CONTROL_KEY])
        )

    eventually("the operator writes it anew", mended, STARTS, lambda: kubectl.get("configmap", name))
    assert identity(orders, "json") == before
    assert len(orders.executors("json")) == 1


def test_a_backlog_brings_executors_and_its_end_takes_them_away(orders: Stream, lake: Lake) -> None:
    """The operator is killed in the middle, and forgets nothing."""
    # Busy to a third at most: the load calls for two executors however quick the machine is.
    scaling = {"maxLag": "10s", "catchUp": "30s", "scaleDownAfter": "30s", "targetUtilization": 0.33}
    orders.change({"suspend": True, "scaling": {"executors": None, **scaling}})
    orders.wait_for("suspended", lambda status: status.phase is Phase.SUSPENDED)
    with load(LAKE, lake.ledger, 1500, seed=5):
        orders.change({"suspend": False})
        orders.wait_for_condition(ConditionType.READY, "True")
        before = {writer: identity(orders, writer) for writer in WRITERS}
        eventually(
            "a writer is given a second executor",
            lambda: any(orders.writer(writer).executors.target == 2 for writer in WRITERS),
            STARTS,
            lambda: orders.object["status"],
        )
        operator = Kubectl(SYSTEM)
        for pod in operator.list("pods", "app.kubernetes.io/name=lakestream"):
            operator.delete("pod", pod["metadata"]["name"], "--grace-period=0", "--force")
        eventually(
            "a second executor works",
            lambda: any(len(orders.executors(writer)) == 2 for writer in WRITERS),
            STARTS,
            lambda: orders.object["status"],
        )
    orders.wait_until_caught_up(WRITERS)
    orders.wait_for(
        "the lag is under maxLag",
        lambda status: all(writer.lag_seconds is not None and writer.lag_seconds < 10 for writer in status.writers),
    )
    for writer in WRITERS:
        wait_for_executors(orders, writer, 1)
        assert orders.writer(writer).restarts == 0
    assert {writer: identity(orders, writer) for writer in WRITERS} == before
    described = orders.kubectl.run("describe", "lakestream", "orders")
    assert "executors" in described


def test_a_lost_executor_is_replaced_and_nothing_else_changes(orders: Stream, lake: Lake) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    before = identity(orders, "json")

    def replaced() -> bool:
        names = {one["metadata"]["name"] for one in orders.executors("json")}
        return len(names) == 2 and lost not in names

    with executors_set(orders, 2):
        wait_for_executors(orders, "json", 2)
        with load(LAKE, lake.ledger, 200, seed=9):
            lost = orders.executors("json")[0]["metadata"]["name"]
            orders.kubectl.delete("pod", lost, "--grace-period=0", "--force")
            orders.wait_for_batches_after(datetime.now(UTC), ("json",))
        eventually("another executor has taken its place", replaced, STARTS, lambda: orders.object["status"])
    assert identity(orders, "json") == before


def test_nothing_was_lost_or_doubled(orders: Stream, lake: Lake, spark: SparkSession, scratch: Path) -> None:
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))
