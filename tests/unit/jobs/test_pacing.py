"""How late a batch may be planned so that the sink need not wait for it."""

from __future__ import annotations

from lakestream.pacing import Pace


def pace(*batches: tuple[float, float]) -> Pace:
    found = Pace()
    for prepared, written in batches:
        found = found.after(prepared, written)
    return found


def test_before_the_first_batch_nothing_is_waited_for() -> None:
    assert Pace().spare == 0


def test_a_batch_is_to_be_ready_when_the_one_before_is_written() -> None:
    assert pace((0.5, 2.0)).spare == 1.5


def test_of_the_last_batches_the_quickest_write_and_the_slowest_fetch_count() -> None:
    assert pace((0.5, 2.0), (1.0, 3.0), (0.25, 4.0)).spare == 1.0


def test_what_was_quick_long_ago_does_not_count() -> None:
    assert pace((0.5, 1.0), (0.5, 3.0), (0.5, 4.0), (0.5, 5.0)).spare == 2.5


def test_where_fetching_takes_longer_than_writing_there_is_no_time_to_spare() -> None:
    assert pace((3.0, 1.0)).spare == 0
