"""The operator's own policy, and its rivals, each looking at the same world."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from lakestream_api import DriverReport
from lakestream_bench.simulation.world import World, time_of
from lakestream_operator.autoscaler import ScalingState, ScalingWindow, decide_scale, window_of
from lakestream_operator.autoscaler.demand import in_whole


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
    every = 5.0

    def __init__(self) -> None:
        self._state = ScalingState()
        self._explanations: list[tuple[float, str]] = []

    @property
    def explanations(self) -> list[tuple[float, str]]:
        """What was said with each change, and when."""
        return self._explanations

    @property
    def recommended(self) -> int | None:
        """Executors that steady times call for; None: nothing is known yet."""
        known = self._state.recommendations
        return in_whole(known[-1].executors) if known else None

    def act(self, world: World) -> None:
        decision = decide_scale(world.scenario.scaling, self._look(world), self._state, time_of(world.now))
        self._state = decision.state
        if decision.events:
            self._explanations += [(world.now, event.message) for event in decision.events]
        world.aim(decision.target)

    def _look(self, world: World) -> ScalingWindow:
        """What the operator sees: the report as it is written into a ConfigMap, and pods that wait."""
        since = world.cluster.pending_since
        report = DriverReport.model_validate_json(world.report().model_dump_json())
        spec = world.scenario.spec
        return window_of(spec, report, None if since is None else time_of(since), consumers=len(spec.writers))


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
    _pipeline: float = 0.0
    _records: float = 0.0
    _busy: float = 0.0

    def look(self, world: World) -> None:
        meter, arrived = world.meter, world.scenario.arrived(world.now)
        cores = max(1, world.cluster.running) * world.scenario.cores
        self.seen.append(
            _Seen(
                meter.records - self._records,
                meter.pipeline - self._pipeline,
                arrived - self._arrived,
                (meter.busy - self._busy) / cores / 60,
            )
        )
        self._arrived, self._busy, self._pipeline, self._records = arrived, meter.busy, meter.pipeline, meter.records


class Fewer:
    """When Flink's operator scales down, as its `DelayedScaleDown` has it: an hour after fewer executors than there are
    were first called for, and nothing else since; to as many as were called for at most within the last hour."""

    interval = 3600.0

    def __init__(self) -> None:
        self._since: float | None = None
        self._called: deque[tuple[float, int, bool]] = deque()

    def clear(self) -> None:
        """As many as there are, or more, are called for."""
        self._since = None
        self._called.clear()

    def call(self, now: float, executors: int, outside: bool) -> int | None:
        """The number to scale to; None: not now. Whether utilization is `outside` its bounds counts as it was when the
        largest number was called for last."""
        if self._since is None:
            self._since = now
        while self._called and self._called[-1][1] <= executors:
            self._called.pop()
        self._called.append((now, executors, outside))
        if now < self._since + self.interval:
            return None
        while self._called[0][0] < now - self.interval:
            self._called.popleft()
        _, most, is_outside = self._called[0]
        return most if is_outside else None


class FlinkOperator:
    """The autoscaler of Flink's Kubernetes operator, with its defaults, on Spark: it restarts to scale.

    utilization 0.7 ± 0.3, metrics.window 15 min (which has to be full), stabilization.interval 5 min,
    catch-up.duration 30 min, restart.time 5 min (what it counts with; the restart itself takes `START_SECONDS`),
    scale-down.max-factor 0.6, scale-down.interval 1 h (`Fewer`).
    """

    name = "Flink operator"
    every = 60.0
    window, stabilization, catch_up, restart = 15 * 60.0, 5 * 60.0, 30 * 60.0, 5 * 60.0

    def __init__(self) -> None:
        self._minutes = _Minutes()
        self._since = 0.0
        self._fewer = Fewer()

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
        behind = max(0.0, behind - 2 * rate * world.scenario.interval)
        catching = behind / self.catch_up
        restarting = rate * self.restart / self.catch_up
        low = rate / 1.0 + catching
        high = math.inf if rate and behind / rate > 300 else rate / 0.4 + catching + restarting
        outside = not low <= capacity <= high
        current, scaling = world.cluster.target, world.scenario.scaling
        wanted = math.ceil(current * (rate / 0.7 + catching + restarting) / capacity)
        wanted = min(max(wanted, math.ceil(current * 0.4), scaling.min_executors), scaling.max_executors)
        if wanted >= current:
            self._fewer.clear()
            target = wanted if outside else None
        else:
            target = self._fewer.call(world.now, wanted, outside)
        if target is not None and target != current:
            self._fewer.clear()
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
        current, spec = world.cluster.target, world.scenario.scaling
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
        spec = world.scenario.scaling
        target = math.ceil(world.scenario.shards_at(world.now) / 2)
        world.aim(min(max(target, spec.min_executors), spec.max_executors))


__all__ = ["FlinkOperator", "Keda", "LakeStream", "ManagedFlink", "Policy"]
