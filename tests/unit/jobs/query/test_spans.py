"""Which versions of a table a question is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.errors import SettingsError
from lakestream.query.history import History, Version
from lakestream.query.moments import Commit
from lakestream.query.question import Changes, NetChanges, ReadOptimized, Snapshot, ask
from lakestream.query.spans import Span, comparison_of, span_of

START = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START + timedelta(hours=1)


Spanned: TypeAlias = Snapshot | ReadOptimized | Changes


def minute(number: float) -> datetime:
    return START + timedelta(minutes=number)


def versions(count: int) -> tuple[Version, ...]:
    """One a minute, from the first minute on."""
    return tuple(Version(f"v{number}", minute(number)) for number in range(1, count + 1))


HISTORY = History(versions(5), first_kept=2)


def span(question: Spanned, history: History = HISTORY) -> tuple[str | None, list[str] | None]:
    found = span_of(question, history, NOW)
    commits = None if found.commits is None else [version.name for version in found.commits]
    return found.last.name if found.last else None, commits


@pytest.mark.parametrize(
    ("question", "last", "commits"),
    [
        (Snapshot(), "v5", None),
        (ReadOptimized(), "v5", None),
        (Snapshot(minute(3)), "v3", None),
        (Snapshot(minute(3.9)), "v3", None),
        (Snapshot(Commit("v4")), "v4", None),
        (Snapshot(NOW), "v5", None),
        (Changes(minute(3)), "v5", ["v4", "v5"]),
        (Changes(Commit("v1"), Commit("v3")), "v3", ["v2", "v3"]),
        (Changes(minute(1), minute(4.5)), "v4", ["v2", "v3", "v4"]),
        # From before the first: all of them.
        (Changes(minute(0)), "v5", ["v1", "v2", "v3", "v4", "v5"]),
        (Changes(minute(5)), None, []),
        (Changes(minute(3), minute(3.5)), None, []),
        (Changes(Commit("v3"), Commit("v3")), None, []),
    ],
)
def test_what_is_asked_about(question: Spanned, last: str | None, commits: list[str] | None) -> None:
    assert span(question) == (last, commits)


def test_a_table_without_commits_has_no_rows_and_no_past() -> None:
    assert span(Snapshot(), History(())) == (None, None)
    assert span(ReadOptimized(), History(())) == (None, None)
    for question in (Snapshot(minute(1)), Changes(minute(1))):
        with pytest.raises(SettingsError, match="the table has no commits yet"):
            span(question, History(()))


@pytest.mark.parametrize(
    ("question", "says"),
    [
        (Snapshot(minute(2)), r"^--at 2026-01-01 00:02:00 UTC: files of that time were cleaned; the table can be read "
         r"as of 3 instants, from v3 \(2026-01-01 00:03:00 UTC\) to v5 \(2026-01-01 00:05:00 UTC\)$"),
        (Snapshot(Commit("v1")), "^--at v1: files of that time were cleaned"),
        (Snapshot(minute(0)), "^--at .* is before what is known of the table"),
        (Snapshot(minute(61)), "^--at 2026-01-01 01:01:00 UTC has yet to come; it is 2026-01-01 01:00:00 UTC$"),
        (Snapshot(Commit("v35")), r"^--at v35: no instant of the table has that name"),
        (Changes(minute(3), minute(1)), "^--until .*: files of that time were cleaned"),
        (Changes(minute(4), minute(3)), "^--until is before --since"),
        (Changes(Commit("v9")), "^--since v9: no instant of the table has that name"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_told_with_what_can(question: Spanned, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        span(question)


def test_an_unknown_name_is_told_with_its_neighbours() -> None:
    history = History(tuple(Version(f"{n}0", minute(n)) for n in range(1, 12)))
    with pytest.raises(SettingsError, match=r"near it are 90 \(.*\) and 100 \(.*\)$"):
        span(Snapshot(Commit("95")), history)


def test_the_past_of_a_table_whose_timeline_was_archived_is_not_known() -> None:
    with pytest.raises(SettingsError, match=r"^--since .* is before what is known of the table"):
        span(Changes(minute(0)), History(versions(5), begins=False))


def test_a_table_whose_writer_has_another_clock_is_asked_by_the_times_that_it_has() -> None:
    ahead = History((Version("a", NOW), Version("b", NOW + timedelta(minutes=12))))
    assert span(Snapshot(NOW + timedelta(minutes=12)), ahead) == ("b", None)
    assert span(Snapshot(NOW), ahead) == ("a", None)


@given(st.integers(1, 8), st.floats(1, 9), st.floats(0, 9))
def test_spans_of_time_put_together_are_the_whole(count: int, middle: float, start: float) -> None:
    history, start = History(versions(count)), min(start, middle)
    first = span_of(Changes(minute(start), minute(middle)), history, NOW)
    second = span_of(Changes(minute(middle)), history, NOW)
    whole = span_of(Changes(minute(start)), history, NOW)
    assert (first.commits or ()) + (second.commits or ()) == whole.commits
    assert whole == Span(whole.commits[-1] if whole.commits else None, whole.commits)


@pytest.mark.parametrize(
    ("question", "before", "after"),
    [
        (NetChanges(minute(3)), "v3", "v5"),
        (NetChanges(minute(3), minute(4.5)), "v3", "v4"),
        (NetChanges(Commit("v3"), Commit("v3")), "v3", "v3"),
        (NetChanges(minute(0), minute(3)), None, "v3"),
    ],
)
def test_what_is_compared(question: NetChanges, before: str | None, after: str) -> None:
    found = comparison_of(question, HISTORY, NOW)
    assert (found.before and found.before.name, found.after and found.after.name) == (before, after)


@pytest.mark.parametrize(
    ("question", "says"),
    [
        # What a row was is in files of that time; of the rows that commits have written none is needed.
        (NetChanges(minute(2)), "^--since .*: files of that time were cleaned; the table can be read as of 3 instants"),
        (NetChanges(minute(4), minute(3)), "^--until is before --since"),
        (NetChanges(Commit("v9")), "^--since v9: no instant of the table has that name"),
    ],
)
def test_what_cannot_be_compared_is_told(question: NetChanges, says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        comparison_of(question, HISTORY, NOW)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"at": "now", "since": "now"}, "^--at and --since are different questions"),
        ({"at": "now", "read_optimized": True}, "^--at and --read-optimized are different questions"),
        ({"until": "now"}, "^--until goes with --since"),
        ({"changes": True}, "^--changes goes with --since"),
        ({"at": "soon"}, "^--at: 'soon' is no moment"),
        ({"since": "now", "until": "soon"}, "^--until: 'soon' is no moment"),
    ],
)
def test_options_that_make_no_question(options: dict[str, str | bool], says: str) -> None:
    given = {"at": None, "since": None, "until": None, "read_optimized": False, **options}
    with pytest.raises(SettingsError, match=says):
        ask(**given, now=NOW)  # type: ignore[arg-type]
