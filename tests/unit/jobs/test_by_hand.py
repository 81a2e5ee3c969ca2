"""What the driver makes of requests for work on its table."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future

from lakestream.by_hand import ByHand
from lakestream.log import Outcome, ServiceRequest, Work
from lakestream.testing.logs import EPOCH_TIME

COMPACTION = ServiceRequest(1, EPOCH_TIME, Work.COMPACTION)
CLEANING = ServiceRequest(2, EPOCH_TIME, Work.CLEANING)


class Scripted:
    """Requests, and a table whose work ends when it is told to."""

    def __init__(self, *requests: ServiceRequest) -> None:
        self.waiting = deque(requests)
        self.outcomes: list[Outcome] = []
        self.keeps = True
        self.begun: list[tuple[Work, Future[None]]] = []
        self.busy = False
        self.refusal: Exception | None = None

    def next(self) -> ServiceRequest | None:
        return self.waiting[0] if self.waiting else None

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
