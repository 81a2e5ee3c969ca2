"""Whatever happens to a LakeStream, its cluster and its operator: never two drivers, and all is well in the end."""

import copy
import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lakestream_api import Phase, WriterNames
from lakestream_api.names import FINGERPRINT_ANNOTATION, REPORT_KEY, STREAM_LABEL, WRITER_LABEL
from lakestream_operator.model import Kind, Reference
from lakestream_operator.testing import Behaviour, Cluster, Mood, lakestream

WRITERS = ("json", "hudi")
# A driver that hangs is left alone for 10 minutes, as is the pod of an unschedulable one.
LONG = timedelta(minutes=45)
# What may still come when all is well: shards are left to change as slowly as they do.
REASONS = ("Recovered", "Running", "Resharding", "ReshardingRefused")
BLINDABLE = (Kind.SparkApplication, Kind.Pod, Kind.ConfigMap)
MOODY = (Kind.SparkApplication, Kind.ConfigMap, Kind.RoleBinding, Kind.LakeStream, Kind.Event)
QUOTA = Reference(Kind.ResourceQuota, "lake", "small")
TAKEN = (Kind.SparkApplication, Kind.ConfigMap, Kind.ServiceAccount)


class OperatorMachine(RuleBasedStateMachine):
    """Two writers under an operator, and everything that may happen to them."""

    @initialize()
    def apply(self) -> None:
        self.intervals = iter(range(11, 10_000))
        self.behaviours: dict[str, Behaviour] = {}
        self.foreign: dict[Reference, dict[str, Any]] = {}
        self.may_be_silent = False
        self.cluster = Cluster(
            lakestream(writers=WRITERS), behaviour=lambda one: self.behaviours.get(one, Behaviour.WELL)
        )

    def _names(self, writer: str) -> WriterNames:
        return WriterNames("orders", writer)

    def _there(self) -> bool:
        return self.cluster.lakestream is not None

    def _living(self) -> bool:
        return self._there() and "deletionTimestamp" not in self.cluster.lakestream["metadata"]

    def _edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        if self._living():
            self.cluster.edit(change)

    @rule(seconds=st.sampled_from([5, 30, 120, 700]))
    def time_passes(self, seconds: int) -> None:
        told, started = len(self.cluster.events), len(self.cluster.started)
        self.cluster.advance(timedelta(seconds=seconds), step=timedelta(seconds=5 if seconds < 100 else 15))
        counts = Counter(one.reason for one in self.cluster.events[told:])
        # What lasts is told once: of the LakeStream, and of each driver.
        assert counts["SpecInvalid"] <= 1
        # Within 700 s.
        assert counts["SparkApplicationChanged"] <= 2 * len(WRITERS)
        assert counts["ResourceStarved"] <= len(WRITERS) + len(self.cluster.started) - started

    @rule()
    def operator_is_away(self) -> None:
        self.cluster.advance(timedelta(minutes=2), operator=False)
        self.cluster.restart_operator()

    @rule()
    def spec_changes(self) -> None:
        self._edit(lambda spec: spec["trigger"].update(interval=f"{next(self.intervals)}s"))

    @rule(suspend=st.booleans())
    def suspend_changes(self, suspend: bool) -> None:
        self._edit(lambda spec: spec.update(suspend=suspend))

    @rule(rollback=st.booleans())
    def rollback_changes(self, rollback: bool) -> None:
        self._edit(lambda spec: spec.update(rollback=rollback))

    @rule(maximum=st.integers(1, 30))
    def scaling_changes(self, maximum: int) -> None:
        # What else there was to be done is done first.
        before = None
        while before != (before := self._applications()):
            self.cluster.reconcile()
        refused = bool(self.cluster.refusals)
        self._edit(lambda spec: spec.update(scaling={"maxExecutors": maximum}))
        self.cluster.reconcile()
        # What was refused is tried anew with another spec, the end of a driver too.
        assert refused or self._applications().items() >= before.items(), "scaling ended a driver"

    @rule(shards=st.none() | st.integers(1, 16))
    def shards_change(self, shards: int | None) -> None:
        bounds = None if shards is None else {"min": shards, "max": 2 * shards}
        self._edit(lambda spec: spec["source"]["kinesis"].update(shards=bounds))

    @rule(refusal=st.sampled_from(["", "LimitExceededException"]), updating=st.booleans())
    def kinesis_turns(self, refusal: str, updating: bool) -> None:
        self.cluster.kinesis.refusal, self.cluster.kinesis.updating = refusal, updating

    @rule()
    def spec_becomes_invalid(self) -> None:
        self._edit(lambda spec: spec.update(checkpoint=spec["writers"][0]["json"]["path"]))

    @rule(room=st.integers(1, 3))
    def quota_is_full(self, room: int) -> None:
        """Executors that have gone do not come back."""
        self._empty_quota()
        full = {"hard": {"pods": "5"}, "used": {"pods": "5"}}
        metadata = {"name": QUOTA.name, "namespace": QUOTA.namespace}
        self.cluster.api.admit({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "status": full})
        for driver in self.cluster.running():
            driver.room = room
        self._edit(lambda spec: spec.update(scaling={"executors": room + 1}))

    @rule()
    def quota_is_raised(self) -> None:
        self._empty_quota()

    def _empty_quota(self) -> None:
        self.cluster.delete(QUOTA)
        for driver in self.cluster.running():
            driver.room = 1000

    @rule(mood=st.sampled_from([Mood.REFUSES, Mood.OVERLOADED]), invalid=st.booleans())
    def something_is_wrong_and_no_status_can_be_written(self, mood: Mood, invalid: bool) -> None:
        self.cluster.api.moods[Kind.LakeStream] = mood
        if invalid:
            self.spec_becomes_invalid()
        else:
            self.quota_is_full(room=2)
        self.time_passes(120)

    @rule()
    def crd_becomes_newer(self) -> None:
        """The API server writes a new field's default into what it reads, without a new generation."""
        if self._living():
            self.cluster.lakestream["spec"]["trigger"]["newField"] = False
            self.cluster.api.touch(self.cluster.lakestream)

    @rule()
    def writer_is_removed(self) -> None:
        self._edit(lambda spec: spec.update(writers=spec["writers"][:1]))

    @rule()
    def writer_is_added(self) -> None:
        self._edit(lambda spec: spec.update(writers=lakestream(writers=WRITERS)["spec"]["writers"]))

    @rule(writer=st.sampled_from(WRITERS))
    def application_is_deleted(self, writer: str) -> None:
        self._delete(Reference(Kind.SparkApplication, "lake", self._names(writer).application))

    @rule(writer=st.sampled_from(WRITERS))
    def application_is_edited(self, writer: str) -> None:
        reference = Reference(Kind.SparkApplication, "lake", self._names(writer).application)
        if reference not in self.foreign:
            self.cluster.change_application(reference)

    @rule(edits=st.booleans())
    def something_edits_each_application(self, edits: bool) -> None:
        self.cluster.edits = edits

    @rule(writer=st.sampled_from(WRITERS))
    def pod_is_deleted(self, writer: str) -> None:
        self._delete(Reference(Kind.Pod, "lake", self._names(writer).driver_pod))

    @rule(writer=st.sampled_from(WRITERS), which=st.sampled_from(["control", "progress", "document"]))
    def config_map_is_deleted(self, writer: str, which: str) -> None:
        self._delete(Reference(Kind.ConfigMap, "lake", getattr(self._names(writer), which)))

    @rule(writer=st.sampled_from(WRITERS))
    def control_is_spoilt(self, writer: str) -> None:
        reference = Reference(Kind.ConfigMap, "lake", self._names(writer).control)
        found = self.cluster.objects.get(reference)
        if found is not None and reference not in self.foreign:
            found["metadata"]["annotations"] = {
                "lakestream.dev/memory": "{}}",
                "lakestream.dev/scaling-state": "?",
                "lakestream.dev/shards-state": "?",
            }
            self.cluster.api.touch(found)

    @rule(writer=st.sampled_from(WRITERS), report=st.sampled_from(["", "{", '{"state": "Wonderful"}']))
    def report_is_spoilt(self, writer: str, report: str) -> None:
        found = self.cluster.objects.get(Reference(Kind.ConfigMap, "lake", self._names(writer).progress))
        if found is not None:
            found["data"] = {REPORT_KEY: report}
            self.cluster.api.touch(found)

    @rule(
        writer=st.sampled_from(WRITERS),
        told=st.sampled_from([("lagSeconds", 1e12), ("records", 10**400), ("horizon", "0001-01-01T00:00:00Z")]),
    )
    def report_says_what_cannot_be(self, writer: str, told: tuple[str, object]) -> None:
        found = self.cluster.objects.get(Reference(Kind.ConfigMap, "lake", self._names(writer).progress))
        said = (found or {}).get("data", {}).get(REPORT_KEY, "")
        if found is not None and '"batches":[{' in said:
            report = json.loads(said)
            report["batches"][-1].update([told])
            found["data"] = {REPORT_KEY: json.dumps(report)}
            self.cluster.api.touch(found)

    @rule(kind=st.sampled_from(Behaviour))
    def drivers_turn(self, kind: Behaviour) -> None:
        self.may_be_silent |= kind in (Behaviour.HANGS, Behaviour.ALONE)
        for driver in self.cluster.running():
            driver.behaviour = kind
            self.behaviours[driver.fingerprint] = kind

    @rule(lacks=st.sampled_from([set(), {"template"}]))
    def definition_of_applications_changes(self, lacks: set[str]) -> None:
        self.cluster.api.lacks = lacks

    @rule()
    def spark_operator_comes_or_goes(self) -> None:
        self.cluster.spark_operator = not self.cluster.spark_operator

    @rule(kind=st.sampled_from(BLINDABLE))
    def watch_falls_silent(self, kind: Kind) -> None:
        self.may_be_silent |= kind is Kind.ConfigMap
        self.cluster.blind = {kind}

    @rule(
        ahead=st.sampled_from([timedelta(), timedelta(minutes=-11), timedelta(minutes=11), timedelta(days=1)]),
        tells_time=st.booleans(),
    )
    def operators_clock_is_set(self, ahead: timedelta, *, tells_time: bool) -> None:
        self.cluster.ahead, self.cluster.tells_time = ahead, tells_time

    @rule(ahead=st.sampled_from([timedelta(), timedelta(minutes=-12), timedelta(minutes=12)]))
    def drivers_start_on_a_node_of_another_clock(self, ahead: timedelta) -> None:
        self.cluster.node_ahead = ahead

    @rule()
    def watches_are_back(self) -> None:
        self.cluster.blind = set()

    @rule(kind=st.sampled_from(MOODY), mood=st.sampled_from(Mood))
    def api_server_turns(self, kind: Kind, mood: Mood) -> None:
        self.may_be_silent |= kind is Kind.ConfigMap
        self.cluster.api.moods[kind] = mood

    @rule(writer=st.sampled_from(WRITERS), kind=st.sampled_from(TAKEN), which=st.sampled_from(["control", "document"]))
    def name_is_taken(self, writer: str, kind: Kind, which: str) -> None:
        """Someone else has an object of a name that we need, and has put it there while there was none."""
        names = self._names(writer)
        name = getattr(names, which) if kind is Kind.ConfigMap else names.application
        reference = Reference(kind, "lake", name)
        if reference not in self.cluster.objects:
            metadata = {"name": name, "namespace": "lake", "labels": {"app": "theirs"}}
            theirs = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
            self.foreign[reference] = copy.deepcopy(self.cluster.api.admit(theirs))

    def _delete(self, reference: Reference) -> None:
        self.foreign.pop(reference, None)
        self.cluster.delete(reference)

    @precondition(lambda self: self._living())
    @rule()
    def deletes(self) -> None:
        self.cluster.delete_lakestream()

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.all_is_well_in_the_end()

    def all_is_well_in_the_end(self) -> None:
        self._mend()
        self.cluster.advance(LONG, step=timedelta(seconds=20))
        if not self._there():
            assert self.cluster.objects == {}, "what was made for it is gone"
            return
        assert self._living(), "a LakeStream was not let go"
        spec, phase = self.cluster.lakestream["spec"], self.cluster.status.phase
        if spec.get("suspend"):
            assert self.cluster.running() == []
        elif not self._invalid():
            assert phase is Phase.RUNNING, self.cluster.status
            wanted = {writer["name"] for writer in spec["writers"]}
            assert {driver.writer for driver in self.cluster.running()} == wanted
            lag = self.cluster.status.lag
            knows_time = abs(self.cluster.clock() - self.cluster.now) < timedelta(minutes=1)
            assert not knows_time or (lag is not None and lag <= timedelta(minutes=1))
            self._nothing_happens_without_a_reason()

    def _mend(self) -> None:
        """Take away what stands in the way of being well."""
        self.behaviours.clear()
        self.cluster.blind = set()
        self.cluster.spark_operator = True
        self.cluster.edits = False
        self._empty_quota()
        self.cluster.api.moods.clear()
        self.cluster.api.lacks = set()
        for reference in list(self.foreign):
            self._delete(reference)
        for driver in self.cluster.running():
            driver.behaviour = Behaviour.WELL
        # Those that were refused are tried with a new spec only.
        self._edit(lambda spec: spec["trigger"].update(interval=f"{next(self.intervals)}s"))

    def _invalid(self) -> bool:
        assert self.cluster.lakestream is not None
        spec = self.cluster.lakestream["spec"]
        return spec["checkpoint"] == spec["writers"][0]["json"]["path"]

    def _applications(self) -> dict[str, str]:
        return {one["metadata"]["name"]: one["metadata"]["uid"] for one in self.cluster.find(Kind.SparkApplication)}

    def _nothing_happens_without_a_reason(self) -> None:
        before, told = self._applications(), len(self.cluster.events)
        self.cluster.restart_operator()
        self.cluster.advance(timedelta(minutes=30), step=timedelta(seconds=30))
        assert self._applications() == before, self.cluster.events[told:]
        assert not [one for one in self.cluster.events[told:] if one.reason not in REASONS]

    @invariant()
    def one_driver_at_most(self) -> None:
        drivers = [driver.writer for driver in self.cluster.running()]
        assert len(drivers) == len(set(drivers))

    @invariant()
    def who_is_not_silent_is_not_ended_for_it(self) -> None:
        assert self.may_be_silent or "NoProgress" not in [one.reason for one in self.cluster.events]

    @invariant()
    def what_is_not_ours_is_not_touched(self) -> None:
        for reference, foreign in self.foreign.items():
            assert self.cluster.objects[reference] == foreign

    @invariant()
    def shards_are_at_most_doubled_or_halved(self) -> None:
        kinesis = self.cluster.kinesis
        for before, after in pairwise([4, *kinesis.resharded]):
            assert before / 2 <= after <= 2 * before

    @invariant()
    def each_pod_has_the_document_of_its_application(self) -> None:
        for app in self.cluster.find(Kind.SparkApplication):
            assert "spec" not in app or app["spec"]["driver"]["template"]
        for pod in self.cluster.find(Kind.Pod):
            (owner,) = pod["metadata"]["ownerReferences"]
            # An executor's driver has it.
            assert owner["kind"] == Kind.Pod.name or pod["metadata"]["annotations"][FINGERPRINT_ANNOTATION]
            assert {STREAM_LABEL, WRITER_LABEL} <= pod["metadata"]["labels"].keys()


OperatorMachine.TestCase.settings = settings(max_examples=settings().max_examples * 3 // 20, stateful_step_count=20)
TestOperator = OperatorMachine.TestCase
