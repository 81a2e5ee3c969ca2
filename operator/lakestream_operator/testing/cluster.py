"""The cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import InitVar, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from lakestream_api import Control, LakeStreamStatus, WriterNames
from lakestream_api.names import CONTROL_KEY, FINGERPRINT_ANNOTATION, REPORT_KEY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.adapters.applier import Applier
from lakestream_operator.adapters.cache import WATCHED, Cache
from lakestream_operator.attempts import attempt
from lakestream_operator.clock import ServerClock
from lakestream_operator.decide import Decision, Remembered, decide
from lakestream_operator.errors import OperatorError
from lakestream_operator.model import Action, Emit, Heard, Kind, Observed, Reference, Refusal
from lakestream_operator.observer import listen, stream_of, trim
from lakestream_operator.settings import JobSettings
from lakestream_operator.testing.api import ModelApi, Object
from lakestream_operator.testing.drivers import Behaviour, Driver, KinesisStream

JOB = JobSettings(image="lakestream/spark:test", cluster_role="lakestream-driver")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
UNSCHEDULABLE = "0/3 nodes are available: 3 Insufficient memory."
"""What executors' pods say that wait for a node."""

T = TypeVar("T")


@dataclass(slots=True)
class Cluster:
    """An API server with one LakeStream, a Spark Operator, a kubelet and drivers; time passes by `advance` alone."""

    document: InitVar[Object]
    """The LakeStream, as a person applies it."""
    behaviour: Callable[[str], Behaviour] = lambda _: Behaviour.WELL
    """What becomes of a driver, by the fingerprint of its document."""
    now: datetime = BEGIN
    api: ModelApi = field(init=False)
    drivers: dict[str, Driver] = field(default_factory=dict)
    """By uid of the pod."""
    started: list[Driver] = field(default_factory=list)
    """All drivers that ever ran."""
    job: JobSettings = JOB
    """How drivers are made."""
    spark_operator: bool = True
    """Whether it runs."""
    edits: bool = False
    """Whether somebody edits each SparkApplication once its driver runs, as an admission policy may."""
    kubelet: bool = True
    """Whether the pods' node does."""
    blind: set[Kind] = field(default_factory=set)
    """Kinds whose watches say nothing: the operator sees them as they were."""
    ahead: timedelta = timedelta()
    """How far the clock of the operator's node is ahead of all others."""
    tells_time: bool = True
    """Whether answers of the API server do."""
    clock: ServerClock = field(init=False)
    """What the operator goes by."""
    node_ahead: timedelta = timedelta()
    """The same of the nodes of drivers that start."""
    kinesis: KinesisStream = field(default_factory=KinesisStream)
    remembered: Remembered = field(default_factory=Remembered)
    heard: Mapping[str, Heard | None] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    cache: Cache = field(default_factory=Cache)
    _reference: Reference = field(init=False)

    def __post_init__(self, document: Object) -> None:
        self.api = ModelApi(lambda: self.now)
        self.clock = ServerClock(lambda: self.now + self.ahead)
        self._reference = Reference.of(self.api.admit(document))

    @property
    def lakestream(self) -> Object | None:
        """The LakeStream; None once it is gone."""
        return self.api.objects.get(self._reference)

    @property
    def objects(self) -> dict[Reference, Object]:
        """All that was made for it, and what others have."""
        kinds = (Kind.LakeStream, Kind.Event)
        return {reference: one for reference, one in self.api.objects.items() if reference.kind not in kinds}

    @property
    def events(self) -> list[Emit]:
        """What was told, in order."""
        return [
            Emit(one["reason"], one["message"], one["type"] == "Warning")
            for reference, one in self.api.objects.items()
            if reference.kind is Kind.Event
        ]

    # What a person does.

    def edit(self, change: Callable[[Object], None]) -> None:
        """Change the LakeStream's spec."""
        assert self.lakestream is not None
        change(self.lakestream["spec"])
        self.lakestream["metadata"]["generation"] += 1
        self.api.touch(self.lakestream)

    def delete_lakestream(self) -> None:
        assert self.lakestream is not None
        self.lakestream["metadata"]["deletionTimestamp"] = self.now.isoformat()
        self.lakestream["metadata"]["generation"] += 1
        self.api.touch(self.lakestream)
        self._let_go()

    def delete(self, reference: Reference) -> None:
        """Delete an object behind the operator's back."""
        if reference in self.api.objects:
            self.api.remove(reference)

    def find(self, kind: Kind) -> list[Object]:
        """All objects of a kind."""
        return [one for reference, one in self.api.objects.items() if reference.kind is kind]

    def running(self) -> list[Driver]:
        """The drivers whose processes live."""
        return [one for one in self.drivers.values() if one.exit is None]

    # What passes.

    def advance(self, duration: timedelta, *, step: timedelta = timedelta(seconds=10), operator: bool = True) -> None:
        """Let time pass, with a look of the operator at each step."""
        end = self.now + duration
        while self.now < end:
            self.now += step
            self._spark_operator_acts()
            self._kubelet_acts()
            if operator:
                self.reconcile()

    def reconcile(self) -> Decision | None:
        """A cycle of the operator, and more as long as it is refused something else."""
        decision, before = None, None
        while self.lakestream is not None and before != self.refusals:
            before = self.refusals
            decision = self._cycle(self.lakestream)
        return decision

    def _cycle(self, lakestream: Object) -> Decision:
        self._watches_tell()
        stream = stream_of(trim(Kind.LakeStream, lakestream))
        applier = Applier(self.api, self.cache, "model")
        if self.tells_time:
            self.clock.hear(self.now, self.clock())
        now = self.clock()
        writers = listen(self.cache.writers((stream.namespace, stream.name)), self.heard, now)
        self.heard = {name: seen.heard for name, seen in writers.items()}
        observed = Observed(stream, writers, refusals=self.refusals, quotas=_done(applier.quotas(stream)))
        decision = decide(observed, self.job, now, self.remembered)

        async def act(action: Action) -> None:
            await applier.act(stream, action, now)

        done = _done(attempt(observed, decision.actions, act, now, chance=0))
        self._let_go()
        self.refusals = done.refusals
        self.remembered = done.remembered(decision, self.remembered)
        if decision.status not in (None, stream.status) and self.lakestream is not None:
            with suppress(OperatorError):
                _done(applier.write_status(stream, decision.status))
        return decision

    def _watches_tell(self) -> None:
        told = WATCHED.keys() - self.blind - {Kind.LakeStream}
        for reference, one in self.api.objects.items():
            if reference.kind in told:
                self.cache.put(reference.kind, one)
        for reference in self.cache.versions().keys() - self.api.objects.keys():
            if reference.kind in told:
                self.cache.remove(reference)

    def restart_operator(self) -> None:
        """It forgets all that it did not write down."""
        self.remembered, self.refusals, self.heard = Remembered(), {}, {}
        self.cache = Cache()

    @property
    def status(self) -> LakeStreamStatus:
        assert self.lakestream is not None
        return LakeStreamStatus.model_validate(self.lakestream["status"])

    def _let_go(self) -> None:
        """What the API server and its garbage collector do once nothing keeps the LakeStream."""
        if self.lakestream is None:
            return
        metadata = self.lakestream["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self.api.objects[self._reference]
            for reference, one in list(self.api.objects.items()):
                if any(owner["uid"] == metadata["uid"] for owner in one["metadata"].get("ownerReferences", ())):
                    self.api.remove(reference)

    # The Spark Operator.

    def _spark_operator_acts(self) -> None:
        for app in self.find(Kind.SparkApplication) if self.spark_operator else []:
            if FINGERPRINT_ANNOTATION not in app["metadata"].get("annotations", {}):
                continue  # another one's; its pods are as well
            status = app.setdefault("status", {})
            state = status.get("applicationState", {}).get("state", "")
            pod = self.api.objects.get(self._driver_pod(app))
            if state == "" or (state == "INVALIDATING" and pod is None):
                self._submit(app, pod)
            elif state == "INVALIDATING":
                self.api.remove(self._driver_pod(app))
            elif state not in ("COMPLETED", "FAILED"):
                self._follow(app, pod)

    def _driver_pod(self, app: Object) -> Reference:
        metadata = app["metadata"]
        return Reference(Kind.Pod, metadata["namespace"], f"{metadata['name']}-driver")

    def _submit(self, app: Object, pod: Object | None) -> None:
        if pod is not None:
            self._state(app, "FAILED", "failed to run spark-submit: driver pod already exist")
            return
        fingerprint = app["metadata"]["annotations"][FINGERPRINT_ANNOTATION]
        self._make_pod(self._driver_pod(app), Kind.SparkApplication, app, {FINGERPRINT_ANNOTATION: fingerprint})
        app["status"]["executionAttempts"] = 1
        self._state(app, "SUBMITTED")

    def _follow(self, app: Object, pod: Object | None) -> None:
        if pod is None:
            self._state(app, "FAILED", "driver pod not found")
            return
        phases = {"Pending": "SUBMITTED", "Running": "RUNNING", "Succeeded": "COMPLETED", "Failed": "FAILED"}
        self._state(app, phases[pod["status"]["phase"]])
        if self.edits and pod["status"]["phase"] == "Running" and app["metadata"]["generation"] == 1:
            app["metadata"]["generation"] += 1
            self.api.touch(app)

    def _state(self, app: Object, state: str, message: str = "") -> None:
        before = app["status"].get("applicationState")
        app["status"]["applicationState"] = {"state": state, "errorMessage": message}
        if before != app["status"]["applicationState"]:
            self.api.touch(app)

    def change_application(self, reference: Reference) -> None:
        """A person edits a SparkApplication: the Spark Operator ends its driver and submits it again."""
        app = self.api.objects.get(reference)
        if app is None:
            return
        app["metadata"]["generation"] += 1
        self.api.touch(app)
        if app.get("status", {}).get("applicationState", {}).get("state"):
            app["status"]["applicationState"] = {"state": "INVALIDATING"}

    # The kubelet, and the garbage collector.

    def _kubelet_acts(self) -> None:
        for pod in self.find(Kind.Pod):
            metadata = pod["metadata"]
            (owner,) = metadata["ownerReferences"]
            if owner["kind"] == Kind.Pod.name:
                continue  # an executor's, which goes with its driver
            app = self.api.objects.get(Reference(Kind.SparkApplication, metadata["namespace"], owner["name"]))
            if app is None or app["metadata"]["uid"] != owner["uid"]:
                metadata.setdefault("deletionTimestamp", self.now.isoformat())
                self.api.touch(pod)
            if self.kubelet:
                self._run(pod)

    def _run(self, pod: Object) -> None:
        metadata, status = pod["metadata"], pod["status"]
        reference = Reference(Kind.Pod, metadata["namespace"], metadata["name"])
        driver = self.drivers.get(metadata["uid"])
        if driver is None:
            if "deletionTimestamp" in metadata:
                del self.api.objects[reference]
                return
            if self._starts(pod):
                status |= {"phase": "Running", "containerStatuses": [_running(self.now)]}
                self.api.touch(pod)
            return
        if driver.exit is None:
            driver.terminated = driver.terminated or "deletionTimestamp" in metadata
            killed = driver.terminated and driver.behaviour is not Behaviour.WELL
            driver.exit = (137, "") if killed else driver.exit
            driver.step(self.now, self._control(pod))
            self._publish(driver, metadata["namespace"])
        self._have_executor_wait(pod, waits=driver.exit is None and driver.behaviour is Behaviour.ALONE)
        if driver.exit is not None and status["phase"] == "Running":
            code, message = driver.exit
            status |= {
                "phase": "Failed" if code else "Succeeded",
                "containerStatuses": [_ended(self.now, code, message)],
            }
            self.api.touch(pod)
        if driver.exit is not None and "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            del self.api.objects[reference]

    def _have_executor_wait(self, driver_pod: Object, *, waits: bool) -> None:
        metadata = driver_pod["metadata"]
        reference = Reference(Kind.Pod, metadata["namespace"], f"{metadata['name']}-exec-1")
        if not waits:
            self.api.objects.pop(reference, None)
        elif reference not in self.api.objects:
            condition = {"type": "PodScheduled", "status": "False", "message": UNSCHEDULABLE}
            self._make_pod(reference, Kind.Pod, driver_pod, {}, condition)

    def _make_pod(
        self, reference: Reference, kind: Kind, owner: Object, annotations: dict[str, str], *conditions: Object
    ) -> None:
        """One that is pending, with the labels of its owner, which is of that kind."""
        metadata = owner["metadata"]
        self.api.admit(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": reference.name,
                    "namespace": reference.namespace,
                    "labels": dict(metadata["labels"]),
                    "ownerReferences": [{"kind": kind.name, "name": metadata["name"], "uid": metadata["uid"]}],
                    "annotations": annotations,
                },
                "status": {"phase": "Pending", "conditions": [*conditions]},
            }
        )

    def _starts(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        fingerprint = metadata["annotations"][FINGERPRINT_ANNOTATION]
        behaviour = self.behaviour(fingerprint)
        if behaviour is Behaviour.UNSCHEDULABLE:
            return False
        labels = metadata["labels"]
        writer = labels[STREAM_LABEL], labels[WRITER_LABEL]
        driver = Driver(*writer, metadata["uid"], fingerprint, self.now, behaviour, self.kinesis, self.node_ahead)
        self.drivers[driver.pod_uid] = driver
        self.started.append(driver)
        return True

    def _config_map(self, namespace: str, name: str) -> Object | None:
        return self.api.objects.get(Reference(Kind.ConfigMap, namespace, name))

    def _control(self, pod: Object) -> Control | None:
        labels = pod["metadata"]["labels"]
        names = WriterNames(labels[STREAM_LABEL], labels[WRITER_LABEL])
        found = self._config_map(pod["metadata"]["namespace"], names.control)
        return Control.model_validate_json(found["data"][CONTROL_KEY]) if found and "data" in found else None

    def _publish(self, driver: Driver, namespace: str) -> None:
        found = self._config_map(namespace, WriterNames(driver.stream, driver.writer).progress)
        data = {REPORT_KEY: driver.said} if driver.said else None
        if found is not None and data and data != found.get("data"):
            found["data"] = data
            found["metadata"]["managedFields"] = [{"manager": "lakestream", "time": self.now.isoformat()}]
            self.api.touch(found)


def _done(coroutine: Coroutine[Any, Any, T]) -> T:
    """What a coroutine returns that has nobody to wait for."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("it waits")


def _running(now: datetime) -> Object:
    return {"name": "spark-kubernetes-driver", "state": {"running": {"startedAt": now.isoformat()}}}


def _ended(now: datetime, code: int, message: str) -> Object:
    ended = {"exitCode": code, "message": message, "startedAt": now.isoformat(), "finishedAt": now.isoformat()}
    return {"name": "spark-kubernetes-driver", "state": {"terminated": ended}}
