"""A table is taken back to any of its batches, between any two faults: its stream is read again from there, each record
once; or what came since stays out of it, and nothing else does.

All that the machine of replays does goes on meanwhile: edits, replays, backfills, drivers that die at each step.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from random import Random
from unittest.mock import patch

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from machines.replays import FILED, IN_A_BATCH, NOW, Life, Patient, ReplayMachine, Transactional, definitions

from lakestream.errors import RestoreError
from lakestream.log import (
    Back,
    CheckpointLog,
    Document,
    ServiceRequest,
    Work,
    ask_for_service,
    cancel_service,
    committed_files,
    newest_epoch,
    newest_service,
    standing_at,
    without_readmitted,
)
from lakestream.log.layout import BATCHES, COMMITS, unpack
from lakestream.model import BatchCommit, BatchPlan, Definition, Reading, Taken, Trim, after
from lakestream.replay import Restores
from lakestream.restoring import Restorer


@dataclass
class Restorable:
    """The table, between two engines. The instant of a commit is the number of its batch."""

    machine: RestoreMachine
    log: CheckpointLog
    life: Life

    def require(self, instant: str, batch: int, checkpoint: str, comment: str) -> None:
        if int(instant) not in [number for number, _ in self.machine.place.rows]:
            raise RestoreError(f"no commit {instant}")

    def restore(self, instant: str) -> None:
        (plan,) = self.log.pending_plans()
        assert plan.restore is not None
        assert plan.restore.request not in self.machine.taken_back, "somebody was told that it is cancelled"
        self.life.reach("written")
        rows = self.machine.place.rows
        while rows and rows[-1][0] > int(instant):
            _, gone = rows.pop()
            self.machine.undo({record for record, _ in gone}, plan)
            self.life.reach("half_written")
        self.machine.undo(set(), plan)

    def release(self, instant: str, comment: str) -> None: ...


class RestoreMachine(ReplayMachine):
    place: Transactional

    def __init__(self) -> None:
        super().__init__()
        self.left_out: set[int] = set()
        """Records that somebody wanted out of the table."""
        self.taken_back: set[int] = set()
        """Numbers of requests."""

    @initialize(definition=definitions, overwrites=st.just(False))
    def begin(self, definition: Definition, overwrites: bool) -> None:
        self.definition = definition
        self.place = Transactional()

    @rule(chance=st.randoms(use_true_random=False), rereads=st.booleans())
    def ask_for_a_restore(self, chance: Random, rereads: bool) -> None:
        newest = newest_service(self.store)
        batches = [number for number, _ in self.place.rows if number < self.committed]
        if (newest is not None and newest[1] is None) or not batches:
            return
        batch = chance.choice(batches)
        standing = standing_at(self.store, str(batch), batch)
        assert standing is not None
        number = 1 if newest is None else newest[0].number + 1
        back = Back(standing, rereads, Document(self.definition.digest, newest_epoch(self.store)))
        assert ask_for_service(self.store, ServiceRequest(number, NOW, Work.RESTORE, str(batch), "", back))

    @rule()
    def take_the_restore_back(self) -> None:
        newest = newest_service(self.store)
        if newest is not None and newest[1] is None and cancel_service(self.store, newest[0].number, NOW):
            self.taken_back.add(newest[0].number)

    @rule()
    def mend_and_drain(self) -> None:
        """A document that fails on nothing gets through whatever there is; of requests, each driver takes one."""
        self.definition = Definition(self.definition.schema, None, None, self.definition.rules)
        for _ in range(3 + len(self.backfills) + len(self.spans)):
            self.drive(Life(None, 0))
        last = self.last_commit()
        assert last is not None
        assert [cursor.position for cursor in last.cursors if isinstance(cursor, Reading)] == [after(self.available)]
        newest = newest_service(self.store)
        assert newest is None or newest[1] is not None, "what is asked for is done, or it is told why not"

    def drive(self, life: Life) -> None:
        with patch("lakestream.restoring.reach", life.reach):
            super().drive(life)

    def restores(self, log: CheckpointLog, life: Life) -> Restores:
        def trim(known: Trim | None) -> Trim:
            return known or Trim(timedelta(days=1), NOW - timedelta(days=1))

        return Restorer(log, Restorable(self, log, life), self.definition, trim, Patient(), lambda: NOW)

    def is_taken_out(self, batch: int) -> bool:
        return self.place.find(batch) is None

    def undo(self, gone: set[int], plan: BatchPlan) -> None:
        """What a restore takes out of the table comes again, or is left out."""
        assert plan.restore is not None
        if not plan.restore.rereads:
            self.left_out |= gone
            return
        ends = [cursor.position.sequence for cursor in plan.cursors if isinstance(cursor, Reading)]
        again = {record for record in self.left_out if max(ends) * IN_A_BATCH <= record < FILED}
        taken = (plan.taken.request, plan.taken.parts) if plan.taken else (0, 0)
        for number, asked in self.backfills.items():
            again |= {record for record in asked if (number, (record - asked.start) // 2) >= taken}
        for number, asked in self.spans.items():
            again |= {record for record in asked if record >= asked.start + in_span(number, asked, plan.taken)}
        for number, parts in self.replayed.items():
            again |= {record for part, records in enumerate(parts) if (number, part) >= taken for record in records}
        self.left_out -= again

    def is_restoring(self) -> bool:
        keys = self.store.list(BATCHES)
        return len(keys) > len(self.store.list(COMMITS)) and self.plan(keys[-1]).restore is not None

    def plan(self, key: str) -> BatchPlan:
        return unpack(key, self.store.get(key), BatchPlan.from_json)

    @precondition(lambda self: not self.is_restoring())
    @invariant()
    def each_record_is_in_one_place_once(self) -> None:
        found = [record for batch in range(self.committed) for record, _ in self.place.visible(batch)]
        for one in without_readmitted(committed_files(self.store)):
            found += [record for entry in one.rejects for record, _ in self.place.quarantined(int(entry.path))]
        assert len(found) == len(set(found)), "each once"
        assert not self.left_out.intersection(found)
        there = self.left_out.union(found)
        last = self.last()
        ends = [cursor.position.sequence for cursor in last.cursors if isinstance(cursor, Reading)] if last else []
        assert {record for record in there if record < FILED} == set(range(max(ends, default=0) * IN_A_BATCH))
        request, parts = (last.taken.request, last.taken.parts) if last and last.taken else (0, 0)
        for number, asked in self.backfills.items():
            of_it = there.intersection(asked)
            if number == request:
                assert of_it == set(asked[: 2 * parts])
            elif number > request:
                assert not of_it
            elif number not in self.cancelled:
                assert of_it == set(asked)
        for number, asked in self.spans.items():
            taken, of_it = in_span(number, asked, last.taken if last else None), there.intersection(asked)
            if number not in self.cancelled:
                assert of_it == set(asked[:taken])

    def last(self) -> BatchCommit | None:
        keys = self.store.list(COMMITS)
        return unpack(keys[-1], self.store.get(keys[-1]), BatchCommit.from_json) if keys else None


def in_span(number: int, asked: range, taken: Taken | None) -> int:
    """How many records of a span are taken."""
    if taken is None or number > taken.request:
        return 0
    if number < taken.request or taken.span is None:
        return len(asked) if number < taken.request else 0
    ends = [cursor.position.sequence for cursor in taken.span.cursors if isinstance(cursor, Reading)]
    return ends[0] - asked.start if ends else len(asked) if taken.is_done else 0


TestRestoreMachine = RestoreMachine.TestCase
TestRestoreMachine.settings = settings(stateful_step_count=20)
