"""What the price above the bound is made of."""

from dataclasses import astuple, replace

import numpy as np
import pytest

from lakestream_bench.simulation.attribution import executors_at_work, looking_back, parts_of
from lakestream_bench.simulation.costs import load_costs
from lakestream_bench.simulation.run import Task, play, scenario_of
from lakestream_bench.simulation.scenarios import MINUTE

COSTS = load_costs("mor")


def test_the_parts_are_all_that_is_paid() -> None:
    task = Task("resharding", 64, "LakeStream", "mor", None)
    whole = scenario_of(task, COSTS)
    end = int(whole.resharded_at[0]) + 15 * MINUTE
    scenario = replace(whole, rate=whole.rate[:end], record_bytes=whole.record_bytes[:end])
    parts = parts_of(scenario, COSTS, executors_at_work(scenario, COSTS))
    assert sum(astuple(parts)) == pytest.approx(play(task, scenario, COSTS).executor_seconds)
    assert parts.room == pytest.approx(parts.work * (1 / 0.9 - 1))


def test_who_looks_back_pays_for_whole_executors_and_for_as_long_as_they_are_held() -> None:
    even = np.full(720, 2.5)
    assert looking_back(even, 1.0, 0) == 3 * 3600
    assert looking_back(even, 0.8, 600) == 4 * 3600
    once = np.where(np.arange(720) < 360, 2.0, 1.0)
    assert looking_back(once, 1.0, 600) == pytest.approx(1800 * 2 + 1800 + 600 + 60, abs=15)
