"""`lakestream table`, of a Hudi table and of JSON files."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import orjson
import pytest
from typer.testing import CliRunner, Result

from lakestream.log import ObstoreLogStore, Outcome, ServiceRequests, Work
from lakestream.main import app
from lakestream.sinks.hudi import stats
from lakestream.statuses import PLANNED, Exit
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.table.report import BATCH_MARK
from lakestream.testing.logs import DOCUMENT, commit_of, log_at, plan_of

PROPERTIES = r"""#Updated
hoodie.table.name=orders
hoodie.table.type=MERGE_ON_READ
hoodie.table.version=9
hoodie.timeline.layout.version=2
hoodie.table.recordkey.fields=order_id
hoodie.table.ordering.fields=version
hoodie.table.partition.fields=dt
lakestream.layout=bucket\:4
"""
COUNTS = ("numInserts", "numUpdateWrites", "numDeletes", "totalWriteBytes")
# As much of Hudi's own as is told.
STAT = {
    "type": "record",
    "name": "Stat",
    "fields": [
        {"name": "path", "type": ["null", "string"]},
        *({"name": name, "type": ["null", "long"]} for name in COUNTS),
    ],
}
COMMIT: Any = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HoodieCommitMetadata",
        "fields": [
            {"name": "partitionToWriteStats", "type": {"type": "map", "values": {"type": "array", "items": STAT}}},
            {"name": "extraMetadata", "type": {"type": "map", "values": "string"}},
        ],
    }
)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Both writers have committed three batches; the Hudi table has one of them, and a commit that is in flight."""
    (tmp_path / "orders.yaml").write_text(DOCUMENT.format(lake=tmp_path))
    for writer, files in (("json", 2), ("hudi", 1)):
        log = log_at(tmp_path / "checkpoint" / writer)
        for batch in range(3):
            plan = plan_of(batch, log.epoch)
            log.put_plan(plan)
            log.put_commit(commit_of(plan, log.epoch, files=files))
    (tmp_path / "json").mkdir()
    timeline = tmp_path / "hudi" / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    (timeline.parent / "hoodie.properties").write_text(PROPERTIES)
    (timeline / "20260131120005000.deltacommit.requested").touch()
    wrote = {"path": "dt=a/f", "numInserts": 3, "numUpdateWrites": 2, "numDeletes": -1, "totalWriteBytes": 2048}
    metadata = {"partitionToWriteStats": {"dt=a": [wrote]}, "extraMetadata": {stats.BATCH: "2"}}
    with (timeline / "20260131120002000_20260131120003500.deltacommit").open("wb") as file:
        fastavro.writer(file, COMMIT, [metadata])
    partition = tmp_path / "hudi" / "dt=a"
    partition.mkdir()
    (partition / "a-0_0-7-9_20260131120002000.parquet").write_bytes(b"x" * 2048)
    (partition / ".a-0_20260131120005000.log.1_0-7-9").write_bytes(b"x")
    return tmp_path


def table(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["table", *arguments])


def test_a_hudi_table_for_programs(lake: Path) -> None:
    done = table("-f", f"{lake}/orders.yaml", "--writer", "hudi", "-o", "json")
    found = orjson.loads(done.stdout)
    assert {name: found[name] for name in ("name", "type", "version", "key", "ordering", "partition_by", "layout")} == {
        "name": "orders",
        "type": "MERGE_ON_READ",
        "version": "9",
        "key": "order_id",
        "ordering": "version",
        "partition_by": "dt",
        "layout": "bucket:4",
    }
    assert found["slices"]["base"] == {"count": 1, "bytes": 2048}
    assert found["slices"]["unfinished"] == {"count": 1, "bytes": 1}
    assert found["readable_since"] == "2026-01-31T12:00:03.500000Z"
    assert found["quarantine"] == {"records": 3, "files": 3, "last": "2026-01-31T12:00:02Z"}
    commit, pending = found["timeline"]
    assert commit == {
        "instant": "20260131120002000",
        "action": "deltacommit",
        "state": "completed",
        "completed_at": "2026-01-31T12:00:03.500000Z",
        "seconds": 1.5,
        "batch": 2,
        "rows": 5,
        "deletes": 0,
        "files": 1,
        "bytes": 2048,
    }
    assert (pending["state"], pending["completed_at"]) == ("requested", None)


def test_a_hudi_table_for_people(lake: Path) -> None:
    lines = table(f"{lake}/hudi").stdout.splitlines()
    assert "key order_id, ordered by version, partitioned by dt" in lines
    assert "20260131120002000  deltacommit  01-31 12:00:03  1.5 s      2     5        0      1  2.0 KiB" in lines
    assert any(line.startswith("! deltacommit 20260131120005000 is requested") for line in lines)
    # By its path alone nobody knows the checkpoint of a table that nobody has claimed.
    assert "quarantine: not known without the writer's checkpoint; give -f and --writer" in lines


def test_what_is_pending_is_told_however_long_ago_it_was_begun(lake: Path) -> None:
    """As a compaction that fails is, or what a driver has left, behind batches that go on."""
    (lake / "hudi" / ".hoodie" / "timeline" / "20260131120006000_20260131120007000.deltacommit").touch()
    lines = table(f"{lake}/hudi", "--limit", "1").stdout.splitlines()
    assert "timeline: 2 of 3 instants" in lines
    assert any(line.startswith("! deltacommit 20260131120005000 is requested") for line in lines)


def test_json_files(lake: Path) -> None:
    done = table("-f", f"{lake}/orders.yaml", "--writer", "json", "-o", "json")
    found = orjson.loads(done.stdout)
    assert (found["batches"], found["rows"], found["files"]) == (3, 6, {"count": 6, "bytes": 60})
    assert found["quarantine"]["records"] == 3
    text = table("-f", f"{lake}/orders.yaml", "--writer", "json").stdout
    assert "JSON files, of 3 committed batches\n" in text
    assert "\n! quarantine: 3 records in 3 files" in text


def test_a_table_of_an_unknown_layout_is_told(lake: Path) -> None:
    properties = lake / "hudi" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace("layout.version=2", "layout.version=0"))
    done = table(f"{lake}/hudi")
    assert done.exit_code == 3
    assert "has timeline layout 0 (table version 9), and layouts 1 and 2 are known here" in done.stderr


def test_metadata_that_is_none_is_told_with_its_file(lake: Path) -> None:
    name = "20260131120002000_20260131120003500.deltacommit"
    (lake / "hudi" / ".hoodie" / "timeline" / name).write_bytes(b"nothing")
    done = table(f"{lake}/hudi")
    assert done.exit_code == 3
    assert f".hoodie/timeline/{name} is damaged" in done.stderr


HUDI = ("--writer", "hudi")


def test_a_plan_is_told_and_nothing_is_asked_for_without_yes(lake: Path) -> None:
    done = table("savepoint", "create", "-f", f"{lake}/orders.yaml", *HUDI)
    assert done.exit_code == PLANNED
    assert "as of its newest commit: 1 base files (2.0 KiB) and 0 log files (0 B) are not cleaned" in done.stdout
    assert "nothing was done" in done.stderr
    assert not (lake / "checkpoint" / "hudi" / "services").exists()


def test_a_request_is_put_once_and_told_until_it_is_carried_out(lake: Path) -> None:
    document = ("-f", f"{lake}/orders.yaml", *HUDI)
    done = table("savepoint", "create", *document, "--comment", "before the new schema", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert "request 1: the writer's driver does it" in done.stdout
    store = ObstoreLogStore.at(StoreSettings(LakePath.parse(f"{lake}/checkpoint/hudi"), S3Settings("")))
    request = ServiceRequests(store).next()
    assert request is not None
    assert (request.number, request.work, request.comment) == (1, Work.SAVEPOINT, "before the new schema")
    again = table("savepoint", "create", *document, "--yes")
    assert again.exit_code == Exit.PERMANENT
    assert "request 1 (savepoint) waits for the writer's driver; one is carried out at a time" in again.stderr
    told = table(*document).stdout
    assert re.search(r"^! request 1 \(savepoint\), made \d+ s ago, waits for the writer's driver", told, re.MULTILINE)
    assert ServiceRequests(store).done(Outcome(1, datetime.now(UTC), "no listing"))
    told = table(*document).stdout
    assert re.search(r"^! request 1 \(savepoint\) failed \d+ s ago: no listing$", told, re.MULTILINE)
    assert "request 2: " in table("savepoint", "create", *document, "--yes").stdout


def test_a_comment_that_is_no_text_is_refused(lake: Path) -> None:
    """As a shell hands on what is Latin-1."""
    done = table("savepoint", "create", "-f", f"{lake}/orders.yaml", *HUDI, "--comment", "x\udcff", "--yes")
    assert (done.exit_code, done.stdout) == (Exit.SETTINGS, "")
    assert done.stderr == "lakestream: --comment is not UTF-8: 'x\\udcff'\n"


def test_a_request_that_waits_is_taken_back_and_one_that_was_begun_is_not(lake: Path) -> None:
    document = ("-f", f"{lake}/orders.yaml", *HUDI)
    store = ObstoreLogStore.at(StoreSettings(LakePath.parse(f"{lake}/checkpoint/hudi"), S3Settings("")))
    done = table("cancel", *document)
    assert (done.exit_code, done.stdout) == (Exit.PERMANENT, "")
    assert "nothing to cancel: no request waits" in done.stderr
    assert table("savepoint", "create", *document, "--yes").exit_code == 0
    assert "take it back: `lakestream table cancel`" in table("savepoint", "create", *document, "--yes").stderr
    done = table("cancel", *document)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == "request 1 (savepoint) is cancelled: no driver carries it out\n"
    assert re.search(r"^request 1 \(savepoint\) was cancelled \d+ s ago$", table(*document).stdout, re.MULTILINE)
    assert ServiceRequests(store).next() is None
    assert table("cancel", *document).exit_code == Exit.PERMANENT
    assert "request 2: " in table("savepoint", "create", *document, "--yes").stdout
    requests = ServiceRequests(store)
    request = requests.next()
    assert request is not None
    assert requests.decide(request)
    done = table("cancel", *document)
    assert done.exit_code == Exit.PERMANENT
    assert "request 2 (savepoint) is not cancelled: the writer's driver has begun it" in done.stderr


def test_there_may_be_nothing_to_do(lake: Path) -> None:
    for command, told in (
        ("compact", "no log files wait to be compacted\n"),
        ("clean", "no files have been replaced\n"),
    ):
        for yes in ([], ["--yes"]):
            done = table(command, "-f", f"{lake}/orders.yaml", *HUDI, *yes)
            assert (done.exit_code, done.stdout, done.stderr) == (0, told, "")


def test_buckets_are_not_clustered(lake: Path) -> None:
    done = table("cluster", "-f", f"{lake}/orders.yaml", *HUDI, "--yes")
    assert done.exit_code == Exit.SETTINGS
    assert "in as many files as it has buckets (bucket:4): clustering is for tables of inserts" in done.stderr


def test_what_is_clustered_is_what_the_driver_merges(lake: Path) -> None:
    document = lake / "orders.yaml"
    inserts = "recordKey: [order_id], operation: insert, clustering: {targetFileSize: 100Mi}"
    document.write_text(document.read_text().replace("recordKey: [order_id], orderingField: version", inserts))
    properties = lake / "hudi" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text().replace(r"bucket\:4", "free"))

    def cluster(*arguments: str) -> tuple[int, str]:
        done = table("cluster", *arguments)
        return done.exit_code, done.stdout

    def add(name: str, mebibytes: int) -> None:
        path = lake / "hudi" / f"{name}-0_0-7-9_20260131120002000.parquet"
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.truncate(path, mebibytes << 20)

    by_document, by_path = ("-f", str(document), *HUDI), (str(lake / "hudi"),)
    without = lake / "without.yaml"
    without.write_text(document.read_text().replace(", clustering: {targetFileSize: 100Mi}", ""))
    refused = table("cluster", "-f", str(without), *HUDI, "--yes")
    assert refused.exit_code == Exit.SETTINGS
    assert "hudi.clustering is not set: batches add to the very files that it would merge" in refused.stderr
    limit = "50.0 MiB, half of hudi.clustering.targetFileSize\n"
    add("dt=b/a", 40)
    # One in each partition that is small: there is nothing to merge it with.
    assert cluster(*by_document) == (0, f"no partition has several files below {limit}")
    assert cluster(*by_path) == (0, "no partition has several files\n")
    add("dt=a/b", 50)
    assert cluster(*by_document)[0] == 0
    add("dt=b/b", 40)
    assert cluster(*by_document) == (PLANNED, f"clustering merges 2 base files (80.0 MiB) below {limit}")
    told = "clustering merges those of 4 base files (130.0 MiB) that are below half of hudi.clustering.targetFileSize\n"
    assert cluster(*by_path) == (PLANNED, told)


def test_savepoints_are_listed_and_only_these_are_deleted(lake: Path) -> None:
    path = f"{lake}/hudi"
    assert table("savepoint", "list", path).stdout == ""
    done = table("savepoint", "delete", "20260131120002000", path)
    assert done.exit_code == Exit.SETTINGS
    assert "no savepoint 20260131120002000 of the table at" in done.stderr
    schema: Any = {"type": "record", "name": "S", "fields": [{"name": "comments", "type": "string"}]}
    name = "20260131120002000_20260131120009000.savepoint"
    with (lake / "hudi" / ".hoodie" / "timeline" / name).open("wb") as file:
        fastavro.writer(file, schema, [{"comments": "before\x1b[31m"}])
    assert table("savepoint", "list", path).stdout == "20260131120002000  2026-01-31 12:00:09 UTC  before\\x1b[31m\n"
    done = table("savepoint", "delete", "20260131120002000", path)
    assert done.exit_code == PLANNED
    assert "the savepoint 20260131120002000 (before\\x1b[31m) is deleted" in done.stdout
    assert table("savepoint", "delete", "20260131120002000", path, "--yes").exit_code == Exit.SETTINGS, "whose table?"
    lines = table(path).stdout.splitlines()
    assert any(
        line.startswith("savepoint 20260131120002000, made ") and line.endswith(": before\\x1b[31m") for line in lines
    )
    assert any("  deltacommit  " in line for line in lines), "it hides the commit that it keeps"


@pytest.mark.parametrize("command", [("compact",), ("clean",), ("savepoint", "create")])
def test_json_files_need_no_such_work(lake: Path, command: tuple[str, ...]) -> None:
    done = table(*command, "-f", f"{lake}/orders.yaml", "--writer", "json", "--yes")
    assert done.exit_code == Exit.SETTINGS
    assert "has JSON files, which need no" in done.stderr


def test_the_mark_of_a_batch_is_the_sinks() -> None:
    assert BATCH_MARK == stats.BATCH


@pytest.mark.parametrize("options", [("--writer=hudi",), ("--writer", "hudi")])
def test_a_command_may_stand_behind_options_however_these_are_written(lake: Path, options: tuple[str, ...]) -> None:
    done = table("-f", f"{lake}/orders.yaml", *options, "compact")
    assert (done.exit_code, done.stdout) == (0, "no log files wait to be compacted\n")


@pytest.mark.parametrize(
    ("command", "said"), [("compact", "no log files wait"), ("restore --to 20260131120002000", "is the newest commit")]
)
def test_a_document_may_come_by_a_pipe(lake: Path, command: str, said: str) -> None:
    """As a shell makes one of `-f <(envsubst < orders.yaml)`: it is read once, and is empty then."""
    reader, writer = os.pipe()
    os.write(writer, (lake / "orders.yaml").read_bytes())
    os.close(writer)
    try:
        done = table(*command.split(), "-f", f"/dev/fd/{reader}", "--writer", "hudi")
    finally:
        os.close(reader)
    assert "documents" not in done.output
    assert said in done.output
