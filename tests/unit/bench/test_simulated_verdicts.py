"""What is said of simulated runs: where a goal is missed, and where a rival does better."""

from __future__ import annotations

import numpy as np
import pytest

from lakestream_bench.simulation.costs import load_costs
from lakestream_bench.simulation.run import BOUND, Result, flaps
from lakestream_bench.simulation.streams import Stream
from lakestream_bench.simulation.summary import Case, cases, missed

STREAM = Stream(64, load_costs("mor"), 1)


def result(policy: str, late: float, paid: float, *, actions: int = 0, flaps: int = 0, name: str = "step") -> Result:
    return Result(name, 64, 1, policy, late, paid, actions, 4.0, flaps, ())


def case(*results: Result) -> Case:
    (found,) = cases([result(BOUND, 0, 100), *results])
    return found


@pytest.mark.parametrize(
    ("rival", "said"),
    [
        (result("KEDA", 0, 300), ""),
        (result("KEDA", 0, 110), "KEDA does better"),
        (result("KEDA", 500, 90), ""),
        (result("KEDA", 30, 115), ""),
        (result("KEDA", 30, 110), "KEDA does better"),
        (result("Flink operator", 400, 300), ""),
        (result("Flink operator", 50, 300), "late by less than three times ours"),
        (result("managed Flink", 9_000, 60), ""),
    ],
)
def test_a_rival_is_named_where_it_does_better(rival: Result, said: str) -> None:
    found = case(result("LakeStream", 30, 115), rival).verdicts()
    assert [said in text for text in found] == ([True] if said else [])


def test_each_goal_that_is_missed_is_named() -> None:
    ours = result("LakeStream", 61, 126, actions=5, flaps=2, name="noisy")
    bound = result(BOUND, 0, 100, name="noisy")
    told = " ".join(missed(cases([bound, ours])))
    for goal in ("the goal is 1.25", "late for 61 s", "2 changes taken back", "1.2 actions per hour", "goal is 1.15"):
        assert goal in told
    assert not missed(cases([bound, result("LakeStream", 60, 115, actions=4, name="noisy")]))


@pytest.mark.parametrize(
    ("levels", "changes", "count"),
    [
        ([0.5] * 60, [(600, 8), (900, 6)], 1),
        ([0.5] * 60, [(600, 8), (1300, 6)], 0),
        ([0.5] * 60, [(600, 8), (900, 9)], 0),
        ([0.3] * 9 + [0.6] * 4 + [0.3] * 47, [(600, 8), (900, 6)], 0),
        ([0.6] * 9 + [0.3] * 4 + [0.6] * 47, [(600, 3), (900, 6)], 0),
        ([0.5] * 60, [(600, 3), (700, 6), (800, 4)], 2),
    ],
)
def test_what_is_taken_back_within_ten_minutes_flaps_if_the_load_did_not(
    levels: list[float], changes: list[tuple[float, int]], count: int
) -> None:
    load = STREAM.scenario("made", "for a test", np.repeat(levels, 60))
    assert flaps([(0.0, 5), *changes], load) == count


def test_executors_grow_with_the_stream() -> None:
    sizes = (1, 4, 8, 64, 65, 10_000)
    assert [Stream(shards, load_costs("mor"), 1).cores for shards in sizes] == [1, 1, 2, 2, 4, 4]
    assert Stream(8, load_costs("mor"), 1, executor_cores=4).cores == 4
