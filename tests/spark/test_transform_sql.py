"""`spec.transform`, with real Spark."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from lakestream.errors import SchemaError, SettingsError
from lakestream.kinesis import KinesisSettings
from lakestream.sinks.hudi.deletes import is_deleted, require_predicate
from lakestream.spark.origin import ORIGIN, with_origin
from lakestream.spark.parse import good_events, parse_schema
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies
from lakestream.spark.transform import transform

pytestmark = pytest.mark.spark

DDL = "id string, n long, at timestamp"


def test_rows_are_what_the_query_selects(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    sql = "SELECT id, n * 2 AS twice, date_format(at, 'yyyy-MM-dd') AS dt FROM events WHERE n > 1"
    pipeline = Pipeline.of(spark, DDL, sql, lambda _: sf.when(sf.col("id").isNull(), sf.lit("missing: id")))
    assert pipeline.output.simpleString() == "struct<id:string,twice:bigint,dt:string>"
    plan, reader = scripted([[b'{"id":"a","n":1}', b'{"id":"b","n":2,"at":"2026-01-31T23:59:59Z"}', b'{"n":3}']])
    typed = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    divided = pipeline.divide(typed)
    assert [tuple(row) for row in divided.rows.collect()] == [("b", 4, "2026-01-31")]
    assert [bytes(row["data"]) for row in divided.rejected.collect()] == [b'{"n":3}']
    assert divided.refused == 1


def test_rows_are_counted_and_made_by_the_same_rules(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    # By Spark's defaults, this date ends the job: Spark 2 would have read it.
    sql = "SELECT to_date(id, 'yyyy-MM-dd') AS day FROM events"
    pipeline = Pipeline.of(spark, DDL, sql, lambda _: sf.when(sf.col("day") < "2026-01-01", sf.lit("old")))
    plan, reader = scripted([[b'{"id":"2026-1-5"}', b'{"id":"2026-01-05"}', b'{"id":"2025-01-05"}']])
    divided = pipeline.divide(read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark)))
    assert divided.refused == 1
    assert {str(row.day) for row in divided.rows.collect()} == {"None", "2026-01-05"}


def test_texts_are_what_they_are(spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]) -> None:
    """Spark would look for variables in them, the driver's environment among them, and leave out what it lacks."""
    texts = "'${x}' AS x, '${env:PATH}' AS path, '${system:java.home}' AS home, '${spark.app.name}' AS name"
    pipeline = Pipeline.of(spark, DDL, f"SELECT {texts} FROM events")
    plan, reader = scripted([[b"{}"]])
    divided = pipeline.divide(read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark)))
    found = [tuple(row) for row in divided.rows.collect()]
    assert found == [("${x}", "${env:PATH}", "${system:java.home}", "${spark.app.name}")]


@pytest.mark.parametrize(
    ("sql", "by_row"),
    [
        (None, True),
        ("SELECT *, date_format(at, 'yyyy-MM-dd') AS dt FROM events WHERE n > 1", True),
        ("SELECT id, part FROM (SELECT * FROM events) e LATERAL VIEW explode(sequence(1, n)) parts AS part", True),
        ("SELECT id, count(*) AS n FROM events GROUP BY id", False),
        ("SELECT DISTINCT id FROM events", False),
        ("SELECT id, n FROM events ORDER BY n", False),
        ("SELECT id, row_number() OVER (PARTITION BY id ORDER BY _sequence_number, _sub_sequence) FROM events", False),
        ("SELECT a.id FROM events a JOIN events b ON a.id = b.id", False),
        ("SELECT id FROM events WHERE n IN (SELECT max(n) FROM events)", False),
    ],
)
def test_a_query_that_makes_each_row_of_one_event_is_known(spark: SparkSession, sql: str | None, by_row: bool) -> None:
    assert Pipeline.of(spark, DDL, sql).is_by_row is by_row


@pytest.mark.parametrize(
    ("sql", "rescues"),
    [
        (None, True),
        ("SELECT id, _arrival FROM events", False),
        ("SELECT upper(id) AS id, n + 1 AS n FROM events WHERE n > 1 ORDER BY n", False),
        ("SELECT id, count(*) AS n FROM events GROUP BY id", False),
        ("SELECT id, max(n) OVER (PARTITION BY id) AS n FROM events", False),
        ("SELECT id, x FROM events LATERAL VIEW explode(array('x', 'y')) t AS x", False),
        ("WITH w AS (SELECT id FROM events) SELECT w.id FROM w JOIN events e ON w.id = e.id", False),
        ("SELECT id FROM events UNION ALL SELECT upper(id) FROM events", False),
        ("SELECT * FROM events", True),
        ("TABLE events", True),
        ("SELECT id, get_json_object(_rescued, '$.new') AS new FROM events", True),
        ("SELECT id FROM events WHERE _RESCUED IS NULL", True),
        ("SELECT id FROM events ORDER BY _rescued", True),
        ("SELECT id FROM (SELECT * FROM events)", True),
        ("SELECT id FROM (SELECT DISTINCT * FROM events)", True),
        ("SELECT e.* FROM events e", True),
        ("SELECT struct(*) AS all FROM events", True),
        ("SELECT id, count(*) AS n FROM events GROUP BY ALL", False),
        ("SELECT id FROM (TABLE events UNION ALL TABLE events)", True),
        ("SELECT id FROM (SELECT id, n, at, id AS x, id, id, n, at, id FROM events UNION ALL TABLE events)", True),
        ("SELECT id FROM events WHERE n = (SELECT max(n) FROM events)", True),
        ("WITH w AS (TABLE events) SELECT id FROM w", True),
    ],
)
def test_what_nobody_asks_for_is_not_rescued(spark: SparkSession, sql: str | None, rescues: bool) -> None:
    assert Pipeline.of(spark, DDL, sql).rescues is rescues


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM events", {"1": ["a"], "2": ["b"]}),
        ("SELECT id FROM (SELECT id, n FROM events WHERE n > 1 ORDER BY n LIMIT 3) e", {"2": ["b"]}),
        ("SELECT id || x AS id FROM events LATERAL VIEW explode(array('x', 'y')) t AS x",
         {"1": ["ax", "ay"], "2": ["bx", "by"]}),
        ("SELECT id || row_number() OVER (ORDER BY n DESC) AS id FROM events", {"1": ["a2"], "2": ["b1"]}),
        ("SELECT id FROM events UNION ALL SELECT upper(id) FROM events WHERE n = 1", {"1": ["A", "a"], "2": ["b"]}),
        ("WITH w AS (SELECT id FROM events), v AS (SELECT id FROM w) SELECT w.id FROM w JOIN v ON w.id = v.id",
         {"1": ["a"], "2": ["b"]}),
        ("SELECT e.id FROM events e LEFT JOIN (SELECT 'a' AS k) l ON e.id = l.k", {"1": ["a"], "2": ["b"]}),
        ("SELECT id FROM events WHERE n = (SELECT max(n) FROM events)", {"2": ["b"]}),
        ("SELECT id AS _sequence_number, 'c' AS id FROM events", {"1": ["c"], "2": ["c"]}),
        *((f"SELECT /*+ {hint} */ e.id FROM events e LEFT JOIN (SELECT 'a' AS k) l ON e.id = l.k",
           {"1": ["a"], "2": ["b"]})
          for hint in ("REPARTITION(3)", "REPARTITION(id)", "COALESCE(1)", "REBALANCE", "BROADCAST(e)")),
        ("SELECT id FROM events DISTRIBUTE BY id SORT BY n", {"1": ["a"], "2": ["b"]}),
        ("SELECT DISTINCT id FROM events", None),
        ("SELECT id, count(*) AS n FROM events GROUP BY id", None),
        ("SELECT e.id FROM events e RIGHT JOIN (SELECT 'a' AS k) l ON e.id = l.k", None),
        ("SELECT 'a' AS id", None),
    ],
)  # fmt: skip
def test_the_record_of_a_row_is_known_behind_any_query_that_makes_it_of_one(
    spark: SparkSession,
    kinesis: KinesisSettings,
    scripted: Callable[..., Any],
    sql: str,
    found: dict[str, list[str]] | None,
) -> None:
    plan, reader = scripted([[b'{"id":"a","n":1}', b'{"id":"b","n":2}']])
    pipeline = Pipeline.of(spark, DDL, None)
    typed = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    rows = transform(good_events(typed), sql)
    traced = with_origin(rows)
    assert (traced is None) == (found is None)
    if traced is not None and found is not None:
        assert traced.columns == [*rows.columns, *ORIGIN]
        ids = {number: sorted(row.id for row in traced.collect() if row[ORIGIN[1]] == number) for number in found}
        assert ids == found
        assert sorted(row.id for row in rows.collect()) == sorted(itertools.chain(*found.values()))


def test_times_in_milliseconds_are_times_or_null_whatever_they_are(spark: SparkSession) -> None:
    """As docs/records.md has it: `timestamp_millis` alone fails at some, and the batch at that record."""
    sql = "SELECT if(n BETWEEN -62135596800000 AND 253402300799999, timestamp_millis(n), NULL) AS at FROM events"
    assert sql[7:-12] in Path("docs/records.md").read_text(encoding="utf-8")
    texts = {
        1_769_860_800_123: "2026-01-31 12:00:00.123",
        -62_135_596_800_000: "0001-01-01 00:00:00",
        253_402_300_799_999: "9999-12-31 23:59:59.999",
    }
    numbers = [*texts, 1_769_860_800_123_456_789, 2**63 - 1, -(2**63), None]
    spark.createDataFrame([(number,) for number in numbers], "n long").createOrReplaceTempView("numbers")
    found = spark.sql(sql.replace("SELECT", "SELECT n,").replace("events", "numbers")).selectExpr("n", "string(at)")
    assert {row[0]: row[1] for row in found.collect()} == {number: texts.get(number) for number in numbers}


def test_a_field_may_be_called_what_a_type_is(spark: SparkSession) -> None:
    sql = "SELECT id AS interval, named_struct('interval', n, 'type', INTERVAL '1' DAY) AS s FROM events"
    assert Pipeline.of(spark, DDL, sql).output.names == ["interval", "s"]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELEC id FROM events", "spec.transform: .*[Ss]yntax error"),
        ("SELECT nope FROM events", "spec.transform: .*nope"),
        ("SELECT nope(id) FROM events", "spec.transform: .*nope"),
        ("SELECT * FROM orders", "spec.transform: .*orders"),
        ("SELECT id, n AS ID FROM events", "spec.transform: its output has column ID twice"),
        (
            "SELECT id, n AS _LakeStream_rank FROM events",
            "spec.transform: its output has column _LakeStream_rank",
        ),
        ("SELECT id, make_interval(n) AS p FROM events", "spec.transform: column p is an interval of months, days and"),
        ("SELECT id, array(make_interval(n)) AS p FROM events", "spec.transform: column p is an interval of months"),
        ("DROP TABLE events", "spec.transform: write one SELECT"),
        ("INSERT INTO events SELECT * FROM events", "spec.transform: write one SELECT"),
        ("CREATE TABLE x AS SELECT * FROM events", "spec.transform: write one SELECT"),
    ],
)
def test_a_wrong_transform_is_refused_by_name(spark: SparkSession, sql: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Pipeline.of(spark, DDL, sql)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT uuid() AS id FROM events", "uuid() may give another value .* _sequence_number and _sub_sequence"),
        ("SELECT id FROM events WHERE rand() < 0.5", "rand() .* pmod"),
        ("SELECT id, coalesce(at, now()) AS at FROM events", "now() .*; _arrival is the time"),
        ("SELECT id, date_diff(current_date, at) AS n FROM events", "current_date() .*to_date.*_arrival"),
        ("SELECT id, TIMESTAMP 'now' AS at FROM events", "TIMESTAMP 'now' .*; _arrival"),
        ("SELECT id, CAST('today' AS date) AS day FROM events", "CAST.'today' AS DATE.*; _arrival"),
        ("SELECT id, to_timestamp('now') AS at FROM events", "CAST.'now' AS TIMESTAMP.*; _arrival"),
        ("SELECT id, coalesce(to_date(at), to_date('today')) AS day FROM events", "CAST.'today' AS DATE.*; _arrival"),
        ("WITH x AS (SELECT id, shuffle(array(n)) AS n FROM events) SELECT id FROM x", "shuffle()"),
        ("SELECT id, aes_encrypt(id, '0000111122223333') AS e FROM events", "aes_encrypt takes a random vector"),
        ("SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM events f WHERE f.id = e.id AND rand() < 1)", "rand()"),
        ("SELECT id, first(n) AS n FROM events GROUP BY id", "first(): it goes by the order"),
        ("SELECT id, any_value(n) AS n FROM events GROUP BY id", "any_value(): it goes by the order"),
        ("SELECT id, collect_list(n) AS n FROM events GROUP BY id", "collect_list(): .*sort_array"),
        ("SELECT id, sum(n / 2) AS n FROM events GROUP BY id", "sum(): sums of floating point .*DECIMAL"),
        ("SELECT id, avg(n) AS n FROM events GROUP BY id", "avg(): sums of floating point .*DECIMAL"),
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
        "SELECT id, max(at) AS at, sum(n) AS n, bool_or(n > 2) AS b, sort_array(collect_set(n)) AS all,"
        " avg(CAST(n AS int)) AS a FROM events"
        " GROUP BY id",
        "SELECT *, rank() OVER (PARTITION BY id ORDER BY n) AS r, max(n) OVER (PARTITION BY id) AS m FROM events",
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id ORDER BY n DESC, _sequence_number, _sub_sequence)"
        " AS r FROM events) WHERE r = 1 AND id <> 'now'",
        "SELECT DISTINCT id, word FROM events LATERAL VIEW explode(split(id, ' ')) AS word WHERE n > (SELECT min(n)"
        " FROM events)",
        "SELECT id, to_date(id, 'yyyy') AS day, to_timestamp('2026-01-31') AS at FROM events WHERE id <> 'now'",
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


def test_a_delete_is_told_by_the_text_that_is_written(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("${x}",), ("",)], "op string")
    predicate = "op = '${x}'"
    require_predicate(spark, rows.schema, predicate)
    assert [row.op for row in rows.where(sf.expr(is_deleted(predicate))).collect()] == ["${x}"]


def test_two_threads_do_not_take_each_others_events(spark: SparkSession) -> None:
    def columns(name: str) -> list[str]:
        return [Pipeline.of(spark, f"{name} string", "SELECT * FROM events").output.names[0] for _ in range(8)]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(columns, ["left", "right"])) == [["left"] * 8, ["right"] * 8]
    assert not spark.catalog.tableExists("events")
