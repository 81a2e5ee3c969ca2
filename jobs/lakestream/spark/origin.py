"""Which record a row of the transform's output was made of.

A row that the sink cannot take is kept as the record that it came from, so its record must be found behind any SQL. The
identity of a record is in columns of `events`, which a query need not select. Catalyst's plan of the query is walked
from its root down to the view, and each projection on the way hands them on.
"""

from __future__ import annotations

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
    *("Filter", "Generate", "GlobalLimit", "Join", "LocalLimit", "Offset", "Sort", "SubqueryAlias", "Window"),
    *_HINTS,
}
"""Operators of Catalyst whose rows have the columns of their (first) child's rows."""

_KEEPING_LEFT = {"Cross", "Inner", "LeftAnti", "LeftOuter", "LeftSemi"}
"""Joins without rows that are made of the right side alone."""


def with_origin(rows: DataFrame) -> DataFrame | None:
    """Rows and, behind their columns, `ORIGIN`; None if rows are not made of one record each, as by GROUP BY.

    A row that a join made of several records has the one on the left.
    """
    spark = rows.sparkSession
    catalyst = jvm(spark).org.apache.spark.sql.catalyst
    # A CTE would be another root of the plan.
    plan = catalyst.optimizer.InlineCTE(True).apply(rows._jdf.queryExecution().analyzed())
    found = _carry(spark, plan)
    if found is None:
        return None
    carrying, identity = found
    wanted = project(spark, [*listed(plan.output()), *identity], carrying)
    return frame(spark, wanted).toDF(*rows.columns, *ORIGIN)


def _carry(spark: SparkSession, plan: Any) -> tuple[Any, list[Any]] | None:
    """The plan with the identity in its output, and the identity's attributes there; None if it cannot be had."""
    kind = class_of(plan)
    if kind == "View" and plan.desc().identifier().table() == VIEW:
        return plan, identity_in(plan)
    children = listed(plan.children())
    if kind == "Union":
        return _carry_all(spark, plan, children)
    if kind != "Project" and kind not in _PASSING:
        return None
    if kind == "Join" and plan.joinType().toString() not in _KEEPING_LEFT:
        return None
    if not children or (found := _carry(spark, children[0])) is None:
        return None
    carrying, identity = found
    if kind == "Project":
        return project(spark, [*listed(plan.projectList()), *identity], carrying), identity
    return plan.withNewChildren(seq(spark, [carrying, *children[1:]])), identity


def _carry_all(spark: SparkSession, union: Any, children: list[Any]) -> tuple[Any, list[Any]] | None:
    """Rows of a union are those of its children, so all of them have to carry, in the same places."""
    carried = []
    for child in children:
        if (found := _carry(spark, child)) is None:
            return None
        plan, identity = found
        carried.append(project(spark, [*listed(child.output()), *identity], plan))
    replaced = union.withNewChildren(seq(spark, carried))
    return replaced, listed(replaced.output())[-len(IDENTITY) :]
