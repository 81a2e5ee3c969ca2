"""What Flux, Helm and others that go by kstatus make of a LakeStream, at each moment of its life."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from lakestream_api.crd import openapi_schema
from lakestream_operator.testing import Behaviour, Cluster, lakestream

MINUTE = timedelta(minutes=1)


def _kstatus(manifest: Mapping[str, Any]) -> str:
    """The rules of sigs.k8s.io/cli-utils/pkg/kstatus for a kind that it does not know."""
    metadata, status = manifest["metadata"], manifest.get("status", {})
    if "deletionTimestamp" in metadata:
        return "Terminating"
    if "observedGeneration" in status and status["observedGeneration"] != metadata["generation"]:
        return "InProgress"
    said = {one["type"]: one["status"] for one in status.get("conditions", ())}
    if said.get("Reconciling") == "True":
        return "InProgress"
    if said.get("Stalled") == "True":
        return "Failed"
    # What says nothing of itself counts as done.
    return "Current" if said.get("Ready", "True") == "True" else "InProgress"


def _applied(writers: tuple[str, ...] = ("json",), **cluster: Any) -> Cluster:
    """One as it comes from an API server: with the status that the CRD gives it."""
    status = openapi_schema()["properties"]["status"]
    given = {"status": status["default"]} if "default" in status else {}
    return Cluster(lakestream(writers=writers) | given, **cluster)


def _seen(cluster: Cluster) -> str:
    assert cluster.lakestream is not None
    return _kstatus(cluster.lakestream)


def _advance(cluster: Cluster, duration: timedelta) -> list[str]:
    """What is made of it meanwhile, in order."""
    seen, end = [_seen(cluster)], cluster.now + duration
    while cluster.now < end:
        cluster.advance(timedelta(seconds=10))
        seen += [now] if (now := _seen(cluster)) != seen[-1] else []
    return seen


def test_it_is_current_once_all_drivers_commit_and_not_before_an_operator_has_seen_it() -> None:
    cluster = _applied(writers=("json", "hudi"))
    assert _seen(cluster) == "InProgress"
    cluster.advance(10 * MINUTE, operator=False)
    assert _seen(cluster) == "InProgress"
    assert _advance(cluster, 10 * MINUTE) == ["InProgress", "Current"]
    assert len(cluster.running()) == 2


def test_a_changed_spec_is_in_progress_from_the_edit_until_it_runs() -> None:
    cluster = _applied()
    cluster.advance(5 * MINUTE)
    assert _seen(cluster) == "Current"
    cluster.edit(lambda spec: spec.update(trigger={"interval": "20s"}))
    assert _advance(cluster, 5 * MINUTE) == ["InProgress", "Current"]
    assert cluster.running() == [cluster.started[1]]


def test_a_spec_that_is_not_carried_out_has_failed_until_it_is_another_one() -> None:
    cluster = _applied()
    cluster.advance(5 * MINUTE)
    cluster.edit(lambda spec: spec.update(scaling={"minExecutors": 5, "maxExecutors": 2}))
    assert _advance(cluster, 5 * MINUTE) == ["InProgress", "Failed"]
    cluster.edit(lambda spec: spec.update(scaling={"minExecutors": 2, "maxExecutors": 5}))
    assert _advance(cluster, 5 * MINUTE) == ["InProgress", "Current"]


def test_a_driver_that_is_not_started_again_has_failed_and_one_that_is_has_not() -> None:
    assert _advance(_applied(behaviour=lambda _: Behaviour.REFUSES), 20 * MINUTE) == ["InProgress", "Failed"]
    assert _advance(_applied(behaviour=lambda _: Behaviour.CRASHES), 20 * MINUTE) == ["InProgress"]


def test_a_spec_that_was_given_up_has_failed_though_the_one_before_runs() -> None:
    cluster = _applied()
    cluster.advance(5 * MINUTE)
    good = cluster.started[0].fingerprint
    cluster.behaviour = lambda one: Behaviour.WELL if one == good else Behaviour.REFUSES
    cluster.edit(lambda spec: spec.update(schema="order_id whatever", rollback=True))
    assert _advance(cluster, 10 * MINUTE)[-1] == "Failed"
    assert [one.fingerprint for one in cluster.running()] == [good]


def test_a_suspended_one_is_in_progress_and_a_deleted_one_is_terminating() -> None:
    cluster = _applied()
    cluster.advance(5 * MINUTE)
    cluster.edit(lambda spec: spec.update(suspend=True))
    assert _advance(cluster, 5 * MINUTE) == ["InProgress"]
    cluster.edit(lambda spec: spec.update(suspend=False))
    assert _advance(cluster, 5 * MINUTE) == ["InProgress", "Current"]
    cluster.delete_lakestream()
    assert _seen(cluster) == "Terminating"
