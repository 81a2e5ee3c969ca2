"""Moments as people type them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from lakestream.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit by the name that the table has for it: an instant of Hudi's timeline, or the number of a batch."""

    name: str


Moment: TypeAlias = datetime | Commit
"""A time, in UTC, or a commit."""

_UNITS = {
    name: unit
    for unit, names in {
        "milliseconds": ("ms",),
        "seconds": ("s", "sec", "secs", "second", "seconds"),
        "minutes": ("m", "min", "mins", "minute", "minutes"),
        "hours": ("h", "hour", "hours"),
        "days": ("d", "day", "days"),
        "weeks": ("w", "week", "weeks"),
    }.items()
    for name in names
}
_SPAN = re.compile(r"(\d+)\s*([a-z]+)\s*(?:and\s+)?")
_INSTANT = re.compile(r"\d{17}|\d{14}")
_BATCH = re.compile(r"batch\s*(\d+)")
_UTC = re.compile(r" ?UTC$")
"""As we show times."""
_DAY = re.compile(r"(today|yesterday)(?:\s+(\d{1,2}:\d{2}(?::\d{2})?))?")
FORMS = (
    "'10 minutes ago', '1h30m ago', now, today, 'yesterday 12:00', 2026-11-01, 2026-11-01T12:00Z "
    "(UTC without an offset), an instant of the table such as 20261101120000123, or 'batch 17'"
)


def parse_moment(text: str, now: datetime) -> Moment:
    """Read a moment; times without an offset are in UTC.

    Args:
        text: one of `FORMS`, in any case.
        now: what `ago` counts from.

    Raises:
        SettingsError: none of the forms.
    """
    given = " ".join(text.lower().split())
    if _INSTANT.fullmatch(given):
        return Commit(given)
    try:
        if match := _BATCH.fullmatch(given):
            return Commit(str(int(match[1])))
        found = _relative(given, now) or _of_day(given, now) or datetime.fromisoformat(_UTC.sub("Z", given.upper()))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise SettingsError(f"{text!r} is no moment: give {FORMS}") from None


def _relative(given: str, now: datetime) -> datetime | None:
    if given == "now":
        return now
    span = given.removesuffix(" ago")
    if span == given:
        return None
    past, end = timedelta(0), 0
    while end < len(span) and (match := _SPAN.match(span, end)):
        if match[2] not in _UNITS:
            raise ValueError(match[2])
        past += timedelta(**{_UNITS[match[2]]: int(match[1])})
        end = match.end()
    if end == 0 or end < len(span):
        raise ValueError(given)
    return now - past


def _of_day(given: str, now: datetime) -> datetime | None:
    match = _DAY.fullmatch(given)
    if match is None:
        return None
    day = (now - timedelta(days=match[1] == "yesterday")).date()
    hour, _, rest = (match[2] or "00:00").partition(":")
    return datetime.fromisoformat(f"{day}T{hour:0>2}:{rest}")
