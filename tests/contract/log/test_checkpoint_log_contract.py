"""The log's life on every store: opening, planning, committing, fencing, expiry."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakestream.errors import CheckpointGoneError, FencedError
from lakestream.log import BatchFiles, CheckpointLog, FenceSettings, LogStore, committed_files
from lakestream.testing.logs import ORDERS, ManualClock, commit_of, plan_of

Opener = Callable[[], LogStore]


def open_log(open_same: Opener, clock: ManualClock | None = None, keep: int = 100) -> CheckpointLog:
    clock = clock or ManualClock()
    return CheckpointLog.open(open_same(), ORDERS, now=clock, monotonic=clock.monotonic, keep=keep)


def run_batches(log: CheckpointLog, first: int, last: int) -> None:
    for batch in range(first, last + 1):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch))


def test_a_new_log_is_empty(open_same: Opener) -> None:
    log = open_log(open_same)
    assert (log.epoch, log.last_commit(), log.pending_plans(), log.previous_closed) == (1, None, (), True)


def test_a_restarted_driver_finds_the_last_commit_and_the_plans_behind_it(open_same: Opener) -> None:
    first = open_log(open_same)
    run_batches(first, 0, 11)
    plans = plan_of(12, first.epoch), plan_of(13, first.epoch)
    for plan in plans:
        first.put_plan(plan)

    second = open_log(open_same)
    assert second.checkpoint == first.checkpoint
    assert second.epoch == 2
    assert second.last_commit() == commit_of(plan_of(11, 1), 1)
    assert second.pending_plans() == plans
    # A replayed plan keeps the epoch that made it; the commit has the one that carried it out.
    second.put_commit(commit_of(plans[0], second.epoch))
    assert open_log(open_same).pending_plans() == plans[1:]


def test_drivers_that_start_at_once_get_epochs_of_their_own(open_same: Opener) -> None:
    with ThreadPoolExecutor(8) as pool:
        logs = list(pool.map(lambda _: open_log(open_same), range(8)))
    assert sorted(log.epoch for log in logs) == list(range(1, 9))
    assert len({log.checkpoint for log in logs}) == 1


def test_in_an_emptied_checkpoint_nothing_is_planned_or_committed(open_same: Opener) -> None:
    log = open_log(open_same)
    run_batches(log, 0, 0)
    log.put_plan(plan_of(1, log.epoch))
    store = open_same()
    store.delete(store.list(""))
    with pytest.raises(CheckpointGoneError, match=r"epochs/000000000001\.json, which it wrote, is gone"):
        log.check_fence()
    with pytest.raises(CheckpointGoneError):
        log.put_commit(commit_of(plan_of(1, 1), log.epoch))
    with pytest.raises(CheckpointGoneError):
        log.put_plan(plan_of(2, log.epoch))


def test_a_replaced_driver_can_neither_plan_nor_commit(open_same: Opener) -> None:
    old = open_log(open_same)
    run_batches(old, 0, 0)
    old.put_plan(plan_of(1, old.epoch))
    new = open_log(open_same)
    with pytest.raises(FencedError, match="epoch 2 has taken over from this driver's epoch 1"):
        old.check_fence()
    with pytest.raises(FencedError):
        old.put_commit(commit_of(plan_of(1, 1), old.epoch))
    with pytest.raises(FencedError):
        old.put_plan(plan_of(2, old.epoch))
    new.check_fence()
    new.put_commit(commit_of(plan_of(1, 1), new.epoch))
    assert open_log(open_same).last_commit() == commit_of(plan_of(1, 1), new.epoch)


def test_after_a_clean_end_the_next_driver_may_write_at_once(open_same: Opener) -> None:
    clock = ManualClock()
    first = open_log(open_same, clock)
    assert first.seconds_until_safe() == 0
    first.close()
    second = open_log(open_same, clock)
    assert second.previous_closed
    assert second.seconds_until_safe() == 0


def test_after_a_crash_the_next_driver_waits_until_the_last_one_must_have_ended(open_same: Opener) -> None:
    clock = ManualClock()
    open_log(open_same, clock)
    second = open_log(open_same, clock)
    assert not second.previous_closed
    # A look of the first one may have begun just before the second one's epoch was there.
    fence = FenceSettings()
    assert second.seconds_until_safe() >= (fence.patience + fence.dying).total_seconds() == 12
    clock.advance(11)
    assert second.seconds_until_safe() == 1
    clock.advance(60)
    assert second.seconds_until_safe() == 0


def test_a_clean_end_speaks_for_that_driver_alone(open_same: Opener) -> None:
    clock = ManualClock()
    open_log(open_same, clock).close()
    open_log(open_same, clock)  # which is killed
    third = open_log(open_same, clock)
    assert not third.previous_closed
    assert third.seconds_until_safe() > 0


def test_a_driver_that_ends_before_it_might_write_does_not_speak_for_its_predecessor(open_same: Opener) -> None:
    clock = ManualClock()
    open_log(open_same, clock)  # epoch 1 may still be writing
    second = open_log(open_same, clock)
    clock.advance(11.9)
    second.close()
    third = open_log(open_same, clock)
    assert not third.previous_closed
    clock.advance(12)
    third.close()
    assert open_log(open_same, clock).previous_closed


def test_expiry_keeps_the_log_at_one_size(open_same: Opener) -> None:
    store, log = open_same(), open_log(open_same, keep=4)
    run_batches(log, 0, 5)
    log.expire()
    assert store.list("commits") == [f"commits/{batch:012d}.json.gz" for batch in range(2, 6)]
    sizes = set()
    for batch in range(6, 12):
        run_batches(log, batch, batch)
        log.expire()
        sizes.add((len(store.list("commits")), len(store.list("batches"))))
    assert sizes == {(4, 4)}
    assert open_log(open_same).last_commit() == commit_of(plan_of(11, 1), 1)


def test_expiry_keeps_pending_plans_and_the_newest_commit(open_same: Opener) -> None:
    log = open_log(open_same, keep=1)
    run_batches(log, 0, 3)
    log.put_plan(plan_of(4, log.epoch))
    log.expire()
    again = open_log(open_same)
    assert again.last_commit() == commit_of(plan_of(3, 1), 1)
    assert again.pending_plans() == (plan_of(4, 1),)


def test_expiry_removes_epochs_and_their_markers(open_same: Opener) -> None:
    store = open_same()
    for _ in range(5):
        open_log(open_same).close()
    log = open_log(open_same, keep=2)
    run_batches(log, 0, 0)
    log.expire()
    assert store.list("epochs") == [
        "epochs/000000000005.closed.json",
        "epochs/000000000005.json",
        "epochs/000000000006.json",
    ]


def test_a_driver_that_slept_while_its_batches_expired_cannot_write_them_anew(open_same: Opener) -> None:
    sleeper = open_log(open_same)
    sleeper.put_plan(plan_of(0, 1))
    for _ in range(3):
        log = open_log(open_same, keep=1)
        for plan in log.pending_plans():
            log.put_commit(commit_of(plan, log.epoch))
        following = log.last_commit()
        assert following is not None
        run_batches(log, following.batch + 1, following.batch + 3)
        log.expire()
    assert open_same().list("epochs") == ["epochs/000000000004.json"]
    with pytest.raises(FencedError):
        sleeper.put_commit(commit_of(plan_of(0, 1), 1))
    assert open_same().list("commits") == ["commits/000000000009.json.gz"]


def test_what_batches_wrote_is_known_when_their_commits_have_expired(open_same: Opener) -> None:
    store, written = open_same(), []
    for first in (0, 7, 10, 18):
        log = open_log(open_same, keep=5)
        for batch in range(first, {0: 7, 7: 10, 10: 18, 18: 23}[first]):
            plan = plan_of(batch, log.epoch)
            log.put_plan(plan)
            # Every third batch is a heartbeat.
            commit = commit_of(plan, log.epoch, files=0 if batch % 3 == 2 else 2)
            log.put_commit(commit)
            written += [one for one in (BatchFiles.of(commit),) if one.files]
            log.expire()
            assert list(committed_files(store)) == written
    assert store.list("commits")[0] == "commits/000000000018.json.gz"
    assert store.list("manifests") == [f"manifests/{last:012d}.json.gz" for last in (4, 9, 14, 19)]


def test_a_log_of_a_release_without_manifests_has_them_from_its_oldest_commit_on(open_same: Opener) -> None:
    store, log = open_same(), open_log(open_same, keep=5)
    for batch in range(8):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch, files=1))
    store.delete([f"{folder}/{batch:012d}.json.gz" for folder in ("batches", "commits") for batch in range(3)])
    later = open_log(open_same, keep=5)
    later.expire()
    assert [one.batch for one in committed_files(store)] == [3, 4, 5, 6, 7]
    assert store.list("manifests") == ["manifests/000000000004.json.gz"]
