"""The operator's own policy, and its rivals, each looking at the same world."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lakestream_bench.simulation.world import Done, World
from lakestream_operator.autoscaler import (
    BatchObservation,
    ExecutorsObservation,
    ScalingState,
    ScalingWindow,
    decide_scale,
)

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class Policy(Protocol):
    """Changes the executors of a world."""

    name: str
    every: float
    """Seconds between two looks."""

    def act(self, world: World) -> None:
        """Look, and perhaps change something."""
        ...


class LakeStream:
    """`decide_scale`, fed with what a driver reports."""

    name = "LakeStream"
    every = 15.0

    def __init__(self) -> None:
        self._state = ScalingState()
        self._explanations: list[tuple[float, str]] = []

    @property
    def explanations(self) -> list[tuple[float, str]]:
        """What was said with each change, and when."""
        return self._explanations

    def act(self, world: World) -> None:
        window = window_of(world)
        decision = decide_scale(world.scenario.spec, window, self._state, _time(world.now))
        self._state = decision.state
        if decision.events:
            self._explanations += [(world.now, event.message) for event in decision.events]
        world.aim(decision.target)


def window_of(world: World) -> ScalingWindow:
    """What the operator would know."""
    cluster, record_bytes = world.cluster, world.costs.record_bytes
    pending = None if cluster.pending_since is None else _time(cluster.pending_since)
    return ScalingWindow(
        world.scenario.limits,
        batches=tuple(_observe(done, record_bytes) for done in world.done),
        executors=ExecutorsObservation(cluster.target, cluster.running, pending),
        reported_at=_time(world.reported_at),
        caught_up_at=None if world.idle_at is None else _time(world.idle_at),
        consumers=world.scenario.consumers,
    )


def _observe(done: Done, record_bytes: float) -> BatchObservation:
    return BatchObservation(
        batch=done.number,
        finished_at=_time(done.at),
        records=int(done.records),
        bytes=int(done.records * record_bytes),
        prepare_seconds=done.prepare_seconds,
        finish_seconds=done.finish_seconds,
        executors=done.executors,
        lag_seconds=done.lag,
        open_shards=done.shards,
        arrival_rate=done.rate,
        backlog_records=done.rate * done.lag,
        fetch_seconds=done.prepare_seconds,
        largest_shard_bytes=int(done.share * done.records * record_bytes),
    )


def _time(seconds: float) -> datetime:
    return _EPOCH + timedelta(seconds=seconds)


@dataclass(slots=True)
class _Seen:
    """One minute as the rivals' metrics have it."""

    records: float
    busy: float
    """Seconds in which the pipeline was at work."""
    arrived: float
    cpu: float
    """Share of the cores' time."""


@dataclass(slots=True)
class _Minutes:
    """Metrics a minute at a time."""

    seen: deque[_Seen] = field(default_factory=lambda: deque(maxlen=360))
    _arrived: float = 0.0
    _busy: float = 0.0
    _last: int = -1
    _last_at: float = 0.0

    def look(self, world: World) -> None:
        arrived = world.scenario.arrived(world.now)
        records = busy = 0.0
        for done in world.done:
            if done.number > self._last:
                work = done.prepare_seconds + done.finish_seconds
                busy += min(work, max(done.at - self._last_at, 0.0))
                records += done.records
                self._last, self._last_at = done.number, done.at
        cores = max(1, world.cluster.running) * world.scenario.limits.cores
        self.seen.append(_Seen(records, busy, arrived - self._arrived, (world.meter.busy - self._busy) / cores / 60))
        self._arrived, self._busy = arrived, world.meter.busy


class FlinkOperator:
    """The autoscaler of Flink's Kubernetes operator, with its defaults, on Spark: it restarts to scale.

    utilization 0.7 ± 0.3, metrics.window 15 min (which has to be full), stabilization.interval 5 min,
    catch-up.duration 30 min, restart.time 5 min (what it counts with; the restart itself takes `START_SECONDS`),
    scale-down.max-factor 0.6, an hour without scale-down after a scale-up.
    """

    name = "Flink operator"
    every = 60.0
    window, stabilization, catch_up, restart, grace = 15 * 60.0, 5 * 60.0, 30 * 60.0, 5 * 60.0, 3600.0

    def __init__(self) -> None:
        self._minutes = _Minutes()
        self._since = 0.0
        self._raised_at = -math.inf

    def act(self, world: World) -> None:
        self._minutes.look(world)
        if world.now < self._since + self.stabilization + self.window or not world.alive:
            return
        seen = list(self._minutes.seen)[-int(self.window / 60) :]
        busy = sum(minute.busy for minute in seen)
        if busy <= 0:
            return
        capacity = sum(minute.records for minute in seen) / busy
        rate = sum(minute.arrived for minute in seen) / self.window
        behind = world.scenario.arrived(world.now) - world.scenario.arrived(world.committed)
        # The records of the batches under way are no lag.
        behind = max(0.0, behind - 2 * rate * world.scenario.limits.interval)
        catching = behind / self.catch_up
        low = rate / 1.0 + catching
        high = math.inf if rate and behind / rate > 300 else rate / 0.4 + catching
        if low <= capacity <= high:
            return
        current = world.cluster.target
        wanted = current * (rate / 0.7 + catching + rate * self.restart / self.catch_up) / capacity
        target = max(math.ceil(wanted), math.ceil(current * 0.4))
        target = min(max(target, world.scenario.spec.min_executors), world.scenario.spec.max_executors)
        if target < current and world.now < self._raised_at + self.grace:
            return
        if target != current:
            self._raised_at = world.now if target > current else self._raised_at
            self._since = world.now
            world.restart(target)


class ManagedFlink:
    """Amazon's managed Flink: CPU of 75 % for 15 minutes doubles, below 10 % for 6 hours halves; it restarts."""

    name = "managed Flink"
    every = 60.0

    def __init__(self) -> None:
        self._minutes = _Minutes()
        self._count = 0

    def act(self, world: World) -> None:
        self._minutes.look(world)
        self._count += 1
        cpu = [minute.cpu for minute in self._minutes.seen]
        current, spec = world.cluster.target, world.scenario.spec
        if self._count >= 15 and min(cpu[-15:]) >= 0.75:
            self._restart(world, min(2 * current, spec.max_executors))
        elif self._count >= 360 and max(cpu[-360:]) < 0.10:
            self._restart(world, max(math.ceil(current / 2), spec.min_executors))

    def _restart(self, world: World, target: int) -> None:
        if target != world.cluster.target and world.alive:
            self._count = 0
            world.restart(target)


class Keda:
    """KEDA's aws-kinesis-stream scaler: a replica for each two shards, its default. Taken to scale in place."""

    name = "KEDA"
    every = 30.0

    def act(self, world: World) -> None:
        spec = world.scenario.spec
        target = math.ceil(world.scenario.shards_at(world.now) / 2)
        world.aim(min(max(target, spec.min_executors), spec.max_executors))


class Oracle:
    """Knows the load, and tries all numbers of executors on the next two minutes before it chooses.

    Its executors are there when they are wanted, and are paid for from 20 s before: it asked in time. Of all numbers
    it takes the smallest that keeps the lag goal and leaves no more than half of it behind, or, where none does, the
    smallest of those that come nearest.
    """

    name = "oracle"
    every = 120.0
    ahead = 20.0

    def act(self, world: World) -> None:
        spec = world.scenario.spec
        if not world.alive:
            return
        best_late, best_lag = self._try(world, spec.max_executors)
        allowed_lag = max(spec.max_lag.total_seconds() / 2, best_lag + 2)
        low, high = spec.min_executors, spec.max_executors
        while low < high:
            middle = (low + high) // 2
            late, lag = self._try(world, middle)
            if late <= best_late + 2 and lag <= allowed_lag:
                high = middle
            else:
                low = middle + 1
        self._set(world, high)

    def _try(self, world: World, executors: int) -> tuple[float, float]:
        trial = world.copy()
        self._set(trial, executors)
        trial.run(min(world.now + self.every, float(world.scenario.seconds)))
        late = trial.meter.late - world.meter.late
        goal = world.scenario.spec.max_lag.total_seconds()
        # What is late already but not yet committed counts too.
        late += max(0.0, trial.now - max(trial.committed_at, trial.committed + goal))
        return late, max(0.0, trial.now - trial.committed - 2 * world.scenario.limits.interval)

    def _set(self, world: World, executors: int) -> None:
        cluster = world.cluster
        more = min(executors, cluster.room) - cluster.placed
        world.aim(executors)
        if more > 0:
            cluster.running += len(cluster.starting)
            cluster.paid += self.ahead * more
            cluster.starting = []


__all__ = ["FlinkOperator", "Keda", "LakeStream", "ManagedFlink", "Oracle", "Policy"]
