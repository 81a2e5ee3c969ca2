"""The loop without Spark, Kinesis or storage: scripted parts, a driven clock, and an error or a stop at every step."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lakestream import engine as engine_module
from lakestream.engine import Clock, Engine, EngineSettings, Until
from lakestream.errors import FencedError, QuarantineLimitError, TableGoneError
from lakestream.model import (
    BatchCommit,
    BatchPlan,
    Cursor,
    Definition,
    FileEntry,
    Finding,
    Loss,
    Portion,
    Reading,
    RecordFormat,
    ShardRange,
    ShardStats,
    SinkCommit,
    Span,
    SpanDue,
    SpanProgress,
    Taken,
    Trim,
    after,
    at,
)
from lakestream.ports import Fetched
from lakestream.stopping import StopSignal

START = datetime(2026, 1, 1, tzinfo=UTC)
SHARD = "shardId-000000000000"
DEFINITION = Definition("id string", None, None)


class Died(Exception):
    """Stands for the death of the driver."""


@dataclass
class World:
    """What outlives a driver: the stream, the log and the lake."""

    available: int
    """Batches of one record each that the stream has; record n has sequence number n + 1."""
    plans: dict[int, BatchPlan] = field(default_factory=dict)
    commits: dict[int, BatchCommit] = field(default_factory=dict)
    lake: list[int] = field(default_factory=list)
    visible: dict[int, SinkCommit] = field(default_factory=dict)
    rejected: dict[int, list[int]] = field(default_factory=dict)
    rows_rejected: int = 1
    """Of each record that is: a transform may make several."""
    die_at: str = ""
    on_reach: Callable[[str], object] | None = None
    table_is_gone: bool = False
    released: int = 0
    fetched: int = 0
    asked: int = 0
    """Files of the quarantine that somebody has asked for, of one record each: 1000 and so on."""
    span: int = 0
    """Records of a span that somebody has asked for behind these, one in each batch: 9001 and so on."""
    definition: Definition = DEFINITION
    """What drivers are started with."""
    epoch: int = 0
    now: datetime = START
    tip: datetime = START
    """Before it arrived what a run to the tip has to take."""
    set_by: timedelta = timedelta(0)
    """What the machine's clock was set forward by, or back."""
    spared: list[float] = field(default_factory=list)
    """Seconds for which planning was to wait for the sink, at most."""

    def monotonic(self) -> float:
        return (self.now - START).total_seconds()

    def wait(self, sink_is_free: threading.Event, seconds: float) -> None:
        """Until the sink is free."""
        self.spared.append(seconds)
        assert sink_is_free.wait(60)

    def reach(self, step: str) -> None:
        if self.on_reach:
            self.on_reach(step)
        if step == self.die_at:
            self.die_at = ""
            raise Died(step)


def plan_of(batch: int, epoch: int, *, caught_up: bool) -> BatchPlan:
    position = after(batch + 1)
    piece = ShardRange(
        shard_id=SHARD,
        start=at(1) if batch == 0 else after(batch),
        end=position,
        first=batch + 1,
        first_arrival=START,
        end_arrival=START,
        closes_shard=False,
        expected_records=1,
        task=0,
    )
    cursor = Reading(SHARD, position, START, None)
    return BatchPlan(
        batch,
        epoch,
        START,
        START,
        START + timedelta(seconds=batch + 1),
        caught_up,
        (piece,),
        (cursor,),
        (),
        trim_of(batch),
    )


def trim_of(batch: int) -> Trim:
    return Trim(timedelta(hours=24), START - timedelta(hours=24) + timedelta(seconds=batch))


@dataclass
class ScriptedPlanner:
    world: World
    learned: list[int] = field(default_factory=list)
    caught_up_to: datetime | None = None
    missing: timedelta | None = None

    def plan(self, *, batch: int, epoch: int, cursors: tuple[Cursor, ...], trim: Trim | None) -> BatchPlan | None:
        # Batches that readmit are numbered too, and take nothing of the stream.
        record = cursors[0].position.sequence if cursors and isinstance(cursors[0], Reading) else 0
        assert trim == (None if record == 0 else trim_of(record - 1)), "a batch knows what the one before knew"
        taken = sum(1 for plan in self.world.plans.values() if plan.ranges)
        assert record == taken, "a batch begins where the one before ended"
        caught_up = record >= self.world.available - 1
        self.caught_up_to = START if caught_up else None
        self.missing = max(self.world.tip - self.world.now, timedelta(0)) if caught_up else None
        if record >= self.world.available:
            return None
        return replace(plan_of(record, epoch, caught_up=caught_up), batch=batch, read_from=START)

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        assert records == 50_000
        assert trim is not None, "what the stream has trimmed is known"
        number = due.progress.cursors[0].position.sequence + 1 if due.progress else 9001  # type: ignore[union-attr]
        piece = ShardRange(SHARD, at(number), after(number), number, START, START, False, 1, 0)
        if number == 9000 + self.world.span:
            return Portion(((piece,),), Taken(due.request, 1, 1, SpanProgress()))
        progress = SpanProgress((Reading(SHARD, after(number), START, None),), trim, START)
        return Portion(((piece,),), Taken(due.request, 0, 1, progress))

    def observe(self, commit: BatchCommit) -> None:
        if not commit.is_requested:
            self.learned.append(commit.batch)


class ScriptedLog:
    def __init__(self, world: World) -> None:
        world.epoch += 1
        self.world, self.epoch = world, world.epoch

    def last_commit(self) -> BatchCommit | None:
        return self.world.commits[max(self.world.commits)] if self.world.commits else None

    def pending_plans(self) -> tuple[BatchPlan, ...]:
        return tuple(plan for batch, plan in sorted(self.world.plans.items()) if batch not in self.world.commits)

    def put_plan(self, plan: BatchPlan) -> None:
        assert plan.batch not in self.world.plans
        self.world.plans[plan.batch] = plan

    def put_commit(self, commit: BatchCommit) -> None:
        assert commit.batch == len(self.world.commits), "commits are contiguous"
        self.world.commits[commit.batch] = commit

    def requested(self, behind: Taken | None, definition: str, records: int) -> Portion | SpanDue | None:
        assert (definition, records) == (self.world.definition.digest, 50_000)
        if self.world.span:
            is_done = behind is not None and behind.is_done
            span = Span(START, START + timedelta(seconds=1))
            return None if is_done else SpanDue(1, span, behind.span if behind else None)
        taken = behind.parts if behind else 0
        if taken >= self.world.asked:
            return None
        return Portion(((FileEntry(str(1000 + taken), 1, 10, ""),),), Taken(1, taken + 1, self.world.asked))

    def check_fence(self) -> None:
        if self.world.epoch > self.epoch:
            raise FencedError("superseded")

    def expire(self) -> None: ...


@dataclass
class ScriptedFetcher:
    world: World
    rejected_per_batch: int = 0

    def fetch(self, plan: BatchPlan, *, replay: bool) -> Fetched[list[int]]:
        assert self.world.plans.get(plan.batch) == plan, "a batch is fixed before it is read"
        self.world.fetched += 1
        self.world.reach("fetch")
        rows = [piece.first for piece in plan.ranges] + [int(entry.path) for task in plan.readmits for entry in task]
        rows += [piece.first for task in plan.spans for piece in task]
        stats = ShardStats(SHARD, len(rows), 10, START, START)

        # As when an executor is lost while the sink writes: what is read again lacks more.
        def findings() -> tuple[Finding, ...]:
            if plan.readmits:
                return ()
            if plan.spans:
                return (Finding(SHARD, (Loss(SHARD, at(rows[0]), after(rows[0]), START, START),)),)
            end = at(plan.batch + 1) if plan.batch not in self.world.visible else after(plan.batch + 1)
            return (Finding(SHARD, (Loss(SHARD, at(1), end, START, START),)),)

        def release() -> None:
            self.world.released += 1

        return Fetched(
            rows, rows[: self.rejected_per_batch], self.rejected_per_batch, (stats,), (START,), findings, release
        )


@dataclass
class TransactionalOutput:
    """Like Hudi: writing a batch twice would double it, so it has to be found."""

    world: World

    def check(self) -> None:
        if self.world.table_is_gone:
            raise TableGoneError("the table was deleted")

    def quarantine(self, plan: BatchPlan, rejected: list[int], *, replay: bool) -> tuple[FileEntry, ...]:
        self.world.reach("quarantine")
        self.world.rejected[plan.batch] = rejected
        return self.quarantined(plan)

    def quarantined(self, plan: BatchPlan) -> tuple[FileEntry, ...]:
        rejected = self.world.rejected.get(plan.batch)
        return (
            (FileEntry(f"b{plan.batch}.parquet", len(rejected) * self.world.rows_rejected, 10, ""),) if rejected else ()
        )

    def find(self, plan: BatchPlan) -> SinkCommit | None:
        return self.world.visible.get(plan.batch)

    def write(self, plan: BatchPlan, rows: list[int], *, replay: bool) -> SinkCommit:
        self.world.reach("write")
        self.world.lake.extend(rows)
        self.world.visible[plan.batch] = SinkCommit(len(rows), 10)
        return self.world.visible[plan.batch]


@dataclass
class Told:
    commits: list[BatchCommit] = field(default_factory=list)
    story: list[str] = field(default_factory=list)
    idles: list[tuple[datetime, datetime]] = field(default_factory=list)
    fetches: list[tuple[int, int | None]] = field(default_factory=list)
    """Batch; its records, None before they are there."""

    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None:
        self.commits.append(commit)
        self.story.append("committed")

    def fetching(self, batch: int) -> None:
        self.fetches.append((batch, None))

    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> None:
        self.fetches.append((plan.batch, sum(shard.records for shard in shards)))

    def between_batches(self) -> None:
        if self.story[-1:] != ["between"]:
            self.story.append("between")

    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None:
        self.idles.append((looked_at, caught_up_to))


class InstantStop(StopSignal):
    """Waiting moves the clock instead of the test's time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        if seconds > 0 and not self.is_set():
            self.waits.append(seconds)
            self.world.now += timedelta(seconds=seconds)


@dataclass
class Driver:
    world: World
    engine: Engine[list[int]]
    stop: InstantStop
    planner: ScriptedPlanner
    told: Told


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Driver]:
    def _start(world: World, *, rejected: int = 0, max_rejected: float = 1.0, interval: float = 10) -> Driver:
        monkeypatch.setattr(engine_module, "reach", world.reach)
        stop, planner, told = InstantStop(world), ScriptedPlanner(world), Told()
        engine: Engine[list[int]] = Engine(
            settings=EngineSettings(timedelta(seconds=interval), world.definition, max_rejected),
            log=ScriptedLog(world),
            planner=planner,
            fetcher=ScriptedFetcher(world, rejected),
            output=TransactionalOutput(world),
            observer=told,
            stop=stop,
            clock=Clock(lambda: world.now + world.set_by, world.wait, world.monotonic),
        )
        return Driver(world, engine, stop, planner, told)

    return _start


@pytest.mark.parametrize("hours", [-6, 6])
def test_a_clock_that_is_set_delays_and_hurries_nothing(start: Any, hours: int) -> None:
    world = World(available=1)
    driver = start(world)

    def set_clock(step: str) -> None:
        if step == "committed":
            world.set_by += timedelta(hours=hours)
            world.available = 3
        if len(world.lake) == 3:
            driver.stop.set()

    world.on_reach = set_clock
    driver.engine.run()
    assert world.lake == [1, 2, 3]
    assert all(seconds <= 10 for seconds in driver.stop.waits)
    assert all(0 <= seconds <= 10 for commit in driver.told.commits for seconds in commit.seconds.values())


def test_a_backlog_is_worked_off_without_waiting(start: Any) -> None:
    driver = start(World(available=5))
    assert driver.engine.run(Until.CAUGHT_UP) == 5
    assert driver.world.lake == [1, 2, 3, 4, 5]
    assert (driver.stop.waits, driver.world.spared) == ([], [])
    assert [commit.batch for commit in driver.told.commits] == [0, 1, 2, 3, 4]


def test_a_commit_tells_what_was_lost_until_its_rows_were_written(start: Any) -> None:
    driver = start(World(available=1))
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.told.commits[0].losses == (Loss(SHARD, at(1), after(1), START, START),)


def test_between_two_batches_there_is_time_for_other_things(start: Any) -> None:
    world = World(available=2)
    driver = start(world)
    world.on_reach = lambda step: driver.told.story.append(step) if step == "write" else None
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.told.story == ["between", "write", "committed", "between", "write", "committed", "between"]


def test_also_while_the_next_batch_is_long_in_coming(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "_LULL", 0.001)
    world = World(available=1)
    driver = start(world)
    calls = itertools.count(1)
    lulls = threading.Event()
    monkeypatch.setattr(driver.told, "between_batches", lambda: lulls.set() if next(calls) == 3 else None)
    world.on_reach = lambda step: lulls.wait(60) if step == "fetch" else None
    driver.engine.run(Until.CAUGHT_UP)
    assert lulls.is_set()
    assert world.lake == [1]


def test_a_batch_is_told_of_as_soon_as_it_is_fetched(start: Any) -> None:
    driver = start(World(available=2))
    driver.world.on_reach = lambda step: driver.told.story.append(f"{step} after {driver.told.fetches[:2]}")
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.told.fetches == [(0, None), (0, 1), (1, None), (1, 1)]
    assert next(step for step in driver.told.story if step.startswith("write")) == "write after [(0, None), (0, 1)]"


def test_a_look_that_finds_nothing_is_told(start: Any) -> None:
    world = World(available=0)
    driver = start(world)
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.told.idles == [(START, START)]


def test_a_look_that_finds_nothing_while_a_batch_is_written_tells_nothing(start: Any) -> None:
    """What the batch needs may be denied for good: it must not be forgotten since when."""
    world = World(available=1, die_at="write")
    with pytest.raises(Died):
        start(world).engine.run(Until.CAUGHT_UP)
    driver, looked = start(world), threading.Event()
    plan = driver.planner.plan

    def look(**behind: Any) -> BatchPlan | None:
        found: BatchPlan | None = plan(**behind)
        looked.set()
        return found

    def deny(step: str) -> None:
        if step == "write":
            assert looked.wait(60)
            raise Died(step)

    driver.planner.plan, world.on_reach = look, deny
    with pytest.raises(Died):
        driver.engine.run(Until.CAUGHT_UP)
    assert driver.told.idles == []


def test_a_look_that_finds_nothing_while_a_requested_batch_is_written_is_told_behind_it(start: Any) -> None:
    world = World(available=1, asked=2)
    world.wait = lambda sink_is_free, seconds: None  # type: ignore[method-assign]
    driver, looked = start(world), threading.Event()
    plan = driver.planner.plan

    def look(**behind: Any) -> BatchPlan | None:
        found: BatchPlan | None = plan(**behind)
        if found is None:
            looked.set()
        return found

    def take_long(step: str) -> None:
        if step == "fetch" and world.fetched == 2:
            world.now += timedelta(seconds=10)
        if step == "write" and len(world.lake) == 1:
            assert looked.wait(60)
            assert driver.told.idles == []
            world.now += timedelta(seconds=8)
        if step == "committed" and len(world.commits) == 3:
            driver.stop.set()

    driver.planner.plan, world.on_reach = look, take_long
    driver.engine.run()
    assert driver.told.idles[0] == (START + timedelta(seconds=10), START), "by when it looked"


def test_all_that_was_fetched_is_released(start: Any) -> None:
    driver = start(World(available=5))
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.world.released == driver.world.fetched == 5


def test_a_run_to_the_tip_looks_again_for_what_was_too_young_when_it_began(start: Any) -> None:
    world = World(available=1, tip=START + timedelta(seconds=3))
    driver = start(world)

    def arrive(step: str) -> None:
        world.available = 2

    world.on_reach = arrive
    assert driver.engine.run(Until.CAUGHT_UP) == 2
    assert driver.stop.waits == [3], "not for the whole interval"
    assert world.lake == [1, 2]


def test_at_the_tip_batches_begin_an_interval_apart(start: Any) -> None:
    world = World(available=1)
    driver = start(world)

    def arrive(step: str) -> None:
        if step == "committed":
            world.available += 1
        if world.available > 4:
            driver.stop.set()

    world.on_reach = arrive
    driver.engine.run()
    assert driver.stop.waits
    assert all(wait == 10 for wait in driver.stop.waits)


def test_at_the_tip_a_batch_is_planned_so_late_that_it_is_fetched_when_the_sink_is_free(start: Any) -> None:
    world = World(available=1)
    driver = start(world)

    def pass_time(step: str) -> None:
        world.now += timedelta(seconds={"fetch": 1, "write": 30}.get(step, 0))
        world.available += step == "committed"
        if world.available > 4:
            driver.stop.set()

    world.on_reach = pass_time
    driver.engine.run()
    assert world.spared[:3] == [0, 29, 29]
    assert world.lake[:3] == [1, 2, 3]


@pytest.mark.parametrize("step", ["planned", "fetch", "write", "sink_committed", "committed"])
@pytest.mark.parametrize("batches", [1, 2, 5])
def test_a_death_at_any_step_loses_and_doubles_nothing(start: Any, step: str, batches: int) -> None:
    world = World(available=batches, die_at=step)
    with pytest.raises(Died):
        start(world).engine.run(Until.CAUGHT_UP)
    start(world).engine.run(Until.CAUGHT_UP)
    assert world.lake == list(range(1, batches + 1))
    assert sorted(world.commits) == list(range(batches))


def test_unusable_records_are_kept_before_the_sink_shows_the_others(start: Any) -> None:
    """A sink that finds its batch is not written to again, and nobody would look what became of the others."""
    world = World(available=3, die_at="quarantine")
    with pytest.raises(Died):
        start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    assert world.rejected == {0: [1], 1: [2], 2: [3]}
    assert world.lake == [1, 2, 3]


def test_a_batch_that_is_visible_keeps_the_quarantine_that_was_written_with_it(start: Any) -> None:
    world = World(available=1, die_at="sink_committed")
    with pytest.raises(Died):
        start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    start(world, rejected=0).engine.run(Until.CAUGHT_UP)
    assert (world.rejected, world.lake) == ({0: [1]}, [1])


@pytest.mark.parametrize("same", [True, False])
def test_of_a_batch_that_is_visible_it_is_told_by_what_records_were_rejected_only_if_it_is_known(
    start: Any, same: bool
) -> None:
    """Or else records could not be replayed that the present definition has never seen."""
    world = World(available=1, die_at="sink_committed")
    with pytest.raises(Died):
        start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    if not same:
        world.plans[0] = replace(world.plans[0], definition=replace(DEFINITION, schema="another"))
    start(world, rejected=0).engine.run(Until.CAUGHT_UP)
    assert world.commits[0].rejected_by == (DEFINITION.digest if same else "")


def test_of_records_in_avro_nobody_knows_whether_they_would_be_rejected_again(start: Any) -> None:
    """Their version of a schema may be registered meanwhile; a replay is to be had then."""
    world = World(available=1, definition=replace(DEFINITION, record_format=RecordFormat.AVRO))
    start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    assert (world.rejected, world.commits[0].rejected_by) == ({0: [1]}, "")


def test_a_batch_that_is_visible_is_committed_whatever_would_be_unusable_of_it_now(start: Any) -> None:
    world = World(available=1, die_at="sink_committed")
    with pytest.raises(Died):
        start(world).engine.run(Until.CAUGHT_UP)
    start(world, rejected=1, max_rejected=0.0).engine.run(Until.CAUGHT_UP)
    assert (list(world.commits), world.lake) == ([0], [1])


def test_what_was_quarantined_by_an_attempt_that_came_to_nothing_does_not_stay(start: Any) -> None:
    world = World(available=1, die_at="write")
    with pytest.raises(Died):
        start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    start(world, rejected=0).engine.run(Until.CAUGHT_UP)
    assert (world.rejected, world.lake) == ({0: []}, [1])


def test_plans_bear_the_definition_that_they_are_made_under(start: Any) -> None:
    world = World(available=2)
    start(world).engine.run(Until.CAUGHT_UP)
    assert [plan.definition for plan in world.plans.values()] == [DEFINITION] * 2


@pytest.mark.parametrize("dies", ["", "write"])
def test_a_replay_makes_no_plan_and_stops_nobody(start: Any, dies: str) -> None:
    world = World(available=5, die_at="write")
    with pytest.raises(Died):
        start(world).engine.run(Until.CAUGHT_UP)
    pending, world.die_at = [plan for batch, plan in world.plans.items() if batch not in world.commits], dies
    driver = start(world)
    with pytest.raises(Died) if dies else nullcontext():
        assert driver.engine.replay(pending) == len(pending)
    assert len(world.plans) == len(pending)
    assert not driver.stop.is_set()


def test_a_failure_ends_all_of_a_run_and_nobody_asked_for_it(start: Any) -> None:
    driver = start(World(available=5, die_at="write"))
    with pytest.raises(Died):
        driver.engine.run()
    assert driver.stop.is_set()
    assert not driver.stop.is_asked


def test_a_stop_ends_after_the_batch_in_hand_and_leaves_the_next_to_replay(start: Any) -> None:
    world = World(available=5)
    driver = start(world)
    world.on_reach = lambda step: driver.stop.set() if step == "write" else None
    assert driver.engine.run() == 1
    assert world.lake == [1]
    start(world).engine.run(Until.CAUGHT_UP)
    assert world.lake == [1, 2, 3, 4, 5]
    assert world.released == world.fetched


def test_a_superseded_driver_does_not_write(start: Any) -> None:
    world = World(available=3)
    driver = start(world)

    def supersede(step: str) -> None:
        if step == "fetch":
            world.epoch += 1

    world.on_reach = supersede
    with pytest.raises(FencedError):
        driver.engine.run(Until.CAUGHT_UP)
    assert world.lake == []


def test_a_table_that_is_gone_is_not_written_nor_is_a_batch_committed(start: Any) -> None:
    driver = start(World(available=2))

    def lose(step: str) -> None:
        driver.world.table_is_gone |= step == "committed"

    driver.world.on_reach = lose
    with pytest.raises(TableGoneError):
        driver.engine.run(Until.CAUGHT_UP)
    assert driver.world.lake == [1]
    assert list(driver.world.commits) == [0]


def test_a_stop_while_the_first_batch_is_fetched_writes_nothing(start: Any) -> None:
    world = World(available=1)
    driver = start(world)
    world.on_reach = lambda step: driver.stop.set() if step == "fetch" else None
    driver.engine.run(Until.CAUGHT_UP)
    assert world.lake == []


def test_unusable_records_go_to_quarantine_and_are_counted(start: Any) -> None:
    driver = start(World(available=2), rejected=1)
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.world.rejected == {0: [1], 1: [2]}
    assert [commit.quarantined for commit in driver.told.commits] == [1, 1]
    assert [[entry.path for entry in commit.rejects] for commit in driver.told.commits] == [
        ["b0.parquet"],
        ["b1.parquet"],
    ]


@pytest.mark.parametrize("step", ["", "sink_committed"])
def test_more_rows_of_a_transform_may_be_unusable_than_there_are_records(start: Any, step: str) -> None:
    world = World(available=2, rows_rejected=3, die_at=step)
    if step:
        with pytest.raises(Died):
            start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    start(world, rejected=1).engine.run(Until.CAUGHT_UP)
    assert [commit.quarantined for commit in world.commits.values()] == [1, 1]
    assert [[entry.rows for entry in commit.rejects] for commit in world.commits.values()] == [[3], [3]]


def test_too_many_unusable_records_fail_the_batch_before_anything_is_written(start: Any) -> None:
    driver = start(World(available=2), rejected=1, max_rejected=0.5)
    with pytest.raises(QuarantineLimitError, match=r"1 of 1 records cannot be used.*maxFraction 0.5"):
        driver.engine.run(Until.CAUGHT_UP)
    assert driver.world.lake == []
    assert driver.world.rejected == {}


@pytest.mark.parametrize(("rejected", "records", "limit"), [(29, 100, 0.29), (63, 90, 0.7), (57, 100, 0.57)])
def test_just_as_many_unusable_records_as_the_limit_allows_fail_nothing(
    start: Any, rejected: int, records: int, limit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(available=1)
    driver = start(world, rejected=1, max_rejected=limit)
    fetch = ScriptedFetcher.fetch

    def many(self: ScriptedFetcher, plan: BatchPlan, *, replay: bool) -> Fetched[list[int]]:
        stats = ShardStats(SHARD, records, 10, START, START)
        return replace(fetch(self, plan, replay=replay), rejected_count=rejected, shards=(stats,))

    monkeypatch.setattr(ScriptedFetcher, "fetch", many)
    driver.engine.run(Until.CAUGHT_UP)
    assert world.commits[0].records == records


def test_the_planner_learns_from_commits_also_from_those_before_the_start(start: Any) -> None:
    world = World(available=2)
    start(world).engine.run(Until.CAUGHT_UP)
    world.available = 3
    driver = start(world)
    driver.engine.run(Until.CAUGHT_UP)
    assert driver.planner.learned == [1, 2]


def test_what_is_asked_for_takes_turns_with_a_backlog(start: Any) -> None:
    world = World(available=3, asked=2)
    driver = start(world)
    driver.engine.run(Until.CAUGHT_UP)
    assert world.lake == [1, 1000, 2, 1001, 3]
    assert [commit.readmits for commit in driver.told.commits] == [(), ("1000",), (), ("1001",), ()]
    assert driver.planner.learned == [0, 2, 4], "it tells nothing of the stream"


def test_while_the_stream_rests_it_goes_on_without_waiting(start: Any) -> None:
    world = World(available=1, asked=4)
    driver = start(world)

    def arrive(step: str) -> None:
        if len(world.commits) == 5:
            driver.stop.set()

    world.on_reach = arrive
    driver.engine.run()
    assert world.lake == [1, 1000, 1001, 1002, 1003]
    assert world.now == START


@pytest.mark.parametrize("asked_at", [25, 3595])
def test_who_asks_while_the_stream_rests_need_not_wait_for_the_next_trigger(start: Any, asked_at: float) -> None:
    world = World(available=1)
    driver = start(world, interval=3600)
    wait = driver.stop.wait
    taken_at: list[float] = []

    def ask(seconds: float) -> None:
        wait(seconds)
        world.asked = 1 if world.monotonic() >= asked_at else 0

    def take(step: str) -> None:
        if step == "fetch" and world.asked:
            taken_at.append(world.monotonic())
            driver.stop.set()

    driver.stop.wait, world.on_reach = ask, take
    driver.engine.run()
    assert 0 <= taken_at[0] - asked_at <= 10


def test_a_run_that_is_to_yield_does_not_wait_for_the_next_trigger(start: Any) -> None:
    """To a restore, which is asked for in a hurry."""
    world = World(available=1)
    start(world, interval=3600).engine.run(yields=lambda: world.monotonic() > 60)
    assert world.lake == [1]
    assert world.monotonic() <= 70


def test_to_look_for_requests_makes_no_batch_of_the_stream_sooner(start: Any) -> None:
    world = World(available=1)
    driver = start(world, interval=60)
    planned_at: list[float] = []

    def arrive(step: str) -> None:
        if step == "fetch":
            planned_at.append(world.monotonic())
        world.available += step == "committed"
        if len(planned_at) == 3:
            driver.stop.set()

    world.on_reach = arrive
    driver.engine.run()
    assert planned_at == [0, 60, 120]


def test_it_does_not_hold_up_the_stream_longer_than_a_batch(start: Any) -> None:
    world = World(available=1, asked=100)
    driver = start(world)

    def arrive(step: str) -> None:
        if step == "fetch":
            world.now += timedelta(seconds=6)
            world.available = 2
        if 2 in world.lake:
            driver.stop.set()

    world.on_reach = arrive
    driver.engine.run()
    assert world.lake[: world.lake.index(2)] in ([1, 1000], [1, 1000, 1001])


def test_it_leaves_the_stream_where_it_is(start: Any) -> None:
    world = World(available=1, asked=1)
    start(world).engine.run(Until.CAUGHT_UP)
    stream, readmission = world.commits[0], world.commits[1]
    assert (readmission.cursors, readmission.trim, readmission.losses) == (stream.cursors, stream.trim, ())
    assert (readmission.horizon, readmission.caught_up) == (stream.horizon, stream.caught_up)
    assert (readmission.records, readmission.taken) == (1, Taken(1, 1, 1))
    world.available = 2
    start(world).engine.run(Until.CAUGHT_UP)
    assert world.commits[2].taken == Taken(1, 1, 1), "which the next batches hand on"


def test_it_may_be_unusable_again_whatever_the_limit_is(start: Any) -> None:
    world = World(available=1, asked=1)
    start(world).engine.run(Until.CAUGHT_UP)
    world.asked = 2
    driver = start(world, rejected=1, max_rejected=0.0)
    driver.engine.run(Until.CAUGHT_UP)
    assert world.rejected == {2: [1001]}
    assert world.commits[2].rejected_by == DEFINITION.digest


@pytest.mark.parametrize("step", ["planned", "fetch", "write", "sink_committed", "committed"])
@pytest.mark.parametrize("deaths", [1, 3])
def test_a_death_at_any_step_readmits_nothing_twice(start: Any, step: str, deaths: int) -> None:
    world = World(available=2, asked=3)
    for _ in range(deaths):
        world.die_at = step
        with pytest.raises(Died):
            start(world).engine.run(Until.CAUGHT_UP)
    start(world).engine.run(Until.CAUGHT_UP)
    assert sorted(world.lake) == [1, 2, 1000, 1001, 1002]


def test_a_span_takes_turns_with_the_stream_and_leaves_it_where_it_is(start: Any) -> None:
    world = World(available=3, span=2)
    driver = start(world)
    driver.engine.run(Until.CAUGHT_UP)
    assert world.lake == [1, 9001, 2, 9002, 3]
    assert [commit.is_requested for commit in driver.told.commits] == [False, True, False, True, False]
    assert driver.planner.learned == [0, 2, 4]
    stream, of_span = world.commits[0], world.commits[1]
    assert (of_span.cursors, of_span.trim, of_span.horizon) == (stream.cursors, stream.trim, stream.horizon)
    assert (of_span.base, of_span.caught_up, of_span.read_from) == (None, stream.caught_up, START)


def test_commits_alone_know_what_a_span_has_taken_and_lost(start: Any) -> None:
    world = World(available=3, span=2)
    start(world).engine.run(Until.CAUGHT_UP)
    known = [commit.taken.span for commit in world.commits.values() if commit.taken and commit.taken.span]
    assert [span.records for span in known] == [1, 1, 2, 2], "the stream's batches hand it on"
    assert [len(span.lost) for span in known] == [1, 1, 2, 2]
    assert all(not plan.losses for plan in world.plans.values())


@pytest.mark.parametrize("step", ["planned", "fetch", "write", "sink_committed", "committed"])
@pytest.mark.parametrize("deaths", [1, 3])
def test_a_death_at_any_step_takes_nothing_of_a_span_twice(start: Any, step: str, deaths: int) -> None:
    world = World(available=2, span=3)
    for _ in range(deaths):
        world.die_at = step
        with pytest.raises(Died):
            start(world).engine.run(Until.CAUGHT_UP)
    start(world).engine.run(Until.CAUGHT_UP)
    assert sorted(world.lake) == [1, 2, 9001, 9002, 9003]
    last = world.commits[max(world.commits)].taken
    assert last is not None
    assert last.span is not None
    assert last.span.records == 3
