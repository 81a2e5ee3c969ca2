"""The JSON sink and the quarantine, with real Spark on a folder."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from lakestream.errors import SettingsError
from lakestream.kinesis import KinesisSettings
from lakestream.model import Finding, Loss, ShardRange, at
from lakestream.output import SparkOutput
from lakestream.ports import Fetched
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.json_files import Compression, JsonSettings, JsonSink
from lakestream.sinks.leftovers import Leftovers
from lakestream.sinks.objects import object_name
from lakestream.sinks.owner import Owner
from lakestream.sinks.quarantine import Quarantine
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import plan_of

pytestmark = pytest.mark.spark

REF = BatchRef(batch=7, checkpoint="5e0c11aa-1111-4222-8333-444455556666")
CLAIM: Any = SimpleNamespace(owner=Owner(UUID(REF.checkpoint), "/checkpoint", "orders", "json"))
PLAN = plan_of(REF.batch, 1)
DDL = "id string, n long, at timestamp, amount double, dt string"
TASKS = [
    [
        b'{"id":"a","n":1,"at":"2026-01-31T12:00:00.000001Z","amount":1.5,"dt":"2026-01-31","new":true}',
        b'{"id":"b","n":2,"dt":"2026-02-01"}',
        b"{oops",
        b'{"id":"c","n":3,"dt":null}',
    ],
    [],
    [b'{"id":"d","n":4,"dt":"2026-02-01"}', b'{"id":"x\xff"}', b'{"n":"5"}'],
]


@dataclass(frozen=True)
class Lake:
    """A folder, and what is in it."""

    folder: Path

    @property
    def store(self) -> StoreSettings:
        return StoreSettings(LakePath.parse(str(self.folder)), S3Settings("eu-west-1"))

    def files(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }

    def leave_unfinished(self, ref: BatchRef) -> None:
        """As a kill does."""
        (self.folder / f"_lakestream/unfinished/{object_name(ref, 0, 'json')}-0123456789ab#1").write_text('{"order')

    def lines(self) -> list[dict[str, Any]]:
        texts = [_plain(path, content) for path, content in self.files().items()]
        return [orjson.loads(line) for text in texts for line in text.splitlines()]


def _plain(path: str, content: bytes) -> bytes:
    if path.endswith(".gz"):
        return gzip.decompress(content)
    if path.endswith(".zst"):
        with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
            return bytes(stream.read())
    return content


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


Fetch = Callable[..., Fetched[DataFrame]]


@pytest.fixture
def fetch(
    spark: SparkSession, kinesis: KinesisSettings, nowhere: StoreSettings, scripted: Callable[..., Any]
) -> Iterator[Fetch]:
    held: list[Fetched[DataFrame]] = []

    def fetch(sql: str | None = None, tasks: list[list[bytes]] = TASKS) -> Fetched[DataFrame]:
        plan, reader = scripted(tasks)
        held.append(SparkFetcher(spark, kinesis, Pipeline.of(spark, DDL, sql), nowhere, reader).fetch(plan))
        return held[-1]

    yield fetch
    for fetched in held:
        fetched.release()


def sink(
    lake: Lake,
    *partition_by: str,
    compression: Compression = Compression.NONE,
    committed: dict[int, frozenset[str]] | None = None,
) -> JsonSink:
    leftovers = None if committed is None else Leftovers(lake.store, REF.checkpoint, lambda: committed)
    return JsonSink(JsonSettings(lake.store, partition_by, compression), leftovers)


def test_what_is_fetched_is_counted_by_shard(fetch: Fetch) -> None:
    fetched = fetch()
    assert [(s.shard_id, s.records, s.bytes) for s in fetched.shards] == [
        ("shardId-000000000000", 4, sum(map(len, TASKS[0]))),
        ("shardId-000000000002", 3, sum(map(len, TASKS[2]))),
    ]
    assert [s.kinesis_records for s in fetched.shards] == [None, None], "there is no aggregate"
    assert (fetched.taken, fetched.rejected_count, fetched.rows.count()) == (7, 3, 4)
    assert (fetched.shards[0].last_arrival - fetched.shards[0].first_arrival).total_seconds() == 3
    assert fetched.arrivals[0] == fetched.shards[0].first_arrival
    assert fetched.arrivals[-1] == fetched.shards[0].last_arrival


def test_partitions_have_any_name(lake: Lake, fetch: Fetch) -> None:
    rows = fetch("SELECT id, n AS `a.b`, n + 1 AS `_line`, n + 2 AS `c``d` FROM events", [TASKS[2]]).rows
    commit = sink(lake, "a.b", "_line", "c`d").write(REF, rows, replay=False)
    assert [entry.path.rpartition("/")[0] for entry in commit.files] == ["a.b=4/_line=5/c`d=6"]
    assert lake.lines() == [{"id": "d"}]


def test_what_executors_found_is_known_also_of_ranges_that_are_read_again(
    spark: SparkSession, kinesis: KinesisSettings, nowhere: StoreSettings, scripted: Callable[..., Any], tmp_path: Path
) -> None:
    """The executors' memory is lost while the sink writes, and Kinesis has trimmed more by then."""
    plan, reader = scripted(TASKS)
    lost = tmp_path / "lost"
    lost.write_text("2")

    def finding(settings: KinesisSettings, ranges: Sequence[ShardRange]) -> Iterator[pa.RecordBatch | Finding]:
        yield from reader(settings, ranges)
        for piece in ranges:
            if piece.task == 0:
                loss = Loss(
                    piece.shard_id, piece.start, at(int(lost.read_text())), piece.first_arrival, piece.end_arrival
                )
                yield Finding(piece.shard_id, (loss,))

    fetcher = SparkFetcher(spark, kinesis, Pipeline.of(spark, DDL, None), nowhere, finding)
    fetched = fetcher.fetch(plan)
    (found,) = fetched.findings()
    assert (found.shard_id, [loss.end for loss in found.losses]) == ("shardId-000000000000", [at(2)])
    lost.write_text("3")
    fetched.rows.count()
    assert fetched.findings() == (found,)
    fetched.release()
    fetched.rows.count()
    assert [loss.end for (finding,) in [fetched.findings()] for loss in finding.losses] == [at(3)]


def test_lines_are_rows_and_folders_partitions(lake: Lake, fetch: Fetch) -> None:
    commit = sink(lake, "dt").write(REF, fetch("SELECT id, n, at, amount, _rescued, dt FROM events").rows, replay=False)
    assert lake.files() == {
        "dt=2026-01-31/b000000000007-00000-5e0c11aa.json": (
            b'{"id":"a","n":1,"at":"2026-01-31T12:00:00.000001Z","amount":1.5,"_rescued":"{\\"new\\":true}"}\n'
        ),
        "dt=2026-02-01/b000000000007-00000-5e0c11aa.json": b'{"id":"b","n":2}\n',
        "dt=2026-02-01/b000000000007-00002-5e0c11aa.json": b'{"id":"d","n":4}\n',
        "dt=__HIVE_DEFAULT_PARTITION__/b000000000007-00000-5e0c11aa.json": b'{"id":"c","n":3}\n',
    }
    assert [(f.path, f.rows, f.bytes, f.partition) for f in commit.files] == [
        (path, 1, len(content), path.rsplit("/", 1)[0]) for path, content in lake.files().items()
    ]
    assert (commit.rows, commit.bytes) == (4, sum(map(len, lake.files().values())))


def test_spark_reads_the_files_back(spark: SparkSession, lake: Lake, fetch: Fetch) -> None:
    sink(lake, "dt", compression=Compression.GZIP).write(REF, fetch().rows, replay=False)
    rows = spark.read.schema(DDL).json(lake.store.path.uri).orderBy("n").collect()
    assert [(row["id"], row["n"], row["dt"]) for row in rows] == [
        ("a", 1, "2026-01-31"),
        ("b", 2, "2026-02-01"),
        ("c", 3, None),
        ("d", 4, "2026-02-01"),
    ]


@pytest.mark.parametrize("compression", list(Compression))
def test_writing_a_batch_again_is_writing_it_once(lake: Lake, fetch: Fetch, compression: Compression) -> None:
    writer = sink(lake, "dt", compression=compression)
    first = writer.write(REF, fetch().rows, replay=False)
    files = lake.files()
    lake.leave_unfinished(REF)
    again = writer.write(REF, fetch().rows, replay=True)
    assert (again.files, lake.files()) == (first.files, files)
    assert sorted(line["n"] for line in lake.lines()) == [1, 2, 3, 4]


def test_a_task_that_runs_again_writes_the_same_bytes(spark: SparkSession, lake: Lake) -> None:
    rows = spark.range(0, 50_000, 1, 2).selectExpr("id", "cast(id % 3 as string) as dt")
    writer = sink(lake, "dt", compression=Compression.GZIP)
    writer.write(REF, rows, replay=False)
    files = lake.files()
    # As if the task had died in the middle of its files, the first of them still the one of another attempt.
    paths = sorted(files)
    (lake.folder / paths[0]).write_bytes(b"other")
    (lake.folder / paths[1]).unlink()
    writer.write(REF, rows, replay=False)
    assert lake.files() == files


def test_a_replay_under_other_settings_leaves_nothing_of_the_first_attempt(lake: Lake, fetch: Fetch) -> None:
    other = BatchRef(batch=6, checkpoint=REF.checkpoint)
    sink(lake, compression=Compression.NONE).write(other, fetch().rows, replay=False)
    before = lake.files()
    sink(lake, "dt", compression=Compression.NONE).write(REF, fetch().rows, replay=False)
    committed: dict[int, frozenset[str]] = {}
    writer = sink(lake, compression=Compression.ZSTD, committed=committed)
    commit = writer.write(REF, fetch().rows, replay=True)
    assert set(lake.files()) > set(before) | {entry.path for entry in commit.files}, "it may be committed yet"
    committed[REF.batch] = frozenset(entry.path for entry in commit.files)
    writer.tend()
    writer.close()
    assert set(lake.files()) == set(before) | {entry.path for entry in commit.files}
    assert sorted(line["n"] for line in lake.lines()) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_an_attempt_that_may_make_other_files_replaces_none(lake: Lake, fetch: Fetch) -> None:
    """A task of an attempt that was given up may write its files after the batch is committed."""
    transform = "SELECT dt, count(*) AS n FROM events GROUP BY dt"
    committed: dict[int, frozenset[str]] = {}
    output: Any = SparkOutput(sink(lake, committed=committed), Quarantine(lake.store), CLAIM, makes_the_same=False)
    first, second = (output.write(PLAN, fetch(transform).rows, replay=bool(replay)) for replay in range(2))
    assert not {one.path for one in first.files} & {one.path for one in second.files}
    committed[REF.batch] = frozenset(one.path for one in second.files)
    output.sink.tend()
    output.sink.close()
    assert lake.files().keys() == {one.path for one in second.files}
    assert sorted(line["n"] for line in lake.lines()) == [1, 1, 2]


def test_another_checkpoint_adds_to_the_path(lake: Lake, fetch: Fetch) -> None:
    sink(lake).write(REF, fetch().rows, replay=False)
    sink(lake).write(BatchRef(7, "ffffffff-2222"), fetch().rows, replay=True)
    assert sorted(line["n"] for line in lake.lines()) == [1, 1, 2, 2, 3, 3, 4, 4]


def test_a_batch_without_rows_has_no_files(lake: Lake, fetch: Fetch) -> None:
    commit = sink(lake).write(REF, fetch(tasks=[[b"bad"], []]).rows, replay=False)
    assert (commit.rows, commit.files, lake.files()) == (0, (), {})


@pytest.mark.parametrize(
    ("partition_by", "message"),
    [
        (("nope",), "json.partitionBy: there is no column nope; there are a, s"),
        (("s",), "json.partitionBy: column s is a struct<x:int>"),
        (("a", "s"), "json.partitionBy: column s"),
    ],
)
def test_partitions_that_cannot_be_are_refused(lake: Lake, partition_by: tuple[str, ...], message: str) -> None:
    output = StructType.fromJson(
        {
            "type": "struct",
            "fields": [
                {"name": "a", "type": "string", "nullable": True, "metadata": {}},
                {
                    "name": "s",
                    "type": {
                        "type": "struct",
                        "fields": [{"name": "x", "type": "integer", "nullable": True, "metadata": {}}],
                    },
                    "nullable": True,
                    "metadata": {},
                },
            ],
        }
    )
    with pytest.raises(SettingsError, match=message):
        sink(lake, *partition_by).prepare(output)


def test_quarantine_keeps_bytes_place_and_reason(lake: Lake, fetch: Fetch) -> None:
    files = Quarantine(lake.store).write(REF, fetch().rejected, replay=False)
    assert [entry.path for entry in files] == [
        "b000000000007-00000-5e0c11aa.parquet",
        "b000000000007-00002-5e0c11aa.parquet",
    ]
    rows = [row for entry in files for row in pq.read_table(lake.folder / entry.path).to_pylist()]
    assert [(r["data"], r["reason"], r["shard_id"], r["sequence_number"]) for r in rows] == [
        (b"{oops", "not JSON", "shardId-000000000000", "3"),
        (b'{"id":"x\xff"}', "not UTF-8", "shardId-000000000002", "2"),
        (b'{"n":"5"}', "does not match the schema: n", "shardId-000000000002", "3"),
    ]
    assert rows[0]["arrival"].isoformat() == "2026-01-31T12:00:02+00:00"


def test_quarantine_is_written_once_however_often(lake: Lake, fetch: Fetch) -> None:
    quarantine = Quarantine(lake.store)
    written = quarantine.write(REF, fetch().rejected, replay=False)
    assert quarantine.find(REF) == written
    before = lake.files()
    lake.leave_unfinished(REF)
    quarantine.write(REF, fetch().rejected, replay=True)
    assert lake.files() == before
    # A schema that takes more leaves less to reject.
    quarantine.write(REF, fetch().rejected.where("shard_id = 'shardId-000000000000'"), replay=True)
    assert set(lake.files()) == {"b000000000007-00000-5e0c11aa.parquet"}
