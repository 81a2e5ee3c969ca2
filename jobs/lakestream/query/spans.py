"""Which versions of a table a question is about. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakestream.errors import SettingsError
from lakestream.query.history import History, Version
from lakestream.query.question import Changes, NetChanges, ReadOptimized, Snapshot


@dataclass(frozen=True, slots=True)
class Span:
    """The answer is the table as of `last`; of changes, the rows in it that `commits` wrote."""

    last: Version | None
    """None: the table has no commits, or none in the span; there are no rows."""
    commits: tuple[Version, ...] | None = None
    """Of changes; None: all rows."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two versions of a table, of which the answer is the difference."""

    before: Version | None
    """None: before its first commit."""
    after: Version | None
    """None: the table has no commits."""


def comparison_of(question: NetChanges, history: History, now: datetime) -> Comparison:
    """Find what is compared. Files of both versions are needed.

    Raises:
        SettingsError: they are not there (yet, or any more); the message says what is.
    """
    _require_commits(history)
    is_first = history.begins and isinstance(question.since, datetime) and question.since < history.versions[0].at
    before = None if is_first else history.as_of(question.since, "--since", now)
    after = history.newest() if question.until is None else history.as_of(question.until, "--until", now)
    order = history.versions.index
    if before is not None and after is not None and order(after) < order(before):
        raise SettingsError("--until is before --since: give the earlier moment to --since")
    return Comparison(before, after)


def span_of(question: Snapshot | ReadOptimized | Changes, history: History, now: datetime) -> Span:
    """Find what a question is about.

    Raises:
        SettingsError: it is about what is not there (yet, or any more); the message says what is.
    """
    match question:
        case Snapshot(at) if at is not None:
            _require_commits(history)
            return Span(history.as_of(at, "--at", now))
        case Snapshot() | ReadOptimized():
            return Span(history.newest())
        case Changes(since, until):
            _require_commits(history)
            after = history.after(since, "--since", now)
            if until is None:
                return Span(after[-1] if after else None, after)
            last = history.as_of(until, "--until", now)
            # By their places: several may have one time.
            begin, end = len(history.versions) - len(after), history.versions.index(last) + 1
            if end < begin:
                raise SettingsError("--until is before --since: give the earlier moment to --since")
            commits = history.versions[begin:end]
            return Span(last if commits else None, commits)


def _require_commits(history: History) -> None:
    if not history.versions:
        raise SettingsError(f"{history.span}: nothing to look back to")
