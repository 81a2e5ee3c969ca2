"""What a Spark Operator, a kubelet and drivers would write to the API server, without any of them."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
from kubernetes.aio.client import ApiClient, ApiException, CoreV1Api, CustomObjectsApi
from kubernetes.aio.watch import Watch

from lakestream_api import Control, DriverReport, DriverState, ExecutorsReport, WriterNames
from lakestream_api.names import CONTROL_KEY, MANAGED_BY, REPORT_KEY, STREAM_LABEL, WRITER_LABEL
from lakestream_api.report import MAX_BATCHES
from lakestream_operator.adapters.cache import WATCHED
from lakestream_operator.adapters.client import KubeClient
from lakestream_operator.errors import ConflictError, NotFoundError, OperatorError
from lakestream_operator.model import Kind, Reference
from lakestream_operator.testing.documents import batch_of

SELECTOR = f"app.kubernetes.io/managed-by={MANAGED_BY}"


@dataclass(slots=True)
class SimulatedDrivers:
    """Follows SparkApplications of a namespace; gives each a pod, states and a report now and then."""

    client: KubeClient
    watching: ApiClient
    namespace: str
    interval: timedelta
    """Between two reports of a driver."""
    running: dict[str, asyncio.Task[None]] = field(default_factory=dict)
    created: dict[str, datetime] = field(default_factory=dict)
    """When each SparkApplication was seen first."""
    uids: dict[str, str] = field(default_factory=dict)
    targets: dict[str, tuple[int | None, datetime]] = field(default_factory=dict)
    """What each control ConfigMap says, and when that was seen."""
    reports: int = 0

    async def run(self) -> None:
        """Never returns."""
        applications, maps = CustomObjectsApi(self.watching), CoreV1Api(self.watching)
        group, _, version = Kind.SparkApplication.api_version.partition("/")
        names = (group, version, self.namespace, Kind.SparkApplication.value.plural)
        await asyncio.gather(
            self._follow(self._application, applications.list_namespaced_custom_object, *names),
            self._follow(self._map, maps.list_namespaced_config_map, self.namespace),
        )

    async def _follow(self, take: Callable[[str, dict[str, Any]], None], listing: Any, *names: str) -> None:
        while True:
            with contextlib.suppress(ApiException, aiohttp.ClientError, TimeoutError):
                # Without a version to begin with, it begins with all that there is.
                async with Watch(return_type="object") as events:
                    async for event in events.stream(listing, *names, label_selector=SELECTOR):
                        take(event["type"], event["object"])

    async def end(self) -> None:
        """End all drivers."""
        tasks = list(self.running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _map(self, event: str, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"].get("name", "")
        if event == "BOOKMARK" or not name.endswith("-control"):
            return
        control = Control.model_validate_json(manifest["data"][CONTROL_KEY])
        known = self.targets.get(name)
        if known is None or known[0] != control.executors:
            self.targets[name] = (control.executors, datetime.now(UTC))

    def _application(self, event: str, manifest: dict[str, Any]) -> None:
        name = manifest["metadata"].get("name", "")
        if event == "DELETED":
            self.uids.pop(name, None)
            if task := self.running.pop(name, None):
                task.cancel()
        elif event == "ADDED" and name not in self.running:
            self.created[name] = datetime.now(UTC)
            self.uids[name] = manifest["metadata"]["uid"]
            self.running[name] = asyncio.create_task(self._drive(manifest))

    async def _drive(self, app: dict[str, Any]) -> None:
        """One driver, from its submission on."""
        labels = app["metadata"]["labels"]
        names = WriterNames(labels[STREAM_LABEL], labels[WRITER_LABEL])
        reference = Reference(Kind.SparkApplication, self.namespace, names.application)
        pod = await self._pod(app, names)
        for state in ("SUBMITTED", "RUNNING"):
            status = {"applicationState": {"state": state}, "executionAttempts": 1, "driverInfo": {}}
            await self.client.merge(reference, {"status": status}, subresource="status")
        report = self._report(names, pod)
        # Drivers do not report in step.
        await asyncio.sleep(random.random() * self.interval.total_seconds())
        while True:
            report = _next(report)
            with contextlib.suppress(OperatorError):
                progress = Reference(Kind.ConfigMap, self.namespace, names.progress)
                await self.client.merge(progress, {"data": {REPORT_KEY: report.model_dump_json()}})
                self.reports += 1
            await asyncio.sleep(self.interval.total_seconds())

    async def _pod(self, app: dict[str, Any], names: WriterNames) -> dict[str, Any]:
        metadata = app["metadata"]
        owner = {"apiVersion": Kind.SparkApplication.api_version, "kind": "SparkApplication"}
        owner |= {"name": metadata["name"], "uid": metadata["uid"]}
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": names.driver_pod,
                "namespace": self.namespace,
                "labels": {**names.labels, "spark-role": "driver"},
                "ownerReferences": [owner],
            },
            "spec": {
                "containers": [{"name": "spark-kubernetes-driver", "image": "none"}],
                "serviceAccountName": names.service_account,
                "automountServiceAccountToken": False,
            },
        }
        reference = Reference(Kind.Pod, self.namespace, names.driver_pod)
        try:
            made = await self.client.create(manifest)
        except ConflictError:
            made = await self.client.get(reference)
        started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        container: dict[str, Any] = {"name": "spark-kubernetes-driver", "image": "none", "imageID": ""}
        container |= {"ready": True, "restartCount": 0, "state": {"running": {"startedAt": started}}}
        status = {"phase": "Running", "containerStatuses": [container]}
        await self.client.merge(reference, {"status": status}, subresource="status")
        return made

    def _report(self, names: WriterNames, pod: dict[str, Any]) -> DriverReport:
        now = datetime.now(UTC)
        return DriverReport(
            stream=names.stream,
            writer=names.writer,
            pod=names.driver_pod,
            pod_uid=pod["metadata"]["uid"],
            epoch=1,
            started_at=now,
            updated_at=now,
            state=DriverState.RUNNING,
            executors=ExecutorsReport(target=1, registered=1),
            batches=tuple(
                batch_of(number, now - (MAX_BATCHES - number) * self.interval) for number in range(MAX_BATCHES)
            ),
        ).published()


def _next(report: DriverReport) -> DriverReport:
    now = datetime.now(UTC)
    batches = (*report.batches[1:], batch_of(report.batches[-1].batch + 1, now))
    return report.model_copy(update={"updated_at": now, "batches": batches})


async def clear(client: KubeClient, namespace: str) -> None:
    """Delete what a run left in its namespace; without a garbage collector nobody else does."""
    for kind in WATCHED:
        found = await client.list_all(kind, namespace)
        await asyncio.gather(*(_delete(client, kind, manifest) for manifest in found))


async def _delete(client: KubeClient, kind: Kind, manifest: dict[str, Any]) -> None:
    metadata = manifest["metadata"]
    reference = Reference(kind, metadata["namespace"], metadata["name"])
    with contextlib.suppress(NotFoundError, ConflictError):
        if metadata.get("finalizers"):
            await client.merge(reference, {"metadata": {"finalizers": None}})
        await client.delete(reference, metadata["uid"])
