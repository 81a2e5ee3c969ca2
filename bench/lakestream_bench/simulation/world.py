"""A stream, a driver and its executors, from event to event.

A batch goes through the data plane's own steps: planned when it is due, cut by arrival time, fetched while the batch
before is written, the two sharing the cores; both stages have a part that no core makes shorter. Shards are alike but
for the fullest one. The position is the same for all shards, as the planner's horizon is.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from lakestream_bench.simulation.cluster import Cluster, start_delays
from lakestream_bench.simulation.costs import BatchCosts, StageCost
from lakestream_bench.simulation.scenarios import Scenario

SHARD_READ_BYTES = 2_000_000.0
SHARD_WRITE_RECORDS = 1_000.0
RECORDS_PER_TASK = 10_000
RANGES_AT_ONCE = 4
"""Shards that a task asks at once."""
SETTLE = 0.25
START_SECONDS = 30.0
"""From a driver's end to the first batch of the next one being planned: its pod, the JVM, Spark's context, taking over
the log, and the first executor. Measured: 10 s from a SparkApplication to its first executor running; the rest is
the start of Spark and Hudi, and the end of the batch in hand."""
REPORTED_BATCHES = 40
_DONE = 1e-6
"""Seconds, or core-seconds, that are left over by rounding."""


@dataclass(slots=True)
class Batch:
    """A batch between its plan and its commit."""

    number: int
    records: float
    base: float
    horizon: float
    caught_up: bool
    shards: int
    executors: int
    share: float
    prepare_began: float
    prepare_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Done:
    """A committed batch."""

    number: int
    at: float
    records: float
    prepare_seconds: float
    finish_seconds: float
    executors: int
    shards: int
    lag: float
    rate: float
    """Records per second of arrival time."""
    share: float
    """Of its records, that of the fullest shard."""
    caught_up: bool


@dataclass(slots=True)
class Job:
    """A stage at work: first what is fixed, then core-seconds on so many tasks."""

    batch: Batch
    began: float
    fixed: float
    work: float
    tasks: float
    """That run at once, if there are slots."""
    speed: float = 1.0
    """Core-seconds of work done per second and slot; below 1 tasks wait for Kinesis."""


@dataclass(slots=True)
class Meter:
    """What a run comes to."""

    late: float = 0.0
    """Seconds in which the oldest record not yet in the table was older than the lag goal."""
    busy: float = 0.0
    """Core-seconds worked."""
    actions: int = 0
    trace: list[tuple[float, float, int, int]] = field(default_factory=list)
    """At each commit: time, lag just before it, executors placed, target."""


class World:
    """One run of a scenario. `run` goes on to a time; between, a policy looks at it and calls `aim` or `restart`."""

    def __init__(self, scenario: Scenario, costs: BatchCosts, executors: int) -> None:
        self.scenario = scenario
        self.costs = costs
        self.now = 0.0
        self.meter = Meter()
        self.cluster = Cluster(start_delays(scenario.seed), executors, executors, scenario.room_at(0.0))
        self.done: deque[Done] = deque(maxlen=REPORTED_BATCHES)
        self.position = 0.0
        self.committed = 0.0
        self.committed_at = 0.0
        self.idle_at: float | None = None
        self.alive = True
        self.reported_at = 0.0
        self._number = 0
        self._due = 0.0
        self._rests = True
        self._prepare: Job | None = None
        self._ready: Batch | None = None
        self._finish: Job | None = None
        self._draining = False
        self._records, self._seconds, self._span = 0.0, 0.0, 0.0
        self._noise = _noise(scenario.seed, costs)
        self._changes = deque(scenario.changes())

    def copy(self) -> World:
        """A world that goes its own way from here; what does not change is shared."""
        other = World.__new__(World)
        other.__dict__.update(self.__dict__)
        other.cluster = self.cluster.copy()
        other.meter = Meter(self.meter.late, self.meter.busy, self.meter.actions)
        other.done = self.done.copy()
        other._prepare = replace(self._prepare, batch=replace(self._prepare.batch)) if self._prepare else None
        other._ready = replace(self._ready) if self._ready else None
        other._finish = replace(self._finish, batch=replace(self._finish.batch)) if self._finish else None
        other._changes = self._changes.copy()
        return other

    # What a policy does

    def aim(self, executors: int) -> None:
        """Scale in place."""
        if executors != self.cluster.target:
            self.meter.actions += 1
            self.cluster.aim(self.now, executors)

    def restart(self, executors: int) -> None:
        """Scale by stopping the driver after the batch in hand, and starting it with another number."""
        if executors != self.cluster.target:
            self.meter.actions += 1
            self.cluster.target = executors
            self._draining = True
            if self._finish is None and self.alive:
                self._stop_to_restart()

    # Time

    def run(self, until: float) -> None:
        """Go on to a time."""
        while self.now < until:
            self._start_stages()
            self._advance(min(until, self._next_event()))
            self._fire()

    def close(self) -> None:
        """Count what is late at the end."""
        self._count_late(self.now)

    def _next_event(self) -> float:
        times = [self._changes[0][0]] if self._changes else []
        if self.cluster.starting:
            times.append(self.cluster.starting[0])
        if self.alive and self.cluster.running:
            if self._prepare is None and self._ready is None and self._rests:
                times.append(max(self._due, self.now))
            for job, rate in self._rates():
                times.append(self.now + (job.fixed if job.fixed > _DONE else job.work / rate))
        return max(min(times, default=math.inf), self.now)

    def _advance(self, to: float) -> None:
        step = to - self.now
        self.cluster.paid += self.cluster.placed * step
        if self.alive:
            self.reported_at = to
            for job, rate in self._rates():
                if job.fixed > _DONE:
                    job.fixed -= step
                else:
                    job.work -= rate * step
                    self.meter.busy += rate * step
        self.now = to

    def _rates(self) -> list[tuple[Job, float]]:
        """The stages at work, and the cores that each has."""
        jobs = [job for job in (self._finish, self._prepare) if job is not None]
        if not jobs:
            return []
        slots = float(self.cluster.running * self.scenario.limits.cores)
        if slots == 0:
            return []
        if len(jobs) == 1 or jobs[0].fixed > _DONE or jobs[1].fixed > _DONE:
            return [(job, min(job.tasks, slots) * job.speed) for job in jobs]
        # Spark gives free slots to the job that came first; the two begin together, and take turns.
        first = min(jobs[0].tasks, max(slots / 2, slots - jobs[1].tasks))
        second = min(jobs[1].tasks, slots - first)
        return [(jobs[0], first * jobs[0].speed), (jobs[1], second * jobs[1].speed)]

    def _fire(self) -> None:
        while self._changes and self._changes[0][0] <= self.now:
            self._change(*self._changes.popleft()[1:])
        self.cluster.arrive(self.now)
        if (job := self._prepare) is not None and job.fixed <= _DONE and job.work <= _DONE:
            job.batch.prepare_seconds = self.now - job.began
            self._ready, self._prepare = job.batch, None
        if (job := self._finish) is not None and job.fixed <= _DONE and job.work <= _DONE:
            self._commit(job)

    # The driver

    def _start_stages(self) -> None:
        if not self.alive or not self.cluster.running:
            return
        if self._ready is not None and self._finish is None:
            batch, self._ready = self._ready, None
            self._finish = self._job(batch, self.costs.finish, batch.number * 2 + 1)
        if self._prepare is None and self._ready is None and (not self._rests or self.now >= self._due):
            self._plan()

    def _plan(self) -> None:
        self._due = self.now + self.scenario.limits.interval
        newest = self.now - SETTLE
        horizon = min(newest, self.position + self._slice())
        reshard = next((at for at in self.scenario.resharded_at if self.position < at < horizon), None)
        # Children begin in a batch behind the one that has read their parents to the end.
        horizon = horizon if reshard is None else reshard
        records = self.scenario.arrived(horizon) - self.scenario.arrived(self.position)
        caught_up = reshard is None and horizon >= newest
        self._rests = caught_up or records <= 0
        if records < 1:
            self.idle_at = self.now
            return
        shards = self.scenario.shards_at(horizon)
        share = self.scenario.share_at(horizon)
        batch = Batch(
            self._number, records, self.position, horizon, caught_up, shards, self.cluster.running, share, self.now
        )
        self._number += 1
        self.position = horizon
        self._prepare = self._job(batch, self.costs.prepare, batch.number * 2)
        self._learn(batch)

    def _job(self, batch: Batch, cost: StageCost, index: int) -> Job:
        noise = float(self._noise[index % len(self._noise)])
        slots = max(1, self.cluster.running) * self.scenario.limits.cores
        tasks = max(1, min(slots, batch.shards, math.ceil(batch.records / RECORDS_PER_TASK)))
        work = cost.per_record * batch.records * noise
        if cost is not self.costs.prepare:
            return Job(batch, self.now, cost.fixed * noise, work, tasks)
        # Whole shards are dealt out to tasks, the fullest of which counts. A task asks for some of its shards at once,
        # and none is read faster than allowed.
        each = math.ceil(batch.shards / tasks)
        tasks_worth = min(tasks, 1 / max(batch.share, each / batch.shards))
        reading = batch.share * batch.records * self.costs.record_bytes / self._shard_bytes()
        waits = reading * max(1.0, each / RANGES_AT_ONCE)
        return Job(
            batch, self.now, cost.fixed * noise, work, tasks_worth, min(1.0, work / tasks_worth / max(waits, 1e-9))
        )

    def _shard_bytes(self) -> float:
        return SHARD_READ_BYTES / self.scenario.consumers

    def _slice(self) -> float:
        """The planner's rule: arrival time that a batch may cover."""
        limits, shards = self.scenario.limits, self.scenario.shards_at(self.position)
        size = min(limits.max_records, limits.max_bytes / self.costs.record_bytes)
        full = size / (SHARD_WRITE_RECORDS * shards)
        if not self._seconds:
            return full
        wanted = self._seconds * size / max(self._records, 1.0)
        return min(wanted, max(2 * self._span, full), max(16 * full, 60.0))

    def _learn(self, batch: Batch) -> None:
        self._span = max(batch.horizon - batch.base, 1e-3)
        self._records = self._records / 2 + batch.records
        self._seconds = self._seconds / 2 + self._span

    def _commit(self, job: Job) -> None:
        batch, self._finish = job.batch, None
        self._count_late(self.now)
        self.meter.trace.append((self.now, self.now - self.committed, self.cluster.placed, self.cluster.target))
        self.committed, self.committed_at = batch.horizon, self.now
        self.done.append(
            Done(
                number=batch.number,
                at=self.now,
                records=batch.records,
                prepare_seconds=batch.prepare_seconds,
                finish_seconds=self.now - job.began,
                executors=batch.executors,
                shards=batch.shards,
                lag=0.0 if batch.caught_up else self.now - batch.horizon,
                rate=batch.records / (batch.horizon - batch.base),
                share=batch.share,
                caught_up=batch.caught_up,
            )
        )
        self.cluster.leave_surplus()
        if self._draining:
            self._stop_to_restart()

    def _count_late(self, now: float) -> None:
        goal = self.scenario.spec.max_lag.total_seconds()
        if self.scenario.arrived(now) - self.scenario.arrived(self.committed) >= 1:
            self.meter.late += max(0.0, now - max(self.committed_at, self.committed + goal))

    def _stop_to_restart(self) -> None:
        self._draining = False
        self._drop_batches()
        self.cluster.restart(self.now + START_SECONDS)

    def _drop_batches(self) -> None:
        """What was planned but not committed is planned again: the same ranges."""
        self._prepare = self._ready = self._finish = None
        self.position = self.committed
        self._rests, self._due = False, self.now

    def _change(self, kind: str, value: int) -> None:
        if kind == "room":
            self.cluster.make_room(self.now, value)
        elif kind == "lost":
            self.cluster.lose(self.now, value)
        elif kind == "died":
            self.alive = False
            self._drop_batches()
            self.cluster.vanish()
        else:
            self.alive = True
            self.cluster.restart(self.now + START_SECONDS)


def _noise(seed: int, costs: BatchCosts, count: int = 8192) -> NDArray[np.float64]:
    """Factors on a batch's cost: as far apart as those measured, and one in fifty half as slow again."""
    rng = np.random.default_rng(seed + 1)
    spread = min(0.3, max(0.05, (costs.prepare.residual + costs.finish.residual) / 2))
    slow = np.where(rng.random(count) < 0.02, 1.5, 1.0)
    return np.exp(spread * rng.standard_normal(count)) * slow
