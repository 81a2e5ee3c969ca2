"""Which record a row of the transform's output was made of.

A row that the sink cannot take is kept as the record that it came from, so its record must be found behind any SQL. The
identity of a record is in columns of `events`, which a query need not select. Catalyst's plan of the query is walked
from its root down to the view, and each projection on the way hands them on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lakestream.spark.catalyst import class_of, frame, identity_in, listed, project, seq
from lakestream.spark.parse import IDENTITY, jvm
from lakestream.spark.transform import VIEW

ORIGIN = tuple(f"_lakestream{name}" for name in IDENTITY)
"""The columns that `with_origin` adds: `IDENTITY` of the record."""

_HINTS = {"RebalancePartitions", "Repartition", "RepartitionByExpression", "ResolvedHint"}
"""`DISTRIBUTE BY`, and what `/*+ REPARTITION(3) */` and its like become: they say where rows are, and not which."""

_PASSING = {
    *("Filter", "Generate", "GlobalLimit", "Join", "LocalLimit", "Offset", "Sort", "SubqueryAlias"),
    *("Window", "WindowGroupLimit"),
    *_HINTS,
}
"""Operators of Catalyst whose rows have the columns of their (first) child's rows."""

_KEEPING_LEFT = {"Cross", "ExistenceJoin", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"}
"""Joins without rows that are made of the right side alone."""


@dataclass(frozen=True)
class Carried:
    """Rows that are made of one record each."""

    plan: Any
    """With the identity of the record in its output."""
    identity: list[Any]
    """The attributes of `IDENTITY` there."""


def with_origin(rows: DataFrame) -> DataFrame | None:
    """Rows and, behind their columns, `ORIGIN`; None if rows are not made of one record each, as by GROUP BY.

    A row that a join made of several records has the one on the left.
    """
    spark = rows.sparkSession
    # A CTE would be another root of the plan.
    catalyst = jvm(spark).org.apache.spark.sql.catalyst
    plan = catalyst.optimizer.InlineCTE(True).apply(rows._jdf.queryExecution().analyzed())
    if (found := _carry(spark, plan)) is None:
        return None
    wanted = project(spark, [*listed(plan.output()), *found.identity], found.plan)
    return frame(spark, wanted).toDF(*rows.columns, *ORIGIN)


def events_in(plan: Any) -> Carried | None:
    """The view of a batch's events, if the plan is that, or what the optimizer has for it: what the executors keep."""
    is_view = class_of(plan) == "View" and plan.desc().identifier().table() == VIEW
    return Carried(plan, identity_in(plan)) if is_view or class_of(plan) == "InMemoryRelation" else None


def passing(spark: SparkSession, plan: Any, first: Carried, others: list[Any]) -> Carried | None:
    """An operator with other children, if its rows have the columns of the first one's."""
    kind = class_of(plan)
    if kind not in _PASSING or (kind == "Join" and _join_type(plan) not in _KEEPING_LEFT):
        return None
    return Carried(plan.withNewChildren(seq(spark, [first.plan, *others])), first.identity)


def united(spark: SparkSession, union: Any, children: list[Carried | None]) -> Carried | None:
    """Rows of a union are those of its children, so all of them have to carry, in the same places."""
    carried = []
    for child, found in zip(listed(union.children()), children, strict=True):
        if found is None:
            return None
        carried.append(project(spark, [*listed(child.output()), *found.identity], found.plan))
    replaced = union.withNewChildren(seq(spark, carried))
    return Carried(replaced, listed(replaced.output())[-len(IDENTITY) :])


def _join_type(join: Any) -> str:
    return str(join.joinType().toString()).partition("(")[0]


def _carry(spark: SparkSession, plan: Any) -> Carried | None:
    if (events := events_in(plan)) is not None:
        return events
    children = listed(plan.children())
    if class_of(plan) == "Union":
        return united(spark, plan, [_carry(spark, child) for child in children])
    if not children or (found := _carry(spark, children[0])) is None:
        return None
    if class_of(plan) == "Project":
        return Carried(project(spark, [*listed(plan.projectList()), *found.identity], found.plan), found.identity)
    return passing(spark, plan, found, children[1:])
