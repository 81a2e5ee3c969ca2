"""Orders in Hudi tables that our sink has written, and what is in them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import hudi
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.sinks.hudi.client import HudiClient
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream.sinks.hudi.options import write_options
from lakestream_api import TableType, TableVersion

COLUMNS = "order_id string, version long, note string, dt string, op string"
CHECKPOINT = str(uuid.UUID(int=7))
TABLES = pytest.mark.parametrize(
    ("table_type", "version"),
    [
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.NINE, id="cow-v9"),
        pytest.param(TableType.MERGE_ON_READ, TableVersion.SIX, id="mor-v6"),
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.SIX, id="cow-v6", marks=pytest.mark.slow),
        pytest.param(TableType.MERGE_ON_READ, TableVersion.NINE, id="mor-v9", marks=pytest.mark.slow),
    ],
)
"""Both versions, and both types; the rest is for the slow tests."""


@dataclass(frozen=True)
class Order:
    """One version of an order; its day is a function of its key."""

    key: str
    version: int
    op: str = "u"

    @property
    def row(self) -> tuple[str, int, str, str, str]:
        day = sum(self.key.encode()) % 2 + 1
        return self.key, self.version, f"{self.key}@{self.version}", f"2026-01-0{day}", self.op


def upserts(
    path: Path, table_type: TableType, version: TableVersion | None = None, retain: timedelta = timedelta(0)
) -> HudiSettings:
    return HudiSettings(
        path=f"file://{path}/orders",
        table="orders",
        record_key=("order_id",),
        ordering_field="version",
        table_type=table_type,
        table_version=version,
        partition_by=("dt",),
        delete_when="op = 'd'",
        buckets=2,
        compact_every=2,
        retain=retain,
    )


@contextmanager
def opened(spark: SparkSession, settings: HudiSettings, columns: str = COLUMNS) -> Iterator[HudiSink]:
    sink = HudiSink(spark, settings)
    try:
        sink.prepare(rows_of(spark, [], columns).schema)
        yield sink
    finally:
        sink.close()


def rows_of(spark: SparkSession, orders: Iterable[Order], columns: str = COLUMNS) -> DataFrame:
    return spark.createDataFrame([order.row for order in orders], columns).coalesce(2)


def client_of(spark: SparkSession, settings: HudiSettings) -> HudiClient:
    """As another driver has one."""
    return HudiClient(HudiTable(spark, settings), write_options(settings), rows_of(spark, []).schema)


def ref(batch: int) -> BatchRef:
    return BatchRef(batch, CHECKPOINT)


def snapshot(spark: SparkSession, settings: HudiSettings) -> dict[str, int]:
    found = spark.read.format("hudi").load(settings.path).select("order_id", "version", "note").collect()
    versions = {row.order_id: row.version for row in found}
    assert len(versions) == len(found), "a key has two rows"
    assert all(row.note == f"{row.order_id}@{row.version}" for row in found)
    return versions


def all_rows(spark: SparkSession, settings: HudiSettings) -> list[tuple[str, int]]:
    """Key and version of all rows, by Spark."""
    found = spark.read.format("hudi").load(settings.path).collect()
    return sorted((row.order_id, row.version) for row in found)


def all_rows_by_hudi_rs(settings: HudiSettings) -> list[tuple[str, int]]:
    """The same by another engine."""
    found = hudi.HudiTable(settings.path).read(hudi.HudiReadOptions())
    rows = pa.Table.from_batches(found).to_pylist() if found else []
    return sorted((row["order_id"], row["version"]) for row in rows)


class TakenAway:
    """Files that are not there, and come late."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._content = {path: path.read_bytes() for path in files}
        assert self._content
        for path in self._content:
            path.unlink()

    def land(self) -> None:
        for path, content in self._content.items():
            path.write_bytes(content)

    @property
    def are_there(self) -> bool:
        return any(path.exists() for path in self._content)


def fold(orders: Iterable[Order]) -> dict[str, int]:
    newest: dict[str, Order] = {}
    for order in orders:
        if order.key not in newest or newest[order.key].version < order.version:
            newest[order.key] = order
    return {key: order.version for key, order in newest.items() if order.op != "d"}
