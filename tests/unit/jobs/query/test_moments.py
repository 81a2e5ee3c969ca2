"""Moments as people type them."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.errors import SettingsError
from lakestream.query.history import show
from lakestream.query.moments import Commit, Moment, parse_moment

NOW = datetime(2026, 11, 22, 9, 30, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", NOW),
        ("10 minutes ago", NOW - timedelta(minutes=10)),
        ("1 minute ago", NOW - timedelta(minutes=1)),
        ("10m ago", NOW - timedelta(minutes=10)),
        ("1h30m ago", NOW - timedelta(minutes=90)),
        ("1 hour 30 min ago", NOW - timedelta(minutes=90)),
        ("2 days and 1 hour ago", NOW - timedelta(days=2, hours=1)),
        ("  3   WEEKS  ago ", NOW - timedelta(weeks=3)),
        ("90s ago", NOW - timedelta(seconds=90)),
        ("500ms ago", NOW - timedelta(milliseconds=500)),
        ("2 hours 5 mins 3 secs ago", NOW - timedelta(hours=2, minutes=5, seconds=3)),
        ("today", datetime(2026, 11, 22, tzinfo=UTC)),
        ("yesterday", datetime(2026, 11, 21, tzinfo=UTC)),
        ("yesterday 9:05", datetime(2026, 11, 21, 9, 5, tzinfo=UTC)),
        ("yesterday 9:05:07", datetime(2026, 11, 21, 9, 5, 7, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T12:00Z", datetime(2026, 11, 1, 12, tzinfo=UTC)),
        ("2026-11-01 12:00:30.5", datetime(2026, 11, 1, 12, 0, 30, 500_000, tzinfo=UTC)),
        ("2026-11-01T12:00+02:00", datetime(2026, 11, 1, 10, tzinfo=UTC)),
        ("2026-11-01 12:00:30.500 UTC", datetime(2026, 11, 1, 12, 0, 30, 500_000, tzinfo=UTC)),
        ("20261101120000123", Commit("20261101120000123")),
        ("batch 017", Commit("17")),
    ],
)
def test_what_people_type(text: str, moment: Moment) -> None:
    assert parse_moment(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    ["", "ago", "10 ago", "minutes ago", "10 minutes", "10 fortnights ago", "1h30 ago", "1ss ago", "1hs ago",
     "last week", "12:00", "2026-13-01", "99999999999 days ago", "9999999999999999999999999 weeks ago",
     "-1 minutes ago", "batch", "0001-01-01T00:00+10:00", f"batch {'9' * 5000}"],
)  # fmt: skip
def test_anything_else_is_told_what_there_is(text: str) -> None:
    with pytest.raises(SettingsError, match="is no moment: give '10 minutes ago'"):
        parse_moment(text, NOW)


@given(st.text())
def test_no_text_breaks_it(text: str) -> None:
    with contextlib.suppress(SettingsError):
        parse_moment(text, NOW)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)))  # noqa: DTZ001 - as hypothesis wants it
def test_times_are_read_as_python_writes_them(time: datetime) -> None:
    assert parse_moment(time.replace(tzinfo=UTC).isoformat(), NOW) == time.replace(tzinfo=UTC)


@given(st.datetimes(datetime(1000, 1, 1)))  # noqa: DTZ001 - in UTC below
def test_a_time_that_was_shown_is_that_time(time: datetime) -> None:
    """Or the batch that it is told of would not be there yet at that time."""
    assert parse_moment(show(time), NOW) == time.replace(tzinfo=UTC)
