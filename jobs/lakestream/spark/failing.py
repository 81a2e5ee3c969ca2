"""Records at which the document's SQL fails: Spark ends a job at the first value for which a function has no result.

They are found in one job. The plan is walked from the view up, as the optimizer has left it, which decides what is
worked out, and of which rows: at each operator those go on for which all of its expressions have a result. That ends
where rows are put together of several records: what is worked out of such a row is nobody's fault by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.errors import ExpressionError, SinkError
from lakestream.spark.catalyst import class_of, frame, listed, project, replaced, seq
from lakestream.spark.failures import SPARK_ERRORS, WRITER, in_our_words
from lakestream.spark.origin import Carried, events_in, passing, united
from lakestream.spark.parse import IDENTITY, jvm
from lakestream.spark.trying import Trying

_REUSE = "spark.sql.subexpressionElimination.enabled"
_TRIED = replace(WRITER, at_a_value="")
_EQUALS = {"EqualNullSafe", "EqualTo"}


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
    spark, plan = rows.sparkSession, rows._jdf.queryExecution().optimizedPlan()
    # What is worked out of a subquery's result fails wherever the subquery does, so that has to be right before.
    for part in (*reversed(listed(plan.subqueriesAll())), plan):
        search = _Search(spark)
        search.walk(part)
        if search.failing and (found := _found(spark, search.failing)) is not None:
            return found
    return None


def _found(spark: SparkSession, failing: list[Any]) -> tuple[DataFrame, int] | None:
    frames = [frame(spark, plan).toDF(*IDENTITY) for plan in failing]
    found = reduce(DataFrame.unionAll, frames).distinct().persist()
    records = 0
    try:
        with _each_for_itself(spark):
            records = found.count()
    except SPARK_ERRORS as error:
        told = in_our_words(error, _TRIED)
        if not isinstance(told, ExpressionError):
            raise told from error  # and else it fails at what is not tried
    finally:
        if not records:
            found.unpersist()
    return (found, records) if records else None


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
    """One walk over a plan, from the leaves up."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._catalyst = jvm(spark).org.apache.spark.sql.catalyst
        self._trying = Trying(spark)
        self.failing: list[Any] = []
        """Plans of `IDENTITY`, one for each operator that may fail."""

    def walk(self, plan: Any) -> Carried | None:
        """The plan without the rows at which it fails, and with the identity of their records; None: they have none, or
        it is not known how to go on from there."""
        if (events := events_in(plan)) is not None:
            return events
        children = listed(plan.children())
        below = [self.walk(child) for child in children]
        match kind := class_of(plan):
            case "Join":
                return self._joined(plan, below)
            case "Union":
                return united(self._spark, plan, below)
        if not below or (first := below[0]) is None:
            return None
        worked_out = self._inputs(plan) if kind == "Aggregate" else _worked_out(plan, kind)
        return self._without(plan, kind, Carried(self._leave_out(worked_out, first), first.identity))

    def _without(self, plan: Any, kind: str, rows: Carried) -> Carried | None:
        """An operator, of the rows at which it does not fail."""
        logical, tried = self._catalyst.plans.logical, self._trying.tried
        match kind:
            case "Aggregate":
                return None
            case "Filter":
                return Carried(logical.Filter(tried(plan.condition()), rows.plan), rows.identity)
            case "Project":
                columns = [*map(tried, listed(plan.projectList())), *rows.identity]
                return Carried(project(self._spark, columns, rows.plan), rows.identity)
            case "Expand":
                made = [self._seq([*map(tried, listed(one)), *rows.identity]) for one in listed(plan.projections())]
                output = self._seq([*listed(plan.output()), *rows.identity])
                return Carried(logical.Expand(self._seq(made), output, rows.plan), rows.identity)
            case "Generate":
                generator = plan.generator().withNewChildren(self._seq([*map(tried, _worked_out(plan, kind))]))
                # Those of its child's columns that it need not hand on are told by places, which are others by now.
                rest = (self._seq([]), plan.outer(), plan.qualifier(), plan.generatorOutput())
                return Carried(logical.Generate(generator, *rest, rows.plan), rows.identity)
        return passing(self._spark, plan, rows, [])

    def _joined(self, join: Any, below: list[Carried | None]) -> Carried | None:
        """A join, of the rows on either side for which what its condition takes of them has a result."""
        sides = listed(join.children())
        parts = [] if join.condition().isEmpty() else _conjuncts(join.condition().get())
        for place, rows in enumerate(below):
            if rows is not None:
                own = [one for part in parts for one in _compared(part) if _is_of(one, sides[place])]
                below[place] = Carried(self._leave_out(own, rows), rows.identity)
        left, right = below
        if left is None:
            return None
        other = sides[1] if right is None else project(self._spark, listed(sides[1].output()), right.plan)
        if both := [part for part in parts if not all(any(_is_of(one, of) for of in sides) for one in _compared(part))]:
            join = self._of_both(join, [part for part in parts if part not in both], both, left, other)
        return passing(self._spark, join, left, [other])

    def _of_both(self, join: Any, parts: list[Any], both: list[Any], left: Carried, right: Any) -> Any:
        """A join that does not fail at conditions of both of its sides; pairs of rows at which it does are found."""
        logical, scala = self._catalyst.plans.logical, jvm(self._spark).scala
        inner = self._catalyst.plans.JoinType.apply("inner")

        def joined(kind: Any, conditions: list[Any]) -> Any:
            met = reduce(self._catalyst.expressions.And, conditions) if conditions else None
            return logical.Join(left.plan, right, kind, scala.Option.apply(met), join.hint())

        self._leave_out(both, Carried(joined(inner, parts), left.identity))
        return joined(join.joinType(), [*parts, *map(self._trying.tried, both)])

    def _leave_out(self, expressions: list[Any], rows: Carried) -> Any:
        """The rows for which all of the expressions have a result; the others are found."""
        if (fails := self._trying.fails(expressions)) is None:
            return rows.plan
        logical = self._catalyst.plans.logical
        self.failing.append(project(self._spark, rows.identity, logical.Filter(fails, rows.plan)))
        return logical.Filter(self._catalyst.expressions.Not(fails), rows.plan)

    def _inputs(self, aggregate: Any) -> list[Any]:
        """What it works out of single rows: what it groups by, and what its functions take."""
        found = listed(aggregate.groupingExpressions())
        for one in listed(aggregate.aggregateExpressions()):
            for function in _aggregates_in(one):
                taken = listed(replaced(function.aggregateFunction()).children())
                found += [self._taken_where(function.filter(), one) for one in taken]
        return found

    def _taken_where(self, condition: Any, taken: Any) -> Any:
        """What a function takes, of the rows that its FILTER (an option of Scala's) lets through."""
        if condition.isEmpty():
            return taken
        catalyst = self._catalyst.expressions
        return catalyst.If(condition.get(), taken, catalyst.Literal(None, taken.dataType()))

    def _seq(self, items: list[Any]) -> Any:
        return seq(self._spark, items)


def _aggregates_in(expression: Any) -> list[Any]:
    if class_of(expression) == "AggregateExpression":
        return [expression]
    return [one for child in listed(expression.children()) for one in _aggregates_in(child)]


def _conjuncts(condition: Any) -> list[Any]:
    if class_of(condition) != "And":
        return [condition]
    return [one for child in listed(condition.children()) for one in _conjuncts(child)]


def _compared(condition: Any) -> list[Any]:
    """What Spark works out of each row before it puts two together, where the condition is that these are equal."""
    return listed(condition.children()) if class_of(condition) in _EQUALS else [condition]


def _is_of(expression: Any, side: Any) -> bool:
    return bool(expression.references().subsetOf(side.outputSet()))


def _worked_out(plan: Any, kind: str) -> list[Any]:
    """Expressions that an operator works out for each row."""
    match kind:
        case "Project":
            return listed(plan.projectList())
        case "Expand":
            return [one for made in listed(plan.projections()) for one in listed(made)]
        case "Generate":
            return listed(plan.generator().children())
        case "Window" | "WindowGroupLimit":
            return []  # a projection beneath has done it
    return [one.child() if class_of(one) == "SortOrder" else one for one in listed(plan.expressions())]
