"""Raw records to typed events, with real Spark."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from lakestream.errors import SchemaError
from lakestream.kinesis import KinesisSettings
from lakestream.kinesis.batches import REASON
from lakestream.model import RecordFormat
from lakestream.spark.events import DATA
from lakestream.spark.parse import good_events, parse_schema, rejected_records
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies

pytestmark = pytest.mark.spark

DDL = (
    "id string, n long, small int, t timestamp, d double, flag boolean, day date, price decimal(5,2), "
    "tags array<int>, inner struct<x:int>, blob binary, local timestamp_ntz, `it's` int"
)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999)
MEBIBYTE = b"x" * (1 << 20)

GOOD: list[tuple[bytes, dict[str, Any]]] = [
    (b'{"id":"a","n":1}', {"id": "a", "n": 1}),
    (b"{}", {}),
    (b'{"id":null}', {}),
    (b'{"id":7}', {"id": "7"}),
    (b'{"id":{"z": 1}}', {"id": '{"z":1}'}),
    (b'{"id":1.10}', {"id": "1.10"}),
    (b'{"id":100000000000000000000.5}', {"id": "100000000000000000000.5"}),
    (b'{"id":"x","id":"y"}', {"id": "y"}),
    ('{"id":"Zoë \\u00e9 😀"}'.encode(), {"id": "Zoë é 😀"}),
    (b'{"id":"\\u0000"}', {"id": "\x00"}),
    (b'{"n":9223372036854775807}', {"n": 2**63 - 1}),
    (b'{"t":"2026-01-31T12:00:00.123456Z"}', {"t": datetime(2026, 1, 31, 12, 0, 0, 123456)}),
    (b'{"t":"2026-01-31T12:00:00+02:00"}', {"t": datetime(2026, 1, 31, 10)}),
    (b'{"t":"2026-01-31T12:00+02:00"}', {"t": datetime(2026, 1, 31, 10)}),  # as Java's OffsetDateTime writes it
    (b'{"t":"2026-01-31 12:00-0040"}', {"t": datetime(2026, 1, 31, 12, 40)}),
    (b'{"t":"2026-01-31T12:00Z"}', {"t": datetime(2026, 1, 31, 12)}),
    (b'{"t":"2026-01-31T12:00:00"}', {"t": datetime(2026, 1, 31, 12)}),
    (b'{"t":1769860800}', {"t": datetime(2026, 1, 31, 12)}),
    (b'{"day":"2026-01-31","price":123.45}', {"day": date(2026, 1, 31), "price": Decimal("123.45")}),
    (b'{"t":"9999-12-31T23:59:59.9999999Z","price":"1.5"}', {"t": LAST, "price": Decimal("1.50")}),
    (b'{"d":0.%s}' % (b"3" * 2000), {"d": 1 / 3}),
    (b'{"d":1,"flag":true,"tags":[1,2]}', {"d": 1.0, "flag": True, "tags": [1, 2]}),
    (b'{"inner":{"x":1},"blob":"AQI="}', {"inner": Row(x=1), "blob": bytearray(b"\x01\x02")}),
    (b'{"id":"' + MEBIBYTE + b'"}', {"id": MEBIBYTE.decode()}),
]

BAD: list[tuple[bytes, str]] = [
    (b"", "empty"),
    (b'{"id":', "not JSON"),
    (b'{"n":1}{"n":2}', "JSON with more behind it"),
    (b'{"d":NaN}', "not JSON"),
    (b'{"id":"\xc3\x28"}', "not UTF-8"),
    (bytes(range(256)), "not UTF-8"),
    (b"[]", "not a JSON object"),
    (b'{"id":"' + MEBIBYTE, "not JSON"),
    (b'{"n":"5"}', "does not match the schema: n"),
    (b'{"id":"a","n":5.5}', "does not match the schema: n"),
    (b'{"n":9223372036854775808}', "does not fit bigint: n"),
    (b'{"small":3000000000}', "does not fit int: small"),
    (b'{"t":"yesterday"}', "does not match the schema: t"),
    (b'{"t":"2026-02-31T12:00:00Z"}', "does not match the schema: t"),
    # Spark would take today's date, and tomorrow's if the batch were read again then.
    (b'{"t":"12:00"}', "a time without a date: t"),
    (b'{"t":"T12:00:00Z"}', "a time without a date: t"),
    (b'{"local":"12:00"}', "a time without a date: local"),
    (b'{"day":"12:00"}', "does not match the schema: day"),
    # Spark's own default would fail the batch on this one.
    (b'{"day":"2026-13-01"}', "does not match the schema: day"),
    (b'{"d":"NaN"}', "does not match the schema: d"),
    (b'{"flag":"true"}', "does not match the schema: flag"),
    (b'{"price":123456}', "does not fit decimal(5,2): price"),
    (b'{"tags":[1,"x"]}', "does not match the schema: tags[1]"),
    (b'{"tags":1}', "does not match the schema: tags"),
    (b'{"blob":"not base64!"}', "does not match the schema: blob"),
    (b'{"inner":{"x":"q"}}', "does not match the schema: inner.x"),
    (b'{"it\'s":"x"}', "does not match the schema: it's"),
    # Spark works on this one for eight minutes.
    (b'{"price":1e100000000}', "does not fit decimal(5,2): price"),
    (b'{"t":1769860800000}', "seconds since the epoch expected, these look like milliseconds: t"),
    # And takes these for days since the epoch, or leaves out what is behind the date.
    (b'{"day":"20260131"}', "does not match the schema: day"),
    (b'{"day":"2026-01-31T23:59:59Z"}', "does not match the schema: day"),
]


@pytest.fixture(scope="module")
def typed(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> Callable[..., tuple[Pipeline, list[Row]]]:
    def parse(records: list[bytes], ddl: str = DDL) -> tuple[Pipeline, list[Row]]:
        pipeline = Pipeline.of(spark, ddl, None)
        plan, reader = scripted([records])
        return pipeline, read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark)).collect()

    return parse


def test_good_records_become_events(typed: Callable[..., tuple[Pipeline, list[Row]]]) -> None:
    pipeline, rows = typed([record for record, _ in GOOD])
    for (record, fields), row in zip(GOOD, rows, strict=True):
        found = {name: row[name] for name in pipeline.schema.names}
        assert (row[REASON], found) == (None, dict.fromkeys(pipeline.schema.names) | fields), record[:80]


def test_bad_records_keep_their_bytes_and_have_a_reason(typed: Callable[..., tuple[Pipeline, list[Row]]]) -> None:
    _, rows = typed([record for record, _ in BAD])
    for (record, reason), row in zip(BAD, rows, strict=True):
        assert (row[REASON], bytes(row[DATA]) == record) == (reason, True), record[:80]


def test_unknown_fields_are_rescued_beside_a_good_event(typed: Callable[..., tuple[Pipeline, list[Row]]]) -> None:
    _, (row,) = typed([b'{"id":"a","ID":"b","new":{"x":[1.10]},"inner":{"x":1,"y":2}}'])
    assert (row["id"], row["inner"]) == ("a", Row(x=1))
    assert row["_rescued"] == '{"ID":"b","new":{"x":[1.10]},"inner":{"y":2}}'


def test_a_missing_field_that_is_not_null_is_a_reason(typed: Callable[..., tuple[Pipeline, list[Row]]]) -> None:
    records = [b'{"id":"a","n":1}', b'{"n":1}', b'{"id":null,"n":1}', b'{"id":"a"}', b"oops"]
    _, rows = typed(records, "id string not null, n long not null")
    assert [row[REASON] for row in rows] == [None, "missing: id", "missing: id", "missing: n", "not JSON"]


def test_events_have_the_columns_of_the_schema_and_of_kinesis(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    pipeline = Pipeline.of(spark, "id string", None)
    plan, reader = scripted([[b'{"id":"a"}', b"bad"], [b'{"id":"b","x":1}']])
    typed = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    rows = [row.asDict() for row in good_events(typed).collect()]
    arrival = datetime(2026, 1, 31, 12)
    common = {"_sequence_number": "1", "_sub_sequence": 0, "_arrival": arrival, "_partition_key": "key-1"}
    assert rows == [
        {"id": "a", "_rescued": None, "_shard_id": "shardId-000000000000", **common},
        {"id": "b", "_rescued": '{"x":1}', "_shard_id": "shardId-000000000001", **common},
    ]


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("", "spec.schema: .*syntax error"),
        ("id strin", "spec.schema: .*strin"),
        ("id string,, n long", "spec.schema: .*[Ss]yntax error"),
        ("id string, ID long", "spec.schema: columns id and ID differ at most in case"),
        ("id string, _arrival timestamp", "spec.schema: the name of column _arrival is taken"),
        ("_hoodie_record_key string", "spec.schema: the name of column _hoodie_record_key is taken"),
        ("id string, m map<int,string>", "spec.schema: .*map"),
        ("id string, m interval", "spec.schema: .*interval"),
        ("id string, m array<interval day to second>", "spec.schema: a value of interval day to second is not read"),
        ("id string, m void", "spec.schema: a value of void is not read"),
        ("id string, p struct<a:int,b:int,a:string>", "spec.schema: column p.a is there twice; keep one"),
        ("m map<string,array<struct<n:struct<`x y`:int,`x y`:int>>>>", "spec.schema: column m.n.x y is there twice"),
        ("id varchar(3)", "spec.schema: a value of varchar"),
        ("id varchar(3", "spec.schema: .*syntax error"),
    ],
)
def test_a_wrong_schema_is_refused_by_name(spark: SparkSession, ddl: str, message: str) -> None:
    with pytest.raises(SchemaError, match=f"(?i){message}"):
        Pipeline.of(spark, ddl, None)


def test_fields_of_a_struct_may_differ_in_case(spark: SparkSession) -> None:
    assert parse_schema(spark, "p struct<a:int,A:int>, q struct<a:int>").names == ["p", "q"]


def test_not_null_is_kept_in_the_schema(spark: SparkSession) -> None:
    assert [field.nullable for field in parse_schema(spark, "id string not null, n long").fields] == [False, True]


def test_each_object_of_a_record_is_an_event(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    records = [
        b'{"id":"a","n":1}\n{"id":"b","n":"x"}\n{"id":"c","n":3,"more":true}\n',
        gzip.compress(b'{"id":"d"} {"id":"e"}{"id":'),
        b'{"id":"f","n":null}',
    ]
    pipeline = Pipeline.of(spark, "id string, n long", None, record_format=RecordFormat.JSONL)
    plan, reader = scripted([records])
    tallies = Tallies(spark)
    frame = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, tallies)
    rows = [
        (row.id, row.n, row._rescued, row._sequence_number, row._sub_sequence, row[REASON]) for row in frame.collect()
    ]
    assert rows == [
        ("a", 1, None, "1", 0, None),
        (None, None, None, "1", 2**32, "does not match the schema: n"),
        ("c", 3, '{"more":true}', "1", 2 * 2**32, None),
        ("d", None, None, "2", 0, None),
        ("e", None, None, "2", 2**32, None),
        (None, None, None, "2", 2 * 2**32, "not JSON"),
        ("f", None, None, "3", 0, None),
    ]
    rejected = rejected_records(frame).collect()
    assert [bytes(row["data"]) for row in rejected] == [b'{"id":"b","n":"x"}', b'{"id":']
    ((tally,),) = tallies.of(plan.batch).values()
    assert (tally.records, tally.kinesis_records, tally.rejected) == (7, 3, 2)
    assert tally.bytes == sum(map(len, records))
