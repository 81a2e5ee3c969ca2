"""Synthetic events of an order system: pure, and reproducible from a seed.

An order is inserted, updated any number of times with a rising ``version``, and perhaps deleted; nothing
follows its delete. Some updates are *late*: they keep the time and version they were made with, but are
handed out after newer ones. Some events are *malformed*: no reader can parse them, but the bytes
``"event_id":"…"`` stay legible so that the audit can find them in quarantine.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime

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
_new_record = tuple.__new__  # skips Record's own constructor: half the cost of building one
# By version; JSON as it stands in an event between version and customer.
_UPDATES = ("", *(f',"op":"u","status":"{status}' for status in ("created", "paid", "packed", "shipped", "delivered")))
_INSERTED = ',"op":"i","status":"created'
_DELETED = ',"op":"d","status":"cancelled'
_RETURNED = ',"op":"u","status":"returned'
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
_INSERT, _DELETE, _LATE, _MALFORMED, _UPDATE = range(5)


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
        if self.max_lateness < 0 or self.zipf < 0:
            raise SettingsError("max_lateness and zipf must not be negative")
        if self.customers < 1 or self.max_live < 1:
            raise SettingsError("customers and max_live must be at least 1")


class _Order:
    """An order that can still change. Small, for there are many, and to touch one is to miss the CPU's caches."""

    __slots__ = ("created_at", "customer", "held", "number", "version")

    def __init__(self, number: int, customer: int, created_at: str) -> None:
        self.number = number
        self.customer = customer
        self.created_at = created_at
        self.version = 1
        self.held = 0  # late events of this order that are still to be handed out


def iso_timestamp(now: float) -> str:
    """ISO-8601 in UTC with milliseconds, e.g. ``2026-01-31T23:59:59.007Z``."""
    moment = datetime.fromtimestamp(round(now * 1000) / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class OrderEvents:
    """The events of one producer. The same seed, worker, prefix, mix and calls give the same bytes."""

    def __init__(self, *, seed: int, worker: int, prefix: str, mix: EventMix) -> None:
        self._mix = mix
        self._prefix = prefix
        self._random = np.random.Generator(np.random.PCG64([seed, worker]))
        # Popularity must be the same on all workers, or hot keys would even out; hence no draw here.
        ranks = np.arange(1, mix.customers + 1, dtype=np.float64) ** -mix.zipf
        self._popularity = np.cumsum(ranks / ranks.sum())
        self._bounds = np.cumsum([mix.inserts, mix.deletes, mix.late, mix.malformed])
        cents = self._random.integers(100, 1_000_000, _BLOCK).tolist()
        self._amounts = [f"{amount // 100}.{amount % 100:02d}" for amount in cents]
        self._live: list[_Order] = []
        self._late: list[tuple[float, int, Record, _Order]] = []
        self._events = 0
        self._orders = 0
        self._at = _BLOCK
        self._customers_left: list[int] = []
        self._now = -1.0
        self._stamp = ""
        self._ends: list[str] = []

    def take(self, count: int, now: float) -> list[Record]:
        """The next ``count`` events at ``now`` (seconds since the epoch): late ones that are due come first."""
        if now != self._now:
            self._now = now
            self._stamp = iso_timestamp(now)
            self._ends = [f'{self._stamp}","note":"{note}"}}' for note in _NOTES]
        taken: list[Record] = []
        while self._late and self._late[0][0] <= now and len(taken) < count:
            _, _, record, order = heapq.heappop(self._late)
            order.held -= 1
            taken.append(record)
        while len(taken) < count:
            record_or_held = self._next()
            if record_or_held is not None:
                taken.append(record_or_held)
        return taken

    def _next(self) -> Record | None:
        """Make one event; None when it is a late one, held back until it is due."""
        at = self._at
        if at == _BLOCK:
            self._kinds = np.searchsorted(self._bounds, self._random.random(_BLOCK), side="right").tolist()
            self._picks = self._random.random(_BLOCK).tolist()
            at = 0
        self._at = at + 1
        kind = self._kinds[at]
        live = self._live
        if kind == _MALFORMED:
            return self._malformed(self._picks[at])
        if kind == _INSERT or not live:
            return self._insert(self._picks[at])
        index = int(self._picks[at] * len(live))
        order = live[index]
        version = order.version = order.version + 1
        # A delete is its order's last event, so not while a late update is still to come.
        if kind == _DELETE and not order.held:
            live[index] = live[-1]
            live.pop()
            return self._record(order, _DELETED, True)
        record = self._record(order, _UPDATES[version] if version < 6 else _RETURNED, False)
        if kind != _LATE:
            return record
        order.held += 1
        # Drawn from the bits of `picks` that the choice of the order has not used up.
        lateness = self._picks[at] * len(live) % 1.0 * self._mix.max_lateness
        heapq.heappush(self._late, (self._now + lateness, self._events, record, order))
        return None

    def _insert(self, pick: float) -> Record:
        order = self._new_order()
        if len(self._live) < self._mix.max_live:
            self._live.append(order)
        else:
            self._live[int(pick * len(self._live))] = order
        return self._record(order, _INSERTED, False)

    def _new_order(self) -> _Order:
        self._orders += 1
        if not self._customers_left:
            drawn = np.searchsorted(self._popularity, self._random.random(_BLOCK), side="right")
            self._customers_left = np.minimum(drawn, self._mix.customers - 1).tolist()
        return _Order(self._orders, self._customers_left.pop(), self._stamp)

    def _record(self, order: _Order, op_and_status: str, last: bool) -> Record:
        number = self._events = self._events + 1
        event_id = f"{self._prefix}-{number}"
        order_id = f"{self._prefix}-o{order.number}"
        customer_id = f"c{order.customer}"
        text = (
            f'{{"event_id":"{event_id}","order_id":"{order_id}","version":{order.version}{op_and_status}'
            f'","customer_id":"{customer_id}","amount":{self._amounts[number & 4095]},'
            f'"created_at":"{order.created_at}","updated_at":"{self._ends[number & 7]}'
        )
        return _new_record(Record, (event_id, customer_id, text.encode(), False, order_id, last))

    def _malformed(self, pick: float) -> Record:
        """An insert of an order that never lives, broken in one of four ways."""
        good = self._record(self._new_order(), _INSERTED, False)
        match int(pick * 4):
            case 0:  # cut off
                data = good.data[:-12]
            case 1:  # not UTF-8
                data = good.data[:-2] + b'\xff\xfe"}'
            case 2:  # does not match the schema
                data = good.data.replace(b'"version":1,', b'"version":"first",')
            case _:  # not JSON
                data = b"order " + good.data
        return good._replace(data=data, malformed=True)
