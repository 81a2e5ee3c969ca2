"""`lakestream table restore`: what it would come to, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import fastavro
import pytest
from typer.testing import CliRunner, Result

from lakestream.command import load
from lakestream.log import (
    Document,
    ObstoreLogStore,
    Request,
    Requested,
    ServiceRequests,
    Work,
    cancel_request,
    keep_standing,
    put_request,
)
from lakestream.main import app
from lakestream.model import BatchCommit, Definition, FileEntry, Restore, Standing, Trim
from lakestream.settings import definition
from lakestream.sinks.hudi import stats
from lakestream.statuses import PLANNED, Exit
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import DOCUMENT, commit_of, log_at, plan_of

PROPERTIES = """hoodie.table.name=orders
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=9
hoodie.timeline.layout.version=2
hoodie.table.recordkey.fields=order_id
"""
BATCHES = 4
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
STAT = {
    "type": "record",
    "name": "Stat",
    "fields": [
        {"name": name, "type": ["null", "string" if name == "path" else "long"]}
        for name in ("path", "numInserts", "numUpdateWrites", "numDeletes", "totalWriteBytes")
    ],
}
COMMIT: Any = {
    "type": "record",
    "name": "HoodieCommitMetadata",
    "fields": [
        {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": STAT}}},
        {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        {"name": "operationType", "type": "string", "default": ""},
    ],
}
CLEAN: Any = {"type": "record", "name": "C", "fields": [{"name": "earliestCommitToRetain", "type": "string"}]}


def instant(batch: int) -> str:
    return f"2026013112000{batch}000"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of four batches, each with a file in quarantine."""
    (tmp_path / "orders.yaml").write_text(DOCUMENT.format(lake=tmp_path))
    (tmp_path / "json").mkdir()
    timeline = tmp_path / "hudi" / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    (timeline.parent / "hoodie.properties").write_text(PROPERTIES)
    log = log_at(tmp_path / "checkpoint" / "hudi")
    for batch in range(BATCHES):
        plan = plan_of(batch, log.epoch)
        log.put_plan(plan)
        log.put_commit(commit_of(plan, log.epoch, files=1))
        wrote = {"path": "dt=a/f", "numInserts": 3, "numUpdateWrites": 2, "numDeletes": 1, "totalWriteBytes": 2048}
        metadata = {"partitionToWriteStats": {"dt=a": [wrote]}, "extraMetadata": {stats.BATCH: str(batch)}}
        write(tmp_path, f"{instant(batch)}_{instant(batch)}.deltacommit", COMMIT, metadata)
    return tmp_path


def write(lake: Path, name: str, schema: Any, content: dict[str, Any]) -> None:
    with (lake / "hudi" / ".hoodie" / "timeline" / name).open("wb") as file:
        fastavro.writer(file, schema, [content])


def store(lake: Path) -> ObstoreLogStore:
    return ObstoreLogStore.at(StoreSettings(LakePath.parse(f"{lake}/checkpoint/hudi"), S3Settings("")))


def restore(lake: Path, *arguments: str, writer: str = "hudi") -> Result:
    command = ["table", "restore", "-f", f"{lake}/orders.yaml", "--writer", writer, *arguments]
    return CliRunner().invoke(app, command, env={"COLUMNS": "400"})


def test_what_is_undone_and_what_is_read_again_is_told(lake: Path) -> None:
    done = restore(lake, "--to", instant(1))
    assert done.exit_code == PLANNED
    told = done.stdout.splitlines()
    assert told[0].startswith(f"the table goes back to {instant(1)} (2026-01-31 12:00:01 UTC), batch 1, ")
    assert told[1].startswith("undone: 2 commits (batches 2 to 3), 10 rows inserted and updated, 2 deletes, and the ")
    assert told[2:] == [
        "read again, each record once: the stream from 2026-01-31 12:00:01 UTC on",
        "forgotten: 2 files of the quarantine, whose records come again",
    ]
    assert "nothing was done" in done.stderr
    assert ServiceRequests(store(lake)).next() is None


def test_what_an_earlier_restore_has_forgotten_is_not_told_again(lake: Path) -> None:
    log = log_at(lake / "checkpoint" / "hudi")
    plan = replace(plan_of(BATCHES, log.epoch), restore=Restore(1, instant(1), 1, rereads=True))
    log.put_plan(plan)
    commit = BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at)
    log.put_commit(replace(commit, readmits=log.rejects_behind(1)))
    plan = plan_of(BATCHES + 1, log.epoch)
    log.put_plan(plan)
    log.put_commit(commit_of(plan, log.epoch, files=1))
    told = restore(lake, "--to", instant(1)).stdout.splitlines()
    assert "forgotten: 1 files of the quarantine, whose records come again" in told
    assert len(log.rejects_behind(1)) == 3


def test_what_was_cancelled_is_told_to_be_undone_for_good(lake: Path) -> None:
    """Also where that came too late, and it was taken as a whole: its driver would see that it is cancelled."""
    log = store(lake)
    for number in (1, 2):
        put_request(log, Request(number, NOW, Document(), (Requested(FileEntry("a.parquet", 1, 1, ""), "another"),)))
    cancel_request(log, 1, NOW)
    told = restore(lake, "--to", instant(1)).stdout.splitlines()
    assert told[4:] == [
        "taken again, as far as it was undone: replay 2",
        "undone as far as it was taken since, and not taken again, for it was cancelled: replay 1",
    ]


def test_a_request_has_where_the_stream_stood(lake: Path) -> None:
    # By a time, too: the newest commit that was there.
    done = restore(lake, "--to", "2026-01-31T12:00:01.500Z", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "request 1: the writer's driver does it between two batches" in done.stdout
    request = ServiceRequests(store(lake)).next()
    assert request is not None
    assert (request.work, request.instant) == (Work.RESTORE, instant(1))
    assert request.back is not None
    assert request.back.rereads
    assert request.back.standing == Standing.of(commit_of(plan_of(1, 1), 1))
    assert request.back.document.definition
    assert restore(lake, "--to", instant(1), "--yes").exit_code == Exit.PERMANENT, "one at a time"


def test_a_clustering_is_no_state_of_the_rows(lake: Path) -> None:
    clustering = {"partitionToWriteStats": {}, "extraMetadata": {}, "operationType": "CLUSTER"}
    for begun in ("20260131120001500", f"{instant(BATCHES)}"):
        write(lake, f"{begun}_{begun}.replacecommit", COMMIT, clustering)
    for to in ("2026-01-31T12:00:01.700Z", "20260131120001500"):
        done = restore(lake, "--to", to)
        assert done.exit_code == PLANNED, done.stderr
        assert f"the table goes back to {instant(1)} (2026-01-31 12:00:01 UTC), batch 1, " in done.stdout
        assert "undone: 4 commits (batches 2 to 3)" in done.stdout
    assert f"nothing is to be undone: {instant(3)} " in restore(lake, "--to", "now").stderr


def test_what_came_since_can_stay_out(lake: Path) -> None:
    store(lake).delete(["commits/000000000001.json.gz"])
    done = restore(lake, "--to", instant(1), "--leave-out", "--yes")
    assert done.exit_code == 0, done.stderr
    assert "not read again: the undone batches' records stay out of the table" in done.stdout
    assert "forgotten" not in done.stdout, "what is in quarantine stays there"
    request = ServiceRequests(store(lake)).next()
    assert request is not None
    assert request.back is not None
    assert not request.back.rereads


@pytest.mark.parametrize(
    ("to", "told"),
    [
        (instant(3), f"nothing is to be undone: {instant(3)} (2026-01-31 12:00:03 UTC) is the newest commit"),
        ("20260131120001500", "no instant of the table has that name; near it are"),
        ("2026-01-30", "is before what is known of the table: the table can be read as of 4 instants"),
        ("soon", "--to: 'soon' is no moment: give"),
    ],
)
def test_where_it_cannot_go_back_to_is_told(lake: Path, to: str, told: str) -> None:
    done = restore(lake, "--to", to, "--yes")
    assert done.exit_code in (Exit.SETTINGS, Exit.PERMANENT)
    assert told in done.stderr


def test_where_the_stream_stood_may_not_be_known_any_more(lake: Path) -> None:
    store(lake).delete(["commits/000000000001.json.gz"])
    done = restore(lake, "--to", instant(1))
    assert done.exit_code == Exit.SETTINGS
    assert "is not known any more: the log keeps it of the last hundred batches" in done.stderr
    assert "--leave-out takes the table back without reading anything again" in done.stderr
    keep_standing(store(lake), instant(1), Standing.of(commit_of(plan_of(1, 1), 1)))
    assert restore(lake, "--to", instant(1)).exit_code == PLANNED, "a savepoint has kept it"


def test_what_the_stream_retains_no_more_is_told(lake: Path) -> None:
    log = log_at(lake / "checkpoint" / "hudi")
    retention = timedelta(hours=24)
    plan = plan_of(BATCHES, log.epoch)
    log.put_plan(plan)
    trim = Trim(retention, datetime.now(UTC) - retention)
    log.put_commit(replace(commit_of(plan, log.epoch), trim=trim))
    done = restore(lake, "--to", instant(1))
    assert done.exit_code == Exit.SETTINGS
    assert "shardId-000000000000 would have to be read again from 2026-01-31 12:00:01 UTC on" in done.stderr
    assert "the stream retains 1 day, 0:00:00: records are gone" in done.stderr


def test_what_was_cleaned_is_told_unless_a_savepoint_keeps_it(lake: Path) -> None:
    write(lake, f"{instant(4)}_{instant(4)}.clean", CLEAN, {"earliestCommitToRetain": "20260131120001500"})
    done = restore(lake, "--to", instant(0))
    assert done.exit_code == Exit.SETTINGS
    assert "files of that time were cleaned" in done.stderr
    assert "may have been cleaned" in restore(lake, "--to", instant(1)).stderr, "Hudi would not have it"
    schema: Any = {"type": "record", "name": "S", "fields": [{"name": "comments", "type": "string"}]}
    write(lake, f"{instant(0)}_{instant(4)}.savepoint", schema, {"comments": ""})
    assert restore(lake, "--to", instant(0)).exit_code == PLANNED
    done = restore(lake, "--to", instant(2))
    assert done.exit_code == PLANNED
    write(lake, f"{instant(3)}_{instant(4)}.savepoint", schema, {"comments": ""})
    assert f"a later commit has a savepoint, {instant(3)}" in restore(lake, "--to", instant(2)).stderr


def test_another_release_is_no_edited_document(lake: Path) -> None:
    """The driver that runs does it."""
    log = log_at(lake / "checkpoint" / "hudi")
    document = load(lake / "orders.yaml")
    own = definition(document, document.writer("hudi"))
    log.put_plan(replace(plan_of(BATCHES, log.epoch), definition=replace(own, rules=own.rules + 1)))
    done = restore(lake, "--to", instant(1))
    assert done.exit_code == PLANNED
    assert "by the document as it is now" not in done.stdout


def test_an_edited_document_is_told(lake: Path) -> None:
    log = log_at(lake / "checkpoint" / "hudi")
    log.put_plan(replace(plan_of(BATCHES, log.epoch), definition=Definition("x int", None, None)))
    done = restore(lake, "--to", instant(1))
    assert "by the document as it is now, of which the newest batch knows nothing yet (spec.schema)" in done.stdout


def test_json_files_are_not_taken_back(lake: Path) -> None:
    done = restore(lake, "--to", "now", writer="json")
    assert done.exit_code == Exit.SETTINGS
    assert "has JSON files, which are not taken back; Hudi tables are" in done.stderr
