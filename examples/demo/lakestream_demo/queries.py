"""Three looks at the Hudi table: as it is, what changed, as it was."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lakestream_demo.result import QueryResult

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = "orders"


@dataclass(frozen=True)
class Query:
    """A query and what it is about."""

    name: str
    sql: str


@dataclass(frozen=True)
class TableCommit:
    """A commit of the Hudi table, as `CALL show_commits` tells it."""

    instant: str
    completed: str
    """Completion time, in the form of an instant."""


def choose_instant(commits: Sequence[TableCommit], since: str) -> str:
    """The moment to look back to: half-way through the run, unless cleaning has already gone beyond it.

    A completion time: what was complete then, time travel shows, and the commits behind it begin later, one after the
    other.

    Args:
        commits: completed ones, at least one.
        since: what was replaced before, cleaning may have removed; in the form of an instant.
    """
    in_order = sorted(commit.completed for commit in commits)
    kept = [completed for completed in in_order if completed >= since] or in_order[-1:]
    return kept[(len(kept) - 1) // 2]


def three_looks(instant: str) -> tuple[Query, Query, Query]:
    """The orders as they are, those that changed, and all as they were."""
    summary = "SELECT status, count(*) AS orders, round(sum(amount), 2) AS amount"
    grouped = "GROUP BY status ORDER BY status"
    return (
        Query("Snapshot: the orders as they are", f"{summary}\nFROM {TABLE}\n{grouped}"),
        # Not by hudi_table_changes: of a merge-on-read table it tells an old version that came late as the order.
        Query(
            "Changes: the orders that changed since half-way",
            "SELECT status, count(*) AS changed, max(version) AS highest_version\n"
            f"FROM {TABLE} WHERE _hoodie_commit_time > '{instant}'\n{grouped}",
        ),
        Query(
            "Time travel: the orders as they were half-way",
            f"{summary}\nFROM {TABLE} TIMESTAMP AS OF '{instant}'\n{grouped}",
        ),
    )


def script(location: str, queries: Sequence[Query]) -> str:
    """The queries as a file for `spark-sql`."""
    statements = [f"CREATE TABLE {TABLE} USING hudi LOCATION '{location}';"]
    statements += [f"-- {query.name}\n{query.sql};" for query in queries]
    return "\n\n".join(statements) + "\n"


def open_table(spark: SparkSession, location: str) -> tuple[TableCommit, ...]:
    """Name the table at a location; returns its commits, in no order."""
    spark.sql(f"CREATE TABLE {TABLE} USING hudi LOCATION '{location}'")
    rows = spark.sql(f"CALL show_commits(table => '{TABLE}', limit => 1000000)").collect()
    return tuple(TableCommit(row["commit_time"], row["state_transition_time"]) for row in rows)


def ask(spark: SparkSession, query: Query) -> QueryResult:
    """Run a query."""
    began = time.monotonic()
    frame = spark.sql(query.sql)
    rows = tuple(tuple(str(value) for value in row) for row in frame.collect())
    return QueryResult(query.name, query.sql, tuple(frame.columns), rows, round(time.monotonic() - began, 3))
