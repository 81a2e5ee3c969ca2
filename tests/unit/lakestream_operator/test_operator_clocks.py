"""The clock of the operator's node is ahead, as before the first answer of NTP, and is put right: also where no answer
of the API server tells its time."""

from datetime import timedelta

import pytest

from lakestream_api import LakeStreamStatus, Phase
from lakestream_operator.autoscaler import ScalingState, ShardState
from lakestream_operator.model import Kind, Reference
from lakestream_operator.testing import Behaviour, Cluster, Mood, lakestream

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
CONTROL = Reference(Kind.ConfigMap, "lake", "orders-json-control")


def _running(behaviour: Behaviour = Behaviour.WELL) -> Cluster:
    cluster = Cluster(lakestream(), behaviour=lambda _: behaviour, tells_time=False)
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.RUNNING
    return cluster


@pytest.mark.parametrize("restarted", [False, True], ids=["", "and the operator starts anew"])
@pytest.mark.parametrize("ahead", [timedelta(minutes=-11), timedelta(minutes=2), timedelta(minutes=11), DAY], ids=str)
def test_a_driver_that_is_well_is_left_alone(ahead: timedelta, *, restarted: bool) -> None:
    cluster = _running()
    cluster.advance(10 * MINUTE, step=MINUTE / 2)
    for clock in (ahead, timedelta()):
        cluster.ahead = clock
        if restarted:
            cluster.restart_operator()
        cluster.advance(MINUTE)
        assert cluster.status.phase is Phase.RUNNING, "a restarted operator has heard of it by now"
        cluster.advance(19 * MINUTE, step=MINUTE / 2)
    assert len(cluster.started) == 1
    assert "NoProgress" not in [one.reason for one in cluster.events]


@pytest.mark.parametrize("restarted", [False, True], ids=["", "and the operator starts anew"])
@pytest.mark.parametrize("ahead", [timedelta(minutes=-11), timedelta(minutes=11), DAY], ids=str)
def test_a_driver_that_hangs_is_restarted_once_it_has_been_silent_for_long(
    ahead: timedelta, *, restarted: bool
) -> None:
    cluster = _running()
    (driver,) = cluster.running()
    driver.behaviour = Behaviour.HANGS
    cluster.ahead = ahead
    if restarted:
        cluster.restart_operator()
    cluster.advance(9 * MINUTE)
    assert driver.exit is None
    assert cluster.status.phase is Phase.FAILED
    cluster.advance(3 * MINUTE)
    assert driver.exit is not None


def _busy(operators: int, drivers: int) -> LakeStreamStatus:
    document = lakestream()
    document["spec"] |= {"scaling": {"maxExecutors": 20}}
    cluster = Cluster(document, ahead=operators * MINUTE, node_ahead=drivers * MINUTE)
    cluster.kinesis.open_shards, cluster.kinesis.records_per_second = 64, 40_000
    cluster.kinesis.core_seconds = 100.0
    cluster.advance(20 * MINUTE)
    return cluster.status


@pytest.fixture(scope="module", name="right")
def _right() -> LakeStreamStatus:
    """What it is where all clocks are."""
    return _busy(0, 0)


@pytest.mark.parametrize(("operators", "drivers"), [(0, -12), (0, 12), (-12, 0), (2, 0), (12, 0), (12, -12)])
def test_the_clock_of_no_node_changes_figures_or_executors(
    operators: int, drivers: int, right: LakeStreamStatus
) -> None:
    status = _busy(operators, drivers)
    assert right.executors.now >= 5, right.writers[0].scaling
    assert status.executors == right.executors, status.writers[0].scaling
    assert (status.lag, status.records_per_second) == (right.lag, right.records_per_second)
    assert status.phase is Phase.RUNNING


@pytest.mark.parametrize("ahead", [timedelta(minutes=-12), timedelta(minutes=12)], ids=str)
def test_lag_grows_while_a_driver_hangs_whatever_the_operators_clock_says(ahead: timedelta) -> None:
    cluster = Cluster(lakestream(), ahead=ahead)
    cluster.advance(5 * MINUTE)
    assert cluster.status.lag == timedelta()
    cluster.running()[0].behaviour = Behaviour.HANGS
    cluster.advance(5 * MINUTE)
    assert cluster.status.lag is not None
    assert 5 * MINUTE <= cluster.status.lag <= 6 * MINUTE


def test_an_operator_that_was_frozen_ends_no_driver() -> None:
    cluster = _running()
    cluster.blind = {Kind.ConfigMap}
    cluster.advance(2 * MINUTE)
    # What its watches have told meanwhile is not taken in yet at its first looks.
    cluster.advance(20 * MINUTE, operator=False)
    cluster.advance(MINUTE)
    cluster.blind = set()
    cluster.advance(MINUTE)
    assert (cluster.status.phase, len(cluster.started)) == (Phase.RUNNING, 1)


def test_a_new_spec_is_given_the_time_to_start() -> None:
    cluster = _running()
    cluster.ahead = 11 * MINUTE
    cluster.spark_operator = False
    cluster.edit(lambda spec: spec.update(rollback=True, trigger={"interval": "20s"}))
    cluster.spark_operator = True
    cluster.kubelet = False
    cluster.advance(5 * MINUTE)
    cluster.kubelet = True
    cluster.advance(2 * MINUTE)
    assert "RolledBack" not in [one.reason for one in cluster.events]


@pytest.mark.parametrize("restarted", [False, True], ids=["", "and the operator starts anew"])
def test_a_writer_that_backs_off_is_started_again(*, restarted: bool) -> None:
    cluster = _running()
    (driver,) = cluster.running()
    driver.exit = (1, "the stream cannot be reached")
    cluster.ahead = DAY
    cluster.advance(timedelta(seconds=5))
    assert cluster.status.phase is Phase.FAILED
    cluster.ahead = timedelta()
    if restarted:
        cluster.restart_operator()
    cluster.advance(15 * MINUTE)
    assert len(cluster.running()) == 1


def test_a_driver_that_does_not_listen_is_not_waited_for_any_longer() -> None:
    cluster = _running(Behaviour.DEAF)
    cluster.ahead = DAY
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.advance(timedelta(seconds=5))
    cluster.ahead = timedelta()
    cluster.advance(10 * MINUTE)
    assert cluster.running() == []


def test_a_lost_driver_is_replaced() -> None:
    cluster = _running()
    cluster.spark_operator = False
    cluster.advance(MINUTE)
    cluster.ahead = DAY
    # Forced, so that nothing is told of its end.
    (pod,) = cluster.find(Kind.Pod)
    del cluster.api.objects[Reference.of(pod)]
    cluster.advance(timedelta(seconds=5))
    cluster.ahead = timedelta()
    cluster.advance(5 * MINUTE)
    assert [one.reason for one in cluster.events].count("DriverLost") == 1


def test_what_was_refused_is_tried_again() -> None:
    cluster = _running()
    cluster.ahead = DAY
    cluster.api.moods[Kind.ConfigMap] = Mood.OVERLOADED
    cluster.edit(lambda spec: spec.update(suspend=True))
    cluster.advance(MINUTE)
    cluster.api.moods.clear()
    cluster.ahead = timedelta()
    cluster.advance(2 * MINUTE)
    assert cluster.status.phase is Phase.SUSPENDED


@pytest.mark.parametrize("restarted", [False, True], ids=["", "and the operator starts anew"])
def test_executors_and_shards_are_decided_on(*, restarted: bool) -> None:
    document = lakestream()
    document["spec"]["source"]["kinesis"]["shards"] = {"min": 2, "max": 8}
    cluster = Cluster(document, ahead=DAY, tells_time=False)
    cluster.advance(5 * MINUTE)
    cluster.ahead = timedelta()
    if restarted:
        cluster.restart_operator()
    cluster.advance(5 * MINUTE)
    annotations = cluster.objects[CONTROL]["metadata"]["annotations"]
    scaling = ScalingState.from_json(annotations["lakestream.dev/scaling-state"])
    shards = ShardState.from_json(annotations["lakestream.dev/shards-state"])
    for decided in (scaling.evaluated_at, shards.decided_at):
        assert decided is not None
        assert cluster.now - 3 * MINUTE < decided <= cluster.now
