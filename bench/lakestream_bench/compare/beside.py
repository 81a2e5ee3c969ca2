"""Questions that are asked while batches are written: LST-Bench's package *concurrency*.

A table shows a reader whole batches and nothing of the one that is being written, or it does not; and it answers while
its files are rewritten, merged and deleted, or it fails.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from typing import TYPE_CHECKING

from lakestream_bench.compare.engines import NativeEngine, QueryEngine, SparkEngine, TableAt
from lakestream_bench.compare.method import NATIVE, SPARK
from lakestream_bench.compare.queries import Kind, Query, queries, right_answer
from lakestream_bench.compare.results import Beside
from lakestream_bench.compare.truth import Answer, Truth, subjects

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = (Kind.AGGREGATE, Kind.LOOKUP)
_PAUSE = 0.2
"""Seconds between two questions: a dashboard, and not a load test."""


@dataclass(frozen=True)
class Given:
    """One answer, or none."""

    query: Query
    engine: str
    seconds: float
    answer: Answer | None
    """None: the engine failed."""
    least: int
    """Batches that were committed when it was asked."""
    most: int
    """And when it was answered; one more may have been visible, and not told yet."""
    error: str = ""


def judge(given: Sequence[Given], truth: Truth) -> tuple[Beside, ...]:
    """What the answers come to: each has to be that of a number of batches that were visible while it was asked."""
    by_kind: dict[tuple[Kind, str], list[Given]] = defaultdict(list)
    for one in given:
        by_kind[one.query.kind, one.engine].append(one)
    return tuple(_judged(kind, engine, found, truth) for (kind, engine), found in by_kind.items())


def _judged(kind: Kind, engine: str, given: Sequence[Given], truth: Truth) -> Beside:
    known: dict[int, Answer] = {}

    def right(query: Query, batches: int) -> Answer:
        if batches not in known:
            known[batches] = right_answer(query, truth, batches, batches)
        return known[batches]

    answered = [one for one in given if one.answer is not None]
    torn = sum(
        not any(one.answer == right(one.query, batches) for batches in range(one.least, one.most + 2))
        for one in answered
    )
    errors = [one.error for one in given if one.answer is None]
    return Beside(
        kind=kind.value,
        engine=engine,
        seconds=statistics.median(one.seconds for one in answered) if answered else None,
        asked=len(given),
        torn=torn,
        failed=len(errors),
        error=errors[0] if errors else "",
    )


@dataclass
class Reader:
    """Asks a table one question after the other, from a thread of its own, while it is written."""

    spark: SparkSession
    truth: Truth
    table: TableAt
    batches: int
    """That the table will have: the questions are about an order and days that it has then."""
    given: list[Given] = field(default_factory=list)

    @contextmanager
    def asking(self, committed: Callable[[], int]) -> Iterator[None]:
        """Ask until the block ends.

        Args:
            committed: tells how many batches the writer has been told of.
        """
        ended = threading.Event()
        thread = threading.Thread(target=self._ask, args=(committed, ended), name="reader", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _ask(self, committed: Callable[[], int], ended: threading.Event) -> None:
        engines: dict[str, QueryEngine] = {SPARK: SparkEngine(self.spark), NATIVE: NativeEngine()}
        asked = [one for one in queries(self.table.arm, subjects(self.truth, self.batches)) if one.kind in KINDS]
        for query, name in cycle([(query, name) for query in asked for name in engines]):
            if ended.wait(_PAUSE):
                return
            least, began = committed(), time.perf_counter()
            answer, error = None, ""
            try:
                answer = engines[name].begin().ask(self.table, query.view, query.sql)
            except Exception as failure:  # noqa: BLE001 - whatever a reader is told is a finding
                error = f"{type(failure).__name__}: {str(failure).splitlines()[0] if str(failure) else ''}"[:300]
            seconds = time.perf_counter() - began
            self.given.append(Given(query, name, seconds, answer, least, committed(), error))
