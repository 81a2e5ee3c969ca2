"""Records at which the document's SQL fails: Spark ends a job at the first value for which a function has no result.

All of them are found in one job, by `TryEval`, with which Spark makes `try_add` of `+`: null where its expression
fails. Rows are made of one record each here, by operators that are walked from the view up: at each of them those rows
go on for which all of its expressions have a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.errors import SinkError
from lakestream.spark.catalyst import class_of, frame, identity_in, listed, project, seq
from lakestream.spark.failures import SPARK_ERRORS, WRITER, in_our_words
from lakestream.spark.parse import IDENTITY, jvm

_REUSE = "spark.sql.subexpressionElimination.enabled"
_TRIED = replace(WRITER, at_a_value="")
_SURE = {"AttributeReference", "Literal"}
"""Expressions that fail at nothing."""


def failure_of(rows: DataFrame) -> SinkError | None:
    """What a job that makes all of the rows fails with; None: it does not.

    Raises:
        LakeStreamError: it fails with something that is no failure of Spark's, as of a store.
    """
    try:
        rows.write.format("noop").mode("overwrite").save()
    except SPARK_ERRORS as error:
        told = in_our_words(error, _TRIED)
        if isinstance(told, SinkError):
            return told
        raise told from error
    return None


def failing_records(rows: DataFrame) -> tuple[DataFrame, int] | None:
    """`IDENTITY` of the records at which a query fails, each once, kept by the executors until it is unpersisted, and
    how many they are. None: it has no expression that could fail.

    Args:
        rows: of a query for which `is_by_row` holds.
    """
    spark = rows.sparkSession
    _, identity, failing = _walk(spark, rows._jdf.queryExecution().analyzed())
    if not failing:
        return None
    frames = [frame(spark, project(spark, identity, plan)).toDF(*IDENTITY) for plan in failing]
    found = reduce(DataFrame.unionAll, frames).distinct().persist()
    with _each_for_itself(spark):
        return found, found.count()


@contextmanager
def _each_for_itself(spark: SparkSession) -> Iterator[None]:
    """What several expressions have in common is worked out before all of them otherwise: before any is tried."""
    before = spark.conf.get(_REUSE)
    spark.conf.set(_REUSE, "false")
    try:
        yield
    finally:
        spark.conf.set(_REUSE, str(before))


def _walk(spark: SparkSession, plan: Any) -> tuple[Any, list[Any], list[Any]]:
    """The plan without the rows at which it fails, the attributes of `IDENTITY` in its output, and those rows: a plan
    for each of its operators."""
    kind = class_of(plan)
    if kind == "View":
        return plan, identity_in(plan), []
    below, identity, failing = _walk(spark, plan.children().apply(0))
    if kind == "SubqueryAlias":
        return plan.withNewChildren(seq(spark, [below])), identity, failing
    logical = jvm(spark).org.apache.spark.sql.catalyst.plans.logical
    worked_out = _worked_out(plan, kind)
    if unsure := [one for one in map(_bare, worked_out) if class_of(one) not in _SURE]:
        fails = _fails(spark, unsure)
        failing = [*failing, logical.Filter(fails, below)]
        below = logical.Filter(jvm(spark).org.apache.spark.sql.catalyst.expressions.Not(fails), below)
    tried = [_tried(spark, one) for one in worked_out]
    if kind == "Filter":
        return logical.Filter(*tried, below), identity, failing
    if kind == "Project":
        return project(spark, [*tried, *identity], below), identity, failing
    generator = plan.generator().withNewChildren(seq(spark, tried))
    rest = (plan.unrequiredChildIndex(), plan.outer(), plan.qualifier(), plan.generatorOutput())
    return logical.Generate(generator, *rest, below), identity, failing


def _worked_out(plan: Any, kind: str) -> list[Any]:
    if kind == "Filter":
        return [plan.condition()]
    return listed(plan.projectList() if kind == "Project" else plan.generator().children())


def _fails(spark: SparkSession, expressions: list[Any]) -> Any:
    """Whether one of them does: a struct of them, which is never null by itself."""
    catalyst = jvm(spark).org.apache.spark.sql.catalyst.expressions
    return catalyst.IsNull(catalyst.TryEval(catalyst.CreateStruct.apply(seq(spark, expressions))))


def _tried(spark: SparkSession, expression: Any) -> Any:
    """The same, and null where it fails. What has a name keeps it, and its id."""
    if class_of(expression) == "Alias":
        return expression.withNewChildren(seq(spark, [_tried(spark, expression.child())]))
    if class_of(expression) in _SURE:
        return expression
    return jvm(spark).org.apache.spark.sql.catalyst.expressions.TryEval(expression)


def _bare(expression: Any) -> Any:
    return expression.child() if class_of(expression) == "Alias" else expression
