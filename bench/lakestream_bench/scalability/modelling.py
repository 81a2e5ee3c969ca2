"""Demand and capacity by the simulator's model of a driver. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import cache

import numpy as np

from lakestream_bench.scalability.figures import Capacity, Demand
from lakestream_bench.simulation.costs import BatchCosts
from lakestream_bench.simulation.streams import Scenario, Stream
from lakestream_bench.simulation.world import World
from lakestream_operator.autoscaler.shard_policy import SHARD_WRITE_RECORDS

SHARDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_000, 2_000, 5_000, 10_000)
SECONDS = 600
"""That a load is held for."""
LATE_SHARE = 0.01
"""Of these, that may be late: one batch in fifty is half as slow again as others."""
_MOST = 64
"""Slots for each shard up to which demand is looked for. A full one keeps a tenth of a slot busy."""
_SMALL, _CORES = 256, 4
"""Streams of more shards have executors of so many cores, smaller ones of one."""
_SEED = 11


@cache
def demand(shards: int, costs: BatchCosts, interval: float, goal: float) -> Demand | None:
    """The fewest slots that keep the goal when each of the shards takes all the records that it may.

    None: no number of them does, as where what is fixed in a batch takes longer than the goal by itself.
    """
    rate = shards * SHARD_WRITE_RECORDS
    scenario = _scenario(shards, rate, costs, interval, goal)
    most = _MOST * shards // scenario.cores
    executors = _first(lambda executors: executors > most or _keeps(scenario, costs, executors), 1)
    return Demand(shards, rate, executors * scenario.cores) if executors <= most else None


@cache
def capacity(slots: int, shards: int, costs: BatchCosts, interval: float, goal: float) -> Capacity:
    """The highest load, in hundreds of records per second, at which so many executors of a slot each keep the goal."""

    def fails(hundreds: int) -> bool:
        return not _keeps(_scenario(shards, hundreds * 100.0, costs, interval, goal), costs, slots)

    return Capacity(slots, 100.0 * (_first(fails, 1) - 1))


def _scenario(shards: int, rate: float, costs: BatchCosts, interval: float, goal: float) -> Scenario:
    stream = Stream(shards, costs, _SEED, executor_cores=1 if shards <= _SMALL else _CORES)
    load = np.full(SECONDS, rate / stream.full)
    made = stream.scenario("steady", "a load that stays as it is", load)
    spec = made.spec.model_copy(
        update={
            "trigger": made.spec.trigger.model_copy(update={"interval": timedelta(seconds=interval)}),
            "scaling": made.spec.scaling.model_copy(update={"max_lag": timedelta(seconds=goal)}),
        }
    )
    return Scenario(made.name, made.story, shards, made.rate, made.record_bytes, spec, 1, _SEED)


def _keeps(scenario: Scenario, costs: BatchCosts, executors: int) -> bool:
    world, late = World(scenario, costs, executors), LATE_SHARE * scenario.seconds
    for minute in range(60, scenario.seconds + 60, 60):
        world.run(float(min(minute, scenario.seconds)))
        if world.meter.late > late:
            return False  # what is late stays so
    world.close()
    return world.meter.late <= late


def _first(holds: Callable[[int], bool], low: int) -> int:
    """The lowest number from `low` on for which something holds that holds for all above it."""
    high = low
    while not holds(high):
        low, high = high + 1, high * 2
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low
