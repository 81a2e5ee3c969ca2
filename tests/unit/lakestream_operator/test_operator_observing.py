"""What is made of objects as the API server gives them."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakestream_api import DriverReport, TableService, WriterNames
from lakestream_operator.model import Kind, Memory, PodPhase
from lakestream_operator.observer import stream_of, trim, writer_of
from lakestream_operator.render.objects import MEMORY_ANNOTATION
from lakestream_operator.status import is_news, lag_of
from lakestream_operator.testing import Cluster, lakestream, report_of

NAMES = WriterNames("orders", "json")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
INTERVAL = timedelta(seconds=10)


def _pod(name: str = "orders-json-driver", **status: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "lake", "uid": "pod-1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return trim(Kind.Pod, {"metadata": metadata, "status": status})


def _state(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "spark-kubernetes-driver", "state": state}]


def _init(name: str, state: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "state": state}


@pytest.mark.parametrize(
    ("status", "phase", "exit_status", "message"),
    [
        ({}, PodPhase.PENDING, None, ""),
        (
            {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "no CPU"}]},
            PodPhase.PENDING,
            None,
            "no node takes it: no CPU",
        ),
        (
            {"phase": "Pending", "containerStatuses": _state(waiting={"reason": "ErrImagePull", "message": "no such"})},
            PodPhase.PENDING,
            None,
            "ErrImagePull: no such",
        ),
        (
            {"phase": "Pending", "containerStatuses": _state(waiting={"reason": "ContainerCreating"})},
            PodPhase.PENDING,
            None,
            "",
        ),
        (
            {"phase": "Failed", "containerStatuses": _state(terminated={"exitCode": 3, "message": "no\n right "})},
            PodPhase.FAILED,
            3,
            "no right",
        ),
        (
            {"phase": "Failed", "containerStatuses": _state(terminated={"exitCode": 137, "reason": "OOMKilled"})},
            PodPhase.FAILED,
            137,
            "OOMKilled",
        ),
        (
            {
                "phase": "Failed",
                "containerStatuses": _state(
                    terminated={"exitCode": 137, "reason": "OOMKilled", "message": "nobody has asked"}
                ),
            },
            PodPhase.FAILED,
            137,
            "OOMKilled: nobody has asked",
        ),
        (
            {"phase": "Failed", "containerStatuses": _state(terminated={"exitCode": 1, "reason": "Error"})},
            PodPhase.FAILED,
            1,
            "",
        ),
        (
            {"phase": "Failed", "message": "The node was low on memory."},
            PodPhase.FAILED,
            None,
            "The node was low on memory.",
        ),
        (
            {
                "phase": "Failed",
                "reason": "Evicted",
                "message": "The node was low on resource: ephemeral-storage. ",
                "containerStatuses": _state(terminated={"exitCode": 0, "message": "ended by SIGTERM"}),
            },
            PodPhase.FAILED,
            0,
            "The node was low on resource: ephemeral-storage. ended by SIGTERM",
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [_init("proxy", {"waiting": {"reason": "ErrImagePull", "message": "denied"}})],
                "containerStatuses": _state(waiting={"reason": "PodInitializing"}),
            },
            PodPhase.PENDING,
            None,
            "init container proxy: ErrImagePull: denied",
        ),
        (
            {
                "phase": "Failed",
                "initContainerStatuses": [
                    _init("done", {"terminated": {"exitCode": 0, "reason": "Completed"}}),
                    _init("rules", {"terminated": {"exitCode": 2, "reason": "Error", "message": "no\n right"}}),
                ],
                "containerStatuses": _state(waiting={"reason": "PodInitializing"}),
            },
            PodPhase.FAILED,
            None,
            "init container rules ended with status 2: Error: no right",
        ),
        (
            {
                "phase": "Pending",
                "initContainerStatuses": [_init("rules", {"waiting": {"reason": "PodInitializing"}})],
                "containerStatuses": _state(waiting={"reason": "PodInitializing"}),
            },
            PodPhase.PENDING,
            None,
            "",
        ),
    ],
)
def test_a_pod_says_why(status: Any, phase: PodPhase, exit_status: int | None, message: str) -> None:
    pod = writer_of(NAMES, [_pod(**status)]).driver_pod
    assert pod is not None
    assert (pod.phase, pod.exit, pod.message) == (phase, exit_status, message)


def test_containers_that_others_put_in_are_not_the_driver() -> None:
    sidecar = {"name": "proxy", "state": {"terminated": {"exitCode": 9}}}
    pod = writer_of(NAMES, [_pod(phase="Running", containerStatuses=[sidecar, *_state(running={})])]).driver_pod
    assert pod is not None
    assert pod.exit is None


def test_executors_that_wait_are_seen() -> None:
    waits, runs = _pod("orders-json-exec-1", phase="Pending"), _pod("orders-json-exec-2", phase="Running")
    seen = writer_of(NAMES, [waits, runs])
    assert (seen.pending_since, seen.pending_for, seen.driver_pod) == (NOW, "", None)


def test_executors_that_wait_say_what_for() -> None:
    state = {
        "name": "spark-kubernetes-executor",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "401"}},
    }
    waits = _pod("orders-json-exec-1", phase="Pending", containerStatuses=[state])
    assert writer_of(NAMES, [waits]).pending_for == "ImagePullBackOff: 401"


def _config_map(name: str, data: dict[str, str], annotations: dict[str, str] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "lake", "uid": "x", "annotations": annotations or {}},
        "data": data,
    }


@pytest.mark.parametrize("nonsense", ["", "{", "[]", '{"executors": 0}', '{"drain": 1, "pod": 1}'])
def test_nonsense_says_nothing(nonsense: str) -> None:
    control = _config_map(NAMES.control, {"control.json": nonsense}, {MEMORY_ANNOTATION: nonsense or "?"})
    seen = writer_of(NAMES, [control, _config_map(NAMES.progress, {"report.json": nonsense})])
    assert (seen.report, seen.control, seen.memory) == (None, None, Memory())


def test_a_status_that_is_not_ours_is_written_anew() -> None:
    manifest = lakestream()
    manifest["metadata"] |= {"uid": "u"}
    manifest["status"] = {"phase": "Wonderful"}
    assert stream_of(manifest).status is None


def _lag(report: DriverReport, *, alive: bool = True, after: timedelta = timedelta()) -> float:
    lag = lag_of(report, NOW + after, alive=alive, interval=INTERVAL)
    assert lag is not None
    return lag.seconds


@pytest.mark.parametrize(
    ("lag", "age", "alive", "expected"),
    [
        (0.0, 5, True, 0.0),
        (30.0, 5, True, 30.0),
        (0.0, 5, False, 5.0),
        (30.0, 600, False, 630.0),
        (0.0, 600, True, 600.0),
    ],
)
def test_lag_grows_while_nobody_reads(lag: float, age: int, alive: bool, expected: float) -> None:
    report = report_of(NOW - timedelta(seconds=age), lag=lag)
    assert _lag(report, alive=alive) == expected


@pytest.mark.parametrize(
    ("lag", "planned", "idle", "expected"),
    [
        (0.0, 20, None, 0.0),
        (0.0, 21, None, 21.0),
        (0.0, 45, None, 45.0),
        (30.0, 45, None, 45.0),
        (90.0, 45, None, 90.0),
        (0.0, 45, 1, 0.0),
    ],
)
def test_batches_that_take_long_are_late_even_at_the_tip(
    lag: float, planned: int, idle: int | None, expected: float
) -> None:
    """Of a trigger interval of 10 s."""
    report = report_of(NOW, lag=lag)
    batch = report.batches[-1].model_copy(update={"horizon": NOW - timedelta(seconds=planned)})
    looked = None if idle is None else NOW + timedelta(seconds=idle)
    report = report.model_copy(update={"batches": (batch,), "caught_up_at": looked})
    assert _lag(report) == expected


def test_a_driver_that_begins_is_as_far_behind_as_the_one_before_was() -> None:
    until = NOW - timedelta(minutes=7)
    for report in (report_of(NOW, batches=0), None):
        lag = lag_of(report, NOW, alive=report is not None, interval=INTERVAL, before=until)
        assert lag is not None
        assert (lag.seconds, lag.until) == (420.0, until)
        assert lag_of(report, NOW, alive=False, interval=INTERVAL) is None, "there was none before"


def test_a_driver_that_lives_and_is_answered_by_nobody_falls_behind() -> None:
    report = report_of(NOW).model_copy(update={"updated_at": NOW + timedelta(minutes=5)})
    assert _lag(report, after=timedelta(seconds=60)) == 0.0
    assert _lag(report, after=timedelta(seconds=66)) == 66.0
    assert (
        _lag(report.model_copy(update={"caught_up_at": NOW + timedelta(seconds=30)}), after=timedelta(seconds=66)) == 0
    )


@pytest.mark.parametrize("ahead", [timedelta(minutes=-12), timedelta(seconds=-11), timedelta(minutes=12)], ids=str)
def test_a_report_is_taken_by_the_api_servers_clock_and_kinesis_times_stay(ahead: timedelta) -> None:
    failing = TableService(name="cleaning", failing=2, failing_since=NOW)
    right = report_of(NOW, batches=3).model_copy(update={"caught_up_at": NOW, "table_services": (failing,)})
    batches = tuple(one.model_copy(update={"finished_at": one.finished_at + ahead}) for one in right.batches)
    wrong = right.model_copy(
        update={
            "started_at": right.started_at + ahead,
            "updated_at": NOW + ahead,
            "caught_up_at": NOW + ahead,
            "batches": batches,
            "table_services": (failing.model_copy(update={"failing_since": NOW + ahead}),),
        }
    )
    progress = _config_map(NAMES.progress, {"report.json": wrong.model_dump_json()})
    progress["metadata"]["managedFields"] = [{"manager": "lakestream", "time": "2026-01-01T00:00:00Z"}]
    assert writer_of(NAMES, [trim(Kind.ConfigMap, progress)]).report == right


@pytest.mark.parametrize(
    "updated_at",
    [NOW - timedelta(seconds=9), datetime.max.replace(tzinfo=UTC), datetime(3970, 1, 1, tzinfo=UTC)],
    ids=["on its way", "the year 9999", "the year 3970"],
)
def test_a_report_of_a_clock_that_is_right_or_none_at_all_is_taken_as_it_is(updated_at: datetime) -> None:
    report = report_of(NOW).model_copy(update={"updated_at": updated_at})
    progress = _config_map(NAMES.progress, {"report.json": report.model_dump_json()})
    progress["metadata"]["managedFields"] = [{"manager": "lakestream", "time": "2026-01-01T00:00:00Z"}]
    assert writer_of(NAMES, [trim(Kind.ConfigMap, progress)]).report == report


def test_when_a_report_was_written_is_told_by_the_api_server() -> None:
    progress = _config_map(NAMES.progress, {"report.json": report_of(NOW).model_dump_json()})
    ours = {"manager": "lakestream-operator", "time": "2026-01-01T00:07:00Z"}
    theirs: list[dict[str, Any]] = [
        {"manager": "lakestream", "time": f"2026-01-01T00:0{minute}:00Z"} for minute in (1, 3, 2)
    ]
    theirs[1]["fieldsV1"] = {"f:data": {"f:report.json": {}}}
    label = {"manager": "kubectl", "time": "2026-01-01T00:08:00Z", "fieldsV1": {"f:metadata": {"f:labels": {}}}}
    for fields, expected in (([ours, *theirs, label], NOW + timedelta(minutes=3)), ([ours, label], None), ([], None)):
        progress["metadata"]["managedFields"] = fields
        trimmed = trim(Kind.ConfigMap, progress)
        assert "managedFields" not in trimmed["metadata"]
        assert writer_of(NAMES, [trimmed]).reported_at == expected


def test_of_all_that_a_submission_printed_a_line_is_told() -> None:
    cluster = Cluster(lakestream())
    cluster.spark_operator = False
    cluster.advance(timedelta(seconds=30))
    (application,) = cluster.find(Kind.SparkApplication)
    printed = "failed to run spark-submit:\n\tat java.base/" + "x" * 300_000
    application["status"] = {"applicationState": {"state": "FAILED", "errorMessage": printed}}
    cluster.api.touch(application)
    cluster.advance(timedelta(seconds=10))
    message = cluster.status.writers[0].message
    assert message.startswith("failed to run spark-submit: at java.base/xxx")
    assert message.endswith("See the SparkApplication's events.")
    (control,) = (one for one in cluster.find(Kind.ConfigMap) if one["metadata"]["name"] == NAMES.control)
    assert len(control["metadata"]["annotations"][MEMORY_ANNOTATION]) < 4096


def test_an_idle_stream_has_no_lag() -> None:
    report = report_of(NOW - timedelta(minutes=30)).model_copy(update={"caught_up_at": NOW, "updated_at": NOW})
    assert _lag(report) == 0.0


def test_a_driver_that_has_found_nothing_to_read_has_no_lag() -> None:
    report = report_of(NOW, batches=0).model_copy(update={"caught_up_at": NOW})
    assert _lag(report) == 0.0


@pytest.mark.parametrize(("minutes", "lag"), [(60, 0.0), (62, 3720.0)])
def test_until_its_first_batch_a_driver_looks_as_often_as_the_trigger_says(minutes: int, lag: float) -> None:
    now = NOW + timedelta(minutes=minutes)
    report = report_of(now, batches=0).model_copy(update={"caught_up_at": NOW})
    found = lag_of(report, now, alive=True, interval=timedelta(minutes=30))
    assert found is not None
    assert found.seconds == lag


def test_figures_alone_are_no_news_for_a_while() -> None:
    cluster = Cluster(lakestream())
    cluster.advance(timedelta(minutes=2))
    before = cluster.status
    after = before.model_copy(update={"lag": timedelta(seconds=5)})
    assert not is_news(before, after, timedelta(seconds=14))
    assert is_news(before, after, timedelta(seconds=15))
    assert not is_news(before, before, timedelta.max)
    assert is_news(None, before, timedelta())
