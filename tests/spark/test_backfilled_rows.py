"""Files as a table's rows: what a JSON writer has written comes back as it was, and nothing is lost unseen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from lakestream.backfill.cut import parts_of, parts_of_texts
from lakestream.backfill.find import find_files
from lakestream.kinesis import KinesisSettings
from lakestream.model import BatchPlan, Filter, RecordFormat, Taken
from lakestream.ports import Fetched
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.json_files import JsonSettings, JsonSink
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.storage import LakePath, StoreSettings

pytestmark = pytest.mark.spark

DDL = (
    "id string, n long, t timestamp, local timestamp_ntz, day date, d double, f float, p decimal(38,10), b binary, "
    "tags array<int>, m map<string,double>, inner struct<x:int,y:string>"
)
SQL = "SELECT *, upper(id) AS name, n AS part, day AS dt, cast(p AS decimal(9,2)) AS price FROM events"
"""Applied once more, it would not be what it was."""
RECORDS = [
    b'{"id":"a","n":9223372036854775807,"t":"2026-01-31T12:00:00.123456Z","day":"2026-01-31","new":{"x":1.10}}',
    b'{"id":"\xc3\xbc\\"\\n","n":-1,"local":"0002-01-01T00:00:00.000001","d":0.1,"f":3.4e38,"day":"2026-02-01"}',
    b'{"id":"","p":1234567890123456789012345678.1234567890,"b":"AP8=","tags":[1,null],"m":{"k":1e-300,"":null}}',
    b'{"inner":{"y":"x"},"tags":[],"m":{},"n":0}',
    b'{"inner":{},"n":7,"day":"0001-01-01"}',
    b"{}",
]


@pytest.fixture
def pipeline(spark: SparkSession) -> Pipeline:
    return Pipeline.of(spark, DDL, SQL)


Fetch = Callable[..., Fetched[DataFrame]]


@pytest.fixture
def fetch(spark: SparkSession, kinesis: KinesisSettings, pipeline: Pipeline, nowhere: StoreSettings) -> Fetch:
    """The rows that files are taken as, of a table."""

    def fetched(
        path: Path | str, *, is_table: bool = True, gone: bool = False, by: Pipeline = pipeline
    ) -> Fetched[DataFrame]:
        place = replace(nowhere, path=LakePath.parse(str(path)))
        found = find_files(place, LakePath.parse("/elsewhere"))
        of_texts = by.record_format is RecordFormat.TEXT and not is_table
        cut = [parts_of_texts(file) if of_texts else parts_of(file, None, is_table=is_table) for file in found]
        parts = [part for of_file in cut for part in of_file]
        time = parts[0].modified
        if gone:
            Path(path).unlink()
        plan = BatchPlan(0, 1, time, None, time, True, (), (), parts=(tuple(parts),), taken=Taken(1, 1, 1))
        return SparkFetcher(spark, kinesis, by, nowhere).fetch(plan)

    return fetched


def sorted_rows(frame: DataFrame) -> list[Row]:
    return sorted(frame.collect(), key=lambda row: int(row["_sequence_number"]))


@pytest.fixture
def written(
    spark: SparkSession,
    kinesis: KinesisSettings,
    pipeline: Pipeline,
    nowhere: StoreSettings,
    scripted: Any,
    tmp_path: Path,
) -> list[Row]:
    """Rows in a table of JSON files in `tmp_path`."""
    plan, reader = scripted([RECORDS])
    rows = SparkFetcher(spark, kinesis, pipeline, nowhere, reader).fetch(plan).rows
    store = replace(nowhere, path=LakePath.parse(str(tmp_path)))
    sink = JsonSink(JsonSettings(store, partition_by=("part", "dt")))
    sink.prepare(pipeline.output)
    sink.write(BatchRef(0, "5e0c11aa-0000"), rows, replay=False)
    return sorted_rows(rows)


def test_rows_of_json_files_come_back_as_they_were(written: list[Row], fetch: Fetch, tmp_path: Path) -> None:
    found = fetch(tmp_path)
    assert found.rejected_count == 0
    assert sorted_rows(found.rows) == written
    assert len(written) == len(RECORDS)
    found.release()


@pytest.mark.parametrize(
    "column", ["_arrival - t AS found", "map(1, id) AS found", "NULL AS found", "INTERVAL '1' MONTH AS found"]
)
def test_rows_of_a_table_with_a_column_that_is_not_read_from_json_are_kept(
    spark: SparkSession, fetch: Fetch, tmp_path: Path, column: str
) -> None:
    """The request stands in a plan by now: a driver that failed on it would do so for ever."""
    (tmp_path / "a.json").write_bytes(b'{"id":"a"}\n{"id":"b","found":null}\n')
    found = fetch(tmp_path, by=Pipeline.of(spark, DDL, f"SELECT id, {column} FROM events"))
    assert (found.rejected_count, found.rows.count()) == (2, 0)
    reasons = {row["_reason"] for row in found.rejected.collect()}
    assert len(reasons) == 1
    assert "column found: a value of " in reasons.pop()
    found.release()


def test_archived_events_are_filtered_and_rows_are_not(spark: SparkSession, fetch: Fetch, tmp_path: Path) -> None:
    """Rows have what the transform makes, and need not have what the filter looks at."""
    path = tmp_path / "events.json"
    path.write_bytes(b'{"id":"a","type":"order"}\n{"id":["b"],"type":"visit"}\nbad\n{"id":"c"}\n')
    orders = Pipeline.of(spark, "id string", None, filters=(Filter(("type",), frozenset({"order"})),))
    found = fetch(path, is_table=False, by=orders)
    assert [row["id"] for row in found.rows.collect()] == ["a"]
    assert [bytes(row["data"]) for row in found.rejected.collect()] == [b"bad"]
    (stats,) = found.shards
    assert (stats.records, stats.filtered, found.rejected_count) == (4, 2, 1)
    found.release()
    path.write_bytes(b'{"id":"a"}\n')
    rows = fetch(path, by=orders)
    assert [row["id"] for row in rows.rows.collect()] == ["a"]
    rows.release()


def test_lines_of_text_are_taken_as_they_are(spark: SparkSession, fetch: Fetch, tmp_path: Path) -> None:
    """Also in a folder of a partition by the column, which is not put in front of them."""
    path = tmp_path / "line=x" / "a.log"
    path.parent.mkdir()
    path.write_bytes(b'GET /\t1 \n\n{"line":"a"}\r\n\xff\nlast')
    texts = Pipeline.of(spark, "line string", None, record_format=RecordFormat.TEXT)
    found = fetch(tmp_path, is_table=False, by=texts)
    assert [row["line"] for row in sorted_rows(found.rows)] == ["GET /\t1 ", '{"line":"a"}\r', "last"]
    assert [(bytes(row["data"]), row["_reason"]) for row in found.rejected.collect()] == [(b"\xff", "not UTF-8")]
    found.release()
    path.write_bytes(b'{"line":"a"}\n')
    rows = fetch(path, by=texts)
    assert [row["line"] for row in rows.rows.collect()] == ["a"], "a row of a table is JSON"
    rows.release()


def test_a_null_in_an_array_that_has_none_is_kept_in_quarantine(
    spark: SparkSession, fetch: Fetch, tmp_path: Path
) -> None:
    """As rows may have from before `transform` was edited; Spark would fail at it, at every start."""
    path = tmp_path / "rows"
    path.write_bytes(
        b'{"id":"good","words":["x",""],"sizes":[1,0]}\n{"id":"a","words":["x",null]}\n{"id":"b","sizes":[1,null]}\n'
    )
    sizes = "transform(split(id, ','), x -> length(coalesce(x, '')))"
    sql = f"SELECT id, split(id, ',') AS words, {sizes} AS sizes FROM events"
    found = fetch(path, by=Pipeline.of(spark, DDL, sql))
    assert [tuple(row) for row in found.rows.collect()] == [("good", ["x", ""], [1, 0])]
    reasons = sorted(row["_reason"] for row in found.rejected.collect())
    assert reasons == ["missing: sizes[1]", "missing: words[1]"]
    found.release()


def test_rows_of_parquet_come_back_as_they_were(
    written: list[Row], spark: SparkSession, pipeline: Pipeline, fetch: Fetch, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    frame = spark.createDataFrame(written, pipeline.output).withColumnRenamed("dt", "dt")
    pq.write_table(pa.Table.from_batches(frame._collect_as_arrow()), path)
    found = fetch(path)
    assert [row["_reason"] for row in found.rejected.collect()] == []
    assert sorted_rows(found.rows) == written
    found.release()


def test_what_the_table_has_no_column_for_is_kept_in_quarantine(fetch: Fetch, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_bytes(
        b'{"_shard_id":"s","_sequence_number":"1","name":"A","_hoodie_file_name":"x"}\n{"nope":1,"a":{}}\n'
    )
    found = fetch(path)
    (row,) = found.rows.collect()
    assert (row["_shard_id"], row["_sequence_number"], row["name"], row["id"]) == ("s", "1", "A", None)
    (rejected,) = found.rejected.collect()
    assert (rejected["_reason"], rejected["data"]) == ("the table lacks: a, nope", bytearray(b'{"nope":1,"a":{}}'))
    assert (rejected["shard_id"], rejected["sequence_number"], rejected["sub_sequence"]) == (str(path), "76", -2)
    found.release()


def test_files_of_events_go_through_the_transform(fetch: Fetch, tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b'{"id":"a","x":1}\n{"id":\n\n{"id":"b"}')
    found = fetch(path, is_table=False)
    one, two = sorted_rows(found.rows)
    assert (one["name"], one["_rescued"], one["_shard_id"], one["_sub_sequence"]) == ("A", '{"x":1}', str(path), 0)
    assert (two["name"], two["_sequence_number"]) == ("B", "25")
    (rejected,) = found.rejected.collect()
    assert (rejected["_reason"], rejected["sequence_number"]) == ("not JSON", "17")
    assert (found.taken, found.rejected_count, found.arrivals) == (3, 1, ())
    found.release()


def test_a_file_that_is_gone_is_told_in_quarantine(fetch: Fetch, tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b'{"id":"a"}\n')
    found = fetch(path, is_table=False, gone=True)
    (row,) = found.rejected.collect()
    assert (row["_reason"], row["data"]) == ("file not read: it is not there any more", bytearray(b"bytes 0 to 11"))
    assert (found.rejected_count, found.rows.count()) == (1, 0)
    found.release()
