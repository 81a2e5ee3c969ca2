"""The questions that every arm is asked, in SQL. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from lakestream_bench.compare.arms import DELETES, KEY, ORDER, PARTITION, Arm
from lakestream_bench.compare.method import SPARK
from lakestream_bench.compare.truth import Answer, State, Subjects, Truth
from lakestream_loadgen.content import EVENT_SCHEMA


class View(StrEnum):
    """What of the table a query reads."""

    STATE = "state"
    """The newest version of each order that was not deleted."""
    READ_OPTIMIZED = "read-optimized"
    """What has been compacted; merge-on-read only."""
    CHANGES = "changes"
    """The orders that changed since a moment, as they are now."""
    PAST = "past"
    """The state as it was at a moment."""
    DIFFERENCE = "difference"
    """The orders that are another row than at a moment: `op` (insert, update, delete), `before` and `after`, structs of
    all columns."""


class Kind(StrEnum):
    """A question."""

    SCAN = "full scan"
    AGGREGATE = "aggregate"
    LOOKUP = "point look-up"
    PARTITION = "one partition"
    READ_OPTIMIZED = "read-optimized aggregate"
    INCREMENTAL = "incremental"
    TIME_TRAVEL = "time travel"
    CHANGES = "changes"


TABLE = "compared"
"""The name of the view that the SQL reads from."""

_CENTS = "CAST(round(amount * 100) AS BIGINT)"
_LETTERS = ("event_id", "order_id", "op", "status", "customer_id", "note")
_SCAN = (
    f"SELECT count(*), {' + '.join(f'sum(length({name}))' for name in _LETTERS)}, sum(version), sum({_CENTS}), "
    f"sum(unix_millis(created_at)), sum(unix_millis(updated_at)) FROM {TABLE}"
)
_CHANGES = (
    "SELECT op, count(*), coalesce(sum(before.version), 0), coalesce(sum(after.version), 0) "
    f"FROM {TABLE} GROUP BY op ORDER BY op"
)
_AGGREGATE = f"SELECT status, count(*), sum({_CENTS}) FROM {TABLE} GROUP BY status ORDER BY status"


@dataclass(frozen=True)
class Query:
    """A question about one moment of a table, and how the right answer is told."""

    kind: Kind
    view: View
    sql: str
    right: Callable[[State], Answer]
    """From the orders as they are, or (`View.PAST`) were."""
    misread_by: str = ""
    """The engine that is known to answer it wrongly at times; it is not timed."""

    @property
    def may_lag(self) -> bool:
        """Whether the answer may be that of fewer batches."""
        return self.view is View.READ_OPTIMIZED

    @property
    def asks_back(self) -> bool:
        """Whether it is about what was, and needs a table that has a past."""
        return self.view in (View.CHANGES, View.PAST, View.DIFFERENCE)


def queries(arm: Arm, about: Subjects) -> tuple[Query, ...]:
    """What an arm is asked."""
    asked = [
        Query(Kind.SCAN, View.STATE, _SCAN, State.scan),
        Query(Kind.AGGREGATE, View.STATE, _AGGREGATE, State.aggregate),
        Query(
            Kind.LOOKUP,
            View.STATE,
            f"SELECT version, status, {_CENTS} FROM {TABLE} WHERE {KEY} = '{about.order}' ORDER BY version",
            lambda state: state.lookup(about.order),
        ),
        Query(
            Kind.PARTITION,
            View.STATE,
            f"SELECT count(*), coalesce(sum({_CENTS}), 0) FROM {TABLE} WHERE {PARTITION} = '{about.day}'",
            lambda state: state.partition(about.day),
        ),
        Query(
            Kind.INCREMENTAL,
            View.CHANGES,
            f"SELECT count(*), coalesce(sum(version), 0) FROM {TABLE}",
            lambda state: state.changed_since(about.then),
            # Hudi 1.2.0 merges the log files of the span with each other, and not with what was there before: an old
            # version that comes late is told as if the row had changed back.
            misread_by=SPARK if arm.merges_on_read else "",
        ),
        Query(Kind.TIME_TRAVEL, View.PAST, _AGGREGATE, State.aggregate),
        Query(Kind.CHANGES, View.DIFFERENCE, _CHANGES, State.changes),
    ]
    if arm.merges_on_read:
        asked.append(Query(Kind.READ_OPTIMIZED, View.READ_OPTIMIZED, _AGGREGATE, State.aggregate))
    return tuple(asked)


ALWAYS = (Kind.SCAN, Kind.AGGREGATE, Kind.LOOKUP, Kind.PARTITION)
"""What every table is asked at every look, about its newest state; and plain JSON, as if each event were an order."""


def newest(events: str) -> str:
    """The SQL that makes the state of a table of events: what JSON alone leaves to each of its readers.

    By partition and key, which lets a filter on either go below the window.
    """
    by_key = f"PARTITION BY {PARTITION}, {KEY} ORDER BY {ORDER} DESC"
    numbered = f"SELECT *, row_number() OVER ({by_key}) AS _newest FROM {events}"
    return f"SELECT * FROM ({numbered}) WHERE _newest = 1 AND NOT ({DELETES})"


def difference(now: str, then: str) -> str:
    """The SQL that makes `View.DIFFERENCE` of two states.

    Args:
        now: query of the state as it is.
        then: and as it was.
    """
    before, after = (f"struct({', '.join(f'{side}.{name}' for name in EVENT_SCHEMA.names)})" for side in ("old", "new"))
    joined = " AND ".join(f"old.{name} = new.{name}" for name in (PARTITION, KEY))
    return (
        f"SELECT * FROM (SELECT CASE WHEN old.{KEY} IS NULL THEN 'insert' WHEN new.{KEY} IS NULL THEN 'delete' "
        f"ELSE 'update' END AS op, {before} AS before, {after} AS after "
        f"FROM ({then}) AS old FULL JOIN ({now}) AS new ON {joined}) WHERE before IS DISTINCT FROM after"
    )


def right_answer(query: Query, truth: Truth, batches: int, then: int) -> Answer:
    """The right answer to a query about a table of so many batches."""
    past = truth.until(then)
    return query.right(past if query.view is View.PAST else replace(truth.until(batches), past=past))
