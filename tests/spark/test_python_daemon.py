"""What Spark's Python workers have when they are forked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lakestream.spark.arrow import map_in_arrow

pytestmark = pytest.mark.spark

NEEDED = ("lakestream.spark.read", "lakestream.kinesis", "orjson")


def test_a_worker_has_what_tasks_import(spark: SparkSession) -> None:
    wanted = NEEDED

    def look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import sys

        there = [name in sys.modules for name in wanted]
        for _ in batches:
            yield pa.RecordBatch.from_arrays([pa.array([all(there)])], names=["there"])

    assert [row.there for row in map_in_arrow(spark.range(1), look, "there boolean").collect()] == [True]
