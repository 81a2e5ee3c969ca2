"""`spec.transform`, with real Spark."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakestream.errors import SchemaError, SettingsError
from lakestream.kinesis import KinesisSettings
from lakestream.sinks.hudi.deletes import require_predicate
from lakestream.spark.parse import parse_schema
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


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT uuid() AS id FROM events", "uuid() may give another value .* _sequence_number and _sub_sequence"),
        ("SELECT id FROM events WHERE rand() < 0.5", "rand() .* pmod"),
        ("SELECT id, coalesce(at, now()) AS at FROM events", "now() .*; _arrival is the time"),
        ("SELECT id, date_diff(current_date, at) AS n FROM events", "current_date() .*to_date.*_arrival"),
        ("SELECT id, TIMESTAMP 'now' AS at FROM events", "TIMESTAMP 'now' .*; _arrival"),
        ("SELECT id, CAST('today' AS date) AS day FROM events", "CAST.'today' AS DATE.*; _arrival"),
        ("WITH x AS (SELECT id, shuffle(array(n)) AS n FROM events) SELECT id FROM x", "shuffle()"),
        ("SELECT id, aes_encrypt(id, '0000111122223333') AS e FROM events", "aes_encrypt takes a random vector"),
        ("SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM events f WHERE f.id = e.id AND rand() < 1)", "rand()"),
        ("SELECT id, first(n) AS n FROM events GROUP BY id", "first(): it goes by the order"),
        ("SELECT id, any_value(n) AS n FROM events GROUP BY id", "any_value(): it goes by the order"),
        ("SELECT id, collect_list(n) AS n FROM events GROUP BY id", "collect_list(): .*sort_array"),
        ("SELECT id, sum(n / 2) AS n FROM events GROUP BY id", "sum(): sums of floating point .*DECIMAL"),
        ("SELECT *, row_number() OVER (PARTITION BY id ORDER BY n) AS r FROM events", "row_number() OVER .*_sub_sequ"),
        ("SELECT id FROM events ORDER BY n LIMIT 5", "LIMIT takes a part of each batch"),
        ("SELECT id FROM events TABLESAMPLE (10 PERCENT)", "TABLESAMPLE takes a part"),
        ("SELECT TRANSFORM(id) USING 'cat' AS (id string) FROM events", "a script may"),
    ],
)
def test_what_another_look_may_make_another_row_of_is_refused(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(SchemaError, match="spec.transform: " + message.replace("()", r"\(\)")):
        Pipeline.of(spark, DDL, sql)


def test_other_tables_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(1).write.parquet(f"{tmp_path}/names")
    with pytest.raises(SchemaError, match="reads something else than events"):
        Pipeline.of(spark, DDL, f"SELECT e.id FROM events e JOIN parquet.`{tmp_path}/names` f ON e.n = f.id")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, v.name, unix_timestamp(at) AS s FROM events e LEFT JOIN VALUES (1, 'one') AS v(n, name) USING (n)",
        "SELECT id, max(at) AS at, sum(n) AS n, bool_or(n > 2) AS b, sort_array(collect_set(n)) AS all FROM events"
        " GROUP BY id",
        "SELECT *, rank() OVER (PARTITION BY id ORDER BY n) AS r, max(n) OVER (PARTITION BY id) AS m FROM events",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY n DESC, _sequence_number, _sub_sequence)"
        " AS r FROM events) WHERE r = 1 AND id <> 'now'",
        "SELECT DISTINCT id, word FROM events LATERAL VIEW explode(split(id, ' ')) AS word WHERE n > (SELECT min(n)"
        " FROM events)",
        "SELECT id, current_timezone() AS zone FROM events UNION ALL SELECT id, hash(id, n) AS zone FROM events",
    ],
)
def test_what_is_the_same_each_time_is_not(spark: SparkSession, sql: str) -> None:
    assert "id" in Pipeline.of(spark, DDL, sql).output.names


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("at < now() - INTERVAL 7 DAYS", "now() .*_arrival"),
        ("op = 'd' OR rand() < 0.1", "rand()"),
        ("max(n) > 3", "WHERE condition"),
        ("n IN (SELECT id FROM range(3) LIMIT 1)", "LIMIT"),
    ],
)
def test_a_delete_has_to_be_one_whenever_it_is_looked_at(spark: SparkSession, predicate: str, message: str) -> None:
    output = parse_schema(spark, "op string, n long, at timestamp")
    with pytest.raises(SettingsError, match="hudi.deleteWhen: .*" + message.replace("()", r"\(\)")):
        require_predicate(spark, output, predicate)


def test_two_threads_do_not_take_each_others_events(spark: SparkSession) -> None:
    def columns(name: str) -> list[str]:
        return [Pipeline.of(spark, f"{name} string", "SELECT * FROM events").output.names[0] for _ in range(8)]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(columns, ["left", "right"])) == [["left"] * 8, ["right"] * 8]
    assert not spark.catalog.tableExists("events")
