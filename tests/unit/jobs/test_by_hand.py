"""What the driver makes of requests for work on its table."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future
from pathlib import Path

import pytest

from lakestream.by_hand import ByHand, Tended
from lakestream.log import Back, CheckpointLog, ObstoreLogStore, Outcome, ServiceRequest, Work, standing_at
from lakestream.model import Standing
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import EPOCH_TIME, commit_of, log_at, plan_of

COMPACTION = ServiceRequest(1, EPOCH_TIME, Work.COMPACTION)
CLEANING = ServiceRequest(2, EPOCH_TIME, Work.CLEANING)


class Scripted:
    """Requests, and a table whose work ends when it is told to."""

    def __init__(self, *requests: ServiceRequest) -> None:
        self.waiting = deque(requests)
        self.outcomes: list[Outcome] = []
        self.keeps = True
        self.decided: list[int] = []
        self.answers = True
        self.begun: list[tuple[Work, Future[None]]] = []
        self.busy = False
        self.refusal: Exception | None = None

    def next(self) -> ServiceRequest | None:
        return self.waiting[0] if self.waiting else None

    def decide(self, request: ServiceRequest) -> bool:
        self.decided.append(request.number)
        return self.answers

    def done(self, outcome: Outcome) -> bool:
        if self.keeps:
            self.waiting.popleft()
            self.outcomes.append(outcome)
        return self.keeps

    def begin(self, request: ServiceRequest) -> Future[None] | None:
        if self.refusal is not None:
            raise self.refusal
        if self.busy:
            return None
        future: Future[None] = Future()
        self.begun.append((request.work, future))
        return future

    @property
    def works(self) -> list[Work]:
        return [work for work, _ in self.begun]


def by_hand(table: Scripted) -> ByHand:
    return ByHand(table, table, now=lambda: EPOCH_TIME)


def test_requests_are_carried_out_one_after_the_other_while_batches_go_on() -> None:
    table = Scripted(COMPACTION, CLEANING)
    driver = by_hand(table)
    for _ in range(3):
        driver.between_batches()
    assert table.works == [Work.COMPACTION], "begun once, and the next waits for it"
    table.begun[0][1].set_result(None)
    driver.between_batches()
    driver.between_batches()
    assert table.outcomes == [Outcome(1, EPOCH_TIME)]
    assert table.works == [Work.COMPACTION, Work.CLEANING]
    table.begun[1][1].set_exception(RuntimeError("no listing\nat Some.java"))
    driver.settle()  # the run is over
    assert table.outcomes[1:] == [Outcome(2, EPOCH_TIME, "no listing")]


def test_what_cannot_begin_now_begins_later() -> None:
    table = Scripted(COMPACTION)
    driver = by_hand(table)
    table.busy = True
    driver.between_batches()
    table.busy = False
    driver.between_batches()
    assert (table.works, table.outcomes) == ([Work.COMPACTION], [])


def test_what_somebody_took_back_is_not_begun_and_a_restore_is_decided_on_by_who_carries_it_out() -> None:
    table = Scripted(COMPACTION)
    driver = by_hand(table)
    table.answers = False
    driver.between_batches()
    assert (table.works, table.decided) == ([], [1])
    table.waiting.clear()
    driver.between_batches()
    table.waiting.append(CLEANING)
    table.answers = True
    driver.between_batches()
    assert (table.works, table.decided) == ([Work.CLEANING], [1, 2])
    left = Saved(RESTORE)
    left.busy = True
    by_hand(left).between_batches()
    assert left.decided == []


def test_what_fails_at_once_has_an_outcome_and_fails_nothing_else() -> None:
    table = Scripted(COMPACTION)
    table.refusal = ValueError()
    by_hand(table).between_batches()
    assert table.outcomes == [Outcome(1, EPOCH_TIME, "ValueError")]


def test_an_outcome_that_cannot_be_kept_is_kept_later_and_the_work_is_not_done_again() -> None:
    table = Scripted(COMPACTION)
    driver = by_hand(table)
    driver.between_batches()
    table.begun[0][1].set_result(None)
    table.keeps = False
    driver.between_batches()
    table.keeps = True
    driver.between_batches()
    assert table.outcomes == [Outcome(1, EPOCH_TIME)]
    assert table.works == [Work.COMPACTION]


SAVEPOINT = ServiceRequest(1, EPOCH_TIME, Work.SAVEPOINT)
RESTORE = ServiceRequest(
    1, EPOCH_TIME, Work.RESTORE, "2026", "", Back(Standing(0, EPOCH_TIME, EPOCH_TIME, (), None), True)
)


class Saved(Scripted):
    """A table with a commit of a batch, which takes restores too."""

    newest: tuple[str, int] | None = ("2026", 1)
    restore: ServiceRequest | None = None

    def newest_batch(self, checkpoint: str) -> tuple[str, int] | None:
        return self.newest

    def take(self, request: ServiceRequest) -> None:
        self.restore = request


@pytest.fixture
def log(tmp_path: Path) -> CheckpointLog:
    """Two batches are committed."""
    log = log_at(tmp_path)
    for batch in range(2):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch, files=1))
    return log


def kept(folder: Path, batch: int) -> Standing | None:
    """What is kept for the savepoint; of a batch that the log has expired."""
    store = ObstoreLogStore.at(StoreSettings(LakePath.parse(str(folder)), S3Settings("")))
    store.delete([key for key in store.list("commits") if key])
    return standing_at(store, "2026", batch)


def test_where_the_stream_stands_is_kept_with_a_savepoint_and_forgotten_with_it(
    log: CheckpointLog, tmp_path: Path
) -> None:
    table = Saved()
    tended = Tended(table, log, table)
    last = log.last_commit()
    assert last is not None
    assert tended.begin(SAVEPOINT) is not None
    assert kept(tmp_path, 1) == Standing.of(last)
    assert kept(tmp_path, 2) is None, "the table has more than that"
    tended.begin(ServiceRequest(2, EPOCH_TIME, Work.SAVEPOINT_DELETION, "2026"))
    assert kept(tmp_path, 1) is None
    assert table.works == [Work.SAVEPOINT, Work.SAVEPOINT_DELETION]


def test_a_savepoint_waits_until_the_batch_that_is_visible_is_committed(log: CheckpointLog, tmp_path: Path) -> None:
    table = Saved()
    table.newest = ("2026", 2)
    assert Tended(table, log, table).begin(SAVEPOINT) is None
    assert (table.works, kept(tmp_path, 1)) == ([], None)


def test_a_restore_is_not_the_sinks(log: CheckpointLog) -> None:
    table = Saved()
    assert Tended(table, log, table).begin(RESTORE) is None
    assert (table.works, table.restore) == ([], RESTORE)
