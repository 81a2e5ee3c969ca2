"""The goals that hold in the simulator, so that a change which loses one is seen."""

from functools import cache

import pytest

from lakestream_bench.simulation.run import Result, Task, simulate


@cache
def run(scenario: str, shards: int, policy: str = "LakeStream") -> Result:
    return simulate(Task(scenario, shards, policy, "mor", None))


@pytest.mark.parametrize("shards", [64])
def test_a_constant_load_is_never_late_and_hardly_changes_anything(shards: int) -> None:
    result = run("constant", shards)
    assert result.late_seconds == 0
    assert result.actions_per_hour <= 1.5


@pytest.mark.parametrize(("shards", "share"), [(64, 1 / 3), (1_000, 1 / 2)])
def test_after_a_step_the_lag_is_sooner_within_its_goal_than_by_restarts(shards: int, share: float) -> None:
    ours = run("step", shards)
    rival = run("step", shards, "Flink operator")
    assert ours.late_seconds <= rival.late_seconds * share
    assert ours.executor_seconds <= rival.executor_seconds


@pytest.mark.parametrize("scenario", ["constant", "step", "ramp", "spike", "dead driver", "resharding"])
@pytest.mark.parametrize("shards", [64, 1_000])
def test_it_costs_less_than_a_number_for_the_peak(scenario: str, shards: int) -> None:
    assert run(scenario, shards).executor_seconds <= run(scenario, shards, "KEDA").executor_seconds


@pytest.mark.parametrize("scenario", ["constant", "step", "resharding"])
def test_it_costs_not_much_more_than_the_bound(scenario: str) -> None:
    assert run(scenario, 64).executor_seconds <= 2.2 * run(scenario, 64, "bound").executor_seconds


def test_a_rising_load_is_followed() -> None:
    assert run("ramp", 64).late_seconds <= 60


def test_a_driver_that_was_dead_comes_back_to_what_it_had_and_catches_up() -> None:
    result = run("dead driver", 64)
    # It is gone for 10 minutes; half a minute of that is within the goal.
    assert 570 <= result.late_seconds <= 1_500


def test_ten_thousand_shards_take_seconds() -> None:
    assert run("step", 10_000).late_seconds <= run("step", 10_000, "managed Flink").late_seconds


def test_the_same_seed_gives_the_same_run() -> None:
    task = Task("spike", 64, "LakeStream", "mor", None)
    assert simulate(task) == simulate(task)
