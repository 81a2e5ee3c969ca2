"""A look at a table: everything is asked, and every answer that is timed is held against the ledger."""

from __future__ import annotations

import io
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lakestream_bench.compare.arms import KEY, ORDER, Arm
from lakestream_bench.compare.engines import NativeEngine, QueryEngine, SparkEngine, TableAt
from lakestream_bench.compare.history import History
from lakestream_bench.compare.method import SPARK
from lakestream_bench.compare.queries import ALWAYS, TABLE, Query, View, queries, right_answer
from lakestream_bench.compare.results import Asked, Look, Wrong
from lakestream_bench.compare.tables import (
    Moment,
    answer,
    commits,
    moment_of,
    name_events,
    name_table,
    since_compaction,
    stock_session,
)
from lakestream_bench.compare.truth import (
    Answer,
    Staleness,
    Subjects,
    WrongAnswerError,
    differences,
    lagging,
    subjects,
)
from lakestream_bench.compare.usage import forget, listing, size
from lakestream_loadgen.audit import compare, read_parquet
from lakestream_loadgen.content import EVENT_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Table:
    """What is looked at."""

    arm: Arm
    folder: Path
    log: Path
    """Of its writer, in the checkpoint."""
    instants: tuple[str | None, ...]
    """Of the commits of its batches so far, in order; None for tables without."""


@dataclass(frozen=True)
class Looker:
    """Asks the tables of one history."""

    spark: SparkSession
    history: History
    warm_repetitions: int
    scratch: Path

    def look(self, table: Table, batches: int, *, asks_back: bool) -> Look:
        """Ask everything about a table of so many batches.

        Args:
            asks_back: also what it was.

        Raises:
            WrongAnswerError: an answer is not right.
        """
        truth, about = self.history.truth, subjects(self.history.truth, batches)
        state = truth.until(batches)
        is_last = batches == len(self.history.plans)
        moment, behind = self._timeline(table, about)
        at = TableAt(table.arm, table.folder, table.log, moment)
        self._require_snapshot(at, batches)
        engines: tuple[QueryEngine, ...] = (SparkEngine(self.spark), NativeEngine())
        asked, misread = [], []
        for engine in engines:
            for query in queries(table.arm, about):
                if query.asks_back and not asks_back:
                    continue
                if engine.name == query.misread_by:
                    misread += self._misread(engine, at, query, batches)
                else:
                    asked.append(self._ask(engine, at, query, about, batches))
        ideal = io.BytesIO()
        pq.write_table(state.snapshot, ideal, compression="gzip")
        return Look(
            batches=batches,
            events=truth.raw(batches).rows.num_rows,
            rows=state.rows.num_rows,
            since_compaction=behind,
            bytes_at_rest=size(listing(table.folder)),
            ideal_bytes=ideal.tell(),
            asked=tuple(asked),
            naive=self._naive(table, about, batches) if is_last and not table.arm.has_keys else (),
            misread=tuple(misread),
        )

    def _timeline(self, table: Table, about: Subjects) -> tuple[Moment, int | None]:
        found = commits(self.spark, table.folder.as_uri()) if table.arm.has_keys else ()
        moment = moment_of(self.history.arrived[about.then - 1], about.then, table.instants, found)
        return moment, since_compaction(found) if table.arm.merges_on_read else None

    def _require_snapshot(self, table: TableAt, batches: int) -> None:
        """All rows, column by column, against the fold of the ledger."""
        session = stock_session(self.spark)
        name_table(session, table.arm, table.folder.as_uri(), View.STATE, table.moment)
        dump = self.scratch / f"{table.folder.name}-{batches}"
        session.table(TABLE).select(*EVENT_SCHEMA.names).write.parquet(dump.as_uri())
        verdict = compare(self.history.truth.until(batches).snapshot, read_parquet(str(dump)))
        if not verdict.ok:
            raise WrongAnswerError(
                f"after {batches} batches: of its {verdict.rows} rows {verdict.missing} are missing, "
                f"{verdict.unexpected} unexpected, {verdict.different} different, {verdict.doubled} doubled; "
                f"such as {', '.join(verdict.samples[:3])}"
            )

    def _ask(self, engine: QueryEngine, table: TableAt, query: Query, about: Subjects, batches: int) -> Asked:
        right, stale = self._right(engine, table, query, about, batches)
        forget(table.folder)
        asking = engine.begin()

        def seconds() -> float:
            began = time.perf_counter()
            given = asking.ask(table, query.view, query.sql)
            took = time.perf_counter() - began
            if given != right:
                raise WrongAnswerError(f"{query.kind} after {batches} batches: {differences(right, given)}")
            return took

        cold = seconds()
        before = engine.cpu_seconds()
        warm = [seconds() for _ in range(self.warm_repetitions)]
        used = (engine.cpu_seconds() - before) / self.warm_repetitions
        return Asked(query.kind.value, engine.name, cold, statistics.median(warm), used, stale)

    def _right(
        self, engine: QueryEngine, table: TableAt, query: Query, about: Subjects, batches: int
    ) -> tuple[Answer, Staleness | None]:
        """What has to be answered; and how far behind a view is that may lag."""
        truth = self.history.truth
        if not query.may_lag:
            return right_answer(query, truth, batches, about.then), None
        shown = engine.begin().ask(table, query.view, f"SELECT {KEY}, {ORDER} FROM {TABLE}")
        state, stale = lagging(truth, [(order, int(version)) for order, version in shown], batches)
        return query.right(state), stale

    def _misread(self, engine: QueryEngine, table: TableAt, query: Query, batches: int) -> list[Wrong]:
        """The answer of an engine that is known to be wrong, if it is."""
        given = engine.begin().ask(table, query.view, query.sql)
        right = right_answer(query, self.history.truth, batches, table.moment.batches)
        wrong = Wrong(query.kind.value, engine.name, _words(right), _words(given), is_wrong=True)
        return [wrong] if given != right else []

    def _naive(self, table: Table, about: Subjects, batches: int) -> tuple[Wrong, ...]:
        """What plain JSON answers to who takes each event for an order."""
        session = stock_session(self.spark)
        name_events(session, table.folder.as_uri())
        found = []
        for query in queries(table.arm, about):
            if query.kind in ALWAYS:
                given, right = answer(session, query.sql), right_answer(query, self.history.truth, batches, about.then)
                if given != query.right(self.history.truth.raw(batches)):
                    raise WrongAnswerError(f"the events are not those that were sent ({query.kind})")
                found.append(Wrong(query.kind.value, SPARK, _words(right), _words(given), given != right))
        return tuple(found)


def _words(answer: Answer) -> str:
    return "; ".join(" ".join(row) for row in answer) or "nothing"
