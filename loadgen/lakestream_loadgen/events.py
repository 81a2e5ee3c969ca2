"""Synthetic events of an order system: pure, and reproducible from a seed.

An order is inserted, updated any number of times with a rising ``version``, and perhaps deleted; nothing
follows its delete. Some updates are *late*: they keep the time and version they were made with, but are
handed out after newer ones; a delete waits for them. Some events are *malformed*: no reader can parse them, but
the bytes ``"event_id":"…"`` stay legible so that the audit can find them in quarantine.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

import numpy as np

from lakestream_loadgen.errors import SettingsError
from lakestream_loadgen.records import Record

EVENT_DDL = (
    "event_id string, order_id string, version long, op string, status string, customer_id string, "
    "amount double, created_at timestamp, updated_at timestamp, note string"
)
"""Schema of the events, as the LakeStream document takes it."""

_BLOCK = 4096
"""Random numbers drawn at a time."""
_PICKS = 1 << 30
"""Picks are integers below this: small enough for the quick arithmetic of Python's shortest ones."""
_MOST_LATE = 0.9
"""Share of late events. For each event that is sent at once, `late / (1 - late)` are made and held back: with 1 there
is no end of them, and little below it they fill the memory."""
_new_record = tuple.__new__  # skips Record's own constructor: half the cost of building one
# JSON as it stands in an event from the version's value to the status. Updates by version.
_INSERTED = '1,"op":"i","status":"created'
_UPDATES = tuple(
    f'{version},"op":"u","status":"{status}'
    for version, status in enumerate(("", "created", "paid", "packed", "shipped", "delivered"))
)
_RETURNED = ',"op":"u","status":"returned'
_DELETED = ',"op":"d","status":"cancelled'
# Without quotes, backslashes and control characters, so that a field is its own JSON text; with characters
# beyond ASCII, so that a reader that mixes up encodings is found out.
_NOTES = (
    "ring twice",
    "leave with the neighbour on the left",
    "Grüße an die Nachbarn, bitte nicht stürzen",
    "gift wrap, card: 誕生日おめでとう",
    "deliver after 18:00, gate code at reception",
    "second floor, the blue door",
    "fragile – handle with care",
    "no note",
)


# Kinds of events, in the order of the cumulated shares; plain integers, for an Enum's members cost a look-up.
_INSERT, _MALFORMED, _DELETE, _LATE, _UPDATE = range(5)


@dataclass(frozen=True)
class EventMix:
    """Shares of the kinds of events (the rest are punctual updates), and how keys are spread."""

    inserts: float = 0.3
    deletes: float = 0.1
    late: float = 0.01
    malformed: float = 0.001
    max_lateness: float = 60.0
    """Seconds; lateness is uniform between 0 and this."""
    customers: int = 100_000
    """Number of partition keys: an order's key is its customer, so its events stay in one shard."""
    zipf: float = 0.0
    """Exponent of the customers' popularity: 0 is uniform; 1.2 sends some 15 % of all events to one key."""
    max_live: int = 100_000
    """Orders that can still change; beyond it a new order takes the place of one that is then left alone."""

    def __post_init__(self) -> None:
        for name in ("inserts", "deletes", "late", "malformed"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise SettingsError(f"{name}: {share} is not a share between 0 and 1")
        if self.inserts + self.deletes + self.late + self.malformed > 1 + 1e-9:
            raise SettingsError("inserts, deletes, late and malformed: the shares add up to more than 1")
        if self.late > _MOST_LATE:
            raise SettingsError(f"late: {self.late} is more than {_MOST_LATE}: some events have to be there in time")
        if self.max_lateness < 0 or self.zipf < 0:
            raise SettingsError("max_lateness and zipf must not be negative")
        if self.customers < 1 or self.max_live < 1:
            raise SettingsError("customers and max_live must be at least 1")


class _Order:
    """An order that can still change. Small, for there are many, and to touch one is to miss the CPU's caches."""

    __slots__ = ("created_at", "customer_id", "late_until", "order_id", "version")

    def __init__(self, order_id: str, customer_id: str, created_at: str) -> None:
        self.order_id = order_id
        self.customer_id = customer_id
        self.created_at = created_at
        self.version = 1
        self.late_until = 0.0  # when the last of its late events is due


def iso_timestamp(now: float) -> str:
    """ISO-8601 in UTC with milliseconds, e.g. ``2026-01-31T23:59:59.007Z``."""
    moment = datetime.fromtimestamp(round(now * 1000) / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class OrderEvents:
    """The events of one producer. The same seed, worker, prefix, mix and calls give the same bytes.

    Calls at other times give the same events but for their times, and for where late ones come.
    """

    def __init__(self, *, seed: int, worker: int, prefix: str, mix: EventMix) -> None:
        self._mix = mix
        self._prefix = f"{prefix}-"
        self._random = np.random.Generator(np.random.PCG64([seed, worker]))
        # Popularity must be the same on all workers, or hot keys would even out; hence no draw here.
        ranks = np.arange(1, mix.customers + 1, dtype=np.float64) ** -mix.zipf
        self._popularity = np.cumsum(ranks / ranks.sum())
        self._bounds = np.cumsum([mix.inserts, mix.malformed, mix.deletes, mix.late])
        cents = self._random.integers(100, 1_000_000, _BLOCK).tolist()
        self._amounts = [f"{amount // 100}.{amount % 100:02d}" for amount in cents]
        self._live: list[_Order] = []
        self._late: list[tuple[float, int, Record]] = []
        self._events = 0
        self._orders = 0
        self._drawn: Iterator[tuple[int, int]] = iter(())
        self._customers: list[int] = []
        self._now = -1.0
        self._stamp = ""
        self._ends: list[bytes] = []

    def take(self, count: int, now: float) -> list[Record]:
        """The next ``count`` events at ``now`` (seconds since the epoch): late ones that are due come first."""
        if now != self._now:
            self._now = now
            self._stamp = iso_timestamp(now)
            self._ends = [f'","updated_at":"{self._stamp}","note":"{note}"}}'.encode() for note in _NOTES]
        taken: list[Record] = []
        while self._late and self._late[0][0] <= now and len(taken) < count:
            taken.append(heapq.heappop(self._late)[2])
        while len(taken) < count:
            drawn = list(islice(self._drawn, count - len(taken)))
            if drawn:
                taken += self._make(drawn)
            else:
                self._drawn = self._draw()
        return taken

    def _draw(self) -> Iterator[tuple[int, int]]:
        """Kinds of events, each with a number that all else about the event is picked by."""
        kinds = np.searchsorted(self._bounds, self._random.random(_BLOCK), side="right").tolist()
        return zip(kinds, self._random.integers(_PICKS, size=_BLOCK).tolist(), strict=True)

    def _make(self, drawn: Iterable[tuple[int, int]]) -> list[Record]:
        """One event for each of ``drawn``, without the late ones: they are held back until they are due.

        In one loop with all it needs in local names, and with ids made with their order: that saves a quarter
        of the time of events made in a call each.
        """
        live, amounts, ends, prefix = self._live, self._amounts, self._ends, self._prefix
        number = self._events
        made: list[Record] = []
        for kind, pick in drawn:
            number += 1
            last = late = False
            if kind <= _MALFORMED or not live:
                order = self._new_order()
                change = _INSERTED
                if kind != _MALFORMED:
                    self._add(order, pick)
            else:
                index = pick % len(live)
                order = live[index]
                version = order.version = order.version + 1
                if kind == _DELETE:
                    live[index] = live[-1]
                    live.pop()
                    last = True
                    change = f"{version}{_DELETED}"
                else:
                    late = kind == _LATE
                    change = _UPDATES[version] if version < 6 else f"{version}{_RETURNED}"
            event_id = f"{prefix}{number}"
            order_id, customer_id = order.order_id, order.customer_id
            text = (
                f'{{"event_id":"{event_id}","order_id":"{order_id}","version":{change}'
                f'","customer_id":"{customer_id}","amount":{amounts[number & 4095]},"created_at":"{order.created_at}'
            )
            # The end is bytes already: text with characters beyond ASCII takes twice as long to put together.
            data = text.encode() + ends[number & 7]
            record = _new_record(Record, (event_id, customer_id, data, False, order_id, last))
            if late:
                self._hold(record, order, number, pick)
            elif last and order.late_until >= self._now:
                # A delete is its order's last event: behind the late one that is due at the same time.
                heapq.heappush(self._late, (order.late_until, number, record))
            else:
                made.append(_malformed(record, pick) if kind == _MALFORMED else record)
        self._events = number
        return made

    def _new_order(self) -> _Order:
        self._orders += 1
        if not self._customers:
            drawn = np.searchsorted(self._popularity, self._random.random(_BLOCK), side="right")
            self._customers = np.minimum(drawn, self._mix.customers - 1).tolist()
        return _Order(f"{self._prefix}o{self._orders}", f"c{self._customers.pop()}", self._stamp)

    def _add(self, order: _Order, pick: int) -> None:
        if len(self._live) < self._mix.max_live:
            self._live.append(order)
        else:
            self._live[pick % len(self._live)] = order

    def _hold(self, record: Record, order: _Order, number: int, pick: int) -> None:
        # Of `pick`, what the choice of the order has not used up.
        lateness = pick // len(self._live) * len(self._live) / _PICKS * self._mix.max_lateness
        due = self._now + lateness
        order.late_until = max(order.late_until, due)
        heapq.heappush(self._late, (due, number, record))


def _malformed(good: Record, pick: int) -> Record:
    """A good event of an order that never lives, broken in one of four ways."""
    match pick % 4:
        case 0:  # cut off
            data = good.data[:-12]
        case 1:  # not UTF-8
            data = good.data[:-2] + b'\xff\xfe"}'
        case 2:  # does not match the schema
            data = good.data.replace(b'"version":1,', b'"version":"first",')
        case _:  # not JSON
            data = b"order " + good.data
    return good._replace(data=data, malformed=True)
