"""Run scenarios under policies, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

from lakestream_bench.simulation.bound import bound_of
from lakestream_bench.simulation.costs import BatchCosts, load_costs
from lakestream_bench.simulation.policies import FlinkOperator, Keda, LakeStream, ManagedFlink, Policy
from lakestream_bench.simulation.scenarios import MINUTE, SCENARIOS
from lakestream_bench.simulation.streams import Scenario, Stream
from lakestream_bench.simulation.unseen import UNSEEN
from lakestream_bench.simulation.world import World

POLICIES: dict[str, Callable[[], Policy]] = {
    LakeStream.name: LakeStream,
    FlinkOperator.name: FlinkOperator,
    ManagedFlink.name: ManagedFlink,
    Keda.name: Keda,
}
BOUND = "bound"
"""In the place of a policy: what none can do better."""
SEEDS = (11, 12, 13, 14, 15)
FLAP_SECONDS = 600.0
"""Within which a change is not to be taken back, but where the load does so."""
TURN = 1.25
"""Times the lowest load that one is which has risen."""


@dataclass(frozen=True, slots=True)
class Result:
    """One run."""

    scenario: str
    shards: int
    seed: int
    policy: str
    late_seconds: float
    """In which the oldest record not in the table was older than the lag goal."""
    executor_seconds: float
    actions: int
    hours: float
    flaps: int
    """Changes that were taken back within ten minutes, though the load was not."""
    trace: tuple[tuple[float, float, float, float], ...]
    """At each commit: time, lag just before it, executors placed, target."""
    explanations: tuple[tuple[float, str], ...] = ()

    @property
    def actions_per_hour(self) -> float:
        return self.actions / self.hours


@dataclass(frozen=True, slots=True)
class Task:
    """What to run."""

    scenario: str
    shards: int
    policy: str
    writer: str
    fit: Path | None
    seed: int = SEEDS[0]
    cores: int | None = None
    """Of each executor; None: by the stream's size."""


def scenario_of(task: Task, costs: BatchCosts | None = None) -> Scenario:
    """The scenario that a task is about."""
    costs = costs or load_costs(task.writer, task.fit)
    return (SCENARIOS | UNSEEN)[task.scenario](Stream(task.shards, costs, task.seed, task.cores))


def simulate(task: Task) -> Result:
    """Run one policy through one scenario, or find the bound of all."""
    costs = load_costs(task.writer, task.fit)
    return play(task, scenario_of(task, costs), costs)


def play(task: Task, scenario: Scenario, costs: BatchCosts) -> Result:
    """The same, through a scenario that need not be one of ours."""
    hours = scenario.seconds / 3600
    if task.policy == BOUND:
        bound = bound_of(scenario, costs)
        trace = tuple((at, lag, executors, executors) for at, lag, executors in bound.trace)
        return Result(
            task.scenario, task.shards, task.seed, BOUND, bound.late_seconds, bound.executor_seconds, 0, hours, 0, trace
        )
    policy = POLICIES[task.policy]()
    world = World(scenario, costs, scenario.initial)
    while world.now < scenario.seconds:
        policy.act(world)
        world.run(min(world.now + policy.every, float(scenario.seconds)))
    world.close()
    return Result(
        task.scenario,
        task.shards,
        task.seed,
        task.policy,
        world.meter.late,
        world.cluster.paid,
        len(world.meter.targets),
        hours,
        flaps([(0.0, scenario.initial), *world.meter.targets], scenario),
        tuple(world.meter.trace),
        tuple(policy.explanations) if isinstance(policy, LakeStream) else (),
    )


def flaps(targets: Sequence[tuple[float, int]], scenario: Scenario) -> int:
    """Changes of executors that were taken back within ten minutes, though the load did not go back as well."""
    changes = [(at, after - before) for (_, before), (at, after) in pairwise(targets) if after != before]
    return sum(
        (one > 0) != (other > 0) and again - at < FLAP_SECONDS and not _went_back(scenario, at, again, up=other > 0)
        for (at, one), (again, other) in pairwise(changes)
    )


def _went_back(scenario: Scenario, since: float, until: float, *, up: bool) -> bool:
    """Whether the load of a minute has turned that way by then, from what it was when the first change was due."""
    minutes = range(int(max(since - 2 * MINUTE, 0)), int(until) + 1, MINUTE)
    loads = [float(scenario.rate[at : at + MINUTE].mean()) for at in minutes if at < scenario.seconds]
    return max(loads[-2:]) >= TURN * min(loads) if up else min(loads[-2:]) * TURN <= max(loads)


def simulate_all(tasks: Iterable[Task], processes: int) -> list[Result]:
    """Run many, in their order."""
    if processes == 1:
        return [simulate(task) for task in tasks]
    # A fork has the environment that this program was started with, and so no token by which it is ended with it.
    with get_context("spawn").Pool(processes) as pool:
        return pool.map(simulate, tasks, chunksize=1)
