"""What was taken out of quarantine is known for as long as its files are there."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest
from obstore.store import MemoryStore

from lakestream.errors import CorruptLogError
from lakestream.log import (
    BatchFiles,
    CheckpointLog,
    Document,
    ObstoreLogStore,
    committed_files,
    rejected_files,
    without_readmitted,
)
from lakestream.log.layout import COMMITS, MANIFESTS, commit_key, manifest_key, pack
from lakestream.log.requests import Request, Requested, put_request
from lakestream.model import BatchCommit, BatchPlan, FileEntry, Portion, Restore, Taken
from lakestream.testing.logs import EPOCH_TIME, ORDERS, ManualClock, commit_of, plan_of


def a_log_with_a_replay(store: ObstoreLogStore, batches: int) -> None:
    """Batches 0 and 1 reject a file each; batch 2 readmits that of batch 0, and rejects a part of it again."""
    log = CheckpointLog.open(store, ORDERS, keep=2)
    for batch in range(batches):
        plan = plan_of(batch, log.epoch)
        if batch >= 2:
            files = ((FileEntry("b0.parquet", 1, 10, ""),),) if batch == 2 else ()
            plan = replace(plan, parts=files, taken=Taken(1, 1, 1))
        log.put_plan(plan)
        commit = commit_of(plan, log.epoch, files=1 if batch < 3 else 0)
        log.put_commit(replace(commit, rejected_by="old" if batch < 2 else "new") if commit.rejects else commit)
        log.expire()


@pytest.mark.parametrize("batches", [3, 4, 5, 20])
def test_it_is_kept_when_commits_expire(batches: int) -> None:
    store = ObstoreLogStore(MemoryStore())
    a_log_with_a_replay(store, batches)
    assert (len(store.list(COMMITS)), len(store.list(MANIFESTS))) == (2, batches // 2)
    found = without_readmitted(committed_files(store))
    assert [(one.batch, [entry.path for entry in one.rejects], one.rejected_by) for one in found] == [
        (0, [], "old"),
        (1, ["b1.parquet"], "old"),
        (2, ["b2.parquet"], "new"),
    ]
    assert found[2].readmits == ("b0.parquet",)
    assert rejected_files(store) == tuple(replace(one, files=()) for one in found)


@pytest.mark.parametrize("key", [commit_key(2), manifest_key(3)])
@pytest.mark.parametrize(
    ("good", "damaged"), [(b'"b2.parquet"', b'["b2.parquet"]'), (b'["b0.parquet"]', b'[["b0.parquet"]]')]
)
def test_a_name_that_is_no_text_damages_the_object_that_has_it(key: str, good: bytes, damaged: bytes) -> None:
    store = ObstoreLogStore(MemoryStore())
    a_log_with_a_replay(store, 3 if key == commit_key(2) else 4)
    content = gzip.decompress(store.get(key))
    assert good in content
    store.delete([key])
    store.create(key, pack(content.replace(good, damaged)))
    with pytest.raises(CorruptLogError, match=f"{key}: .* must be a text, got "):
        rejected_files(store)


def test_a_release_that_knows_nothing_of_it_refuses_what_bears_it() -> None:
    """Versions other than 1 were always refused."""
    plan = replace(plan_of(3, 1), taken=Taken(1, 1, 1))
    commit = BatchCommit.of(plan, epoch=1, committed_at=plan.planned_at)
    for bears, plain in ((plan, plan_of(3, 1)), (commit, commit_of(plan_of(3, 1), 1))):
        assert b'"version":2' in bears.to_json()
        assert b'"version":1' in plain.to_json()


def test_files_of_the_quarantine_need_a_request_and_no_ranges() -> None:
    files = ((FileEntry("b0.parquet", 1, 10, ""),),)
    document = replace(plan_of(3, 1), parts=files, taken=Taken(1, 1, 1)).to_json()
    assert BatchPlan.from_json(document).readmits == files
    with pytest.raises(CorruptLogError, match="so it names that, and has no ranges"):
        BatchPlan.from_json(document.replace(b'"readmitted"', b'"forgotten"'))


def test_a_restore_in_a_drivers_life_takes_its_word_on_the_quarantine_back() -> None:
    """What the restore undid comes again from the stream, and must not be taken from quarantine as well."""
    store = ObstoreLogStore(MemoryStore())
    clock = ManualClock()
    log = CheckpointLog.open(store, ORDERS, now=clock, monotonic=clock.monotonic)
    for batch in range(2):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(replace(commit_of(plan, log.epoch, files=1), rejected_by="old"))
    parts = tuple(Requested(FileEntry(f"b{batch}.parquet", 1, 10, ""), "old") for batch in range(2))
    put_request(store, Request(1, EPOCH_TIME, Document("new", log.epoch), parts))
    assert isinstance(both := log.requested(None, "new", 10), Portion)
    assert [part.path for (task,) in [both.tasks] for part in task if isinstance(part, FileEntry)] == [
        "b0.parquet",
        "b1.parquet",
    ]
    plan = replace(plan_of(2, log.epoch), ranges=(), restore=Restore(1, "20260101000000000", 0, rereads=True))
    log.put_plan(plan)
    undone = BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at)
    log.put_commit(replace(undone, readmits=("b1.parquet",)))
    clock.advance(60)
    assert isinstance(left := log.requested(None, "new", 10), Portion)
    assert [part.path for (task,) in [left.tasks] for part in task if isinstance(part, FileEntry)] == ["b0.parquet"]


def test_a_manifest_of_a_release_before_is_read() -> None:
    old = BatchFiles.of(commit_of(plan_of(3, 1), 1, files=1))
    assert BatchFiles.from_row(old.to_row(), "", (), None) == old
    assert len(old.to_row()) == 4, "as earlier releases read it"


@pytest.mark.parametrize("batches", [4, 20])
@pytest.mark.parametrize(("back", "rereads"), [(1, True), (1, False), (2, True)])
def test_what_an_undone_batch_took_is_in_quarantine_again_if_it_is_to_come_again(
    batches: int, back: int, rereads: bool
) -> None:
    """Or else a record would be nowhere, when the request that took it has been cancelled."""
    store = ObstoreLogStore(MemoryStore())
    a_log_with_a_replay(store, batches)
    log = CheckpointLog.open(store, ORDERS, keep=2)
    plan = plan_of(batches, log.epoch)
    plan = replace(plan, ranges=(), restore=Restore(1, "20260101000000000", back, rereads))
    log.put_plan(plan)
    log.put_commit(BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at))
    log.expire()
    there = ["b0.parquet"] if rereads and back < 2 else []
    (first, *_) = without_readmitted(committed_files(store))
    assert [entry.path for entry in first.rejects] == there
    for batch in range(batches + 1, batches + 5):  # until the restore's commit is in a manifest alone
        following = plan_of(batch, log.epoch)
        log.put_plan(following)
        log.put_commit(commit_of(following, log.epoch))
        log.expire()
    assert commit_key(batches) not in store.list(COMMITS)
    (first, *_) = without_readmitted(committed_files(store))
    assert [entry.path for entry in first.rejects] == there
