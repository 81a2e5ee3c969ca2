"""Orders of the operator, obeyed without ever being needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from queue import Queue

import pytest

from lakestream.control import Executor, ExecutorCounts, NoControl, Pod, PodControl
from lakestream.control.pod import DriverControl, Orders
from lakestream.kinesis import StreamSummary
from lakestream.statuses import Exit
from lakestream.stopping import StopSignal
from lakestream.testing.logs import EPOCH_TIME, ManualClock
from lakestream_api.control import Control
from lakestream_api.names import WriterNames
from lakestream_api.report import DriverReport, DriverState, ExecutorsReport, Failure, Resharding

NAMES = WriterNames("orders", "hudi")
POD = Pod("orders-hudi-driver", "1234", "lake")
ENVIRONMENT = {"LAKESTREAM_POD": "orders-hudi-driver", "LAKESTREAM_POD_UID": "1234", "LAKESTREAM_NAMESPACE": "lake"}


@dataclass
class Cluster:
    """The ConfigMaps; `changes` is what a watch is told. An exception in it breaks the watch."""

    control: Mapping[str, str] | None = None
    reports: list[DriverReport] = field(default_factory=list)
    changes: Queue[Mapping[str, str] | Exception | None] = field(default_factory=Queue)
    down: bool = False
    removed: list[Mapping[str, str]] = field(default_factory=list)
    """By which labels pods were."""
    wrote: threading.Condition = field(default_factory=threading.Condition)

    def read(self, name: str) -> Mapping[str, str] | None:
        assert name == "orders-hudi-control"
        if self.down:
            raise ConnectionError("no API server")
        return self.control

    def write(self, name: str, key: str, value: str) -> None:
        assert (name, key) == ("orders-hudi-progress", "report.json")
        if self.down:
            raise ConnectionError("no API server")
        with self.wrote:
            self.reports.append(DriverReport.model_validate_json(value))
            self.wrote.notify_all()

    def reported(self, what: Callable[[DriverReport], object]) -> bool:
        """Wait until the last report is so."""
        with self.wrote:
            return self.wrote.wait_for(lambda: self.reports and what(self.reports[-1]), 60)

    def remove_pods(self, labels: Mapping[str, str]) -> None:
        self.removed.append(labels)

    def follow(self, name: str) -> Iterator[Mapping[str, str] | None]:
        assert name == "orders-hudi-control"
        while True:
            change = self.changes.get()
            if isinstance(change, Exception):
                raise change
            yield change


@dataclass
class Pool:
    """Counts what is asked for; all of it is there at once."""

    total: int = 1
    asked: threading.Event = field(default_factory=threading.Event)

    def counts(self) -> ExecutorCounts:
        return ExecutorCounts(self.total, 0)

    def executors(self) -> tuple[Executor, ...]:
        return tuple(Executor(number, 0, 0) for number in range(self.total))

    def finished_tasks(self) -> int:
        return 0

    def request_total(self, executors: int) -> None:
        self.total = executors
        self.asked.set()

    def decommission(self, ids: Sequence[int]) -> None:
        raise AssertionError(ids)


@dataclass
class Stream:
    """A stream that is resharded at once."""

    shards: int = 2

    def describe_stream_summary(self) -> StreamSummary:
        return StreamSummary("arn:x", EPOCH_TIME, timedelta(days=1), self.shards, is_updating=False, places_by_key=True)

    def update_shard_count(self, shards: int) -> None:
        self.shards = shards


def orders(text: str) -> dict[str, str]:
    return {"control.json": text}


def control_of(cluster: Cluster, stop: StopSignal | None = None, clock: ManualClock | None = None) -> PodControl:
    clock = clock or ManualClock()
    return PodControl(POD, NAMES, cluster, stop or StopSignal(), now=clock, monotonic=clock.monotonic)


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (None, "there are none"),
        ({}, "there are none"),
        ({"other": "{}"}, "there are none"),
        (orders("no JSON"), "make no sense"),
        (orders('{"executors": "many"}'), "make no sense"),
        (orders('{"executors": 0}'), "make no sense"),
        (orders("[]"), "make no sense"),
    ],
)
def test_orders_that_are_missing_or_nonsense_leave_the_last_ones_standing(
    data: Mapping[str, str] | None, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Orders()
    kept.take(orders('{"executors": 3, "a field of tomorrow": 1}'))
    assert kept.take(data) == kept.take(data) == Control(executors=3)
    assert caplog.text.count(complaint) == 1, "a thing is said once, and not with every look"
    assert kept.take(orders('{"executors": 5}')) == Control(executors=5)
    kept.take(data)
    assert caplog.text.count(complaint) == 2


def test_a_driver_starts_at_the_target_it_finds() -> None:
    with control_of(Cluster(control=orders('{"executors": 7}'))) as control:
        assert control.executors == 7


def test_a_driver_that_was_told_to_stop_before_it_began_stops() -> None:
    cluster, stop = Cluster(control=orders('{"drain": "now"}')), StopSignal()
    with control_of(cluster, stop) as control:
        assert stop.is_set()
        control.ended()
    assert (cluster.reports[-1].state, cluster.reports[-1].drain) == ("DRAINED", "now")


def test_targets_are_followed_while_batches_run() -> None:
    cluster, pool = Cluster(), Pool()
    with control_of(cluster) as control:
        assert control.executors is None
        control.running(pool, 1, Stream())
        cluster.changes.put(orders('{"executors": 4}'))
        assert cluster.reported(lambda report: report.executors == ExecutorsReport(target=4, registered=4))
        assert (control.executors, pool.total) == (4, 4)


def test_shards_are_asked_for_and_told() -> None:
    cluster, stream = Cluster(control=orders('{"shards": 4}')), Stream()
    with control_of(cluster) as control:
        control.running(Pool(), 1, stream)
        asked = Resharding(ordered=4, open_shards=2, updating=True)
        assert cluster.reported(lambda report: report.resharding == asked)
    assert stream.shards == 4


def test_without_an_order_the_stream_is_left_alone() -> None:
    cluster, pool, stream = Cluster(), Pool(), Stream()
    # A resharder is not waited for, so that those of the tests before may still be there.
    before = set(threading.enumerate())
    with control_of(cluster) as control:
        control.running(pool, 1, stream)
        cluster.changes.put(orders('{"executors": 4}'))
        assert pool.asked.wait(60)
        assert "resharding" not in {thread.name for thread in set(threading.enumerate()) - before}
    assert (stream.shards, cluster.reports[-1].resharding) == (2, None)


def test_a_watch_that_breaks_is_begun_again(caplog: pytest.LogCaptureFixture) -> None:
    cluster, pool = Cluster(), Pool()
    with caplog.at_level(logging.WARNING), control_of(cluster) as control:
        control.running(pool, 1, Stream())
        cluster.changes.put(ConnectionError("reset"))
        cluster.changes.put(None)
        cluster.changes.put(orders('{"executors": 2}'))
        assert pool.asked.wait(60)
    assert "cannot be followed: reset" in caplog.text


def test_a_drain_is_acknowledged_and_ends_in_drained() -> None:
    cluster, stop = Cluster(), StopSignal()
    with control_of(cluster, stop) as control:
        control.running(Pool(), 1, Stream())
        cluster.changes.put(orders('{"executors": 1, "drain": "a1"}'))
        stop.wait(60)
        assert stop.is_set()
        control.ended()
    assert (cluster.reports[-1].state, cluster.reports[-1].drain) == ("DRAINED", "a1")


def test_a_drain_is_acknowledged_by_a_driver_that_ends_as_soon_as_it_is_told_to() -> None:
    over = threading.Event()

    class Telling(StopSignal):
        """The thread that tells the driver to stop comes to nothing more before the driver has ended."""

        def set(self) -> None:
            super().set()
            assert over.wait(60)

    cluster, stop = Cluster(), Telling()
    with control_of(cluster, stop) as control:
        control.running(Pool(), 1, Stream())
        cluster.changes.put(orders('{"drain": "a1"}'))
        stop.wait(60)
        control.ended()
    over.set()
    assert (cluster.reports[-1].state, cluster.reports[-1].drain) == ("DRAINED", "a1")


def test_a_signal_is_told_as_draining() -> None:
    cluster, stop = Cluster(), StopSignal()
    with control_of(cluster, stop) as control:
        control.running(Pool(), 1, Stream())
        stop.set()
        control.took_over(5)
        assert cluster.reported(lambda report: (report.state, report.drain) == (DriverState.DRAINING, None))


def test_without_an_api_server_a_driver_runs_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    cluster, stop = Cluster(down=True), StopSignal()
    with control_of(cluster, stop) as control:
        assert control.executors is None
        control.running(Pool(), 1, Stream())
        control.between_batches()
        control.ended()
    assert not stop.is_set()
    assert cluster.reports == []
    assert "orders could not be read: no API server" in caplog.text


def test_a_failure_is_told_with_its_exit_status() -> None:
    cluster = Cluster()
    with control_of(cluster) as control:
        control.failed(Exit.SETTINGS, "spec.schema:\n no such type")
    failure = cluster.reports[-1].failure
    assert cluster.reports[-1].state is DriverState.FAILED
    assert failure is not None
    assert (failure.exit, failure.message) == (2, "spec.schema: no such type")


def test_a_driver_that_another_has_replaced_does_not_overwrite_its_report() -> None:
    cluster = Cluster()
    with control_of(cluster) as control:
        control.failed(Exit.FENCED, "epoch 6 has taken over")
    assert [report for report in cluster.reports if report.state is DriverState.FAILED] == []


def test_life_is_a_batch_or_a_look_within_ten_minutes() -> None:
    clock = ManualClock()
    control = control_of(Cluster(), clock=clock)
    clock.time += timedelta(minutes=9)
    assert control._lives()
    control.idle(clock.time, clock.time)
    clock.time += timedelta(minutes=9)
    assert control._lives()
    clock.time += timedelta(minutes=2)
    assert not control._lives()
    control.between_batches()
    assert control._lives()


def test_a_look_is_told_by_the_clocks_of_the_driver_and_of_kinesis() -> None:
    clock, cluster = ManualClock(), Cluster()
    control = control_of(cluster, clock=clock)
    looked_at, caught_up_to = clock.time - timedelta(seconds=8), clock.time + timedelta(minutes=12)
    control.idle(looked_at, caught_up_to)
    control._reporter.tick()
    (report,) = cluster.reports
    assert (report.caught_up_at, report.caught_up_to) == (looked_at, caught_up_to)


@pytest.mark.parametrize("hours", [-6, 6])
def test_life_does_not_go_by_a_clock_that_somebody_sets(hours: int) -> None:
    wall, clock = ManualClock(), ManualClock()
    control = PodControl(POD, NAMES, Cluster(), StopSignal(), now=wall, monotonic=clock.monotonic)
    wall.advance(hours * 3600)
    assert control._lives()
    clock.advance(601)
    assert not control._lives()


@pytest.mark.parametrize("lacking", [*ENVIRONMENT, None])
def test_only_a_pod_that_the_operator_made_is_a_pod(lacking: str | None) -> None:
    found = Pod.from_environment({name: value for name, value in ENVIRONMENT.items() if name != lacking})
    assert found == (POD if lacking is None else None)


def test_elsewhere_nobody_gives_orders() -> None:
    nobody: DriverControl = NoControl()
    nobody.running(Pool(), 3, Stream())
    nobody.between_batches()
    assert nobody.executors is None


def test_what_a_driver_waits_for_is_told_until_it_runs() -> None:
    cluster = Cluster()
    away = Failure.of(Exit.STORAGE, "S3 does not answer")
    with PodControl(POD, NAMES, cluster, StopSignal(), awaits=away, now=ManualClock()) as control:
        assert cluster.reported(lambda report: report.failure and report.failure.message == "S3 does not answer")
        assert (cluster.reports[-1].state, cluster.reports[-1].epoch) == (DriverState.STARTING, None)
        control.took_over(2)
        assert cluster.reported(lambda report: report.epoch == 2 and report.failure == away)
        control.running(Pool(), 1, Stream())
        assert cluster.reported(lambda report: report.state is DriverState.RUNNING and report.failure is None)


def test_executors_of_a_jvm_that_is_gone_are_removed_by_what_spark_and_the_operator_label_them_with() -> None:
    cluster = Cluster()
    control_of(cluster).forget_executors()
    (labels,) = cluster.removed
    assert labels["spark-role"] == "executor"
    assert (labels["lakestream.dev/stream"], labels["lakestream.dev/writer"]) == ("orders", "hudi")
