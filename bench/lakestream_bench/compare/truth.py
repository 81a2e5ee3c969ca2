"""What the right answers are, from the events alone: no engine, no table. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from lakestream_loadgen.audit import fold
from lakestream_loadgen.content import EVENT_SCHEMA

Answer = tuple[tuple[str, ...], ...]
"""Rows of a result, as text."""

BATCH = "_batch"
"""The column of the events that tells the batch, from 0."""

_AGO = 5
"""Batches that queries of the past go back: Hudi's defaults keep ten commits for them."""


@dataclass(frozen=True)
class Truth:
    """What was sent and acknowledged, and in which batch each event was read."""

    events: pa.Table
    """Columns of EVENT_SCHEMA, `_arrival` and `_sequence_number` as text, and BATCH."""

    def until(self, batch: int) -> State:
        """The orders once so many batches are visible."""
        return State(fold(self.events.filter(pc.less(self.events[BATCH], batch))))

    def raw(self, batch: int) -> State:
        """All events of so many batches, as if each were an order: what a table without keys has."""
        return State(self.events.filter(pc.less(self.events[BATCH], batch)))


@dataclass(frozen=True)
class State:
    """Rows of a table."""

    rows: pa.Table
    past: State | None = None
    """The table at the moment that changes are counted from."""

    @property
    def snapshot(self) -> pa.Table:
        """The columns of the event."""
        return self.rows.select(EVENT_SCHEMA.names)

    @cached_property
    def days(self) -> pa.ChunkedArray:
        return pc.strftime(self.rows["created_at"], format="%Y-%m-%d")

    def scan(self) -> Answer:
        """Every column of every row is read: their number, and a sum over each."""
        rows = self.rows
        texts = [name for name in EVENT_SCHEMA.names if pa.types.is_string(EVENT_SCHEMA.field(name).type)]
        letters = sum(_sum(pc.utf8_length(rows[name])) for name in texts)
        times = [_sum(_millis(rows[name])) for name in ("created_at", "updated_at")]
        return (_text(len(rows), letters, _sum(rows["version"]), _sum(_cents(rows)), *times),)

    def aggregate(self) -> Answer:
        """Number and value of the orders by status."""
        table = pa.table({"status": self.rows["status"], "cents": _cents(self.rows)})
        found = table.group_by("status").aggregate([("status", "count"), ("cents", "sum")]).sort_by("status")
        columns = (found[name].to_pylist() for name in ("status", "status_count", "cents_sum"))
        return tuple(_text(*row) for row in zip(*columns, strict=True))

    def lookup(self, order: str) -> Answer:
        """One order by its key, all its rows."""
        rows = self.rows.filter(pc.equal(self.rows["order_id"], order)).sort_by("version")
        columns = (rows["version"].to_pylist(), rows["status"].to_pylist(), _cents(rows).to_pylist())
        return tuple(_text(*row) for row in zip(*columns, strict=True))

    def partition(self, day: str) -> Answer:
        """Number and value of the orders of one day."""
        rows = self.rows.filter(pc.equal(self.days, day))
        return (_text(len(rows), _sum(_cents(rows))),)

    def changed_since(self, batch: int) -> Answer:
        """Number of the orders whose row came after so many batches, and the sum of their versions."""
        rows = self.rows.filter(pc.greater_equal(self.rows[BATCH], batch))
        return (_text(len(rows), _sum(rows["version"])),)

    def changes(self) -> Answer:
        """Number of the orders that were inserted, updated or deleted since, and the sums of both versions."""
        assert self.past is not None
        old, new = self.past._versions, self._versions
        found = {
            "delete": old.keys() - new.keys(),
            "insert": new.keys() - old.keys(),
            "update": {order for order in old.keys() & new.keys() if old[order] != new[order]},
        }
        return tuple(
            _text(op, len(orders), sum(old.get(one, 0) for one in orders), sum(new.get(one, 0) for one in orders))
            for op, orders in found.items()
            if orders
        )

    @property
    def _versions(self) -> dict[str, int]:
        return dict(zip(self.rows["order_id"].to_pylist(), self.rows["version"].to_pylist(), strict=True))


class WrongAnswerError(Exception):
    """A table does not say what was sent; its figures are worth nothing."""


@dataclass(frozen=True)
class Staleness:
    """How far a view that may lag is behind the table."""

    batches: int
    """Since the oldest change that it does not show; 0: it shows all."""
    orders: float
    """Those that it shows as they are not any more, or does not show, through those alive."""


def lagging(truth: Truth, shown: Sequence[tuple[str, int]], batches: int) -> tuple[State, Staleness]:
    """What a read-optimized view must answer, and how far it lags behind a table of so many batches.

    It shows each file as it was when it was compacted or first written, so that one order may be older than another.

    Args:
        truth: what was sent.
        shown: order and version of each row.
        batches: that are visible in the table.

    Raises:
        WrongAnswerError: a row was never sent, or an order is there twice.
    """
    rows = truth.raw(batches).rows
    orders, versions, came = (rows[name].to_pylist() for name in ("order_id", "version", BATCH))
    places = {place: index for index, place in enumerate(zip(orders, versions, strict=True))}
    has = dict(shown)
    if unknown := [row for row in shown if row not in places]:
        raise WrongAnswerError(f"a view shows what was never sent: {unknown[0]}")
    if len(has) < len(shown):
        raise WrongAnswerError(f"a view shows {len(shown) - len(has)} orders twice")
    current = truth.until(batches).rows
    alive = dict(zip(current["order_id"].to_pylist(), current["version"].to_pylist(), strict=True))
    stale = {order for order in has.keys() | alive.keys() if has.get(order) != alive.get(order)}
    unseen = (
        batch
        for order, version, batch in zip(orders, versions, came, strict=True)
        if order in stale and version > has.get(order, 0)
    )
    state = State(rows.take(pa.array([places[row] for row in shown], pa.int64())))
    return state, Staleness(batches - min(unseen, default=batches), len(stale) / max(len(alive), 1))


@dataclass(frozen=True)
class Subjects:
    """Which order, day and past the queries of a look are about."""

    order: str
    day: str
    then: int
    """Batches that were visible at the moment that changes are counted from, and that time travel goes to."""


def subjects(truth: Truth, batches: int) -> Subjects:
    """An order that was changed as often as any and is alive, a day of the middle, and five batches ago."""
    rows = truth.until(batches).rows
    newest = rows.sort_by([("version", "descending"), ("order_id", "ascending")])
    days = sorted(set(State(rows).days.to_pylist()))
    return Subjects(newest["order_id"][0].as_py(), days[len(days) // 2], batches - min(_AGO, batches // 2))


def _cents(rows: pa.Table) -> pa.ChunkedArray:
    # Whole numbers add up to the same in any order.
    return pc.cast(pc.round(pc.multiply(rows["amount"], 100)), pa.int64())


def _millis(times: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.divide(pc.cast(times, pa.int64()), 1000)


def _sum(numbers: pa.ChunkedArray) -> int:
    return pc.sum(numbers).as_py() or 0


def _text(*values: object) -> tuple[str, ...]:
    return tuple(str(value) for value in values)


def differences(right: Answer, given: Answer) -> str:
    """What is wrong with an answer, in few words: both, as far as they fit."""
    return f"right is {_brief(right)}, the answer is {_brief(given)}"


def _brief(answer: Sequence[tuple[str, ...]]) -> str:
    text = "; ".join(" ".join(row) for row in answer) or "nothing"
    return text if len(text) <= 120 else text[:117] + "…"
