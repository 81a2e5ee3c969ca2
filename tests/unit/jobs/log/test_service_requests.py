"""Requests for work on a table, and their outcomes."""

from __future__ import annotations

import logging
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError, InvalidValueError
from lakestream.log import (
    CANCELLED,
    Back,
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
from lakestream.log.layout import pack, service_key
from lakestream.model import Standing
from lakestream.storage import StorageDeniedError, StorageUnavailableError
from lakestream.testing.logs import EPOCH_TIME, ManualClock
from lakestream.testing.strategies import standings

COMPACTION = ServiceRequest(1, EPOCH_TIME, Work.COMPACTION)


@pytest.fixture
def store() -> ObstoreLogStore:
    return ObstoreLogStore(MemoryStore())


@given(st.integers(1, 10**12), st.sampled_from(Work), st.text(), st.text(min_size=1), standings(), st.booleans())
def test_requests_and_outcomes_are_read_as_they_were_written(
    number: int, work: Work, text: str, instant: str, standing: Standing, rereads: bool
) -> None:
    back = Back(standing, rereads, Document(text, number)) if work is Work.RESTORE else None
    names = work in (Work.SAVEPOINT_DELETION, Work.RESTORE)
    request = ServiceRequest(number, EPOCH_TIME, work, instant if names else "", text, back)
    assert ServiceRequest.from_json(request.to_json()) == request
    outcome = Outcome(number, EPOCH_TIME, text)
    assert Outcome.from_json(outcome.to_json()) == outcome


def test_a_deletion_names_what_and_nothing_else_does() -> None:
    with pytest.raises(InvalidValueError, match="a savepoint deletion with the instant ''"):
        ServiceRequest(1, EPOCH_TIME, Work.SAVEPOINT_DELETION)
    with pytest.raises(InvalidValueError, match="a compaction with the instant '2026'"):
        ServiceRequest(1, EPOCH_TIME, Work.COMPACTION, "2026")


def test_a_restore_says_what_it_goes_back_to_and_nothing_else_does() -> None:
    with pytest.raises(InvalidValueError, match="says what it goes back to"):
        ServiceRequest(1, EPOCH_TIME, Work.RESTORE, "2026")
    with pytest.raises(InvalidValueError, match="says what it goes back to"):
        ServiceRequest(1, EPOCH_TIME, Work.COMPACTION, back=back_to("x", 1))


def back_to(definition: str, epoch: int) -> Back:
    return Back(Standing(0, EPOCH_TIME, EPOCH_TIME, (), None), True, Document(definition, epoch))


@pytest.mark.parametrize(
    ("asked_by", "driver", "epoch", "is_for"),
    [
        ("new", "new", 3, True),
        ("new", "old", 3, False),
        # It was started after that, with whatever the document says by now.
        ("new", "newer", 4, True),
        # Asked for by the path of the table.
        ("", "old", 3, True),
    ],
)
def test_the_driver_of_an_earlier_document_leaves_a_restore_to_its_successor(
    asked_by: str, driver: str, epoch: int, is_for: bool
) -> None:
    request = ServiceRequest(1, EPOCH_TIME, Work.RESTORE, "2026", "", back_to(asked_by, 3))
    assert request.is_for(driver, epoch) is is_for


def test_a_request_is_taken_until_it_has_an_outcome_and_then_the_next(store: ObstoreLogStore) -> None:
    clock = ManualClock()
    requests = ServiceRequests(store, clock.monotonic)
    assert requests.next() is None
    assert ask_for_service(store, COMPACTION)
    assert requests.next() is None, "it has looked a moment ago"
    clock.advance(10)
    assert requests.next() == COMPACTION
    # A driver that takes over before there is an outcome does it once more.
    assert ServiceRequests(store, clock.monotonic).next() == COMPACTION
    assert newest(store) == (COMPACTION, None)
    outcome = Outcome(1, EPOCH_TIME, "no listing")
    assert requests.done(outcome)
    assert newest(store) == (COMPACTION, outcome)
    clock.advance(10)
    assert requests.next() is None
    cleaning = ServiceRequest(2, EPOCH_TIME, Work.CLEANING)
    assert ask_for_service(store, cleaning)
    assert not ask_for_service(store, ServiceRequest(2, EPOCH_TIME, Work.SAVEPOINT)), "somebody else was first"
    clock.advance(10)
    assert requests.next() == cleaning
    assert ServiceRequests(store, clock.monotonic).next() == cleaning


def test_a_request_is_begun_or_cancelled_and_never_both(store: ObstoreLogStore) -> None:
    clock = ManualClock()
    requests = ServiceRequests(store, clock.monotonic)
    assert ask_for_service(store, COMPACTION)
    assert requests.next() == COMPACTION
    assert requests.decide(COMPACTION)
    assert requests.decide(COMPACTION), "as often as it is asked"
    assert not cancel_service(store, 1, EPOCH_TIME)
    assert newest(store) == (COMPACTION, None)
    assert requests.done(Outcome(1, EPOCH_TIME))
    cleaning = ServiceRequest(2, EPOCH_TIME, Work.CLEANING)
    assert ask_for_service(store, cleaning)
    clock.advance(10)
    assert requests.next() == cleaning
    assert cancel_service(store, 2, EPOCH_TIME)
    assert cancel_service(store, 2, EPOCH_TIME), "the answer was lost"
    assert newest(store) == (cleaning, Outcome(2, EPOCH_TIME, CANCELLED))
    assert not requests.decide(cleaning)
    savepoint = ServiceRequest(3, EPOCH_TIME, Work.SAVEPOINT)
    assert ask_for_service(store, savepoint)
    assert cancel_service(store, 3, EPOCH_TIME), "before any driver has seen it"
    clock.advance(10)
    assert requests.next() is None
    assert ask_for_service(store, ServiceRequest(4, EPOCH_TIME, Work.SAVEPOINT))
    clock.advance(10)
    request = requests.next()
    assert request is not None
    assert request.number == 4
    assert ServiceRequests(store, clock.monotonic).next() == request


def test_a_decision_waits_for_the_store(store: ObstoreLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = ServiceRequests(store)
    assert ask_for_service(store, COMPACTION)
    assert requests.next() == COMPACTION
    with monkeypatch.context() as away:
        away.setattr(store, "create", Mock(side_effect=StorageUnavailableError("away")))
        assert not requests.decide(COMPACTION)
    assert requests.next() == COMPACTION
    assert requests.decide(COMPACTION)


def test_what_cannot_be_put_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """It is tried each second, and a right may be missing for good."""
    requests = ServiceRequests(Mock(create=Mock(side_effect=StorageDeniedError("denied"))))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert not requests.decide(COMPACTION)
        for _ in range(3):
            assert not requests.done(Outcome(1, EPOCH_TIME))
    assert caplog.messages == ["request 1 has to wait: denied", "the outcome of request 1 cannot be kept yet: denied"]


def test_work_of_a_later_release_waits_and_is_told_once(
    store: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.create(service_key(1), pack(COMPACTION.to_json().replace(b'"compaction"', b'"polishing"')))
    clock = ManualClock()
    requests = ServiceRequests(store, clock.monotonic)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert requests.next() is None
            clock.advance(10)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "'polishing' is not a valid Work" in caplog.text
    with pytest.raises(CorruptLogError, match="polishing"):
        newest(store)
