"""What Spark's Python workers have when they are forked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NEEDED = ("lakestream.spark.read", "lakestream.kinesis", "orjson", "pandas")


def test_a_worker_has_what_tasks_import(spark: SparkSession) -> None:
    wanted = NEEDED

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        there = [name in sys.modules for name in wanted]
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([all(there)])], names=["there"])

    assert [row.there for row in spark.range(1).mapInArrow(look, "there boolean").collect()] == [True]
