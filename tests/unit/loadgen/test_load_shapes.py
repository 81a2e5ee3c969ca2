"""Shapes, and the tokens made of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.pacing import TokenMeter, portion
from lakestream_loadgen.shapes import SHAPES, Constant, Ramp, make_shape, next_users, users_at

names = st.sampled_from(sorted(SHAPES))
times = st.floats(0, 1000)


@given(names, st.floats(1, 1e6), st.floats(1, 1000), times, times)
def test_the_integral_grows_by_the_rate(name: str, peak: float, period: float, one: float, other: float) -> None:
    shape = make_shape(name, peak, period)
    start, end = sorted((one, other))
    steps = 400
    width = (end - start) / steps
    sampled = sum(shape.records_per_second(start + (step + 0.5) * width) for step in range(steps)) * width
    grown = shape.records_until(end) - shape.records_until(start)
    # Jumps of a step or spike cost the sampling at most one cell each.
    jumps = 5 + 2 * (end - start) / period
    assert grown == pytest.approx(sampled, rel=1e-3, abs=peak * width * jumps + 1e-6 * peak)


@given(names, times)
def test_no_rate_is_above_the_peak_or_below_nothing(name: str, t: float) -> None:
    assert 0 <= make_shape(name, 500.0, 60.0).records_per_second(t) <= 500.0 * (1 + 1e-9)


def test_shapes_at_their_marks() -> None:
    rate = {name: make_shape(name, 100.0, 100.0).records_per_second for name in SHAPES}
    assert [rate["step"](t) for t in (0, 19, 20, 79, 80, 500)] == [20, 20, 40, 80, 100, 100]
    assert [rate["ramp"](t) for t in (0, 50, 100, 500)] == [0, 50, 100, 100]
    assert [round(rate["sine"](t)) for t in (0, 50, 100, 150)] == [10, 100, 10, 100]
    assert [rate["spike"](t) for t in (0, 44, 46, 54, 56, 150)] == [20, 20, 100, 100, 20, 100]


@pytest.mark.parametrize(
    ("name", "peak", "period", "named"),
    [("square", 1.0, 1.0, "square"), ("ramp", 0.0, 1.0, "events"), ("ramp", 1.0, 0.0, "period")],
)
def test_impossible_shapes_are_refused_by_name(name: str, peak: float, period: float, named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        make_shape(name, peak, period)


def test_users_follow_the_rate_in_twentieths() -> None:
    ramp = make_shape("ramp", 1000.0, 100.0)
    assert [users_at(ramp, t, 1000, 1) for t in (0, 1, 5, 6, 50, 100, 200)] == [1, 50, 50, 100, 500, 1000, 1000]
    assert users_at(Constant(5.0), 3.0, 1, 1) == 1
    # A worker without users writes nothing.
    assert [users_at(ramp, t, 10, 4) for t in (0, 30, 50, 100)] == [4, 4, 5, 10]


@given(names, st.lists(st.tuples(st.floats(0.001, 0.9), st.integers(0, 10_000)), max_size=100))
def test_every_token_is_handed_out_once(name: str, ticks: list[tuple[float, int]]) -> None:
    shape = make_shape(name, 1000.0, 20.0)
    meter = TokenMeter(shape)
    elapsed = taken = 0.0
    for seconds, most in ticks:
        elapsed += seconds
        meter.advance(elapsed, 1.0)
        taken += meter.take(most)
    left = meter.take(10**9)
    assert shape.records_until(elapsed) == pytest.approx(taken + left + meter.dropped, abs=1.001)


def test_late_ticks_do_not_slow_the_load_down() -> None:
    meter = TokenMeter(Constant(1000.0))
    taken = 0
    for elapsed in (0.5, 0.51, 1.2, 1.21, 2.0):
        meter.advance(elapsed, 1.0)
        taken += meter.take(10_000)
    assert taken == 2000
    assert meter.dropped == 0


def test_a_backlog_of_more_than_a_second_is_dropped_and_counted() -> None:
    meter = TokenMeter(Constant(100.0))
    meter.advance(5.0, 1.0)
    assert meter.due() == 100
    assert meter.dropped == pytest.approx(400)


def test_a_rate_below_one_per_second_still_writes() -> None:
    meter = TokenMeter(Constant(0.1))
    for second in range(1, 101):
        meter.advance(float(second), 1.0)
    assert meter.due() + meter.dropped == pytest.approx(10)
    assert meter.due() == 1


def test_who_joins_late_goes_on_where_the_shape_is() -> None:
    meter = TokenMeter(Ramp(100.0, 10.0), joined=20.0)
    meter.advance(20.5, 0.5)
    assert meter.due() == 25
    assert meter.dropped == 0


def test_the_share_of_a_process_may_change() -> None:
    meter = TokenMeter(Constant(100.0))
    meter.advance(1.0, 0.5)
    assert meter.take(1000) == 50
    meter.advance(2.0, 1.0)
    assert meter.take(1000) == 100


def test_portions() -> None:
    assert portion(10, 2000, 100) == 1
    assert portion(600, 2000, 100) == 30
    assert portion(600, 2000, 25) == 25
    assert portion(50, 4, 100) == 13


@pytest.mark.parametrize(
    ("there", "spawn_rate", "seconds", "then"),
    [
        (0, 1.0, 1.0, 1),
        (0, 0.1, 1.0, 1),
        (1, 0.1, 1.0, 1),
        (1, 0.1, 10.0, 2),
        (1, 1.0, 0.99, 2),
        (10, 20.0, 1.1, 32),
        (90, 20.0, 1.0, 100),
        (100, 20.0, 1.0, 100),
        (150, 20.0, 1.0, 130),
        (110, 20.0, 1.0, 100),
    ],
)
def test_users_come_and_go_at_the_spawn_rate(there: int, spawn_rate: float, seconds: float, then: int) -> None:
    assert next_users(100, there, spawn_rate, seconds) == then
