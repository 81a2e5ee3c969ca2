"""`DataFrame.mapInArrow`, but that nobody has to have pandas, which it asks for and does not use.

To import pandas takes a second of CPU: the driver would, and Spark's Python daemon, and each at every start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.rdd import PythonEvalType
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType
from pyspark.sql.udf import UserDefinedFunction

from lakestream.spark.quoting import quoted

if TYPE_CHECKING:
    import pyarrow as pa

Task = Callable[["Iterable[pa.RecordBatch]"], "Iterator[pa.RecordBatch]"]


def map_in_arrow(frame: DataFrame, task: Task, schema: StructType | str) -> DataFrame:
    """What a task makes of each partition.

    Args:
        frame: the rows that tasks are given.
        task: runs on executors, so it is pickled.
        schema: of the rows that it makes.
    """
    made = UserDefinedFunction(task, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
    column = made(*(frame[quoted(name)] for name in frame.columns))
    return DataFrame(frame._jdf.pythonMapInArrow(column._jc.expr(), False), frame.sparkSession)
