"""Run scenarios under policies, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lakestream_bench.simulation.bound import bound_of
from lakestream_bench.simulation.costs import BatchCosts, load_costs
from lakestream_bench.simulation.policies import FlinkOperator, Keda, LakeStream, ManagedFlink, Policy
from lakestream_bench.simulation.scenarios import SCENARIOS
from lakestream_bench.simulation.streams import Scenario, Stream
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
    turns: int
    """Changes of direction: from more to fewer executors, or back."""
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
    return SCENARIOS[task.scenario](Stream(task.shards, costs, task.seed, task.cores))


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
        world.meter.actions,
        hours,
        _turns([target for *_, target in world.meter.trace]),
        tuple(world.meter.trace),
        tuple(policy.explanations) if isinstance(policy, LakeStream) else (),
    )


def _turns(targets: Sequence[float]) -> int:
    changes = [after - before for before, after in pairwise(targets) if after != before]
    return sum((one > 0) != (other > 0) for one, other in pairwise(changes))


def simulate_all(tasks: Iterable[Task], processes: int) -> list[Result]:
    """Run many, in their order."""
    if processes == 1:
        return [simulate(task) for task in tasks]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(simulate, tasks))
