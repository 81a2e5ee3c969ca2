"""Times of a schedule: when a cron expression begins, and whether a moment lies within."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from lakestream_api.base import ApiModel
from lakestream_api.cel import rule, rules, text_schema
from lakestream_api.quantities import PositiveDuration, format_duration

_FIELDS = (("minute", 0, 59), ("hour", 0, 23), ("day of month", 1, 31), ("month", 1, 12), ("day of week", 0, 7))
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
_DAYS = {name: number for number, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
_LONGEST = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, in UTC; a day counts if either of its two fields says so, as in cron."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    any_day: bool
    any_weekday: bool

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Read an expression such as `0 22 * * 1-5`.

        Raises:
            ValueError: it is none; the message names the field.
        """
        parts = text.lower().split()
        if len(parts) != len(_FIELDS):
            raise ValueError(f"{text!r} has {len(parts)} fields, not 5: minute, hour, day of month, month, day of week")
        values = [_values(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
        return cls(
            minutes=values[0],
            hours=values[1],
            days=values[2],
            months=values[3],
            weekdays=frozenset(day % 7 for day in values[4]),
            any_day=parts[2].startswith("*"),
            any_weekday=parts[4].startswith("*"),
        )

    def last(self, now: datetime, within: timedelta) -> datetime | None:
        """The last time at or before `now` that the expression names; None if there is none within that time."""
        now = now.astimezone(UTC)
        for back in range(within.days + 2):
            day = (now - timedelta(days=back)).replace(hour=0, minute=0, second=0, microsecond=0)
            if not self._has(day):
                continue
            times = (day + timedelta(hours=h, minutes=m) for h in self.hours for m in self.minutes)
            past = [time for time in times if now - within < time <= now]
            if past:
                return max(past)
        return None

    def _has(self, day: datetime) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        either = in_month and in_week if self.any_day or self.any_weekday else in_month or in_week
        return day.month in self.months and either


def _values(text: str, field: str, low: int, high: int) -> frozenset[int]:
    """The values of one field: a list of `*`, `a`, `a-b`, each with an optional `/step`."""
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        first, dash, last = span.partition("-")
        try:
            start, end = (
                (low, high) if span == "*" else (_number(first, field), _number(last if dash else first, field))
            )
            width = int(step) if slash else 1
        except ValueError:
            raise ValueError(f"{part!r} names no {field}; write {low} to {high}, as in *, 5, 1-3 or */2") from None
        if slash and not dash and span != "*":
            end = high
        if not low <= start <= end <= high or width < 1:
            raise ValueError(f"{part!r} names no {field}; write {low} to {high}, as in *, 5, 1-3 or */2")
        found.update(range(start, end + 1, width))
    return frozenset(found)


def _number(text: str, field: str) -> int:
    names = {"month": _MONTHS, "day of week": _DAYS}.get(field, {})
    return names[text] if text in names else int(text)


_parse = lru_cache(maxsize=256)(Cron.parse)


def _cron(text: str) -> str:
    _parse(text)
    return text


def _at_most_a_week(value: timedelta) -> timedelta:
    if value > _LONGEST:
        raise ValueError(f"is {format_duration(value)}; give at most {format_duration(_LONGEST)}, a week")
    return value


class ExcludedWindow(ApiModel):
    """A time that comes again and again."""

    cron: Annotated[
        str,
        AfterValidator(_cron),
        WithJsonSchema(
            text_schema(
                rule(
                    r"self.matches(r'^\s*([^\s]+\s+){4}[^\s]+\s*$')",
                    "write five fields: minute, hour, day of month, month and day of week, as in 0 22 * * 1-5",
                ),
                most=128,
            )
        ),
    ]
    """When it begins, in UTC: minute, hour, day of month, month and day of week, as in `0 22 * * 1-5`."""

    duration: Annotated[PositiveDuration, AfterValidator(_at_most_a_week)] = Field(
        json_schema_extra=rules(
            rule(
                "!self.matches('^([0-9]+(h|m|s|ms))+$') || duration(self) <= duration('168h')",
                "give at most 168h, a week",
            )
        )
    )
    """How long it is, at most a week."""

    def until(self, now: datetime) -> datetime | None:
        """The end of the window that `now` lies in; None if it lies in none."""
        start = _parse(self.cron).last(now, self.duration)
        return start + self.duration if start else None
