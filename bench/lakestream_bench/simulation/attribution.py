"""What the price above the bound is made of, and what nobody who sees only the past pays less than.

    python -m lakestream_bench.simulation.attribution --shards 64 --shards 1000

Shares of the bound, for each scenario in which the lag goal can be kept and in the mean, of one seed.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields
from typing import Annotated

import numpy as np
import typer

from lakestream_bench.simulation.bound import STEP, Series, bound_of, work_of
from lakestream_bench.simulation.costs import BatchCosts, load_costs
from lakestream_bench.simulation.policies import LakeStream
from lakestream_bench.simulation.run import SEEDS, Task, scenario_of
from lakestream_bench.simulation.scenarios import SCENARIOS
from lakestream_bench.simulation.streams import Scenario
from lakestream_bench.simulation.world import World

HOLDS = (0, 150, 300, 600)
"""Seconds."""
BUSY = (0.97, 0.9)
MINUTE = 60
SMOOTH = 24
"""Steps: two minutes, over which noise is no load."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Of what is paid."""

    work: float
    """What the load keeps at work."""
    room: float
    """`targetUtilization`."""
    whole: float
    """Executors are whole."""
    counted: float
    """What the rules call for beside that in steady times."""
    held: float
    """Executors beyond what is called for in steady times: for a backlog, or remembered."""
    started: float
    """Executors that are placed before they are counted on, or after."""


def executors_at_work(scenario: Scenario, costs: BatchCosts) -> Series:
    """That the load calls for in each step, in fractions."""
    times = np.arange(0, scenario.seconds + 1, STEP, dtype=float)
    return np.diff(work_of(scenario, costs, times)) / STEP / scenario.cores


def looking_back(work: Series, busy: float, hold: float) -> float:
    """Executor-seconds of whole executors, so busy with the mean of the last minute, and held after the last need."""
    minute = MINUTE // STEP
    mean = np.convolve(np.concatenate((np.full(minute - 1, work[:minute].mean()), work)), np.ones(minute) / minute)
    need = np.maximum(np.ceil(mean[minute - 1 : minute - 1 + len(work)] / busy - 1e-9), 1.0)
    steps = max(1, int(hold / STEP))
    windows = np.lib.stride_tricks.sliding_window_view(np.concatenate((np.full(steps - 1, need[0]), need)), steps)
    return float(windows.max(axis=1).sum() * STEP)


def parts_of(scenario: Scenario, costs: BatchCosts, work: Series) -> Parts:
    """What our policy's price is made of, in executor-seconds; `work` is that of `executors_at_work`."""
    policy, world = LakeStream(), World(scenario, costs, scenario.initial)
    targets, called = [], []
    while world.now < scenario.seconds:
        policy.act(world)
        targets.append(world.cluster.target)
        called.append(policy.recommended or world.cluster.target)
        world.run(min(world.now + policy.every, float(scenario.seconds)))
    smooth = np.convolve(np.pad(work, (SMOOTH // 2, SMOOTH - 1 - SMOOTH // 2), mode="edge"), np.ones(SMOOTH) / SMOOTH)
    load = smooth[SMOOTH - 1 : SMOOTH - 1 + len(work)]
    share = scenario.scaling.target_utilization
    whole = np.maximum(np.ceil(load / share), 1.0)
    sums = [STEP * float(np.sum(one)) for one in (load, load / share, whole, called, targets)]
    at_work, with_room, in_whole, counted, aimed = sums
    return Parts(
        at_work,
        with_room - at_work,
        in_whole - with_room,
        counted - in_whole,
        aimed - counted,
        world.cluster.paid - aimed,
    )


def main(
    shards: Annotated[list[int], typer.Option(help="Streams of this size; may be repeated.")],
    seed: Annotated[int, typer.Option(help="Of noise, starts and mishaps.")] = SEEDS[0],
) -> None:
    """Print them."""
    costs = load_costs("mor")
    lines = []
    for count in shards:
        for name in SCENARIOS:
            scenario = scenario_of(Task(name, count, LakeStream.name, "mor", None, seed), costs)
            bound = bound_of(scenario, costs)
            if bound.late_seconds:
                continue
            work = executors_at_work(scenario, costs)
            back = (looking_back(work, busy, hold) for busy in BUSY for hold in HOLDS)
            paid = (*astuple(parts_of(scenario, costs, work)), *back)
            lines.append([one / bound.executor_seconds for one in paid])
            _show(f"{name} {count:,}", lines[-1])
    _show("mean", [float(np.mean(column)) for column in zip(*lines, strict=True)])


def _show(what: str, figures: list[float]) -> None:
    names = [part.name for part in fields(Parts)] + [f"{busy:.0%}/{hold} s" for busy in BUSY for hold in HOLDS]
    told = [f"{name} {one:.2f}" for name, one in zip(names, figures, strict=True)]
    typer.echo(f"{what:20}  {'  '.join(told)}")


if __name__ == "__main__":
    typer.run(main)
