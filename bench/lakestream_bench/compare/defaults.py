"""Hudi's own DataSource as a sink: what a team has that sets key, partition and ordering field, and leaves the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from lakestream.model import ServiceStatus, SinkCommit
from lakestream.sinks.contract import BatchRef
from lakestream_bench.compare.arms import DELETES, KEY, ORDER, PARTITION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

OPTIONS = {
    "hoodie.table.name": "defaults",
    "hoodie.datasource.write.recordkey.field": KEY,
    "hoodie.datasource.write.partitionpath.field": PARTITION,
    "hoodie.table.ordering.fields": ORDER,
    # Not a default, but what makes a filter on the partition's column find its folder in all engines, as ours does.
    "hoodie.datasource.write.hive_style_partitioning": "true",
}
"""Deletes are rows with Hudi's own mark, `_hoodie_is_deleted`."""


class DefaultsSink:
    """A `Sink` without any of its promises: a replay writes again, and no batch is found."""

    name = "hudi"
    services: tuple[ServiceStatus, ...] = ()
    remembered_deletes = 0
    largest_file = 0

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        self._path = path
        self.columns = StructType()
        """Those that are written, without Hudi's own."""

    def refusal(self, output: StructType) -> Column | None:
        return None

    def prepare(self, output: StructType) -> None:
        """The first write makes the table."""
        self.columns = output

    def tend(self) -> None:
        """Hudi's defaults do all of it with a batch."""

    def partitions(self) -> tuple[str, ...]:
        """Nobody asks this sink."""
        return ()

    def find(self, ref: BatchRef) -> SinkCommit | None:
        return None

    def write(self, ref: BatchRef, rows: DataFrame, *, replay: bool) -> SinkCommit:
        marked = rows.withColumn("_hoodie_is_deleted", sf.expr(DELETES))
        marked.write.format("hudi").options(**OPTIONS).mode("append").save(self._path)
        return SinkCommit(rows=0, bytes=0)

    def close(self) -> None:
        """Nothing runs beside the batches."""
