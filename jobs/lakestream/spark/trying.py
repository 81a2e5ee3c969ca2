"""Expressions of Catalyst that tell where others fail, in place of ending their job."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakestream.spark.catalyst import class_of, listed, seq
from lakestream.spark.parse import jvm

_SURE = {
    *(
        "And",
        "AttributeReference",
        "EqualNullSafe",
        "EqualTo",
        "GreaterThan",
        "GreaterThanOrEqual",
        "IsNotNull",
        "IsNull",
    ),
    *("LessThan", "LessThanOrEqual", "Literal", "Not", "Or"),
}
"""Expressions that fail at nothing if what they are made of does not."""


class Trying:
    """Makes such expressions, by `TryEval`, with which Spark makes `try_add` of `+`: null where its child fails.

    One with a subquery in it is not tried: what that comes to is no record's fault.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        packages = jvm(spark).org.apache.spark
        self._expressions = packages.sql.catalyst.expressions
        self._subquery = packages.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION()

    def fails(self, expressions: list[Any]) -> Any | None:
        """A condition: one of the expressions has no result. None: there is none to be tried."""
        if not (unsure := [one for one in map(_bare, expressions) if self._may_be_tried(one)]):
            return None
        # A struct is never null by itself.
        struct = self._expressions.CreateStruct.apply(seq(self._spark, unsure))
        return self._expressions.IsNull(self._expressions.TryEval(struct))

    def tried(self, expression: Any) -> Any:
        """The same, and null where it fails. What has a name keeps it, and its id."""
        if class_of(expression) == "Alias":
            return expression.withNewChildren(seq(self._spark, [self.tried(expression.child())]))
        return self._expressions.TryEval(expression) if self._may_be_tried(expression) else expression

    def _may_be_tried(self, expression: Any) -> bool:
        return not (_is_sure(expression) or expression.containsPattern(self._subquery))


def _is_sure(expression: Any) -> bool:
    return class_of(expression) in _SURE and all(map(_is_sure, listed(expression.children())))


def _bare(expression: Any) -> Any:
    return expression.child() if class_of(expression) == "Alias" else expression
