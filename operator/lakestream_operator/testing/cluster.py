"""The cluster in memory."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lakestream_api import Control, LakeStreamStatus, WriterNames
from lakestream_api.names import CONTROL_KEY, FINGERPRINT_ANNOTATION, REPORT_KEY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.adapters.cache import Cache
from lakestream_operator.decide import Decision, decide
from lakestream_operator.model import Action, Apply, Create, Delete, Emit, Finalize, Kind, Manifest, Observed, Reference
from lakestream_operator.observe import FINALIZER, stream_of, trim
from lakestream_operator.settings import JobSettings
from lakestream_operator.testing.drivers import Behaviour, Driver, KinesisStream

JOB = JobSettings(image="lakestream/spark:test", cluster_role="lakestream-driver")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Object = dict[str, Any]


@dataclass(slots=True)
class Cluster:
    """An API server with one LakeStream, a Spark Operator, a kubelet and drivers; time passes by `advance` alone."""

    lakestream: Object | None
    """The LakeStream; None once it is gone."""
    behaviour: Callable[[str], Behaviour] = lambda _: Behaviour.WELL
    """What becomes of a driver, by the fingerprint of its document."""
    now: datetime = BEGIN
    objects: dict[Reference, Object] = field(default_factory=dict)
    drivers: dict[str, Driver] = field(default_factory=dict)
    """By uid of the pod."""
    events: list[Emit] = field(default_factory=list)
    started: list[Driver] = field(default_factory=list)
    """All drivers that ever ran."""
    spark_operator: bool = True
    """Whether it runs."""
    blind: set[Kind] = field(default_factory=set)
    """Kinds whose watches say nothing: the operator sees them as they were."""
    kinesis: KinesisStream = field(default_factory=KinesisStream)
    scaling: Mapping[str, str] = field(default_factory=dict)
    shards: str | None = None
    cache: Cache = field(default_factory=Cache)
    _uids: int = 0

    def __post_init__(self) -> None:
        assert self.lakestream is not None
        self._admit(self.lakestream)

    # What a person does.

    def edit(self, change: Callable[[Object], None]) -> None:
        """Change the LakeStream's spec."""
        assert self.lakestream is not None
        change(self.lakestream["spec"])
        self.lakestream["metadata"]["generation"] += 1

    def delete_lakestream(self) -> None:
        assert self.lakestream is not None
        self.lakestream["metadata"]["deletionTimestamp"] = self.now.isoformat()
        self._let_go()

    def delete(self, reference: Reference) -> None:
        """Delete an object behind the operator's back."""
        if reference in self.objects:
            self._delete(reference)

    def find(self, kind: Kind) -> list[Object]:
        """All objects of a kind."""
        return [one for reference, one in self.objects.items() if reference.kind is kind]

    def running(self) -> list[Driver]:
        """The drivers whose processes live."""
        return [one for one in self.drivers.values() if one.exit is None]

    # What passes.

    def advance(self, duration: timedelta, *, step: timedelta = timedelta(seconds=5), operator: bool = True) -> None:
        """Let time pass, with a look of the operator at each step."""
        end = self.now + duration
        while self.now < end:
            self.now += step
            self._spark_operator_acts()
            self._kubelet_acts()
            if operator:
                self.reconcile()

    def reconcile(self) -> Decision | None:
        """One cycle of the operator."""
        if self.lakestream is None:
            return None
        for kind in set(Kind) - self.blind:
            self.cache.replace(kind, None, [one for ref, one in self.objects.items() if ref.kind is kind])
        stream = stream_of(trim(Kind.LakeStream, self.lakestream))
        observed = Observed(stream, self.cache.writers((stream.namespace, stream.name)))
        decision = decide(observed, JOB, self.now, scaling=self.scaling, shards=self.shards)
        for action in decision.actions:
            self._act(action)
        self.scaling, self.shards = decision.scaling, decision.shards
        if decision.status is not None and self.lakestream is not None:
            self.lakestream["status"] = decision.status.model_dump(mode="json", by_alias=True)
        return decision

    def restart_operator(self) -> None:
        """It forgets all that it did not write down."""
        self.scaling, self.shards = {}, None
        self.cache = Cache()

    @property
    def status(self) -> LakeStreamStatus:
        assert self.lakestream is not None
        return LakeStreamStatus.model_validate(self.lakestream["status"])

    # The API server.

    def _admit(self, manifest: Object) -> Object:
        self._uids += 1
        manifest["metadata"] |= {
            "uid": f"uid-{self._uids}",
            "generation": 1,
            "resourceVersion": str(self._uids),
            "creationTimestamp": self.now.isoformat(),
        }
        return manifest

    def _touch(self, manifest: Object) -> None:
        self._uids += 1
        manifest["metadata"]["resourceVersion"] = str(self._uids)

    def _act(self, action: Action) -> None:
        match action:
            case Apply(manifest):
                assert manifest["kind"] != Kind.SparkApplication.name, "a change of its spec would end the driver"
                self._apply(manifest)
            case Create(manifest):
                reference = Reference.of(manifest)
                if reference not in self.objects:
                    self.objects[reference] = self._admit(copy.deepcopy(dict(manifest)))
                self.cache.put(reference.kind, self.objects[reference])
            case Delete(reference, uid):
                known = self.objects.get(reference)
                if known is not None and known["metadata"]["uid"] == uid:
                    self._delete(reference)
                self._show(reference)
            case Finalize(present):
                assert self.lakestream is not None
                self.lakestream["metadata"]["finalizers"] = [FINALIZER] if present else []
                self._let_go()
            case Emit():
                self.events.append(action)

    def _apply(self, manifest: Manifest) -> None:
        reference = Reference.of(manifest)
        if reference not in self.objects:
            self.objects[reference] = self._admit(copy.deepcopy(dict(manifest)))
        else:
            _merge(self.objects[reference], manifest)
            self._touch(self.objects[reference])
        self.cache.put(reference.kind, self.objects[reference])

    def _show(self, reference: Reference) -> None:
        """The answer to a write is seen, whatever the watches do."""
        if reference in self.objects:
            self.cache.put(reference.kind, self.objects[reference])
        else:
            self.cache.remove(reference)

    def _delete(self, reference: Reference) -> None:
        if reference.kind is Kind.Pod:
            pod = self.objects[reference]
            pod["metadata"].setdefault("deletionTimestamp", self.now.isoformat())
            self._touch(pod)
        else:
            del self.objects[reference]

    def _let_go(self) -> None:
        assert self.lakestream is not None
        metadata = self.lakestream["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.lakestream = None
            for reference in list(self.objects):
                if reference in self.objects:
                    self._delete(reference)

    # The Spark Operator.

    def _spark_operator_acts(self) -> None:
        for app in self.find(Kind.SparkApplication) if self.spark_operator else []:
            status = app.setdefault("status", {})
            state = status.get("applicationState", {}).get("state", "")
            pod = self.objects.get(self._driver_pod(app))
            if state == "" or (state == "INVALIDATING" and pod is None):
                self._submit(app, pod)
            elif state == "INVALIDATING":
                self._delete(self._driver_pod(app))
            elif state not in ("COMPLETED", "FAILED"):
                self._follow(app, pod)

    def _driver_pod(self, app: Object) -> Reference:
        metadata = app["metadata"]
        return Reference(Kind.Pod, metadata["namespace"], f"{metadata['name']}-driver")

    def _submit(self, app: Object, pod: Object | None) -> None:
        if pod is not None:
            self._state(app, "FAILED", "failed to run spark-submit: driver pod already exist")
            return
        metadata = app["metadata"]
        owner = {"kind": Kind.SparkApplication.name, "name": metadata["name"], "uid": metadata["uid"]}
        reference = self._driver_pod(app)
        self.objects[reference] = self._admit(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": reference.name,
                    "namespace": reference.namespace,
                    "labels": dict(metadata["labels"]),
                    "ownerReferences": [owner],
                    "annotations": {FINGERPRINT_ANNOTATION: metadata["annotations"][FINGERPRINT_ANNOTATION]},
                },
                "status": {"phase": "Pending"},
            }
        )
        app["status"]["executionAttempts"] = 1
        self._state(app, "SUBMITTED")

    def _follow(self, app: Object, pod: Object | None) -> None:
        if pod is None:
            self._state(app, "FAILED", "driver pod not found")
            return
        phases = {"Pending": "SUBMITTED", "Running": "RUNNING", "Succeeded": "COMPLETED", "Failed": "FAILED"}
        self._state(app, phases[pod["status"]["phase"]])

    def _state(self, app: Object, state: str, message: str = "") -> None:
        before = app["status"].get("applicationState")
        app["status"]["applicationState"] = {"state": state, "errorMessage": message}
        if before != app["status"]["applicationState"]:
            self._touch(app)

    def change_application(self, reference: Reference) -> None:
        """A person edits a SparkApplication: the Spark Operator ends its driver and submits it again."""
        app = self.objects.get(reference)
        if app is None:
            return
        app["metadata"]["generation"] += 1
        self._touch(app)
        if app.get("status", {}).get("applicationState", {}).get("state"):
            app["status"]["applicationState"] = {"state": "INVALIDATING"}

    # The kubelet, and the garbage collector.

    def _kubelet_acts(self) -> None:
        for pod in self.find(Kind.Pod):
            metadata = pod["metadata"]
            (owner,) = metadata["ownerReferences"]
            app = self.objects.get(Reference(Kind.SparkApplication, metadata["namespace"], owner["name"]))
            if app is None or app["metadata"]["uid"] != owner["uid"]:
                metadata.setdefault("deletionTimestamp", self.now.isoformat())
                self._touch(pod)
            self._run(pod)

    def _run(self, pod: Object) -> None:
        metadata, status = pod["metadata"], pod["status"]
        reference = Reference(Kind.Pod, metadata["namespace"], metadata["name"])
        driver = self.drivers.get(metadata["uid"])
        if driver is None:
            if "deletionTimestamp" in metadata:
                del self.objects[reference]
                return
            if self._starts(pod):
                status |= {"phase": "Running", "containerStatuses": [_running(self.now)]}
                self._touch(pod)
            return
        if driver.exit is None:
            driver.terminated = driver.terminated or "deletionTimestamp" in metadata
            killed = driver.terminated and driver.behaviour is not Behaviour.WELL
            driver.exit = (137, "") if killed else driver.exit
            driver.step(self.now, self._control(pod))
            self._publish(driver, metadata["namespace"])
        if driver.exit is not None and status["phase"] == "Running":
            code, message = driver.exit
            status |= {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [_ended(self.now, code, message)],
            }
            self._touch(pod)
        if driver.exit is not None and "deletionTimestamp" in metadata:
            del self.objects[reference]

    def _starts(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        fingerprint = metadata["annotations"][FINGERPRINT_ANNOTATION]
        behaviour = self.behaviour(fingerprint)
        if behaviour is Behaviour.UNSCHEDULABLE:
            return False
        labels = metadata["labels"]
        writer = labels[STREAM_LABEL], labels[WRITER_LABEL]
        driver = Driver(*writer, metadata["uid"], fingerprint, self.now, behaviour, self.kinesis)
        self.drivers[driver.pod_uid] = driver
        self.started.append(driver)
        return True

    def _config_map(self, namespace: str, name: str) -> Object | None:
        return self.objects.get(Reference(Kind.ConfigMap, namespace, name))

    def _control(self, pod: Object) -> Control | None:
        labels = pod["metadata"]["labels"]
        names = WriterNames(labels[STREAM_LABEL], labels[WRITER_LABEL])
        found = self._config_map(pod["metadata"]["namespace"], names.control)
        return Control.model_validate_json(found["data"][CONTROL_KEY]) if found else None

    def _publish(self, driver: Driver, namespace: str) -> None:
        found = self._config_map(namespace, WriterNames(driver.stream, driver.writer).progress)
        if found is not None and driver.report is not None:
            found["data"] = {REPORT_KEY: driver.report.model_dump_json()}
            self._touch(found)


def _merge(live: Object, wanted: Manifest) -> None:
    for key, value in wanted.items():
        if isinstance(value, Mapping) and isinstance(live.get(key), dict):
            _merge(live[key], value)
        else:
            live[key] = copy.deepcopy(value)


def _running(now: datetime) -> Object:
    return {"name": "spark-kubernetes-driver", "state": {"running": {"startedAt": now.isoformat()}}}


def _ended(now: datetime, code: int, message: str) -> Object:
    ended = {"exitCode": code, "message": message, "startedAt": now.isoformat(), "finishedAt": now.isoformat()}
    return {"name": "spark-kubernetes-driver", "state": {"terminated": ended}}
