"""Executors that do not come are told of: by the name of a quota that forbids them, or by what their pods wait for."""

from datetime import timedelta
from typing import Any

import pytest

from lakestream_api import Condition, ConditionStatus, ConditionType, Control, ExecutorsReport, WriterNames
from lakestream_api.names import CONTROL_KEY, REPORT_KEY
from lakestream_operator.model import Kind, Reference
from lakestream_operator.observer import writer_of
from lakestream_operator.quotas import in_the_way, is_short, quotas_of
from lakestream_operator.testing import Behaviour, Cluster, Mood, lakestream, report_of
from lakestream_operator.testing.cluster import BEGIN

MINUTE = timedelta(minutes=1)
NEEDS = {"pods": "1", "requests.cpu": "500m", "requests.memory": "1434Mi"}


def _condition(cluster: Cluster, kind: ConditionType = ConditionType.SCALING_LIMITED) -> Condition:
    """What the status says of it."""
    (found,) = (one for one in cluster.status.conditions if one.type is kind)
    return found


def _quota(hard: dict[str, str], used: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "small", "namespace": "lake"},
        "spec": spec,
        "status": {"hard": hard, "used": used},
    }


@pytest.mark.parametrize(
    ("hard", "used", "told"),
    [
        ({"pods": "3"}, {"pods": "3"}, "pods of 3 is used of 3, and an executor needs 1"),
        ({"pods": "3"}, {"pods": "2"}, ""),
        ({"requests.cpu": "2"}, {"requests.cpu": "1600m"}, "requests.cpu of 1.6 is used of 2"),
        ({"requests.cpu": "2"}, {"requests.cpu": "1500m"}, ""),
        ({"requests.memory": "4Gi"}, {"requests.memory": "3G"}, "requests.memory of 3000000000 is used of 4294967296"),
        ({"requests.memory": "1e12"}, {"requests.memory": "3Gi"}, ""),
        ({"services": "0"}, {"services": "0"}, ""),
        ({"pods": "?"}, {}, ""),
    ],
)
def test_the_quota_that_leaves_no_room_is_named(hard: dict[str, str], used: dict[str, str], told: str) -> None:
    said = in_the_way(quotas_of([_quota(hard, used)]), NEEDS)
    assert (told in said, bool(said)) == (True, bool(told))
    assert ("ResourceQuota small" in said) == bool(told)


@pytest.mark.parametrize(
    ("spec", "counts"),
    [
        ({"scopes": ["NotTerminating"]}, True),
        ({"scopes": ["BestEffort"]}, False),
        ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass"}]}}, False),
    ],
    ids=str,
)
def test_a_quota_of_other_pods_is_passed_over(spec: dict[str, Any], counts: bool) -> None:
    assert bool(in_the_way(quotas_of([_quota({"pods": "1"}, {"pods": "1"}, **spec)]), NEEDS)) is counts


@pytest.mark.parametrize(
    ("phases", "short"),
    [
        (["Running"] * 4, False),
        (["Running"] * 3, True),
        (["Running"] * 3 + ["Succeeded"], True),
        (["Running"] * 3 + ["deleted"], True),
        (["Running"] * 3 + ["Pending"], False),
    ],
    ids=str,
)
def test_executors_that_have_yet_to_come_to_the_driver_are_not_missing(phases: list[str], short: bool) -> None:
    names = WriterNames("orders", "json")
    report = report_of(BEGIN).model_copy(update={"executors": ExecutorsReport(target=4, registered=1)})

    def made(kind: str, name: str, **parts: Any) -> dict[str, Any]:
        return {
            "kind": kind,
            "metadata": {"name": name, "uid": "pod-1", "creationTimestamp": BEGIN.isoformat()},
            **parts,
        }

    pods = [made("Pod", f"orders-json-exec-{number}", status={"phase": one}) for number, one in enumerate(phases)]
    for pod in pods:
        if pod["status"]["phase"] == "deleted":
            pod["status"]["phase"] = "Running"
            pod["metadata"]["deletionTimestamp"] = BEGIN.isoformat()
    others = [
        made("Pod", names.driver_pod, status={"phase": "Running"}),
        made("ConfigMap", names.progress, data={REPORT_KEY: report.model_dump_json()}),
        made("ConfigMap", names.control, data={CONTROL_KEY: Control(executors=4).model_dump_json()}),
    ]
    assert is_short(writer_of(names, [*pods, *others])) is short


def test_each_writer_whose_executors_a_quota_refuses_is_told_of_once() -> None:
    """Whatever the others are limited by, and be it that the operator is started anew, or cannot write the status."""
    cluster = Cluster(lakestream(writers=("aaa", "bbb", "ccc")))
    cluster.kinesis.open_shards, cluster.kinesis.records_per_second, cluster.kinesis.core_seconds = 64, 40_000, 400.0
    cluster.edit(lambda spec: spec.update(scaling={"minExecutors": 4, "maxExecutors": 4}))
    cluster.advance(2 * MINUTE)
    full = Reference.of(cluster.api.admit(_quota({"limits.memory": "8Gi"}, {"limits.memory": "7Gi"})))
    for driver in cluster.running()[1:]:
        driver.room = 2
    cluster.advance(5 * MINUTE)
    cluster.restart_operator()
    cluster.advance(MINUTE)
    cluster.api.moods[Kind.LakeStream] = Mood.REFUSES
    cluster.advance(5 * MINUTE)
    told = [one.message for one in cluster.events if one.reason == "ResourceStarved"]
    assert [one.split(":")[0] for one in told] == ["Writer bbb", "Writer ccc"]
    assert cluster.status.writers[0].scaling.endswith("maxExecutors is 4"), "that is said first in the condition"
    cluster.delete(full)
    cluster.advance(MINUTE)
    cluster.api.admit(_quota({"limits.memory": "8Gi"}, {"limits.memory": "7Gi"}))
    cluster.advance(MINUTE)
    assert [one.reason for one in cluster.events].count("ResourceStarved") == 4, "it is the case again"


def test_executors_that_do_not_come_for_no_reason_to_be_seen_are_told_of_once() -> None:
    """As where a LimitRange or an admission policy refuses their pods."""
    cluster = Cluster(lakestream())
    cluster.edit(lambda spec: spec.update(scaling={"executors": 4}))
    cluster.advance(2 * MINUTE)
    cluster.running()[0].room = 2
    cluster.advance(3 * MINUTE)
    assert "ExecutorsMissing" not in [one.reason for one in cluster.events], "they may be on their way"
    cluster.advance(5 * MINUTE)
    limited = _condition(cluster)
    assert (limited.status, limited.reason) == (ConditionStatus.TRUE, "ExecutorsMissing")
    assert "2 of 4 executors" in limited.message
    assert "orders-json-driver" in limited.message
    assert [one.reason for one in cluster.events].count("ExecutorsMissing") == 1
    cluster.running()[0].room = 4
    cluster.advance(MINUTE)
    limited = _condition(cluster)
    assert limited.reason != "ExecutorsMissing"


def test_a_driver_that_has_ended_misses_no_executors() -> None:
    """It may be left as it is for good, and its last report is of before they came."""
    cluster = Cluster(lakestream(), behaviour=lambda _: Behaviour.REFUSES)
    cluster.advance(10 * MINUTE)
    assert "ExecutorsMissing" not in [one.reason for one in cluster.events]
    assert _condition(cluster).reason == "NotLimited"


def test_executors_that_a_quota_refuses_are_told_of_once() -> None:
    cluster = Cluster(lakestream())
    cluster.advance(2 * MINUTE)
    cluster.edit(lambda spec: spec.update(scaling={"executors": 4}))
    cluster.running()[0].room = 2
    cluster.api.admit(_quota({"limits.memory": "8Gi"}, {"limits.memory": "7Gi"}))
    cluster.advance(5 * MINUTE)
    limited = _condition(cluster)
    assert (limited.status, limited.reason) == (ConditionStatus.TRUE, "ResourceStarved")
    assert "ResourceQuota small" in limited.message
    assert [one.reason for one in cluster.events].count("ResourceStarved") == 1
    cluster.running()[0].room = 4
    cluster.advance(MINUTE)
    limited = _condition(cluster)
    assert limited.reason != "ResourceStarved"


DAILY = {"cron": "0 0 * * *", "duration": "24h"}


@pytest.mark.parametrize("lost", [False, True], ids=["from the start", "all lost"])
@pytest.mark.parametrize(
    "scaling",
    [{}, {"executors": 1}, {"excludedWindows": [DAILY]}, {"schedule": [{**DAILY, "executors": 1}]}],
    ids=["by load", "by hand", "excluded", "scheduled"],
)
def test_executors_that_no_node_takes_are_told_of_though_there_are_no_batches(
    scaling: dict[str, Any], *, lost: bool
) -> None:
    document = lakestream()
    document["spec"]["scaling"] = scaling
    cluster = Cluster(document, behaviour=lambda _: Behaviour.WELL if lost else Behaviour.ALONE)
    cluster.advance(5 * MINUTE if lost else MINUTE)
    for driver in cluster.running():
        driver.behaviour = Behaviour.ALONE
    cluster.advance(MINUTE)
    assert _condition(cluster, ConditionType.DEGRADED).status is ConditionStatus.FALSE, "they may be on their way"
    for _ in range(2):
        cluster.advance(5 * MINUTE)
        for kind in (ConditionType.READY, ConditionType.DEGRADED, ConditionType.SCALING_LIMITED):
            told = _condition(cluster, kind)
            assert (told.status is ConditionStatus.FALSE) is (kind is ConditionType.READY)
            assert told.reason == "ResourceStarved"
            assert told.message.endswith("no node takes it: 0/3 nodes are available: 3 Insufficient memory.")
    assert [one.reason for one in cluster.events].count("ResourceStarved") == 1
    (driver,) = cluster.running()
    driver.behaviour = Behaviour.WELL
    cluster.advance(MINUTE)
    assert _condition(cluster, ConditionType.READY).status is ConditionStatus.TRUE
    assert _condition(cluster).reason == "NotLimited"
