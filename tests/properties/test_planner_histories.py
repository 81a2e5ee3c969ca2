"""Whatever happens to a stream and to the driver: batches tile every shard, and give each record exactly once.

A state machine plays producers, resharding, time, expired iterators, and a driver that loses plans,
stops between plan and commit, replays and starts again. The model is the stream's own history.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from machines.streams import LATENESS, StreamMachine

from lakestream.errors import DataLossError, KinesisUnavailableError
from lakestream.kinesis import KinesisSettings, Planner, PlannerSettings, RangeReader
from lakestream.model import BatchCommit, BatchPlan, Cursor, Finding, Loss, ShardRange, ShardStats, at, united
from lakestream.testing.fake_kinesis import START, FakeKinesis, FakeRecord
from lakestream.testing.verdicts import delivery_faults, order_faults, tiling_faults

SEED_STARTS = ("TRIM_HORIZON", "LATEST", "AT_TIMESTAMP")
MARGIN = timedelta(minutes=15)


class History(StreamMachine):
    """The stream is never trimmed: nothing may be missing."""

    retention = timedelta(days=365)

    @initialize(
        shards=st.integers(1, 3),
        start=st.sampled_from(SEED_STARTS),
        page_size=st.integers(1, 4),
        empty_pages=st.integers(0, 2),
        max_records=st.sampled_from([1, 50, 5_000_000]),
        unknown=st.integers(0, 11),
    )
    def begin(
        self, shards: int, start: str, page_size: int, empty_pages: int, max_records: int, unknown: int = 0
    ) -> None:
        self.stream = FakeKinesis(shards, retention=self.retention)
        self.stream.page_size, self.stream.empty_pages = page_size, empty_pages
        self.start = start
        # Late arrivals make "since a time" ambiguous; where all is wanted, they are allowed.
        self.lateness = LATENESS if self.wants_all else timedelta(0)
        self.max_records = max_records
        self.since: datetime | None = None
        self.plans: list[BatchPlan] = []
        self.commits: list[BatchCommit] = []
        self.batches: list[list[tuple[str, int]]] = []
        self.at_first_start: set[str] = set()
        self.unknown, self.listed = unknown, self.stream.listed()
        self.restart()

    # The driver

    @rule()
    def restart(self) -> None:
        """Only what was put down survives."""
        start = START + timedelta(minutes=1) if self.start == "AT_TIMESTAMP" else self.start
        skip = self.retention < timedelta(days=1)
        self.planner = Planner(
            self.stream,
            PlannerSettings(start, max_records=self.max_records, skip_losses=skip, threads=1),  # type: ignore[arg-type]
            slots=lambda: 2,
            sleep=self.stream.sleep,
        )
        if self.commits:
            self.planner.observe(self.commits[-1])

    @rule()
    def lose_a_plan(self) -> None:
        self._plan()

    @rule()
    def plan(self) -> None:
        plan = self._plan()
        if plan is not None:
            if not self.plans:
                self._fix_start(plan)
            self.plans.append(BatchPlan.from_json(plan.to_json()))

    @rule()
    def remember_a_listing(self) -> None:
        self.listed = self.stream.listed()

    @rule(lacks_one=st.booleans(), listings=st.integers(1, 2))
    @precondition(lambda self: self.plans and not self.stream.stale_listings)
    def list_stale(self, lacks_one: bool, listings: int) -> None:
        """As of a server that is behind, or does not know a shard yet; the next one has all."""
        shards = sorted(self.stream.shards)
        unknown = shards[self.unknown % len(shards)]
        stale = self.stream.listed(but=unknown) if lacks_one else self.listed
        self.stream.stale_listings.extend([stale] * listings)
        self.stream.advance(timedelta(seconds=61))
        self.plan()

    @rule()
    @precondition(lambda self: len(self.commits) < len(self.plans))
    def half_read(self) -> None:
        self._read(self.plans[len(self.commits)])

    @rule()
    @precondition(lambda self: len(self.commits) < len(self.plans))
    def commit(self) -> None:
        plan = self.plans[len(self.commits)]
        rows, findings = self._read(plan)
        assert self.retention < timedelta(days=1) or (rows, ()) == self._read(plan), "a replay gives other records"
        shards = [
            ShardStats(r.shard_id, sum(s == r.shard_id for s, _ in rows), 1, r.first_arrival, r.end_arrival)
            for r in plan.ranges
        ]
        self.batches.append(rows)
        commit = BatchCommit.of(plan, epoch=1, committed_at=self.stream.time, shards=tuple(shards))
        commit = commit.finding(united(findings))
        self.commits.append(BatchCommit.from_json(commit.to_json()))
        self.planner.observe(commit)

    def teardown(self) -> None:
        if not hasattr(self, "stream"):
            return
        self.catch_up()
        self.judge()

    def judge(self) -> None:
        assert tiling_faults(self.plans) == []
        assert delivery_faults(self._wanted(), [s for batch in self.batches for _, s in batch]) == {}
        assert order_faults(self.batches, {s.shard_id: s.parents for s in self.stream.shards.values()}) == []

    # Inside

    def catch_up(self) -> None:
        self.stream.latency = timedelta(0)
        self.stream.stale_listings.clear()
        self.pass_time(400.0)
        until = self.stream.time - timedelta(seconds=1)
        for _ in range(2_000):
            self.plan()
            while len(self.commits) < len(self.plans):
                self.commit()
            if self.planner.caught_up_to is not None and self.planner.caught_up_to >= until:
                return
        pytest.fail("never catches up")

    @property
    def wants_all(self) -> bool:
        return self.start == "TRIM_HORIZON" and self.retention > timedelta(days=1)

    def _cursors(self) -> tuple[Cursor, ...]:
        return self.plans[-1].cursors if self.plans else ()

    def _plan(self) -> BatchPlan | None:
        if self.start == "AT_TIMESTAMP" and self.stream.time < START + timedelta(minutes=1):
            self.stream.sleep(60)
        trim = self.plans[-1].trim if self.plans else None
        try:
            return self.planner.plan(batch=len(self.plans), epoch=1, cursors=self._cursors(), trim=trim)
        except KinesisUnavailableError:
            assert self.stream.listed_stale, "all that there is was listed"
            self.restart()
            return None

    def _fix_start(self, plan: BatchPlan) -> None:
        match self.start:
            case "AT_TIMESTAMP":
                self.since = START + timedelta(minutes=1)
            case "LATEST":
                self.since = plan.planned_at
            case _ if plan.planned_at - self.stream.retention + MARGIN > START:
                self.since = plan.planned_at - self.stream.retention + MARGIN

    def _wanted(self) -> list[int]:
        return [r.sequence for r in self.stream.history() if self.since is None or r.arrival >= self.since]

    def _read(self, plan: BatchPlan) -> tuple[list[tuple[str, int]], tuple[Finding, ...]]:
        rows: list[tuple[str, int]] = []
        findings: list[Finding] = []
        for piece in plan.ranges:
            if self.stream.latency == timedelta(0):
                # Nothing is trimmed between the two: what would be skipped is an error otherwise.
                refused = self._is_refused(piece)
            for part in self._reader(skip=True).read(piece):
                if isinstance(part, Finding):
                    findings.append(part)
                else:
                    rows.extend((piece.shard_id, int(s)) for s in part.column("sequence_number").to_pylist())
            if self.stream.latency == timedelta(0):
                assert refused == any(finding.shard_id == piece.shard_id for finding in findings)
        return rows, tuple(findings)

    def _is_refused(self, piece: ShardRange) -> bool:
        try:
            list(self._reader(skip=False).read(piece))
        except DataLossError:
            return True
        return False

    def _reader(self, *, skip: bool) -> RangeReader:
        settings = KinesisSettings("fake", "eu-west-1", skip_losses=skip, patience=2, retention=self.stream.retention)
        return RangeReader(
            self.stream,
            settings,
            subscribe=self.stream.subscribe,
            sleep=self.stream.sleep,
            monotonic=self.stream.monotonic,
        )


class TrimmedHistory(History):
    """The stream keeps records so briefly that some go unread: each one missing must have been announced."""

    retention = timedelta(minutes=30)

    @rule(minutes=st.sampled_from([0, 0, 1, 4]))
    def answer_slowly(self, minutes: int) -> None:
        """So that records are trimmed in front of who reads them."""
        self.stream.latency = timedelta(minutes=minutes)

    @rule(minutes=st.sampled_from([9, 29, 31]))
    def sleep_long(self, minutes: int) -> None:
        self.stream.sleep(minutes * 60)

    @rule(shard=st.integers(0, 99), hours=st.sampled_from([1, 6]))
    @precondition(lambda self: self.plans)  # what is trimmed before the first is none of its business
    def raise_retention(self, shard: int, hours: int) -> None:
        """As people do once it was too short: what is trimmed by then stays so."""
        self.put(shard, 1, 0)
        self.sleep_long(31)
        self.stream.retention = max(self.stream.retention, timedelta(hours=hours))

    @rule(shard=st.integers(0, 99))
    @precondition(lambda self: self.plans and len(self.stream.shards) < 12)
    def lower_retention(self, shard: int) -> None:
        """As people do to save: what is older is gone at once, also if shards have just been listed."""
        # One that was lowered and is raised again between two plans nobody can see.
        for retention in (self.stream.retention, timedelta(days=7)):
            self.stream.retention = retention
            self.pass_time(61.0)
            self.plan()
        self.put(shard, 1, 0)
        for child in self.stream.split(self.stream.open_shards()[0]):
            self.stream.put(child, b"x")
        self.stream.advance(timedelta(hours=25))
        self.plan()
        self.stream.retention = timedelta(hours=24)
        self.stream.advance(timedelta(0))
        self.plan()

    @rule(shard=st.integers(0, 99), restarts=st.booleans())
    @precondition(lambda self: self.plans and len(self.stream.shards) < 12)
    def lower_and_raise_retention(self, shard: int, restarts: bool) -> None:
        """Between two plans nobody sees it, but for the last record that was read, which has to be there."""
        self.stream.retention = timedelta(days=7)
        for _ in range(2):  # known by the first plan, it counts from the second one on
            for open_shard in self.stream.open_shards():
                self.stream.put(open_shard, b"x")
            self.catch_up()
        self.put(shard, 1, 0)
        self.stream.retention = timedelta(hours=24)
        self.stream.advance(timedelta(hours=25))
        self.stream.retention = timedelta(days=7)
        if restarts:
            self.restart()

    def judge(self) -> None:
        assert tiling_faults(self.plans) == []
        faults = delivery_faults(self._wanted(), [s for batch in self.batches for _, s in batch])
        missing = set(faults.pop("missing", []))
        assert faults == {}
        losses = [loss for commit in self.commits for loss in commit.losses]
        known = {cursor.shard_id for plan in self.plans for cursor in plan.cursors}
        for record in self.stream.history():
            if record.sequence in missing:
                assert record.arrival < self.stream.time - self.retention, "missing, but not even trimmed"
                # Shards that came and went while the driver was down are lost with their parent.
                told = any(_tells_of(loss, record) for loss in losses)
                assert told or (record.shard_id not in known and losses), f"{record} went silently"


def _tells_of(loss: Loss, record: FakeRecord) -> bool:
    """By place and by time: who has the records elsewhere looks for them by when they arrived."""
    return (
        loss.shard_id == record.shard_id
        and loss.since <= record.arrival < loss.until
        and (loss.start is None or loss.start <= at(record.sequence))
        and (loss.end is None or at(record.sequence) < loss.end)
    )


common = settings(
    max_examples=settings().max_examples * 3 // 5, stateful_step_count=40, suppress_health_check=list(HealthCheck)
)
TestHistory = History.TestCase
TestHistory.settings = common
TestTrimmedHistory = TrimmedHistory.TestCase
TestTrimmedHistory.settings = common


def test_an_iterator_that_has_expired_is_one_of_those_that_are_to() -> None:
    """Four in a row are more than a reader bears."""
    machine = TrimmedHistory()
    machine.begin(shards=1, start="TRIM_HORIZON", page_size=1, empty_pages=0, max_records=1)
    machine.lose_a_plan()
    machine.expire_an_iterator(calls=1)
    machine.pass_time(by=400.0)
    machine.expire_an_iterator(calls=0)
    machine.expire_an_iterator(calls=0)
    machine.lose_a_plan()
    machine.teardown()


def test_what_is_trimmed_while_a_first_plan_is_made_is_told_of_by_time_too() -> None:
    """It arrived in the very moment at which the plan was begun."""
    machine = TrimmedHistory()
    machine.begin(shards=3, start="TRIM_HORIZON", page_size=1, empty_pages=2, max_records=1)
    for shard in range(3):
        machine.put(shard=shard, count=1, late=0)
    machine.answer_slowly(minutes=4)
    machine.plan()
    machine.teardown()
