"""SQL that makes texts of bytes, and rows with texts that are none."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lakestream.spark.pipeline import Pipeline

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TEXT = "CAST(unbase64(s) AS STRING)"


@pytest.mark.parametrize(
    "column",
    [
        TEXT,
        f"named_struct('n', 1, 'a', array('ü', {TEXT}))",
        f"map({TEXT}, 1)",
        f"map('k', array(named_struct('a', {TEXT})))",
    ],
)
def test_bytes_that_are_no_text_are_refused(spark: SparkSession, column: str) -> None:
    sql = f"SELECT {column} AS made, s FROM {{}}"
    pipeline = Pipeline.of(spark, "s string", sql.format("events"))
    assert pipeline.refusal is not None
    # ab, ü, nothing, a part of a letter, and a surrogate.
    rows = spark.sql(sql.format("VALUES ('YWI='), ('w7w='), (''), ('YWL/'), ('7aCA') AS events(s)"))
    found = [row[0] for row in rows.select(pipeline.refusal).collect()]
    assert found == [None, None, None, "not UTF-8: made", "not UTF-8: made"]


def test_a_null_is_no_such_text(spark: SparkSession) -> None:
    nulls = "CAST(NULL AS STRING) AS a, CAST(NULL AS STRUCT<x: STRING>) AS b, array(CAST(NULL AS STRING)) AS c"
    pipeline = Pipeline.of(spark, "b binary", f"SELECT {nulls}, CAST(NULL AS MAP<STRING, STRING>) AS d FROM events")
    assert pipeline.refusal is not None
    rows = spark.sql(f"SELECT {nulls}, CAST(NULL AS MAP<STRING, STRING>) AS d")
    assert rows.select(pipeline.refusal).first()[0] is None


@pytest.mark.parametrize("sql", [None, "SELECT s, upper(s) AS u FROM events"])
def test_where_no_bytes_are_nothing_is_looked_at(spark: SparkSession, sql: str | None) -> None:
    assert Pipeline.of(spark, "s string", sql).refusal is None
