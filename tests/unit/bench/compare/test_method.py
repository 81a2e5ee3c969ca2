"""The order of the trials, and what many measurements come to."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_bench.compare.method import Quarters, Spread, Turn, alone, degradation, freshness, rotated
from lakestream_bench.compare.results import Trial

from .made import trial


def test_in_each_repetition_another_arm_begins() -> None:
    turns = rotated(["s"], ["a", "b", "c"], 3)
    assert [turn.arm for turn in turns] == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]
    assert turns[3] == Turn("s", 1, "b")


@pytest.mark.parametrize("arms", [3, 4, 5, 6])
def test_no_arm_always_comes_behind_the_same_other_one(arms: int) -> None:
    turns = [turn.arm for turn in rotated(["s"], [f"a{n}" for n in range(arms)], 3)]
    before: dict[str, set[str]] = {arm: set() for arm in turns}
    for earlier, later in pairwise(turns):
        before[later].add(earlier)
    # The one that begins has two before it; of three arms both may be the same.
    assert all(len(found) > 1 for arm, found in before.items() if arm != turns[0])


@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 7))
def test_every_trial_is_run_once(scenarios: int, arms: int, repetitions: int) -> None:
    turns = rotated([f"s{n}" for n in range(scenarios)], [f"a{n}" for n in range(arms)], repetitions)
    assert set(Counter(turns).values()) == {1}
    assert len(turns) == scenarios * arms * repetitions


def test_a_spread_is_told_with_its_range() -> None:
    assert Spread.of([3, 1, 2]) == Spread(2, 1, 3, 3)
    assert Spread.of([3, 1, 2]).text(".1f") == "2.0 (1.0–3.0)"
    assert Spread.of([2]).text(".1f") == "2.0"
    with pytest.raises(ValueError, match="nothing to take the median of"):
        Spread.of([])


def test_quarters_tell_how_batches_change_as_a_table_grows() -> None:
    one, other = (
        replace(trial("cow"), batches=tuple(trial("cow", slower=slower).batches[:9])) for slower in (1.0, 3.0)
    )

    def sizes(part: Trial) -> float:
        return sum(batch.records for batch in part.batches)

    assert Quarters.of([one], lambda part: len(part.batches)) == Quarters((2, 2, 2, 3))
    assert sum(Quarters.of([one], sizes).values) == sizes(one)
    first = sum(alone(replace(one, batches=one.batches[:2])))
    found = Quarters.of([one, other, one], lambda part: sum(alone(part)))
    assert found.values[0] == pytest.approx(first)
    assert Quarters((0.25, 1.0)).text(".1f") == "0.2 → 1.0"
    young = replace(one, batches=one.batches[:2])
    assert len(Quarters.of([young], sizes).values) == 2


def test_the_degradation_rate_is_the_mean_relative_step() -> None:
    assert degradation([1.0, 1.5, 1.5]) == pytest.approx(0.25)
    assert degradation([2.0, 1.0]) == pytest.approx(-0.5)
    assert degradation([2.0]) is None


def test_batches_that_take_no_time_leave_half_an_interval_in_the_mean() -> None:
    found = freshness([0.0] * 100, interval=10.0)
    assert found.p50 == pytest.approx(5.0, abs=0.5)
    assert found.p99 == pytest.approx(10.0, abs=0.5)


def test_batches_longer_than_the_interval_follow_each_other_at_once() -> None:
    # Each takes what came in the 20 s of the one before, and is visible 20 s later.
    found = freshness([20.0] * 100, interval=10.0)
    assert found.p50 == pytest.approx(30.0, abs=1.0)
    assert found.p99 == pytest.approx(40.0, abs=1.0)


@given(st.lists(st.floats(0, 60), min_size=1, max_size=30), st.floats(0.1, 60))
def test_nothing_is_fresher_than_its_batch_is_quick(seconds: list[float], interval: float) -> None:
    found = freshness(seconds, interval)
    assert min(seconds) <= found.p50 <= found.p99 <= max(seconds) + max(interval, *seconds) + 1e-6
