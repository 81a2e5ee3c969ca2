"""What may be asked, and what the options on the command line make of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeAlias

from lakestream.errors import SettingsError
from lakestream.query.moments import Moment, parse_moment

if TYPE_CHECKING:
    from lakestream.storage import StoreSettings

TABLE = "lake"
"""What the table is called in SQL, whichever it is: the same statement goes for Hudi and for JSON."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows as they are, or as they were seen at a moment."""

    at: Moment | None = None


@dataclass(frozen=True, slots=True)
class ReadOptimized:
    """The rows of the base files alone: cheaper, and as old as the last compaction."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows that commits of a span have written, as the last of these commits has left them."""

    since: Moment
    """The commits after the one that was the newest at this moment."""
    until: Moment | None = None
    """Up to the one that was the newest at this moment; None: to the last one."""


@dataclass(frozen=True, slots=True)
class NetChanges:
    """What is another row at the end of a span than at its beginning: inserted, updated and deleted ones."""

    since: Moment
    """The table as it was seen at this moment."""
    until: Moment | None = None
    """And at this one; None: as it is."""


Question: TypeAlias = Snapshot | ReadOptimized | Changes | NetChanges


def names_a_time(question: Question) -> bool:
    """Whether it is about a time, and not about commits by their names."""
    moments = (getattr(question, name, None) for name in ("at", "since", "until"))
    return any(isinstance(moment, datetime) for moment in moments)


class Engine(StrEnum):
    """What may answer."""

    AUTO = "auto"
    NATIVE = "native"
    SPARK = "spark"


@dataclass(frozen=True, slots=True)
class SparkRun:
    """How Spark is asked."""

    on_cluster: bool = False
    """By the master that spark-submit was given, and not in a JVM of this machine."""
    to: StoreSettings | None = None
    """Where its tasks write the rows, as Parquet; None: they come here."""


@dataclass(frozen=True, slots=True)
class Asked:
    """All that an answer depends on, beside the table."""

    question: Question
    sql: str | None
    """None: all columns but those of Hudi and of LakeStream itself."""
    limit: int | None
    """Rows at most."""
    now: datetime


def ask(
    at: str | None,
    since: str | None,
    until: str | None,
    *,
    changes: bool = False,
    read_optimized: bool = False,
    now: datetime,
) -> Question:
    """The question that options stand for.

    Raises:
        SettingsError: an option is no moment, or does not go with the others.
    """
    given = [name for name, value in (("--at", at), ("--since", since), ("--read-optimized", read_optimized)) if value]
    if len(given) > 1:
        raise SettingsError(f"{' and '.join(given)} are different questions: give one of them")
    if until is not None and since is None:
        raise SettingsError("--until goes with --since, as the end of a span; for the table as it was then, give --at")
    if changes and since is None:
        raise SettingsError("--changes goes with --since: what is another row now than it was then?")
    if read_optimized:
        return ReadOptimized()
    if since is not None:
        span = moment_of("--since", since, now), None if until is None else moment_of("--until", until, now)
        return NetChanges(*span) if changes else Changes(*span)
    return Snapshot(None if at is None else moment_of("--at", at, now))


def moment_of(option: str, text: str, now: datetime) -> Moment:
    """The moment that an option names.

    Raises:
        SettingsError: none; names the option.
    """
    try:
        return parse_moment(text, now)
    except SettingsError as error:
        raise SettingsError(f"{option}: {error}") from None
