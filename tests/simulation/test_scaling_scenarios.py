"""The goals, in the simulator: hours of load in two seconds each. The slow tests have more of them."""

from functools import cache
from itertools import pairwise

import pytest

from lakestream_bench.simulation.run import BOUND, Result, Task, simulate
from lakestream_bench.simulation.scenarios import SCENARIOS
from lakestream_bench.simulation.summary import cases

MISSED = pytest.mark.xfail(strict=True, reason="a goal that is missed (docs/autoscaling.md)")
CHEAP = {
    *(
        (scenario, shards)
        for scenario in ("constant", "ramp", "diurnal", "resharding", "spot reclaim", "compaction")
        for shards in (64, 1_000)
    ),
    ("step", 1_000),
}
"""Where cost meets its goal."""


played = cache(simulate)


def run(scenario: str, policy: str = "LakeStream", shards: int = 64) -> Result:
    return played(Task(scenario, shards, policy, "mor", None))


def cost(scenario: str, policy: str = "LakeStream") -> float:
    return run(scenario, policy).executor_seconds / run(scenario, BOUND).executor_seconds


def test_three_times_the_load_is_never_late_for_longer_than_a_minute() -> None:
    ours = run("step")
    assert ours.late_seconds <= 60
    for rival in ("Flink operator", "managed Flink"):
        assert ours.late_seconds <= run("step", rival).late_seconds / 3
        assert cost("step") <= cost("step", rival)
    assert cost("step") <= cost("step", "KEDA") / 2


def test_what_was_added_is_given_back() -> None:
    placed = {at: executors for at, _, executors, _ in run("step").trace}
    at_night, at_day = ([count for at, count in placed.items() if begin < at < begin + 900] for begin in (2700, 9900))
    assert min(at_day) > 2 * max(at_night)
    assert list(placed.values())[-1] <= 1.5 * max(at_night)


def test_a_constant_load_changes_nothing() -> None:
    ours = run("constant")
    assert ours.late_seconds == 0
    assert ours.actions_per_hour <= 1
    assert cost("constant") <= 1.25


@pytest.mark.slow
def test_noise_and_pauses_are_sat_out() -> None:
    ours = run("pauses")
    assert ours.late_seconds <= 60
    assert ours.actions_per_hour <= 3


@pytest.mark.slow
@pytest.mark.parametrize("shards", [64, 1_000])
def test_after_a_night_of_silence_all_comes_at_once(shards: int) -> None:
    assert run("silence", shards=shards).late_seconds <= 60


@pytest.mark.parametrize("shards", [64, pytest.param(1_000, marks=pytest.mark.slow)])
def test_compaction_makes_nobody_late(shards: int) -> None:
    ours = run("compaction", shards=shards)
    assert ours.late_seconds <= 60
    assert ours.actions_per_hour <= 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "shards"),
    [
        (name, shards)
        for name in ("cold starts", "random", "two writers", "two sizes", "sawtooth")
        for shards in (64, 1_000)
    ],
)
def test_who_is_behind_is_not_so_for_a_minute(scenario: str, shards: int) -> None:
    assert run(scenario, shards=shards).late_seconds <= 60


@pytest.mark.slow
@pytest.mark.parametrize("shards", [64, 1_000])
def test_noise_is_sat_out(shards: int) -> None:
    ours = run("noisy", shards=shards)
    assert ours.late_seconds <= 60
    assert ours.actions_per_hour <= 1


@pytest.mark.slow
def test_records_of_two_sizes_are_one_load() -> None:
    assert run("two sizes").actions_per_hour <= 5


KEPT = [name for name in SCENARIOS if name not in {"hot shard", "dead driver", "starved"}]


@pytest.mark.parametrize(
    ("scenario", "shards"),
    [
        pytest.param(name, shards, marks=[] if (name, shards) == ("constant", 64) else [pytest.mark.slow])
        for name in KEPT
        for shards in (64, 1_000)
    ],
)
def test_where_the_load_does_not_turn_no_change_is_taken_back_within_ten_minutes(scenario: str, shards: int) -> None:
    assert run(scenario, shards=shards).flaps == 0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["diurnal", "noisy"])
@pytest.mark.parametrize("rival", ["Flink operator", "managed Flink"])
def test_who_restarts_is_three_times_as_late_through_days_of_noise(scenario: str, rival: str) -> None:
    assert run(scenario).late_seconds <= run(scenario, rival).late_seconds / 3


def test_with_a_dead_driver_nobody_keeps_the_goal_and_it_says_so() -> None:
    (case,) = cases([run("dead driver", policy) for policy in ("LakeStream", BOUND)])
    assert not case.can_be_kept
    assert run("dead driver").late_seconds <= 1.6 * run("dead driver", BOUND).late_seconds


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run() -> None:
    task = Task("two writers", 4, "LakeStream", "mor", None)
    assert simulate(task) == simulate(task)


DEAR = {("noisy", 64)}
"""By this seed; in the median of five it is not."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "shards"),
    [
        pytest.param(name, shards, marks=[MISSED] if (name, shards) in DEAR else [])
        for name in ("step", "spike", "ramp", "diurnal", "noisy", "resharding", "spot reclaim", "compaction")
        for shards in (64, 1_000)
    ],
)
def test_the_goal_is_kept(scenario: str, shards: int) -> None:
    ours, bound = run(scenario, shards=shards), run(scenario, BOUND, shards)
    assert bound.late_seconds == 0
    assert ours.late_seconds <= 60
    assert ours.executor_seconds <= 1.45 * bound.executor_seconds


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "shards"), sorted(CHEAP))
def test_cost_is_a_quarter_above_the_bounds_at_most(scenario: str, shards: int) -> None:
    bound = run(scenario, BOUND, shards).executor_seconds
    assert run(scenario, shards=shards).executor_seconds <= 1.25 * bound


def test_a_step_that_needs_three_executors_where_there_is_one_is_one_step() -> None:
    ours = simulate(Task("step", 8, "LakeStream", "mor", None, cores=1))
    trace = [(at, lag, placed, target) for at, lag, placed, target in ours.trace if 3600 <= at < 4200]
    ((before, after),) = [(one[3], two[3]) for one, two in pairwise(trace) if two[3] != one[3]]
    assert before == 1
    assert after >= 3
    *_, (_, _, _, at_the_end) = (one for one in ours.trace if one[0] < 3 * 3600)
    assert at_the_end >= 3
    works = next(at for at, _, placed, _ in trace if placed == after)
    assert max(lag for at, lag, _, _ in trace if at >= works + 2 * 10 + 20) <= 60


@pytest.mark.parametrize("shards", [64, pytest.param(1_000, marks=pytest.mark.slow)])
def test_load_that_the_schedule_knows_of_makes_nobody_late(shards: int) -> None:
    assert run("jobs by schedule", shards=shards).late_seconds == 0
