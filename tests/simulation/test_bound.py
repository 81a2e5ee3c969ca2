"""What no policy can do better."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from lakestream_bench.simulation.bound import bound_of, taut_string
from lakestream_bench.simulation.costs import load_costs
from lakestream_bench.simulation.scenarios import SCENARIOS
from lakestream_bench.simulation.streams import Scenario, Stream

COSTS = load_costs("mor")


def scenario(name: str, shards: int = 64, seed: int = 1) -> Scenario:
    return SCENARIOS[name](Stream(shards, COSTS, seed))


@st.composite
def tubes(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What has arrived, and what had arrived some steps ago."""
    arrivals = draw(st.lists(st.sampled_from([0.0, 0.0, 1.0, 2.0, 5.0]), min_size=2, max_size=20))
    high = np.concatenate(([0.0], np.cumsum(arrivals)))
    delay = draw(st.integers(1, 6))
    return np.concatenate((np.zeros(delay), high))[: len(high)], high


@given(tubes())
def test_a_taut_string_stays_in_its_tube_and_no_way_that_is_near_is_shorter(
    tube: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    low, high = tube
    string = taut_string(low, high)
    assert (string >= low - 1e-9).all()
    assert (string <= high + 1e-9).all()
    assert string[-1] == pytest.approx(low[-1])
    # Of a convex problem a way that cannot be bettered at any one point, but for its walls, is the best of all.
    for index in range(1, len(string) - 1):
        middle = (string[index - 1] + string[index + 1]) / 2
        assert string[index] == pytest.approx(min(max(middle, low[index]), high[index]), abs=1e-9)


def test_of_an_even_load_it_is_the_work_itself() -> None:
    bound = bound_of(scenario("constant"), COSTS)
    executors = bound.executor_seconds / 4 / 3600
    # Half of 64 MiB/s in records of 250 B; noise and slow batches make the work some percent dearer.
    work = 0.5 * 64 * 1024 * 1024 / 250 * COSTS.per_record / 2
    assert work < executors < 1.05 * work
    assert bound.late_seconds == 0


@pytest.mark.parametrize("name", ["dead driver", "starved", "hot shard"])
def test_where_nobody_can_keep_the_goal_it_says_so(name: str) -> None:
    assert bound_of(scenario(name), COSTS).late_seconds > 300


@pytest.mark.parametrize("name", ["step", "spike", "silence", "pauses", "two writers", "cold starts"])
def test_where_it_can_be_kept_it_says_so(name: str) -> None:
    assert bound_of(scenario(name), COSTS).late_seconds == 0
