"""Records that a sink cannot take: each is in quarantine with its reason, and the rest in the table, whatever comes."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pyspark.sql import Row, SparkSession

from lakestream import settings
from lakestream.kinesis import KinesisSettings
from lakestream.ports import Fetched
from lakestream.sinks.contract import BatchRef, Sink
from lakestream.sinks.hive_paths import partition_path
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.sinks.json_files import JsonSettings, JsonSink
from lakestream.sinks.objects import object_name
from lakestream.spark.fetch import SparkFetcher
from lakestream.spark.pipeline import Pipeline
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream_api import TableType, load_lakestream

pytestmark = pytest.mark.spark

CHECKPOINT = "5e0c11aa-1111-4222-8333-444455556666"
Fetch = Callable[..., Fetched[Any]]
Write = Callable[..., list[Row]]


@pytest.fixture
def fetch(
    spark: SparkSession, kinesis: KinesisSettings, nowhere: StoreSettings, scripted: Callable[..., Any]
) -> Iterator[Fetch]:
    """A batch of records, divided for a sink."""
    held: list[Fetched[Any]] = []

    def fetch(sink: Sink, ddl: str, sql: str | None, records: Sequence[object]) -> Fetched[Any]:
        data = [orjson.dumps(record) for record in records]
        plan, reader = scripted([data[::2], data[1::2]])
        pipeline = Pipeline.of(spark, ddl, sql, sink.refusal)
        fetched = SparkFetcher(spark, kinesis, pipeline, nowhere, reader).fetch(plan)
        held.append(fetched)
        return fetched

    yield fetch
    for fetched in held:
        fetched.release()


@pytest.fixture
def write(fetch: Fetch) -> Write:
    """Write records to a sink; what is rejected comes back."""

    def write(sink: Sink, ddl: str, sql: str | None, records: Sequence[object], batch: int = 0) -> list[Row]:
        fetched = fetch(sink, ddl, sql, records)
        rejected: list[Row] = fetched.rejected.collect()
        assert fetched.rejected_count == len(rejected)
        sink.prepare(fetched.rows.schema)
        sink.write(BatchRef(batch, CHECKPOINT), fetched.rows, replay=False)
        return rejected

    return write


@contextmanager
def opened(spark: SparkSession, table: HudiSettings) -> Iterator[HudiSink]:
    sink = HudiSink(spark, table)
    try:
        yield sink
    finally:
        sink.close()


def upserts(path: Path, **fields: Any) -> HudiSettings:
    described: dict[str, Any] = {"record_key": ("k",), "ordering_field": "v", "buckets": 2, **fields}
    return HudiSettings(path=f"file://{path}/table", table="t", **described)


def rows_in(spark: SparkSession, table: HudiSettings, *columns: str) -> list[tuple[Any, ...]]:
    found = [tuple(row) for row in spark.read.format("hudi").load(table.path).selectExpr(*columns).collect()]
    assert len(set(found)) == len(found)
    return found


def reasons(rejected: Sequence[Row], key: str) -> dict[Any, str]:
    return {orjson.loads(bytes(row["data"])).get(key): row["_reason"] for row in rejected}


def test_no_order_stops_the_example(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    document = load_lakestream(Path("examples/orders.yaml").read_text(encoding="utf-8"))
    writer = document.writer("hudi")
    assert writer.hudi is not None
    spec = settings.hudi_settings(writer.hudi, "orders", settings.definition(document, writer))
    good = {"event_id": "good", "order_id": "a", "version": 1, "op": "u", "created_at": "2026-01-31T12:00:00Z"}
    poison = [
        ({"event_id": "no key", "order_id": None}, "missing: order_id"),
        ({"event_id": "empty key", "order_id": ""}, "empty: order_id"),
        (
            {"event_id": "endless key", "order_id": "http://shop:80/a,b"},
            "key order_id: Hudi's bucket index does not end",
        ),
        ({"event_id": "no order", "version": None}, "missing: version"),
    ]
    late = [{**good, "event_id": f"good {n}", "order_id": f"{n}:x,y"} for n in range(3)]
    with opened(spark, replace(spec, path=f"file://{tmp_path}/table")) as sink:
        for batch in range(2):
            records = [good, *({**good, **broken} for broken, _ in poison), *late]
            rejected = write(sink, document.spec.event_schema, document.spec.transform, records, batch)
            found = reasons(rejected, "event_id")
            assert found.keys() == {broken["event_id"] for broken, _ in poison}
            assert all(found[broken["event_id"]].startswith(reason) for broken, reason in poison)
            assert {row["shard_id"] for row in rejected} == {"shardId-000000000000", "shardId-000000000001"}
    table = spark.read.format("hudi").load(f"file://{tmp_path}/table")
    assert {row.event_id for row in table.collect()} == {"good", *(order["event_id"] for order in late)}


def never_ends(key: str, fields: Sequence[str]) -> bool:
    """Whether Hudi's `KeyGenUtils.extractRecordKeysByFields` goes round for ever, told step by step as it is there."""
    at = 0
    while "," in key and ":" in key and at < len(key):
        colon = key.index(":", at)
        known = key[at:colon] in fields
        following = [place for place in range(colon + 1, len(key)) if key[place] == ":"]
        commas = [key.rfind(",", 0, place) for place in following]
        behind = [comma for comma in commas if comma > colon]
        if not following or (known and not behind):
            return False
        if not behind:
            return True
        at = behind[0] + 1
    return False


@pytest.mark.parametrize(("partition_by", "prefix"), [((), ""), (("p", "q"), "k:")])
def test_any_key_of_one_column_is_a_row_or_in_quarantine(
    spark: SparkSession, tmp_path: Path, write: Write, partition_by: tuple[str, ...], prefix: str
) -> None:
    keys = ["".join(key) for length in range(7) for key in itertools.product("a,:", repeat=length)]
    keys += ["__null__", "__empty__", "a\0b", "\n", " ", "é\U0001f600", "k" * 1_000_000]
    table = upserts(tmp_path, partition_by=partition_by)
    with opened(spark, table) as sink:
        records = [{"k": key, "v": 1, "p": "x"} for key in keys]
        rejected = write(sink, "k string, v long, p string, q string", None, records)
    kept = {key for (key,) in rows_in(spark, table, "k")}
    assert reasons(rejected, "k").keys() == {""} | {key for key in keys if never_ends(prefix + key, ["k"])}
    assert kept == set(keys) - reasons(rejected, "k").keys()


def test_rows_with_any_two_keys_are_two_rows_or_in_quarantine(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    """Every way to read the text of a key apart: with two, one row would have taken the place of another."""
    values = ["".join(parts) for n in range(4) for parts in itertools.product(("a", ",b:", ",", ":"), repeat=n)]
    values += ["__null__", "__empty__", ",a:", "x,y:z:w", "1,b:2"]
    firsts = [*values[::5], "1,b:2", "", "__empty__"]
    pairs = list(dict.fromkeys((first, second) for first in firsts for second in values))
    table = upserts(tmp_path, record_key=("a", "b"))
    records = [{"a": first, "b": second, "v": 1} for first, second in pairs]
    with opened(spark, table) as sink:
        rejected = write(sink, "a string, b string, v long", None, [*records, {"a": "x", "v": 1}])
    refused = {(event["a"], event.get("b")) for event in (orjson.loads(bytes(row["data"])) for row in rejected)}
    kept = set(rows_in(spark, table, "a", "b"))
    assert kept | refused == {*pairs, ("x", None)}
    assert not kept & refused
    for first, second in pairs:
        text = f"a:{first},b:{second}"
        readings = len(re.findall(r"(?=,b:)", text))
        odd = {"__null__", "__empty__"} & {first, second} or first == second == ""
        assert ((first, second) in refused) == bool(readings > 1 or odd or never_ends(text, ["a", "b"])), text


def test_any_partition_is_a_folder_or_in_quarantine(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    every = [chr(code) for code in range(128)] + ["é", "\u2028", "\x85", "\U0001f600"]
    texts = [
        ".",
        "..",
        "",
        None,
        "".join(every[:64]),
        "".join(every[64:]),
        " a ",
        "a/../b",
        "%41",
        "é" * 126,
        "x" * 253,
    ]
    bad = ["x" * 254, "é" * 127, "%" * 84 + "xx", "\0" * 90, "__HIVE_DEFAULT_PARTITION__", "y" * 300]
    records = [{"k": f"{number}", "v": 1, "p": text} for number, text in enumerate(texts + bad)]
    table = upserts(tmp_path, partition_by=("p",), buckets=1)
    ddl = "k string, v long, p string"
    with opened(spark, table) as sink:
        rejected = write(sink, ddl, None, records)
    assert set(reasons(rejected, "p")) == set(bad)
    assert all("partition column p: " in reason for reason in reasons(rejected, "p").values())
    # The empty string and null are one partition to Hive and all who came after it.
    assert dict(rows_in(spark, table, "k", "p")) == {str(number): text or None for number, text in enumerate(texts)}

    store = StoreSettings(LakePath.parse(f"{tmp_path}/json"), S3Settings("eu-west-1"))
    every_char = [{"k": f"char {ord(char[0])}", "v": 1, "p": char} for char in every]
    rejected = write(JsonSink(JsonSettings(store, ("p",))), ddl, None, records + every_char)
    assert set(reasons(rejected, "p")) == set(bad)
    read = spark.read.schema(ddl).json(f"{tmp_path}/json")
    found = {row.k: row.p for row in read.collect()}
    assert found == {event["k"]: event["p"] or None for event in records + every_char if event["p"] not in bad}


def test_partitions_have_a_limit_each_and_one_for_all_on_s3(spark: SparkSession) -> None:
    output = spark.createDataFrame([], "k string, v long, p string, q string, r string, s string").schema
    table = replace(upserts(Path("/")), path="s3a://lake/a/table", partition_by=("p", "q", "r", "s"))
    refusal = HudiSink(spark, table).refusal(output)
    sizes = [(250, 250, 250, 55, False), (250, 250, 250, 56, True), (253, 0, 0, 0, False), (254, 0, 0, 0, True)]
    for *lengths, refused in sizes:
        values = ", ".join(f"repeat('x', {length}) {name}" for length, name in zip(lengths, "pqrs", strict=True))
        row = spark.sql(f"select 'k' k, 1L v, {values}").select(refusal.alias("why"))
        assert (row.collect()[0].why is not None) == refused, lengths


def test_an_empty_partition_is_as_long_as_its_name_in_a_path(spark: SparkSession) -> None:
    columns = ("p", "q", "r", "s", "t")
    output = spark.createDataFrame([], f"k string, {' string, '.join(columns)} string").schema
    store = StoreSettings(LakePath.parse("s3a://lake/a/b"), S3Settings("eu-west-1"))
    refusal = JsonSink(JsonSettings(store, columns)).refusal(output)
    assert refusal is not None
    long = "x" * 250
    rows = [("k", long, long, long, "x" * more, "") for more in range(150, 251)]
    judged = spark.createDataFrame(rows, output).select("*", refusal.alias("why")).collect()
    name = object_name(BatchRef(0, CHECKPOINT, attempt="0badcafe"), 0, "json.zst")
    keys = {f"a/b/{partition_path(columns, [row[one] for one in columns])}/{name}": row.why for row in judged}
    assert {why is None for why in keys.values()} == {True, False}
    assert max(len(key) for key, why in keys.items() if why is None) <= 1024


@pytest.mark.parametrize(
    ("sql", "poisoned", "rows"),
    [
        ("SELECT upper(id) AS k, n AS v FROM events", {"", "none"}, {"A": 1, "B": 2, "C": 3}),
        ("SELECT nullif(id, 'b') AS k, n / (n - 1) AS v FROM events", {"", "a", "b", "none"}, {"c": 1.5}),
        # Of c one row would be good; a record is in one place.
        ("SELECT k, n AS v FROM events LATERAL VIEW explode(split(concat(id, if(id = 'c', ',', '')), ',')) t AS k",
         {"", "c"}, {"a": 1, "b": 2}),
        ("WITH e AS (SELECT id, n FROM events) SELECT id AS k, n AS v FROM e WHERE n > 1 "
         "UNION ALL SELECT concat(id, '2'), CAST('NaN' AS double) FROM e WHERE id = 'a'", {"", "a"}, {"b": 2, "c": 3}),
    ],
)  # fmt: skip
def test_poison_that_a_transform_makes_is_kept_as_its_record(
    spark: SparkSession, tmp_path: Path, fetch: Fetch, sql: str, poisoned: set[str], rows: dict[str, float]
) -> None:
    records: list[dict[str, object]] = [{"id": "a", "n": 1}, {"id": "b", "n": 2}, {"id": "c", "n": 3}]
    records += [{"id": "", "n": 4}, {"no": "none", "n": 1}]
    fetched = fetch(HudiSink(spark, upserts(tmp_path)), "id string, n long", sql, records)
    rejected = fetched.rejected.collect()
    assert {orjson.loads(bytes(row["data"])).get("id", "none") for row in rejected} == poisoned
    assert fetched.rejected_count == len(rejected) == len(poisoned)
    assert sorted(map(tuple, fetched.rows.collect())) == sorted(rows.items())


def test_rows_of_several_records_are_kept_themselves(spark: SparkSession, tmp_path: Path, fetch: Fetch) -> None:
    records = [{"id": "a", "n": 1}, {"id": "a", "n": 2}, {"id": "", "n": 3}]
    sql = "SELECT id AS k, max(n) AS v FROM events GROUP BY id"
    fetched = fetch(HudiSink(spark, upserts(tmp_path)), "id string, n long", sql, records)
    (rejected,) = fetched.rejected.collect()
    assert (orjson.loads(bytes(rejected["data"])), rejected["_reason"]) == ({"k": "", "v": 3}, "empty: k")
    assert (rejected["shard_id"], fetched.rejected_count) == (None, 1)
    assert [tuple(row) for row in fetched.rows.collect()] == [("a", 2)]


def test_times_that_readers_with_sparks_defaults_fail_at_are_kept(
    spark: SparkSession, tmp_path: Path, write: Write
) -> None:
    ddl = "k string, v long, at timestamp, local timestamp_ntz, days map<string,array<struct<d:date>>>"
    sql = "SELECT *, if(k = 'made', to_timestamp('0001-01-01'), at) AS made FROM events"
    good = [
        {"k": "nulls", "v": 1, "days": {"x": [{"d": None}], "y": None}},
        {"k": "oldest", "v": 1, "at": "1900-01-01T00:00:00Z", "days": {"x": [{"d": "1582-10-15"}]}},
        {"k": "local", "v": 1, "local": "0001-01-01T00:00:00"},
    ]
    poison = [
        {"k": "zero", "v": 1, "at": "0001-01-01T00:00:00Z"},
        {"k": "seconds", "v": 1, "at": -2208988801},
        {"k": "nested", "v": 1, "days": {"x": [], "y": [{"d": "2026-01-31"}, {"d": "1582-10-14"}]}},
        {"k": "made", "v": 1},
    ]
    table = upserts(tmp_path)
    with opened(spark, table) as sink:
        rejected = write(sink, ddl, sql, [*good, *poison])
    why = "a timestamp before 1900 or a date before 1582-10-15: "
    columns = {"zero": "at", "seconds": "at", "nested": "days", "made": "made"}
    assert reasons(rejected, "k") == {key: why + column for key, column in columns.items()}
    stock = spark.newSession()
    stock.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")  # Spark's default
    assert {key for key, _ in rows_in(stock, table, "k", "cast(struct(*) as string)")} == {row["k"] for row in good}


def test_nulls_in_arrays_are_written_beside_lists_of_old(spark: SparkSession, tmp_path: Path, write: Write) -> None:
    ddl = "k string, v long, tags array<int>, deep struct<rows:array<map<string,array<string>>>>"
    old = [{"k": key, "v": 0, "tags": [7, 8], "deep": {"rows": [{"x": ["y", "z"]}]}} for key in ("a", "old")]
    new = [
        {"k": "a", "v": 1, "tags": [1, None], "deep": {"rows": [None, {"x": [None, "y"]}]}},
        {"k": "b", "v": 1, "tags": [None]},
    ]
    hadoop = spark._jsc.hadoopConfiguration()
    ours = hadoop.get("parquet.avro.write-old-list-structure")
    for number, table_type in enumerate(TableType):
        table = upserts(tmp_path / str(number), table_type=table_type, buckets=1)
        hadoop.set("parquet.avro.write-old-list-structure", "true")  # as before
        with opened(spark, table) as sink:
            write(sink, ddl, None, old)
        hadoop.set("parquet.avro.write-old-list-structure", ours)
        with opened(spark, table) as sink:
            assert write(sink, ddl, None, new, 1) == []
        found = rows_in(spark, table, "k", "v", "cast(tags as string)", "cast(deep.rows as string)")
        assert set(found) == {
            ("a", 1, "[1, null]", "[null, {x -> [null, y]}]"),
            ("b", 1, "[null]", None),
            ("old", 0, "[7, 8]", "[{x -> [y, z]}]"),
        }
