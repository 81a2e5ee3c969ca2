"""Whether a query makes the same rows of the same records, however often it is asked: Catalyst knows.

A batch is made again after a crash, and parts of it whenever an executor is lost or the sink looks at the rows twice.
So what a row is may only depend on the batch's records: not on chance, on the clock, on the machine, on other tables,
nor on the order in which Spark happens to see equal records.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession

from lakestream.spark.catalyst import aggregate_of, class_of, listed, replaced
from lakestream.spark.parse import jvm

T = TypeVar("T")

_SAME = "and a batch has to become the same rows whenever it is read"
_ARRIVAL = "_arrival is the time at which a record came into the stream"
_PLACE = "_shard_id, _sequence_number and _sub_sequence together are a record's own"
_CHANCE = "take it from the record, as pmod(xxhash64(_sequence_number), 100)"
_INSTEAD = {
    "uuid": _PLACE,
    "monotonically_increasing_id": _PLACE,
    "rand": _CHANCE,
    "random": _CHANCE,
    "randn": _CHANCE,
    "now": _ARRIVAL,
    "current_timestamp": _ARRIVAL,
    "localtimestamp": _ARRIVAL,
    "current_date": "to_date(_arrival) is the day on which a record came into the stream",
}

_SPECIAL_LITERAL = re.compile(
    r"\b(?:date|timestamp(?:_ntz|_ltz)?)\s*(['\"])\s*(now|today|tomorrow|yesterday)\b[^'\"]*\1", re.IGNORECASE
)
"""`TIMESTAMP 'now'` is a number of microseconds as soon as Spark has read it."""
_SPECIAL = re.compile(r"\s*(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_NEEDS_A_CLOSE_LOOK = re.compile(r"aes_encrypt|\b(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE)
"""What Catalyst takes for deterministic; a walk over all expressions is some 10 ms."""

_PARSING = frozenset({"ParseToDate", "ParseToTimestamp"})
"""`to_date` and `to_timestamp`: casts, if they are given no format."""

_LEAVES = frozenset({"View", "LocalRelation", "LogicalRDD", "OneRowRelation", "Range", "CTERelationRef"})
"""The view is our own; the others are written in the query itself."""
_CUTS = frozenset({"GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample"})
_EXACT = frozenset({"Min", "Max", "Count", "BitAndAgg", "BitOrAgg", "BitXorAgg", "HyperLogLogPlusPlus", "PivotFirst"})
"""Aggregates that do not care for the order of their input (as Catalyst's `EliminateSorts` has it); sums as well,
unless of floating point. PIVOT takes the first of one."""
_INEXACT = {"Sum": frozenset({"float", "double"}), "Average": frozenset({"float", "double", "bigint"})}
"""Types of what is added as floating point, and is more than a double holds exactly: `avg` adds all but decimals so."""
_COLLECTS = frozenset({"CollectList", "CollectSet"})
_RANKS = frozenset({"Rank", "DenseRank", "PercentRank", "CumeDist"})
_UNIQUE = frozenset({"_sequence_number", "_sub_sequence"})


def why_not_repeatable(frame: DataFrame, sql: str) -> str | None:
    """What of a query may differ from one time to the next, and what to use instead; None: nothing.

    Args:
        frame: the query, analysed.
        sql: its text.
    """
    if found := _SPECIAL_LITERAL.search(sql):
        return _clock(found[0])
    return _Look(frame.sparkSession, bool(_NEEDS_A_CLOSE_LOOK.search(sql))).at(frame._jdf.queryExecution().analyzed())


class _Look:
    """One walk over a plan, from the inside out."""

    def __init__(self, spark: SparkSession, closely: bool) -> None:
        self._closely = closely
        patterns = jvm(spark).org.apache.spark.sql.catalyst.trees.TreePattern
        self._now = patterns.CURRENT_LIKE()
        self._aggregates = patterns.AGGREGATE_EXPRESSION()
        self._windows = patterns.WINDOW_EXPRESSION()

    def at(self, plan: Any) -> str | None:
        name = class_of(plan)
        if name == "View":
            return None  # what is below is `parse`'s
        inner = (*listed(plan.subqueries()), *listed(plan.children()))
        if (reason := _first(inner, self.at)) is not None:
            return reason
        if name in _CUTS:
            return (
                f"{_CUT_WORDS.get(name, name.upper())} takes a part of each batch, and where batches begin and end is "
                "no property of the records: the others would be lost. Filter with WHERE"
            )
        if name == "ScriptTransformation":
            return "a script may give other rows each time it runs; write it in SQL"
        if not inner and name not in _LEAVES:
            return (
                f"it reads something else than events ({name}), which may have changed when the batch is read again. "
                "Join when you query the table"
            )
        return _first(listed(plan.expressions()), self._in)

    def _in(self, expression: Any) -> str | None:
        if not (
            self._closely
            or not expression.deterministic()
            or any(expression.containsPattern(p) for p in (self._now, self._aggregates, self._windows))
        ):
            return None
        match name := class_of(expression):
            case "WindowExpression":
                function = expression.windowFunction()
                reason = self._of_window(function, expression.windowSpec())
                return reason or _first(listed(aggregate_of(function).children()), self._in)
            case "SortArray" if class_of(aggregate_of(collected := expression.children().apply(0))) in _COLLECTS:
                return _first(listed(aggregate_of(collected).children()), self._in)
        if (reason := _first(listed(expression.children()), self._in)) is not None:
            return reason
        if name == "AggregateExpression" and not _is_exact(aggregate_of(expression)):
            return _order(aggregate_of(expression).prettyName())
        is_leaf = expression.children().isEmpty()
        if not expression.deterministic() or (is_leaf and name != "CurrentTimeZone" and self._is_current(expression)):
            return _chance(expression.prettyName().lower())
        if name == "Cast" and _is_special(expression):
            return _clock(expression.sql())
        if name in _PARSING:
            return self._in(expression.replacement())
        if name == "AesEncrypt" and "ECB" not in expression.mode().sql().upper() and "''" in expression.iv().sql():
            return f"aes_encrypt takes a random vector, {_SAME}; give it one (the fifth argument) that is of the record"
        return None

    def _is_current(self, expression: Any) -> bool:
        return bool(expression.containsPattern(self._now))

    def _of_window(self, function: Any, spec: Any) -> str | None:
        order = list(listed(spec.orderSpec()))
        names = {reference.name() for part in order for reference in listed(part.references().toSeq())}
        by_value = not order or "RangeFrame" in spec.frameSpecification().toString()
        exact = class_of(function) in _RANKS or (by_value and _is_exact(aggregate_of(function)))
        if exact or names >= _UNIQUE:
            return None
        name = aggregate_of(function).prettyName()
        return (
            f"{name}() OVER (…) goes by the order of its rows, and which of two equal ones comes first is chance. Add "
            "_sequence_number, _sub_sequence to its ORDER BY"
        )


_CUT_WORDS = {"GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Sample": "TABLESAMPLE"}


def _is_exact(function: Any) -> bool:
    function = replaced(function)
    name = class_of(function)
    if name in _INEXACT:
        return function.children().apply(0).dataType().simpleString() not in _INEXACT[name]
    return name in _EXACT


def _is_special(cast: Any) -> bool:
    if cast.dataType().simpleString() not in ("date", "timestamp", "timestamp_ntz"):
        return False
    text = cast.child()
    return class_of(text) == "Literal" and _SPECIAL.match(text.toString()) is not None


def _chance(name: str) -> str:
    instead = _INSTEAD.get(name)
    return f"{name}() may give another value each time, {_SAME}" + (f"; {instead}" if instead else "")


def _clock(what: str) -> str:
    return f"{what} is another time each time, {_SAME}; {_ARRIVAL}"


def _order(name: str) -> str:
    sums = name in ("sum", "avg", "mean")
    instead = "CAST what it adds AS DECIMAL" if sums else "use min or max, or sort_array(collect_list(…))"
    why = "sums of floating point differ in their last digits with the order" if sums else "it goes by the order"
    return f"{name}(): {why} in which Spark sees the rows, which is chance, {_SAME}; {instead}"


def _first(nodes: Any, look: Callable[[Any], str | None]) -> str | None:
    return next((reason for node in nodes if (reason := look(node)) is not None), None)
