"""The rivals' rules are those of their sources."""

from __future__ import annotations

from collections.abc import Iterable

from lakestream_bench.simulation.policies import Fewer


def called(numbers: Iterable[int | None], *, outside: bool = True) -> list[int | None]:
    """What comes of numbers that were called for minute by minute; None: as many as there are."""
    fewer, answers = Fewer(), []
    for minute, number in enumerate(numbers):
        if number is None:
            fewer.clear()
            answers.append(None)
        else:
            answers.append(fewer.call(60.0 * minute, number, outside))
    return answers


def test_fewer_executors_come_an_hour_after_they_were_first_called_for() -> None:
    assert called([3] * 62) == [None] * 60 + [3, 3]


def test_the_most_that_were_called_for_in_the_hour_count() -> None:
    assert called([3] * 20 + [5] + [2] * 41)[60:] == [5, 5]


def test_what_was_called_for_more_than_an_hour_ago_does_not_count() -> None:
    assert called([5] + [2] * 61)[60:] == [5, 2]


def test_the_hour_begins_anew_when_what_there_is_was_called_for() -> None:
    assert called([3] * 50 + [None] + [3] * 61) == [None] * 111 + [3]


def test_within_the_bounds_of_utilization_nothing_comes_but_the_hour_passes() -> None:
    fewer = Fewer()
    assert all(fewer.call(60.0 * minute, 3, outside=False) is None for minute in range(90))
    assert fewer.call(90 * 60.0, 3, outside=True) == 3


def test_whether_it_was_outside_counts_when_the_most_were_called_for() -> None:
    fewer = Fewer()
    assert fewer.call(0.0, 5, outside=True) is None
    assert fewer.call(1800.0, 4, outside=False) is None
    assert fewer.call(3600.0, 3, outside=True) == 5
    assert fewer.call(3660.0, 3, outside=True) is None, "four were, within the bounds"
