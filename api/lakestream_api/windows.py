"""Times of a schedule: when a cron expression begins, and whether a moment lies within."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from lakestream_api.base import ApiModel
from lakestream_api.cel import rule, rules, text_schema
from lakestream_api.quantities import PositiveDuration, format_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five fields: a list of `*`, `a` and `a-b`, each with an optional `/step`."""

    name: str
    low: int
    high: int
    number: str
    """Regular expression of a number in the field, which the API server uses as well."""
    words: tuple[str, ...] = ()
    """Names of the numbers from `low` on."""

    @property
    def part(self) -> str:
        one = "|".join([self.number, *self.words])
        return rf"(\*|({one})(-({one}))?)(/([1-9][0-9]?))?"

    def values(self, text: str) -> frozenset[int]:
        """The numbers that the field names.

        Raises:
            ValueError: it is not one of its kind.
        """
        found: set[int] = set()
        for part in text.split(","):
            match = re.fullmatch(self.part, part)
            span, first, last, step = match.group(1, 2, 4, 6) if match else ("", "", "", "")
            start = self._number(first) if first else self.low
            end = self._number(last) if last else self.high if step or span == "*" else start
            if last in self.words and end < start and end + len(self.words) <= self.high:
                end += len(self.words)  # Sunday is 0, and 7 as well: sat-sun
            if match is None or start > end:
                raise ValueError(
                    f"{part!r} names no {self.name}; write {self.low} to {self.high}, as in *, 5, 1-3 or */2"
                )
            found.update(range(start, end + 1, int(step or 1)))
        return frozenset(found)

    def _number(self, text: str) -> int:
        return self.low + self.words.index(text) if text in self.words else int(text)


_FIELDS = (
    _Field("minute", 0, 59, "[0-5]?[0-9]"),
    _Field("hour", 0, 23, "[01]?[0-9]|2[0-3]"),
    _Field("day of month", 1, 31, "0?[1-9]|[12][0-9]|3[01]"),
    _Field("month", 1, 12, "0?[1-9]|1[0-2]", _MONTHS),
    _Field("day of week", 0, 7, "[0-7]", _DAYS),
)
_CRON_CEL = r"\s+".join(f"{field.part}(,{field.part})*" for field in _FIELDS)
_MOST = 128
"""Characters."""
_LONGEST = timedelta(days=7)
_DAYS_OF_MONTH = dict(enumerate((31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31), start=1))
"""At most."""


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
        values = [field.values(part) for part, field in zip(parts, _FIELDS, strict=True)]
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
            # From the latest on: asked for each window at every evaluation, it may name each minute.
            hours, minutes = sorted(self.hours, reverse=True), sorted(self.minutes, reverse=True)
            times = (day + timedelta(hours=hour, minutes=minute) for hour in hours for minute in minutes)
            if latest := next((time for time in times if time <= now), None):
                return latest if latest > now - within else None
        return None

    @property
    def comes(self) -> bool:
        """Whether there is a time that the expression names: there is no 30th of February."""
        # Where either field of the days may say so, each week has one of its days.
        return min(self.days) <= max(_DAYS_OF_MONTH[month] for month in self.months) or not (
            self.any_day or self.any_weekday
        )

    def _has(self, day: datetime) -> bool:
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        either = in_month and in_week if self.any_day or self.any_weekday else in_month or in_week
        return day.month in self.months and either


_parse = lru_cache(maxsize=256)(Cron.parse)


def _cron(text: str) -> str:
    _parse(text)
    return text


def _at_most_a_week(value: timedelta) -> timedelta:
    if value > _LONGEST:
        raise ValueError(f"is {format_duration(value)}; give at most {format_duration(_LONGEST)}, a week")
    return value


class _Window(ApiModel):
    """A time that comes again and again."""

    cron: Annotated[
        str,
        AfterValidator(_cron),
        Field(max_length=_MOST),
        WithJsonSchema(
            text_schema(
                rule(
                    f"self.matches(r'^(?i)\\s*{_CRON_CEL}\\s*$')",
                    "write five fields: minute, hour, day of month, month and day of week, as in 0 22 * * 1-5",
                ),
                most=_MOST,
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

    @property
    def comes(self) -> bool:
        """Whether it ever begins."""
        return _parse(self.cron).comes

    def until(self, now: datetime) -> datetime | None:
        """The end of the window that `now` lies in; None if it lies in none."""
        start = _parse(self.cron).last(now, self.duration)
        return start + self.duration if start else None


class ExcludedWindow(_Window):
    """A time at which the number of executors stays as it is; it comes again and again."""


class ScheduledExecutors(_Window):
    """A time at which there are so many executors at least; it comes again and again."""

    executors: int = Field(ge=1, le=10_000)
    """Executors to have by its beginning, and until its end: `maxExecutors` at most."""
