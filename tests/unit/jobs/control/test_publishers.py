"""Where progress goes: reporter, file, Prometheus."""

from __future__ import annotations

import json
import logging
import os
import urllib.request
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from prometheus_client import CollectorRegistry

from lakestream.control import (
    Job,
    JsonLinesProgress,
    ProgressReporter,
    PrometheusProgress,
    read_progress,
    serve_metrics,
)
from lakestream.errors import SettingsError
from lakestream.model import BatchCommit, FileEntry, Loss, ServiceStatus, ShardStats, SpanProgress, Taken
from lakestream.testing.logs import EPOCH_TIME, ManualClock, commit_of, plan_of
from lakestream_api import CoreSeconds, Freshness, LossProgress, Progress, ShardProgress, StageSeconds, TableService

LABELS = {"stream": "orders", "writer": "hudi"}


def progress(batch: int, *, shards: int = 2, lag: float = 3.0, freshness: Freshness | None = None) -> Progress:
    return Progress(
        stream="orders",
        writer="hudi",
        batch=batch,
        epoch=4,
        finished_at=EPOCH_TIME,
        records=100,
        bytes=25_000,
        quarantined=2,
        rows_written=98,
        seconds=StageSeconds(plan=0.5, fetch=1.0, write=2.0, commit=0.25, table_services=0.25, pause=8.0),
        trigger_interval=timedelta(seconds=10),
        executors=3,
        cores=2,
        shards=tuple(
            ShardProgress(shard_id=f"shard-{n}", tip_reached=False, lag_seconds=lag, records=50, bytes=12_500)
            for n in range(shards)
        ),
        lag_seconds=lag if shards else 0.0,
        freshness=freshness,
        caught_up=False,
        remembered_deletes=700_000,
        largest_file=3 * 2**30,
        table_services=(TableService(name="compaction", failed=7, failing=3, seconds=1.5, behind_commits=45),),
    )


@dataclass
class Table:
    services: tuple[ServiceStatus, ...] = ()
    remembered_deletes: int = 0
    largest_file: int = 0


@dataclass
class Rejects:
    reason: str = ""


@dataclass
class Memory:
    published: list[Progress] = field(default_factory=list)
    error: Exception | None = None

    def publish(self, progress: Progress) -> None:
        if self.error is not None:
            raise self.error
        self.published.append(progress)


def test_the_reporter_times_the_commit_and_asks_for_executors_and_services_of_each_batch() -> None:
    clock, memory, executors = ManualClock(), Memory(), iter([1, 4])
    job, table, quarantine = Job("orders", "hudi", timedelta(seconds=10), cores=2), Table(), Rejects()
    reporter = ProgressReporter(
        job,
        [memory],
        executors=lambda: next(executors),
        now=clock,
        table=table,
        quarantine=quarantine,
    )
    for batch in range(2):
        commit = commit_of(plan_of(batch, 1), 1)
        clock.time = commit.committed_at + timedelta(seconds=0.5)
        reporter.committed(commit, ())
        table.services, table.remembered_deletes, table.largest_file = (ServiceStatus("compaction", failing=1),), 1, 7
        quarantine.reason = "not JSON"
    assert [p.quarantine_reason for p in memory.published] == ["", "not JSON"]
    assert [p.batch for p in memory.published] == [0, 1]
    assert [p.executors for p in memory.published] == [1, 4]
    assert [p.seconds.commit for p in memory.published] == [0.5, 0.5]
    assert [[one.failing for one in p.table_services] for p in memory.published] == [[], [1]]
    assert [p.remembered_deletes for p in memory.published] == [0, 1]
    assert [p.largest_file for p in memory.published] == [0, 7]


def test_the_reporter_knows_what_slice_of_time_each_batch_covers() -> None:
    clock, memory = ManualClock(), Memory()
    reporter = ProgressReporter(
        Job("orders", "hudi", timedelta(seconds=10), cores=2), [memory], executors=lambda: 1, now=clock
    )
    first, second = (commit_of(plan_of(batch, 1), 1) for batch in range(2))
    second = replace(second, horizon=first.horizon + timedelta(seconds=50))
    third = replace(second, batch=2, horizon=first.horizon + timedelta(seconds=80))
    reporter.committed(first, ())
    # Nothing to read for 40 s; a look that finds nothing may also come while the batch before it is being written.
    reporter.idle(first.horizon + timedelta(seconds=40))
    reporter.idle(second.horizon + timedelta(seconds=5))
    reporter.committed(second, ())
    reporter.committed(third, ())
    assert [p.slice_seconds for p in memory.published][1:] == [10, 25]


def test_what_arrives_is_known_once_a_batch_is_fetched() -> None:
    clock = ManualClock()
    reporter = ProgressReporter(
        Job("orders", "hudi", timedelta(seconds=10), cores=2), [Memory()], executors=lambda: 1, now=clock
    )
    first, second = (plan_of(batch, 1) for batch in range(2))
    second = replace(second, horizon=first.horizon + timedelta(seconds=50))
    shards = (ShardStats("s-0", 30, 3_000, EPOCH_TIME, EPOCH_TIME), ShardStats("s-1", 12, 700, EPOCH_TIME, EPOCH_TIME))
    reporter.fetched(first, ())
    # The first is being written, and a look finds nothing for a while.
    reporter.idle(first.horizon + timedelta(seconds=30))
    told = reporter.fetched(second, shards)
    assert (told.batch, told.records, told.bytes, told.largest_shard_bytes) == (1, 42, 3_700, 3_000)
    assert told.slice_seconds == 20
    assert told.fetched_at == clock()


def test_each_batch_has_what_its_tasks_took() -> None:
    memory, took = Memory(), {0: CoreSeconds(fetch=1.5, write=4.0), 1: None}
    reporter = ProgressReporter(
        Job("orders", "hudi", timedelta(seconds=10), cores=2),
        [memory],
        executors=lambda: 1,
        now=ManualClock(),
        core_seconds=took.__getitem__,
    )
    for batch in took:
        reporter.committed(commit_of(plan_of(batch, 1), 1), ())
    assert [one.core_seconds for one in memory.published] == [CoreSeconds(fetch=1.5, write=4.0), None]


def test_a_publisher_that_fails_stops_neither_the_others_nor_the_engine(caplog: pytest.LogCaptureFixture) -> None:
    broken, memory = Memory(error=OSError("disk full")), Memory()
    job = Job("orders", "hudi", timedelta(seconds=10), cores=2)
    reporter = ProgressReporter(job, [broken, memory], executors=lambda: 1, now=ManualClock())
    with caplog.at_level(logging.ERROR):
        reporter.committed(commit_of(plan_of(0, 1), 1), ())
    assert len(memory.published) == 1
    assert "progress of batch 0" in caplog.text
    assert "disk full" in caplog.text


def test_progress_goes_to_a_pipe_too() -> None:
    reader, writer = os.pipe()
    published = JsonLinesProgress(Path(f"/proc/self/fd/{writer}"))
    for batch in range(2):
        published.publish(progress(batch))
    os.close(writer)
    with open(reader, "rb") as lines:
        assert [json.loads(lines.readline())["batch"] for _ in range(2)] == [0, 1]


def test_who_reads_a_named_pipe_reads_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress")
    with open(os.open(tmp_path / "progress", os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as reader:
        published = JsonLinesProgress(tmp_path / "progress")
        for batch in range(2):
            assert reader.read() is None, "nothing yet, and not the end"
            published.publish(progress(batch))
            assert reader.read() == progress(batch).model_dump_json().encode() + b"\n"
        del published
        assert reader.read() == b""


def test_a_pipe_that_nobody_reads_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "progress")
    with pytest.raises(SettingsError, match="progress cannot be written: nobody reads this pipe"):
        JsonLinesProgress(tmp_path / "progress")
    with open(os.open(tmp_path / "progress", os.O_RDONLY | os.O_NONBLOCK), "rb"):
        published = JsonLinesProgress(tmp_path / "progress")
        with pytest.raises(BlockingIOError):
            [*map(published.publish, map(progress, range(10_000)))]
    with pytest.raises(BrokenPipeError):
        published.publish(progress(0))


def test_a_file_of_a_process_is_not_renamed(tmp_path: Path) -> None:
    """As /dev/stdout > progress: its name would follow the file."""
    with (tmp_path / "progress").open("ab") as file:
        (tmp_path / "stdout").symlink_to(f"/proc/self/fd/{file.fileno()}")
        published = JsonLinesProgress(tmp_path / "stdout", max_bytes=10)
        for batch in range(3):
            published.publish(progress(batch))
    assert {path.name for path in tmp_path.iterdir()} == {"progress", "stdout"}
    assert [one.batch for one in read_progress(tmp_path / "progress")] == [0, 1, 2]


def test_a_file_that_is_full_is_renamed_and_not_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    link = tmp_path / "progress"
    link.symlink_to("data/progress")
    published = JsonLinesProgress(link, max_bytes=10)
    for batch in range(2):
        published.publish(progress(batch))
    assert link.is_symlink()
    assert {path.name for path in (tmp_path / "data").iterdir()} == {"progress.1"}


def test_a_file_has_a_line_for_each_batch_over_restarts(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    assert read_progress(path) == []
    batches = [progress(number, freshness=Freshness(p50_seconds=1, p99_seconds=2)) for number in range(3)]
    JsonLinesProgress(path).publish(batches[0])
    restarted = JsonLinesProgress(path)
    restarted.publish(batches[1])
    restarted.publish(batches[2])
    assert read_progress(path) == batches
    assert path.read_text().count("\n") == 3


@pytest.mark.parametrize("name", ["file/progress.jsonl", "nowhere/progress.jsonl", "."])
def test_a_file_that_cannot_be_is_told_before_the_first_batch(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match=r"--progress-file .* cannot be written: "):
        JsonLinesProgress(tmp_path / name)


def test_a_reader_leaves_out_a_line_that_is_being_written(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    JsonLinesProgress(path).publish(progress(0))
    with path.open("a") as file:
        file.write('{"stream":"ord')
    assert [p.batch for p in read_progress(path)] == [0]


def test_a_torn_line_does_not_take_the_next_one_with_it(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    JsonLinesProgress(path).publish(progress(0))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 10)
    JsonLinesProgress(path).publish(progress(1))
    assert Progress.model_validate_json(path.read_bytes().splitlines()[-1]).batch == 1


def test_a_large_file_is_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    line = len(progress(0).model_dump_json()) + 1
    publisher = JsonLinesProgress(path, max_bytes=3 * line)
    for number in range(10):
        publisher.publish(progress(number))
    assert [p.batch for p in read_progress(path.with_name("progress.jsonl.1"))] == [4, 5, 6, 7]
    assert [p.batch for p in read_progress(path)] == [8, 9]


def test_counters_add_up_and_gauges_show_the_last_batch() -> None:
    registry = CollectorRegistry()
    publisher = PrometheusProgress(registry)
    publisher.publish(progress(6, lag=30, freshness=Freshness(p50_seconds=1, p99_seconds=2)))
    lost = LossProgress(shard_id="shard-0", since=EPOCH_TIME, until=EPOCH_TIME)
    publisher.publish(progress(7, lag=3).model_copy(update={"losses": (lost,) * 3, "misplaced": 5, "filtered": 6}))

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {**LABELS, **labels})

    assert value("lakestream_batches_total") == 2
    assert value("lakestream_records_total") == 200
    assert value("lakestream_record_bytes_total") == 50_000
    assert value("lakestream_quarantined_records_total") == 4
    assert value("lakestream_losses_total") == 3
    assert value("lakestream_misplaced_records_total") == 5
    assert value("lakestream_filtered_records_total") == 6
    assert value("lakestream_rows_written_total") == 196
    assert value("lakestream_last_batch_lag_seconds") == 3
    assert value("lakestream_shards") == 2
    assert value("lakestream_last_batch") == 7
    assert value("lakestream_epoch") == 4
    assert value("lakestream_last_batch_executors") == 3
    assert value("lakestream_executor_cores") == 2
    assert value("lakestream_last_commit_timestamp_seconds") == EPOCH_TIME.timestamp()
    assert value("lakestream_batch_duration_seconds_sum") == 8
    assert value("lakestream_batch_duration_seconds_bucket", le="5.0") == 2
    assert value("lakestream_batch_duration_seconds_bucket", le="2.5") == 0
    assert value("lakestream_stage_duration_seconds_sum", stage="table_services") == 0.5
    assert value("lakestream_remembered_deletes") == 700_000
    assert value("lakestream_largest_file_bytes") == 3 * 2**30
    assert value("lakestream_stage_duration_seconds_sum", stage="pause") == 16
    assert value("lakestream_table_service_failing", service="compaction") == 3
    assert value("lakestream_table_service_failed_runs", service="compaction") == 7
    assert value("lakestream_table_service_behind_commits", service="compaction") == 45
    assert value("lakestream_table_service_duration_seconds", service="compaction") == 1.5
    assert value("lakestream_freshness_seconds", quantile="0.99") == 2
    assert value("lakestream_shard_lag_seconds", shard="shard-1") == 3


def test_a_batch_of_half_an_hour_is_told_from_one_of_five_minutes() -> None:
    registry = CollectorRegistry()
    once = progress(6)
    long = once.model_copy(update={"seconds": once.seconds.model_copy(update={"write": 1800.0})})
    PrometheusProgress(registry).publish(long)

    def below(seconds: float) -> float | None:
        return registry.get_sample_value("lakestream_batch_duration_seconds_bucket", {**LABELS, "le": str(seconds)})

    assert below(1000.0) == 0
    assert below(2500.0) == 1


def test_shards_that_are_gone_or_too_many_have_no_series() -> None:
    registry = CollectorRegistry()
    publisher = PrometheusProgress(registry)

    def shards() -> int:
        return sum(
            sample.name == "lakestream_shard_lag_seconds" for metric in registry.collect() for sample in metric.samples
        )

    for count, series in ((100, 100), (4, 4), (101, 0)):
        publisher.publish(progress(1, shards=count))
        assert shards() == series
        assert registry.get_sample_value("lakestream_shards", LABELS) == count


def listening() -> set[int]:
    """The ports that this process listens on."""
    own = psutil.Process().net_connections("tcp4")
    return {one.laddr.port for one in own if one.status == psutil.CONN_LISTEN}


def test_metrics_are_served_until_the_end() -> None:
    registry = CollectorRegistry()
    PrometheusProgress(registry).publish(progress(7))
    with serve_metrics(registry, 0, loopback=True) as port:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
            body = answer.read().decode()
        assert 'lakestream_last_batch{stream="orders",writer="hudi"} 7.0' in body
        assert port in listening()
    # Another process may listen there by now.
    assert port not in listening()


def test_metrics_of_a_pod_are_served_to_others_over_ipv4_and_ipv6() -> None:
    with serve_metrics(CollectorRegistry(), 0, loopback=False) as port:
        for host in ("127.0.0.2", "[::1]"):
            urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=60).close()


def test_a_port_that_another_driver_has_is_told_by_its_option() -> None:
    with (
        serve_metrics(CollectorRegistry(), 0, loopback=True) as port,
        pytest.raises(SettingsError, match=rf"--metrics-port {port} cannot be had: Address already in use"),
        serve_metrics(CollectorRegistry(), port, loopback=True),
    ):
        pass


def test_a_batch_that_readmits_is_told_in_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    """It says nothing of the stream's lag, freshness and throughput."""
    memory, asked = Memory(), list[int]()
    job = Job("orders", "hudi", timedelta(seconds=10), cores=2)
    reporter = ProgressReporter(job, [memory], executors=lambda: 1, core_seconds=asked.append)
    plan = replace(plan_of(7, 4), parts=((FileEntry("a", 3, 10, ""),),), taken=Taken(2, 5, 9))
    with caplog.at_level(logging.INFO):
        reporter.committed(BatchCommit.of(plan, epoch=4, committed_at=plan.planned_at), ())
    assert memory.published == []
    assert asked == [7], "its time is not that of the next batch"
    assert "replay 2 has come to part 5 of 9" in caplog.text


def test_so_is_one_of_a_span_with_what_it_has_lost(caplog: pytest.LogCaptureFixture) -> None:
    memory = Memory()
    reporter = ProgressReporter(Job("orders", "hudi", timedelta(seconds=10), cores=2), [memory], executors=lambda: 1)
    plan = plan_of(7, 4)
    when = plan.planned_at
    span = SpanProgress(reached=when, records=12)
    commit = BatchCommit.of(plan, epoch=4, committed_at=when)
    loss = Loss("shardId-0", None, None, when, when)
    of_span = replace(commit, records=5, of_span=True, taken=Taken(2, 0, 1, span), losses=(loss,))
    with caplog.at_level(logging.INFO):
        reporter.committed(of_span, ())
        reporter.committed(replace(commit, batch=8, ends_request=True, taken=Taken(2, 0, 0, span)), ())
    assert memory.published == []
    assert (
        "batch 7: 5 records of the stream read once more, 0 rows, 0 in quarantine; backfill 2 has come to"
        in caplog.text
    )
    assert f"{when:%Y-%m-%d %H:%M:%S} UTC with 12 records" in caplog.text
    assert f"records were trimmed before they were read, and skipped: {loss}" in caplog.text
    assert "batch 8: request 2 has ended" in caplog.text
