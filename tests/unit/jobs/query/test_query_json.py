"""`lakestream query` of JSON files: rows of committed batches, with the types that the schema declares."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from uuid import UUID

import orjson
import pyarrow as pa
import pytest
from typer.testing import CliRunner, Result

from lakestream.main import app
from lakestream.model import BatchCommit, Definition, FileEntry, SinkCommit
from lakestream.query.errors import UnreadableError
from lakestream.query.json_duckdb import _require_room
from lakestream.query.json_log import CommittedFile
from lakestream.sinks.hive_paths import partition_path
from lakestream.sinks.owner import Owner, TableClaim
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import EPOCH_TIME, log_at, plan_of

SCHEMA = (
    "order_id string, version long, amount decimal(12,2), at timestamp, counts map<string,int>, "
    "items array<struct<sku:string,n:int>>"
)
TRANSFORM = "SELECT *, date_format(at, 'yyyy-MM-dd') AS dt, version * 2 AS twice FROM events"
DOCUMENT = """
apiVersion: lakestream.dev/v1alpha1
kind: LakeStream
metadata: {{name: orders}}
spec:
  source: {{kinesis: {{stream: orders, region: eu-west-1}}}}
  schema: order_id string
  writers:
    - name: json
      json: {{path: {lake}/orders}}
    - name: hudi
      hudi: {{path: {lake}/none, recordKey: [order_id], orderingField: order_id}}
  checkpoint: {lake}/checkpoint
"""


def line(key: str, version: int, **more: object) -> bytes:
    return orjson.dumps({"order_id": key, "version": version, "twice": 2 * version, **more}) + b"\n"


class Table:
    """JSON files and their log, without a driver."""

    def __init__(self, folder: Path, schema: str = SCHEMA, transform: str | None = TRANSFORM) -> None:
        self.folder = folder / "orders"
        self.definition = Definition(schema, transform, None)
        (folder / "orders.yaml").write_text(DOCUMENT.format(lake=folder))
        s3 = S3Settings("eu-west-1")
        checkpoint = folder / "checkpoint" / "json"
        self.log = log_at(checkpoint, keep=2)
        table = StoreSettings(LakePath.parse(str(self.folder)), s3)
        owner = Owner(UUID(int=1), str(checkpoint), "orders", "json")
        TableClaim(table, table / "_lakestream", owner).take(wrote=False)

    def write(self, batch: int, lines: Iterable[bytes], day: str | None = "2026-01-31", *, commit: bool = True) -> None:
        plan = replace(plan_of(batch, self.log.epoch), definition=self.definition)
        self.log.put_plan(plan)
        partition = partition_path(["dt"], [day])
        path = self.folder / partition / f"b{batch:012d}-00000-5e0c11aa.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        # As the sink does: a member for each of Spark's batches.
        path.write_bytes(b"".join(gzip.compress(one) for one in lines))
        if commit:
            name = str(path.relative_to(self.folder))
            sink = SinkCommit(1, 1, (FileEntry(name, 1, path.stat().st_size, partition),))
            self.log.put_commit(BatchCommit.of(plan, epoch=self.log.epoch, committed_at=plan.planned_at, sink=sink))
            self.log.expire()


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Five batches are committed, two of them in manifests; a sixth has written its file and is not."""
    table = Table(tmp_path)
    at = "2026-01-31T12:00:00.123456Z"
    table.write(0, [line("a", 1, amount=1.10, at=at), line("b", 1, counts={"x": 1})])
    table.write(1, [line("a", 2, items=[{"sku": "s", "n": 1}, {"sku": "t"}])], "a/b c")
    table.write(2, [line("c", 1)], None)
    table.write(3, [line("d", 1)])
    table.write(4, [line("e", 1)])
    table.write(5, [line("f", 1)], commit=False)
    return table


def ask(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["query", *arguments])


def rows_of(*arguments: str) -> list[dict[str, object]]:
    done = ask(*arguments, "-o", "jsonl")
    assert done.exit_code == 0, done.stderr
    return [orjson.loads(text) for text in done.stdout.splitlines()]


def keys_of(table: Table, *arguments: str) -> str:
    return "".join(sorted(str(row["order_id"]) for row in rows_of(str(table.folder), *arguments)))


@pytest.mark.parametrize("command", [["query"], ["quarantine", "show"]], ids=" ".join)
def test_a_closed_stdout_is_told(table: Table, command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As Python has it with `>&-`."""
    monkeypatch.setattr("lakestream.query.form.sys", SimpleNamespace(stdout=None))
    done = CliRunner().invoke(app, [*command, str(table.folder)])
    assert done.exit_code == 2
    assert "stdout is closed" in done.stderr


def test_what_an_error_quotes_of_a_record_does_nothing_to_a_terminal(table: Table) -> None:
    sql = "SELECT (E'\\x1b[31m' || order_id)::int FROM lake"
    done = CliRunner().invoke(app, ["query", str(table.folder), "--sql", sql], color=True)
    assert done.exit_code == 2
    assert "Could not convert string '\\x1b[31m" in done.stderr


def test_rows_of_committed_batches_with_their_types_and_partitions(table: Table) -> None:
    done = ask(str(table.folder), "-o", "arrow")
    rows = pa.ipc.open_stream(done.stdout_bytes).read_all()
    assert dict(zip(rows.schema.names, map(str, rows.schema.types), strict=True)) == {
        "order_id": "string",
        "version": "int64",
        "amount": "decimal128(12, 2)",
        "at": "timestamp[us, tz=UTC]",
        "counts": "map<string, int32>",
        "items": "list<l: struct<sku: string, n: int32>>",
        "twice": "int64",
        **dict.fromkeys(("_rescued", "_shard_id", "_sequence_number", "_partition_key"), "string"),
        "_sub_sequence": "int64",
        "_arrival": "timestamp[us, tz=UTC]",
        "dt": "string",
    }
    found = {(row["order_id"], row["version"]): row for row in rows.to_pylist()}
    assert {(key, row["dt"]) for (key, _), row in found.items()} == {
        *((key, "2026-01-31") for key in "abde"),
        ("a", "a/b c"),
        ("c", None),
    }
    assert str(found["a", 1]["amount"]) == "1.10"
    assert found["a", 2]["items"] == [{"sku": "s", "n": 1}, {"sku": "t", "n": None}]
    assert "6 rows of orders (JSON files), as of batch 4 (2026-01-31 12:00:04 UTC" in done.stderr
    assert "by DuckDB" in done.stderr


def test_the_table_as_it_was_and_what_came_since(table: Table) -> None:
    assert keys_of(table, "--at", "batch 1") == "aab"
    assert keys_of(table, "--at", "2026-01-31T12:00:02.9Z") == "aabc"
    assert keys_of(table, "--since", "batch 2") == "de"
    assert keys_of(table, "--since", "2026-01-31T12:00Z", "--until", "batch 2") == "ac"
    assert keys_of(table, "--since", "2026-01-30") == "aabcde"
    assert keys_of(table, "--since", "batch 4", "--sql", "SELECT order_id, twice, dt FROM lake") == ""
    assert len(keys_of(table, "--limit", "2")) == 2


def test_the_first_rows_are_those_of_the_first_files(tmp_path: Path) -> None:
    table = Table(tmp_path, transform=None)
    for batch in range(4):
        table.write(batch, [line(f"k{batch}", 1)])
    for path in sorted(table.folder.rglob("*.json.gz"))[2:]:
        path.unlink()  # nobody looks at it
    for limit, files in (("0", 1), ("1", 1), ("2", 2)):
        done = ask(str(table.folder), "--limit", limit, "-o", "csv")
        assert done.exit_code == 0, done.stderr
        assert done.stdout.splitlines()[0].startswith("order_id,version,amount,")
        assert done.stdout.count("\n") == 1 + int(limit)
        assert f", {files} of 4 files, by DuckDB" in done.stderr
    for arguments in (["--limit", "3"], ["-o", "csv"], ["--limit", "1", "--sql", "FROM lake"]):
        assert "is gone, which a committed batch has written" in ask(str(table.folder), *arguments).stderr


def test_types_that_are_inferred_are_those_of_all_lines(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string", "SELECT *, version AS v FROM events")
    table.write(0, [line("a", 1, v=1)])
    table.write(1, [line("b", 1, v=1.5)])
    (row,) = rows_of(str(table.folder), "--limit", "1", "--since", "2026-01-30")
    assert isinstance(row["v"], float)


def test_what_takes_long_to_fetch_is_told_and_what_has_no_room_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    place = StoreSettings(LakePath.parse("s3a://lake/orders"), S3Settings("eu-west-1"))
    files = [CommittedFile(batch, EPOCH_TIME, FileEntry(f"b{batch}", 1, 3 << 30, "")) for batch in range(2)]
    monkeypatch.setattr("lakestream.query.json_duckdb.shutil.disk_usage", lambda folder: SimpleNamespace(free=7 << 30))
    _require_room(place, files[:0], str(tmp_path))
    assert caplog.messages == []
    _require_room(place, files, str(tmp_path))
    (told,) = caplog.messages
    assert told.startswith(
        "2 files of s3a://lake/orders with 6.0 GiB are to be fetched first; --since and --at ask for"
    )
    with pytest.raises(UnreadableError, match=f"and {tmp_path} has 7.0 GiB left: --since and --at"):
        _require_room(place, [*files, *files], str(tmp_path))


def test_sql_knows_which_batch_a_row_came_with(table: Table) -> None:
    newest = "max_by(version, _batch) AS version, max(_committed_at) AS seen"
    sql = f"SELECT order_id, {newest} FROM lake GROUP BY 1 ORDER BY 1"
    first = rows_of(str(table.folder), "--sql", sql)[0]
    assert first == {"order_id": "a", "version": 2, "seen": "2026-01-31T12:00:01Z"}


def test_by_document_the_same(table: Table, tmp_path: Path) -> None:
    arguments = ("-f", str(tmp_path / "orders.yaml"), "--writer", "json", "--sql", "SELECT count(*) AS n FROM lake")
    assert rows_of(*arguments) == [{"n": 6}]


@pytest.mark.parametrize(
    "transform",
    [None, "SELECT * FROM events WHERE version > 0", "SELECT upper(order_id) AS order_id, version, at FROM events"],
)
def test_whatever_the_transform_no_column_and_no_row_is_lost(tmp_path: Path, transform: str | None) -> None:
    table = Table(tmp_path, "order_id string, version long, at timestamp", transform)
    table.write(0, [line("a", 1, at="2026-01-31T12:00:00.123456Z"), line("b", 2)])
    rows = sorted(rows_of(str(table.folder)), key=lambda row: str(row["order_id"]))
    assert [(row["order_id"], row["version"], row["dt"]) for row in rows] == [
        ("a", 1, "2026-01-31"),
        ("b", 2, "2026-01-31"),
    ]
    # Not declared, where the transform may have made it: then it is the text of the line.
    assert rows[0]["at"] == "2026-01-31T12:00:00.123456Z"


def test_a_schema_with_a_type_that_is_not_known_here_hides_no_column(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string, version long, gap interval day to second", None)
    table.write(0, [line("a", 1, gap="INTERVAL '1 00:00:00' DAY TO SECOND")])
    (row,) = rows_of(str(table.folder))
    assert (row["order_id"], row["version"], row["gap"]) == ("a", 1, "INTERVAL '1 00:00:00' DAY TO SECOND")


@pytest.mark.parametrize("transform", [None, "SELECT *, 1 AS one FROM events"])
def test_a_column_of_the_table_is_not_hidden_by_one_that_the_log_adds(tmp_path: Path, transform: str | None) -> None:
    table = Table(tmp_path, "order_id string, _Batch string", transform)
    table.write(0, [line("a", 1, _Batch="mine")])
    (row,) = rows_of(str(table.folder))
    assert row["_Batch"] == "mine"
    (row,) = rows_of(str(table.folder), "--sql", "SELECT _batch, _committed_at FROM lake")
    assert row == {"_Batch": "mine", "_committed_at": "2026-01-31T12:00:00Z"}


def test_decimals_that_duckdb_would_round_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string, cents decimal(18,2)")
    table.write(0, [line("a", 1)])
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert "column cents of orders (JSON files) has decimals of more than 15 digits" in done.stderr


def test_a_line_that_is_none_is_told_with_its_file(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.write(0, [line("a", 1), b'{"order_id": 1, "version": "many"}\n'])
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert "b000000000000-00000-5e0c11aa.json.gz" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{lake}/orders", "--at", "batch 9"],
         "--at 9: no batch of the table has that name; the table can be read as of 5 batches"),
        (["{lake}/orders", "--at", "2026-01-30"], "is before what is known of the table"),
        (["{lake}/orders", "--read-optimized"], "--read-optimized: JSON files have no log files"),
        (["{lake}/orders", "--changes", "--since", "batch 1"], "--changes: JSON files only gain rows"),
        (["{lake}/orders", "--engine", "spark"], "JSON files are read without Spark"),
        (["{lake}/orders", "--cluster"], "JSON files are read without Spark"),
        (["{lake}/orders", "--cluster", "--engine", "native"], "--cluster has Spark answer: leave --engine native out"),
        (["{lake}/orders", "--to", "{lake}/answer"], "--to is written by Spark: add --engine spark (or --cluster)"),
        (["{lake}/orders", "--to", "{lake}/answer", "--cluster", "-o", "csv"], "--to writes Parquet: leave -o csv out"),
        (["{lake}/orders", "--to", "{lake}/answer", "--cluster"], "with --cluster each pod would have a folder of its"),
        (["{lake}/orders", "--to", "{lake}", "--engine", "spark"], "--to: {lake} is not empty ("),
        (["{lake}/orders", "--to", "{lake}/orders", "--engine", "spark"], "--to {lake}/orders: that is in the table"),
        (["{lake}/orders", "--to", "s3://b/answer", "--engine", "spark"], "set AWS_REGION"),
        (["{lake}/orders", "--sql", "SELECT x FROM lake"], "The columns of lake: order_id, version, amount, at,"),
        (["{lake}/orders", "--writer", "json"], "--writer goes with -f"),
        (["{lake}/missing"], "there is no folder {lake}/missing; {lake} has checkpoint, orders, orders.yaml"),
        (["{lake}/orders.yaml"], "{lake}/orders.yaml is a file: give the folder of the table"),
        (["{lake}/orders.yaml/x"], "there is no folder {lake}/orders.yaml/x; {lake} has checkpoint, orders"),
        (["{lake}/" + "x" * 300], "x cannot be looked at: File name too long"),
        (["{lake}"], "--writer NAME; {lake} has checkpoint, orders, orders.yaml"),
        (["{lake}/orders", "--limit", "2147483648"], "Invalid value for '--limit'"),
        (["{lake}/orders", "-f", "{lake}/orders.yaml"], "'{lake}/orders' is taken for the path of one, and"),
        (["{lake}/checkpoint"], "{lake}/checkpoint has neither a Hudi table"),
        (["-f", "{lake}/orders.yaml"], "which table? Give --writer, one of: json, hudi"),
        (["-f", "{lake}/orders.yaml", "--writer", "hudy"], "there is no writer 'hudy'; choose one of: json, hudi"),
        (["-f", "{lake}/orders.yaml", "--writer", "hudi"], "there is no folder {lake}/none"),
        (["s3://bucket/orders"], "set AWS_REGION"),
        ([], "give the path of a table, or a document"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_told(
    table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    done = ask(*(argument.format(lake=tmp_path) for argument in arguments))
    assert done.exit_code == 2
    assert says.format(lake=tmp_path) in done.stderr
    assert done.stdout == ""
    assert not (tmp_path / "missing").exists()


def test_a_path_that_is_no_text_is_told(table: Table) -> None:
    done = ask(f"{table.folder}/\udcff")
    assert done.exit_code == 3
    assert "/\\udcff' is no path: it is not UTF-8" in done.stderr


def test_a_table_whose_checkpoint_is_elsewhere_is_told_so(table: Table, tmp_path: Path) -> None:
    """As of a copy, on another machine: its files alone do not say which of them count."""
    (tmp_path / "checkpoint").rename(tmp_path / "moved")
    done = ask(str(table.folder))
    assert done.exit_code == 2
    assert f"which files at {table.folder} count is in its writer's checkpoint, and that is not where" in done.stderr
    assert not (tmp_path / "checkpoint").exists(), "to look for it makes no folder"


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "my [old] #1 'orders' %41 * {a,b}"
    folder.mkdir()
    table = Table(folder)
    table.write(0, [line("a", 1), line("b", 1)])
    assert keys_of(table) == "ab"


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bigint", b"1.7"),
        ("bigint", b"1e300"),
        ("tinyint", b"200"),
        ("int", b'"05"'),
        ("decimal(10,2)", b"123.456"),
        ("decimal(4,2)", b"123.45"),
        ("date", b'"2026-01-31T12:00:00.000Z"'),
        ("boolean", b"2"),
        ("double", b"true"),
        ("float", b"false"),
        ("decimal(4,2)", b"true"),
        ("double", b'"1_0"'),
        ("struct<d:double,n:int>", b'{"d":true,"n":1}'),
        ("array<float>", b"[null,1.5,true]"),
        ("map<string,array<decimal(4,2)>>", b'{"a":[1.5,false]}'),
        # It was a decimal, of whose digits DuckDB would drop some.
        ("string", b"5.50"),
        ("string", b"12345678901234567890.12"),
        ("string", b'{"x":12345678901234567890.12}'),
        ("string", b'["a:1",-1e-3]'),
        ("array<string>", b'[{"s":"a","x":[1.10]}]'),
        ("struct<x:string>", b'{"x":1.10}'),
        ("array<string>", b'["a",-1e3]'),
        ("map<string,string>", b'{"a":null,"b":1.10}'),
        (
            "struct<n:int,m:array<struct<`a \"' VARCHAR`:map<int,array<string>>>>>",
            b'{"n":1,"m":[null,{"a \\"\' VARCHAR":{"1":["a",1.10]}}]}',
        ),
        ("array<int>", b"[1,2.5]"),
        ("map<string,decimal(3,1)>", b'{"a":1.25}'),
        ("struct<`int`:date,n:array<struct<i:int>>>", b'{"int":"2026-01-31","n":[{"i":1},{"i":"many"}]}'),
    ],
)
def test_what_the_schema_holds_no_more_is_refused_and_not_altered(tmp_path: Path, kind: str, value: bytes) -> None:
    table = Table(tmp_path, f"order_id string, x {kind}", None)
    table.write(0, [b'{"order_id":"a","x":%b}\n' % value])
    table.write(1, [line("b", 1)])
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert "dt=2026-01-31/b000000000000-00000-5e0c11aa.json.gz: column x" in done.stderr
    assert " by the schema as it is now, which does not hold what was written (" in done.stderr
    assert "name other columns in --sql, or ask for later batches by --since): " in done.stderr
    assert keys_of(table, "--sql", "SELECT order_id FROM lake") == "ab"
    assert keys_of(table, "--since", "batch 0") == "b"


@pytest.mark.parametrize(("kind", "value"), [("bigint", 1.7), ("string", 5.5), ("timestamp", [1]), ("double", "many")])
def test_rows_are_counted_whatever_their_first_column_holds_no_more(tmp_path: Path, kind: str, value: object) -> None:
    """No query but one that names it is refused."""
    table = Table(tmp_path, f"x {kind}, _batch string, _committed_at string", None)
    table.write(0, [b"", line("a", 1, x=value)], None)
    assert rows_of(str(table.folder), "--sql", "SELECT count(*) AS n FROM lake") == [{"n": 1}]
    assert ask(str(table.folder), "--sql", "SELECT x FROM lake").exit_code == 3


def test_a_refusal_names_the_text_within_a_value(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string, x struct<m:map<string,array<struct<s:string>>>,n:int>", None)
    table.write(0, [b'{"order_id":"a","x":{"m":{"k":[{"s":"a"},{"s":1.10}]},"n":1}}\n'])
    assert "column x.m[][].s is VARCHAR by the schema as it is now" in ask(str(table.folder)).stderr


def test_what_the_schema_holds_is_as_it_was_written(tmp_path: Path) -> None:
    values = {
        "b": ("bigint", -(2**63)),
        "t": ("tinyint", 127),
        "c": ("decimal(15,4)", -12345678901.2345),
        "d": ("date", "0001-01-01"),
        "o": ("boolean", False),
        "a": ("array<int>", [1, None]),
        "m": ("map<int,decimal(3,1)>", {"1": 1.5}),
        "s": ("struct<d:array<date>,n:bigint>", {"d": ["2026-01-31"], "n": 2**63 - 1}),
        "z": ("struct<n:int>", None),
        "f": ("float", 0.25),
        "v": ("double", "1.5"),
        "dx": ("array<double>", [1.5, None, 0]),
        "dk": ("map<double,map<decimal(3,1),float>>", {"1.5": {"2.5": 0.25}}),
        "ds": ("struct<d:double,n:decimal(3,1)>", {"d": None, "n": 1.5}),
        # As a wider type than it was written with.
        "w": ("double", 1),
        "i": ("bigint", "5"),
        "l": ("string", 2**64 - 1),
        "y": ("string", True),
        "q": ("string", '"5.50", é \U0001f600\\'),
        "e": ("string", ""),
        "u": ("string", None),
        "sx": ("struct<x:string,n:int,d:double>", {"x": '1.10 "\\', "n": 1, "d": 1.5}),
        "sn": ("struct<x:string>", None),
        "se": ("struct<x:struct<y:string>>", {"x": None}),
        "ax": ("array<string>", ["null", None, "1.10", "[1.10]"]),
        "ad": ("array<array<struct<x:string,d:decimal(3,1)>>>", [[{"x": "é", "d": 1.5}, None], [], None]),
        "ae": ("array<string>", None),
        "mx": ("map<string,string>", {"1.10": "1.10", "b": None}),
        "me": ("map<string,struct<x:array<string>>>", {"VARCHAR": {"x": ["a"]}}),
        "mn": ("map<int,string>", None),
        "kx": ("struct<`a \"' VARCHAR`:string,`int`:int>", {"a \"' VARCHAR": "b", "int": 1}),
    }
    table = Table(
        tmp_path, f"order_id string, {', '.join(f'{name} {kind}' for name, (kind, _) in values.items())}", None
    )
    written = {name: value for name, (_, value) in values.items()}
    table.write(0, [line("a", 1, **written)])
    (row,) = rows_of(str(table.folder), "--sql", f"SELECT {', '.join(written)} FROM lake")
    assert row == {**written, "i": 5, "v": 1.5, "l": str(2**64 - 1), "y": "true"}


def test_what_is_no_text_is_one_in_a_value_that_is_declared_so(tmp_path: Path) -> None:
    """As of a field that was a number, or an object; a fraction alone has lost digits."""
    table = Table(tmp_path, "order_id string, s struct<x:string>, a array<string>, m map<string,string>", None)
    values = [b"5", b"-18446744073709551616", b"true", b"null", b'"null"', b"[1]", b'{"k":"1.5"}']
    table.write(0, [b'{"order_id":"a","s":{"x":%b},"a":[%b],"m":{"k":%b}}\n' % (one, one, one) for one in values])
    texts = ["5", "-18446744073709551616", "true", None, "null", "[1]", '{"k":"1.5"}']
    rows = rows_of(str(table.folder), "--sql", "SELECT s, a, m FROM lake")
    assert rows == [{"s": {"x": one}, "a": [one], "m": {"k": one}} for one in texts]


def test_partitions_that_the_schema_holds_no_more_are_refused(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string, dt int", None)
    table.write(0, [line("a", 1)], "7")
    assert rows_of(str(table.folder), "--sql", "SELECT dt FROM lake") == [{"dt": 7}]
    table.write(1, [line("b", 1)], "1.7")
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert "column dt is INTEGER by the schema as it is now" in done.stderr


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2**63 - 1, "BIGINT"),
        (2**63, "DECIMAL(38,0)"),
        (2**64, "DECIMAL(38,0)"),
        (1_769_860_800_000_000_000, "BIGINT"),
        (-(2**63) - 1, "DECIMAL(38,0)"),
        (-(10**38) + 1, "DECIMAL(38,0)"),
        ({"n": 2**64, "m": [2**63]}, "STRUCT(n DECIMAL(38,0), m DECIMAL(38,0)[])"),
        ([10**18, -1], "BIGINT[]"),
        (
            {"t": 1_769_860_800_000_000_000, "p": 1.5, "s": "[18446744073709551616]"},
            "STRUCT(t BIGINT, p DOUBLE, s VARCHAR)",
        ),
        (-1, "BIGINT"),
        (1.5, "DOUBLE"),
    ],
)
def test_numbers_that_a_transform_makes_keep_their_digits(tmp_path: Path, value: object, kind: str) -> None:
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS n FROM events")
    written = json.dumps({"order_id": "a", "n": value}, separators=(",", ":")).encode()
    null = b'{"order_id":"b","n":null}\n{"order_id":"c"}\n'
    less = b'{"order_id":"d","n":1}\n' if isinstance(value, int) else b""
    table.write(0, [written + b"\n" + null + less])
    sql = "SELECT n, typeof(n) AS kind FROM lake ORDER BY order_id"
    done = ask(str(table.folder), "-o", "jsonl", "--sql", sql)
    assert done.exit_code == 0, done.stderr
    rows = [json.loads(text) for text in done.stdout.splitlines()]
    assert rows[0] == {"n": value, "kind": kind}
    assert [row["n"] for row in rows[1:]] == [None, None, *([1] if less else [])]


@pytest.mark.parametrize(
    "values",
    [("9007199254740993", "1.5"), ("18446744073709551616", "1e-3"), ('{"n":18446744073709551616}', '{"n":1.5}')],
)
def test_numbers_that_no_type_holds_together_are_refused(tmp_path: Path, values: Iterable[str]) -> None:
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS n FROM events")
    table.write(0, [b'{"order_id":"a","n":%b}\n' % value.encode() for value in values])
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert "column n of orders (JSON files) has whole numbers with more digits than a double keeps" in done.stderr
    assert keys_of(table, "--sql", "SELECT order_id FROM lake") == "aa"


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        (b"12345678901234567890.12", False),
        (b"-123456789012345678.5", False),
        (b"0.1234567890123456789", False),
        (b"0.00000000123456789012345678", False),
        (b"123456789012345678.00", False),
        # As Spark writes decimals, and doubles.
        (b"1.500000000000000000", True),
        (b"1200000000000000000000.00", True),
        (b"0.30000000000000004", True),
        (b"1.2345678901234567E300", True),
        (b"0.000000000000000000000001", True),
    ],
)
def test_decimals_that_a_transform_makes_are_not_rounded(tmp_path: Path, value: bytes, is_read: bool) -> None:
    table = Table(tmp_path, "order_id string, x decimal(38,18)", 'SELECT order_id, x AS `a ".*` FROM events')
    table.write(0, [b'{"order_id":"a","a \\".*":%b}\n' % value, b'{"order_id":"\\"a \\\\\\".*\\":1","a \\".*":1.5}\n'])
    done = ask(str(table.folder), "-o", "jsonl", "--sql", 'SELECT "a "".*" AS x FROM lake WHERE order_id = \'a\'')
    if is_read:
        assert orjson.loads(done.stdout) == {"x": float(value)}
    else:
        assert done.exit_code == 3
        assert 'column a ".* of orders (JSON files) has fractions with more digits than a double keeps' in done.stderr
        assert keys_of(table, "--sql", "SELECT order_id FROM lake WHERE length(order_id) = 1") == "a"


@pytest.mark.parametrize(
    "value",
    [
        b'{"price":0.123456789012345678}',
        b"[1, -12345678901234567890.12]",
        b'[{"price": 1.5}, {"price": 0.123456789012345678}]',
        b'{"x":[{"y":[[1.5],[0.123456789012345678000]]}]}',
        # A map, which is text since its keys are one to SQL, and a field of several kinds.
        b'{"A":12345678901234567890.12,"a":1.00}',
        b'{"":{"x":12345678901234567890.12}}',
        b'[true,"x",12345678901234567890.12]',
    ],
)
def test_decimals_within_what_a_transform_makes_are_not_rounded(tmp_path: Path, value: bytes) -> None:
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS `a/~1` FROM events")
    short = b'{"order_id":"b","a/~1":{"s":":1.2345678901234567890123,","n":[1.5]},"z":1.2345678901234567890123}\n'
    table.write(0, [short])
    table.write(1, [b'{"order_id":"a","a/~1":%b}\n' % value])
    sql = 'SELECT "a/~1" AS x FROM lake'
    done = ask(str(table.folder), "--sql", sql)
    assert done.exit_code == 3
    assert "column a/~1 of orders (JSON files) has fractions with more digits than a double keeps" in done.stderr
    assert keys_of(table, "--sql", "SELECT order_id FROM lake") == "ab"
    only = rows_of(str(table.folder), "--at", "batch 0", "--sql", sql)
    assert only == [{"x": {"s": ":1.2345678901234567890123,", "n": [1.5]}}]


def test_columns_are_in_the_order_of_the_newest_lines(tmp_path: Path) -> None:
    """And not in that in which DuckDB's threads were done, another one with each query."""
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS x FROM events")
    table.write(0, [b'{"z":1,"b":1,"y":1}\n'])
    table.write(1, [b'{"y":2,"a":2}\n'])
    assert ask(str(table.folder), "-o", "csv").stdout.splitlines()[0] == "y,a,b,z,dt"


def test_a_text_is_one_also_beside_numbers(tmp_path: Path) -> None:
    """As after an edit of the transform: it was JSON with its quotes, which no text is equal to."""
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS x FROM events")
    values = [b"5", b'"5"', b'"a\\"b"', b"true", b"null", b'{"k":"v"}', b"123456789012345678901234567890"]
    table.write(0, [b'{"order_id":"%d","x":%b}\n' % one for one in enumerate(values)])
    rows = rows_of(str(table.folder), "--sql", "SELECT x FROM lake ORDER BY order_id")
    assert [row["x"] for row in rows] == ["5", "5", 'a"b', "true", None, '{"k":"v"}', values[-1].decode()]
    assert keys_of(table, "--sql", "SELECT order_id FROM lake WHERE x = '5'") == "01"


def test_a_text_is_one_also_beside_numbers_within_a_value(tmp_path: Path) -> None:
    """As of a field that has become one: it had quotes and escapes, and was equal to no text."""
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS s FROM events")
    values = [
        b"5",
        b'"5"',
        b'"a\\"b"',
        b"true",
        b"null",
        b'"null"',
        b"1.10",
        b"[1]",
        b'{"k":"v"}',
        b"1234567890123456789012",
    ]
    lines = [
        b'{"order_id":"%d","s":{"x":%b,"n":1},"a":[%b],"d":[{"x":{"y":%b}}]}\n' % (number, one, one, one)
        for number, one in enumerate(values)
    ]
    table.write(0, lines)
    texts = ["5", "5", 'a"b', "true", None, "null", "1.1", "[1]", '{"k":"v"}', values[-1].decode()]
    rows = rows_of(str(table.folder), "--sql", "SELECT s, a, d FROM lake ORDER BY order_id::int")
    assert rows == [{"s": {"x": one, "n": 1}, "a": [one], "d": [{"x": {"y": one}}]} for one in texts]
    assert keys_of(table, "--sql", "SELECT order_id FROM lake WHERE s.x = '5' OR a[1] = 'a\"b'") == "012"
    assert keys_of(table, "--sql", "SELECT order_id FROM lake WHERE d[1].x.y = '5' OR s.x IS NULL") == "014"


@pytest.mark.parametrize("late", [b'{"order_id":\n', b'{"version":1.7}\n'])
def test_a_late_line_is_told_as_an_early_one(tmp_path: Path, late: bytes) -> None:
    """Rows have gone on by then."""
    table = Table(tmp_path, "order_id string, version long", None)
    table.write(0, [line("a", 1) * 60_000, late])
    for more in (("-o", "jsonl"), ("--sql", "SELECT sum(version) FROM lake")):
        done = ask(str(table.folder), *more)
        assert done.exit_code == 3
        assert f"cannot read orders (JSON files) at {table.folder}: " in done.stderr
        assert "dt=2026-01-31/b000000000000-00000-5e0c11aa.json.gz" in done.stderr
        assert "TMPDIR" not in done.stderr


@pytest.mark.parametrize("transform", [None, "SELECT order_id, version FROM events"])
def test_a_folder_above_the_table_is_no_column(tmp_path: Path, transform: str | None) -> None:
    folder = tmp_path / "order_id=x" / "version=7"
    folder.mkdir(parents=True)
    table = Table(folder, "order_id string, version long", transform)
    table.write(0, [line("a", 1), line("b", 2)])
    rows = rows_of(str(table.folder), "--sql", "SELECT order_id, version, dt FROM lake ORDER BY 1")
    assert [list(row.values()) for row in rows] == [["a", 1, "2026-01-31"], ["b", 2, "2026-01-31"]]


@pytest.mark.parametrize("form", ["table", "csv", "jsonl", "parquet", "arrow"])
def test_an_error_at_a_late_row_leaves_no_half_answer(table: Table, form: str) -> None:
    done = ask(str(table.folder), "-o", form, "--sql", "SELECT CAST(i AS USMALLINT) AS n FROM range(99999) t(i)")
    assert done.exit_code == 2
    assert "--sql: Conversion Error" in done.stderr
    assert done.stdout_bytes == b""


def test_columns_of_one_name_are_all_there(table: Table) -> None:
    done = ask(str(table.folder), "-o", "jsonl", "--sql", "SELECT 1 AS a, 2 AS a")
    assert sorted(orjson.loads(done.stdout).values()) == [1, 2]


def test_times_that_python_has_not_are_written_too(table: Table) -> None:
    sql = "SELECT 'infinity'::TIMESTAMP AS a, '294246-12-31'::DATE AS b, TIMESTAMPTZ '0044-03-15 (BC) 12:00' AS c"
    for form in ("table", "csv", "jsonl"):
        done = ask(str(table.folder), "-o", form, "--sql", sql)
        assert done.exit_code == 0, done.stderr
        assert "294246" in done.stdout
        assert "-0043-03-15" in done.stdout


def test_a_table_without_a_committed_batch_is_told_so(tmp_path: Path) -> None:
    table = Table(tmp_path)
    table.write(0, [line("a", 1)], commit=False)
    for more in ([], ["--sql", "SELECT count(*) FROM lake"]):
        done = ask(str(table.folder), *more)
        assert done.exit_code == 2
        assert f"no batch with rows is committed yet in orders (JSON files) at {table.folder}" in done.stderr


def test_a_file_that_is_gone_is_named(table: Table) -> None:
    (gone,) = table.folder.glob("*/b000000000003-*")
    gone.unlink()
    done = ask(str(table.folder))
    assert done.exit_code == 3
    assert (
        f"{table.folder}: {gone.relative_to(table.folder)} is gone, which a committed batch has written" in done.stderr
    )
    assert keys_of(table, "--since", "batch 3") == "e"


def test_names_that_differ_by_case_alone_cost_no_other_column(tmp_path: Path) -> None:
    """As after an edit of the transform, and in a map, which its lines have as an object."""
    table = Table(tmp_path, "order_id string", "SELECT order_id, f(order_id) AS n FROM events")
    table.write(0, [b'{"order_id":"a","Version":1,"n":{"Accept":"x","accept":1.5}}\n'])
    table.write(1, [b'{"order_id":"b","version":2,"n":{"":2}}\n'])
    path = str(table.folder)
    assert rows_of(path, "--sql", "SELECT n FROM lake ORDER BY order_id") == [
        {"n": '{"Accept":"x","accept":1.5}'},
        {"n": '{"":2}'},
    ]
    done = ask(path, "--sql", "SELECT version FROM lake")
    assert done.exit_code == 3
    assert (
        "column version of orders (JSON files) is version and Version in the lines, which are one to SQL" in done.stderr
    )
    assert rows_of(path, "--since", "batch 0", "--sql", "SELECT version FROM lake") == [{"version": 2}]


def test_a_declared_column_is_not_that_of_another_case(tmp_path: Path) -> None:
    table = Table(tmp_path, "order_id string, version long")
    table.write(0, [b'{"order_id":"a","Version":1}\n'])
    table.write(1, [b'{"order_id":"b","version":2}\n'])
    found = rows_of(str(table.folder), "--sql", "SELECT version FROM lake ORDER BY order_id")
    assert found == [{"version": None}, {"version": 2}]
