"""Records at which the document's SQL fails, with real Spark: one of them must not stop a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
import pytest
from pyspark.sql import SparkSession

from lakestream.errors import SinkError
from lakestream.kinesis import KinesisSettings
from lakestream.ports import Fetched
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import FAILS, Pipeline
from lakestream.storage import StoreSettings

pytestmark = pytest.mark.spark

DDL = "id string, n long, words array<string>"
NANOSECONDS = 1_795_000_000_000_000_000
"""Of which `timestamp_millis` makes no time, but fails."""
RECORDS = [
    {"id": "a", "n": 1_795_000_000_000, "words": ["x", "y"]},
    {"id": "late", "n": NANOSECONDS, "words": ["x", "x"]},
    {"id": "b", "n": 1_795_000_000_001, "words": ["z"]},
    {"id": "null"},
    {"id": "later", "n": NANOSECONDS + 1, "words": []},
]

Fetch = Callable[..., Fetched[Any]]


@pytest.fixture(autouse=True)
def as_for_files(spark: SparkSession) -> Iterator[None]:
    """Spark plans once, so that a task that reads records makes rows of them as well, and may fail at that."""
    before = spark.conf.get("spark.sql.adaptive.enabled")
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    yield
    spark.conf.set("spark.sql.adaptive.enabled", str(before))


@pytest.fixture
def fetcher(spark: SparkSession, kinesis: KinesisSettings, nowhere: StoreSettings, scripted: Any) -> Iterator[Fetch]:
    """Fetches a batch by a pipeline; what is held is released."""
    held: list[Fetched[Any]] = []
    before = kept(spark)

    def fetch(pipeline: Pipeline, records: Sequence[object] = RECORDS, *, replay: bool = True) -> Fetched[Any]:
        data = [orjson.dumps(record) for record in records]
        plan, reader = scripted([data[::2], data[1::2]])
        held.append(SparkFetcher(spark, kinesis, pipeline, nowhere, reader).fetch(plan, replay=replay))
        return held[-1]

    yield fetch
    for fetched in held:
        fetched.release()
    assert kept(spark) == before


def kept(spark: SparkSession) -> set[int]:
    """Ids of what the executors keep."""
    return set(spark.sparkContext._jsc.getPersistentRDDs())


def ids(rows: Any) -> list[str]:
    return sorted(row.id for row in rows.collect())


def rejected(fetched: Fetched[Any]) -> list[tuple[str, str]]:
    found = sorted((orjson.loads(bytes(row.data))["id"], row._reason) for row in fetched.rejected.collect())
    assert fetched.rejected_count == len(found)
    assert fetched.taken >= len(RECORDS), "all of them are told of"
    return found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, timestamp_millis(n) AS at FROM events",
        "SELECT id, date(at) AS day FROM (SELECT id, timestamp_millis(n) AS at FROM events) AS timed",
        "SELECT id FROM events WHERE timestamp_millis(n) > timestamp'2000-01-01' OR n IS NULL",
        "SELECT id, at FROM events LATERAL VIEW explode(array(timestamp_millis(n))) AS at",
        "SELECT id, timestamp_millis(n) AS at, timestamp_millis(n) + interval 1 day AS next FROM events",
    ],
)
def test_those_alone_go_to_quarantine(spark: SparkSession, fetcher: Fetch, sql: str) -> None:
    fetched = fetcher(Pipeline.of(spark, DDL, sql))
    assert ids(fetched.rows) == ["a", "b", "null"]
    assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]


def test_an_operator_of_several_fails_at_others(spark: SparkSession, fetcher: Fetch) -> None:
    sql = (
        "SELECT id, word, at FROM (SELECT id, words, map_from_arrays(words, words) AS m, n FROM events) AS mapped "
        "LATERAL VIEW OUTER explode(words) AS word LATERAL VIEW explode(array(timestamp_millis(n))) AS at"
    )
    fetched = fetcher(Pipeline.of(spark, DDL, sql + " WHERE size(m) >= 0 OR m IS NULL"))
    assert ids(fetched.rows) == ["a", "a", "b", "null"]
    assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]


def test_a_predicate_of_the_sink_is_tried_as_well(spark: SparkSession, fetcher: Fetch) -> None:
    fetched = fetcher(Pipeline.of(spark, DDL, None, delete_when="timestamp_millis(n) < timestamp'2000-01-01'"))
    assert ids(fetched.rows) == ["a", "b", "null"]
    assert fetched.rows.columns[:3] == ["id", "n", "words"]
    assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]


def test_what_the_schema_rejects_keeps_its_reason(spark: SparkSession, fetcher: Fetch) -> None:
    records = [*RECORDS, {"id": "odd", "n": "x"}]
    fetched = fetcher(Pipeline.of(spark, DDL, "SELECT id, timestamp_millis(n) AS at FROM events"), records)
    assert [reason for _, reason in rejected(fetched)] == [FAILS, FAILS, "does not match the schema: n"]


def test_nothing_is_rejected_where_it_fails_at_none(spark: SparkSession, fetcher: Fetch) -> None:
    fetched = fetcher(Pipeline.of(spark, DDL, "SELECT id, n > 0 AS known FROM events"))
    assert ids(fetched.rows) == ["a", "b", "late", "later", "null"]
    assert rejected(fetched) == []


def test_batches_are_tried_once_one_was_begun_in_vain(
    spark: SparkSession, kinesis: KinesisSettings, nowhere: StoreSettings, scripted: Any
) -> None:
    plan, reader = scripted([[orjson.dumps(record) for record in RECORDS]])
    pipeline = Pipeline.of(spark, DDL, "SELECT id, timestamp_millis(n) AS at FROM events")
    fetcher = SparkFetcher(spark, kinesis, pipeline, nowhere, reader)
    first = fetcher.fetch(plan)
    with pytest.raises(Exception, match="long overflow"):
        first.rows.collect()
    first.release()
    for replay in (True, False):
        fetched = fetcher.fetch(plan, replay=replay)
        assert ids(fetched.rows) == ["a", "b", "null"]
        assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]
        fetched.release()


TIMED = "(SELECT id, n, timestamp_millis(n) AS at, _sequence_number, _sub_sequence FROM events)"
ORDERED = "(PARTITION BY n > 0 ORDER BY n DESC, _sequence_number, _sub_sequence)"
OLD = "timestamp'2000-01-01'"
LIST = f"(SELECT 'late' AS k, {OLD} AS at) AS list"
WHERE_SUBQUERIES = (
    "(SELECT id, n FROM events AS e WHERE id IN (SELECT id FROM events) AND EXISTS (SELECT 1 FROM events AS f"
    f" WHERE f.id = e.id AND (f.n IS NULL OR timestamp_millis(f.n) > {OLD})))"
)
RANKED = "row_number() OVER (PARTITION BY id ORDER BY at, _sequence_number, _sub_sequence) AS r"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, min(timestamp_millis(n)) AS at FROM events GROUP BY id",
        "SELECT id FROM events GROUP BY id, timestamp_millis(n)",
        "SELECT id, count(*) FILTER (WHERE timestamp_millis(n) > timestamp'2000-01-01') AS m FROM events GROUP BY id",
        "SELECT id, count_if(timestamp_millis(n) > timestamp'2000-01-01') AS m FROM events GROUP BY id",
        f"SELECT DISTINCT id, at FROM {TIMED}",
        f"SELECT id, at FROM {TIMED} UNION ALL SELECT id, NULL FROM events WHERE id = 'z'",
        f"SELECT one.id, two.at FROM events AS one JOIN {TIMED} AS two ON one.id = two.id",
        f"SELECT one.id, one.at, two.at AS same FROM {TIMED} AS one LEFT JOIN {TIMED} AS two ON one.id = two.id",
        f"WITH timed AS {TIMED} SELECT one.id, one.at FROM timed AS one JOIN timed AS two ON one.id = two.id",
        f"SELECT id, at, {RANKED} FROM {TIMED}",
        "SELECT id, max(timestamp_millis(n)) OVER (PARTITION BY id) AS at FROM events",
        f"SELECT id, timestamp_millis(n) AS at FROM (SELECT id, n, row_number() OVER {ORDERED} AS r FROM events)",
        f"SELECT id, timestamp_millis(n) AS at FROM {WHERE_SUBQUERIES}",
        "SELECT id, max(timestamp_millis(n)) AS at FROM events GROUP BY GROUPING SETS ((id))",
        "SELECT id, timestamp_millis(m) AS at FROM (SELECT id, n FROM events) UNPIVOT INCLUDE NULLS (m FOR c IN (n))",
        f"SELECT one.id FROM events AS one LEFT JOIN {LIST} ON timestamp_millis(one.n) = at",
        f"SELECT id FROM events LEFT ANTI JOIN {LIST} ON id = k WHERE n IS NULL OR timestamp_millis(n) > {OLD}",
        f"SELECT id FROM events LEFT JOIN {LIST} ON k = 'late' AND timestamp_millis(n) < at WHERE at IS NULL",
        "SELECT id FROM events ORDER BY timestamp_millis(n)",
        "SELECT id FROM events DISTRIBUTE BY timestamp_millis(n)",
        "SELECT id, (SELECT max(timestamp_millis(n)) FROM events) AS at FROM events",
    ],
)
def test_they_are_found_before_rows_are_put_together(spark: SparkSession, fetcher: Fetch, sql: str) -> None:
    fetched = fetcher(Pipeline.of(spark, DDL, sql))
    assert ids(fetched.rows) == ["a", "b", "null"]
    assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]


def test_what_a_filter_keeps_from_an_aggregate_does_not_fail(spark: SparkSession, fetcher: Fetch) -> None:
    sql = "SELECT id, max(timestamp_millis(n)) FILTER (WHERE id <> 'late') AS at FROM events GROUP BY id"
    fetched = fetcher(Pipeline.of(spark, DDL, sql))
    assert ids(fetched.rows) == ["a", "b", "late", "null"]
    assert rejected(fetched) == [("later", FAILS)]


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT id, {{}} AS at FROM {TIMED}",
        f"SELECT id, at, {{}} AS day FROM {TIMED} WHERE id <> 'late'",
        f"SELECT id, if(id = 'late', NULL, at) AS at, {{}} AS day FROM {TIMED}",
        f"SELECT id, {{}} AS at FROM {TIMED} WHERE n IN (SELECT n FROM {TIMED}) OR n IS NULL",
    ],
)
def test_what_spark_need_not_work_out_does_not_fail(spark: SparkSession, fetcher: Fetch, sql: str) -> None:
    fetched = fetcher(Pipeline.of(spark, DDL, sql.format("if(id = 'later', timestamp_millis(n), NULL)")))
    assert {"a", "b", "null"} <= {*ids(fetched.rows)} <= {"a", "b", "late", "null"}
    assert rejected(fetched) == [("later", FAILS)]


@pytest.mark.parametrize(
    "made",
    [
        "map('k', n, if(id = 'late', 'k', 'j'), n)",
        "map_from_arrays(array('k', if(id = 'late', 'k', 'j')), words)",
        "map_concat(map('k', n), map(if(id = 'late', 'k', 'j'), n))",
        "transform_keys(map('k', n, 'j', n), (k, v) -> if(id = 'late', 'k', k))",
        "transform(array(1, 2), one -> map('k', one, if(id = 'late', NULL, 'j'), n))",
    ],
)
def test_a_map_that_fails_spoils_none_behind_it(spark: SparkSession, fetcher: Fetch, made: str) -> None:
    records = [{"id": name, "n": 1, "words": ["x", "y"]} for name in ("a", "late", "b", "late", "c", "late", "d", "e")]
    fetched = fetcher(Pipeline.of(spark, DDL, f"SELECT id, {made} AS m FROM events"), records)
    assert ids(fetched.rows) == ["a", "b", "c", "d", "e"]
    assert rejected(fetched) == [("late", FAILS)] * 3


def test_what_a_window_has_in_their_place_is_tried_as_well(spark: SparkSession, fetcher: Fetch) -> None:
    best = f"(SELECT id, n FROM (SELECT id, n, row_number() OVER {ORDERED} AS r FROM events) WHERE r = 1)"
    fetched = fetcher(Pipeline.of(spark, DDL, f"SELECT id, timestamp_millis(n) AS at FROM {best}"))
    assert ids(fetched.rows) == ["b", "null"]
    assert rejected(fetched) == [("late", FAILS), ("later", FAILS)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, timestamp_millis(max(n)) AS at FROM events GROUP BY id",
        "SELECT id, timestamp_millis((SELECT max(n) FROM events)) AS at FROM events",
        "SELECT id FROM events WHERE timestamp_millis((SELECT max(n) FROM events)) IS NOT NULL",
    ],
)
def test_what_fails_at_a_group_is_told(spark: SparkSession, fetcher: Fetch, sql: str) -> None:
    with pytest.raises(SinkError, match=r"overflow.*At none of the records by itself: mend spec\.transform"):
        fetcher(Pipeline.of(spark, DDL, sql))


def test_what_is_no_expressions_failure_is_not_put_down_to_one(
    spark: SparkSession, fetcher: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = SinkError("a JVM is out of memory")
    monkeypatch.setattr("lakestream.spark.pipeline.failure_of", lambda _: memory)
    with pytest.raises(SinkError) as raised:
        fetcher(Pipeline.of(spark, DDL, "SELECT id, n + 1 AS m FROM events"))
    assert raised.value is memory
