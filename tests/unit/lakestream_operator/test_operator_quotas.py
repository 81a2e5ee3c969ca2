"""A quota that forbids executors is told by its name."""

from datetime import timedelta
from typing import Any

import pytest

from lakestream_api import ConditionStatus, ConditionType
from lakestream_operator.quotas import in_the_way, quotas_of
from lakestream_operator.testing import Cluster, lakestream

MINUTE = timedelta(minutes=1)
NEEDS = {"pods": "1", "requests.cpu": "500m", "requests.memory": "1434Mi"}


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


def test_executors_that_a_quota_refuses_are_told_of_once() -> None:
    cluster = Cluster(lakestream())
    cluster.advance(2 * MINUTE)
    cluster.edit(lambda spec: spec.update(scaling={"executors": 4}))
    cluster.running()[0].room = 2
    cluster.api.admit(_quota({"limits.memory": "8Gi"}, {"limits.memory": "7Gi"}))
    cluster.advance(5 * MINUTE)
    (limited,) = (one for one in cluster.status.conditions if one.type is ConditionType.SCALING_LIMITED)
    assert (limited.status, limited.reason) == (ConditionStatus.TRUE, "ResourceStarved")
    assert "ResourceQuota small" in limited.message
    assert [one.reason for one in cluster.events].count("ResourceStarved") == 1
    cluster.running()[0].room = 4
    cluster.advance(MINUTE)
    (limited,) = (one for one in cluster.status.conditions if one.type is ConditionType.SCALING_LIMITED)
    assert limited.reason != "ResourceStarved"
