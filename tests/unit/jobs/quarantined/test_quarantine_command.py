"""`lakestream quarantine`: the unusable records of committed batches."""

from __future__ import annotations

import gzip
import io
import json
import random
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import obstore
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore import Bytes
from obstore.store import LocalStore
from typer.testing import CliRunner, Result

from lakestream.avro import RegistrySettings, SchemaVersion
from lakestream.errors import RegistryDeniedError, RequestError
from lakestream.log import BatchFiles
from lakestream.main import app
from lakestream.model import BatchCommit, Definition, FileEntry
from lakestream.quarantined import wrapped
from lakestream.quarantined.records import Tally, read_records, tally
from lakestream.quarantined.replay import _look_at
from lakestream.query.errors import UnreadableError
from lakestream.sinks.quarantine import COLUMNS
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.avro import framed, record, text
from lakestream.testing.damage import damaged, damaged_at_the_end
from lakestream.testing.logs import EPOCH_TIME, log_at, plan_of

DOCUMENT = """
apiVersion: lakestream.dev/v1alpha1
kind: LakeStream
metadata: {{name: orders}}
spec:
  source: {{kinesis: {{stream: orders, region: eu-west-1}}}}
  schema: order_id string
  writers:
    - name: json
      json: {{path: {lake}/json}}
  checkpoint: {lake}/checkpoint
"""
TYPES = {"data": pa.binary(), "sub_sequence": pa.int64(), "arrival": pa.timestamp("us", tz="UTC")}
SCHEMA = pa.schema([(name, TYPES.get(name, pa.string())) for name in COLUMNS])


SAME = Definition("order_id string", None, None).digest
"""Of the document."""


class Kept:
    """The quarantine of a writer, without a driver."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        (lake / "orders.yaml").write_text(DOCUMENT.format(lake=lake))
        (lake / "json").mkdir()
        self.log = log_at(lake / "checkpoint" / "json")

    def batch(
        self,
        number: int,
        records: Sequence[tuple[bytes, str]],
        *,
        commit: bool = True,
        rejected_by: str = "",
        shard: str | None = "shardId-000000000000",
        readmits: int = 0,
    ) -> None:
        """A batch with these unusable records; it may readmit the first files of the first request."""
        plan = plan_of(number, self.log.epoch)
        if readmits:
            found = self.log.requested(None, SAME, 1000)
            assert found is not None
            files = [entry for task in found.tasks for entry in task][:readmits]
            plan = replace(plan, parts=(tuple(files),), taken=replace(found.taken, parts=len(files)))
        self.log.put_plan(plan)
        arrival = EPOCH_TIME + timedelta(minutes=number)
        rows = [(data, "key", shard and str(i), 0, shard, arrival, why) for i, (data, why) in enumerate(records)]
        name = f"b{number:012d}-00000-5e0c11aa.parquet"
        path = self.lake / "checkpoint" / "json" / "quarantine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=SCHEMA)
        pq.write_table(table, path)
        if commit:
            rejects = (FileEntry(name, len(rows), path.stat().st_size, ""),)
            done = BatchCommit.of(plan, epoch=self.log.epoch, committed_at=plan.planned_at, rejects=rejects)
            self.log.put_commit(replace(done, rejected_by=rejected_by))

    def ask(self, command: str, *arguments: str) -> Result:
        done = self.try_to(command, *arguments)
        assert done.exit_code == 0, done.stderr
        return done

    def try_to(self, command: str, *arguments: str) -> Result:
        return CliRunner().invoke(
            app, ["quarantine", command, "-f", f"{self.lake}/orders.yaml", "--writer", "json", *arguments]
        )


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """Three records of two batches; those of a third batch are not committed."""
    kept = Kept(tmp_path)
    kept.batch(0, [(b'{"id":', "not JSON"), (b"\xff\xfe{", "not UTF-8")])
    kept.batch(1, [(b'{"name": "\xc3\xbc"}', "missing: order_id"), (b"{", "not JSON")])
    kept.batch(2, [(b"", "empty")], commit=False)
    return kept


def test_records_are_counted_by_reason(kept: Kept) -> None:
    head, *lines = kept.ask("list").stdout.splitlines()
    assert head.split() == ["records", "batches", "arrived", "reason"]
    assert [" ".join(line.split()) for line in lines] == [
        "2 0–1 2026-01-31 12:00:00 UTC – 2026-01-31 12:01:00 UTC not JSON",
        "1 1 2026-01-31 12:01:00 UTC – 2026-01-31 12:01:00 UTC missing: order_id",
        "1 0 2026-01-31 12:00:00 UTC – 2026-01-31 12:00:00 UTC not UTF-8",
    ]


def test_a_reason_that_is_no_text_is_refused(kept: Kept) -> None:
    """As a shell hands on what is Latin-1."""
    done = kept.try_to("show", "--reason", "x\udcff")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr == "lakestream: --reason is not UTF-8: 'x\\udcff'\n"


def test_to_count_records_takes_neither_their_bytes_nor_the_memory_for_all(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(random.Random(1).randbytes(1 << 20), f"not JSON {number % 2}") for number in range(4)])
    kept.batch(1, [(b"{", "not JSON 0")])
    got: list[int] = []
    get_range = obstore.get_range

    def counting(store: LocalStore, path: str, *, start: int, end: int) -> Bytes:
        got.append(end - start)
        return get_range(store, path, start=start, end=end)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lakestream.quarantined.records.obstore.get_range", counting)
        lines = kept.ask("list").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["3", "0–1"], ["2", "0"]]
    assert got
    assert sum(got) < 1 << 18


def test_as_many_reasons_as_records_are_counted_in_one_pass() -> None:
    """As of a map with a key for each record: by a look for each of them, 100,000 would take minutes."""
    reasons = [f"does not match the schema: counts.{number}" for number in range(20_000)]
    arrivals = [EPOCH_TIME, None] * 10_000
    batch = pa.record_batch(
        {"batch": list(range(20_000)), "reason": reasons, "arrival": pa.array(arrivals, TYPES["arrival"])}
    )
    found = {one.reason: one for one in tally([batch, batch.slice(0, 1)])}
    assert len(found) == len(reasons)
    assert found[reasons[0]] == Tally(reasons[0], 2, 0, 0, EPOCH_TIME, EPOCH_TIME)
    assert found[reasons[-1]] == Tally(reasons[-1], 1, 19_999, 19_999, None, None)


def test_what_was_counted_is_held_no_more() -> None:
    seen: list[weakref.ref[pa.RecordBatch]] = []

    def records() -> Iterator[pa.RecordBatch]:
        for number in range(5):
            assert [one() for one in seen[:-1]] == [None] * len(seen[:-1])
            batch = pa.record_batch({"batch": [number], "reason": ["not JSON"], "arrival": [EPOCH_TIME]})
            seen.append(weakref.ref(batch))
            yield batch

    assert tally(records()) == [Tally("not JSON", 5, 0, 4, EPOCH_TIME, EPOCH_TIME)]


def test_records_are_shown_as_text(kept: Kept) -> None:
    rows = [orjson.loads(line) for line in kept.ask("show", "-o", "jsonl").stdout.splitlines()]
    assert [(row["batch"], row["reason"], row["data"]) for row in rows] == [
        (0, "not JSON", '{"id":'),
        (0, "not UTF-8", "\\xff\\xfe{"),
        (1, "missing: order_id", '{"name": "ü"}'),
        (1, "not JSON", "{"),
    ]
    assert rows[3]["sequence_number"] == "1"


def test_compressed_records_are_shown_without_their_compression(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(gzip.compress(b'{"name": 1}'), "missing: order_id")])
    assert orjson.loads(kept.ask("show", "-o", "jsonl").stdout)["data"] == '{"name": 1}'


class TestAvro:
    """What a person sees of records whose schemas are with Glue."""

    VERSION = UUID(int=7)

    @pytest.fixture
    def framed_order(self, tmp_path: Path) -> Kept:
        kept = Kept(tmp_path)
        kept.batch(0, [(framed(self.VERSION, text("ü")), "missing: order_id"), (b"\xff", "no frame")])
        document = tmp_path / "orders.yaml"
        document.write_text(document.read_text().replace("  schema:", "  format: avro\n  schema:"))
        return kept

    def test_it_is_the_json_of_their_values(self, framed_order: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
        order = SchemaVersion("AVRO", json.dumps(record("Order", {"name": "string"})))

        class Registry:
            def __init__(self, settings: RegistrySettings, _: float) -> None:
                assert settings == RegistrySettings("eu-west-1")

            def version(self, version: UUID) -> SchemaVersion:
                assert version == TestAvro.VERSION
                return order

        monkeypatch.setattr(wrapped, "GlueRegistry", Registry)
        rows = [orjson.loads(line) for line in framed_order.ask("show", "-o", "jsonl").stdout.splitlines()]
        assert [row["data"] for row in rows] == ['{"name":"ü"}', "\\xff"]
        table = pq.read_table(io.BytesIO(framed_order.ask("show", "-o", "parquet").stdout_bytes))
        assert table["data"].to_pylist() == [framed(self.VERSION, text("ü")), b"\xff"]

    @pytest.mark.parametrize("when", ["credentials", "a schema"])
    def test_without_their_schemas_it_is_their_bytes(
        self, framed_order: Kept, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
    ) -> None:
        def denied(*_: object) -> None:
            raise RegistryDeniedError("Glue denies GetSchemaVersion")

        registry = SimpleNamespace(version=denied)
        monkeypatch.setattr(wrapped, "GlueRegistry", denied if when == "credentials" else lambda *_: registry)
        rows = [orjson.loads(line) for line in framed_order.ask("show", "-o", "jsonl").stdout.splitlines()]
        assert [row["data"] for row in rows] == ["\x03\x00" + "\x00" * 15 + "\x07\x04ü", "\\xff"]
        assert caplog.messages == [
            "records are shown as they came, without their schemas: Glue denies GetSchemaVersion",
        ]


def test_records_are_chosen_by_the_beginning_of_their_reason(kept: Kept) -> None:
    done = kept.ask("show", "--reason", "not", "--limit", "2", "-o", "csv")
    assert done.stdout.count("\n") == 3
    assert "missing" not in done.stdout
    assert "2 records (there may be more: --limit)" in done.stderr


def test_other_engines_get_the_bytes_as_they_came(kept: Kept) -> None:
    rows = pq.read_table(io.BytesIO(kept.ask("show", "-o", "parquet").stdout_bytes))
    assert rows["data"].to_pylist() == [b'{"id":', b"\xff\xfe{", b'{"name": "\xc3\xbc"}', b"{"]


def test_an_empty_quarantine_is_told(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert kept.ask("list").stdout == "the quarantine is empty\n"
    assert "0 records" in kept.ask("show").stderr


def test_a_replay_is_asked_for_once_and_tells_how_far_it_is(kept: Kept) -> None:
    assert kept.ask("replay").stdout == (
        "replay 1: 4 records in 2 files. The writer's driver reads them between its batches; if none runs: "
        f"lakestream ingest -f {kept.lake}/orders.yaml --writer json\n"
    )
    refused = kept.try_to("replay")
    assert refused.exit_code == 3
    assert "replay 1 has come to part 0 of 2; the writer's driver goes on with it." in refused.stderr
    assert kept.ask("list").stdout.splitlines()[-1].startswith("replay 1 has come to part 0 of 2")


def test_what_was_replayed_is_not_in_quarantine_but_for_what_is_unusable_still(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b"{", "not JSON"), (b"{}", "missing: order_id")])
    kept.batch(1, [(b"x", "not JSON")])
    kept.ask("replay")
    kept.batch(2, [(b"{", "still not JSON")], rejected_by=SAME, readmits=2)
    rows = [orjson.loads(line) for line in kept.ask("show", "-o", "jsonl").stdout.splitlines()]
    assert [(row["batch"], row["data"], row["reason"]) for row in rows] == [(2, "{", "still not JSON")]
    assert kept.ask("list").stdout.endswith("replay 1 is done\n")
    files = CliRunner().invoke(app, ["files", "-f", f"{tmp_path}/orders.yaml", "--writer", "json", "--quarantine"])
    assert [Path(line).name for line in files.stdout.splitlines()] == ["b000000000002-00000-5e0c11aa.parquet"]
    assert "quarantine: 1 records in 1 files" in " ".join(
        CliRunner().invoke(app, ["table", "-f", f"{tmp_path}/orders.yaml", "--writer", "json"]).stdout.split()
    )


def test_what_the_document_has_rejected_already_is_not_asked_for(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b"{", "not JSON"), (b"[", "not JSON")], rejected_by=SAME)
    refused = kept.try_to("replay")
    assert refused.exit_code == 3
    assert "nothing to replay: 2 records were rejected by the very spec.filter, spec.schema" in refused.stderr
    kept.batch(1, [(b"x", "not JSON")], rejected_by="another")
    done = kept.ask("replay")
    assert "replay 1: 1 records in 1 files" in done.stdout
    assert "2 stay in quarantine: rejected by the very schema" in done.stderr


def test_rows_of_several_records_stay(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b'{"n":1}', "partition column dt: …")], shard=None)
    assert "nothing to replay: 1 rows were made of several records" in kept.try_to("replay").stderr
    kept.batch(1, [(b"{", "not JSON")])
    done = kept.ask("replay")
    assert "replay 1: 1 records in 1 files" in done.stdout
    assert "1 stay in quarantine: made by a transform of several records each" in done.stderr


def test_files_that_were_removed_are_not_asked_for(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    assert "nothing to replay: the quarantine is empty" in kept.try_to("replay").stderr
    kept.batch(0, [(b"{", "not JSON")])
    (path,) = (tmp_path / "checkpoint" / "json" / "quarantine").iterdir()
    path.write_bytes(b"?" * path.stat().st_size)
    assert f"{path.name} under" in kept.try_to("replay").stderr
    path.unlink()
    assert "nothing to replay: " in kept.try_to("replay").stderr


def test_records_older_than_the_deletes_that_a_table_remembers_are_refused(tmp_path: Path) -> None:
    """Their keys may have been deleted since, and nobody would know."""
    kept = Kept(tmp_path)
    (tmp_path / "orders.yaml").write_text(
        DOCUMENT.format(lake=tmp_path).replace(
            f"json: {{path: {tmp_path}/json}}",
            f"hudi: {{path: {tmp_path}/json, recordKey: [order_id], orderingField: order_id, deleteWhen: 'true', "
            "cleaning: {retainHours: 24}}",
        )
    )
    kept.batch(0, [(b"{", "not JSON")])
    refused = kept.try_to("replay")
    assert refused.exit_code == 3
    assert "arrived at 2026-01-31 12:00:00 UTC, and the table remembers deletes for 1 h" in refused.stderr
    assert "--despite-deletes" in refused.stderr
    assert "replay 1: 1 records" in kept.ask("replay", "--despite-deletes").stdout


def test_files_that_are_gone_are_passed_over_and_damaged_ones_named(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    first, second, _ = sorted((kept.lake / "checkpoint" / "json" / "quarantine").iterdir())
    first.unlink()
    shown = kept.ask("show", "-o", "jsonl")
    assert [orjson.loads(line)["batch"] for line in shown.stdout.splitlines()] == [1, 1]
    assert f"1 files with 2 records are not there any more, and are passed over: {first.name} under " in caplog.text
    second.write_bytes(b"?" * second.stat().st_size)
    for command in ("list", "show"):
        refused = kept.try_to(command)
        assert refused.exit_code == 3
        assert f"{second.name} under {second.parent} is no file of the quarantine any more: " in refused.stderr


def test_one_that_was_cut_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of large ones only a part is asked for, which is not there then: no store that does not answer."""
    monkeypatch.setattr("lakestream.quarantined.records._AS_A_WHOLE", 100)
    monkeypatch.setattr("lakestream.rejected._FOOTER", 100)
    kept = Kept(tmp_path)
    kept.batch(0, [(b"{", "not JSON")])
    (path,) = (tmp_path / "checkpoint" / "json" / "quarantine").iterdir()
    path.write_bytes(b"")
    for command in ("list", "show", "replay"):
        refused = kept.try_to(command)
        assert refused.exit_code == 3
        assert f"{path.name} under {path.parent}: somebody has cut it" in refused.stderr


def test_one_that_lacks_a_bit_is_read_or_named(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b"{", f"not JSON, but {number}") for number in range(50)])
    (path,) = (tmp_path / "checkpoint" / "json" / "quarantine").iterdir()
    place = StoreSettings(LakePath.parse(str(path.parent)), S3Settings("eu-west-1"))
    whole, refused = path.read_bytes(), 0
    batch = BatchFiles(0, EPOCH_TIME, (), (FileEntry(path.name, 50, len(whole), ""),))
    for content in damaged(whole):
        path.write_bytes(content)
        try:
            tally(read_records(place, [batch]))
        except UnreadableError as error:
            refused += f"{path.name} under" in str(error)
    assert refused > 50
    for content in damaged_at_the_end(whole):
        path.write_bytes(content)
        with pytest.raises(RequestError, match=f"{path.name} under"):
            _look_at(place, batch.rejects)


def test_one_without_statistics_is_named(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b"{", "not JSON")])
    (path,) = (tmp_path / "checkpoint" / "json" / "quarantine").iterdir()
    pq.write_table(pq.read_table(path), path, write_statistics=False)
    refused = kept.try_to("replay")
    assert refused.exit_code == 3, refused.stderr
    assert f"{path.name} under" in refused.stderr


def test_of_a_reason_that_no_record_has_those_that_are_there_are_told(kept: Kept) -> None:
    shown = kept.ask("show", "--reason", "no such")
    assert "no reason begins with 'no such'; there are: 'not JSON', 'missing: order_id', 'not UTF-8'" in shown.stderr
    assert "there are" not in kept.ask("show", "--reason", "no such", "--limit", "0").stderr


def test_the_document_may_come_from_the_standard_input(kept: Kept) -> None:
    """As in `kubectl exec -i … -f - < lakestream.yaml`: the pod's own is that of before an edit."""
    text = (kept.lake / "orders.yaml").read_text("utf-8")
    for command, said in (
        (["quarantine", "list"], "missing: order_id"),
        (["quarantine", "replay"], "if none runs: lakestream ingest -f lakestream.yaml --writer json\n"),
        (["backfill", "status"], "replay 1 has come to part 0 of 2"),
        (["table"], "JSON files, of 0 committed batches"),
        (["files", "--quarantine"], "b000000000000-00000-5e0c11aa.parquet"),
    ):
        done = CliRunner().invoke(app, [*command, "-f", "-", "--writer", "json"], input=text)
        assert done.exit_code == 0, done.stderr
        assert said in done.stdout
    refused = CliRunner().invoke(app, ["quarantine", "list", "-f", "-", "--writer", "json"], input="kind: Namespace")
    assert refused.exit_code == 2
    refused = CliRunner().invoke(app, ["quarantine", "list", "-f", f"{kept.lake}/none.yaml", "--writer", "json"])
    assert refused.exit_code == 2
    assert "none.yaml cannot be read as text" in refused.stderr
    # A driver that begins anew reads its document once more.
    refused = CliRunner().invoke(app, ["ingest", "-f", "-", "--writer", "json"], input=text)
    assert refused.exit_code == 2
    assert "'-' does not exist" in refused.stderr


def test_what_is_taken_for_a_path_is_named(kept: Kept) -> None:
    refused = kept.try_to("show", "999")
    assert refused.exit_code == 2
    assert f"two tables: '999' is taken for the path of one, and -f {kept.lake}/orders.yaml names another" in (
        refused.stderr
    )


def test_a_terminal_is_sent_no_control_characters(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    kept.batch(0, [(b"\x1b[2J\x07{", "no \x1b]0;title"), ("\u202etxt".encode(), "not JSON")])
    for command in ("list", "show"):
        told = kept.ask(command).stdout
        assert all(line.isprintable() for line in told.splitlines())
        assert "no \\x1b]0;title" in told
    assert "\\x1b[2J\\x07{" in kept.ask("show").stdout
