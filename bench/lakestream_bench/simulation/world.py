"""A stream, a driver and its executors, from event to event.

A batch goes through the data plane's own steps: planned when it is due, at the tip so late that it is fetched when
the sink is free, cut by arrival time, fetched while the batch before is written, the two sharing the cores; both stages
have a part that no core makes shorter. Shards are alike but for the fullest one. The position is the same for all
shards, as the planner's horizon is. What the driver says of itself is a `DriverReport`.
"""

from __future__ import annotations

import math
from collections import deque
from datetime import UTC, datetime, timedelta

from lakestream.kinesis.rates import Covered, Rates
from lakestream.kinesis.rates import Pace as Quickness
from lakestream.kinesis.settings import PlannerSettings
from lakestream.pacing import Pace
from lakestream_api import BatchSummary, CoreSeconds, DriverReport, DriverState, FetchedBatch, StageSeconds
from lakestream_api.report import ExecutorsReport
from lakestream_bench.simulation.batches import DONE, SERVICES_SHARE, Batch, Job, Meter
from lakestream_bench.simulation.cluster import Cluster, start_delays
from lakestream_bench.simulation.costs import BatchCosts, StageCost, noise
from lakestream_bench.simulation.shard import Shard
from lakestream_bench.simulation.streams import Mishap, Mishaps, Scenario

RECORDS_PER_TASK = 10_000
RANGES_AT_ONCE = 4
"""Shards that a task asks at once."""
SETTLE = 0.25
SHORTEST = 1.0
"""Seconds of arrival time that a rate is reckoned over at least."""
START_SECONDS = 30.0
"""From a driver's end to the first batch of the next one being planned: its pod, the JVM, Spark's context, taking over
the log, and the first executor. Measured: 10 s from a SparkApplication to its first executor running; the rest is
the start of Spark and Hudi, and the end of the batch in hand."""
_REPORTED = 6
"""Batches in a report. A driver tells of 12, all but the last of which an operator that has not been away knows."""
_COLD = 0.5
"""What an executor does that is not warm yet, of what it will do."""
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def time_of(seconds: float) -> datetime:
    """The clock of all that is simulated."""
    return _EPOCH + timedelta(seconds=seconds)


def _settings(scenario: Scenario) -> PlannerSettings:
    trigger = scenario.spec.trigger
    records, size = trigger.max_records_per_batch, trigger.max_bytes_per_batch
    return PlannerSettings("LATEST", interval=trigger.interval, max_records=records, max_bytes=size)


class World:
    """One run of a scenario. `run` goes on to a time; between, a policy looks at it and calls `aim` or `restart`."""

    def __init__(self, scenario: Scenario, costs: BatchCosts, executors: int) -> None:
        self.scenario = scenario
        self.costs = costs
        self.now = 0.0
        self.meter = Meter()
        self.cluster = Cluster(start_delays(scenario.seed), executors, executors, scenario.room_at(0.0))
        self.position = 0.0
        self.committed = 0.0
        self.committed_at = 0.0
        self.alive = True
        self._batches: deque[BatchSummary] = deque(maxlen=_REPORTED)
        self._fetched: FetchedBatch | None = None
        self._idle_at: float | None = None
        self._reported_at = 0.0
        self._settings = _settings(scenario)
        self._rates = Rates()
        self._pace = Pace()
        self._shard = Shard(scenario)
        self._number = 0
        self._due = 0.0
        self._rests = True
        self._stopped = False
        self._prepare: Job | None = None
        self._ready: Batch | None = None
        self._finish: Job | None = None
        self._compaction: Job | None = None
        self._uncompacted: list[float] = []
        self._served = 0.0
        """Core-seconds of compaction since the last commit."""
        self._draining = False
        self._noise = noise(scenario.seed, costs)
        self._changes = deque(scenario.changes())

    # What a policy sees

    def report(self) -> DriverReport:
        """What the driver has said last."""
        return DriverReport(
            stream="simulated",
            writer="w0",
            pod="driver",
            pod_uid="1",
            epoch=0,
            started_at=_EPOCH,
            updated_at=time_of(self._reported_at),
            caught_up_at=None if self._idle_at is None else time_of(self._idle_at),
            state=DriverState.RUNNING,
            executors=ExecutorsReport(target=self.cluster.target, registered=self.cluster.running),
            batches=tuple(self._batches),
            fetched=self._fetched,
            shard_count=self.scenario.shards_at(self.committed),
        )

    # What a policy does

    def aim(self, executors: int) -> None:
        """Scale in place."""
        if executors != self.cluster.target:
            self.meter.targets.append((self.now, executors))
            self.cluster.aim(self.now, executors)

    def restart(self, executors: int) -> None:
        """Scale by stopping the driver after the batch in hand, and starting it with another number."""
        if executors != self.cluster.target:
            self.meter.targets.append((self.now, executors))
            self.cluster.target = executors
            self._draining = True
            if self._finish is None and self.alive:
                self._stop_to_restart()

    # Time

    def run(self, until: float) -> None:
        """Go on to a time."""
        while self.now < until:
            if self._finish is None:
                # A driver without a batch to write looks for them each second.
                self.cluster.leave_surplus()
            self._start_stages()
            self._advance(min(until, self._next_event()))
            self._fire()

    def close(self) -> None:
        """Count what is late at the end."""
        self._count_late()

    def _next_event(self) -> float:
        times = [self._changes[0].at] if self._changes else []
        times += self.cluster.starting[:1] + self.cluster.warming[:1]
        if self.alive and self.cluster.running:
            if self._prepare is None and self._ready is None:
                times.append(max(self._plan_at, self.now))
            for job, _, headway in self._at_work():
                if job.fixed > DONE:
                    times.append(self.now + job.fixed)
                elif job.waits > DONE:
                    times.append(self.now + job.waits)
                elif headway:
                    times.append(self.now + job.work / headway)
        return max(min(times, default=math.inf), self.now)

    def _advance(self, to: float) -> None:
        step = to - self.now
        self.cluster.paid += self.cluster.placed * step
        if self.alive:
            self._reported_at = to
            if self._prepare is not None or self._finish is not None:
                self.meter.pipeline += step
            for job, taken, headway in self._at_work():
                if job.fixed > DONE:
                    job.fixed -= step
                elif job.waits > DONE:
                    job.waits -= step
                    job.ran += taken * step
                else:
                    job.work -= headway * step
                    job.ran += taken * step
                    self._served += taken * step if job is self._compaction else 0.0
                    self.meter.busy += headway * step
        self.now = to

    def _at_work(self) -> list[tuple[Job, float, float]]:
        """The stages at work, the slots that each has, and the core-seconds that it does in a second."""
        slots = float(self.cluster.running * self.scenario.cores)
        if slots == 0:
            return []
        found: list[tuple[Job, float]] = []
        jobs = [job for job in (self._finish, self._prepare) if job is not None]
        if self._compaction is not None:
            # All slots where no batch has tasks; what a stage leaves idle is not counted.
            found = [(self._compaction, slots * (SERVICES_SHARE if any(job.fixed <= DONE for job in jobs) else 1.0))]
            slots -= found[0][1]
        if len(jobs) == 2 and jobs[0].fixed <= DONE and jobs[1].fixed <= DONE:
            # Spark gives free slots to the job that came first; the two begin together, and take turns.
            first = min(jobs[0].tasks, max(slots / 2, slots - jobs[1].tasks))
            found += [(jobs[0], first), (jobs[1], min(jobs[1].tasks, slots - first))]
        else:
            found += [(job, min(job.tasks, slots)) for job in jobs]
        warm = 1 - (1 - _COLD) * len(self.cluster.warming) / self.cluster.running
        pace = 0.0 if self._stopped else warm
        return [(job, taken, taken * job.speed * pace) for job, taken in found]

    def _fire(self) -> None:
        while self._changes and self._changes[0].at <= self.now:
            self._change(self._changes.popleft())
        self.cluster.arrive(self.now, self.scenario.warming)
        if (job := self._prepare) is not None and job.is_done:
            job.batch.prepare_seconds, job.batch.prepare_work = self.now - job.began, job.whole
            job.batch.prepare_ran = job.ran
            self._ready, self._prepare = job.batch, None
            self._fetched = FetchedBatch(
                batch=job.batch.number,
                fetched_at=time_of(self.now),
                records=round(job.batch.records),
                bytes=round(job.batch.bytes),
                slice_seconds=job.batch.horizon - job.batch.since,
                largest_shard_bytes=round(job.batch.share * job.batch.bytes),
            )
        if (job := self._finish) is not None and job.is_done:
            self._commit(job)
        if (job := self._compaction) is not None and job.is_done:
            self._compaction = None

    # The driver

    def _start_stages(self) -> None:
        if not self.alive or not self.cluster.running:
            return
        if self._ready is not None and self._finish is None:
            batch, self._ready = self._ready, None
            self._finish = self._job(batch, self.costs.finish, batch.number * 2 + 1)
            self._finish.work += batch.redo
            self._finish.whole += batch.redo
        if self._prepare is None and self._ready is None and self.now >= self._plan_at:
            self._plan()

    @property
    def _plan_at(self) -> float:
        """When the next batch is planned: behind a backlog's at once, at the tip as the data plane's pacing has it."""
        if not self._rests:
            return 0.0
        return self._due if self._finish is None else max(self._due, self._finish.began + self._pace.spare)

    def _plan(self) -> None:
        self._due = self.now + self.scenario.interval
        newest = self.now - SETTLE
        # Where nothing came the planner does not stop: a batch begins with a record.
        first = self.scenario.next_arrival(self.position)
        if first > newest:
            self._rests = True
            self.position = max(self.position, newest)
            self._idle_at = self.now
            return
        covers = self._rates.slice(self._settings, self.scenario.shards_at(self.position), self._slots)
        horizon = min(newest, first + covers.total_seconds())
        reshard = next((at for at in self.scenario.resharded_at if self.position < at < horizon), None)
        # Children begin in a batch behind the one that has read their parents to the end.
        horizon = horizon if reshard is None else reshard
        caught_up = reshard is None and horizon >= newest
        self._rests = caught_up
        batch = Batch(
            number=self._number,
            records=self.scenario.arrived(horizon) - self.scenario.arrived(self.position),
            bytes=self.scenario.arrived_bytes(horizon) - self.scenario.arrived_bytes(self.position),
            base=first,
            since=self.position if caught_up else first,
            horizon=horizon,
            caught_up=caught_up,
            shards=self.scenario.shards_at(horizon),
            executors=self.cluster.running,
            share=self.scenario.share_at(horizon),
            prepare_began=self.now,
        )
        self._number += 1
        self.position = horizon
        self._prepare = self._job(batch, self.costs.prepare, batch.number * 2)

    def _job(self, batch: Batch, cost: StageCost, index: int) -> Job:
        factor = float(self._noise[index % len(self._noise)])
        tasks = max(1, min(self._slots, batch.shards, math.ceil(batch.records / RECORDS_PER_TASK)))
        work = cost.per_record * self.costs.weight(batch.records, batch.bytes) * factor
        fixed = cost.fixed * factor
        if cost is not self.costs.prepare:
            return Job(batch, self.now, fixed, work, tasks)
        batch.tasks = tasks
        # Whole shards are dealt out to tasks, the fullest of which counts. A task asks for some of its shards at once.
        each = math.ceil(batch.shards / tasks)
        tasks_worth = min(tasks, 1 / max(batch.share, each / batch.shards))
        asked = self.now + fixed
        first, last = self._shard.read(asked, batch.share * batch.bytes)
        # Between answers there is something to do; and others of a task's shards give their first ones meanwhile.
        between = (last - first) * math.ceil(each / RANGES_AT_ONCE)
        speed = min(1.0, work / tasks_worth / between) if between else 1.0
        return Job(batch, self.now, fixed, work, tasks_worth, first - asked, speed)

    @property
    def _slots(self) -> int:
        """Tasks that the planner counts with: of the executors that are wanted, as those that are missing will come."""
        return max(1, self.cluster.target) * self.scenario.cores

    def _commit(self, job: Job) -> None:
        batch, self._finish = job.batch, None
        self._count_late()
        self.meter.trace.append((self.now, self._lag(), self.cluster.placed, self.cluster.target))
        self.meter.records += batch.records
        self.committed, self.committed_at = batch.horizon, self.now
        self._batches.append(self._summary(batch, job))
        self._served = 0.0
        longest = max(batch.prepare_seconds, self.now - job.began)
        quickness = Quickness(longest, batch.records / longest / batch.tasks, waits=0.0)
        span = timedelta(seconds=max(batch.horizon - batch.base, 1e-3))
        fullest = batch.share * batch.bytes
        covered = Covered(span, batch.records, batch.bytes, fullest, batch.caught_up, quickness)
        self._rates = self._rates.after(covered)
        self._pace = self._pace.after(batch.prepare_seconds, self.now - job.began)
        self._compact(job.whole)
        if self._draining:
            self._stop_to_restart()

    def _summary(self, batch: Batch, job: Job) -> BatchSummary:
        lag = 0.0 if batch.caught_up else self.now - batch.horizon
        rate = batch.records / max(batch.horizon - batch.since, SHORTEST)
        return BatchSummary(
            batch=batch.number,
            finished_at=time_of(self.now),
            records=round(batch.records),
            bytes=round(batch.bytes),
            horizon=time_of(batch.horizon),
            quarantined=0,
            rows_written=round(batch.records),
            seconds=StageSeconds(plan=0.0, fetch=batch.prepare_seconds, write=self.now - job.began, commit=0.0),
            core_seconds=CoreSeconds(fetch=batch.prepare_ran, write=job.ran, services=self._served),
            trigger_interval=self.scenario.spec.trigger.interval,
            executors=max(1, batch.executors),
            cores=self.scenario.cores,
            lag_seconds=lag,
            arrival_rate=rate,
            backlog_records=rate * lag,
            open_shards=batch.shards,
            behind_shards=0 if batch.caught_up else batch.shards,
            largest_shard_bytes=round(batch.share * batch.bytes),
            caught_up=batch.caught_up,
        )

    def _compact(self, written: float) -> None:
        compaction = self.scenario.compaction
        if compaction is None:
            return
        self._uncompacted.append(written)
        if len(self._uncompacted) >= compaction.every and self._compaction is None:
            work = compaction.share * sum(self._uncompacted)
            batch = Batch(-1, 0, 0, 0, 0, 0, caught_up=True, shards=0, executors=0, share=0, prepare_began=0)
            self._compaction = Job(batch, self.now, 1.0, work, math.inf)
            self._uncompacted = []

    def _lag(self) -> float:
        return max(0.0, self.now - self.scenario.next_arrival(self.committed))

    def _count_late(self) -> None:
        due = self.scenario.next_arrival(self.committed) + self.scenario.max_lag
        self.meter.late += max(0.0, self.now - max(self.committed_at, due))

    def _stop_to_restart(self) -> None:
        self._draining = False
        self._drop_batches()
        self.cluster.restart(self.now + START_SECONDS)

    def _drop_batches(self) -> None:
        """What was planned but not committed is planned again: the same ranges."""
        self._prepare = self._ready = self._finish = self._compaction = None
        self.position = self.committed
        self._rests, self._due = False, self.now

    def _change(self, mishap: Mishap) -> None:
        match mishap.kind:
            case Mishaps.ROOM:
                self.cluster.make_room(self.now, mishap.value)
            case Mishaps.LOST:
                self._lose(mishap.value)
            case Mishaps.DIED:
                self.alive = False
                self._drop_batches()
                self.cluster.vanish()
            case Mishaps.REVIVED:
                self.alive = True
                self.cluster.restart(self.now + START_SECONDS)
            case Mishaps.STOPPED:
                self._stopped = True
            case Mishaps.RESUMED:
                self._stopped = False

    def _lose(self, executors: int) -> None:
        """What the dead have done in the stages at work is done again, and what they held of fetched batches."""
        share = min(1.0, executors / max(1, self.cluster.running))
        for job in (self._prepare, self._finish, self._compaction):
            if job is not None:
                held = job.batch.prepare_work if job is self._finish else 0.0
                again = share * (job.whole - job.work + held)
                job.work += again
        if self._ready is not None:
            self._ready.redo += share * self._ready.prepare_work
        self.cluster.lose(self.now, executors)
