"""A LakeStream on the cluster, and what is to be seen of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cluster.commands import Kubectl, Object
from cluster.waiting import eventually
from lakestream_api import Condition, ConditionType, DriverReport, LakeStreamStatus, WriterNames, WriterStatus
from lakestream_api.names import REPORT_KEY

STARTS = 240.0
"""Seconds within which drivers start, drain or restart: JVMs of several pods share two cores."""

WRITERS = ("hudi", "json")
"""Those of the example."""
_DOCUMENT = "/etc/lakestream/document/lakestream.yaml"
"""The LakeStream as a driver's pod has it."""
SETTLED = timedelta(seconds=5)
"""Records younger than this may be left for the next batch; the clock of the cluster is taken to be this one."""


@dataclass(frozen=True)
class Stream:
    """One LakeStream."""

    kubectl: Kubectl
    name: str

    @property
    def object(self) -> Object:
        found = self.kubectl.get("lakestream", self.name)
        assert found is not None, f"LakeStream {self.name} is gone"
        return found

    @property
    def status(self) -> LakeStreamStatus:
        return LakeStreamStatus.model_validate(self.object.get("status", {}))

    def condition(self, kind: ConditionType) -> Condition | None:
        return next((condition for condition in self.status.conditions if condition.type is kind), None)

    def writer(self, name: str) -> WriterStatus:
        return next(writer for writer in self.status.writers if writer.name == name)

    def names(self, writer: str) -> WriterNames:
        return WriterNames(self.name, writer)

    def driver(self, writer: str) -> Object | None:
        """The driver's pod."""
        return self.kubectl.get("pod", self.names(writer).driver_pod)

    def command(self, writer: str, *arguments: str) -> str:
        """What `lakestream` says of a writer in its driver's pod."""
        pod = self.names(writer).driver_pod
        return self.kubectl.run("exec", pod, "--", "lakestream", *arguments, "-f", _DOCUMENT, "--writer", writer)

    def driver_uid(self, writer: str) -> str:
        pod = self.driver(writer)
        assert pod is not None, f"writer {writer} has no driver pod"
        return str(pod["metadata"]["uid"])

    def wait_for_another_driver(self, writer: str, uid: str) -> None:
        """Wait until a writer has a driver pod that is not this one."""
        eventually(
            f"writer {writer} has another driver",
            lambda: (self.driver(writer) or {}).get("metadata", {}).get("uid") not in (None, uid),
            STARTS,
            lambda: self.object["status"],
        )

    def application(self, writer: str) -> Object | None:
        return self.kubectl.get("sparkapplication", self.names(writer).application)

    def executors(self, writer: str) -> list[Object]:
        """Executor pods that run."""
        pods = self.kubectl.list(
            "pods", f"spark-role=executor,lakestream.dev/stream={self.name},lakestream.dev/writer={writer}"
        )
        return [
            pod for pod in pods if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def report(self, writer: str) -> DriverReport | None:
        """What the driver last said of itself."""
        progress = self.kubectl.get("configmap", self.names(writer).progress)
        text = (progress or {}).get("data", {}).get(REPORT_KEY)
        return None if text is None else DriverReport.model_validate(json.loads(text))

    def change(self, spec: Object) -> None:
        """Merge this into the spec."""
        self.kubectl.patch("lakestream", self.name, {"spec": spec})

    def wait_for(
        self, what: str, probe: Callable[[LakeStreamStatus], bool], seconds: float = STARTS
    ) -> LakeStreamStatus:
        """Wait for the status to be so; returns it."""

        def found() -> LakeStreamStatus | None:
            status = self.status
            return status if probe(status) else None

        return eventually(f"{self.name}: {what}", found, seconds, lambda: self.object.get("status"))

    def wait_for_condition(self, kind: ConditionType, value: str, seconds: float = STARTS) -> Condition:
        """Wait for a condition that is about the present spec; returns it."""

        def found() -> Condition | None:
            condition = self.condition(kind)
            current = condition is not None and condition.observed_generation == self.object["metadata"]["generation"]
            return condition if condition and current and condition.status == value else None

        return eventually(f"{self.name}: {kind} {value}", found, seconds, lambda: self.object.get("status"))

    def wait_for_batches_after(self, moment: datetime, writers: tuple[str, ...], seconds: float = STARTS) -> None:
        """Wait until each writer has committed a batch after `moment`."""
        for name in writers:
            self.wait_for(
                f"writer {name} commits a batch after {moment:%H:%M:%S}",
                lambda status, name=name: any(  # type: ignore[misc]
                    writer.name == name and writer.last_batch_at is not None and writer.last_batch_at > moment
                    for writer in status.writers
                ),
                seconds,
            )

    def wait_until_caught_up(self, writers: tuple[str, ...], seconds: float = STARTS) -> None:
        """Wait until each writer has found nothing more to read in a stream that nobody writes to any more."""
        now = datetime.now(UTC) + SETTLED
        for name in writers:

            def found_nothing(name: str = name) -> bool:
                report = self.report(name)
                return report is not None and report.caught_up_at is not None and report.caught_up_at > now

            eventually(
                f"writer {name} finds no more records", found_nothing, seconds, lambda: self.object.get("status")
            )
