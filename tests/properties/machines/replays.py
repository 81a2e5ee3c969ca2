"""Drivers that are killed at any step, with a document that is edited in between, on a real log: whatever happens, each
record of a committed batch is in the table or in quarantine, once, and the batch was made by one definition.

A record is a number; a definition rejects some remainders by four, fails on others, and marks each row with itself. Now
and then somebody asks for what is in quarantine to be read once more, or for files or a span to be taken, whose records
are other numbers; or has a request cancelled.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Protocol
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from obstore.store import MemoryStore

from lakestream.engine import Clock, Engine, EngineSettings, Until
from lakestream.errors import SinkError
from lakestream.log import (
    CheckpointLog,
    Document,
    ObstoreLogStore,
    Request,
    Requested,
    cancel_request,
    committed_files,
    current_request,
    newest_epoch,
    put_request,
    without_readmitted,
)
from lakestream.model import (
    RULES,
    BatchCommit,
    BatchPlan,
    Cursor,
    Definition,
    FileEntry,
    FilePart,
    Format,
    Portion,
    Reading,
    ShardRange,
    ShardStats,
    SinkCommit,
    Span,
    SpanDue,
    SpanProgress,
    Taken,
    Trim,
    after,
    at,
)
from lakestream.ports import Fetched
from lakestream.replay import NoRestores, Restores, carry_out
from lakestream.stopping import StopSignal
from lakestream.testing.logs import ORDERS
from machines.one_thread import in_one_thread

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHARD = "shardId-000000000000"
IN_A_BATCH = 4
STEPS = ("planned", "fetched", "quarantined", "half_written", "written", "visible", "sink_committed", "committed")

remainders = st.frozensets(st.integers(0, 3), max_size=2)
definitions = st.builds(
    lambda rejects, fails, deletes: Definition(digits(rejects), digits(fails), deletes),
    remainders,
    st.just(frozenset[int]()) | remainders,
    st.sampled_from([None, "true"]),
)
"""The schema says what is rejected, the transform what fails. The predicate makes no difference but to the mark."""

Row = tuple[int, Definition]


def digits(numbers: frozenset[int]) -> str:
    return "".join(str(number) for number in sorted(numbers))


def rejects(definition: Definition, record: int) -> bool:
    return str(record % 4) in definition.schema


def fails(definition: Definition, record: int) -> bool:
    return str(record % 4) in (definition.transform or "")


FILED = 1_000_000
"""The first number of a record in a file, or in a span that is read once more."""


def records_of(plan: BatchPlan, place: Place) -> list[int]:
    if plan.backfills:
        return [record for task in plan.backfills for part in task for record in range(part.start, part.end)]
    if plan.spans:
        return [r for task in plan.spans for piece in task for r in range(piece.first, piece.end.sequence)]
    if plan.parts:
        batches = [int(entry.path) for task in plan.readmits for entry in task]
        return [record for batch in batches for record, _ in place.quarantined(batch)]
    ends = [piece.end.sequence for piece in plan.ranges]
    return [record for end in ends for record in range((end - 1) * IN_A_BATCH, end * IN_A_BATCH)]


class Died(BaseException):
    """The driver is gone; nothing of it may handle that."""


@dataclass
class Life:
    """Of one driver."""

    ends_at: str | None
    passes: int
    """How often it passes the step unharmed."""
    is_ahead: bool = True
    """Whether it has prepared a batch before it writes the one in hand."""

    def reach(self, step: str) -> None:
        if step == self.ends_at:
            self.passes -= 1
            if self.passes < 0:
                raise Died(step)


class Place(Protocol):
    """Table and quarantine."""

    def quarantined(self, batch: int) -> list[Row]: ...
    def visible(self, batch: int) -> list[Row]: ...
    def keep(self, batch: int, rejected: list[Row]) -> None: ...
    def find(self, batch: int) -> SinkCommit | None: ...
    def write(self, batch: int, rows: list[Row], life: Life) -> SinkCommit: ...


@dataclass
class Transactional:
    """As Hudi: what is visible stays, and writing a batch twice would double it."""

    rejected: dict[int, list[Row]] = field(default_factory=dict)
    rows: list[tuple[int, list[Row]]] = field(default_factory=list)

    def quarantined(self, batch: int) -> list[Row]:
        return self.rejected.get(batch, [])

    def visible(self, batch: int) -> list[Row]:
        return [row for number, rows in self.rows if number == batch for row in rows]

    def keep(self, batch: int, rejected: list[Row]) -> None:
        self.rejected[batch] = rejected

    def find(self, batch: int) -> SinkCommit | None:
        return SinkCommit(0, 0) if batch in [number for number, _ in self.rows] else None

    def write(self, batch: int, rows: list[Row], life: Life) -> SinkCommit:
        life.reach("half_written")
        life.reach("written")
        self.rows.append((batch, rows))
        return SinkCommit(len(rows), 0)


@dataclass
class Overwriting:
    """As JSON: a file for each row; a replay removes those that it did not write."""

    rejected: dict[int, list[Row]] = field(default_factory=dict)
    files: dict[tuple[int, int], Row] = field(default_factory=dict)

    def quarantined(self, batch: int) -> list[Row]:
        return self.rejected.get(batch, [])

    def visible(self, batch: int) -> list[Row]:
        return [row for (number, _), row in self.files.items() if number == batch]

    def keep(self, batch: int, rejected: list[Row]) -> None:
        self.rejected[batch] = rejected

    def find(self, batch: int) -> SinkCommit | None:
        return None

    def write(self, batch: int, rows: list[Row], life: Life) -> SinkCommit:
        for position, row in enumerate(rows):
            if 2 * position >= len(rows):
                life.reach("half_written")
            self.files[batch, position] = row
        life.reach("written")
        for leftover in [key for key in self.files if key[0] == batch and key[1] >= len(rows)]:
            del self.files[leftover]
        return SinkCommit(len(rows), 0)


@dataclass
class Parts:
    """Planner, fetcher, output and observer of one engine."""

    definition: Definition
    place: Place
    life: Life
    available: int
    spans: dict[int, range]
    caught_up_to: datetime | None = NOW
    missing: timedelta | None = timedelta(0)

    def plan(self, *, batch: int, epoch: int, cursors: tuple[Cursor, ...], trim: Trim | None) -> BatchPlan | None:
        taken = cursors[0].position.sequence if cursors and isinstance(cursors[0], Reading) else 0
        return plan_of(batch, taken, epoch, taken >= self.available - 1) if taken < self.available else None

    def portion(self, due: SpanDue, trim: Trim | None, records: int) -> Portion | None:
        asked, begin = self.spans[due.request], self.spans[due.request].start
        if due.progress is not None:
            (cursor,) = due.progress.cursors
            assert isinstance(cursor, Reading)
            begin = cursor.position.sequence
        end = min(begin + IN_A_BATCH, asked.stop)
        piece = ShardRange(SHARD, at(begin), at(end), begin, NOW, NOW, False, IN_A_BATCH, 0)
        if end == asked.stop:
            return Portion(((piece,),), Taken(due.request, 1, 1, SpanProgress()))
        progress = SpanProgress((Reading(SHARD, at(end), NOW, None),), trim, NOW)
        return Portion(((piece,),), Taken(due.request, 0, 1, progress))

    def observe(self, commit: BatchCommit) -> None: ...
    def committed(self, commit: BatchCommit, arrivals: tuple[datetime, ...]) -> None: ...
    def fetching(self, batch: int) -> None: ...
    def fetched(self, plan: BatchPlan, shards: Sequence[ShardStats]) -> None: ...
    def between_batches(self) -> None: ...
    def idle(self, looked_at: datetime, caught_up_to: datetime) -> None: ...
    def check(self) -> None: ...

    def fetch(self, plan: BatchPlan, *, replay: bool) -> Fetched[list[Row]]:
        records = [(record, self.definition) for record in records_of(plan, self.place)]
        rejected = [row for row in records if rejects(self.definition, row[0])]
        stats = ShardStats(SHARD, len(records), 10, NOW, NOW)
        self.life.reach("fetched")
        rows = [row for row in records if row not in rejected]
        return Fetched(rows, rejected, len(rejected), (stats,), (NOW,), lambda: (), lambda: None)

    def quarantine(self, plan: BatchPlan, rejected: list[Row], *, replay: bool) -> tuple[FileEntry, ...]:
        self.place.keep(plan.batch, rejected)
        self.life.reach("quarantined")
        return self.quarantined(plan)

    def quarantined(self, plan: BatchPlan) -> tuple[FileEntry, ...]:
        rows = len(self.place.quarantined(plan.batch))
        return (FileEntry(str(plan.batch), rows, 0, ""),) if rows else ()

    def find(self, plan: BatchPlan) -> SinkCommit | None:
        return self.place.find(plan.batch)

    def write(self, plan: BatchPlan, rows: list[Row], *, replay: bool) -> SinkCommit:
        if bad := [record for record, _ in rows if fails(self.definition, record)]:
            raise SinkError(f"no row can be made of {bad}")
        commit = self.place.write(plan.batch, rows, self.life)
        self.life.reach("visible")
        return commit


def plan_of(batch: int, taken: int, epoch: int, caught_up: bool) -> BatchPlan:
    position = after(taken + 1)
    start = at(1) if taken == 0 else after(taken)
    piece = ShardRange(SHARD, start, position, taken + 1, NOW, NOW, False, IN_A_BATCH, 0)
    cursor = Reading(SHARD, position, NOW, None)
    return BatchPlan(batch, epoch, NOW, NOW, NOW + timedelta(seconds=batch), caught_up, (piece,), (cursor,))


class Patient(StopSignal):
    """It does not wait."""

    def wait(self, seconds: float) -> None: ...


class ReplayMachine(RuleBasedStateMachine):
    place: Place

    def __init__(self) -> None:
        super().__init__()
        self.store = ObstoreLogStore(MemoryStore())
        self.available = 1
        self.committed = 0
        self.filed = FILED
        self.backfills: dict[int, range] = {}
        """Records by request, for files…"""
        self.spans: dict[int, range] = {}
        """…and for spans."""
        self.replayed: dict[int, list[set[int]]] = {}
        """Records by request for what is in quarantine, of each of its parts."""
        self.cancelled: set[int] = set()

    @initialize(definition=definitions, overwrites=st.booleans())
    def begin(self, definition: Definition, overwrites: bool) -> None:
        self.definition = definition
        self.place = Overwriting() if overwrites else Transactional()

    @rule(definition=definitions)
    def edit(self, definition: Definition) -> None:
        self.definition = replace(definition, rules=self.definition.rules)

    @rule(rules=st.integers(RULES, RULES + 1))
    def change_the_release(self, rules: int) -> None:
        self.definition = replace(self.definition, rules=rules)

    @rule(batches=st.integers(1, 2))
    def put(self, batches: int) -> None:
        self.available += batches

    @rule()
    def ask_for_what_is_rejected(self) -> None:
        far = current_request(self.store)
        if far is not None and not far.is_done:
            return
        batches = without_readmitted(committed_files(self.store))
        files = tuple(Requested(entry, one.rejected_by) for one in batches for entry in one.rejects)
        if files:
            number = 1 if far is None else far.request.number + 1
            epoch = newest_epoch(self.store)
            assert put_request(self.store, Request(number, NOW, Document(self.definition.digest, epoch), files))
            paths = [int(entry.path) for one in batches for entry in one.rejects]
            self.replayed[number] = [{record for record, _ in self.place.quarantined(path)} for path in paths]

    @rule(parts=st.integers(1, 4), records=st.sampled_from([1, 4, 30_000]))
    def ask_for_files(self, parts: int, records: int) -> None:
        """One, a few, or fewer than all of them are a batch."""
        state = current_request(self.store)
        if state is not None and not state.is_done:
            return
        number = 1 if state is None else state.request.number + 1
        starts = range(self.filed, self.filed + 2 * parts, 2)
        self.backfills[number] = range(self.filed, self.filed + 2 * parts)
        self.filed += 2 * parts
        files = (FilePart("/f", Format.JSON, start, start + 2, records, 10, "x", NOW) for start in starts)
        asked = tuple(Requested(file) for file in files)
        epoch = newest_epoch(self.store)
        assert put_request(self.store, Request(number, NOW, Document(self.definition.digest, epoch), asked))

    @rule(records=st.integers(1, 3 * IN_A_BATCH))
    def ask_for_a_span(self, records: int) -> None:
        state = current_request(self.store)
        if state is not None and not state.is_done:
            return
        number = 1 if state is None else state.request.number + 1
        self.spans[number] = range(self.filed, self.filed + records)
        self.filed += records
        span, epoch = Span(NOW, NOW + timedelta(seconds=1)), newest_epoch(self.store)
        assert put_request(self.store, Request(number, NOW, Document(self.definition.digest, epoch), (), span))

    @rule()
    def cancel(self) -> None:
        state = current_request(self.store)
        if state is not None and not state.is_done:
            cancel_request(self.store, state.request.number, NOW)
            self.cancelled.add(state.request.number)

    @rule(step=st.sampled_from(STEPS), passes=st.integers(0, 2), is_ahead=st.booleans())
    def be_killed(self, step: str, passes: int, is_ahead: bool) -> None:
        self.drive(Life(step, passes, is_ahead))

    @rule()
    def mend_and_drain(self) -> None:
        """A document that fails on nothing gets through whatever there is."""
        self.definition = replace(self.definition, transform=None)
        self.drive(Life(None, 0))
        last = self.last_commit()
        assert last is not None
        assert [cursor.position for cursor in last.cursors if isinstance(cursor, Reading)] == [after(self.available)]
        state = current_request(self.store)
        assert state is None or state.is_done or not state.request.is_backfill

    def drive(self, life: Life) -> None:
        log = CheckpointLog.open(self.store, ORDERS, now=lambda: NOW, monotonic=lambda: 0.0)
        pending = log.pending_plans()
        before = {b.batch: self.place.visible(b.batch) for b in pending if self.place.find(b.batch) is not None}

        @contextmanager
        def open_engine(definition: Definition) -> Iterator[Engine[list[Row]]]:
            parts = Parts(definition, self.place, life, self.available, self.spans)
            yield Engine(
                settings=EngineSettings(timedelta(0), definition),
                log=log,
                planner=parts,
                fetcher=parts,
                output=parts,
                observer=parts,
                stop=Patient(),
                clock=Clock(lambda: NOW),
            )

        ahead = in_one_thread(at_once=life.is_ahead)
        with ahead, patch("lakestream.engine.reach", life.reach), suppress(Died, SinkError):
            carry_out(pending, self.definition, open_engine, Until.CAUGHT_UP, self.restores(log, life))
        last = self.last_commit()
        self.committed = 0 if last is None else last.batch + 1
        self.require_kept(pending, before)

    def restores(self, log: CheckpointLog, life: Life) -> Restores:
        return NoRestores()

    def is_taken_out(self, batch: int) -> bool:
        """Whether somebody wanted a batch out of the table."""
        return False

    def last_commit(self) -> BatchCommit | None:
        return CheckpointLog.open(self.store, ORDERS, now=lambda: NOW).last_commit()

    def require_kept(self, pending: Sequence[BatchPlan], before: dict[int, list[Row]]) -> None:
        """A batch that was visible is as it was, whoever made it; one that can be written by the definition of its plan
        is."""
        for plan in pending:
            if plan.batch in before:
                assert self.is_taken_out(plan.batch) or self.place.visible(plan.batch) == before[plan.batch]
                continue
            assert plan.definition is not None
            used = [record for record in records_of(plan, self.place) if not rejects(plan.definition, record)]
            if any(fails(plan.definition, record) for record in used):
                break  # from here on by the document
            if plan.batch < self.committed:
                assert {made for _, made in self.place.visible(plan.batch)} <= {plan.definition}

    @invariant()
    def each_record_is_in_one_place_once(self) -> None:
        found: list[int] = []
        for batch in range(self.committed):
            rows, rejected = self.place.visible(batch), self.place.quarantined(batch)
            assert len({definition for _, definition in rows + rejected}) <= 1, "a batch is of one definition"
            found += [record for record, _ in rows]
        for one in without_readmitted(committed_files(self.store)):
            found += [record for entry in one.rejects for record, _ in self.place.quarantined(int(entry.path))]
        streamed = sorted(record for record in found if record < FILED)
        assert streamed == list(range(len(streamed)))
        assert len(streamed) % IN_A_BATCH == 0
        newest = current_request(self.store)
        for number, asked in self.backfills.items():
            taken = sorted(record for record in found if record in asked)
            assert taken == list(asked)[: len(taken)], "each once, in order"
            assert len(taken) % 2 == 0
            if newest is not None and number == newest.request.number:
                assert len(taken) == 2 * newest.taken.parts
            elif number not in self.cancelled:
                assert len(taken) == len(asked)
        for number, asked in self.spans.items():
            taken = sorted(record for record in found if record in asked)
            assert taken == list(asked)[: len(taken)], "each once, in order"
            if newest is not None and number == newest.request.number:
                assert len(taken) == (newest.taken.span.records if newest.taken.span else 0)
            elif number not in self.cancelled:
                assert len(taken) == len(asked)

    @invariant()
    def the_quarantine_is_listed(self) -> None:
        listed = {one.batch: sum(entry.rows for entry in one.rejects) for one in committed_files(self.store)}
        kept = {batch: len(self.place.quarantined(batch)) for batch in range(self.committed)}
        assert {batch: rows for batch, rows in listed.items() if rows} == {b: rows for b, rows in kept.items() if rows}

    @invariant()
    def what_was_asked_for_is_rejected_by_another_definition_than_before(self) -> None:
        """A driver does not read once more what it would reject again."""
        rejected_by = {entry.path: one.rejected_by for one in committed_files(self.store) for entry in one.rejects}
        for key in self.store.list("batches"):
            plan = BatchPlan.from_json(gzip.decompress(self.store.get(key)))
            assert plan.definition is not None
            for entry in (entry for task in plan.readmits for entry in task):
                assert rejected_by[entry.path] != plan.definition.digest
