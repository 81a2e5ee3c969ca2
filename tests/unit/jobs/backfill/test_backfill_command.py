"""`lakestream backfill`: what files are meant, what is refused, and how far it is."""

from __future__ import annotations

import gzip
import os
import shutil
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from lakestream.backfill import ask, cut, find
from lakestream.backfill.find import _listed
from lakestream.errors import RequestError
from lakestream.log import ObstoreLogStore, Request, current_request
from lakestream.main import app
from lakestream.model import BatchCommit, FileEntry, FilePart, Format, SinkCommit, Taken
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import DOCUMENT, log_at, plan_of

if TYPE_CHECKING:
    from obstore import ObjectMeta


class Lake:
    """A document, the log of its writers, and files beside them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "orders.yaml").write_text(DOCUMENT.format(lake=folder))
        for name in ("json", "hudi", "files"):
            (folder / name).mkdir()

    def put(self, name: str, content: bytes = b'{"order_id":"a","version":1}\n') -> Path:
        path = self.folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    def backfill(self, *arguments: object, writer: str = "hudi") -> Result:
        options = ["-f", f"{self.folder}/orders.yaml", "--writer", writer]
        return CliRunner().invoke(app, ["backfill", *map(str, arguments), *options])

    def behind_options(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["backfill", "-f", f"{self.folder}/orders.yaml", "--writer", "hudi", *arguments])

    def refused(self, *arguments: object, writer: str = "hudi") -> str:
        done = self.backfill(*arguments, writer=writer)
        assert done.exit_code == 3, done.output
        return done.stderr

    def request(self, writer: str = "hudi") -> Request:
        state = current_request(self.store(writer))
        assert state is not None
        return state.request

    def parts(self, writer: str = "hudi") -> tuple[FilePart, ...]:
        return self.request(writer).file_parts

    def store(self, writer: str = "hudi") -> ObstoreLogStore:
        return ObstoreLogStore.at(self.place(f"checkpoint/{writer}"))

    def place(self, name: str) -> StoreSettings:
        return StoreSettings(LakePath.parse(str(self.folder / name)), S3Settings("eu-west-1"))

    def committed(self, taken: Taken, writer: str = "hudi") -> None:
        log = log_at(self.folder / "checkpoint" / writer)
        last = log.last_commit()
        plan = replace(plan_of(0 if last is None else last.batch + 1, log.epoch), taken=taken)
        log.put_plan(plan)
        log.put_commit(BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_files_and_folders_are_asked_for_and_it_is_told_how_far_that_is(lake: Lake) -> None:
    one = lake.put("one.json", b'{"order_id":"a","version":1}\n' * 5)
    lake.put("more/b.json.gz", gzip.compress(b'{"order_id":"b"}\n' * 3))
    lake.put("more/_temporary/c.json")
    lake.put("more/.hidden.json")
    pq.write_table(pa.table({"order_id": ["c"], "version": [1]}), lake.put("more/c.parquet"))
    done = lake.backfill(one, lake.folder / "files" / "more", one)
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("backfill 1: about 9 records in 3 files, ")
    assert f"lakestream ingest -f {lake.folder}/orders.yaml --writer hudi" in done.stdout
    assert [(Path(part.path).name, part.format, part.rows) for part in lake.parts()] == [
        ("one.json", Format.JSON, 5),
        ("b.json.gz", Format.JSON_GZIP, 3),
        ("c.parquet", Format.PARQUET, 1),
    ]
    status = lake.backfill("status").stdout
    assert status.splitlines() == [
        "backfill 1 has come to part 0 of 3; the writer's driver goes on with it",
        f"next: {one} 0-145; about 9 records are left",
    ]
    assert "backfill 1 has come to part 0 of 3" in lake.refused(one)
    lake.committed(Taken(1, 3, 3))
    assert lake.backfill("status").stdout == "backfill 1 is done\n"
    assert "backfill 2: " in lake.backfill(one).stdout, "a table kept by key takes a file twice"


def test_the_command_that_is_told_can_be_run_wherever_the_document_is(tmp_path: Path) -> None:
    folder = tmp_path / "my lake"
    folder.mkdir()
    lake = Lake(folder)
    done = lake.backfill(lake.put("a.json"))
    assert f"lakestream ingest -f '{folder}/orders.yaml' --writer hudi" in done.stdout


def test_a_partition_by_a_column_with_an_underscore_is_not_hidden(lake: Lake) -> None:
    """As of what `json.partitionBy: [_shard_id]` has written."""
    lake.put("_shard_id=0/a.json")
    lake.put("_shard_id=0/_b.json")
    lake.put("_shard_id=0/.c=d/e.json")
    assert lake.backfill(lake.folder / "files").exit_code == 0
    assert [(Path(part.path).name, part.folders) for part in lake.parts()] == [("a.json", (("_shard_id", "0"),))]


def test_a_backfill_can_be_cancelled(lake: Lake) -> None:
    assert "nothing to cancel" in lake.refused("cancel")
    assert lake.backfill("status").stdout == "nobody has asked for a backfill\n"
    path = lake.put("a.json")
    lake.backfill(path)
    assert lake.backfill("status").stdout == lake.behind_options("status").stdout
    assert "backfill 1 is cancelled" in lake.behind_options("cancel").stdout
    assert "backfill 1 is cancelled at part 0 of 1; the writer's driver is yet" in lake.backfill("status").stdout
    lake.committed(Taken(1, 0, 0))
    assert lake.backfill("status").stdout == "backfill 1 was cancelled: 0 of its 1 parts were taken\n"
    assert "backfill 2: " in lake.backfill(path).stdout


def test_what_is_asked_for_before_the_first_start_is_looked_at_and_cancelled(lake: Lake) -> None:
    """The first driver makes the folder of the table."""
    (lake.folder / "hudi").rmdir()
    lake.backfill(lake.put("a.json"))
    assert "backfill 1 has come to part 0 of 1" in lake.backfill("status").stdout
    assert "backfill 1 is cancelled" in lake.backfill("cancel").stdout
    assert "there is no folder" in CliRunner().invoke(app, ["backfill", "status", f"{lake.folder}/hudi"]).stderr


def test_a_large_file_is_cut(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "_PART_BYTES", 100)
    monkeypatch.setattr(cut, "_PART_ROWS", 2)
    lake.put("a.json", b'{"order_id":"a"}\n' * 10)
    pq.write_table(pa.table({"order_id": ["a"] * 5}), lake.put("b.parquet"), row_group_size=3)
    lake.backfill(lake.folder / "files")
    assert [(part.start, part.end, part.rows) for part in lake.parts()] == [
        *((0, 100, 6), (100, 170, 5)),
        *((0, 2, 2), (2, 3, 1), (3, 5, 2)),
    ]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.csv", b"order_id\na\n", "has to be a JSON object, and of the first 2 lines 2 are none: 'order_id'"),
        ("a.json", b"[\n{}\n]\n", "neither Parquet nor JSON lines"),
        ("a.json", b"[\n" + b'{"order_id":"a"},\n' * 999, "of the first 100 lines 100 are none: '['"),
        ("a.json", b'{\n  "order_id": "a"\n}\n', "neither Parquet nor JSON lines"),
        ("a.json", b'{"id":"a"}\n', "a.json is of another table: spec.schema has order_id, version; the file has id"),
        (
            "a.json",
            b"[" + b'{"order_id":"a"},' * 20_000 + b"{}]",
            "the first one, of 65,536 bytes or more, begins with '[",
        ),
        ("a.gz", gzip.compress(b"x\n", mtime=0), "neither Parquet nor JSON lines"),
        ("a.gz", b"\x1f\x8b nonsense", "a.gz is damaged: "),
        ("a.parquet", b"PAR1 nonsense", "a.parquet is damaged: "),
        ("a.json", b"", "nothing to take: the files are empty, "),
    ],
)
def test_what_is_no_file_of_events_is_named(lake: Lake, name: str, content: bytes, why: str) -> None:
    refused = lake.refused(lake.put(name, content))
    assert why in refused
    assert str(lake.folder / "files" / name) in refused
    assert current_request(lake.store()) is None


class TestTexts:
    """Where an event is a text, each line of a file is one."""

    @pytest.fixture
    def texts(self, lake: Lake) -> Lake:
        document = lake.folder / "orders.yaml"
        by_text = "  format: text\n  schema: line string"
        document.write_text(document.read_text().replace("  schema: order_id string, version long", by_text))
        return lake

    @pytest.mark.parametrize("pack", [bytes, gzip.compress])
    def test_lines_are_taken_whatever_they_say(self, texts: Lake, pack: Callable[[bytes], bytes]) -> None:
        done = texts.backfill(texts.put("a.log", pack(b"GET /\n\xff\n" + "ü\n[1]\n".encode())))
        assert done.exit_code == 0, done.stderr
        assert [Path(part.path).name for part in texts.parts()] == ["a.log"]

    @pytest.mark.parametrize(
        ("content", "why"),
        [
            (b"PAR1 nonsense", "a.log is Parquet, and by spec.format an event is a text: give files of lines"),
            (b"\x89PNG\n\xff\n\xfe\n\xfd", "a.log is no text: most of its first 4 lines are not UTF-8"),
            (b"", "nothing to take: the files are empty"),
        ],
    )
    def test_what_has_no_lines_of_text_is_named(self, texts: Lake, content: bytes, why: str) -> None:
        assert why in texts.refused(texts.put("a.log", content))

    def test_rows_of_a_table_are_json(self, texts: Lake) -> None:
        path = texts.put("a.log", b"GET /\n")
        assert "neither Parquet nor JSON lines" in texts.refused(path, "--rows")
        path.write_bytes(b'{"line":"GET /"}\n')
        assert texts.backfill(path, "--rows").exit_code == 0


def test_files_have_no_records_in_frames(lake: Lake) -> None:
    document = lake.folder / "orders.yaml"
    document.write_text(document.read_text().replace("  schema:", "  format: avro\n  schema:"))
    path = lake.put("a.jsonl", b'{"order_id":"a","version":1}\n')
    assert "by spec.format records are in frames of the Glue Schema Registry" in lake.refused(path)
    assert lake.backfill(path, "--rows").exit_code == 0


def test_a_line_may_have_several_objects_where_records_have(lake: Lake) -> None:
    path = lake.put("a.jsonl", b'{"order_id":"a","version":1}{"order_id":"b","version":1}\n')
    assert "neither Parquet nor JSON lines" in lake.refused(path)
    document = lake.folder / "orders.yaml"
    document.write_text(document.read_text().replace("  schema:", "  format: jsonl\n  schema:"))
    assert "neither Parquet nor JSON lines" in lake.refused(path, "--rows")
    assert "is of another table" in lake.refused(lake.put("b.jsonl", b'{"x":1}{"y":1}\n'))
    assert lake.backfill(path).exit_code == 0


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("damaged", [b'{"order_id":\n', b"\xff\xfe\n", b"[1,2]\n{}\n"])
def test_damaged_lines_are_a_matter_of_the_quarantine(
    lake: Lake, damaged: bytes, pack: Callable[[bytes], bytes]
) -> None:
    path = lake.put("a", pack(damaged + b'{"order_id":"a"}\n' * 5))
    assert lake.backfill(path).exit_code == 0
    assert [Path(part.path).name for part in lake.parts()] == ["a"]


@pytest.mark.parametrize(("codec", "kind"), [("gzip", Format.JSON_GZIP), ("zstd", Format.JSON_ZSTD)])
def test_what_hardly_compresses_is_not_called_damaged(lake: Lake, codec: str, kind: Format) -> None:
    """Of random digits in base 64 more than 64 KiB are left of a block of zstd, which is unpacked as a whole."""
    chance = Random(0)
    line = b'{"order_id":"%b"}\n'
    lines = b"".join(line % b64encode(chance.randbytes(300)) for _ in range(3_000))
    packed = pa.BufferOutputStream()
    with pa.CompressedOutputStream(packed, codec) as stream:
        stream.write(lines)
    done = lake.backfill(lake.put("a", packed.getvalue().to_pybytes()))
    assert done.exit_code == 0, done.stderr
    (part,) = lake.parts()
    assert part.format is kind
    assert part.rows == pytest.approx(3_000, rel=0.5)


@pytest.mark.parametrize("level", [0, 6])
def test_a_head_is_unpacked_as_far_as_it_goes(lake: Lake, level: int) -> None:
    chance = Random(0)
    lines = b"".join(b'{"order_id":"%d"}\n' % chance.getrandbits(1_000) for _ in range(3_000))
    assert lake.backfill(lake.put("a", gzip.compress(lines, level))).exit_code == 0


def test_parquet_of_another_table_or_with_an_unreadable_column_is_named(lake: Lake) -> None:
    path = lake.put("a.parquet")
    pq.write_table(pa.table({"id": ["a"]}), path)
    assert f"{path} is of another table" in lake.refused(path)
    pq.write_table(pa.table({"order_id": ["a"], "took": pa.array([1], pa.duration("s"))}), path)
    assert f"{path}: column took duration[s] has a type that JSON has no value for" in lake.refused(path)


def test_parquet_with_a_column_twice_is_named(lake: Lake) -> None:
    """Of two values one would be left out."""
    path = lake.put("a.parquet")
    pq.write_table(pa.table([["a"], ["b"]], names=["order_id", "order_id"]), path)
    assert f"{path} has column order_id twice" in lake.refused(path)


def test_a_wrong_path_is_named(lake: Lake) -> None:
    missing, empty = lake.folder / "missing", lake.folder / "empty"
    empty.mkdir()
    there = f"; {lake.folder} has empty, files, hudi, json, orders.yaml"
    assert f"there is nothing at {missing}: no file, and no folder with files{there}" in lake.refused(missing)
    assert f"there is nothing at {missing}/2025/a.json: no file, and no folder with files{there}" in lake.refused(
        missing / "2025" / "a.json"
    )
    assert f"there is nothing at {empty}" in lake.refused(empty)
    for name in (".0.gz.crc", *(f"{number}.gz" for number in range(9))):
        lake.put(name)
    pattern = lake.refused(lake.folder / "files" / "*.json")
    assert "a pattern is filled in by the shell, which found nothing for it" in pattern
    assert f"; {lake.folder}/files has 0.gz, 1.gz, 2.gz, 3.gz, 4.gz, 5.gz and 3 more" in pattern
    assert "is in the very table" in lake.refused(lake.folder / "hudi")
    (lake.folder / "other" / ".hoodie").mkdir(parents=True)
    (lake.folder / "other" / ".hoodie" / "hoodie.properties").touch()
    (lake.folder / "other" / "dt=1").mkdir()
    (lake.folder / "other" / "dt=1" / "x.parquet").touch()
    for path in (lake.folder / "other", lake.folder / "other" / "dt=1", lake.folder / "other" / "dt=1" / "x.parquet"):
        assert f"{lake.folder}/other is a Hudi table" in lake.refused(path)
    metadata = lake.folder / "other" / ".hoodie" / "metadata" / ".hoodie"
    metadata.mkdir(parents=True)
    (metadata / "hoodie.properties").touch()
    assert f"{lake.folder}/other is a Hudi table" in lake.refused(lake.folder / "other")
    assert f"{lake.folder} has the table {lake.folder}/other in it" in lake.refused(lake.folder)
    shutil.rmtree(lake.folder / "other")
    (lake.folder / "lake" / "json" / "_lakestream").mkdir(parents=True)
    (lake.folder / "lake" / "json" / "_lakestream" / "owner").touch()
    assert f"has the table {lake.folder}/lake/json in it" in lake.refused(lake.folder / "lake")


@pytest.mark.parametrize("asked", ["", "day/orders.json#3"])
def test_a_file_that_a_local_store_does_not_tell_of_is_named(lake: Lake, asked: str) -> None:
    lake.put("orders.json")
    odd = lake.put("day/orders.json#3")
    assert f"{odd} would be passed over" in lake.refused(lake.folder / "files" / asked)
    odd.rename(odd.with_name("orders#3.json"))
    lake.put("_hidden/orders.json#4")
    assert lake.backfill(lake.folder / "files").exit_code == 0
    assert len(lake.parts()) == 2


def test_what_is_of_a_hudi_table_is_told_by_what_hudi_leaves_there(lake: Lake) -> None:
    lake.put("trips/americas/brazil/a.parquet")
    lake.put("trips/americas/brazil/.hoodie_partition_metadata")
    lake.put("trips/.hoodie/hoodie.properties.backup")
    trips = lake.folder / "files" / "trips"
    assert f"{trips} is a Hudi table" in lake.refused(trips)
    assert f"has the table {trips} in it" in lake.refused(lake.folder / "files")
    for path in (trips / "americas", trips / "americas" / "brazil"):
        assert f"{path} is part of a Hudi table" in lake.refused(path)


def test_a_compressed_file_that_no_task_can_read_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut, "_MOST_COMPRESSED", 20)
    path = lake.put("a.gz", gzip.compress(b'{"order_id":"a"}\n'))
    assert f"{path} has {path.stat().st_size} bytes, compressed" in lake.refused(path)


def test_too_much_at_once_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "_MOST_PARTS", 1)
    lake.put("a.json")
    lake.put("b.json")
    lake.put("empty.json", b"")
    assert "2 files are more than the 1 of a request" in lake.refused(lake.folder / "files")
    monkeypatch.setattr(ask, "_MOST_PARTS", 2)
    monkeypatch.setattr(cut, "_PART_BYTES", 20)
    assert "4 parts of files are more than the 2 of a request" in lake.refused(lake.folder / "files")


def test_a_table_that_keeps_every_row_takes_a_file_once(lake: Lake) -> None:
    path = lake.put("a.json")
    lake.backfill(path, writer="json")
    lake.committed(Taken(1, 1, 1), "json")
    refused = lake.refused(path, writer="json")
    assert f"{path} was asked for by backfill 1 of " in refused
    assert "Give --again" in refused.replace("give", "Give")
    assert "backfill 2: " in lake.backfill(path, "--again", writer="json").stdout
    lake.committed(Taken(2, 1, 1), "json")
    os.utime(path, (1, 1))  # as of a copy
    assert "UTC, has changed since or was put there anew, and the table" in lake.refused(path, writer="json")
    with path.open("ab") as file:
        file.write(b'{"order_id":"another"}\n')
    assert f"{path} was asked for by backfill 2 of " in lake.refused(path, writer="json")
    assert "backfill 3: " in lake.backfill(path, "--again", writer="json").stdout


def test_a_file_is_taken_once_by_whatever_name(lake: Lake) -> None:
    path = lake.put("2026-01-31.jsonl")
    path.with_name("latest.jsonl").symlink_to(path.name)
    lake.backfill(path.parent, writer="json")
    assert [part.path for part in lake.parts("json")] == [str(path)]
    lake.committed(Taken(1, 1, 1), "json")
    assert f"{path} was asked for by backfill 1" in lake.refused(path.with_name("latest.jsonl"), writer="json")


def test_the_table_that_is_written_is_refused_by_whatever_name(lake: Lake) -> None:
    written = lake.folder / "table" / "dt=a" / "b000000000000-00000-5e0c11aa.json"
    written.parent.mkdir(parents=True)
    written.write_bytes(b'{"order_id":"a"}\n')
    archive = lake.put("a.json").parent
    (archive / "b.json").symlink_to(written)
    (lake.folder / "link").symlink_to("table")
    for path in (archive, archive / "b.json", lake.folder / "link"):
        place = StoreSettings(LakePath.parse(str(path)), S3Settings("eu-west-1"))
        with pytest.raises(RequestError, match="in the very table"):
            find.find_files(place, LakePath.parse(str(lake.folder / "table")))


def test_the_deletes_that_a_table_forgets_are_told(lake: Lake) -> None:
    document = lake.folder / "orders.yaml"
    document.write_text(
        document.read_text().replace("orderingField: version", "orderingField: version, deleteWhen: 'true'")
    )
    path = lake.put("a.json")
    assert "the table remembers deletes for 1 h" in lake.refused(path)
    assert "there is nothing at " in lake.refused(lake.folder / "no.json"), "what is wrong whatever is said of deletes"
    assert "backfill 1: " in lake.backfill(path, "--despite-deletes").stdout


class TestTableOfJsonFiles:
    """Whose rows are taken as they are, of committed batches alone."""

    @pytest.fixture
    def table(self, lake: Lake) -> Path:
        log = log_at(lake.folder / "checkpoint" / "json")
        owner = Owner(log.checkpoint, str(lake.folder / "checkpoint" / "json"), "orders", "json")
        TableClaim(lake.place("json"), lake.place("json") / "_lakestream", owner).take(wrote=False)
        table = lake.folder / "json"
        for batch in range(3):
            folder = table / f"dt=2026-01-0{batch % 2 + 1}"
            folder.mkdir(exist_ok=True)
            (folder / f"b{batch}.json").write_text('{"order_id":"a"}\n' * (batch + 1))
            plan = plan_of(batch, log.epoch)
            log.put_plan(plan)
            if batch < 2:
                entry = FileEntry(f"{folder.name}/b{batch}.json", batch + 1, 17, folder.name)
                commit = BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at)
                log.put_commit(replace(commit, sink=SinkCommit(batch + 1, 17, (entry,))))
        return table

    def test_it_is_taken_without_a_word(self, lake: Lake, table: Path) -> None:
        assert "backfill 1: about 3 rows of a table in 2 files, " in lake.backfill(table).stdout
        assert [(Path(part.path).name, part.rows, part.folders, part.is_table) for part in lake.parts()] == [
            ("b0.json", 1, (("dt", "2026-01-01"),), True),
            ("b1.json", 2, (("dt", "2026-01-02"),), True),
        ]

    @pytest.mark.parametrize("path", ["dt=2026-01-01", "dt=2026-01-01/b0.json"])
    def test_a_part_of_it_is_too(self, lake: Lake, table: Path, path: str) -> None:
        lake.backfill(table / path)
        ((name, folders, is_table),) = [(Path(part.path).name, part.folders, part.is_table) for part in lake.parts()]
        assert (name, folders, is_table) == ("b0.json", (("dt", "2026-01-01"),), True)

    def test_what_a_kill_has_left_beside_its_files_is_none_of_it(self, lake: Lake, table: Path) -> None:
        """As releases did that wrote them where they belong."""
        (table / "dt=2026-01-01" / "b0.json#1").write_text('{"order')
        assert "b0.json#1 would be passed over" in lake.refused(table / "dt=2026-01-01" / "b0.json#1")
        lake.backfill(table)
        assert [Path(part.path).name for part in lake.parts()] == ["b0.json", "b1.json"]

    def test_a_committed_file_that_is_gone_is_named(self, lake: Lake, table: Path) -> None:
        gone = table / "dt=2026-01-01" / "b0.json"
        gone.unlink()
        assert f"{gone} is gone, which batch 0 of json has written" in lake.refused(table)

    def test_what_its_writer_commits_while_it_is_listed_is_not_gone(
        self, lake: Lake, table: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A table with the files of months takes minutes to list, and its writer has a batch every ten seconds."""

        def listed(place: StoreSettings) -> list[tuple[str, ObjectMeta]]:
            found = [*_listed(place)]
            late = table / "dt=2026-01-03" / "b2.json"
            late.parent.mkdir()
            late.write_text('{"order_id":"a"}\n')
            log = log_at(lake.folder / "checkpoint" / "json")
            (plan,) = log.pending_plans()
            entry = FileEntry("dt=2026-01-03/b2.json", 1, 17, "dt=2026-01-03")
            commit = BatchCommit.of(plan, epoch=log.epoch, committed_at=plan.planned_at)
            log.put_commit(replace(commit, sink=SinkCommit(1, 17, (entry,))))
            return found

        monkeypatch.setattr(find, "_listed", listed)
        done = lake.backfill(table)
        assert done.exit_code == 0, done.stderr
        assert [(Path(part.path).name, part.rows, part.folders) for part in lake.parts()][2:] == [
            ("b2.json", 1, (("dt", "2026-01-03"),))
        ]

    def test_events_and_rows_are_not_mixed(self, lake: Lake, table: Path) -> None:
        assert "rows of a table, and others events" in lake.refused(table, lake.put("a.json"))


def test_other_rows_of_a_table_have_to_be_called_so(lake: Lake) -> None:
    lake.backfill(lake.put("a.json", b'{"another":1}\n'), "--rows")
    assert [part.is_table for part in lake.parts()] == [True]


def test_what_an_option_is_given_is_no_command(lake: Lake) -> None:
    refused = lake.behind_options("--rows", "no-such-file", "--writer", "status")
    assert refused.exit_code == 2
    assert "there is no writer 'status'; choose one of: " in refused.stderr


@pytest.mark.parametrize("command", ["status", "cancel"])
def test_a_command_behind_options_is_no_file(lake: Lake, command: str) -> None:
    lake.put("one.json")
    assert lake.backfill(lake.folder / "files").exit_code == 0
    done = CliRunner().invoke(app, ["backfill", "-f", f"{lake.folder}/orders.yaml", "--writer=hudi", command])
    assert done.exit_code == 0, done.stderr
    assert "backfill 1" in done.stdout


@pytest.mark.parametrize("before", ["--", "one.json"])
@pytest.mark.parametrize("name", ["files", "status"])
def test_a_folder_may_be_called_as_a_command(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str, before: str
) -> None:
    lake.put("one.json")
    lake.put(f"{name}/two.json")
    monkeypatch.chdir(lake.folder / "files")
    done = lake.behind_options(before, name)
    assert done.exit_code == 0, done.stderr
    assert "two.json" in [Path(part.path).name for part in lake.parts()]
