"""The log under lost requests, lost answers, other drivers between two requests, and damage."""

from __future__ import annotations

import gzip
import logging
import threading
from collections.abc import Callable, Sequence
from unittest.mock import patch

import pytest
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError, FencedError, InvalidValueError, OutcomeUnknownError
from lakestream.log import CheckpointLog, LogStore, ObstoreLogStore, StaleLogError, committed_files
from lakestream.log.identity import claim_identity
from lakestream.log.layout import pack
from lakestream.storage import ObjectNotFoundError, StorageError
from lakestream.testing.logs import ORDERS, Fault, FaultyLogStore, ManualClock, commit_of, plan_of

PLAN, COMMIT = "batches/000000000000.json.gz", "commits/000000000000.json.gz"


@pytest.fixture
def store() -> FaultyLogStore:
    return FaultyLogStore(ObstoreLogStore(MemoryStore()))


def open_log(store: LogStore, keep: int = 100) -> CheckpointLog:
    clock = ManualClock()
    return CheckpointLog.open(store, ORDERS, now=clock, monotonic=clock.monotonic, keep=keep)


def run_batches(log: CheckpointLog, first: int, last: int) -> None:
    for batch in range(first, last + 1):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch, files=1))


@pytest.mark.parametrize(
    "faults",
    [
        [Fault.LOST_ANSWER],
        [Fault.LOST_REQUEST],
        [Fault.LOST_REQUEST, Fault.LOST_ANSWER],
        [Fault.CONFLICT],
        [Fault.LOST_REQUEST, Fault.CONFLICT],
    ],
)
def test_a_put_whose_answer_was_lost_is_found_to_be_ours(store: FaultyLogStore, faults: list[Fault]) -> None:
    log = open_log(store)
    store.faults = list(faults)
    log.put_plan(plan_of(0, 1))
    store.faults = list(faults)
    log.put_commit(commit_of(plan_of(0, 1), 1))
    assert not store.faults
    assert open_log(store).last_commit() == commit_of(plan_of(0, 1), 1)


def test_taking_an_epoch_survives_a_lost_answer(store: FaultyLogStore) -> None:
    store.faults = [Fault.LOST_ANSWER, Fault.LOST_ANSWER]  # identity, epoch
    assert open_log(store).epoch == 1
    assert store.list("epochs") == ["epochs/000000000001.json"]


def test_a_store_that_stays_away_leaves_the_outcome_unknown_and_the_put_repeatable(store: FaultyLogStore) -> None:
    log = open_log(store)
    store.faults = [Fault.LOST_ANSWER, Fault.LOST_REQUEST, Fault.LOST_REQUEST]
    # The second and third request do not even get to see that the first took effect.
    with pytest.raises(OutcomeUnknownError, match=PLAN):
        log.put_plan(plan_of(0, 1))
    log.put_plan(plan_of(0, 1))
    assert log.pending_plans() == (plan_of(0, 1),)


def test_a_plan_is_refused_if_a_successor_came_while_it_was_written(store: FaultyLogStore) -> None:
    log = open_log(store)

    def successor_opens(key: str) -> None:
        if key == PLAN:
            open_log(store.store)

    store.before_create = successor_opens
    # The successor did not see the plan, so this driver must not carry it out.
    with pytest.raises(FencedError, match="epoch 2"):
        log.put_plan(plan_of(0, 1))
    assert log.pending_plans() == ()


def test_a_plan_that_was_accepted_is_seen_by_every_successor(store: FaultyLogStore) -> None:
    log = open_log(store)
    log.put_plan(plan_of(0, 1))
    assert open_log(store).pending_plans() == (plan_of(0, 1),)


def test_a_commit_that_lost_the_race_is_refused(store: FaultyLogStore) -> None:
    log = open_log(store)
    log.put_plan(plan_of(0, 1))

    def successor_commits(key: str) -> None:
        if key == COMMIT:
            successor = open_log(store.store)
            successor.put_commit(commit_of(plan_of(0, 1), successor.epoch))

    store.before_create = successor_commits
    with pytest.raises(FencedError, match="epoch 2 has taken over"):
        log.put_commit(commit_of(plan_of(0, 1), 1))
    assert open_log(store.store).last_commit() == commit_of(plan_of(0, 1), 2)


def test_a_successor_that_meets_the_predecessors_last_commit_is_told_to_start_again(store: FaultyLogStore) -> None:
    predecessor = open_log(store)
    predecessor.put_plan(plan_of(0, 1))
    successors: list[CheckpointLog] = []
    # The predecessor has looked at the epochs and is about to write its commit, when the successor opens.
    store.before_create = lambda key: successors.append(open_log(store.store))
    predecessor.put_commit(commit_of(plan_of(0, 1), 1))
    with pytest.raises(StaleLogError, match="Start this one again"):
        successors[0].put_commit(commit_of(plan_of(0, 1), 2))
    assert open_log(store.store).last_commit() == commit_of(plan_of(0, 1), 1)


def test_a_late_driver_does_not_bring_back_a_commit_that_has_expired(store: FaultyLogStore) -> None:
    late = open_log(store)
    late.put_plan(plan_of(0, 1))
    successor = open_log(store, keep=1)
    successor.put_commit(commit_of(plan_of(0, 1), 2, files=1))
    run_batches(successor, 1, 1)
    successor.expire()
    with pytest.raises(FencedError, match="epoch 2"):
        late.put_commit(commit_of(plan_of(0, 1), 1))
    assert COMMIT not in store.list("commits")


def test_of_two_starting_drivers_the_loser_takes_the_next_epoch(store: FaultyLogStore) -> None:
    others: list[CheckpointLog] = []

    def another_is_faster(key: str) -> None:
        if key == "epochs/000000000001.json":
            others.append(open_log(store.store))

    store.before_create = another_is_faster
    log = open_log(store)
    assert (others[0].epoch, log.epoch) == (1, 2)
    assert not log.previous_closed


def test_the_wait_for_a_predecessor_begins_when_it_can_see_the_epoch(store: FaultyLogStore) -> None:
    open_log(store)
    clock = ManualClock()
    store.before_create = lambda key: clock.advance(30)
    log = CheckpointLog.open(store, ORDERS, now=clock, monotonic=clock.monotonic)
    assert log.seconds_until_safe() == 12


def test_the_order_of_plans_and_commits_is_kept(store: FaultyLogStore) -> None:
    log = open_log(store)
    with pytest.raises(InvalidValueError, match="plan of batch 1: batch 0 is next"):
        log.put_plan(plan_of(1, 1))
    with pytest.raises(InvalidValueError, match="its epoch is 2, this driver's 1"):
        log.put_plan(plan_of(0, 2))
    with pytest.raises(InvalidValueError, match="no plan is pending"):
        log.put_commit(commit_of(plan_of(0, 1), 1))
    log.put_plan(plan_of(0, 1))
    log.put_plan(plan_of(1, 1))
    with pytest.raises(InvalidValueError, match="commit of batch 1: batch 0 is next"):
        log.put_commit(commit_of(plan_of(1, 1), 1))
    assert store.list("commits") == []


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (PLAN, b""),
        (PLAN, b"not gzip"),
        (PLAN, gzip.compress(plan_of(0, 1).to_json())[:-9]),
        (PLAN, gzip.compress(b"{}")),
        (PLAN, gzip.compress(plan_of(1, 1).to_json())),
        (COMMIT, gzip.compress(plan_of(0, 1).to_json())),
        ("batches/000000000001.json.gz", gzip.compress(plan_of(1, 1).to_json())),
        ("commits/notes.txt", b"x"),
    ],
    ids=["empty", "not gzip", "cut off", "no plan", "wrong number", "plan as commit", "gap", "stray object"],
)
def test_damage_is_reported_with_the_object(store: FaultyLogStore, key: str, body: bytes) -> None:
    claim_identity(store, ORDERS)
    store.create(key, body)
    named = PLAN if key.startswith("batches") else key
    with pytest.raises(CorruptLogError, match=named.replace(".", r"\.")):
        open_log(store)


def test_an_end_that_cannot_be_marked_only_costs_the_next_driver_its_wait(
    store: FaultyLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(store)
    store.faults = [Fault.LOST_REQUEST] * 3
    with caplog.at_level(logging.WARNING):
        log.close()
    assert "epoch 1 could not be marked as closed" in caplog.text
    assert not open_log(store).previous_closed


def test_an_epoch_is_marked_as_closed_by_the_means_that_are_given(store: FaultyLogStore) -> None:
    """The log's own may try for minutes, thrice, and whoever asked the driver to end would wait for it."""
    log = open_log(store)
    store.faults = [Fault.LOST_REQUEST] * 3
    log.close(through=store.store)
    assert len(store.faults) == 3
    assert open_log(store.store).previous_closed


@pytest.mark.parametrize("batches", [3, 4])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_manifest_that_meets_a_conflict_is_written_before_its_commits_expire(
    store: FaultyLogStore, batches: int, lost: int
) -> None:
    log = open_log(store, keep=2)
    run_batches(log, 0, batches)
    store.faults = [Fault.CONFLICT] * lost
    log.expire()
    assert [one.batch for one in committed_files(store)] == list(range(batches + 1))


@pytest.mark.parametrize("left", [None, 0, 4])
def test_a_log_that_has_lost_commits_is_not_gone_on_with(store: FaultyLogStore, left: int | None) -> None:
    """Of a checkpoint whose deletion was cut off, or of which a copy was brought back that is older than its table."""
    log = open_log(store, keep=3)
    run_batches(log, 0, 8)
    log.expire()
    store.delete([*store.list("batches"), *store.list("commits")])
    if left is not None:
        store.create(f"commits/{left:012d}.json.gz", pack(commit_of(plan_of(left, 1), 1, files=1).to_json()))
    with pytest.raises(CorruptLogError, match=r"manifests/000000000008\.json\.gz, and not the commit of that batch"):
        open_log(store, keep=3)


def test_a_log_that_is_older_than_its_table_is_not_gone_on_with(store: FaultyLogStore) -> None:
    log = open_log(store)
    run_batches(log, 0, 4)
    log.put_plan(plan_of(5, 1))
    for newest in (None, ("20260131120000000", 4), ("20260131120000000", 5)):
        log.require_known(newest)
    with pytest.raises(CorruptLogError, match=r"batch 6 \(instant 20260131120000000\), .* its next is batch 6\."):
        log.require_known(("20260131120000000", 6))


def test_the_files_of_the_newest_batches_are_told(store: FaultyLogStore) -> None:
    log = open_log(store, keep=3)
    run_batches(log, 0, 4)
    newest = {batch: frozenset({f"b{batch}-0.json"}) for batch in (2, 3, 4)}
    assert log.newest_files() == newest, "before older ones expire, as where they cannot"
    log.expire()
    assert log.newest_files() == newest
    # As of a driver that stood still within its PUT until that batch's commit had expired: the manifest has the truth.
    store.create(f"commits/{0:012d}.json.gz", pack(commit_of(plan_of(0, 1), 1, files=2).to_json()))
    assert open_log(store, keep=3).newest_files() == newest
    store.delete([f"commits/{2:012d}.json.gz"])
    assert list(log.newest_files()) == [3, 4], "another one may expire while they are read"


def test_a_predecessor_that_commits_while_the_log_is_read_has_lost_nothing(store: FaultyLogStore) -> None:
    predecessor = open_log(store, keep=1)
    predecessor.put_plan(plan_of(0, 1))

    class Late(FaultyLogStore):
        def list(self, folder: str, after: str | None = None) -> list[str]:
            found = super().list(folder, after)
            if folder == "commits" and predecessor.pending_plans():
                predecessor.put_commit(commit_of(plan_of(0, 1), 1, files=1))
                predecessor.expire()
            return found

    # It had looked at the epochs before the new one was taken.
    with patch("lakestream.log.fence.Fence.check"), pytest.raises(StaleLogError, match="Start this one again"):
        open_log(Late(store.store), keep=1)
    assert open_log(store, keep=1).last_commit() == commit_of(plan_of(0, 1), 1, files=1)


def test_keeping_nothing_is_refused(store: FaultyLogStore) -> None:
    with pytest.raises(InvalidValueError, match="keep must be at least 1"):
        open_log(store, keep=0)


def test_expiry_makes_no_listing_and_one_deletion(store: FaultyLogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(store, keep=4)
    run_batches(log, 0, 3)
    log.expire()
    run_batches(log, 4, 4)
    deletions: list[list[str]] = []
    monkeypatch.setattr(store, "delete", lambda keys: deletions.append(list(keys)))
    monkeypatch.setattr(store, "list", None)
    log.expire()
    assert deletions == [[PLAN, COMMIT]]


class KeepingStore(FaultyLogStore):
    """For a role that may write and not delete."""

    may_delete = False

    def delete(self, keys: Sequence[str]) -> None:
        if keys and not self.may_delete:
            raise StorageError("DeleteObject: 403 AccessDenied")
        super().delete(keys)


def test_a_log_that_cannot_be_expired_goes_on_and_is_expired_later(caplog: pytest.LogCaptureFixture) -> None:
    store = KeepingStore(ObstoreLogStore(MemoryStore()))
    log = open_log(store, keep=2)
    with caplog.at_level(logging.WARNING):
        for batch in range(4):
            run_batches(log, batch, batch)
            log.expire()
    assert [record.message for record in caplog.records] == [
        "what the log needs no more stays: DeleteObject: 403 AccessDenied"
    ]
    assert len(store.list("commits")) == 4
    store.may_delete = True
    log.expire()
    assert store.list("commits") == ["commits/000000000002.json.gz", "commits/000000000003.json.gz"]


def test_commits_stay_until_their_manifest_is_there(store: FaultyLogStore, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(store, keep=2)
    run_batches(log, 0, 3)
    store.faults = [Fault.LOST_REQUEST] * 3
    log.expire()
    assert "may or may not have been written" in caplog.text
    assert (len(store.list("commits")), store.list("manifests")) == (4, [])
    log.expire()
    assert (len(store.list("commits")), len(store.list("manifests"))) == (2, 2)
    assert [one.batch for one in committed_files(store)] == [0, 1, 2, 3]


class BusyStore(FaultyLogStore):
    """Others go on between any two requests of a reader."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)
    one_at_a_time = threading.Lock()

    def list(self, folder: str, after: str | None = None) -> list[str]:
        self.meanwhile()
        return super().list(folder, after)

    def get(self, key: str) -> bytes:
        with self.one_at_a_time:
            self.meanwhile()
            return super().get(key)


@pytest.mark.parametrize("pace", [1, 2, 3, 5])
def test_a_reader_misses_nothing_while_batches_are_committed_and_expire(pace: int) -> None:
    shared = ObstoreLogStore(MemoryStore())
    log = open_log(shared, keep=2)
    reader = BusyStore(shared)

    def go_on() -> None:
        for _ in range(pace):
            last = log.last_commit()
            batch = 0 if last is None else last.batch + 1
            if batch < 40:
                run_batches(log, batch, batch)
                log.expire()

    go_on()
    reader.meanwhile = go_on
    read = [one.batch for one in committed_files(reader)]
    assert read == list(range(len(read)))
    assert len(read) >= pace


def test_a_reader_waits_for_many_answers_at_a_time(store: FaultyLogStore) -> None:
    """A month's manifests are thousands of requests, of some 20 ms each."""
    run_batches(open_log(store), 0, 7)
    four = threading.Barrier(4)

    class Slow(FaultyLogStore):
        def get(self, key: str) -> bytes:
            four.wait(timeout=60)
            return super().get(key)

    assert [one.batch for one in committed_files(Slow(store))] == list(range(8))


def test_a_commit_that_is_gone_without_a_manifest_is_an_error(store: FaultyLogStore) -> None:
    run_batches(open_log(store), 0, 2)
    reader = BusyStore(store)
    reader.meanwhile = lambda: store.delete([COMMIT])
    keys = store.list("commits")
    listed = patch.object(reader, "list", lambda folder, after=None: keys if folder == "commits" else [])
    with listed, pytest.raises(ObjectNotFoundError, match=COMMIT):
        list(committed_files(reader))


@pytest.mark.parametrize(
    ("taken_by", "had", "epoch"),
    [(["a", "b"], 0, 3), (["a"], 1, 2), (["a", "a"], 1, 3), (["a", "b"], 1, None)],
    ids=["a new driver", "nobody since", "a lost answer", "a successor"],
)
def test_a_driver_that_begins_anew_does_not_take_over_from_its_successor(
    taken_by: list[str], had: int, epoch: int | None
) -> None:
    store = ObstoreLogStore(MemoryStore())
    for owner in taken_by:
        CheckpointLog.open(store, ORDERS, owner=owner)
    if epoch is not None:
        assert CheckpointLog.open(store, ORDERS, owner="a", had=had).epoch == epoch
        return
    with pytest.raises(FencedError, match="epoch 2 has taken over from this driver's epoch 1 before it has begun anew"):
        CheckpointLog.open(store, ORDERS, owner="a", had=had)
