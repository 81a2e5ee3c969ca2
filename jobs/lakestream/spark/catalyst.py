"""Plans of Catalyst, through py4j."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.spark.parse import jvm


def frame(spark: SparkSession, plan: Any) -> DataFrame:
    """The rows of a plan of Catalyst."""
    return DataFrame(jvm(spark).org.apache.spark.sql.Dataset.ofRows(spark._jsparkSession, plan), spark)


def project(spark: SparkSession, columns: list[Any], child: Any) -> Any:
    """The operator that makes these columns."""
    return jvm(spark).org.apache.spark.sql.catalyst.plans.logical.Project(seq(spark, columns), child)


def listed(items: Any) -> list[Any]:
    """A sequence of Scala's."""
    return [items.apply(position) for position in range(items.size())]


def seq(spark: SparkSession, items: list[Any]) -> Any:
    """One of Scala's."""
    return jvm(spark).org.apache.spark.api.python.PythonUtils.toSeq(items)
