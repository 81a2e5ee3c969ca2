"""Requests to read the quarantine once more: what a batch takes of them, in which order, and when it waits."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError, InvalidValueError, RequestError
from lakestream.log import (
    Document,
    ObstoreLogStore,
    Request,
    Requested,
    cancel_request,
    current_request,
    next_number,
    put_request,
)
from lakestream.log.layout import batch_key, commit_key, pack, request_key
from lakestream.log.taking import Requests, cut
from lakestream.model import (
    BatchCommit,
    Definition,
    FileEntry,
    FilePart,
    Format,
    Loss,
    Portion,
    Reading,
    Restore,
    Span,
    SpanDue,
    SpanProgress,
    Taken,
    at,
)
from lakestream.testing.logs import EPOCH_TIME, ManualClock, plan_of

OLD, NEW = "old definition", "new definition"
MANY = 1_000_000
ASKED = 4
"""Newest epoch when it is asked."""
BY = Document(NEW, ASKED)
MEANWHILE = "a table with deleteWhen remembers all deletes until then; cancel it if that does not come"


def a_file(name: str, rows: int = 10, size: int = 100, rejected_by: str = OLD) -> Requested:
    return Requested(FileEntry(name, rows, size, ""), rejected_by)


def request(number: int, *files: Requested) -> Request:
    return Request(number, EPOCH_TIME, BY, files)


def names(tasks: tuple[tuple[FileEntry, ...], ...]) -> list[list[str]]:
    return [[entry.path for entry in task] for task in tasks]


def taken_in(found: Portion | None) -> list[str]:
    assert found is not None
    return [path for task in names(found.tasks) for path in task]


def taken_of(store: ObstoreLogStore) -> Taken:
    state = current_request(store)
    assert state is not None
    return state.taken


def put_commit(
    store: ObstoreLogStore, batch: int, rejects: str = "", readmits: str = "", back: int | None = None
) -> None:
    """A batch that has rejected some files of the quarantine, taken others out of it, or undone all behind another."""
    made = BatchCommit.of(plan_of(batch, 1), epoch=1, committed_at=EPOCH_TIME)
    made = replace(
        made,
        rejects=tuple(FileEntry(name, 10, 100, "") for name in rejects),
        readmits=tuple(readmits),
        restore=None if back is None else Restore(1, "20260101000000000", back, rereads=True),
    )
    store.create(commit_key(batch), pack(made.to_json()))


@pytest.fixture
def store() -> ObstoreLogStore:
    return ObstoreLogStore(MemoryStore())


@pytest.fixture
def quarantined(store: ObstoreLogStore) -> ObstoreLogStore:
    """The store of a log whose first batch has rejected four files."""
    put_commit(store, 0, rejects="abcd")
    return store


files = st.builds(
    a_file,
    st.text(min_size=1),
    st.integers(0, 20_000),
    st.integers(0, 20 * 1024 * 1024),
    st.sampled_from([OLD, OLD, OLD, NEW]),
)


@given(st.lists(files, min_size=1, max_size=300), st.integers(1, 50_000))
def test_a_batch_takes_files_from_the_front_within_its_limits(found: list[Requested], most: int) -> None:
    tasks = cut(found, NEW, most)
    entries = [entry for task in tasks for entry in task]
    assert entries == [one.part for one in found[: len(entries)]]
    assert entries
    assert all(tasks)
    if len(entries) > 1:
        assert sum(entry.rows for entry in entries) <= most
        assert sum(entry.bytes for entry in entries) <= 32 * 1024 * 1024
        assert {one.rejected_by for one in found[1 : len(entries)]} <= {OLD}
    assert all(len(task) <= 100 for task in tasks)
    assert all(sum(entry.rows for entry in task[:-1]) < 5_000 for task in tasks)


def test_a_batch_ends_where_a_file_comes_that_it_would_reject_again() -> None:
    found = [a_file("a"), a_file("b", rejected_by=NEW), a_file("c")]
    assert names(cut(found, NEW, MANY)) == [["a"]]


def test_a_file_larger_than_the_limits_is_a_batch_of_its_own() -> None:
    assert names(cut([a_file("a", rows=99), a_file("b")], NEW, 10)) == [["a"]]


def test_requests_are_carried_out_in_order_and_each_file_once(quarantined: ObstoreLogStore) -> None:
    put_request(quarantined, request(1, a_file("a"), a_file("b"), a_file("c")))
    put_request(quarantined, request(2, a_file("d")))
    clock = ManualClock()
    requests, seen, behind = Requests(quarantined, ASKED, clock.monotonic), [], None
    for _ in range(4):
        found = requests.next(behind, NEW, 10)
        seen += taken_in(found)
        behind = found.taken if found else None
        clock.advance(10)
    assert seen == ["a", "b", "c", "d"]
    assert behind == Taken(2, 1, 1)
    assert requests.next(behind, NEW, 10) is None


def test_another_driver_goes_on_where_the_one_before_was(quarantined: ObstoreLogStore) -> None:
    put_request(quarantined, request(1, a_file("a"), a_file("b"), a_file("c")))
    found = Requests(quarantined, ASKED).next(Taken(1, 1, 3), NEW, MANY)
    assert taken_in(found) == ["b", "c"]
    assert found is not None
    assert found.taken == Taken(1, 3, 3)


def test_files_that_are_in_quarantine_no_more_are_left_out(
    quarantined: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the table by another request, or come again from the stream."""
    put_commit(quarantined, 1, rejects="e", readmits="bd")
    put_commit(quarantined, 2, readmits="e", back=0)  # so the second batch is undone, and what it rejected comes again
    put_request(quarantined, request(1, *map(a_file, "abecd")))
    requests = Requests(quarantined, ASKED)
    first = requests.next(None, NEW, 20)
    assert (taken_in(first), first and first.taken) == (["a", "b"], Taken(1, 2, 5))
    with caplog.at_level(logging.WARNING):
        second = requests.next(Taken(1, 2, 5), NEW, 20)
    assert (taken_in(second), second and second.taken) == (["c", "d"], Taken(1, 5, 5))
    assert "replay 1: 1 of its files are in quarantine no more" in caplog.text
    put_commit(quarantined, 3, readmits="abcd")
    assert Requests(quarantined, ASKED).next(Taken(1, 1, 5), NEW, 20) == Portion((), Taken(1, 5, 5)), "it is done"


def test_of_a_table_that_was_taken_back_a_request_takes_again_what_is_there_again(quarantined: ObstoreLogStore) -> None:
    put_request(quarantined, request(1, *map(a_file, "ab")))
    put_commit(quarantined, 1, readmits="a")
    requests = Requests(quarantined, ASKED)
    assert taken_in(requests.next(Taken(1, 1, 2), NEW, MANY)) == ["b"]
    put_commit(quarantined, 2, readmits="b")
    put_commit(quarantined, 3, back=0)
    assert taken_in(requests.next(None, NEW, MANY)) == ["a", "b"]


def test_a_request_waits_for_another_definition_than_the_one_that_rejected(
    quarantined: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    put_request(quarantined, request(1, a_file("a", rejected_by=OLD)))
    requests = Requests(quarantined, ASKED + 1)
    with caplog.at_level(logging.WARNING):
        assert [requests.next(None, OLD, MANY) for _ in range(3)] == [None] * 3
    assert [record.message for record in caplog.records] == [
        "replay 1 waits for another schema or transform: those of this driver have rejected its records; " + MEANWHILE
    ]
    assert taken_in(requests.next(None, "another", MANY)) == ["a"]


def test_a_driver_of_an_earlier_document_leaves_a_request_to_the_next_one(
    quarantined: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what it has not rejected itself: it would take it to quarantine again, and the mended one come too late."""
    put_request(quarantined, request(1, a_file("a", rejected_by="an older one")))
    with caplog.at_level(logging.WARNING):
        assert Requests(quarantined, ASKED).next(None, OLD, MANY) is None
    assert f"replay 1 waits for a driver with the document that it was asked for with; {MEANWHILE}" in caplog.text
    assert taken_in(Requests(quarantined, ASKED).next(None, NEW, MANY)) == ["a"], (
        "it was started with that document already"
    )
    assert taken_in(Requests(quarantined, ASKED + 1).next(None, "edited once more", MANY)) == ["a"]


BEFORE = Definition("id string", None, None)
EDITED = Definition("id string, n long", None, None)


def planned_by(store: ObstoreLogStore, definition: Definition) -> None:
    store.create(batch_key(0), pack(replace(plan_of(0, ASKED), definition=definition).to_json()))


def test_a_driver_that_is_started_anew_before_the_edit_reaches_it_leaves_a_request(store: ObstoreLogStore) -> None:
    """It would take a backfill by the very schema that was to be mended."""
    planned_by(store, BEFORE)
    request = Request(1, EPOCH_TIME, replace(Document.given(store, EDITED), epoch=ASKED), (a_part(0),))
    assert Request.from_json(request.to_json()) == request
    put_request(store, request)
    assert Requests(store, ASKED + 1).next(None, BEFORE.digest, MANY) is None
    assert "leaves it to one that is started with the edited document" in str(current_request(store))
    for later in (EDITED, Definition("id string, m long", None, None)):
        assert Requests(store, ASKED + 1).next(None, later.digest, MANY) is not None


@pytest.mark.parametrize("by", [EDITED, replace(EDITED, rules=EDITED.rules + 1)])
def test_a_document_that_was_not_edited_waits_for_no_edit(store: ObstoreLogStore, by: Definition) -> None:
    """Whichever release the driver is of, the one that runs or the next one."""
    planned_by(store, by)
    document = Document.given(store, EDITED)
    put_request(store, Request(1, EPOCH_TIME, document, (a_part(0),)))
    assert document.is_for(by.digest, document.epoch)
    assert document.is_for(EDITED.digest, document.epoch + 1)
    assert document.is_for(by.digest, document.epoch + 1)
    assert "the writer's driver goes on with it" in str(current_request(store))


def test_of_a_request_of_an_earlier_release_nobody_knows_what_was_edited() -> None:
    fields = {"definition": NEW, "epoch": ASKED}
    assert Document.from_fields(fields) == Document(NEW, ASKED)
    assert Document.from_fields(fields).is_for(OLD, ASKED + 1)


def test_the_store_is_asked_now_and_then_only(quarantined: ObstoreLogStore) -> None:
    clock = ManualClock()
    requests = Requests(quarantined, ASKED, clock.monotonic)
    assert requests.next(None, NEW, MANY) is None
    put_request(quarantined, request(1, a_file("a")))
    assert requests.next(None, NEW, MANY) is None
    clock.advance(10)
    assert taken_in(requests.next(None, NEW, MANY)) == ["a"]


def test_of_several_that_wait_since_a_restore_one_follows_the_other(quarantined: ObstoreLogStore) -> None:
    put_request(quarantined, request(1, a_file("a")))
    put_request(quarantined, request(2, a_file("b")))
    requests = Requests(quarantined, ASKED, ManualClock().monotonic)
    first = requests.next(None, NEW, MANY)
    assert taken_in(first) == ["a"]
    assert isinstance(first, Portion)
    assert taken_in(requests.next(first.taken, NEW, MANY)) == ["b"]


@pytest.mark.parametrize("body", [b"nonsense", pack(b"{}"), pack(request(7, a_file("a")).to_json())])
def test_a_damaged_request_does_not_stop_the_stream(
    store: ObstoreLogStore, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.create(request_key(1), body)
    with caplog.at_level(logging.WARNING):
        assert Requests(store, ASKED).next(None, NEW, MANY) is None
    assert "request 1 cannot be read, and has to wait, and a table with deleteWhen remembers all deletes" in caplog.text
    assert " meanwhile: replays/000000000001.json.gz" in caplog.text
    with pytest.raises(CorruptLogError):
        current_request(store)


def test_what_is_asked_for_is_due_until_it_is_done(quarantined: ObstoreLogStore) -> None:
    """Also where it waits, or cannot be read."""
    clock = ManualClock()
    requests = Requests(quarantined, ASKED, clock.monotonic)
    requests.begin(None)
    assert not requests.is_due
    put_request(quarantined, request(1, a_file("a")))
    assert requests.next(None, OLD, MANY) is None, "it waits for a driver with its document"
    assert requests.is_due
    assert requests.next(Taken(1, 1, 1), OLD, MANY) is None
    assert not requests.is_due
    quarantined.create(request_key(2), b"nonsense")
    requests.begin(Taken(1, 1, 1))
    assert requests.is_due


def test_what_was_cancelled_before_a_driver_began_is_not_taken(store: ObstoreLogStore, backfill: Request) -> None:
    cancel_request(store, 1, EPOCH_TIME)
    requests = Requests(store, ASKED)
    requests.begin(None)
    assert requests.next(None, NEW, MANY) == Portion((), Taken(1, 0, 0))


def test_of_two_who_ask_at_once_one_is_told_so(store: ObstoreLogStore) -> None:
    assert put_request(store, request(1, a_file("a")))
    assert not put_request(store, request(1, a_file("b")))
    assert put_request(store, request(1, a_file("a"))), "a lost answer"


def test_the_current_request_is_the_newest_one(store: ObstoreLogStore) -> None:
    assert current_request(store) is None
    # Of what no document has rejected, none has to be another one.
    put_request(store, request(1, a_file("a", rejected_by=""), a_file("b", rejected_by="")))
    assert taken_of(store) == Taken(1, 0, 2)
    commit = BatchCommit.of(plan_of(0, 1), epoch=1, committed_at=EPOCH_TIME)
    store.create(commit_key(0), pack(commit.to_json()))
    store.create(batch_key(0), b"not looked at")
    assert taken_of(store) == Taken(1, 0, 2)
    done = replace(commit, batch=1, taken=Taken(1, 2, 2))
    store.create(commit_key(1), pack(done.to_json()))
    assert taken_of(store) == Taken(1, 2, 2)
    put_request(store, request(2, a_file("c", rejected_by="")))
    assert taken_of(store) == Taken(2, 0, 1)


@given(st.lists(files, min_size=1))
def test_a_request_survives_json(found: list[Requested]) -> None:
    one = request(3, *found)
    assert Request.from_json(one.to_json()) == one


def a_part(number: int) -> Requested:
    return Requested(FilePart("/a.json", Format.JSON, 10 * number, 10 * number + 10, 5, 10, '"x"', EPOCH_TIME))


@pytest.fixture
def backfill(store: ObstoreLogStore) -> Request:
    """One of three parts."""
    found = request(1, *map(a_part, range(3)))
    put_request(store, found)
    return found


def test_a_backfill_is_a_request_of_parts_of_other_files(store: ObstoreLogStore, backfill: Request) -> None:
    assert Request.from_json(backfill.to_json()) == backfill
    assert b'"version":3' in backfill.to_json(), "a release that knows replays alone has to leave it"
    assert (str(backfill), backfill.files, backfill.records) == ("backfill 1", ("/a.json",), 15)
    found = Requests(store, ASKED).next(None, NEW, 10)
    assert found == Portion(((a_part(0).part, a_part(1).part),), Taken(1, 2, 3))
    with pytest.raises(InvalidValueError, match="of two kinds"):
        request(2, a_file("a"), a_part(0))
    with pytest.raises(RequestError, match=r"backfill 1 has come to part 0 of 3; .* One goes on at a time"):
        next_number(store)


@pytest.mark.parametrize("taken", [0, 1])
def test_no_more_is_taken_of_a_request_that_is_cancelled(store: ObstoreLogStore, backfill: Request, taken: int) -> None:
    clock, behind = ManualClock(), Taken(1, 1, 3) if taken else None
    requests = Requests(store, ASKED, clock.monotonic)
    assert requests.next(behind, NEW, 5) is not None
    cancel_request(store, 1, EPOCH_TIME)
    state = current_request(store)
    assert (state is not None and state.is_cancelled, taken_of(store)) == (True, Taken(1, 0, 3))
    assert "backfill 1 is cancelled at part 0 of 3; the writer's driver is yet to see that" in str(state)
    clock.advance(10)
    assert requests.next(behind, NEW, 5) == Portion((), Taken(1, taken, taken))
    commit = BatchCommit.of(plan_of(0, 1), epoch=1, committed_at=EPOCH_TIME)
    store.create(commit_key(0), pack(replace(commit, taken=Taken(1, taken, taken)).to_json()))
    assert str(current_request(store)) == f"backfill 1 was cancelled: {taken} of its 3 parts were taken"
    assert next_number(store) == 2
    put_commit(store, 1, rejects="b")
    put_request(store, request(2, a_file("b")))
    clock.advance(10)
    assert taken_in(requests.next(Taken(1, taken, taken), NEW, 5)) == ["b"]


def test_a_damaged_request_can_be_cancelled(store: ObstoreLogStore) -> None:
    store.create(request_key(1), b"nonsense")
    cancel_request(store, 1, EPOCH_TIME)
    assert Requests(store, ASKED).next(None, NEW, 5) == Portion((), Taken(1, 0, 0))


def test_a_request_that_waits_for_another_definition_can_be_cancelled(store: ObstoreLogStore) -> None:
    put_request(store, request(1, a_file("a", rejected_by=NEW)))
    cancel_request(store, 1, EPOCH_TIME)
    assert Requests(store, ASKED).next(None, NEW, 5) == Portion((), Taken(1, 0, 0))


def test_a_request_of_nothing_is_none() -> None:
    with pytest.raises(InvalidValueError, match="name files"):
        request(1)


SPAN = Span(EPOCH_TIME, EPOCH_TIME + timedelta(hours=2))


@pytest.fixture
def span(store: ObstoreLogStore) -> Request:
    found = Request(1, EPOCH_TIME, BY, (), SPAN)
    assert put_request(store, found)
    return found


def committed(store: ObstoreLogStore, batch: int, taken: Taken) -> None:
    commit = BatchCommit.of(plan_of(batch, 1), epoch=1, committed_at=EPOCH_TIME)
    store.create(commit_key(batch), pack(replace(commit, taken=taken).to_json()))


def test_a_span_of_the_stream_is_asked_for(store: ObstoreLogStore, span: Request) -> None:
    assert Request.from_json(span.to_json()) == span
    assert b'"version":4' in span.to_json(), "a release that does not know of spans has to leave it"
    assert (str(span), span.is_backfill, span.size, span.files, span.records) == ("backfill 1", True, 1, (), 0)
    requests = Requests(store, ASKED)
    assert requests.next(None, NEW, 10) == SpanDue(1, SPAN, None)
    progress = SpanProgress(reached=EPOCH_TIME)
    assert requests.next(Taken(1, 0, 1, progress), NEW, 10) == SpanDue(1, SPAN, progress)
    with pytest.raises(InvalidValueError, match="name files, or a span"):
        Request(1, EPOCH_TIME, BY, (a_file("a"),), SPAN)
    with pytest.raises(InvalidValueError, match="is empty"):
        Span(EPOCH_TIME, EPOCH_TIME)


def test_what_is_known_of_the_request_before_is_not_of_a_span(store: ObstoreLogStore) -> None:
    put_request(store, Request(2, EPOCH_TIME, BY, (), SPAN))
    before = Taken(1, 1, 1, SpanProgress(reached=EPOCH_TIME))
    assert Requests(store, ASKED).next(before, NEW, 10) == SpanDue(2, SPAN, None)


def test_it_waits_for_a_driver_with_the_document_that_it_was_asked_for_with(
    store: ObstoreLogStore, span: Request
) -> None:
    assert Requests(store, ASKED).next(None, OLD, 10) is None
    assert Requests(store, ASKED + 1).next(None, OLD, 10) is not None


def test_a_span_that_is_cancelled_keeps_what_is_known_of_it(store: ObstoreLogStore, span: Request) -> None:
    cancel_request(store, 1, EPOCH_TIME)
    cursor = Reading("shardId-0", at(5), EPOCH_TIME, None)
    behind = Taken(1, 0, 1, SpanProgress((cursor,), None, EPOCH_TIME, (), 7))
    found = Requests(store, ASKED).next(behind, NEW, 10)
    assert found == Portion((), Taken(1, 0, 0, SpanProgress((), None, EPOCH_TIME, (), 7)))


LOST = Loss("shardId-0", None, at(5), EPOCH_TIME, EPOCH_TIME)


@pytest.mark.parametrize(
    ("taken", "is_cancelled", "said"),
    [
        (
            None,
            False,
            "(2026-01-31 12:00:00 to 2026-01-31 14:00:00 UTC) has taken 0 records; the writer's driver goes on",
        ),
        (
            Taken(1, 0, 1, SpanProgress(reached=EPOCH_TIME, records=1234)),
            False,
            "has taken 1,234 records up to 2026-01-31 12:00:00 UTC; the writer's driver goes on with it",
        ),
        (
            Taken(1, 0, 1, SpanProgress(records=7)),
            True,
            "backfill 1 is cancelled at 7 records; the writer's driver is yet to see that",
        ),
        (Taken(1, 0, 0, SpanProgress(records=7)), True, "backfill 1 was cancelled: 7 records were taken"),
        (
            Taken(1, 1, 1, SpanProgress(records=7)),
            False,
            "backfill 1 is done: 2026-01-31 12:00:00 to 2026-01-31 14:00:00 UTC, 7 records",
        ),
        (
            Taken(1, 0, 0, SpanProgress(records=7, lost=(LOST,), failed=True)),
            False,
            "backfill 1 has ended with 7 records, as spec.source.kinesis.onDataLoss is fail and records of 2026-01-31 "
            f"12:00:00 to 2026-01-31 14:00:00 UTC may have been trimmed before they were read: {LOST}",
        ),
    ],
)
def test_it_is_told_how_far_a_span_is(
    store: ObstoreLogStore, span: Request, taken: Taken | None, is_cancelled: bool, said: str
) -> None:
    if taken is not None:
        committed(store, 0, taken)
    if is_cancelled:
        cancel_request(store, 1, EPOCH_TIME)
    assert said in str(current_request(store))


def test_of_several_that_wait_since_a_restore_the_first_one_goes_on_and_is_cancelled(
    quarantined: ObstoreLogStore,
) -> None:
    """The document went back with the table, and all that the first one has left was rejected by that: it would keep
    the second one, and whatever is asked for, waiting for good."""
    put_request(quarantined, request(1, a_file("a", rejected_by=BEFORE.digest)))
    put_commit(quarantined, 1, readmits="a")
    put_request(quarantined, request(2, a_file("b")))
    put_commit(quarantined, 2, back=0)
    planned_by(quarantined, BEFORE)
    assert Requests(quarantined, ASKED + 1).next(None, BEFORE.digest, MANY) is None
    state = current_request(quarantined)
    assert state is not None
    assert str(state) == (
        "replay 1 has come to part 0 of 1; the writer's driver leaves it to one that is started with the edited "
        "document, which it was asked for with; if there is to be none, `lakestream backfill cancel`; behind it 1 "
        "more, since the table was taken back"
    )
    with pytest.raises(RequestError, match="replay 1 has come to part 0 of 1"):
        next_number(quarantined)
    cancel_request(quarantined, state.request.number, EPOCH_TIME)
    behind = Requests(quarantined, ASKED + 1).next(None, BEFORE.digest, MANY)
    assert behind == Portion((), Taken(1, 0, 0))
    committed(quarantined, 3, behind.taken)
    assert str(current_request(quarantined)) == "replay 2 has come to part 0 of 1; the writer's driver goes on with it"
    committed(quarantined, 4, Taken(2, 1, 1))
    assert str(current_request(quarantined)) == "replay 2 is done"
    assert next_number(quarantined) == 3
