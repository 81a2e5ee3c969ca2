"""A second LakeStream in a second namespace; and what is left when they are deleted."""

from __future__ import annotations

import pytest

from cluster.commands import Kubectl
from cluster.installation import SYSTEM
from cluster.stream import Stream
from cluster.waiting import eventually
from lakestream_api import ConditionType
from lakestream_loadgen.storage import Folder

pytestmark = pytest.mark.timeout(1200)

OWNED = "sparkapplications,configmaps,serviceaccounts,rolebindings,pods,services"


def owned(kubectl: Kubectl) -> list[str]:
    items = kubectl.list(OWNED, "lakestream.dev/stream")
    return [f"{item['kind']}/{item['metadata']['name']}" for item in items]


def test_a_stream_of_the_same_name_in_another_namespace_runs(other: Stream, s3: dict[str, str]) -> None:
    other.wait_for_condition(ConditionType.READY, "True")
    other.wait_until_caught_up(("json",))
    assert Folder("s3://lake/other_json").names()


def test_a_driver_that_begins_anew_in_its_pod_has_executors_again(other: Stream) -> None:
    """As it does at the first record at which SQL fails: it is to be left out."""
    assert "spec.transform or deleteWhen fails" in other.command("json", "quarantine", "show")
    writer = other.writer("json")
    assert writer.restarts == 0
    assert writer.epoch is not None
    assert writer.epoch > 1


def test_a_removed_writer_is_stopped(orders: Stream) -> None:
    keep = [writer for writer in orders.object["spec"]["writers"] if writer["name"] == "json"]
    orders.change({"writers": keep})
    eventually("the writer is gone", lambda: orders.application("hudi") is None, 180, lambda: orders.object["status"])
    orders.wait_for_condition(ConditionType.READY, "True")
    assert [writer.name for writer in orders.status.writers] == ["json"]


def test_deletion_leaves_nothing_but_the_data(orders: Stream, other: Stream, s3: dict[str, str]) -> None:
    data = Folder("s3://lake/orders_json").names()
    for stream in (orders, other):
        stream.kubectl.delete("lakestream", stream.name)
        eventually(
            "all its objects are gone",
            lambda stream=stream: not owned(stream.kubectl),  # type: ignore[misc]
            120,
            lambda stream=stream: owned(stream.kubectl),  # type: ignore[misc]
        )
    assert Folder("s3://lake/orders_json").names() == data
    events = orders.kubectl.run("get", "events", "--field-selector", "involvedObject.kind=LakeStream")
    assert "data" in events


def test_the_operator_saw_no_error_that_it_did_not_expect() -> None:
    logs = Kubectl(SYSTEM).run("logs", "-l", "app.kubernetes.io/name=lakestream", "--tail=-1")
    assert "Traceback" not in logs
