"""Which versions of a table a question is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.errors import SettingsError
from lakestream.log.manifest import BatchFiles
from lakestream.model import FileEntry
from lakestream.query.history import History, Version
from lakestream.query.json_log import JsonLog
from lakestream.query.moments import Commit
from lakestream.query.question import Changes, NetChanges, ReadOptimized, Snapshot, ask
from lakestream.query.spans import Span, comparison_of, span_of
from lakestream.storage import LakePath, S3Settings, StoreSettings

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


def json_log(times: Sequence[datetime]) -> JsonLog:
    """Of batches from 1 on that a driver has committed when its clock said so."""
    place = StoreSettings(LakePath.parse("/lake/orders"), S3Settings("eu-west-1"))
    files = [(FileEntry(f"b{number}.json.gz", 1, 1, ""),) for number in range(1, len(times) + 1)]
    batches = tuple(BatchFiles(number, at, files[number - 1], ()) for number, at in enumerate(times, 1))
    return JsonLog(place, batches, None)


CLOCKS = st.lists(st.integers(0, 60).map(minute), min_size=1, max_size=8)


def position(history: History, moment: datetime) -> int:
    """Of the version that was seen at a moment; -1 before the first."""
    if moment < history.versions[0].at:
        return -1
    return history.versions.index(history.as_of(moment, "--at", NOW))


@given(CLOCKS, st.lists(st.integers(0, 7)))
def test_spans_by_name_put_together_are_the_whole_whatever_the_clock_said(
    times: list[datetime], cuts: list[int]
) -> None:
    history = json_log(times).history
    names = [Commit(str(cut + 1)) for cut in sorted(cut % len(times) for cut in [0, *cuts])]
    parts = [span_of(Changes(first, last), history, NOW) for first, last in pairwise(names)]
    parts.append(span_of(Changes(names[-1]), history, NOW))
    assert [version for part in parts for version in part.commits or ()] == list(history.versions[1:])


@given(CLOCKS, st.lists(st.floats(0, 60).map(minute), min_size=2).map(sorted))
def test_what_was_seen_only_grows_whatever_the_clock_said(times: list[datetime], moments: list[datetime]) -> None:
    history = json_log(times).history
    seen = [position(history, moment) for moment in moments]
    assert seen == sorted(seen)
    for moment, until in zip(seen, moments, strict=True):
        # From any commit to a time: what was seen then, and not before.
        for since in range(moment + 1):
            found = span_of(Changes(Commit(str(since + 1)), until), history, NOW)
            assert found.commits == history.versions[since + 1 : moment + 1]


def test_batches_after_a_clock_that_was_fast_are_in_their_spans() -> None:
    """Batches 4 and 5 were committed on a node that is 12 minutes fast."""
    log = json_log([minute(number) for number in (0, 0.5, 1, 12, 13, 2, 3, 4, 5, 6, 7, 8)])
    assert span(Changes(Commit("3"), Commit("10")), log.history) == ("10", ["4", "5", "6", "7", "8", "9", "10"])
    assert span(Snapshot(minute(5)), log.history) == span(Snapshot(minute(8)), log.history) == ("3", None)
    assert span(Snapshot(minute(13)), log.history) == ("12", None)
    files = log.files(span_of(Snapshot(), log.history, NOW))
    assert [file.at for file in files] == [version.at for version in log.history.versions], "as --at has it"


def test_commits_of_one_time_are_told_apart_by_their_order() -> None:
    history = History(tuple(Version(name, minute(1)) for name in ("a", "b", "c")))
    assert span(Changes(Commit("a"), Commit("b")), history) == ("b", ["b"])
    assert span(Changes(Commit("b"), Commit("b")), history) == (None, [])
    with pytest.raises(SettingsError, match="--until is before --since"):
        span(Changes(Commit("c"), Commit("a")), history)
    with pytest.raises(SettingsError, match="--until is before --since"):
        comparison_of(NetChanges(Commit("b"), Commit("a")), history, NOW)


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
