"""The examples for what AWS DMS, Debezium, DynamoDB, CloudWatch, CloudFront and serializers of the Glue Schema Registry
write to Kinesis, with such records."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import boto3
import pytest
from moto_s3 import moto_s3
from pyspark.sql import Row, SparkSession

from hudi_orders import ref
from lakestream import settings
from lakestream.avro import RegistrySettings
from lakestream.errors import SchemaError
from lakestream.kinesis import KinesisSettings
from lakestream.model import RecordFormat
from lakestream.sinks.hudi import HudiSink
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies
from lakestream.testing.avro import blocks, branch, decimal, framed, long, record, text
from lakestream_api import LakeStream, load_lakestream

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACED_AT, PLACED = "2026-01-31T12:00:00Z", "2026-01-31 12:00:00"


@pytest.fixture
def kept(
    spark: SparkSession, interpreted: None, kinesis: KinesisSettings, scripted: Callable[..., Any], tmp_path: Path
) -> Callable[..., tuple[list[Row], list[bytes]]]:
    """The rows of the table that an example keeps of batches of records, with times as texts, and what went to
    quarantine."""

    def keep(example: str, *batches: list[bytes]) -> tuple[list[Row], list[bytes]]:
        document = _below(load_lakestream((EXAMPLES / example).read_text("utf-8")), tmp_path)
        (writer,) = document.spec.writers
        assert writer.hudi is not None
        definition = settings.definition(document, writer)
        sink = HudiSink(spark, settings.hudi_settings(writer.hudi, "orders", definition))
        rejected: list[bytes] = []
        try:
            pipeline = Pipeline.of(
                *(spark, definition.schema, definition.transform, sink.refusal, definition.delete_when),
                filters=definition.filters,
                record_format=definition.record_format,
                registry=RegistrySettings("eu-west-1"),
            )
            assert pipeline.is_by_row
            sink.prepare(pipeline.output)
            for number, records in enumerate(batches):
                plan, reader = scripted([records])
                read = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
                divided = pipeline.divide(read)
                rejected += [bytes(row["data"]) for row in divided.rejected.collect()]
                sink.write(ref(number), divided.rows, replay=False)
        finally:
            sink.close()
        table = spark.read.format("hudi").load(writer.hudi.path)
        times = {name: table[name].cast("string") for name, type in table.dtypes if type == "timestamp"}
        return table.withColumns(times).collect(), rejected

    return keep


def by_id(orders: list[Row]) -> dict[int, tuple[Any, ...]]:
    rows = {row.id: (row.status, row.amount, row.placed_at) for row in orders}
    assert len(rows) == len(orders)
    return rows


def _below(document: LakeStream, folder: Path) -> LakeStream:
    """The same with a table in a folder."""
    (writer,) = document.spec.writers
    assert writer.hudi is not None
    local = writer.model_copy(update={"hudi": writer.hudi.model_copy(update={"path": f"file://{folder}/table"})})
    return document.model_copy(update={"spec": document.spec.model_copy(update={"writers": (local,)})})


def dms(operation: str, second: int, table: str = "orders", **data: Any) -> bytes:
    metadata = {
        "timestamp": f"2026-02-18T23:57:{second:02}.970360Z",
        "record-type": "data" if data else "control",
        "operation": operation,
        "partition-key-type": "primary-key",
        "schema-name": "shop",
        "table-name": table,
        "transaction-id": 87978110091475,
    }
    return json.dumps(({"data": data} if data else {}) | {"metadata": metadata}, indent="\t").encode()


def test_a_table_of_a_database_by_aws_dms(kept: Callable[..., Any]) -> None:
    rows, rejected = kept(
        "cdc-dms.yaml",
        [
            dms("create-table", 1),
            dms("load", 2, id=1, status="new", amount=12.50, placed_at=PLACED_AT),
            dms("load", 2, id=2, status="new", amount=7, placed_at=PLACED_AT),
            dms("load", 2, id=3, status="new", amount=1, placed_at=PLACED_AT),
            dms("insert", 3, table="customers", id=1, name="Ada"),
            dms("update", 5, id=1, status="paid", amount=12.50, placed_at=PLACED_AT),
        ],
        [
            dms("delete", 9, id=2),
            dms("update", 8, id=2, status="late", amount=7, placed_at=PLACED_AT),
            # What is null, DMS leaves out.
            dms("update", 9, id=3, amount=1),
            dms("insert", 10, id=4, status="new", amount=0.1, placed_at=PLACED_AT),
            dms("insert", 11, table="customers", id="ada"),
        ],
    )
    assert by_id(rows) == {
        1: ("paid", Decimal("12.50"), PLACED),
        3: (None, Decimal("1.00"), None),
        4: ("new", Decimal("0.10"), PLACED),
    }
    assert rejected == [], "an id of another table is no BIGINT"


def debezium(op: str, lsn: int, before: Any = None, after: Any = None, table: str = "orders") -> bytes:
    source = {
        "version": "3.0.0.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": 1_769_860_800_000,
        "snapshot": "false",
        "db": "shop",
        "sequence": f'["{lsn - 8}","{lsn}"]',
        "ts_us": 1_769_860_800_000_000,
        "ts_ns": 1_769_860_800_000_000_000,
        "schema": "public",
        "table": table,
        "txId": 571,
        "lsn": lsn,
        "xmin": None,
    }
    told = {"before": before, "after": after, "source": source, "transaction": None, "op": op, "ts_ms": 1}
    return json.dumps(told).encode()


def test_a_table_of_a_database_by_debezium(kept: Callable[..., Any]) -> None:
    def row(key: int, status: str) -> dict[str, Any]:
        return {"id": key, "status": status, "amount": "12.50", "placed_at": PLACED_AT}

    rows, rejected = kept(
        "cdc-debezium.yaml",
        [
            debezium("r", 100, after=row(1, "new")),
            debezium("r", 100, after=row(2, "new")),
            debezium("c", 110, after={"id": 1, "name": "Ada"}, table="customers"),
            debezium("c", 111, after={"id": "ada", "amount": [1]}, table="visitors"),
            debezium("u", 120, after=row(1, "paid")),
        ],
        [
            # Of the key alone, as PostgreSQL has it unless told otherwise.
            debezium("d", 140, before={"id": 2, "status": None, "amount": None, "placed_at": None}),
            debezium("u", 130, after=row(2, "late")),
            debezium("c", 150, after=row(3, "new")),
            debezium("t", 160),
            b"",
        ],
    )
    assert by_id(rows) == {1: ("paid", Decimal("12.50"), PLACED), 3: ("new", Decimal("12.50"), PLACED)}
    assert rejected == [b""], "a tombstone"


def dynamodb(event: str, millis: int, key: int, **item: Any) -> bytes:
    image = {"id": {"N": str(key)}, **item}
    told = {
        "awsRegion": "eu-west-1",
        "eventID": "6f773704-d244-414f-9590-5e9e9045409d",
        "eventName": event,
        "userIdentity": None,
        "recordFormat": "application/json",
        "tableName": "orders",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_649_930_048_000 + millis,
            "Keys": {"id": {"N": str(key)}},
            **({"OldImage": image} if event == "REMOVE" else {"NewImage": image}),
            "SizeBytes": 120,
        },
        "eventSource": "aws:dynamodb",
    }
    return json.dumps(told).encode()


def exported(key: int, **item: Any) -> bytes:
    """A line of an export to S3, in DynamoDB's JSON."""
    return json.dumps({"Item": {"id": {"N": str(key)}, **item}}).encode()


def test_a_table_of_dynamodb(kept: Callable[..., Any]) -> None:
    def item(status: str) -> dict[str, Any]:
        return {"status": {"S": status}, "amount": {"N": "12.5"}, "placed_at": {"S": PLACED_AT}, "tags": {"SS": ["a"]}}

    twice = dynamodb("INSERT", 1, 2, **item("new"))
    rows, rejected = kept(
        "cdc-dynamodb.yaml",
        [
            *(dynamodb("INSERT", 0, 1, **item("new")), twice, twice),
            dynamodb("MODIFY", 5, 1, **item("paid")),
        ],
        [
            dynamodb("REMOVE", 9, 2, **item("late")),
            dynamodb("MODIFY", 8, 2, **item("late")),
            dynamodb("MODIFY", 9, 3, status={"NULL": True}),
            b"{}",
        ],
        [exported(1, **item("new")), exported(4, **item("old"))],
    )
    assert by_id(rows) == {
        1: ("paid", Decimal("12.50"), PLACED),
        3: (None, None, None),
        4: ("old", Decimal("12.50"), PLACED),
    }
    assert rejected == [b"{}"]


def test_lines_of_cloudfronts_real_time_logs(
    spark: SparkSession, kinesis: KinesisSettings, scripted: Callable[..., Any]
) -> None:
    document = load_lakestream((EXAMPLES / "cloudfront-logs.yaml").read_text("utf-8"))
    definition = settings.definition(document, document.spec.writers[0])
    pipeline = Pipeline.of(*(spark, definition.schema, definition.transform), record_format=definition.record_format)
    assert pipeline.is_by_row
    lines = [
        b"1769860800.123\t192.0.2.1\t0.002\t200\tGET\t/orders/%C3%BC\n",
        b"1769860801.000\t2001:db8::1\t-\t404\tGET\t/\n",
        b"\xff\n",
    ]
    plan, reader = scripted([lines])
    read = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    divided = pipeline.divide(read)
    rows = divided.rows.select(divided.rows["at"].cast("string"), *divided.rows.columns[1:]).collect()
    assert [tuple(row)[: len(pipeline.output)] for row in rows] == [
        ("2026-01-31 12:00:00.123", "192.0.2.1", 0.002, 200, "GET", "/orders/%C3%BC", "2026-01-31"),
        ("2026-01-31 12:00:01", "2001:db8::1", None, 404, "GET", "/", "2026-01-31"),
    ]
    assert [(bytes(row["data"]), row["_reason"]) for row in divided.rejected.collect()] == [(lines[2], "not UTF-8")]


@pytest.mark.parametrize("ddl", ["line STRING, n INT", "line BINARY", "n BIGINT"])
def test_a_text_has_one_column(spark: SparkSession, ddl: str) -> None:
    with pytest.raises(SchemaError, match=r"spec\.schema: by spec\.format a record is a text: give one column"):
        Pipeline.of(spark, ddl, None, record_format=RecordFormat.TEXT)


def logged(kind: str, *events: dict[str, Any]) -> bytes:
    """A record as the user guide of CloudWatch Logs has it."""
    told = {
        "messageType": kind,
        "owner": "111111111111",
        "logGroup": "/shop/web",
        "logStream": "web-1",
        "subscriptionFilters": ["lake"],
        "logEvents": events,
    }
    return gzip.compress(json.dumps(told).encode())


def test_a_table_of_log_events_by_cloudwatch_logs(kept: Callable[..., Any]) -> None:
    first = {
        "id": "31953106606966983378809025079804211143289615424298221568",
        "timestamp": 1432826855000,
        "message": "a",
    }
    second = {
        "id": "31953106606966983378809025079804211143289615424298221569",
        "timestamp": 1432826855001,
        "message": "b",
    }
    with_fields = {**second, "id": "3", "message": "GET 200", "extractedFields": {"status": "200"}}
    damaged = logged("DATA_MESSAGE", first)[:-8]
    rows, rejected = kept(
        "cloudwatch-logs.yaml",
        [logged("CONTROL_MESSAGE", {**first, "id": "", "message": "CWL CONTROL MESSAGE"}), damaged],
        [logged("DATA_MESSAGE", first, second), logged("DATA_MESSAGE", second, with_fields)],
    )
    assert sorted(
        (row.at, row.log_group, row.log_stream, row.message, row.extracted_fields, row.dt) for row in rows
    ) == [
        ("2015-05-28 15:27:35", "/shop/web", "web-1", "a", None, "2015-05-28"),
        ("2015-05-28 15:27:35.001", "/shop/web", "web-1", "GET 200", {"status": "200"}, "2015-05-28"),
        ("2015-05-28 15:27:35.001", "/shop/web", "web-1", "b", None, "2015-05-28"),
    ]
    assert rejected == [damaged]


@pytest.fixture
def glue(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A client of a Glue that executors ask, too."""
    with moto_s3("schemas") as url:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setitem(spark.sparkContext.environment, name, "test")
            monkeypatch.setenv(name, "test")
        monkeypatch.setitem(spark.sparkContext.environment, "AWS_ENDPOINT_URL_GLUE", url)
        client = boto3.client("glue", "eu-west-1", endpoint_url=url)
        yield client
        client.close()


MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}
LINE = record("shop.Line", {"sku": "string", "pieces": "int"})
ORDER = record(
    "shop.Order",
    {
        "id": "long",
        "version": "long",
        "status": {"type": "enum", "name": "Status", "symbols": ["new", "paid"]},
        "amount": ["null", MONEY],
        "placed_at": {"type": "long", "logicalType": "timestamp-micros"},
        "lines": {"type": "array", "items": LINE},
    },
)


def ordered(key: int, version: int, status: int, cents: int | None) -> bytes:
    amount = branch(0, b"") if cents is None else branch(1, decimal(cents))
    lines = blocks([text("ü-1") + long(2), text("x") + long(-1)])
    return long(key) + long(version) + long(status) + amount + long(1_769_860_800_000_000) + lines


def test_orders_in_avro_by_schemas_of_the_registry(kept: Callable[..., Any], glue: Any) -> None:
    glue.create_registry(RegistryName="shop")
    of = {"SchemaName": "order", "RegistryName": "shop"}
    first = glue.create_schema(
        RegistryId={"RegistryName": "shop"},
        SchemaName="order",
        DataFormat="AVRO",
        Compatibility="BACKWARD",
        SchemaDefinition=json.dumps(ORDER),
    )
    more = {**ORDER, "fields": [*ORDER["fields"], {"name": "coupon", "type": ["null", "string"], "default": None}]}
    second = glue.register_schema_version(SchemaId=of, SchemaDefinition=json.dumps(more))
    v1, v2 = UUID(first["SchemaVersionId"]), UUID(second["SchemaVersionId"])
    unusable = [
        framed(UUID(int=7), ordered(9, 1, 0, 1)),
        framed(v1, ordered(9, 1, 0, 1)[:-3]),
        b'{"id":9,"version":1}',
        framed(v1, ordered(9, 1, 0, 10**12)),
    ]
    rows, rejected = kept(
        "schema-registry.yaml",
        [framed(v1, ordered(1, 1, 0, 1250)), unusable[0], framed(v1, ordered(2, 1, 0, None), compressed=True)],
        [*unusable[1:], framed(v2, ordered(1, 2, 1, 1250) + branch(1, text("WELCOME")))],
    )
    lines = [("ü-1", 2), ("x", -1)]
    assert sorted(
        (row.id, row.status, row.amount, row.placed_at, [*map(tuple, row.lines)], row._rescued, row.dt) for row in rows
    ) == [
        (1, "paid", Decimal("12.50"), PLACED, lines, '{"coupon":"WELCOME"}', "2026-01-31"),
        (2, "new", None, PLACED, lines, None, "2026-01-31"),
    ]
    assert sorted(rejected) == sorted(unusable)
