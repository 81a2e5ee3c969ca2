"""Records at which the document's SQL fails: Spark ends a job at the first value for which a function has no result.

They are found in one job, by `TryEval`, with which Spark makes `try_add` of `+`: null where its expression fails. The
plan is walked from the view up: at each operator those rows go on for which all of its expressions have a result. That
ends where rows are put together of several records: what is worked out of such a row is nobody's fault by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.errors import SinkError
from lakestream.spark.catalyst import aggregate_of, class_of, frame, listed, project, replaced, seq
from lakestream.spark.failures import SPARK_ERRORS, WRITER, in_our_words
from lakestream.spark.origin import Carried, events_in, inlined, passing, united
from lakestream.spark.parse import IDENTITY, jvm

_REUSE = "spark.sql.subexpressionElimination.enabled"
_TRIED = replace(WRITER, at_a_value="")
_SURE = {"AttributeReference", "Literal"}
"""Expressions that fail at nothing."""
_TRYING = {"Filter", "Generate", "Project"}
"""Operators of Catalyst that work expressions out, row by row."""


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
    how many they are. None: it fails at no record by itself.

    Those that come into view only once these are gone, as the next best of a window, are found when it is asked again.
    """
    spark = rows.sparkSession
    search = _Search(spark)
    search.walk(inlined(rows))
    if not search.failing:
        return None
    frames = [frame(spark, plan).toDF(*IDENTITY) for plan in search.failing]
    found = reduce(DataFrame.unionAll, frames).distinct().persist()
    with _each_for_itself(spark):
        if records := found.count():
            return found, records
    found.unpersist()
    return None


@contextmanager
def _each_for_itself(spark: SparkSession) -> Iterator[None]:
    """What several expressions have in common is worked out before all of them otherwise: before any is tried."""
    before = spark.conf.get(_REUSE)
    spark.conf.set(_REUSE, "false")
    try:
        yield
    finally:
        spark.conf.set(_REUSE, str(before))


class _Search:
    """One walk over a plan, from the view up."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._catalyst = jvm(spark).org.apache.spark.sql.catalyst
        self.failing: list[Any] = []
        """Plans of `IDENTITY`, one for each operator that may fail."""

    def walk(self, plan: Any) -> Carried | None:
        """The plan without the rows at which it fails, and with the identity of their records; None: they have none, or
        it is not known how to go on from there."""
        if (events := events_in(plan)) is not None:
            return events
        children = listed(plan.children())
        below = [self.walk(child) for child in children]
        if not below or (first := below[0]) is None or not plan.subqueries().isEmpty():
            return None
        kind = class_of(plan)
        if kind == "Aggregate":
            self._leave_out(self._inputs(plan), first)
            return None
        if kind in _TRYING:
            return self._trying(kind, plan, first)
        if kind == "Union":
            return united(self._spark, plan, below)
        others = [
            child if found is None else project(self._spark, listed(child.output()), found.plan)
            for child, found in zip(children[1:], below[1:], strict=True)
        ]
        return passing(self._spark, plan, first, others)

    def _trying(self, kind: str, plan: Any, rows: Carried) -> Carried:
        worked_out = _worked_out(plan, kind)
        below = self._leave_out(worked_out, rows)
        tried = [self._tried(one) for one in worked_out]
        logical = self._catalyst.plans.logical
        if kind == "Filter":
            return Carried(logical.Filter(*tried, below), rows.identity)
        if kind == "Project":
            return Carried(project(self._spark, [*tried, *rows.identity], below), rows.identity)
        generator = plan.generator().withNewChildren(seq(self._spark, tried))
        rest = (plan.unrequiredChildIndex(), plan.outer(), plan.qualifier(), plan.generatorOutput())
        return Carried(logical.Generate(generator, *rest, below), rows.identity)

    def _leave_out(self, expressions: list[Any], rows: Carried) -> Any:
        """The rows for which all of the expressions have a result; the others are found."""
        unsure = [one for one in map(_bare, expressions) if class_of(one) not in _SURE]
        if not unsure:
            return rows.plan
        logical, catalyst = self._catalyst.plans.logical, self._catalyst.expressions
        # A struct is never null by itself.
        fails = catalyst.IsNull(catalyst.TryEval(catalyst.CreateStruct.apply(seq(self._spark, unsure))))
        self.failing.append(project(self._spark, rows.identity, logical.Filter(fails, rows.plan)))
        return logical.Filter(catalyst.Not(fails), rows.plan)

    def _tried(self, expression: Any) -> Any:
        """The same, and null where it fails. What has a name keeps it, and its id."""
        if class_of(expression) == "Alias":
            return expression.withNewChildren(seq(self._spark, [self._tried(expression.child())]))
        if class_of(expression) in _SURE:
            return expression
        return self._catalyst.expressions.TryEval(expression)

    def _inputs(self, aggregate: Any) -> list[Any]:
        """What it works out of single rows: what it groups by, and what its functions take."""
        found = listed(aggregate.groupingExpressions())
        for one in listed(aggregate.aggregateExpressions()):
            for function in _aggregates_in(one):
                taken = listed(replaced(aggregate_of(function)).children())
                found += [self._taken_where(function.filter(), one) for one in taken]
        return found

    def _taken_where(self, condition: Any, taken: Any) -> Any:
        """What a function takes, of the rows that its FILTER (an option of Scala's) lets through."""
        if condition.isEmpty():
            return taken
        catalyst = self._catalyst.expressions
        return catalyst.If(condition.get(), taken, catalyst.Literal(None, taken.dataType()))


def _aggregates_in(expression: Any) -> list[Any]:
    if class_of(expression) == "AggregateExpression":
        return [expression]
    return [one for child in listed(expression.children()) for one in _aggregates_in(child)]


def _worked_out(plan: Any, kind: str) -> list[Any]:
    if kind == "Filter":
        return [plan.condition()]
    return listed(plan.projectList() if kind == "Project" else plan.generator().children())


def _bare(expression: Any) -> Any:
    return expression.child() if class_of(expression) == "Alias" else expression
