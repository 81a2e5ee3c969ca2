"""The optional SQL of the document: `SELECT … FROM events`."""

import threading
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from lakestream.errors import SchemaError
from lakestream.spark.catalyst import class_of
from lakestream.spark.parse import first_line, jvm

VIEW = "events"

_BY_ROW = {"Filter", "Generate", "Project", "SubqueryAlias"}
"""Operators of Catalyst that make rows of one row each."""

_view = threading.Lock()
"""The name of a view is the session's: while one thread has its SQL analysed, no other may take the name."""


def transform(events: DataFrame, sql: str | None) -> DataFrame:
    """Apply `spec.transform` to the events of a batch (`good_events`); without one they stay as they are.

    Args:
        events: of the batch.
        sql: has passed `require_query`, since Spark runs a command at once.

    Raises:
        SchemaError: a column or function does not exist.
    """
    if sql is None:
        return events
    spark = events.sparkSession
    try:
        with _view:
            events.createOrReplaceTempView(VIEW)
            try:
                return spark.sql(sql)
            finally:
                spark.catalog.dropTempView(VIEW)
    except (ParseException, AnalysisException) as error:
        raise SchemaError(f"spec.transform: {first_line(error)}") from error


def require_query(spark: SparkSession, sql: str) -> None:
    """Check that `spec.transform` is a query, and no command: a DROP TABLE would be done before anyone could refuse it.

    Raises:
        SchemaError: it is none.
    """
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    except ParseException as error:
        raise SchemaError(f"spec.transform: {first_line(error)}") from error
    command = jvm(spark).java.lang.Class.forName("org.apache.spark.sql.catalyst.plans.logical.Command")
    if command.isInstance(plan) or "InsertInto" in plan.nodeName():
        raise SchemaError(f"spec.transform: write one SELECT … FROM {VIEW}, not {sql.strip()[:80]!r}")


def is_by_row(rows: DataFrame) -> bool:
    """Whether `transform` made each row of one event, for all that its plan tells: then it shuffles nothing.

    Args:
        rows: of a query; without one they are the events.
    """
    return _is_by_row(rows._jdf.queryExecution().analyzed())


def _is_by_row(plan: Any) -> bool:
    kind = class_of(plan)
    if kind == "View":
        return True  # the events
    if kind not in _BY_ROW or not plan.subqueries().isEmpty():
        return False
    return _is_by_row(plan.children().apply(0))


def takes(rows: DataFrame, column: str) -> bool:
    """Whether a query may make rows of a column of the events, as far as its plan tells.

    Args:
        rows: of a query.
        column: by its name; another one of that name counts as well.
    """
    return _takes(rows._jdf.queryExecution().analyzed(), column, is_narrowed=False)


def _takes(plan: Any, column: str, *, is_narrowed: bool) -> bool:
    """`is_narrowed`: what is above takes columns by name, and not this one."""
    kind = class_of(plan)
    if kind == "View":
        return not is_narrowed  # the events, with all of their columns
    named = plan.references().toSeq()
    if not plan.subqueries().isEmpty() or any(named.apply(at).name().lower() == column for at in range(named.size())):
        return True
    is_narrowed = kind in _NARROWS or (is_narrowed and kind in _KEEPS)
    children = plan.children()
    return any(_takes(children.apply(at), column, is_narrowed=is_narrowed) for at in range(children.size()))


_NARROWS = {"Aggregate", "Project"}
"""Operators that give what they name, and nothing else of what is below."""
_KEEPS = {"Filter", "Generate", "Join", "Sort", "SubqueryAlias", "Window"}
"""Those that look at nothing of it but what they name. Not so UNION, which goes by position, and DISTINCT."""
