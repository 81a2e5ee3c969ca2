"""What is seen of one LakeStream and all that belongs to it, at one time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from lakestream_api import Control, DriverReport, LakeStreamStatus
from lakestream_api.names import API_VERSION, KIND
from lakestream_operator.model.actions import Kind, Manifest
from lakestream_operator.model.heard import Heard
from lakestream_operator.model.memory import Memory
from lakestream_operator.model.refusal import Refusal


class PodPhase(StrEnum):
    """Kubernetes's phases of a pod."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class Application:
    """A SparkApplication of ours."""

    uid: str
    created_at: datetime
    deleting_since: datetime | None
    generation: int
    """1 as long as nobody changed the spec that it was created with."""
    fingerprint: str
    """Of the document that its driver was given."""
    state: str
    """In the Spark Operator's words; empty while that has not seen it."""
    message: str
    """What the Spark Operator says of a failure."""
    submitted: bool
    """Whether it ever got as far as to have a driver's pod."""
    image: str = ""
    """Of its pods."""
    settings_hash: str = ""
    """Of what the operator's settings made of its pods; empty of one that an operator made which wrote down none."""
    finalizers: tuple[str, ...] = ()
    """What keeps it once it is deleted."""

    @property
    def held(self) -> bool:
        """Whether somebody had it suspended as it was made: an edit of one that was there is another matter."""
        return self.state in ("SUSPENDING", "SUSPENDED") and self.generation == 1

    @property
    def terminal(self) -> bool:
        """Whether the Spark Operator has ended its work on it."""
        return self.state in ("COMPLETED", "FAILED")


@dataclass(frozen=True, slots=True)
class DriverPod:
    """The pod of a driver."""

    name: str
    uid: str
    created_at: datetime
    deleting_since: datetime | None
    """When it should be gone at the latest, if it is deleted."""
    phase: PodPhase
    started_at: datetime | None
    """When its container began to run."""
    exit: int | None
    """Exit status of its container, once that has ended."""
    message: str
    """What the container left in its termination log; or why the pod does not start, or was ended."""
    application_uid: str = ""
    """Uid of the SparkApplication that it belongs to, if it says so."""
    finalizers: tuple[str, ...] = ()
    """What keeps it once it is deleted and has ended."""
    ended_for: str = ""
    """Why the kubelet has ended the pod, or has not begun with it, in its own word; empty: it has not."""

    @property
    def deleting(self) -> bool:
        return self.deleting_since is not None

    @property
    def ended(self) -> bool:
        """Whether the driver is gone for good (a pod on a lost node may still run), be it that other containers of the
        pod, which somebody put in, go on."""
        return self.phase in (PodPhase.SUCCEEDED, PodPhase.FAILED) or self.exit is not None


@dataclass(frozen=True, slots=True)
class WriterSeen:
    """One writer's objects; those that are missing are None."""

    application: Application | None = None
    driver_pod: DriverPod | None = None
    report: DriverReport | None = None
    """What the driver said last, its times by the API server's clock."""
    reported_at: datetime | None = None
    """When the report was written, by that clock."""
    said: str = ""
    """The report as it was written."""
    unreadable: str = ""
    """Why that is no report, or empty."""
    heard: Heard | None = None
    """When anything of the driver was new to this process; none: nobody listens, and times have to do."""
    control: Control | None = None
    memory: Memory = field(default_factory=Memory)
    scaling_state: str | None = None
    """What the autoscaler remembers, in its own words."""
    shard_state: str | None = None
    """The same about the stream's shards; of the first writer only."""
    document: str | None = None
    """The document that the driver was given, or will be."""
    good: str | None = None
    """The last document whose driver committed a batch."""
    objects: Mapping[tuple[Kind, str], Manifest] = field(default_factory=dict)
    """ConfigMaps, service account and role binding, by kind and name."""
    pending_since: datetime | None = None
    """Creation of the oldest executor pod that no node has taken."""
    pending_for: str = ""
    """What that one says it waits for; empty: it says nothing."""
    executor_pods: int = 0
    """That have not ended, and are not being deleted: they are, or will be, executors."""

    @property
    def has_driver(self) -> bool:
        """Whether there is a driver, or what makes one."""
        return self.application is not None or self.driver_pod is not None

    @property
    def own_pod(self) -> DriverPod | None:
        """The driver's pod, if it is that of this SparkApplication and not one that was before it."""
        app, pod = self.application, self.driver_pod
        return pod if pod and app and pod.application_uid in ("", app.uid) else None

    @property
    def own_report(self) -> DriverReport | None:
        """The report of the driver whose pod is there, not one that its predecessor left."""
        report, pod = self.report, self.driver_pod
        return report if report and pod and report.pod_uid == pod.uid else None


@dataclass(frozen=True, slots=True)
class Stream:
    """The LakeStream object."""

    namespace: str
    name: str
    uid: str
    generation: int
    deleting: bool
    finalizing: bool
    """Whether it bears the operator's finalizer."""
    manifest: Manifest
    """As the API server gave it."""
    status: LakeStreamStatus | None
    restart: str
    """Value of the annotation that asks for a restart, or empty."""

    @property
    def suspended(self) -> bool:
        """Whether all is to stop: said clearly enough even if the rest of the spec is invalid."""
        return (self.manifest.get("spec") or {}).get("suspend") is True

    @property
    def owner_reference(self) -> dict[str, Any]:
        """Of its objects: lets Kubernetes delete what the LakeStream leaves behind."""
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    @property
    def asked(self) -> tuple[int, str]:
        """What a person changes to have something else done."""
        return self.generation, self.restart


@dataclass(frozen=True, slots=True)
class Observed:
    """A LakeStream and all that belongs to it."""

    stream: Stream
    writers: Mapping[str, WriterSeen]
    """By name; also those that the spec has no more."""
    contested: str = ""
    """What it names that is another LakeStream's, or empty."""
    taken: frozenset[str] = frozenset()
    """Folders that its drivers were given, and that are another LakeStream's by now."""
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    """What could not be done lately, by writer; under an empty name what is about the LakeStream itself."""
    quotas: tuple[Manifest, ...] = ()
    """ResourceQuotas of the namespace; looked at only where executors are missing."""

    def seen(self, writer: str) -> WriterSeen:
        """One writer's objects, be it that there are none."""
        return self.writers.get(writer, WriterSeen())

    def was_said(self, *reasons: str) -> bool:
        """Whether a condition of the status as it is has one of these reasons."""
        status = self.stream.status
        return any(one.reason in reasons for one in (status.conditions if status else ()))
