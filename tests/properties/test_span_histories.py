"""Whatever happens to stream and driver: portions tile a span, and give each of its records exactly once.

As in `test_planner_histories`, a state machine plays producers, resharding, time, and a driver that loses portions,
plans one ahead, dies and starts again. The model is the stream's own history.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from machines.streams import LATENESS, StreamMachine, gaps

from lakestream.kinesis import KinesisSettings, PlannerSettings, RangeReader, StreamPlanner
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Finding,
    Loss,
    Portion,
    Position,
    ShardStats,
    Span,
    SpanDue,
    Taken,
    Trim,
    at,
    united,
)
from lakestream.testing.fake_kinesis import START, FakeKinesis, FakeRecord
from lakestream.testing.verdicts import delivery_faults, order_faults


class SpanHistory(StreamMachine):
    """Nothing is trimmed: nothing may be missing."""

    retentions: tuple[timedelta, ...] = (timedelta(days=365),)

    @initialize(
        shards=st.integers(1, 3),
        page_size=st.integers(1, 4),
        empty_pages=st.integers(0, 2),
        records=st.sampled_from([1, 50, 50_000]),
        may_lose=st.booleans(),
        lateness=st.sampled_from([timedelta(0), LATENESS]),
        history=st.lists(
            st.tuples(st.integers(0, 99), st.integers(0, 5), st.integers(0, 1500), gaps, st.integers(0, 9)),
            min_size=3,
            max_size=25,
        ),
        retention=st.data(),
    )
    def begin(
        self,
        shards: int,
        page_size: int,
        empty_pages: int,
        records: int,
        may_lose: bool,
        lateness: timedelta,
        history: list[tuple[int, int, int, float, int]],
        retention: st.DataObject,
    ) -> None:
        self.stream = FakeKinesis(shards, retention=retention.draw(st.sampled_from(self.retentions)))
        self.stream.page_size, self.stream.empty_pages = page_size, empty_pages
        self.records, self.may_lose, self.lateness = records, may_lose, lateness
        self.span: Span | None = None
        self.first_trim: Trim | None = None
        self.plans: list[BatchPlan] = []
        self.commits: list[BatchCommit] = []
        self.batches: list[list[tuple[str, int]]] = []
        self.restart()
        for shard, count, late, gap, change in history:
            self.put(shard, count, late)
            self.stream.sleep(gap)
            if change == 0 and len(self.stream.shards) < 12:
                self.split(shard)
            elif change == 1 and len(self.stream.open_shards()) > 1:
                self.merge()

    # The driver

    @rule(since=st.integers(0, 99), until=st.integers(0, 99), beside=st.sampled_from([0, 0, 0, 1, -1, 700]))
    @precondition(lambda self: self.span is None)
    def ask(self, since: int, until: int, beside: int) -> None:
        """From one record to another, or near them: mostly a span begins and ends where something is."""
        times = sorted({START, self.stream.time, *(record.arrival for record in self.stream.history())})
        start, end = sorted((times[since % len(times)], times[until % len(times)]))
        end = min(end + timedelta(milliseconds=beside), self.stream.time)
        if start < end:
            self.span = Span(start, end)

    @rule()
    def restart(self) -> None:
        """Only what was put down survives."""
        planner_settings = PlannerSettings("LATEST", skip_losses=self.may_lose, threads=1)
        self.planner = StreamPlanner(self.stream, planner_settings, slots=lambda: 2, sleep=self.stream.sleep)
        if self.commits:
            self.planner.observe(self.commits[-1])

    @rule()
    @precondition(lambda self: self.span)
    def lose_a_portion(self) -> None:
        self._portion()

    @rule()
    @precondition(lambda self: self.span and len(self.plans) < len(self.commits) + 2)
    def plan(self) -> None:
        portion = self._portion()
        if portion is None:
            return
        plan = BatchPlan(
            len(self.plans), 1, self.stream.time, None, self.stream.time, True, (), (),
            parts=portion.tasks, taken=portion.taken, ends_request=not portion.tasks,
        )  # fmt: skip
        self.plans.append(BatchPlan.from_json(plan.to_json()))

    @rule()
    @precondition(lambda self: len(self.commits) < len(self.plans))
    def commit(self) -> None:
        plan = self.plans[len(self.commits)]
        rows, findings = self._read(plan)
        assert self.stream.retention < timedelta(days=1) or (rows, ()) == self._read(plan), "a replay gives others"
        shards = [
            ShardStats(r.shard_id, sum(s == r.shard_id for s, _ in rows), 1, r.first_arrival, r.end_arrival)
            for r in sorted((r for task in plan.spans for r in task), key=lambda r: r.shard_id)
        ]
        self.batches.append(rows)
        commit = BatchCommit.of(plan, epoch=1, committed_at=self.stream.time, shards=tuple(shards))
        commit = commit.finding(united(findings)).behind(self.commits[-1] if self.commits else None)
        self.commits.append(BatchCommit.from_json(commit.to_json()))
        assert self.commits[-1].is_requested
        self.planner.observe(self.commits[-1])

    def teardown(self) -> None:
        if not hasattr(self, "stream"):
            return
        if self.span is None:
            self.span = Span(START, max(self.stream.time, START + timedelta(seconds=1)))
        self.stream.sleep(1)
        for _ in range(300):
            while len(self.commits) < len(self.plans):
                self.commit()
            if self._taken is not None and self._taken.is_done:
                break
            before = len(self.plans)
            self.plan()
            if len(self.plans) == before:
                self.stream.sleep(10)
        else:
            pytest.fail("never ends")
        assert self._portion_cursors() == (), "what nobody needs is not carried on"
        self.judge()

    def judge(self) -> None:
        assert self._taken is not None
        assert self._taken.span is not None
        assert self._taken.parts == self._taken.of == 1
        assert self._taken.span.lost == ()
        read = [sequence for batch in self.batches for _, sequence in batch]
        assert self._taken.span.records == len(read)
        assert delivery_faults(sorted(self._wanted(read)), read) == {}
        self._judge_order()

    # Inside

    @property
    def _taken(self) -> Taken | None:
        return self.commits[-1].taken if self.commits else None

    def _portion_cursors(self) -> tuple[object, ...]:
        return self._taken.span.cursors if self._taken and self._taken.span else (None,)

    def _portion(self) -> Portion | None:
        assert self.span is not None
        taken = self.plans[-1].taken if self.plans else None
        if taken is not None and taken.is_done:
            return None
        due = SpanDue(1, self.span, taken.span if taken else None)
        return self.planner.portion(due, self.first_trim, self.records)

    def _wanted(self, read: list[int]) -> set[int]:
        """All that is surely of the span, and what was read of what may be: arrival times need not rise."""
        assert self.span is not None
        since, until, late = self.span.since, self.span.until, self.lateness
        surely = {r.sequence for r in self.stream.history() if since + late <= r.arrival < until - late}
        maybe = {r.sequence for r in self.stream.history() if since - late <= r.arrival < until + late}
        if late == timedelta(0):
            assert surely == maybe
        return surely | (maybe & set(read))

    def _judge_order(self) -> None:
        assert order_faults(self.batches, {s.shard_id: s.parents for s in self.stream.shards.values()}) == []
        spans = [plan.taken.span for plan in self.plans if plan.taken and plan.taken.span]
        skipped = {(loss.shard_id, loss.start): loss.end for span in spans for loss in span.lost}
        ends: dict[str, Position | None] = {}
        for piece in (r for plan in self.plans for task in plan.spans for r in task):
            begin = ends.get(piece.shard_id, piece.start)
            while begin != piece.start and (piece.shard_id, begin) in skipped:
                begin = skipped.pop((piece.shard_id, begin))
            assert begin == piece.start, "ranges tile a shard, but for what is told to be lost"
            ends[piece.shard_id] = piece.end

    def _read(self, plan: BatchPlan) -> tuple[list[tuple[str, int]], tuple[Finding, ...]]:
        rows: list[tuple[str, int]] = []
        findings: list[Finding] = []
        settings = KinesisSettings("fake", "eu-west-1", skip_losses=True, patience=2, retention=self.stream.retention)
        reader = RangeReader(
            self.stream,
            settings,
            subscribe=self.stream.subscribe,
            sleep=self.stream.sleep,
            monotonic=self.stream.monotonic,
        )
        for piece in (piece for task in plan.spans for piece in task):
            for part in reader.read(piece):
                if isinstance(part, Finding):
                    findings.append(part)
                else:
                    rows.extend((piece.shard_id, int(s)) for s in part.column("sequence_number").to_pylist())
        return rows, tuple(findings)


class TrimmedSpanHistory(SpanHistory):
    """The stream keeps records so briefly that some are gone by then: each one missing must be told."""

    retentions = (timedelta(minutes=30), timedelta(minutes=5))

    @rule(minutes=st.sampled_from([0, 0, 1, 4]))
    def answer_slowly(self, minutes: int) -> None:
        """So that records are trimmed in front of who reads them."""
        self.stream.latency = timedelta(minutes=minutes)

    @rule(minutes=st.sampled_from([4, 9, 29, 31]))
    def sleep_long(self, minutes: int) -> None:
        self.stream.sleep(minutes * 60)

    def teardown(self) -> None:
        if hasattr(self, "stream"):
            self.stream.latency = timedelta(0)
        super().teardown()

    def judge(self) -> None:
        assert self._taken is not None
        span = self._taken.span
        assert span is not None
        read = [sequence for batch in self.batches for _, sequence in batch]
        faults = delivery_faults(sorted(self._wanted(read)), read)
        missing = set(faults.pop("missing", []))
        assert faults == {}
        assert span.failed == (self._taken.of == 0)
        if span.failed:
            assert not self.may_lose
            assert span.lost, "it says why"
        else:
            gone = [record for record in self.stream.history() if record.sequence in missing]
            assert all(record.arrival < self.stream.time - self.stream.retention for record in gone), "not even trimmed"
            assert all(self._is_told(record, span.lost) for record in gone), "it went silently"
        self._judge_order()

    def _is_told(self, record: FakeRecord, lost: tuple[Loss, ...]) -> bool:
        known = {loss.shard_id for loss in lost}
        # Shards that were dropped before anybody asked what there is are lost with what came of them.
        return any(_tells_of(loss, record) for loss in lost) or (record.shard_id not in known and bool(lost))


def _tells_of(loss: Loss, record: FakeRecord) -> bool:
    return (
        loss.shard_id == record.shard_id
        and (loss.start is None or loss.start <= at(record.sequence))
        and (loss.end is None or at(record.sequence) < loss.end)
    )


common = settings(
    max_examples=settings().max_examples * 3 // 5, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestSpanHistory = SpanHistory.TestCase
TestSpanHistory.settings = common
TestTrimmedSpanHistory = TrimmedSpanHistory.TestCase
TestTrimmedSpanHistory.settings = common
