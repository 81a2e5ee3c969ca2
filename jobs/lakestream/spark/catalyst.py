"""Plans of Catalyst, through py4j."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.spark.parse import IDENTITY, jvm


def frame(spark: SparkSession, plan: Any) -> DataFrame:
    """The rows of a plan of Catalyst."""
    return DataFrame(jvm(spark).org.apache.spark.sql.Dataset.ofRows(spark._jsparkSession, plan), spark)


def project(spark: SparkSession, columns: list[Any], child: Any) -> Any:
    """The operator that makes these columns."""
    return jvm(spark).org.apache.spark.sql.catalyst.plans.logical.Project(seq(spark, columns), child)


def class_of(node: Any) -> str:
    """The name of an operator, or of an expression."""
    return str(node.getClass().getSimpleName())


def identity_in(view: Any) -> list[Any]:
    """The attributes of `IDENTITY` among those of the view of events."""
    by_name = {attribute.name(): attribute for attribute in listed(view.output())}
    return [by_name[name] for name in IDENTITY]


def listed(items: Any) -> list[Any]:
    """A sequence of Scala's."""
    return [items.apply(position) for position in range(items.size())]


def seq(spark: SparkSession, items: list[Any]) -> Any:
    """One of Scala's."""
    return jvm(spark).org.apache.spark.api.python.PythonUtils.toSeq(items)


def aggregate_of(expression: Any) -> Any:
    """The function of an aggregate that says besides where and how it is applied."""
    return expression.aggregateFunction() if class_of(expression) == "AggregateExpression" else expression


def replaced(function: Any) -> Any:
    """The aggregate that Spark puts in the place of one, as of `count_if`; itself, where it does not."""
    while "RuntimeReplaceableAggregate" in {kind.getSimpleName() for kind in function.getClass().getInterfaces()}:
        function = function.replacement()
    return function
