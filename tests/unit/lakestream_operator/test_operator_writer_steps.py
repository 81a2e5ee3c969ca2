"""Each step of a writer, from what is seen."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakestream_api import DriverState, WriterNames
from lakestream_api.report import Failure
from lakestream_operator.model import (
    Application,
    Delete,
    Drain,
    DriverPod,
    Emit,
    Ending,
    Kind,
    Memory,
    PodPhase,
    Reference,
    Remade,
    Stream,
    WriterSeen,
)
from lakestream_operator.render import wanted_of
from lakestream_operator.testing import lakestream, report_of
from lakestream_operator.writers import Goal, Situation, Stop, decide_writer

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
NAMES = WriterNames("orders", "json")


def _stream(interval: str = "10s") -> Stream:
    manifest = lakestream()
    manifest["spec"]["trigger"]["interval"] = interval
    return Stream("lake", "orders", "uid", 1, False, True, manifest, None, "")


PLAN = wanted_of(_stream()).plans["json"]
OLD = wanted_of(_stream("30s")).plans["json"]
RUN = Goal("lake", NAMES, PLAN)
SUSPEND = Goal("lake", NAMES, None, Stop.SUSPENDED)

APP = Application("app-1", NOW - timedelta(hours=1), None, 1, PLAN.fingerprint, "RUNNING", "", True)
POD = DriverPod(
    "orders-json-driver",
    "pod-1",
    NOW - timedelta(hours=1),
    None,
    PodPhase.RUNNING,
    NOW - timedelta(hours=1),
    None,
    "",
    "app-1",
)
WELL = WriterSeen(application=APP, driver_pod=POD, report=report_of(NOW))
DELETE_APP = Delete(Reference(Kind.SparkApplication, "lake", "orders-json"), "app-1")
DELETE_POD = Delete(Reference(Kind.Pod, "lake", "orders-json-driver"), "pod-1")


def _ended(exit_status: int, message: str = "", **memory: object) -> WriterSeen:
    phase = PodPhase.FAILED if exit_status else PodPhase.SUCCEEDED
    return replace(
        WELL,
        application=replace(APP, state="FAILED" if exit_status else "COMPLETED"),
        driver_pod=replace(POD, phase=phase, exit=exit_status, message=message),
        memory=Memory.model_validate(memory),
    )


def _ending(retry_at: datetime | None, app: str = "app-1") -> Ending:
    message = "The stream cannot be reached."
    return Ending(application_uid=app, fingerprint=PLAN.fingerprint, at=NOW, exit=1, message=message, retry_at=retry_at)


def _app(**changes: object) -> WriterSeen:
    return replace(WELL, application=replace(APP, **changes))


def _pod(**changes: object) -> WriterSeen:
    return replace(WELL, driver_pod=replace(POD, **changes))


def _remade(minutes: int, app: str = "app-0") -> Remade:
    return Remade(application_uid=app, at=NOW - timedelta(minutes=minutes))


OTHER = replace(APP, fingerprint=OLD.fingerprint)
ASKED = Drain(id="SpecChanged-pod-1", pod_uid="pod-1", since=NOW - timedelta(minutes=1), reason="SpecChanged")
LONG_AGO = NOW - timedelta(minutes=11)

STEPS = {
    "nothing there: start": (RUN, WriterSeen(), Situation.STARTING, "Starting", []),
    "nothing there, suspended: rest": (SUSPEND, WriterSeen(), Situation.STOPPED, "Suspended", []),
    "the last driver's pod is ending: wait": (
        RUN,
        WriterSeen(driver_pod=replace(POD, deleting_since=NOW)),
        Situation.STOPPING,
        "Restarting",
        [],
    ),
    "a pod that lost its application: end it": (
        RUN,
        WriterSeen(driver_pod=POD),
        Situation.STOPPING,
        "Restarting",
        [DELETE_POD],
    ),
    "a young pod whose application was not seen yet: wait": (
        RUN,
        WriterSeen(driver_pod=replace(POD, created_at=NOW - timedelta(seconds=5))),
        Situation.STOPPING,
        "Restarting",
        [],
    ),
    "runs: leave it": (RUN, WELL, Situation.RUNNING, "Running", []),
    "being deleted: wait": (RUN, _app(deleting_since=NOW), Situation.STOPPING, "Restarting", []),
    "suspended: drain": (SUSPEND, WELL, Situation.DRAINING, "Suspended", []),
    "changed: drain": (RUN, replace(WELL, application=OTHER), Situation.DRAINING, "SpecChanged", []),
    "edited by hand: drain": (RUN, _app(generation=2), Situation.DRAINING, "SparkApplicationChanged", []),
    "edited, as the one before it just was: leave it": (
        RUN,
        replace(_app(generation=2), memory=Memory(remade=_remade(9))),
        Situation.RUNNING,
        "Running",
        [],
    ),
    "edited, as one before it once was: drain": (
        RUN,
        replace(_app(generation=2), memory=Memory(remade=_remade(11))),
        Situation.DRAINING,
        "SparkApplicationChanged",
        [],
    ),
    "edited and asked already: drain": (
        RUN,
        replace(_app(generation=2), memory=Memory(remade=_remade(1, "app-1"))),
        Situation.DRAINING,
        "SparkApplicationChanged",
        [],
    ),
    "edited, and its driver ended for it: delete": (
        RUN,
        replace(_ended(143), application=replace(APP, generation=2, state="FAILED")),
        Situation.STOPPING,
        "SparkApplicationChanged",
        [DELETE_APP],
    ),
    "edited again, and its driver ended for it: back off": (
        RUN,
        replace(_ended(143, remade=_remade(1)), application=replace(APP, generation=2, state="FAILED")),
        Situation.BACKING_OFF,
        "DriverFailed",
        [],
    ),
    "changed while it waits for its storage: delete": (
        RUN,
        replace(WELL, application=OTHER, report=report_of(NOW).model_copy(update={"epoch": None})),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "drained: delete": (
        RUN,
        replace(WELL, application=OTHER, report=report_of(NOW, state=DriverState.DRAINED)),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "asked and ended: delete": (
        RUN,
        replace(_ended(0), application=replace(OTHER, state="COMPLETED"), memory=Memory(drain=ASKED)),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "drains too long: delete": (
        RUN,
        replace(
            WELL, application=OTHER, memory=Memory(drain=ASKED.model_copy(update={"since": NOW - timedelta(minutes=6)}))
        ),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "changed before it said anything: delete": (
        RUN,
        replace(WELL, application=OTHER, report=None),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "changed while its pod waits: delete": (
        RUN,
        replace(WELL, application=OTHER, report=None, driver_pod=replace(POD, phase=PodPhase.PENDING)),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "asked, wanted again, ended: start anew": (
        RUN,
        replace(_ended(0), memory=Memory(drain=ASKED)),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "failed: back off": (RUN, _ended(1), Situation.BACKING_OFF, "DriverFailed", []),
    "killed: back off": (RUN, _ended(137), Situation.BACKING_OFF, "DriverKilled", []),
    "ended by itself: start again soon": (RUN, _ended(0), Situation.BACKING_OFF, "DriverEnded", []),
    "settings refused: no more": (RUN, _ended(2), Situation.BLOCKED, "SettingsRefused", []),
    "permanent error: now and then": (RUN, _ended(3), Situation.BACKING_OFF, "PermanentError", []),
    "fenced: wait": (RUN, _ended(4), Situation.BACKING_OFF, "Fenced", []),
    "data lost: no more": (RUN, _ended(5), Situation.BLOCKED, "DataLoss", []),
    "failed and waited: delete": (
        RUN,
        _ended(1, failures=1, ending=_ending(NOW)),
        Situation.STOPPING,
        "DriverLost",
        [DELETE_APP],
    ),
    "failed, too early: wait": (
        RUN,
        _ended(1, failures=1, ending=_ending(NOW + timedelta(seconds=1))),
        Situation.BACKING_OFF,
        "DriverLost",
        [],
    ),
    "refused before: still no more": (
        RUN,
        _ended(2, failures=1, ending=_ending(None)),
        Situation.BLOCKED,
        "DriverLost",
        [],
    ),
    "refused, then changed: delete": (
        Goal("lake", NAMES, OLD),
        _ended(2, failures=1, ending=_ending(None)),
        Situation.STOPPING,
        "SpecChanged",
        [DELETE_APP],
    ),
    "failed, then suspended: delete": (SUSPEND, _ended(1), Situation.STOPPING, "Suspended", [DELETE_APP]),
    "not submitted: back off": (
        RUN,
        WriterSeen(application=replace(APP, state="FAILED", submitted=False, message="no such image")),
        Situation.BACKING_OFF,
        "SubmissionFailed",
        [],
    ),
    "pod gone, application says so: back off": (
        RUN,
        WriterSeen(application=replace(APP, state="FAILED")),
        Situation.BACKING_OFF,
        "DriverLost",
        [],
    ),
    "pod gone, nobody says so: wait": (
        RUN,
        WriterSeen(application=APP),
        Situation.STARTING,
        "Submitting",
        [],
    ),
    "pod gone for long, nobody says so: back off": (
        RUN,
        WriterSeen(application=APP, memory=Memory(podless_since=NOW - timedelta(minutes=2))),
        Situation.BACKING_OFF,
        "DriverLost",
        [],
    ),
    "Spark Operator slow: wait": (
        RUN,
        WriterSeen(application=replace(APP, state="", created_at=NOW)),
        Situation.STARTING,
        "Submitting",
        [],
    ),
    "Spark Operator silent: say so": (
        RUN,
        WriterSeen(application=replace(APP, state="")),
        Situation.STALLED,
        "SparkOperatorSilent",
        [],
    ),
    "suspended as it was made: say so": (
        RUN,
        WriterSeen(application=replace(APP, state="SUSPENDED", submitted=False)),
        Situation.STALLED,
        "SparkApplicationSuspended",
        [],
    ),
    "pod young: wait": (
        RUN,
        replace(WELL, driver_pod=replace(POD, phase=PodPhase.PENDING, created_at=NOW), report=None),
        Situation.STARTING,
        "DriverPending",
        [],
    ),
    "pod does not start: say so": (
        RUN,
        replace(WELL, driver_pod=replace(POD, phase=PodPhase.PENDING), report=None),
        Situation.STALLED,
        "DriverPending",
        [],
    ),
    "node lost: say so, and start no other": (RUN, _pod(phase=PodPhase.UNKNOWN), Situation.STALLED, "NodeLost", []),
    "pod being deleted: wait": (RUN, _pod(deleting_since=NOW), Situation.STALLED, "DriverPodDeleted", []),
    "pod being deleted for long: say why, and start no other": (
        RUN,
        _pod(deleting_since=LONG_AGO),
        Situation.STALLED,
        "DeletionHangs",
        [],
    ),
    "no batch yet: wait": (
        RUN,
        replace(WELL, report=report_of(NOW, batches=0)),
        Situation.STARTING,
        "DriverStarting",
        [],
    ),
    "nothing to read since the start: well": (
        RUN,
        replace(WELL, report=report_of(NOW, batches=0).model_copy(update={"caught_up_at": NOW})),
        Situation.RUNNING,
        "Running",
        [],
    ),
    "another driver's report: wait": (
        RUN,
        replace(
            WELL, driver_pod=replace(POD, started_at=NOW - timedelta(seconds=9)), report=report_of(NOW, pod_uid="pod-0")
        ),
        Situation.STARTING,
        "DriverStarting",
        [],
    ),
    "silent: say so": (
        RUN,
        replace(WELL, report=report_of(NOW - timedelta(minutes=5))),
        Situation.STALLED,
        "NoProgress",
        [],
    ),
    "silent for long: count it": (
        RUN,
        replace(WELL, report=report_of(LONG_AGO)),
        Situation.BACKING_OFF,
        "NoProgress",
        [],
    ),
    "silent for long and counted, too early: wait": (
        RUN,
        replace(
            WELL, report=report_of(LONG_AGO), memory=Memory(failures=1, ending=_ending(NOW + timedelta(seconds=1)))
        ),
        Situation.BACKING_OFF,
        "DriverLost",
        [],
    ),
    "silent for long and counted: end it": (
        RUN,
        replace(WELL, report=report_of(LONG_AGO), memory=Memory(failures=1, ending=_ending(NOW))),
        Situation.STOPPING,
        "DriverLost",
        [DELETE_APP],
    ),
}


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_step(step: str) -> None:
    goal, seen, situation, reason, deletes = STEPS[step]
    outcome = decide_writer(goal, seen, NOW)
    assert (outcome.situation, outcome.reason) == (situation, reason)
    assert [one for one in outcome.actions if isinstance(one, Delete)] == deletes
    assert outcome.start == (step == "nothing there: start")
    assert outcome.wake_at is None or outcome.wake_at <= NOW + timedelta(minutes=10)


@pytest.mark.parametrize(
    "step", [name for name, row in STEPS.items() if row[2] not in (Situation.RUNNING, Situation.STOPPED)]
)
def test_a_step_that_is_not_all_well_says_why(step: str) -> None:
    goal, seen, *_ = STEPS[step]
    assert len(decide_writer(goal, seen, NOW).message) > 10


def test_a_failure_is_counted_and_told_once() -> None:
    first = decide_writer(RUN, _ended(1, "the stream cannot be reached"), NOW)
    assert [one.message for one in first.actions if isinstance(one, Emit)] == [
        "Writer json: the stream cannot be reached (exit status 1). See the log of the driver's pod."
    ]
    again = decide_writer(RUN, replace(_ended(1), memory=first.memory), NOW)
    assert (again.memory, again.actions) == (first.memory, ())


def test_a_driver_whose_pod_was_deleted_did_not_run_out_of_memory() -> None:
    ended = _ended(137)
    assert ended.driver_pod is not None
    outcome = decide_writer(RUN, replace(ended, driver_pod=replace(ended.driver_pod, deleting_since=NOW)), NOW)
    assert outcome.reason == "DriverPodDeleted"
    assert "memory" not in outcome.message
    assert decide_writer(RUN, ended, NOW).reason == "DriverKilled"


@pytest.mark.parametrize("status", [None, 0, 137])
def test_a_driver_that_its_node_evicts_is_told_so_in_the_nodes_words(status: int | None) -> None:
    pod = replace(POD, phase=PodPhase.FAILED, exit=status, message="low on ephemeral-storage", ended_for="Evicted")
    outcome = decide_writer(RUN, replace(WELL, driver_pod=pod), NOW)
    assert (outcome.situation, outcome.reason) == (Situation.BACKING_OFF, "DriverEvicted")
    assert outcome.message.startswith("low on ephemeral-storage")
    assert "driver.memory" not in outcome.message
    lost = decide_writer(RUN, replace(WELL, driver_pod=replace(pod, exit=5)), NOW)
    assert lost.reason == "DataLoss", "what the driver itself found comes first"


def test_a_driver_that_never_began_since_a_container_before_it_failed_is_not_lost() -> None:
    pod = replace(POD, phase=PodPhase.FAILED, message="init container rules ended with status 2")
    outcome = decide_writer(RUN, replace(WELL, driver_pod=pod), NOW)
    assert (outcome.reason, outcome.message.partition(".")[0]) == ("DriverFailed", pod.message)


def test_an_outage_of_the_storage_is_told_as_one_and_tried_again_each_minute_at_last() -> None:
    first = decide_writer(RUN, _ended(6, "S3 does not answer"), NOW)
    assert first.reason == "StorageUnavailable"
    assert first.message.startswith("S3 does not answer")
    before = Memory(failures=9, ending=_ending(NOW, "app-0"))
    tenth = decide_writer(RUN, replace(_ended(6), memory=before), NOW).memory
    assert tenth.ending is not None
    assert (tenth.failures, tenth.ending.retry_at) == (10, NOW + timedelta(minutes=1))


def test_a_driver_that_waits_for_its_storage_says_so_and_is_left_alone() -> None:
    away = Failure.of(6, "the storage of the checkpoint does not answer: http://s3:9000")
    waits = report_of(NOW, state=DriverState.STARTING).model_copy(update={"failure": away, "batches": ()})
    outcome = decide_writer(RUN, replace(WELL, report=waits), NOW)
    assert (outcome.situation, outcome.reason) == (Situation.STALLED, "StorageUnavailable")
    assert outcome.message.startswith("the storage of the checkpoint does not answer: http://s3:9000. It goes on")
    assert (outcome.actions, outcome.memory) == ((), Memory())
    later = decide_writer(RUN, replace(WELL, report=waits.model_copy(update={"failure": None})), NOW)
    assert (later.situation, later.reason) == (Situation.STARTING, "DriverStarting")


def test_an_outage_is_over_with_the_first_batch_after_it() -> None:
    ending = _ending(NOW, "app-0").model_copy(update={"exit": 6, "reason": "StorageUnavailable"})
    outcome = decide_writer(RUN, replace(WELL, memory=Memory(failures=4, ending=ending)), NOW)
    assert (outcome.situation, outcome.memory) == (Situation.RUNNING, Memory())
    assert [one.reason for one in outcome.actions if isinstance(one, Emit)] == ["Recovered"]


@pytest.mark.parametrize(
    ("status", "reason"), [(7, "StreamRecreated"), (8, "CheckpointGone"), (9, "TableGone"), (2, "SettingsRefused")]
)
def test_what_a_person_has_to_decide_is_not_tried_again(status: int, reason: str) -> None:
    outcome = decide_writer(RUN, _ended(status, "the table was deleted"), NOW)
    assert outcome.reason == reason
    assert "the table was deleted" in outcome.message
    assert "annotate the LakeStream with lakestream.dev/restart" in outcome.message
    assert outcome.memory.ending is not None
    assert outcome.memory.ending.retry_at is None


def test_a_driver_has_ended_though_another_container_of_its_pod_goes_on() -> None:
    outcome = decide_writer(RUN, _pod(exit=1, message="no right"), NOW)
    assert (outcome.situation, outcome.reason) == (Situation.BACKING_OFF, "DriverFailed")


@pytest.mark.parametrize("minutes", [-12, 12])
def test_a_nodes_clock_says_nothing_of_silence(minutes: int) -> None:
    skew = timedelta(minutes=minutes)
    pod = replace(POD, created_at=NOW - timedelta(seconds=30), started_at=NOW - timedelta(seconds=20) + skew)
    assert decide_writer(RUN, replace(WELL, driver_pod=pod, report=None), NOW).reason == "DriverStarting"
    spoken = replace(WELL, report=report_of(NOW + skew), reported_at=NOW - timedelta(seconds=5))
    assert decide_writer(RUN, spoken, NOW).situation is Situation.RUNNING
    silent = replace(spoken, reported_at=NOW - timedelta(minutes=5))
    assert decide_writer(RUN, silent, NOW).reason == "NoProgress"


def test_drivers_that_hang_again_and_again_are_started_less_and_less_often() -> None:
    silent = replace(WELL, report=report_of(NOW - timedelta(minutes=11)))
    waits = []
    for failures in range(3):
        before = Memory(failures=failures, ending=_ending(NOW, "app-0") if failures else None)
        ending = decide_writer(RUN, replace(silent, memory=before), NOW).memory.ending
        assert ending is not None
        assert ending.retry_at is not None
        waits.append((ending.retry_at - NOW).total_seconds())
    assert waits == [10, 20, 40]


def test_failures_are_waited_out_longer_and_longer() -> None:
    memory, waits = Memory(), []
    for number in range(8):
        app = replace(APP, uid=f"app-{number}", state="FAILED")
        seen = replace(
            _ended(1), application=app, driver_pod=replace(POD, phase=PodPhase.FAILED, exit=1, application_uid=app.uid)
        )
        memory = decide_writer(RUN, replace(seen, memory=memory), NOW).memory
        assert memory.ending is not None
        assert memory.ending.retry_at is not None
        waits.append((memory.ending.retry_at - NOW).total_seconds())
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_failures_of_another_document_are_another_matter() -> None:
    before = Memory(failures=5, ending=_ending(NOW, "app-0").model_copy(update={"fingerprint": "other"}))
    outcome = decide_writer(RUN, replace(_ended(1), memory=before), NOW)
    assert outcome.memory.failures == 1


def test_a_good_run_is_remembered_and_failures_are_forgotten() -> None:
    failed = Memory(failures=3, ending=_ending(NOW, "app-0"))
    young = decide_writer(RUN, replace(WELL, memory=failed), NOW)
    assert young.memory.failures == 3
    old = decide_writer(RUN, replace(WELL, report=report_of(NOW, age=timedelta(minutes=11)), memory=failed), NOW)
    assert (old.memory.failures, [one.reason for one in old.actions if isinstance(one, Emit)]) == (0, ["Recovered"])


def test_a_request_to_drain_is_made_once_and_kept_while_it_is_followed() -> None:
    seen = replace(WELL, application=OTHER)
    first = decide_writer(RUN, seen, NOW)
    assert first.memory.drain is not None
    assert first.memory.drain.id == "SpecChanged-pod-1"
    again = decide_writer(RUN, replace(seen, memory=first.memory), NOW + timedelta(minutes=1))
    assert (again.memory, again.actions) == (first.memory, ())
    taken_back = replace(WELL, memory=first.memory)
    assert decide_writer(RUN, taken_back, NOW).memory.drain is None
    followed = replace(taken_back, report=report_of(NOW, state=DriverState.DRAINING, drain=first.memory.drain.id))
    assert decide_writer(RUN, followed, NOW).memory.drain == first.memory.drain


def test_a_driver_that_still_followed_a_request_that_was_taken_back_has_not_failed() -> None:
    """It read the order a moment before, and said so a moment after."""
    ended = replace(_ended(0), report=report_of(NOW, state=DriverState.DRAINED, drain="SpecChanged-pod-1"))
    outcome = decide_writer(RUN, ended, NOW)
    assert outcome.actions == (DELETE_APP,)
    assert outcome.memory.failures == 0


def test_who_suspends_an_application_as_it_is_made_is_waited_for() -> None:
    seen, now = WriterSeen(application=replace(APP, state="SUSPENDED", submitted=False)), NOW
    for _ in range(30):
        outcome = decide_writer(RUN, seen, now)
        assert (outcome.actions, outcome.memory.failures) == ((), 0)
        seen, now = replace(seen, memory=outcome.memory), now + timedelta(minutes=1)
    assert "have it leave those of LakeStreams alone" in outcome.message
    let_go = replace(seen, application=replace(APP, state="SUBMITTED", submitted=False, generation=2))
    assert DELETE_APP in decide_writer(RUN, let_go, now).actions, "it was edited"


def test_slow_batches_are_given_more_time() -> None:
    report = report_of(NOW - timedelta(minutes=20))
    slow = report.batches[-1].model_copy(update={"trigger_interval": timedelta(minutes=30)})
    seen = replace(WELL, report=report.model_copy(update={"batches": (slow,)}))
    assert decide_writer(RUN, seen, NOW).situation is Situation.RUNNING


ROLLBACK = Goal("lake", NAMES, PLAN, rollback=OLD)


@pytest.mark.parametrize(
    ("exit_status", "failures", "rejected"),
    [(2, 0, True), (3, 0, True), (1, 0, False), (1, 1, False), (1, 2, True), (5, 0, False)],
)
def test_a_document_that_never_ran_is_given_up(exit_status: int, failures: int, rejected: bool) -> None:
    ending = _ending(NOW, "app-0").model_copy(update={"by_document": failures})
    seen = _ended(exit_status, failures=failures, ending=ending if failures else None)
    outcome = decide_writer(ROLLBACK, replace(seen, report=report_of(NOW, batches=0)), NOW)
    assert (outcome.memory.rejected == PLAN.fingerprint) == rejected


_LOST = WriterSeen(application=replace(APP, state="FAILED", message="driver pod not found"))
_DELETED = replace(_ended(137), driver_pod=replace(POD, phase=PodPhase.FAILED, exit=137, deleting_since=NOW))


@pytest.mark.parametrize("seen", [_LOST, _DELETED, _ended(0), _ended(6)], ids=["lost", "deleted", "SIGTERM", "storage"])
def test_a_document_is_not_given_up_for_what_is_no_fault_of_it(seen: WriterSeen) -> None:
    memory = Memory()
    for number in range(10):
        app = replace(APP, uid=f"app-{number}", state="FAILED")
        pod = seen.driver_pod and replace(seen.driver_pod, application_uid=app.uid)
        step = replace(seen, application=app, driver_pod=pod, report=report_of(NOW, batches=0), memory=memory)
        memory = decide_writer(ROLLBACK, step, NOW).memory
    assert (memory.rejected, memory.failures) == (None, 10)
    for number in range(3):
        crashed = replace(_ended(1), application=replace(APP, uid=f"crashed-{number}", state="FAILED"))
        crashed = replace(crashed, driver_pod=replace(crashed.driver_pod or POD, application_uid=f"crashed-{number}"))
        assert memory.rejected is None
        memory = decide_writer(ROLLBACK, replace(crashed, report=report_of(NOW, batches=0), memory=memory), NOW).memory
    assert memory.rejected == PLAN.fingerprint


def test_a_document_that_ran_is_not_given_up() -> None:
    outcome = decide_writer(ROLLBACK, _ended(2), NOW)
    assert outcome.memory.rejected is None


def test_a_document_whose_pod_never_starts_is_given_up() -> None:
    pending = replace(POD, phase=PodPhase.PENDING, created_at=LONG_AGO, message="ErrImagePull: no such image")
    outcome = decide_writer(ROLLBACK, replace(WELL, report=None, driver_pod=pending), NOW)
    assert outcome.memory.rejected == PLAN.fingerprint
    assert "no such image" in outcome.message
