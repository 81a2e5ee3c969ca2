"""`spec.transform`, with real Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakestream.errors import SchemaError
from lakestream.kinesis import KinesisSettings
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch

pytestmark = pytest.mark.spark

DDL = "id string, n long, at timestamp"


def test_rows_are_what_the_query_selects(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    sql = "SELECT id, n * 2 AS twice, date_format(at, 'yyyy-MM-dd') AS dt FROM events WHERE n > 1"
    pipeline = Pipeline.of(spark, DDL, sql, ("id",))
    assert pipeline.output.simpleString() == "struct<id:string,twice:bigint,dt:string>"
    plan, reader = scripted([[b'{"id":"a","n":1}', b'{"id":"b","n":2,"at":"2026-01-31T23:59:59Z"}', b'{"n":3}']])
    parsed = pipeline.parse(read_batch(spark, kinesis, plan, pipeline.expected, reader))
    assert [tuple(row) for row in pipeline.rows(parsed).collect()] == [("b", 4, "2026-01-31")]
    assert [bytes(row["data"]) for row in pipeline.rejected(parsed).collect()] == [b'{"n":3}']


@pytest.mark.parametrize(
    ("sql", "required"),
    [
        (None, ("id",)),
        ("SELECT * FROM events", ("id",)),
        ("SELECT e.id, n FROM (SELECT id, n FROM events WHERE n > 0) e", ("id",)),
        ("SELECT n, id FROM events WHERE id IS NOT NULL", ("id",)),
        # The transform makes the key: whether it may be null is for the transform to say.
        ("SELECT coalesce(id, 'none') AS id FROM events", ()),
        ("SELECT _sequence_number AS id FROM events", ()),
    ],
)
def test_a_key_is_required_of_records_if_it_comes_from_them(
    spark: SparkSession, sql: str | None, required: tuple[str, ...]
) -> None:
    assert Pipeline.of(spark, DDL, sql, ("id",)).required == required


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC id FROM events", "spec.transform: .*[Ss]yntax error"),
        ("SELECT nope FROM events", "spec.transform: .*nope"),
        ("SELECT nope(id) FROM events", "spec.transform: .*nope"),
        ("SELECT * FROM orders", "spec.transform: .*orders"),
        ("SELECT id, n AS ID FROM events", "spec.transform: its output has column ID twice"),
        ("DROP TABLE events", "spec.transform: write one SELECT"),
        ("INSERT INTO events SELECT * FROM events", "spec.transform: write one SELECT"),
        ("CREATE TABLE x AS SELECT * FROM events", "spec.transform: write one SELECT"),
        ("SELECT n FROM events", "the output of spec.transform has no column id"),
    ],
)
def test_a_wrong_transform_is_refused_by_name(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Pipeline.of(spark, DDL, sql, ("id",))


def test_two_threads_do_not_take_each_others_events(spark: SparkSession) -> None:
    def columns(name: str) -> list[str]:
        return [Pipeline.of(spark, f"{name} string", "SELECT * FROM events").output.names[0] for _ in range(8)]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(columns, ["left", "right"])) == [["left"] * 8, ["right"] * 8]
    assert not spark.catalog.tableExists("events")
