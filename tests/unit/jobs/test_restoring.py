"""Which restores are carried out, and what becomes of the others."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from lakestream.errors import FencedError, RestoreError, RetryLaterError
from lakestream.log import (
    CANCELLED,
    Back,
    CheckpointLog,
    Document,
    ObstoreLogStore,
    Outcome,
    ServiceRequest,
    ServiceRequests,
    Work,
    ask_for_service,
    cancel_service,
)
from lakestream.log import newest_service as newest
from lakestream.log.layout import decided_key, request_key
from lakestream.model import Definition, Restore, Standing, Trim
from lakestream.restoring import Restorer
from lakestream.stopping import StopSignal
from lakestream.storage import LakePath, S3Settings, StorageDeniedError, StoreSettings
from lakestream.testing.logs import EPOCH_TIME, ManualClock, commit_of, log_at, plan_of

PRESENT = Definition("id string", None, None)
DAY = timedelta(days=1)


@dataclass
class Table:
    """Notes what is done to it."""

    refusal: Exception | None = None
    breaks_off: bool = False
    dies: bool = False
    """At the refusal."""
    story: list[str] = field(default_factory=list)

    def require(self, instant: str, batch: int, checkpoint: str, comment: str) -> None:
        self.story.append(f"require {instant} of {batch}, {comment}")
        if self.dies:
            raise SystemExit
        if self.refusal is not None:
            raise self.refusal

    def restore(self, instant: str) -> None:
        self.story.append(f"restore {instant}")
        if self.breaks_off:
            raise ConnectionError

    def release(self, instant: str, comment: str) -> None:
        self.story.append(f"release {instant}")


class DeniedStore:
    """Of a driver that may not look at requests."""

    def get(self, key: str) -> bytes:
        raise StorageDeniedError(f"read {key}: access denied")

    def list(self, folder: str, after: str | None = None) -> list[str]:
        raise StorageDeniedError(f"list {folder}: access denied")


@pytest.fixture
def store(tmp_path: Path) -> ObstoreLogStore:
    return ObstoreLogStore.at(StoreSettings(LakePath.parse(str(tmp_path)), S3Settings("")))


@pytest.fixture
def log(tmp_path: Path) -> CheckpointLog:
    """Four batches are committed."""
    log = log_at(tmp_path)
    for batch in range(4):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch, files=1))
    return log


def standing(batch: int) -> Standing:
    return Standing.of(commit_of(plan_of(batch, 1), 1))


def ask(store: ObstoreLogStore, batch: int, *, rereads: bool = True, document: Document = Document()) -> None:  # noqa: B008 - frozen
    last = newest(store)
    back = Back(standing(batch), rereads, document)
    number = 1 if last is None else last[0].number + 1
    assert ask_for_service(store, ServiceRequest(number, EPOCH_TIME, Work.RESTORE, f"2026{batch}", "", back))


def restorer(
    log: CheckpointLog,
    table: Table,
    *,
    retention: timedelta = DAY,
    stop: StopSignal | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Restorer:
    made = Restorer(
        log,
        table,
        PRESENT,
        lambda known: Trim(retention, EPOCH_TIME + timedelta(minutes=30) - retention),
        stop or StopSignal(),
        lambda: EPOCH_TIME,
        monotonic,
    )
    made.look()
    return made


def test_a_restore_is_a_batch_whose_cursors_are_those_that_it_goes_back_to(
    log: CheckpointLog, store: ObstoreLogStore
) -> None:
    ask(store, 1)
    table = Table()
    driver = restorer(log, table)
    assert driver.is_wanted()
    assert driver.carry_out() == 1
    assert not driver.is_wanted()
    assert table.story == [
        "require 20261 of 1, for the restore of request 1",
        "restore 20261",
        "release 20261",
    ]
    last = log.last_commit()
    assert last is not None
    assert (last.batch, last.cursors, last.sink) == (4, standing(1).cursors, None)
    assert last.restore == Restore(1, "20261", 1, True)
    assert last.readmits == ("b2.parquet", "b3.parquet"), "their records come again"
    found = newest(store)
    assert found is not None
    assert found[1] == Outcome(1, EPOCH_TIME)


def test_a_request_of_another_release_does_not_stop_a_restore(log: CheckpointLog, store: ObstoreLogStore) -> None:
    """A later one's, which this one cannot read, and leaves: the table has been taken back by then."""
    ask(store, 1)
    driver = restorer(log, Table())
    store.create(request_key(1), b"of another release")
    assert driver.carry_out() == 1
    last = log.last_commit()
    assert last is not None
    assert last.readmits == ("b2.parquet", "b3.parquet")


def test_what_came_since_may_stay_out(log: CheckpointLog, store: ObstoreLogStore) -> None:
    ask(store, 1, rereads=False)
    # Nothing has to be retained for it.
    assert restorer(log, Table(), retention=timedelta(minutes=1)).carry_out() == 1
    last = log.last_commit()
    assert last is not None
    assert (last.cursors, last.readmits) == (standing(3).cursors, ())


def test_what_is_gone_from_the_stream_is_told_before_anything_is_undone(
    log: CheckpointLog, store: ObstoreLogStore
) -> None:
    ask(store, 1)
    table = Table()
    assert restorer(log, table, retention=timedelta(minutes=34)).carry_out() == 0
    assert table.story == ["release 20261"]
    found = newest(store)
    assert found is not None
    assert found[1] is not None
    assert "shardId-000000000000 has to be read again from 2026-01-31 12:00:01 UTC on" in found[1].error
    assert log.pending_plans() == ()


def test_a_table_that_cannot_go_back_keeps_all_it_has(log: CheckpointLog, store: ObstoreLogStore) -> None:
    ask(store, 1)
    table = Table(RestoreError("files of 20261 may have been cleaned"))
    driver = restorer(log, table)
    assert driver.carry_out() == 0
    assert not driver.is_wanted()
    assert "restore 20261" not in table.story
    found = newest(store)
    assert found is not None
    assert found[1] == Outcome(1, EPOCH_TIME, "files of 20261 may have been cleaned")
    last = log.last_commit()
    assert last is not None
    assert last.batch == 3


def test_a_driver_that_is_fenced_tells_nothing(log: CheckpointLog, store: ObstoreLogStore) -> None:
    ask(store, 1)
    with pytest.raises(FencedError):
        restorer(log, Table(FencedError("superseded"))).carry_out()
    found = newest(store)
    assert found is not None
    assert found[1] is None


def test_a_restore_for_another_document_is_left_to_a_later_driver(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path
) -> None:
    ask(store, 1, document=Document("another", 1))
    table = Table()
    driver = restorer(log, table)
    assert (driver.is_wanted(), driver.carry_out(), table.story) == (False, 0, [])
    assert restorer(log_at(tmp_path), table).carry_out() == 1


def test_a_driver_that_is_started_anew_before_the_edit_reaches_it_does_not_restore(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path
) -> None:
    """It would read again by the very document that was to be mended. It says so: all other work waits meanwhile."""
    document = Document("edited", log.epoch, instead_of=PRESENT.digest)
    ask(store, 1, document=document)
    request = log.services.next()
    assert request is not None
    table = Table()
    restorer(log, table).take(request)  # the one that runs leaves it
    anew = restorer(log_at(tmp_path), table)
    assert (anew.is_wanted(), anew.carry_out(), table.story) == (False, 0, [])
    with pytest.raises(RestoreError, match="started anew before the edited document reached it"):
        anew.take(request)
    edited = ServiceRequest(1, EPOCH_TIME, Work.RESTORE, "20261", "", Back(standing(1), True, document))
    assert edited.is_for("edited", log.epoch + 1)
    assert edited.is_for("edited once more", log.epoch + 1)


def test_a_run_that_is_to_stop_begins_none(log: CheckpointLog, store: ObstoreLogStore) -> None:
    ask(store, 1)
    stop = StopSignal()
    stop.set()
    assert not restorer(log, Table(), stop=stop).is_wanted()


def test_what_is_cancelled_before_its_plan_is_not_carried_out(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path
) -> None:
    """Also not by a driver that wants it already, nor if who cancelled it died before the outcome was there."""
    ask(store, 1)
    table = Table()
    driver = restorer(log, table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakestream.log.services.outcome_key", lambda number: f"lost/{number}")
        assert cancel_service(store, 1, EPOCH_TIME)
    found = newest(store)
    assert found is not None
    assert found[1] is None
    assert driver.is_wanted()
    assert (driver.carry_out(), driver.is_wanted(), table.story) == (0, False, [])
    found = newest(store)
    assert found is not None
    assert found[1] is not None
    assert found[1].error == CANCELLED
    ask(store, 2)
    anew = restorer(log_at(tmp_path), table)
    assert (anew.carry_out(), table.story[0]) == (1, "require 20262 of 2, for the restore of request 2")


def test_a_restore_that_is_decided_on_is_cancelled_no_more(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path
) -> None:
    """Also where the driver dies before the plan: the next one does it. A release that decides nothing has a plan."""
    ask(store, 1)
    with pytest.raises(SystemExit):
        restorer(log, Table(dies=True)).carry_out()
    assert not cancel_service(store, 1, EPOCH_TIME)
    with pytest.raises(ConnectionError):
        restorer(log_at(tmp_path), Table(breaks_off=True)).carry_out()
    store.delete([decided_key(1)])
    assert not cancel_service(store, 1, EPOCH_TIME)
    assert restorer(log_at(tmp_path), Table()).carry_out() == 1


def test_a_restore_that_is_left_to_another_driver_may_be_cancelled(log: CheckpointLog, store: ObstoreLogStore) -> None:
    clock = ManualClock()
    requests = ServiceRequests(store, clock.monotonic)
    ask(store, 1, document=Document("another", 1))
    assert requests.next() is not None
    assert cancel_service(store, 1, EPOCH_TIME)
    clock.advance(10)
    assert requests.next() is None
    ask(store, 2)
    clock.advance(10)
    request = requests.next()
    assert request is not None
    assert request.number == 2


def test_pending_batches_come_first(log: CheckpointLog, store: ObstoreLogStore) -> None:
    ask(store, 1)
    log.put_plan(plan_of(4, log.epoch))
    table = Table()
    driver = restorer(log, table)
    assert (driver.carry_out(), table.story) == (0, [])
    assert driver.is_wanted(), "once they are committed"


def test_an_outcome_that_cannot_be_kept_ends_the_run(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(store, 1)
    driver = restorer(log, Table())
    with monkeypatch.context() as patch:
        patch.setattr(log.services, "done", lambda outcome: False)
        with pytest.raises(RetryLaterError, match="request 1 cannot be kept"):
            driver.carry_out()
    table = Table()
    # The next driver knows by the commit that it is done.
    assert restorer(log_at(tmp_path), table).carry_out() == 0
    assert table.story == ["release 20261"]
    found = newest(store)
    assert found is not None
    assert found[1] == Outcome(1, EPOCH_TIME)


def test_a_restore_is_carried_out_once_if_nobody_can_look_whether_it_was(
    log: CheckpointLog, store: ObstoreLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch between would have it carried out again, and be undone: with `rereads` off, its records would be lost."""
    ask(store, 1, rereads=False)
    with monkeypatch.context() as patch:
        patch.setattr(log.services, "done", lambda outcome: False)
        with pytest.raises(RetryLaterError, match="request 1 cannot be kept"):
            restorer(log, Table()).carry_out()
    anew, table = log_at(tmp_path), Table()
    with monkeypatch.context() as patch:
        patch.setattr(anew.services, "_store", DeniedStore())
        driver = restorer(anew, table)
        with pytest.raises(StorageDeniedError):
            driver.carry_out()
    assert (restorer(log_at(tmp_path), table).carry_out(), table.story) == (0, ["release 20261"])
    again = log_at(tmp_path)
    assert (restorer(again, table).carry_out(), table.story) == (0, ["release 20261"]), "it is told"
    assert again.last_commit() == anew.last_commit()


def test_what_is_asked_for_in_place_of_a_restore_that_was_wanted_is_not_taken_for_it(
    store: ObstoreLogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch in hand takes a while; meanwhile it is cancelled, and asked for by the edited document."""
    log = log_at(tmp_path)
    plan = plan_of(0, log.epoch)
    log.put_plan(plan)
    log.put_commit(commit_of(plan, log.epoch))
    clock = ManualClock()
    monkeypatch.setattr(log.services, "_monotonic", clock.monotonic)
    monkeypatch.setattr(log.services, "_looked", -10.0)
    ask(store, 0)
    table = Table()
    driver = restorer(log, table)
    assert driver.is_wanted()
    assert cancel_service(store, 1, EPOCH_TIME)
    clock.advance(10)
    assert log.services.next() is None
    ask(store, 0, document=Document("edited", log.epoch, instead_of=PRESENT.digest))
    clock.advance(10)
    assert (driver.carry_out(), driver.is_wanted(), table.story) == (0, False, [])


def test_a_restore_that_cannot_be_decided_on_lets_batches_go_on(
    log: CheckpointLog, store: ObstoreLogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each try the sink is closed and opened again: where a right is missing, that would be all that goes on."""
    ask(store, 1)
    clock, table = ManualClock(), Table()
    driver = restorer(log, table, monotonic=clock.monotonic)
    request = log.services.next()
    assert request is not None
    tries = 0
    with monkeypatch.context() as patch:
        patch.setattr(log.services, "decide", lambda asked: False)
        for _ in range(120):
            driver.take(request)
            if driver.is_wanted():
                tries += 1
                assert driver.carry_out() == 0
            clock.advance(1)
    assert tries == 2
    driver.take(request)
    assert (driver.carry_out(), table.story[1]) == (1, "restore 20261")


def test_a_restore_that_was_begun_is_gone_on_with(log: CheckpointLog, store: ObstoreLogStore) -> None:
    """By a run that is to stop as well: the plan is in the log, and no batch can come before it is carried out."""
    ask(store, 1)
    with pytest.raises(ConnectionError):
        restorer(log, Table(breaks_off=True)).carry_out()
    assert [plan.restore is not None for plan in log.pending_plans()] == [True]
    table, stop = Table(), StopSignal()
    stop.set()
    assert restorer(log, table, stop=stop).carry_out() == 1
    assert table.story == ["restore 20261", "release 20261"]
    assert not log.pending_plans()
    last = log.last_commit()
    assert last is not None
    assert last.restore == Restore(1, "20261", 1, True)
    found = newest(store)
    assert found is not None
    assert found[1] == Outcome(1, EPOCH_TIME)
