"""Expressions of Catalyst that tell where others fail, in place of ending their job."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lakestream.spark.catalyst import class_of, listed, seq
from lakestream.spark.parse import jvm

_SURE = {
    *("And", "AttributeReference", "EqualNullSafe", "EqualTo", "GreaterThan", "GreaterThanOrEqual", "IsNotNull"),
    *("IsNull", "LessThan", "LessThanOrEqual", "Literal", "Not", "Or"),
}
"""Expressions that fail at nothing if what they are made of does not."""
_BUILDERS = {"CreateMap", "MapConcat", "MapFromArrays", "MapFromEntries", "StringToMap", "TransformKeys"}
"""Each fills one builder for all rows: where it fails at a key, what that has so far is in the next row's map."""
_PACKAGE = "org.apache.spark.sql.catalyst.expressions"


class Trying:
    """Makes such expressions, by `TryEval`, with which Spark makes `try_add` of `+`: null where its child fails.

    One with a subquery in it is not tried: what that comes to is no record's fault.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        packages = jvm(spark).org.apache.spark
        self._expressions = packages.sql.catalyst.expressions
        self._subquery = packages.sql.catalyst.trees.TreePattern.PLAN_EXPRESSION()
        kind = packages.util.Utils.classForName(f"{_PACKAGE}.Expression", True, False)
        self._object = packages.sql.types.ObjectType(kind)

    def fails(self, expressions: list[Any]) -> Any | None:
        """A condition: one of the expressions has no result. None: there is none to be tried."""
        if not (unsure := [one for one in map(_bare, expressions) if self._may_be_tried(one)]):
            return None
        # A struct is never null by itself.
        struct = self._expressions.CreateStruct.apply(seq(self._spark, [self._anew(one) for one in unsure]))
        return self._expressions.IsNull(self._expressions.TryEval(struct))

    def tried(self, expression: Any) -> Any:
        """The same, and null where it fails. What has a name keeps it, and its id."""
        if class_of(expression) == "Alias":
            return expression.withNewChildren(seq(self._spark, [self.tried(expression.child())]))
        return self._expressions.TryEval(self._anew(expression)) if self._may_be_tried(expression) else expression

    def _may_be_tried(self, expression: Any) -> bool:
        return not (_is_sure(expression) or expression.containsPattern(self._subquery))

    def _anew(self, expression: Any) -> Any:
        """The same, made anew for each row where it would keep something of a row at which it has failed."""
        if not _builds_maps(expression):
            return expression
        catalyst, none = self._expressions, seq(self._spark, [])
        columns = seq(self._spark, listed(expression.references().toSeq()))
        bound = catalyst.BindReferences.bindReference(expression, catalyst.package.AttributeSeq(columns), False)
        invoke = catalyst.objects.Invoke
        clone = invoke(catalyst.Literal(bound, self._object), "clone", self._object, none, none, False, True, True)
        row = seq(self._spark, [catalyst.CreateStruct.apply(columns)])
        return invoke(clone, "eval", expression.dataType(), row, none, False, True, True)


def _builds_maps(expression: Any) -> bool:
    return class_of(expression) in _BUILDERS or any(map(_builds_maps, listed(expression.children())))


def _is_sure(expression: Any) -> bool:
    return class_of(expression) in _SURE and all(map(_is_sure, listed(expression.children())))


def _bare(expression: Any) -> Any:
    return expression.child() if class_of(expression) == "Alias" else expression
