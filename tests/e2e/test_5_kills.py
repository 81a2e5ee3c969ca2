"""Processes are killed while events flow."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cluster.commands import CommandError, Kubectl, helm
from cluster.installation import LAKE, SYSTEM, install_local_aws
from cluster.lake import Lake
from cluster.load import start_load, stop_load
from cluster.stream import STARTS, WRITERS, Stream
from cluster.volumes import CLAIMS
from cluster.waiting import eventually
from lakestream_api import ConditionType

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module", autouse=True)
def events(orders: Stream, lake: Lake) -> None:
    orders.wait_for_condition(ConditionType.READY, "True")
    start_load(LAKE, lake.ledger, 200, seed=4)


def kill_all(kubectl: Kubectl, pod: str, container: str) -> None:
    """SIGKILL for every process of a container but its first, which then ends too."""
    with suppress(CommandError):  # the shell is one of them
        kubectl.run("exec", pod, "-c", container, "--", "sh", "-c", "kill -9 -1")


def test_a_driver(orders: Stream, kubectl: Kubectl) -> None:
    before = orders.driver_uid("hudi")
    other = orders.driver_uid("json")
    kill_all(kubectl, orders.names("hudi").driver_pod, "spark-kubernetes-driver")
    orders.wait_for_another_driver("hudi", before)
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert orders.driver_uid("json") == other, "the other writer was restarted too"


def test_an_executor(orders: Stream, kubectl: Kubectl) -> None:
    drivers = {writer: orders.driver_uid(writer) for writer in WRITERS}
    (executor, *_) = orders.executors("json")
    kubectl.delete("pod", executor["metadata"]["name"], "--grace-period=0", "--force")
    eventually(
        "the executor is replaced",
        lambda: any(pod["metadata"]["uid"] != executor["metadata"]["uid"] for pod in orders.executors("json")),
        STARTS,
        lambda: kubectl.run("get", "pods"),
    )
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert {writer: orders.driver_uid(writer) for writer in WRITERS} == drivers


@pytest.mark.parametrize("component", ["lakestream", "spark-operator"])
def test_an_operator(orders: Stream, component: str) -> None:
    drivers = {writer: orders.driver_uid(writer) for writer in WRITERS}
    system = Kubectl(SYSTEM)
    pods = [pod["metadata"] for pod in system.list("pods", f"app.kubernetes.io/name={component}")]
    assert pods
    for pod in pods:
        system.delete("pod", pod["name"], "--grace-period=0", "--force")
    killed = {pod["uid"] for pod in pods}

    def is_back() -> bool:
        present = system.list("pods", f"app.kubernetes.io/name={component}")
        ready = [
            pod["metadata"]["uid"]
            for pod in present
            if any(
                condition["type"] == "Ready" and condition["status"] == "True"
                for condition in pod["status"].get("conditions", [])
            )
        ]
        return len(ready) >= len(killed) and not killed & set(ready)

    eventually(f"{component} is back", is_back, STARTS, lambda: system.run("get", "pods"))
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert {writer: orders.driver_uid(writer) for writer in WRITERS} == drivers


def test_what_the_operator_made_and_somebody_deletes(orders: Stream, kubectl: Kubectl) -> None:
    """Both are made again. The one ends its driver; the other only has its orders."""
    hudi, json = orders.driver_uid("hudi"), orders.driver_uid("json")
    kubectl.delete("configmap", orders.names("hudi").control)
    kubectl.delete("sparkapplication", orders.names("json").application)
    orders.wait_for_another_driver("json", json)
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert kubectl.get("configmap", orders.names("hudi").control) is not None
    assert orders.driver_uid("hudi") == hudi
    orders.wait_for_condition(ConditionType.READY, "True")


def test_an_outage_of_s3_is_waited_out(orders: Stream, kubectl: Kubectl) -> None:
    """In the drivers' own pods, however quickly connections are refused."""
    drivers = {writer: orders.driver_uid(writer) for writer in WRITERS}
    kubectl.run("scale", "deployment/s3", "--replicas=0")
    orders.wait_for(
        "the outage is told", lambda status: any(one.reason == "StorageUnavailable" for one in status.conditions)
    )
    kubectl.run("scale", "deployment/s3", "--replicas=1")
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert {writer: orders.driver_uid(writer) for writer in WRITERS} == drivers


def test_kinesis_and_s3_installed_anew(orders: Stream, kubectl: Kubectl) -> None:
    """Their claims stay, with all that is in them."""

    def volumes() -> dict[str, str]:
        claims = kubectl.list("persistentvolumeclaims")
        return {claim["metadata"]["name"]: claim["spec"]["volumeName"] for claim in claims}

    before = volumes()
    assert before.keys() == set(CLAIMS)
    helm("uninstall", "local-aws", "-n", LAKE, "--wait")
    install_local_aws()
    orders.wait_for_batches_after(datetime.now(UTC), WRITERS)
    assert volumes() == before


@pytest.mark.usefixtures("other")  # test_6 has it: it starts while here is waited
def test_nothing_was_lost_or_doubled(orders: Stream, lake: Lake, spark: SparkSession, scratch: Path) -> None:
    stop_load(LAKE)
    orders.wait_until_caught_up(WRITERS)
    print(lake.require_exactly_once(spark, scratch))
