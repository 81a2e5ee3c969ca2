"""Cron expressions and the windows that they begin."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_api import Cron, ExcludedWindow

# A Saturday.
NOON = datetime(2026, 1, 31, 12, 0, 30, tzinfo=UTC)
WEEK = timedelta(days=7)
FIELDS = [
    st.sampled_from(["*", "0", "7,31", "*/15", "10-40/7", "5/20"]),
    st.sampled_from(["*", "0", "23", "8-17", "*/6"]),
    st.sampled_from(["*", "1", "31", "1-7", "*/2"]),
    st.sampled_from(["*", "2", "jan", "nov-dec"]),
    st.sampled_from(["*", "0", "7", "mon-fri", "sat,sun"]),
]


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("* * * * *", "2026-01-31T12:00"),
        ("7-59/7 * * * *", "2026-01-31T11:56"),
        ("5/20 * * * *", "2026-01-31T11:45"),
        ("0 22 * * *", "2026-01-30T22:00"),
        ("0 22 * * 1-5", "2026-01-30T22:00"),
        ("0 22 * * Sun", "2026-01-25T22:00"),
        ("0 22 * * 7", "2026-01-25T22:00"),
        ("0 6 27 JAN *", "2026-01-27T06:00"),
        # Either of the two kinds of day counts, unless one of them is any day.
        ("0 6 28 * mon", "2026-01-28T06:00"),
        ("0 6 26 * wed", "2026-01-28T06:00"),
        ("0 6 */2 * mon", None),
        ("0 6 * 2 *", None),
    ],
)
def test_the_last_time_of_an_expression(text: str, last: str | None) -> None:
    expected = None if last is None else datetime.fromisoformat(last).replace(tzinfo=UTC)
    assert Cron.parse(text).last(NOON, WEEK - timedelta(hours=8)) == expected


@given(st.tuples(*FIELDS), st.integers(0, 4 * 366 * 86_400), st.integers(1, 3000))
def test_it_is_the_same_as_asking_of_every_minute(fields: tuple[str, ...], seconds: int, minutes: int) -> None:
    cron, within = Cron.parse(" ".join(fields)), timedelta(minutes=minutes)
    now = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    start = now.replace(second=0, microsecond=0)
    asked = (start - timedelta(minutes=back) for back in range(minutes + 1))
    found = [
        time
        for time in asked
        if now - within < time
        and time.minute in cron.minutes
        and time.hour in cron.hours
        and time.month in cron.months
        and (
            (time.day in cron.days and time.isoweekday() % 7 in cron.weekdays)
            if "*" in fields[2] or "*" in fields[4]
            else (time.day in cron.days or time.isoweekday() % 7 in cron.weekdays)
        )
    ]
    assert cron.last(now, within) == (found[0] if found else None)


@pytest.mark.parametrize(
    ("text", "comes"),
    [
        ("0 0 29 2 *", True),
        ("0 0 29 2 */3", True),
        ("0 0 30 2 *", False),
        ("0 0 30-31 feb */2", False),
        ("0 0 31 2,4,6,9,11 *", False),
        ("0 0 31 4-5 *", True),
        # Or on a Monday.
        ("0 0 30 2 mon", True),
        ("0 0 */2 2 *", True),
        ("* * * * *", True),
    ],
)
def test_an_expression_tells_whether_it_ever_comes(text: str, comes: bool) -> None:
    assert Cron.parse(text).comes is comes
    # The days of the week come back on the same dates after 28 years.
    assert (Cron.parse(text).last(NOON, timedelta(days=28 * 366)) is not None) is comes


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* * 0 * *", "*/0 * * * *", "5-1 * * * *", "a * * * *"])
def test_these_are_no_expressions(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no|has \d fields"):
        Cron.parse(text)


@pytest.mark.parametrize(
    ("text", "days"),
    [("sat-sun", {6, 0}), ("MON-SUN", set(range(7))), ("fri-7", {5, 6, 0}), ("sun-sat", set(range(7)))],
)
def test_a_week_may_end_with_sunday(text: str, days: set[int]) -> None:
    assert Cron.parse(f"0 0 * * {text}").weekdays == days


@pytest.mark.parametrize("text", ["0 0 * * fri-mon", "0 0 * nov-jan *", "0 0 * * 6-0"])
def test_no_range_goes_over_its_end(text: str) -> None:
    with pytest.raises(ValueError, match="names no"):
        Cron.parse(text)


def test_a_window_lasts_from_its_beginning_to_just_before_its_end() -> None:
    night = ExcludedWindow(cron="0 22 * * *", duration=timedelta(hours=8))
    end = datetime(2026, 1, 31, 6, tzinfo=UTC)
    assert night.until(end - timedelta(hours=8)) == end
    assert night.until(end - timedelta(seconds=1)) == end
    assert night.until(end) is None
    assert night.until(end - timedelta(hours=8, seconds=1)) is None


def test_the_clock_may_be_in_any_zone() -> None:
    night = ExcludedWindow(cron="0 22 * * *", duration=timedelta(hours=1))
    east = timezone(timedelta(hours=9))
    assert night.until(datetime(2026, 1, 31, 7, 30, tzinfo=east)) == datetime(2026, 1, 30, 23, tzinfo=UTC)
