"""What the driver itself pays for a batch, by the number of shards: CPU seconds of planning, log and report.

    python -m lakestream_bench.planning [--shards 1000 10000] [--rates 1 50] [--rounds 5] [--out planning.json]

A stream in memory answers the planner, with so many records a second in each shard and a batch each ten seconds; what
its answers cost is left out. Beside that: how many requests a batch needs, and what they cost by HTTP, told from some
thousands that the local Kinesis answers in a process of its own. Neither Spark nor an executor is part of it.

Times are CPU time of this process, the best of the rounds.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lakestream.control.report import Job, progress_of
from lakestream.kinesis import HttpKinesisClient, KinesisSettings, Planner, PlannerSettings
from lakestream.kinesis.pages import arrival_micros
from lakestream.kinesis.port import IteratorStart, RecordPage, Shard, StreamSummary
from lakestream.log.layout import pack, unpack
from lakestream.model import BatchCommit, BatchPlan, Cursor, HashKeys, Position, ShardRange, ShardStats
from lakestream_api import Progress
from lakestream_api.report import DriverReport, DriverState, ExecutorsReport
from lakestream_bench._figures import write_figures
from lakestream_bench._kinesis_contenders import running
from lakestream_bench._options import out_file, whole
from lakestream_bench._processes import no_process_left
from lakestream_bench._raw_kinesis import RawClient, put_requests
from lakestream_bench._telling import Telling

INTERVAL = timedelta(seconds=10)
START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
_SEQUENCE = 49_590_338_271_490_256_608_559_692_538_361_571_095_921_575_989_136_588_898
_HASH_KEYS = 2**128
_MICROS = 1_000_000
MANY = 500
"""Records of an answer from which the cost of one is told."""
RECORD_BYTES = 250
WARM_UP = 2
"""Batches that are not counted: all shards are new to the first, and it knows of no rates."""


@dataclass(frozen=True)
class Figure:
    """A batch of one stream; CPU seconds."""

    shards: int
    records_per_second: int
    """Of each shard."""
    plan: float
    """Deciding what the batch is."""
    resharded_plan: float
    """Likewise, of the one batch that reads all shards to their end, as each was split."""
    plan_written: float
    """Its object of the log, compressed."""
    commit_written: float
    """Likewise."""
    report: float
    """The progress of the batch, and the driver's report for the operator."""
    restart: float
    """Reading commit and plan back, once a start."""
    iterator_requests: float
    """Of a batch, as are the two below."""
    record_requests: float
    requests: float
    """CPU seconds that these cost by HTTP."""
    plan_bytes: int
    """Compressed."""

    @property
    def batch(self) -> float:
        """All that is paid for each batch."""
        return self.plan + self.requests + self.plan_written + self.commit_written + self.report


@dataclass(frozen=True)
class RequestCosts:
    """CPU seconds of the driver for requests by HTTP."""

    iterator: float
    """A GetShardIterator."""
    page: float
    """A GetRecords, beside its records."""
    record: float

    def of(self, calls: Mapping[str, float]) -> float:
        """What so many cost; `records` are those in all answers of GetRecords."""
        return (
            calls["GetShardIterator"] * self.iterator + calls["GetRecords"] * self.page + calls["records"] * self.record
        )


class SteadyStream:
    """A `KinesisClient` whose shards all get one record after the other at even times; the clock is moved by hand."""

    def __init__(self, shards: int, records_per_second: int) -> None:
        self.time = START
        self.calls: Counter[str] = Counter()
        self._spent: list[int] = []
        self._period = _MICROS // records_per_second
        width = _HASH_KEYS // shards
        self._shards = tuple(
            Shard(f"shardId-{i:012d}", (), HashKeys(i * width, (i + 1) * width - 1), None) for i in range(shards)
        )
        self._parents = 0
        self._split_at = START

    @property
    def seconds(self) -> float:
        """CPU time spent in its answers so far."""
        return sum(self._spent) / 1e9

    def split_all(self) -> None:
        """Close all shards; two children follow each."""
        closed = [Shard(s.shard_id, s.parents, s.hash_keys, _SEQUENCE * 2) for s in self._shards]
        children = [
            Shard(f"shardId-{len(closed) + i:012d}", (closed[i // 2].shard_id,), closed[i // 2].hash_keys, None)
            for i in range(2 * len(closed))
        ]
        self._shards, self._parents, self._split_at = (*closed, *children), len(closed), self.time

    def now(self) -> datetime:
        return self.time

    def describe_stream_summary(self) -> StreamSummary:
        self.calls["DescribeStreamSummary"] += 1
        day = timedelta(hours=24)
        return StreamSummary("arn:aws:kinesis:eu-west-1:1:stream/steady", START, day, len(self._shards), False, True)

    def list_shards(self) -> tuple[Shard, ...]:
        self.calls["ListShards"] += 1
        return self._shards

    def get_shard_iterator(self, shard_id: str, start: IteratorStart) -> str:
        self.calls["GetShardIterator"] += 1
        began = time.thread_time_ns()
        match start:
            case Position(sequence, after):
                number = sequence - _SEQUENCE + after
            case datetime():
                number = -(-(arrival_micros(start) - arrival_micros(START) - self._phase(shard_id)) // self._period)
            case None:
                number = 0
        iterator = f"{shard_id} {max(0, number)}"
        self._spent.append(time.thread_time_ns() - began)
        return iterator

    def get_records(self, iterator: str, limit: int) -> RecordPage:
        self.calls["GetRecords"] += 1
        began = time.thread_time_ns()
        shard_id, _, first = iterator.partition(" ")
        begin, origin = int(first), arrival_micros(START) + self._phase(shard_id)
        is_closed = int(shard_id[-6:]) < self._parents
        there = (arrival_micros(self._split_at if is_closed else self.time) - origin) // self._period + 1
        end = max(begin, min(begin + limit, there))
        found = range(begin, end)
        self.calls["records"] += len(found)
        page = RecordPage(
            sequences=[str(_SEQUENCE + number) for number in found],
            arrivals=[(origin + number * self._period) // 1000 * 1000 for number in found],
            partition_keys=["k"] * len(found),
            data=[b""] * len(found),
            next_iterator=None if is_closed and end >= there else f"{shard_id} {end}",
            millis_behind=0 if end >= there else 1,
        )
        self._spent.append(time.thread_time_ns() - began)
        return page

    def _phase(self, shard_id: str) -> int:
        return int(shard_id[-6:]) * 7919 % self._period


class Stopwatch:
    """The best CPU time of each part."""

    def __init__(self) -> None:
        self.best: dict[str, float] = {}

    @contextmanager
    def taking(self, part: str, beside: Callable[[], float] = lambda: 0.0) -> Iterator[None]:
        """Time a block; `beside` tells the CPU time so far of what is not part of it."""
        left_out, began = beside(), time.process_time()
        yield
        taken = time.process_time() - began - (beside() - left_out)
        self.best[part] = min(self.best.get(part, taken), taken)


def measure(shards: int, records_per_second: int, rounds: int, costs: RequestCosts) -> Figure:
    """Batches of one stream, one after the other."""
    stream = SteadyStream(shards, records_per_second)
    settings = PlannerSettings("TRIM_HORIZON", interval=INTERVAL, max_records=10**9, max_bytes=10**12)
    watch, size, reports = Stopwatch(), 0, _Reports()
    cursors: tuple[Cursor, ...] = ()
    with Planner(stream, settings, slots=lambda: 64, sleep=lambda _: None) as planner:
        for batch in range(WARM_UP + rounds):
            stream.time += INTERVAL
            if batch == WARM_UP:
                watch = Stopwatch()
                stream.calls.clear()
            with watch.taking("plan", lambda: stream.seconds):
                plan = planner.plan(batch=batch, epoch=1, cursors=cursors)
            assert plan is not None
            cursors = plan.cursors
            with watch.taking("plan_written"):
                planned = pack(plan.to_json())
            commit = _commit(plan)
            with watch.taking("commit_written"):
                committed = pack(commit.to_json())
            planner.observe(commit)
            with watch.taking("report"):
                reports.add(commit)
            with watch.taking("restart"):
                unpack("plan", planned, BatchPlan.from_json)
                unpack("commit", committed, BatchCommit.from_json)
            size = len(planned)
        calls = {name: stream.calls[name] / rounds for name in ("GetShardIterator", "GetRecords", "records")}
        stream.split_all()
        stream.time += 6 * INTERVAL
        with watch.taking("resharded_plan", lambda: stream.seconds):
            planner.plan(batch=WARM_UP + rounds, epoch=1, cursors=cursors)
    return Figure(
        shards=shards,
        records_per_second=records_per_second,
        iterator_requests=calls["GetShardIterator"],
        record_requests=calls["GetRecords"],
        requests=costs.of(calls),
        plan_bytes=size,
        **watch.best,
    )


def request_costs(requests: int = 3_000) -> RequestCosts:
    """Of requests that as many threads ask for as a planner has; of GetRecords, with one record and with many."""
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
    with running("lakestream", Path(tempfile.gettempdir())) as port:
        raw = RawClient(port)
        raw.call("CreateStream", StreamName="requests", ShardCount=1)
        for request in put_requests("requests", MANY, RECORD_BYTES, variants=1, seed=1):
            raw.send(request)
        raw.close()
        client = HttpKinesisClient(KinesisSettings("requests", "us-east-1", endpoint=f"http://127.0.0.1:{port}"))
        shard_id = client.list_shards()[0].shard_id
        first = client.get_shard_iterator(shard_id, None)
        asked: dict[str, Callable[[], object]] = {
            "iterator": lambda: client.get_shard_iterator(shard_id, None),
            "one": lambda: client.get_records(first, 1),
            "many": lambda: client.get_records(first, MANY),
        }
        seconds = {name: _seconds_of(ask, requests) for name, ask in asked.items()}
        client.close()
    record = max(0.0, (seconds["many"] - seconds["one"]) / (MANY - 1))
    return RequestCosts(seconds["iterator"], seconds["one"] - record, record)


def _seconds_of(ask: Callable[[], object], requests: int) -> float:
    """CPU seconds of one, the best of three times that they are asked."""
    threads = PlannerSettings("LATEST").threads
    watch = Stopwatch()

    def work() -> None:
        for _ in range(requests // threads):
            ask()

    with ThreadPoolExecutor(threads) as pool:
        for _ in range(3):
            with watch.taking("requests"):
                for share in [pool.submit(work) for _ in range(threads)]:
                    share.result()
    return watch.best["requests"] / (requests // threads * threads)


class _Reports:
    """What the driver tells of its batches."""

    def __init__(self) -> None:
        self._job = Job("steady", "hudi", INTERVAL, 2)
        self._previous: Progress | None = None
        self._report = DriverReport(
            stream="steady",
            writer="hudi",
            pod="pod",
            pod_uid="uid",
            started_at=START,
            updated_at=START,
            state=DriverState.RUNNING,
            executors=ExecutorsReport(target=1, registered=1),
        )

    def add(self, commit: BatchCommit) -> None:
        progress = progress_of(commit, self._job, executors=1, previous=self._previous)
        self._report, self._previous = self._report.after(progress, self._previous), progress
        self._report.published().model_dump_json()


def _commit(plan: BatchPlan) -> BatchCommit:
    """With all that `SteadyStream` has in the ranges; its sequence numbers follow each other."""
    shards = tuple(
        ShardStats(r.shard_id, count := _records(r), count * RECORD_BYTES, r.first_arrival, r.end_arrival)
        for r in plan.ranges
    )
    return BatchCommit.of(plan, epoch=1, committed_at=plan.horizon + INTERVAL, shards=shards)


def _records(piece: ShardRange) -> int:
    return (piece.end.sequence + piece.end.after) - (piece.start.sequence + piece.start.after)


_COLUMNS = {
    "shards": "shards",
    "records_per_second": "records/s",
    "plan": "plan",
    "requests": "requests",
    "plan_written": "written",
    "commit_written": "commit",
    "report": "report",
    "batch": "batch",
    "resharded_plan": "resharded",
    "restart": "restart",
    "iterator_requests": "iterators",
    "record_requests": "GetRecords",
}


def show(figures: Sequence[Figure]) -> None:
    """A table on stdout."""
    print(" ".join(f"{head:>10}" for head in _COLUMNS.values()))
    for figure in figures:
        cells = (getattr(figure, name) for name in _COLUMNS)
        print(" ".join(f"{cell:10.0f}" if cell >= 100 or cell == int(cell) else f"{cell:10.3f}" for cell in cells))


def main() -> None:
    """Measure, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=whole(), nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rates", type=whole(), nargs="+", default=[1, 50], help="records per second of each shard")
    parser.add_argument("--rounds", type=whole(), default=5)
    parser.add_argument("--out", type=out_file, help="write the figures there as JSON")
    options = parser.parse_args()
    cases = [(shards, rate) for shards in options.shards for rate in options.rates]
    telling = Telling(len(cases))
    costs = request_costs()
    print(
        f"CPU by HTTP: {costs.iterator * 1e6:.0f} µs for a GetShardIterator, {costs.page * 1e6:.0f} for a GetRecords, "
        f"{costs.record * 1e6:.1f} for each record in it"
    )
    figures = []
    for shards, rate in cases:
        with telling.measuring(f"{shards} shards with {rate} records/s"):
            figures.append(measure(shards, rate, options.rounds, costs))
    show(figures)
    if options.out:
        write_figures(options.out, "planning", figures)


if __name__ == "__main__":
    with no_process_left():
        main()
