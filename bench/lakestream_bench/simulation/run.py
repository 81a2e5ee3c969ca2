"""Run scenarios under policies, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lakestream_bench.simulation.costs import BatchCosts, load_costs
from lakestream_bench.simulation.policies import FlinkOperator, Keda, LakeStream, ManagedFlink, Oracle, Policy
from lakestream_bench.simulation.scenarios import SCENARIOS, Scenario, Stream
from lakestream_bench.simulation.world import World

POLICIES: dict[str, Callable[[], Policy]] = {
    LakeStream.name: LakeStream,
    FlinkOperator.name: FlinkOperator,
    ManagedFlink.name: ManagedFlink,
    Keda.name: Keda,
    Oracle.name: Oracle,
}
SEED = 11


@dataclass(frozen=True, slots=True)
class Result:
    """One run."""

    scenario: str
    shards: int
    policy: str
    late_seconds: float
    """In which the oldest record not in the table was older than the lag goal."""
    executor_seconds: float
    actions: int
    hours: float
    turns: int
    """Changes of direction: from more to fewer executors, or back."""
    trace: tuple[tuple[float, float, int, int], ...]
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
    seed: int = SEED


def scenario_of(task: Task, costs: BatchCosts | None = None) -> Scenario:
    """The scenario that a task is about."""
    return SCENARIOS[task.scenario](Stream(task.shards, costs or load_costs(task.writer, task.fit), task.seed))


def simulate(task: Task) -> Result:
    """Run one policy through one scenario."""
    costs = load_costs(task.writer, task.fit)
    scenario = scenario_of(task, costs)
    policy = POLICIES[task.policy]()
    world = World(scenario, costs, scenario.initial)
    while world.now < scenario.seconds:
        policy.act(world)
        world.run(min(world.now + policy.every, float(scenario.seconds)))
    world.close()
    trace = tuple(world.meter.trace)
    return Result(
        task.scenario,
        task.shards,
        task.policy,
        world.meter.late,
        world.cluster.paid,
        world.meter.actions,
        scenario.seconds / 3600,
        _turns([target for *_, target in trace]),
        trace,
        tuple(policy.explanations) if isinstance(policy, LakeStream) else (),
    )


def _turns(targets: Sequence[int]) -> int:
    changes = [after - before for before, after in pairwise(targets) if after != before]
    return sum((one > 0) != (other > 0) for one, other in pairwise(changes))


def simulate_all(tasks: Iterable[Task], processes: int) -> list[Result]:
    """Run many, in their order."""
    if processes == 1:
        return [simulate(task) for task in tasks]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(simulate, tasks))
