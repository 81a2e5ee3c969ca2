"""One row for each key of a batch, as the table takes it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from lakestream.kinesis.objects import STEP
from lakestream.sinks.hudi import HudiSettings
from lakestream.sinks.hudi.newest import newest, nullable
from lakestream_api import IndexType, Operation

pytestmark = pytest.mark.spark

SETTINGS = HudiSettings(path="file:///none", table="orders", record_key=("key",), ordering_field="version")


def test_the_highest_version_stays_and_of_equal_ones_the_last(spark: SparkSession) -> None:
    sent = [("a", 2, "old"), ("b", 1, "first"), ("a", 3, "newest"), ("b", 1, "last"), ("a", 1, "late")]
    rows = spark.createDataFrame(
        [*sent, *((f"k{at}", at, "alone") for at in range(1_000))], "key string, version long, n string"
    )
    found = {row["key"]: row["n"] for row in newest(rows.coalesce(1), SETTINGS).collect()}
    assert (found.pop("a"), found.pop("b")) == ("newest", "last")
    assert len(found) == 1_000


def test_equal_versions_are_told_apart_by_their_sequence_numbers(spark: SparkSession) -> None:
    """Behind a join, rows are in any order."""
    sent = [
        ("a", 1, "100", 0, "last"),
        ("a", 1, "99", 7, "before"),
        ("a", 0, "101", 0, "older"),
        ("b", 1, "98", 1, "last"),
        ("b", 1, "98", 0, "before"),
        ("b", 1, None, None, "of no record"),
        ("c", 1, "97", 2, "last"),
        ("c", 1, "97", 1 + STEP, "the second object of the record before"),
        ("c", 1, "97", 1, "the first one"),
        ("d", 1, "97", 1 + 2 * STEP, "last"),
        ("d", 1, "97", 1 + STEP, "before"),
    ]
    rows = spark.createDataFrame(
        sent, "key string, version long, _sequence_number string, _sub_sequence long, n string"
    ).coalesce(1)
    for order in (rows, rows.orderBy("n")):
        assert {row["key"]: row["n"] for row in newest(order, SETTINGS).collect()} == dict.fromkeys("abcd", "last")
    changed = rows.selectExpr("key", "version", "1 AS _sequence_number", "_sub_sequence", "n")
    assert {row["n"] for row in newest(changed, SETTINGS).collect()} <= {row[-1] for row in sent}


def test_keys_are_one_if_hudi_takes_them_for_one(spark: SparkSession) -> None:
    """In it they are texts; and a partition that is null or empty is the same one."""
    settings = replace(SETTINGS, partition_by=("dt",))
    rows = spark.sql(
        """SELECT * FROM VALUES (0D, 1, 'x'), (-0D, 2, 'x'), (1D, 1, 'x'), (1D, 2, 'y'), (2D, 1, ''), (2D, 2, null)
        AS t(key, version, dt)"""
    )
    found = {(str(row["key"]), row["version"], row["dt"]) for row in newest(rows, settings).collect()}
    assert found == {("0.0", 1, "x"), ("-0.0", 2, "x"), ("1.0", 1, "x"), ("1.0", 2, "y"), ("2.0", 2, None)}
    in_all = replace(settings, index=IndexType.GLOBAL_SIMPLE)
    assert newest(rows, in_all).where("key = 1D").count() == 1


def test_of_inserts_each_row_stays(spark: SparkSession) -> None:
    rows = spark.sql("SELECT * FROM VALUES ('a', 1), ('a', 1) AS t(key, version)")
    assert newest(rows, replace(SETTINGS, operation=Operation.INSERT)) is rows


def test_columns_may_be_null_and_nothing_of_that_is_carried_out(spark: SparkSession) -> None:
    declared = spark.createDataFrame(
        [("x", 1, (2,))], "`a b` string not null, n int, s struct<x: int not null> not null"
    )
    rows = nullable(declared)
    assert all(field.nullable for field in rows.schema.fields)
    assert [field.dataType for field in rows.schema.fields] == [field.dataType for field in declared.schema.fields]
    assert rows.collect() == [("x", 1, (2,))]
    assert "if" not in rows._jdf.queryExecution().optimizedPlan().toString().lower()
