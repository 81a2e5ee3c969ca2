"""Any JSON by any schema, with real Spark: equal, or in quarantine with its bytes and the field that is why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakestream.kinesis import KinesisSettings
from lakestream.kinesis.batches import REASON
from lakestream.spark.events import DATA
from lakestream.spark.pipeline import Pipeline
from lakestream.spark.read import read_batch
from lakestream.spark.tallies import Tallies
from lakestream.testing.any_json import Object, columns, records, schemas, text_of
from lakestream.testing.json_model import is_same, lacking, misfits, tagged

# Without Spark, and of many more, `test_any_event` holds the events against the same model.
pytestmark = pytest.mark.spark

RECORDS = 25
"""By each schema; Spark takes half a second to begin with a schema."""
STYLES = ((",", ":"), (", ", " : "))


@given(
    drawn=schemas.flatmap(
        lambda schema: st.tuples(st.just(schema), st.lists(records(schema), min_size=25, max_size=25))
    )
)
# What fails is one record and is told; to make its schema and the other records smaller would take minutes.
@settings(max_examples=settings.default.max_examples // 12, phases=[Phase.reuse, Phase.generate])
def test_a_record_comes_out_equal_or_is_quarantined_with_its_bytes(
    spark: SparkSession,
    kinesis: KinesisSettings,
    scripted: Callable[..., Any],
    drawn: tuple[StructType, list[Object]],
) -> None:
    schema, events = drawn
    datas = [text_of(event, STYLES[number % 2]).encode() for number, event in enumerate(events)]
    pipeline = Pipeline.of(spark, columns(schema), None)
    assert pipeline.schema == schema
    plan, reader = scripted([datas])
    typed = read_batch(spark, kinesis, plan, plan.tasks, pipeline, reader, Tallies(spark))
    rows = pa.Table.from_batches(typed._collect_as_arrow()).to_pylist()  # type: ignore[operator]
    for event, data, row in zip(events, datas, rows, strict=True):
        assert row[DATA] == data
        if unfit := [path.removeprefix(".") for path in misfits(event, schema)]:
            assert row[REASON].rpartition(": ")[2] in unfit, (data, row[REASON])
        else:
            assert row[REASON] is None, (data, row[REASON])
            assert is_same(event, schema, row), (data, row)
            assert tagged(row["_rescued"]) == lacking(event, schema), (data, row["_rescued"])
