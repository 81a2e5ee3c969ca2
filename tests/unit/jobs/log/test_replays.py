"""Requests to read the quarantine once more: what a batch takes of them, in which order, and when it waits."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError, InvalidValueError
from lakestream.log import ObstoreLogStore, RejectedFile, ReplayRequest, ask_for_replay, how_far
from lakestream.log.layout import batch_key, commit_key, pack, replay_key
from lakestream.log.replays import Replays, cut
from lakestream.model import BatchCommit, FileEntry, Readmission, Readmitted
from lakestream.testing.logs import EPOCH_TIME, ManualClock, plan_of

OLD, NEW = "old definition", "new definition"
MANY = 1_000_000
ASKED = 4
"""Newest epoch when it is asked."""


def a_file(name: str, rows: int = 10, size: int = 100, rejected_by: str = OLD) -> RejectedFile:
    return RejectedFile(FileEntry(name, rows, size, ""), rejected_by)


def request(number: int, *files: RejectedFile) -> ReplayRequest:
    return ReplayRequest(number, EPOCH_TIME, NEW, ASKED, files)


def names(tasks: tuple[tuple[FileEntry, ...], ...]) -> list[list[str]]:
    return [[entry.path for entry in task] for task in tasks]


def taken(found: Readmission | None) -> list[str]:
    assert found is not None
    return [path for task in names(found.tasks) for path in task]


@pytest.fixture
def store() -> ObstoreLogStore:
    return ObstoreLogStore(MemoryStore())


files = st.builds(
    a_file,
    st.text(min_size=1),
    st.integers(0, 20_000),
    st.integers(0, 20 * 1024 * 1024),
    st.sampled_from([OLD, OLD, OLD, NEW]),
)


@given(st.lists(files, min_size=1, max_size=300), st.integers(1, 50_000))
def test_a_batch_takes_files_from_the_front_within_its_limits(found: list[RejectedFile], most: int) -> None:
    tasks = cut(found, NEW, most)
    entries = [entry for task in tasks for entry in task]
    assert entries == [one.entry for one in found[: len(entries)]]
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


def test_requests_are_carried_out_in_order_and_each_file_once(store: ObstoreLogStore) -> None:
    ask_for_replay(store, request(1, a_file("a"), a_file("b"), a_file("c")))
    ask_for_replay(store, request(2, a_file("d")))
    clock = ManualClock()
    replays, seen, behind = Replays(store, ASKED, clock.monotonic), [], None
    for _ in range(4):
        found = replays.next(behind, NEW, 10)
        seen += taken(found)
        behind = found.until if found else None
        clock.advance(10)
    assert seen == ["a", "b", "c", "d"]
    assert behind == Readmitted(2, 1, 1)
    assert replays.next(behind, NEW, 10) is None


def test_another_driver_goes_on_where_the_one_before_was(store: ObstoreLogStore) -> None:
    ask_for_replay(store, request(1, a_file("a"), a_file("b"), a_file("c")))
    found = Replays(store, ASKED).next(Readmitted(1, 1, 3), NEW, MANY)
    assert taken(found) == ["b", "c"]
    assert found is not None
    assert found.until == Readmitted(1, 3, 3)


def test_a_request_waits_for_another_definition_than_the_one_that_rejected(
    store: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    ask_for_replay(store, request(1, a_file("a", rejected_by=OLD)))
    replays = Replays(store, ASKED + 1)
    with caplog.at_level(logging.WARNING):
        assert [replays.next(None, OLD, MANY) for _ in range(3)] == [None] * 3
    assert [record.message for record in caplog.records] == [
        "replay 1 waits for another schema or transform: those of this driver have rejected its records"
    ]
    assert taken(replays.next(None, "another", MANY)) == ["a"]


def test_a_driver_of_an_earlier_document_leaves_a_request_to_the_next_one(
    store: ObstoreLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    """Also what it has not rejected itself: it would take it to quarantine again, and the mended one come too late."""
    ask_for_replay(store, request(1, a_file("a", rejected_by="an older one")))
    with caplog.at_level(logging.WARNING):
        assert Replays(store, ASKED).next(None, OLD, MANY) is None
    assert "replay 1 waits for a driver with the document that it was asked for with" in caplog.text
    assert taken(Replays(store, ASKED).next(None, NEW, MANY)) == ["a"], "it was started with that document already"
    assert taken(Replays(store, ASKED + 1).next(None, "edited once more", MANY)) == ["a"]


def test_the_store_is_asked_now_and_then_only(store: ObstoreLogStore) -> None:
    clock = ManualClock()
    replays = Replays(store, ASKED, clock.monotonic)
    assert replays.next(None, NEW, MANY) is None
    ask_for_replay(store, request(1, a_file("a")))
    assert replays.next(None, NEW, MANY) is None
    clock.advance(10)
    assert taken(replays.next(None, NEW, MANY)) == ["a"]


@pytest.mark.parametrize("body", [b"nonsense", pack(b"{}"), pack(request(7, a_file("a")).to_json())])
def test_a_damaged_request_does_not_stop_the_stream(
    store: ObstoreLogStore, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store.create(replay_key(1), body)
    with caplog.at_level(logging.WARNING):
        assert Replays(store, ASKED).next(None, NEW, MANY) is None
    assert "replay 1 cannot be read, and has to wait: replays/000000000001.json.gz" in caplog.text
    with pytest.raises(CorruptLogError):
        how_far(store)


def test_of_two_who_ask_at_once_one_is_told_so(store: ObstoreLogStore) -> None:
    assert ask_for_replay(store, request(1, a_file("a")))
    assert not ask_for_replay(store, request(1, a_file("b")))
    assert ask_for_replay(store, request(1, a_file("a"))), "a lost answer"


def test_how_far_a_replay_is(store: ObstoreLogStore) -> None:
    assert how_far(store) is None
    ask_for_replay(store, request(1, a_file("a"), a_file("b")))
    assert how_far(store) == Readmitted(1, 0, 2)
    commit = BatchCommit.of(plan_of(0, 1), epoch=1, committed_at=EPOCH_TIME)
    store.create(commit_key(0), pack(commit.to_json()))
    store.create(batch_key(0), b"not looked at")
    assert how_far(store) == Readmitted(1, 0, 2)
    done = replace(commit, batch=1, readmitted=Readmitted(1, 2, 2))
    store.create(commit_key(1), pack(done.to_json()))
    assert how_far(store) == Readmitted(1, 2, 2)
    ask_for_replay(store, request(2, a_file("c")))
    assert how_far(store) == Readmitted(2, 0, 1)


@given(st.lists(files, min_size=1))
def test_a_request_survives_json(found: list[RejectedFile]) -> None:
    one = request(3, *found)
    assert ReplayRequest.from_json(one.to_json()) == one


def test_a_request_of_nothing_is_none() -> None:
    with pytest.raises(InvalidValueError, match="name files"):
        request(1)
