"""Good records: versions of things that are made, changed and deleted, in and out of order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from random import Random

SCHEMA = (
    "id string NOT NULL, site string NOT NULL, day string, version bigint NOT NULL, op string NOT NULL, "
    "amount decimal(12,2), at timestamp, place struct<room: bigint, open: boolean, names: map<string, string>>, "
    "tags array<string>, note string NOT NULL"
)
RELAXED_SCHEMA = (
    SCHEMA.removesuffix(" NOT NULL").replace("decimal(12,2)", "decimal(13,2)").replace("room:", "level: int, room:")
    + ", extra string"
)
"""What a person may make of it while no driver runs: a note may be missing, amounts and places have room for more, and
`extra` gets a column."""
KEY = ("id", "site")
ORDERING = "version"
PARTITION = "day"
DELETES = "op = 'd'"

_DAYS = ("2026-01-30", "2026-01-31", "a=b/c %25", "ä", "ö")
_EPOCH = datetime(2026, 1, 31, tzinfo=UTC)
_NOTES = ("", "Grüße, 世界 🙂", 'a "quoted", \\ back\\slashed\nline', "\u0000\u0007\u2028", "null", "-0", "x" * 2000)
_PLACES: tuple[Mapping[str, object] | None, ...] = (
    None,
    {},
    {"room": -(2**63), "open": True, "names": {"de": "Küche", "a.b": "", "null": "null"}},
    {"names": {}},
    {"room": 2**53 + 1, "open": False},
)
_TAGS: tuple[tuple[str, ...] | None, ...] = (None, (), ("",), ("x", "x", 'a "quoted" one'), ("🙂",) * 30)
_LIVE = 60
"""Keys that are changed; more, and a delete hardly ever meets a late version."""

LATEST = timedelta(minutes=50)
"""By which a version may come after a newer one, by the stream's clock, which hours of silence set forward: tables
remember deletes for an hour of it (docs/hudi.md)."""

Row = Mapping[str, object]
"""Columns by name: text, int, Decimal as text, times as microseconds since the epoch; what is nested is `bare`."""


class Fate(Enum):
    """What has to become of a record."""

    ROW = "row"
    QUARANTINE = "quarantine"
    EITHER = "either"
    """A row that says what the record says, or in quarantine with its bytes: exactly one of them."""
    LEFT_OUT = "left out"
    """Of another table: neither of them."""

    @property
    def may_be_row(self) -> bool:
        return self in (Fate.ROW, Fate.EITHER)

    @property
    def may_be_quarantined(self) -> bool:
        return self in (Fate.QUARANTINE, Fate.EITHER)


@dataclass(frozen=True)
class Sent:
    """A user record, and what has to become of it."""

    kind: str
    partition_key: str
    data: bytes
    fate: Fate
    row: Row | None
    """What a table has of it; None where nothing may be in it."""
    since: datetime | None = None
    """From when on newer versions may have come, by the stream's clock; None: there are none."""

    def is_too_late(self, now: datetime) -> bool:
        """Whether tables may have forgotten that its key was deleted."""
        return self.since is not None and now - self.since >= LATEST


@dataclass(frozen=True)
class Event:
    """One version of a thing."""

    id: str
    site: str
    day: str
    version: int
    op: str
    amount: str
    at: str
    place: Mapping[str, object] | None
    tags: tuple[str, ...] | None
    note: str
    extra: str | None = None

    def fields(self) -> dict[str, object]:
        """The JSON object; the amount is a number in it."""
        fields: dict[str, object] = {**self.__dict__, "amount": Digits(self.amount)}
        if self.extra is None:
            del fields["extra"]
        return fields

    def row(self) -> Row:
        return {**self.__dict__, "at": micros(self.at), "place": bare(self.place), "tags": bare(self.tags)}

    def json(self) -> bytes:
        return encoded(self.fields())

    def sent(self, kind: str = "event", data: bytes | None = None) -> Sent:
        """What a producer sends of it; `data` if it does not send JSON."""
        return Sent(kind, self.id, self.json() if data is None else data, Fate.ROW, self.row())


class Digits(float):
    """A number that JSON has with these very digits, and equal to no other one."""

    def __new__(cls, digits: str) -> Digits:
        made = super().__new__(cls, digits)
        made.digits = digits
        return made

    digits: str

    def __repr__(self) -> str:
        return self.digits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Digits) and self.digits == other.digits

    def __hash__(self) -> int:
        return hash(self.digits)


def encoded(fields: Mapping[str, object]) -> bytes:
    """As JSON; `json` writes a float by its own `__repr__` only without the C encoder, so the digits go in by hand."""
    parts = (
        f"{json.dumps(name)}:{repr(value) if isinstance(value, Digits) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
    )
    return ("{" + ",".join(parts) + "}").encode()


def bare(value: object) -> object:
    """A nested value without the fields of structs that are null: JSON leaves them out, tables do not."""
    if isinstance(value, Mapping):
        return {name: bare(one) for name, one in value.items() if one is not None}
    return [bare(one) for one in value] if isinstance(value, list | tuple) else value


def micros(text: str) -> int:
    """Microseconds since the epoch of an ISO time."""
    return epoch_micros(datetime.fromisoformat(text))


def epoch_micros(time: datetime) -> int:
    """Microseconds since the epoch."""
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class Events:
    """An endless supply; the same for the same seed, but for versions that would come too late.

    Args:
        chance: the seed.
        moves: whether a change may bring a thing into another partition.
        data: what is sent of an event.
    """

    def __init__(self, chance: Random, *, moves: bool = False, data: Callable[[Event], bytes] = Event.json) -> None:
        self._chance = chance
        self._data = data
        self._moves = moves
        self._made = 0
        self._live: list[Event] = []
        self._late: list[tuple[datetime, Event]] = []
        """With the time from which on newer ones have come."""

    def fresh(self) -> Event:
        """The first version of a thing that nobody else changes."""
        self._made += 1
        chance = self._chance
        return Event(
            id=f"t{self._made:07d}",
            site=chance.choice(("north", "south")),
            day=chance.choice(_DAYS),
            version=1,
            op="c",
            amount=f"{chance.randrange(-(10**6), 10**9)}.{chance.randrange(100):02d}",
            at=(_EPOCH + timedelta(microseconds=chance.randrange(10**11))).isoformat(),
            place=chance.choice(_PLACES),
            tags=chance.choice(_TAGS),
            note=chance.choice(_NOTES),
            extra=chance.choice((None, None, None, "more")),
        )

    def take(self, number: int, now: datetime) -> Iterator[Sent]:
        """So many records: creations, changes, deletes, and some that come late, after a newer version or a delete.

        Args:
            number: of records.
            now: by the stream's clock.
        """
        for _ in range(number):
            event, since = self._next(now)
            yield replace(event.sent(data=self._data(event)), since=since)

    def _next(self, now: datetime) -> tuple[Event, datetime]:
        """An event, and from when on newer versions may come."""
        draw = self._chance.random()
        if self._late and draw < 0.12:
            since, event = self._late.pop(self._chance.randrange(len(self._late)))
            return (event, since) if now - since < LATEST else (self.fresh(), now)
        if len(self._live) < _LIVE or draw < 0.4:
            self._live.append(self.fresh())
            if len(self._live) <= _LIVE:
                return self._live[-1], now
            # It outgrows the number of those that live, so the one that was there longest is left alone.
            self._live.pop(0)
            return self._live[-1], now
        return self._change(now), now

    def _change(self, now: datetime) -> Event:
        place = self._chance.randrange(len(self._live))
        if self._live[place].op != "d" and self._chance.random() < 0.1:
            # Changed without another version: what comes last counts.
            self._live[place] = self._changed(place, self._live[place].version, "u")
            return self._live[place]
        version = self._live[place].version + 1
        if self._chance.random() < 0.3:
            # Comes later, maybe after a newer one: it must change nothing then.
            self._late.append((now, self._changed(place, version, self._chance.choice("ud"))))
            version += 1
        event = self._changed(place, version, "d" if self._chance.random() < 0.25 else "u")
        self._live[place] = event
        return event

    def _changed(self, place: int, version: int, op: str) -> Event:
        before = self._live[place]
        moved = self._moves and self._chance.random() < 0.3
        return Event(
            **{
                **before.__dict__,
                "day": self._chance.choice(_DAYS) if moved else before.day,
                "version": version,
                "op": op,
                "amount": f"{self._chance.randrange(10**9)}.{self._chance.randrange(100):02d}",
                "place": self._chance.choice(_PLACES),
                "tags": self._chance.choice(_TAGS),
                "note": self._chance.choice(_NOTES),
            }
        )
