"""Kinesis time is a lower bound of the server's, and a tight one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis.clock import ServiceClock

T0 = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)


def test_unknown_at_first() -> None:
    assert ServiceClock().now(5.0) is None


@given(
    start=st.floats(0, 1e6),
    steps=st.lists(st.tuples(st.floats(0.001, 40.0), st.floats(0, 0.5)), min_size=1, max_size=30),
)
def test_never_ahead_and_never_a_second_behind_what_was_heard(start: float, steps: list[tuple[float, float]]) -> None:
    clock = ServiceClock()
    elapsed = 0.0
    for step, delay in steps:
        elapsed += step
        answered = T0 + timedelta(seconds=elapsed)
        elapsed += delay
        clock.observe(answered.replace(microsecond=0), start + elapsed)
        told = clock.now(start + elapsed)
        server = T0 + timedelta(seconds=elapsed)
        assert told is not None
        assert server - timedelta(seconds=1.5, milliseconds=2) < told <= server + timedelta(milliseconds=1)


def test_many_answers_make_it_exact() -> None:
    clock = ServiceClock()
    for tick in range(0, 2000, 7):
        clock.observe(T0 + timedelta(seconds=tick // 1000), tick / 1000)
    now = clock.now(2.5)
    assert now is not None
    assert abs(now - (T0 + timedelta(seconds=2.5))) <= timedelta(milliseconds=8)


@given(ages=st.lists(st.integers(0, 5_000), min_size=1, max_size=30))
def test_an_arrival_makes_it_as_exact_as_the_record_was_young(ages: list[int]) -> None:
    """Milliseconds from a record's arrival to the answer that it comes with: one answer a second, always at its end."""
    clock = ServiceClock()
    for second, age in enumerate(ages):
        answered = T0 + timedelta(seconds=second + 0.9)
        clock.observe(T0 + timedelta(seconds=second), second + 0.9)
        clock.observe_arrival(answered - timedelta(milliseconds=age), second + 0.9)
        now = clock.now(second + 0.9)
        assert now is not None
        assert timedelta(0) <= answered - now <= timedelta(milliseconds=min(*ages[: second + 1], 900) + 1)


def test_an_arrival_that_the_date_puts_into_the_future_tells_nothing() -> None:
    clock = ServiceClock()
    clock.observe(T0, 0.0)
    clock.observe_arrival(T0 + timedelta(seconds=1), 0.0)
    assert clock.now(0.0) == T0


def test_an_arrival_alone_tells_nothing() -> None:
    clock = ServiceClock()
    clock.observe_arrival(T0, 0.0)
    assert clock.now(0.0) is None


def test_a_jump_forward_is_followed_at_once() -> None:
    clock = ServiceClock()
    clock.observe(T0, 0.0)
    clock.observe(T0 + timedelta(hours=25), 1.0)
    assert clock.now(1.0) == T0 + timedelta(hours=25)


def test_old_bounds_are_forgotten() -> None:
    # The local clock runs 1 % fast; after two windows only recent answers count.
    clock = ServiceClock()
    for second in range(1000):
        clock.observe(T0 + timedelta(seconds=second), second * 1.01)
    now = clock.now(999 * 1.01)
    assert now is not None
    assert now - (T0 + timedelta(seconds=999)) < timedelta(seconds=1.3)
