"""What people live through with a LakeStream: the whole of the decisions, on a cluster in memory."""

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from lakestream_api import Condition, ConditionStatus, ConditionType, Control, DriverState, EnvVar, Phase, TableService
from lakestream_api.names import CONTROL_KEY, DOCUMENT_KEY, REPORT_KEY
from lakestream_operator.model import Kind, Reference
from lakestream_operator.observer import FINALIZER
from lakestream_operator.settings import PodSettings
from lakestream_operator.testing import Behaviour, Cluster, Mood, lakestream
from lakestream_operator.testing.cluster import JOB

MINUTE = timedelta(minutes=1)
APP = Reference(Kind.SparkApplication, "lake", "orders-json")
POD = Reference(Kind.Pod, "lake", "orders-json-driver")
CONTROL = Reference(Kind.ConfigMap, "lake", "orders-json-control")
PROGRESS = Reference(Kind.ConfigMap, "lake", "orders-json-progress")


def _running(*, rollback: bool = False, **arguments: Any) -> Cluster:
    manifest = lakestream(**arguments)
    manifest["spec"].update({"rollback": True} if rollback else {})
    cluster = Cluster(manifest)
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    return cluster


def _condition(cluster: Cluster, kind: ConditionType) -> Condition:
    (found,) = (one for one in cluster.status.conditions if one.type is kind)
    return found


def _says(cluster: Cluster, kind: ConditionType) -> tuple[bool, str]:
    found = _condition(cluster, kind)
    return found.status is ConditionStatus.TRUE, found.reason


def _uids(cluster: Cluster) -> dict[str, str]:
    return {one["metadata"]["name"]: one["metadata"]["uid"] for one in cluster.find(Kind.SparkApplication)}


def _reasons(cluster: Cluster) -> list[str]:
    return [one.reason for one in cluster.events]


def test_a_new_lakestream_runs() -> None:
    cluster = Cluster(lakestream(writers=("json", "hudi")))
    cluster.reconcile()
    assert cluster.lakestream is not None
    assert cluster.lakestream["metadata"]["finalizers"] == [FINALIZER]
    assert cluster.objects == {}, "nothing is made before the finalizer is there"
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert cluster.status.observed_generation == 1
    assert _says(cluster, ConditionType.READY) == (True, "Running")
    assert _says(cluster, ConditionType.PROGRESSING) == (False, "Settled")
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    assert _says(cluster, ConditionType.SPEC_VALID) == (True, "Valid")
    assert [driver.writer for driver in cluster.running()] == ["json", "hudi"]
    assert _reasons(cluster) == ["Starting", "Starting", "Running", "Running"]
    owners = {one["metadata"]["ownerReferences"][0]["uid"] for one in cluster.find(Kind.ConfigMap)}
    assert owners == {cluster.lakestream["metadata"]["uid"]}


def test_a_changed_spec_is_taken_up_after_the_batch_in_hand() -> None:
    cluster = _running()
    (first,) = cluster.running()
    cluster.edit(lambda spec: spec["trigger"].update(interval="20s"))
    cluster.reconcile()
    assert first.exit is None
    assert _says(cluster, ConditionType.PROGRESSING) == (True, "SpecChanged")
    assert cluster.status.phase is Phase.UPDATING
    cluster.advance(2 * MINUTE)
    (second,) = cluster.running()
    assert (first.exit, second.fingerprint != first.fingerprint) == ((0, ""), True)
    assert "20s" in cluster.objects[Reference(Kind.ConfigMap, "lake", "orders-json-document")]["data"][DOCUMENT_KEY]
    assert _reasons(cluster)[2:] == ["SpecChanged", "Starting", "Running"]


def test_a_restart_that_was_asked_for_is_told_as_one() -> None:
    cluster = _running()
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "now"}
    cluster.advance(2 * MINUTE)
    assert _reasons(cluster)[2:] == ["RestartRequested", "Starting", "Running"]
    cluster.edit(lambda spec: spec["trigger"].update(interval="20s"))
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "again"}
    cluster.reconcile()
    assert _reasons(cluster)[5:] == ["SpecChanged"], "the spec has changed as well"


@pytest.mark.parametrize("nonsense", ["", "{}", "null", "[1]", "a: [", "a: !!bool maybe"])
def test_a_spec_is_taken_up_whatever_somebody_wrote_into_the_document_meanwhile(nonsense: str) -> None:
    """As while the operator was away, or in the second before it has looked."""
    cluster = Cluster(lakestream())
    cluster.advance(2 * MINUTE)
    document = cluster.api.objects[Reference(Kind.ConfigMap, "lake", "orders-json-document")]
    document["data"][DOCUMENT_KEY] = nonsense
    cluster.api.touch(document)
    cluster.edit(lambda spec: spec.update(trigger={"interval": "30s"}))
    cluster.advance(3 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert "interval: 30s" in document["data"][DOCUMENT_KEY]


@pytest.mark.parametrize(
    "change",
    [{"scaling": {"maxExecutors": 3}}, {"rollback": True}, {"scaling": {"dryRun": True}}, {"suspend": False}],
    ids=str,
)
def test_what_needs_no_restart_touches_no_driver(change: dict[str, Any]) -> None:
    cluster = _running()
    before = {
        key: one["metadata"]["resourceVersion"]
        for key, one in cluster.objects.items()
        if key.kind is not Kind.ConfigMap
    }
    cluster.edit(lambda spec: spec.update(change))
    cluster.reconcile()
    after = {
        key: one["metadata"]["resourceVersion"]
        for key, one in cluster.objects.items()
        if key.kind is not Kind.ConfigMap
    }
    assert after == before


def test_a_target_is_told_by_the_control_config_map_alone() -> None:
    cluster = _running()
    uids = _uids(cluster)
    cluster.edit(lambda spec: spec.update(scaling={"executors": 4}))
    cluster.reconcile()
    control = Control.model_validate_json(cluster.objects[CONTROL]["data"][CONTROL_KEY])
    assert (control.executors, _uids(cluster)) == (4, uids)
    cluster.advance(MINUTE)
    assert cluster.status.executors.now == 4


def test_a_restarted_driver_begins_with_the_target() -> None:
    cluster = _running()
    cluster.edit(lambda spec: spec.update(scaling={"executors": 4}))
    cluster.advance(MINUTE)
    cluster.delete(APP)
    cluster.advance(2 * MINUTE)
    assert cluster.objects[APP]["spec"]["executor"]["instances"] == 4


def test_suspend_drains_and_resume_goes_on() -> None:
    cluster = _running(writers=("json", "hudi"))
    drivers = cluster.running()
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.reconcile()
    assert cluster.status.phase is Phase.SUSPENDING
    cluster.advance(2 * MINUTE)
    assert [driver.exit for driver in drivers] == [(0, ""), (0, "")]
    assert cluster.status.phase is Phase.SUSPENDED
    assert _says(cluster, ConditionType.READY) == (False, "Suspended")
    assert cluster.find(Kind.SparkApplication) == []
    lag = cluster.status.lag
    assert lag is not None
    cluster.advance(5 * MINUTE)
    assert cluster.status.lag is not None
    assert cluster.status.lag >= lag + 5 * MINUTE, "what arrives meanwhile is unread"
    cluster.edit(lambda spec: spec.update(suspend=False))
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert cluster.status.lag == timedelta()


def test_a_crash_loop_falls_behind_as_long_as_it_lasts() -> None:
    cluster = Cluster(lakestream(writers=("json", "hudi")), behaviour=lambda _: Behaviour.CRASHES)
    lags = []
    for _ in range(10):
        cluster.advance(2 * MINUTE)
        assert cluster.status.lag is not None, "a writer that never reported is behind as well"
        lags.append(cluster.status.lag)
    assert lags == sorted(lags)
    assert lags[-1] > 19 * MINUTE


def test_lag_outlives_a_driver_and_grows_while_the_next_one_starts() -> None:
    cluster = _running()
    cluster.behaviour = lambda _: Behaviour.CRASHES
    cluster.delete(APP)
    lags = []
    for _ in range(20):
        cluster.advance(timedelta(seconds=30))
        lag = cluster.status.writers[0].lag_seconds
        assert lag is not None
        lags.append(lag)
    assert lags == sorted(lags)
    assert lags[-1] > 9 * 60


def test_deletion_drains_and_leaves_nothing_but_the_data() -> None:
    cluster = _running(writers=("json", "hudi"))
    drivers = cluster.running()
    cluster.delete_lakestream()
    cluster.reconcile()
    assert cluster.status.phase is Phase.DELETING
    cluster.advance(2 * MINUTE)
    assert [driver.exit for driver in drivers] == [(0, ""), (0, "")]
    assert cluster.lakestream is None
    assert cluster.objects == {}
    assert "s3a://lake/orders_json" in cluster.events[-1].message
    assert cluster.events[-1].reason == "DataKept"


def test_a_deletion_in_the_foreground_ends_as_well() -> None:
    cluster = _running(writers=("json", "hudi"))
    assert cluster.lakestream is not None
    metadata = cluster.lakestream["metadata"]
    metadata["finalizers"].append("foregroundDeletion")
    cluster.delete_lakestream()
    for reference, one in list(cluster.objects.items()):
        if metadata["uid"] in {owner["uid"] for owner in one["metadata"]["ownerReferences"]}:
            cluster.delete(reference)
    cluster.advance(MINUTE)
    assert metadata["finalizers"] == ["foregroundDeletion"], "the garbage collector's, which takes it off itself"
    assert cluster.objects == {}
    assert cluster.lakestream is not None
    assert len(cluster.started) == 2
    assert _reasons(cluster).count("DataKept") == 1


def test_deletion_waits_for_a_deaf_driver_only_so_long() -> None:
    cluster = _running()
    cluster.running()[0].behaviour = Behaviour.DEAF
    cluster.delete_lakestream()
    cluster.advance(4 * MINUTE)
    assert cluster.lakestream is not None
    cluster.advance(3 * MINUTE)
    assert cluster.lakestream is None
    assert "DrainTimedOut" in _reasons(cluster)


@pytest.mark.parametrize("mood", [Mood.REFUSES, Mood.OVERLOADED])
def test_deletion_does_not_wait_for_orders_that_are_refused(mood: Mood) -> None:
    cluster = _running()
    cluster.api.moods[Kind.ConfigMap] = mood
    cluster.delete_lakestream()
    cluster.advance(timedelta(seconds=30))
    assert cluster.running(), "what is refused for a moment is waited out"
    cluster.advance(4 * MINUTE)
    assert cluster.lakestream is None
    assert cluster.started[0].exit == (0, "")
    (said,) = (one.message for one in cluster.events if one.reason == "DrainRefused")
    assert "SIGTERM" in said


def test_an_operator_that_comes_back_finishes_a_deletion() -> None:
    cluster = _running()
    cluster.delete_lakestream()
    cluster.restart_operator()
    cluster.advance(2 * MINUTE)
    assert cluster.lakestream is None
    assert cluster.started[0].exit == (0, "")


def test_a_removed_writer_is_drained_and_the_other_goes_on() -> None:
    cluster = _running(writers=("json", "hudi"))
    hudi = next(driver for driver in cluster.running() if driver.writer == "hudi")
    uids = _uids(cluster)
    cluster.edit(lambda spec: spec.update(writers=spec["writers"][:1]))
    cluster.advance(2 * MINUTE)
    assert hudi.exit == (0, "")
    assert _uids(cluster) == {"orders-json": uids["orders-json"]}
    assert not [key for key in cluster.objects if "hudi" in key.name]
    assert [writer.name for writer in cluster.status.writers] == ["json"]
    assert _reasons(cluster).count("WriterRemoved") == 2


@pytest.mark.parametrize(
    "reference",
    [
        APP,
        POD,
        CONTROL,
        Reference(Kind.ServiceAccount, "lake", "orders-json"),
        Reference(Kind.RoleBinding, "lake", "orders-json"),
    ],
    ids=str,
)
def test_what_is_deleted_behind_the_operators_back_comes_back(reference: Reference) -> None:
    cluster = _running()
    cluster.delete(reference)
    cluster.advance(3 * MINUTE)
    assert reference in cluster.objects
    assert "deletionTimestamp" not in cluster.objects[reference]["metadata"]
    assert len(cluster.running()) == 1
    assert _says(cluster, ConditionType.READY) == (True, "Running")


def test_a_changed_role_binding_is_made_anew() -> None:
    cluster = _running()
    reference = Reference(Kind.RoleBinding, "lake", "orders-json")
    before = cluster.objects[reference]
    before["roleRef"] = {**before["roleRef"], "name": "another"}
    cluster.api.touch(before)
    cluster.advance(timedelta(seconds=10))
    assert cluster.objects[reference]["roleRef"]["name"] == "lakestream-driver"
    assert cluster.objects[reference]["metadata"]["uid"] != before["metadata"]["uid"]


def test_two_operators_do_not_take_a_driver_from_each_other_without_end() -> None:
    cluster = _running()
    reference = Reference(Kind.RoleBinding, "lake", "orders-json")
    uids = {cluster.objects[reference]["metadata"]["uid"]}
    for _ in range(30):
        found = cluster.objects[reference]
        found["roleRef"] = {**found["roleRef"], "name": "another"}
        cluster.api.touch(found)
        cluster.advance(timedelta(minutes=1))
        uids.add(cluster.objects[reference]["metadata"]["uid"])
    assert _reasons(cluster).count("RoleReplaced") == len(uids) - 1 == 3


def test_what_runs_is_told_though_nothing_of_it_can_be_read() -> None:
    """As after an upgrade to a release that refuses what it was started with."""
    cluster = _running(writers=("json", "hudi"))
    (document,) = (one for one in cluster.find(Kind.ConfigMap) if one["metadata"]["name"] == "orders-json-document")
    document["data"][DOCUMENT_KEY] = "refused"
    cluster.api.touch(document)
    cluster.edit(lambda spec: spec.update(transform="DELETE FROM events"))
    cluster.advance(MINUTE)
    assert len(cluster.running()) == 2
    told = "What runs goes on (json), but is neither healed nor scaled"
    assert told in _condition(cluster, ConditionType.SPEC_VALID).message
    (document,) = (one for one in cluster.find(Kind.ConfigMap) if one["metadata"]["name"] == "orders-hudi-document")
    document["data"][DOCUMENT_KEY] = "refused"
    cluster.api.touch(document)
    cluster.advance(MINUTE)
    message = _condition(cluster, ConditionType.READY).message
    assert "Nothing runs" not in message
    assert "What runs goes on (hudi, json), but" in message


def test_an_application_edited_by_hand_is_put_right() -> None:
    cluster = _running()
    uid = _uids(cluster)["orders-json"]
    cluster.change_application(APP)
    cluster.advance(3 * MINUTE)
    assert _uids(cluster)["orders-json"] != uid
    assert cluster.objects[APP]["metadata"]["generation"] == 1
    assert "SparkApplicationChanged" in _reasons(cluster)


def test_applications_that_are_edited_one_and_all_are_not_made_anew_without_end() -> None:
    cluster = _running()
    cluster.edits = True
    cluster.advance(2 * MINUTE)
    assert len(cluster.started) == 2, "the first one is put right"
    for _ in range(7):
        cluster.advance(MINUTE)
        assert _says(cluster, ConditionType.READY) == (True, "Running"), "the next one is left as it is"
        assert _says(cluster, ConditionType.DEGRADED) == (True, "SparkApplicationChanged")
        assert cluster.status.phase is Phase.DEGRADED
        assert "Something edits each one" in _condition(cluster, ConditionType.DEGRADED).message
    cluster.restart_operator()
    cluster.advance(51 * MINUTE)
    assert len(cluster.started) <= 7, "one in ten minutes"
    assert {one.warning for one in cluster.events if one.reason == "SparkApplicationChanged"} == {True}
    assert "SpecChanged" not in _reasons(cluster)
    cluster.edits = False
    cluster.advance(15 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")


def test_an_edited_application_whose_driver_ended_for_it_is_told_as_one() -> None:
    cluster = _running()
    cluster.objects[APP]["metadata"]["generation"] += 1
    cluster.api.touch(cluster.objects[APP])
    (driver,) = cluster.running()
    driver.exit = (143, "")
    cluster.advance(timedelta(seconds=10))
    assert _says(cluster, ConditionType.READY) == (False, "SparkApplicationChanged")
    cluster.advance(2 * MINUTE)
    assert _reasons(cluster)[2:] == ["SparkApplicationChanged", "Starting"]


def test_one_writers_failure_leaves_the_other_alone() -> None:
    cluster = _running(writers=("json", "hudi"))
    uids = _uids(cluster)
    next(driver for driver in cluster.running() if driver.writer == "hudi").behaviour = Behaviour.CRASHES
    cluster.advance(timedelta(seconds=20))
    assert cluster.status.phase is Phase.DEGRADED
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DriverFailed")
    assert "the stream cannot be reached" in _condition(cluster, ConditionType.DEGRADED).message
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert _uids(cluster)["orders-json"] == uids["orders-json"]
    assert _uids(cluster)["orders-hudi"] != uids["orders-hudi"]


def test_a_crash_loop_slows_down_and_is_said_to_be_one() -> None:
    cluster = Cluster(lakestream(), behaviour=lambda _: Behaviour.CRASHES)
    cluster.advance(30 * MINUTE)
    assert cluster.status.phase is Phase.FAILED
    # 10 + 20 + 40 + 80 + 160 s, then every 5 minutes.
    assert 8 <= len(cluster.started) <= 12
    writer = cluster.status.writers[0]
    assert writer.restarts >= 8
    assert f"failed {writer.restarts} times in a row" in _condition(cluster, ConditionType.DEGRADED).message


def test_a_crash_loop_that_another_spec_has_ended_is_over_with_its_first_batch() -> None:
    cluster = _running()
    (bad,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.CRASHES if one == bad.fingerprint else Behaviour.WELL
    bad.behaviour = Behaviour.CRASHES
    cluster.advance(30 * MINUTE)
    assert cluster.status.phase is Phase.FAILED
    cluster.edit(lambda spec: spec.update(schema="order_id string"))
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    assert _reasons(cluster).count("Recovered") == 1


def test_failures_outlive_the_memory_of_them() -> None:
    cluster = Cluster(lakestream(), behaviour=lambda _: Behaviour.CRASHES)
    cluster.advance(10 * MINUTE)
    before = cluster.status.writers[0].restarts
    assert before >= 4
    cluster.delete(CONTROL)
    cluster.advance(timedelta(seconds=10))
    assert cluster.status.writers[0].restarts >= before


@pytest.mark.parametrize(
    ("behaviour", "reason", "message"),
    [
        (
            Behaviour.AWAITS_STORAGE,
            "StorageUnavailable",
            "Writer json: the storage of the checkpoint does not answer: http://s3:9000. It goes on",
        ),
        (
            Behaviour.AWAITS_RIGHT,
            "AccessDenied",
            "Writer json: the storage denies access: s3a://lake/orders: 403. It is tried again for five minutes",
        ),
    ],
)
def test_what_a_driver_waits_for_is_told_while_it_lasts_and_restarts_nothing(
    behaviour: Behaviour, reason: str, message: str
) -> None:
    cluster = _running()
    uids, (driver,) = _uids(cluster), cluster.running()
    driver.behaviour = behaviour
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.READY) == (False, reason)
    assert _says(cluster, ConditionType.DEGRADED) == (True, reason)
    assert _condition(cluster, ConditionType.DEGRADED).message.startswith(message)
    driver.behaviour = Behaviour.WELL
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    assert cluster.status.phase is Phase.RUNNING
    assert (_uids(cluster), cluster.status.writers[0].restarts) == (uids, 0)


def test_what_a_driver_has_got_over_is_not_why_the_next_one_starts() -> None:
    cluster = _running()
    cluster.running()[0].behaviour = Behaviour.CRASHES
    cluster.advance(timedelta(seconds=20))
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DriverFailed")
    cluster.advance(3 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    cluster.delete(APP)
    cluster.advance(timedelta(seconds=10))
    assert cluster.status.phase is not Phase.RUNNING
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected"), "a person wanted it to start anew"


def test_data_that_is_all_poison_is_told() -> None:
    cluster = _running(writers=("json", "hudi"))
    assert _says(cluster, ConditionType.QUARANTINING) == (False, "Usable")
    assert cluster.status.quarantined == "0%"
    uids = _uids(cluster)
    json, _ = cluster.running()
    json.poison = 1.0
    cluster.advance(10 * MINUTE)
    assert _says(cluster, ConditionType.READY) == (True, "Running"), "its driver does what it should"
    assert _says(cluster, ConditionType.QUARANTINING) == (True, "RecordsUnusable")
    told = _condition(cluster, ConditionType.QUARANTINING).message
    assert "Writer json: 100% of the records of the last 5 minutes" in told
    assert "not JSON" in told
    kept = cluster.status.writers[0].quarantine
    assert (kept.share, kept.reason) == (1.0, "not JSON")
    assert 29_000 <= kept.records <= 31_000, "of 100 records a second"
    assert cluster.status.quarantined == "100%"
    assert _reasons(cluster).count("Quarantining") == 1
    cluster.edit(lambda spec: spec.update(quarantine={"warnFraction": 1.0}))
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.QUARANTINING) == (False, "Usable")
    assert _uids(cluster) == uids, "no driver is restarted for it"
    cluster.edit(lambda spec: spec.update(quarantine={"warnFraction": 0.01}))
    json.poison = 0.001
    cluster.advance(10 * MINUTE)
    assert _says(cluster, ConditionType.QUARANTINING) == (False, "Usable")
    assert cluster.status.quarantined == "0.1%"


def test_shares_in_quarantine_are_of_what_a_filter_takes() -> None:
    """Else all of a table could be unusable, and be a few records of a stream of many tables."""
    cluster = _running()
    (driver,) = cluster.running()
    driver.filtered = 0.995
    cluster.advance(10 * MINUTE)
    assert cluster.status.writers[0].filtered_share == pytest.approx(0.995)
    assert _says(cluster, ConditionType.QUARANTINING) == (False, "Usable")
    driver.poison = 1.0
    cluster.advance(10 * MINUTE)
    assert cluster.status.writers[0].quarantine.share == 1.0
    assert _says(cluster, ConditionType.QUARANTINING) == (True, "RecordsUnusable")
    driver.filtered = 1.0
    cluster.advance(10 * MINUTE)
    assert cluster.status.writers[0].filtered_share == 1.0


def test_one_record_of_very_many_is_more_than_none() -> None:
    cluster = _running()
    cluster.kinesis.records_per_second = 10_000
    cluster.edit(lambda spec: spec.update(quarantine={"warnFraction": 0.0}))
    cluster.advance(10 * MINUTE)
    assert _says(cluster, ConditionType.QUARANTINING) == (False, "Usable")
    (driver,) = cluster.running()
    driver.poison = 0.00001
    cluster.advance(10 * MINUTE)
    assert cluster.status.writers[0].quarantine.records == 30
    assert _says(cluster, ConditionType.QUARANTINING) == (True, "RecordsUnusable")
    assert cluster.status.quarantined == "0.01%"


def test_labels_of_the_operators_settings_are_on_all_that_is_made() -> None:
    """Those of a driver that runs at once, without a restart; its application and pods at its next start."""
    cluster, labels = _running(), {"team": "data"}
    before = _uids(cluster)
    cluster.job = JOB.model_copy(update={"labels": labels})
    cluster.advance(2 * MINUTE)
    assert _uids(cluster) == before
    bare = {
        reference
        for reference, one in cluster.objects.items()
        if not labels.items() <= one["metadata"]["labels"].items()
    }
    assert {reference.kind for reference in bare} == {Kind.SparkApplication, Kind.Pod}
    assert APP in bare
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.advance(2 * MINUTE)
    cluster.edit(lambda spec: spec.update(suspend=False))
    cluster.advance(2 * MINUTE)
    assert _uids(cluster).keys() == before.keys()
    for one in cluster.objects.values():
        assert labels.items() <= one["metadata"]["labels"].items()
        assert one["metadata"]["labels"]["lakestream.dev/stream"] == "orders"


def test_an_older_image_is_told_and_goes_on() -> None:
    cluster = _running()
    assert cluster.status.writers[0].image == JOB.image
    assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")
    uids = _uids(cluster)
    cluster.job = JOB.model_copy(update={"image": "lakestream/spark:next"})
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (False, "OlderImage")
    assert (
        "runs lakestream/spark:test, not lakestream/spark:next" in _condition(cluster, ConditionType.UP_TO_DATE).message
    )
    assert _uids(cluster) == uids
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "now"}
    cluster.advance(2 * MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")


@pytest.mark.parametrize(
    "changed",
    [
        {"env": (EnvVar(name="ZONE", value="a"),)},
        {"spark_conf": {"spark.locality.wait": "0s"}},
        {"labels": {"team": "lake"}},
        {"executor": PodSettings(template={"spec": {"priorityClassName": "batch"}})},
    ],
)
def test_older_settings_of_the_chart_are_told_and_taken_up_by_the_next_start(changed: dict[str, object]) -> None:
    cluster = _running()
    uids = _uids(cluster)
    cluster.job = JOB.model_copy(update=changed)
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (False, "OlderSettings")
    assert "Writer json runs with other pods" in _condition(cluster, ConditionType.UP_TO_DATE).message
    assert _uids(cluster) == uids
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "now"}
    cluster.advance(2 * MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")


def test_executors_and_edits_of_a_spec_are_no_settings_of_the_chart() -> None:
    cluster = _running()
    cluster.edit(lambda spec: spec.update(scaling={"minExecutors": 3, "maxExecutors": 5}))
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")
    cluster.edit(lambda spec: spec.update(kubernetes={"priorityClassName": "batch"}))
    for _ in range(24):
        cluster.advance(timedelta(seconds=5))
        assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")


def test_of_a_driver_that_another_release_started_the_image_alone_is_known() -> None:
    cluster = _running()
    application = cluster.api.objects[APP]
    del application["metadata"]["annotations"]["lakestream.dev/settings-hash"]
    cluster.api.touch(application)
    cluster.job = JOB.model_copy(update={"env": (EnvVar(name="ZONE", value="a"),)})
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.UP_TO_DATE) == (True, "Current")


def test_a_compaction_that_keeps_failing_is_told_with_its_error() -> None:
    cluster = _running(writers=("hudi", "json"))
    hudi, _ = sorted(cluster.running(), key=lambda driver: driver.writer)
    failed = TableService(name="compaction", failed=1, failing=1, error="no right to write", behind_commits=12)
    well = TableService(name="cleaning", behind_commits=2)
    hudi.table_services = (failed, well)
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected"), "once may be a minute's outage"
    again = failed.model_copy(update={"failing": 2, "failing_since": cluster.now, "behind_commits": 1_022})
    hudi.table_services = (again, well)
    cluster.advance(MINUTE)
    assert cluster.status.phase is Phase.DEGRADED
    assert _says(cluster, ConditionType.DEGRADED) == (True, "CompactionFailing")
    told = _condition(cluster, ConditionType.DEGRADED).message
    for part in ("Writer hudi: compaction has failed 2 times", "1,022 commits wait", "The error: no right to write"):
        assert part in told
    assert [one.message[:10] for one in cluster.status.writers] == ["compaction", ""]
    assert _says(cluster, ConditionType.READY) == (True, "Running"), "batches go on"
    hudi.table_services = (failed.model_copy(update={"failing": 0, "error": ""}), well)
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    assert cluster.status.phase is Phase.RUNNING


def test_buckets_that_have_grown_too_large_are_told_with_what_to_do() -> None:
    cluster = _running()
    (driver,) = cluster.running()
    driver.largest_file = 2 * 2**30
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    driver.largest_file = 3 * 2**30
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "BucketsOutgrown")
    told = _condition(cluster, ConditionType.DEGRADED).message
    for part in ("has grown to 3.0 GiB", "another writer with another path", "hudi.index.expectedPartitionSize"):
        assert part in told
    assert _says(cluster, ConditionType.READY) == (True, "Running"), "batches go on"


def test_a_catalog_out_of_reach_is_told_with_since_when_and_keeps_nothing_from_going_on() -> None:
    cluster = _running()
    (driver,) = cluster.running()
    since = datetime(2026, 1, 31, 12, tzinfo=UTC)
    error = "glue:GetTable of lake.orders: not authorized"
    driver.table_services = (
        TableService(name="catalog", failing=2, failing_since=since, behind_commits=3, error=error),
    )
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "CatalogFailing")
    told = _condition(cluster, ConditionType.DEGRADED).message
    for part in ("since 2026-01-31 12:00 UTC", "see neither new partitions nor new columns", error):
        assert part in told
    assert _says(cluster, ConditionType.READY) == (True, "Running"), "batches go on"


def test_what_a_driver_said_of_its_table_is_of_the_past_when_it_is_gone() -> None:
    cluster = _running()
    (driver,) = cluster.running()
    driver.table_services = (TableService(name="cleaning", failing=5, error="no right to delete"),)
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "CleaningFailing")
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.advance(2 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")


def test_settings_that_are_refused_are_not_tried_again() -> None:
    cluster = Cluster(lakestream(), behaviour=lambda _: Behaviour.REFUSES)
    cluster.advance(30 * MINUTE)
    assert len(cluster.started) == 1
    assert _says(cluster, ConditionType.SPEC_VALID) == (False, "SettingsRefused")
    assert "spec.schema: no such type" in _condition(cluster, ConditionType.SPEC_VALID).message
    assert _reasons(cluster).count("SettingsRefused") == 1
    cluster.behaviour = lambda _: Behaviour.WELL
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "1"}
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert _says(cluster, ConditionType.SPEC_VALID) == (True, "Valid")


def test_a_silent_driver_is_restarted() -> None:
    cluster = _running()
    (driver,) = cluster.running()
    driver.behaviour = Behaviour.HANGS
    cluster.advance(5 * MINUTE)
    assert driver.exit is None
    assert _says(cluster, ConditionType.DEGRADED) == (True, "NoProgress")
    assert cluster.status.lag is not None
    assert cluster.status.lag > 4 * MINUTE
    cluster.advance(8 * MINUTE)
    assert driver.exit is not None
    assert cluster.status.phase is Phase.RUNNING
    assert "NoProgress" in _reasons(cluster)


@pytest.mark.parametrize("what", ["deleted", "spoilt", "empty"])
def test_a_driver_whose_report_is_lost_is_left_alone(what: str) -> None:
    cluster = _running()
    cluster.advance(15 * MINUTE)
    progress = cluster.objects[PROGRESS]
    if what == "deleted":
        cluster.delete(PROGRESS)
    else:
        progress["data"] = {"report.json": '{"state": "Wonderful"}'} if what == "spoilt" else {}
        cluster.api.touch(progress)
    cluster.reconcile()
    cluster.reconcile()
    assert (_says(cluster, ConditionType.DEGRADED)[1] == "ReportUnreadable") == (what == "spoilt")
    cluster.advance(MINUTE)
    assert (cluster.status.phase, len(cluster.started)) == (Phase.RUNNING, 1)


def test_a_driver_whose_report_is_spoilt_ends_the_batch_in_hand_before_a_change() -> None:
    cluster = _running()
    cluster.advance(5 * MINUTE)
    progress = cluster.objects[PROGRESS]
    progress["data"] = {"report.json": "{"}
    cluster.api.touch(progress)
    cluster.edit(lambda spec: spec.update(trigger={"interval": "20s"}))
    cluster.reconcile()
    assert cluster.events[-1].message == "Draining writer json: its driver ends after the batch in hand."
    cluster.advance(5 * MINUTE)
    assert (cluster.status.phase, len(cluster.started)) == (Phase.RUNNING, 2)
    assert "DrainTimedOut" not in _reasons(cluster)


def test_a_driver_whose_reports_nobody_can_read_is_told_of_and_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = _running()
    monkeypatch.setattr(DriverState.RUNNING, "_value_", "Wonderful")
    cluster.advance(20 * MINUTE)
    assert len(cluster.started) == 1
    assert _says(cluster, ConditionType.DEGRADED) == (True, "ReportUnreadable")
    assert "(state: Input should be" in _condition(cluster, ConditionType.DEGRADED).message
    (driver,) = cluster.running()
    driver.behaviour = Behaviour.HANGS
    cluster.advance(11 * MINUTE)
    assert driver.exit is not None, "nothing new came"


def test_a_driver_keeps_its_rights_until_it_has_ended() -> None:
    cluster = _running()
    binding = Reference(Kind.RoleBinding, "lake", "orders-json")

    def account() -> str:
        (subject,) = cluster.objects[binding]["subjects"]
        return str(subject["name"])

    (driver,) = cluster.running()
    cluster.edit(lambda spec: spec.update(kubernetes={"serviceAccount": "mine"}))
    while driver.exit is None:
        cluster.reconcile()
        assert account() == "orders-json"
        cluster.advance(timedelta(seconds=5))
    cluster.advance(2 * MINUTE)
    assert (cluster.status.phase, account()) == (Phase.RUNNING, "mine")


def test_drivers_that_hang_are_restarted_less_and_less_often() -> None:
    cluster = _running()
    cluster.behaviour = lambda _: Behaviour.HANGS
    (driver,) = cluster.running()
    driver.behaviour = Behaviour.HANGS
    cluster.advance(150 * MINUTE, step=MINUTE / 3)
    times = [one.started_at for one in cluster.started]
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[2:7] == sorted(gaps[2:7])
    assert gaps[7] > gaps[2] + 3 * MINUTE
    cluster.behaviour = lambda _: Behaviour.WELL
    cluster.advance(16 * MINUTE)
    assert _says(cluster, ConditionType.READY) == (True, "Running")


def test_without_the_spark_operator_drivers_run_on_and_it_is_said_who_is_missing() -> None:
    cluster = _running()
    uids = _uids(cluster)
    cluster.spark_operator = False
    cluster.advance(5 * MINUTE)
    assert (cluster.status.phase, _uids(cluster)) == (Phase.RUNNING, uids)
    cluster.edit(lambda spec: spec["trigger"].update(interval="20s"))
    cluster.advance(3 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "SparkOperatorSilent")
    cluster.spark_operator = True
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING


def test_a_sparkapplication_that_a_finalizer_keeps_is_told() -> None:
    cluster = _running()
    cluster.objects[APP]["metadata"]["finalizers"] = ["backup.example.com/hold"]
    cluster.edit(lambda spec: spec["trigger"].update(interval="20s"))
    cluster.advance(3 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    cluster.advance(5 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DeletionHangs")
    assert "backup.example.com/hold" in _condition(cluster, ConditionType.READY).message
    del cluster.objects[APP]["metadata"]["finalizers"]
    cluster.delete(APP)
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING


def test_a_pod_that_has_ended_and_that_a_finalizer_keeps_is_told() -> None:
    cluster = _running()
    cluster.objects[POD]["metadata"]["finalizers"] = ["audit.example.com/hold"]
    cluster.edit(lambda spec: spec["trigger"].update(interval="20s"))
    cluster.advance(8 * MINUTE)
    assert cluster.running() == []
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DeletionHangs")
    message = _condition(cluster, ConditionType.READY).message
    assert "audit.example.com/hold" in message
    assert "delete the node" not in message
    del cluster.objects[POD]["metadata"]["finalizers"]
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING


def test_what_is_left_of_a_removed_writer_is_deleted_once_and_told() -> None:
    cluster = _running(writers=("json", "hudi"))
    document = Reference(Kind.ConfigMap, "lake", "orders-hudi-document")
    cluster.objects[document]["metadata"]["finalizers"] = ["backup.example.com/hold"]
    cluster.edit(lambda spec: spec["writers"].pop())
    cluster.advance(4 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    deletes = [one for one in cluster.api.requests if one[0] == "delete"]
    cluster.advance(20 * MINUTE)
    assert [one for one in cluster.api.requests if one[0] == "delete"] == deletes
    assert _reasons(cluster).count("WriterRemoved") == 2, "its driver is drained, and it is gone"
    assert _says(cluster, ConditionType.READY) == (True, "Running")
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DeletionHangs")
    assert "backup.example.com/hold" in _condition(cluster, ConditionType.DEGRADED).message
    assert [one.name for one in cluster.status.writers] == ["json"]
    del cluster.api.objects[document]
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")


def test_a_lakestream_that_only_others_finalizers_keep_says_so_once() -> None:
    cluster = _running()
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["finalizers"].append("example.com/hold")
    cluster.delete_lakestream()
    cluster.advance(MINUTE)
    assert cluster.lakestream["metadata"]["finalizers"] == ["example.com/hold"]
    assert cluster.status.phase is Phase.DELETING
    assert _says(cluster, ConditionType.READY) == (False, "Deleted")
    assert "example.com/hold" in _condition(cluster, ConditionType.READY).message
    assert (cluster.status.writers, cluster.status.lag) == ((), None)
    version = cluster.lakestream["metadata"]["resourceVersion"]
    cluster.advance(10 * MINUTE)
    assert cluster.lakestream["metadata"]["resourceVersion"] == version


def test_a_pod_that_never_ends_is_told() -> None:
    cluster = _running()
    cluster.kubelet = False
    cluster.delete(APP)
    cluster.advance(3 * MINUTE)
    assert _says(cluster, ConditionType.READY)[0] is False
    cluster.advance(5 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DeletionHangs")
    assert "delete the node" in _condition(cluster, ConditionType.READY).message
    cluster.kubelet = True
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING


def test_a_spec_that_turns_invalid_is_told_and_what_ran_goes_on() -> None:
    cluster = _running()
    uids = _uids(cluster)
    cluster.edit(lambda spec: spec.update(transform="DELETE FROM events"))
    cluster.advance(2 * MINUTE)
    assert _says(cluster, ConditionType.SPEC_VALID) == (False, "Invalid")
    assert "spec.transform" in _condition(cluster, ConditionType.SPEC_VALID).message
    assert _says(cluster, ConditionType.READY) == (False, "SpecInvalid"), "who waits for it waits for this spec"
    assert "What ran before goes on." in _condition(cluster, ConditionType.READY).message
    assert (cluster.status.phase, cluster.status.observed_generation) == (Phase.DEGRADED, 2)
    assert _uids(cluster) == uids
    assert _reasons(cluster).count("SpecInvalid") == 1
    cluster.delete(APP)
    cluster.advance(2 * MINUTE)
    assert len(cluster.running()) == 1, "what ran before is healed too"
    cluster.edit(lambda spec: spec.pop("transform"))
    cluster.advance(MINUTE)
    assert _says(cluster, ConditionType.READY) == (True, "Running")


def test_what_is_wrong_is_told_once_though_the_status_cannot_be_written() -> None:
    cluster = Cluster(lakestream(writers=("json", "hudi")))
    cluster.advance(2 * MINUTE)
    cluster.api.moods[Kind.LakeStream] = Mood.REFUSES
    cluster.edit(lambda spec: spec.update(transform="DELETE FROM events"))
    cluster.advance(2 * MINUTE)
    assert _reasons(cluster)[4:] == ["SpecInvalid"]
    cluster.edit(lambda spec: spec.pop("transform"))
    for driver in cluster.running():
        driver.poison = 0.5
    cluster.advance(10 * MINUTE)
    assert _reasons(cluster)[5:] == ["Quarantining", "Quarantining"]
    cluster.edit(lambda spec: spec.update(transform="DROP TABLE events"))
    cluster.advance(2 * MINUTE)
    assert _reasons(cluster)[7:] == ["SpecInvalid"]
    del cluster.api.moods[Kind.LakeStream]
    cluster.advance(MINUTE)
    cluster.restart_operator()
    cluster.advance(2 * MINUTE)
    assert _reasons(cluster)[8:] == [], "the status tells what was told"


def test_defaults_of_a_newer_crd_are_named_and_keep_nothing_from_going_on() -> None:
    cluster = _running()
    (driver,) = cluster.running()
    assert cluster.lakestream is not None
    # Without a new generation: the API server writes them into what it reads.
    cluster.lakestream["spec"]["trigger"]["newField"] = False
    cluster.api.touch(cluster.lakestream)
    cluster.edit(lambda spec: spec.update(scaling={"executors": 3, "newField": {"x": 1}}))
    cluster.advance(MINUTE)
    assert cluster.running() == [driver]
    assert cluster.status.phase is Phase.RUNNING
    assert cluster.status.executors.now == 3
    assert _says(cluster, ConditionType.SPEC_VALID) == (True, "FieldsUnknown")
    (valid,) = (one for one in cluster.status.conditions if one.type is ConditionType.SPEC_VALID)
    assert "spec.trigger.newField, spec.scaling.newField" in valid.message
    cluster.edit(lambda spec: spec["trigger"].pop("newField"))
    cluster.edit(lambda spec: spec["scaling"].pop("newField"))
    cluster.advance(MINUTE)
    assert cluster.running() == [driver]
    assert _says(cluster, ConditionType.SPEC_VALID) == (True, "Valid")


@pytest.mark.parametrize(
    ("field", "value"),
    [("lagSeconds", 1e12), ("records", 10**400), ("triggerInterval", "9999999h")],
    ids=["a lag", "records", "an interval"],
)
def test_a_report_that_says_what_cannot_be_ends_no_cycle(field: str, value: object) -> None:
    cluster = _running()
    (driver,) = cluster.running()
    report = json.loads(cluster.objects[PROGRESS]["data"][REPORT_KEY])
    report["batches"][-1][field] = value
    cluster.objects[PROGRESS]["data"] = {REPORT_KEY: json.dumps(report)}
    cluster.api.touch(cluster.objects[PROGRESS])
    cluster.reconcile()
    assert _says(cluster, ConditionType.READY) == (False, "ReportUnreadable")
    cluster.advance(MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert cluster.running() == [driver]


@pytest.mark.parametrize(
    "state",
    [
        '{"target":2,"evaluated_at":"2026-01-01T00:01:50"}',
        '{"target":2,"start_delays":[NaN]}',
        '{"target":2,"samples":[{"at":"2026-01-01T00:01:50Z","records":Infinity}]}',
        '{"target":2,"model":{"fixed":NaN,"fetch":0,"write":0}}',
    ],
)
def test_what_the_autoscaler_cannot_have_remembered_is_forgotten(state: str) -> None:
    cluster = _running()
    cluster.objects[CONTROL]["metadata"]["annotations"]["lakestream.dev/scaling-state"] = state
    cluster.api.touch(cluster.objects[CONTROL])
    cluster.restart_operator()
    cluster.advance(MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    assert cluster.status.executors.target == 1


def test_a_share_that_hovers_around_what_is_usual_is_told_once() -> None:
    cluster = _running()
    (driver,) = cluster.running()

    def after(poison: float, minutes: int) -> tuple[bool, int]:
        driver.poison = poison
        cluster.advance(minutes * MINUTE)
        return _says(cluster, ConditionType.QUARANTINING)[0], _reasons(cluster).count("Quarantining")

    assert after(0.013, 6) == (True, 1)
    assert after(0.009, 6) == (True, 1), "a little less is no end of it"
    cluster.restart_operator()
    assert after(0.009, 1) == (True, 1)
    assert after(0.007, 6) == (False, 1)
    assert after(0.009, 2) == (False, 1)
    assert after(0.02, 3) == (True, 1), "it was told of a few minutes ago"
    assert after(0.0, 20) == (False, 1)
    assert after(0.013, 6) == (True, 2)
    cluster.edit(lambda spec: spec.update(quarantine={"warnFraction": 0.015}))
    assert after(0.013, 1) == (False, 2), "what is asked for counts at once"


def test_an_invalid_spec_can_be_suspended() -> None:
    cluster = _running()
    cluster.edit(lambda spec: spec.update(transform="DELETE FROM events", suspend=True))
    cluster.advance(2 * MINUTE)
    assert cluster.running() == []
    assert cluster.status.phase is Phase.SUSPENDED
    assert _says(cluster, ConditionType.SPEC_VALID) == (False, "Invalid")


def test_a_spec_that_never_was_valid_starts_nothing() -> None:
    manifest = lakestream()
    manifest["spec"]["schema"] = ""
    cluster = Cluster(manifest)
    cluster.advance(2 * MINUTE)
    assert cluster.objects == {}
    assert cluster.status.phase is Phase.FAILED
    assert _says(cluster, ConditionType.READY) == (False, "SpecInvalid")
    problem = "spec.schema: is empty"
    assert problem in _condition(cluster, ConditionType.READY).message, "kubectl get -o wide shows this one"
    assert "What ran before" not in _condition(cluster, ConditionType.SPEC_VALID).message, "nothing did"


def test_a_spec_that_never_runs_is_rolled_back() -> None:
    manifest = lakestream()
    manifest["spec"]["rollback"] = True
    cluster = Cluster(manifest)
    cluster.advance(2 * MINUTE)
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else Behaviour.REFUSES
    cluster.edit(lambda spec: spec.update(schema="order_id whatever"))
    cluster.advance(5 * MINUTE)
    assert [driver.fingerprint for driver in cluster.running()] == [good.fingerprint]
    assert _says(cluster, ConditionType.DEGRADED) == (True, "RolledBack")
    assert _says(cluster, ConditionType.READY) == (False, "RolledBack"), "who waits for it waits for the new spec"
    assert cluster.status.phase is Phase.DEGRADED
    assert _reasons(cluster).count("RolledBack") == 1
    started = len(cluster.started)
    cluster.restart_operator()
    cluster.advance(20 * MINUTE)
    assert len(cluster.started) == started
    cluster.behaviour = lambda _: Behaviour.WELL
    cluster.edit(lambda spec: spec.update(schema="order_id string"))
    cluster.advance(5 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")
    assert _says(cluster, ConditionType.READY) == (True, "Running")
    assert cluster.running()[0].fingerprint != good.fingerprint


def test_a_spec_that_was_rolled_back_is_tried_again_after_another_one() -> None:
    cluster = _running(rollback=True)
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else Behaviour.REFUSES
    schema = cluster.lakestream["spec"]["schema"] if cluster.lakestream else ""
    cluster.edit(lambda spec: spec.update(schema="order_id string"))
    cluster.advance(5 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "RolledBack")
    cluster.edit(lambda spec: spec.update(schema=schema))
    cluster.advance(MINUTE)
    cluster.behaviour = lambda _: Behaviour.WELL
    cluster.edit(lambda spec: spec.update(schema="order_id string"))
    cluster.advance(5 * MINUTE)
    assert cluster.running()[0].fingerprint != good.fingerprint
    assert _says(cluster, ConditionType.DEGRADED) == (False, "AsExpected")


def test_a_restart_that_fails_is_no_spec_to_go_back_from() -> None:
    cluster = _running(rollback=True)
    assert cluster.lakestream is not None
    cluster.behaviour = lambda _: Behaviour.CRASHES
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "now"}
    cluster.advance(5 * MINUTE)
    assert _says(cluster, ConditionType.DEGRADED) == (True, "DriverFailed")
    cluster.behaviour = lambda _: Behaviour.WELL
    cluster.advance(10 * MINUTE)
    assert _says(cluster, ConditionType.READY) == (True, "Running")
    assert "RolledBack" not in _reasons(cluster)


def test_without_rollback_a_spec_that_never_runs_stays() -> None:
    cluster = _running()
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else Behaviour.REFUSES
    cluster.edit(lambda spec: spec.update(schema="order_id whatever"))
    cluster.advance(5 * MINUTE)
    assert cluster.running() == []
    assert _says(cluster, ConditionType.SPEC_VALID) == (False, "SettingsRefused")


@pytest.mark.parametrize("behaviour", [Behaviour.REFUSES, Behaviour.CRASHES])
def test_rollback_may_be_asked_for_once_a_spec_has_failed(behaviour: Behaviour) -> None:
    cluster = _running()
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else behaviour
    cluster.edit(lambda spec: spec.update(schema="order_id whatever"))
    cluster.advance(5 * MINUTE)
    cluster.edit(lambda spec: spec.update(rollback=True))
    cluster.advance(MINUTE)
    assert [one.fingerprint for one in cluster.running()] == [good.fingerprint]
    assert _says(cluster, ConditionType.DEGRADED) == (True, "RolledBack")


def test_a_rollback_that_is_refused_waits_until_it_is_tried_again() -> None:
    cluster = _running(rollback=True)
    (good,) = cluster.running()
    cluster.behaviour = lambda one: Behaviour.WELL if one == good.fingerprint else Behaviour.REFUSES
    cluster.edit(lambda spec: spec.update(schema="order_id whatever"))
    while cluster.started == [good] or good in cluster.running():
        cluster.advance(timedelta(seconds=5), step=timedelta(seconds=5))
    cluster.api.moods[Kind.ConfigMap] = Mood.REFUSES
    cluster.advance(MINUTE)
    decision = cluster.reconcile()
    assert decision is not None
    assert decision.wake_at > cluster.clock()


def test_a_restarted_operator_touches_nothing() -> None:
    cluster = _running(writers=("json", "hudi"))
    versions = {key: one["metadata"]["uid"] for key, one in cluster.objects.items()}
    told = len(cluster.events)
    cluster.restart_operator()
    cluster.advance(5 * MINUTE)
    assert {key: one["metadata"]["uid"] for key, one in cluster.objects.items()} == versions
    assert cluster.events[told:] == []


def test_a_restart_that_is_asked_for_is_made_once() -> None:
    cluster = _running()
    assert cluster.lakestream is not None
    cluster.lakestream["metadata"]["annotations"] = {"lakestream.dev/restart": "2026-01-01"}
    cluster.advance(10 * MINUTE)
    assert [driver.exit for driver in cluster.started] == [(0, ""), None]


def test_who_has_failed_again_and_again_and_runs_now_has_not_failed() -> None:
    cluster = Cluster(lakestream(), behaviour=lambda _: behaviour)
    behaviour = Behaviour.CRASHES
    cluster.advance(MINUTE)
    while cluster.status.writers[0].restarts < 3:
        cluster.advance(MINUTE / 6)
    behaviour = Behaviour.WELL
    cluster.advance(3 * MINUTE)
    said = {one.type: one.status for one in cluster.status.conditions}
    assert (said[ConditionType.READY], said[ConditionType.DEGRADED]) == (ConditionStatus.TRUE, ConditionStatus.TRUE)
    assert cluster.status.phase is Phase.DEGRADED
