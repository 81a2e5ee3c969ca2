"""The examples of docs/cdc.md, with changes as AWS DMS and Debezium write them."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from hudi_orders import ref
from lakestream import settings
from lakestream.kinesis import KinesisSettings
from lakestream.sinks.hudi import HudiSink
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies
from lakestream_api import LakeStream, load_lakestream

pytestmark = pytest.mark.spark

EXAMPLES = Path(__file__).parents[2] / "examples"
PLACED_AT, PLACED = "2026-01-31T12:00:00Z", "2026-01-31 12:00:00"


@pytest.fixture
def kept(
    spark: SparkSession, interpreted: None, kinesis: KinesisSettings, scripted: Callable[..., Any], tmp_path: Path
) -> Callable[..., tuple[dict[int, tuple[Any, ...]], list[bytes]]]:
    """The table that an example keeps of batches of records, by its key, and what went to quarantine."""

    def keep(example: str, *batches: list[bytes]) -> tuple[dict[int, tuple[Any, ...]], list[bytes]]:
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
        found = table.withColumn("placed_at", table.placed_at.cast("string")).collect()
        rows = {row.id: (row.status, row.amount, row.placed_at) for row in found}
        assert len(rows) == len(found)
        return rows, rejected

    return keep


def _below(document: LakeStream, folder: Path) -> LakeStream:
    """The same with a table in a folder."""
    (writer,) = document.spec.writers
    assert writer.hudi is not None
    local = writer.model_copy(update={"hudi": writer.hudi.model_copy(update={"path": f"file://{folder}/orders"})})
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
    assert rows == {
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
    assert rows == {1: ("paid", Decimal("12.50"), PLACED), 3: ("new", Decimal("12.50"), PLACED)}
    assert rejected == [b""], "a tombstone"
