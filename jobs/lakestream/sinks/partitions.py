"""Values that cannot be in a partition's path."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from operator import add

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import StringType, StructType

from lakestream.sinks.hive_paths import ESCAPED, NULL_PARTITION, escape
from lakestream.spark.quoting import quoted
from lakestream.storage import LakePath, Scheme

_LONGEST_NAME, _LONGEST_PATH, _LONGEST_KEY = 255, 4095, 1024
"""Bytes: of a folder's name and of a whole path (Linux: NAME_MAX, PATH_MAX), and of a key of S3."""


def partition_refusals(
    path: LakePath, output: StructType, partition_by: Sequence[str], reserve: int
) -> Iterator[Column]:
    """Why a row can be in no partition, by column; each is null if there is nothing to say.

    Args:
        path: the table's.
        output: columns of the rows.
        partition_by: those of them that make the path.
        reserve: bytes that names within a partition, or copies of its path elsewhere in the table, take at most.
    """
    texts = [name for name in partition_by if isinstance(output[name].dataType, StringType)]
    for name in texts:
        taken = sf.col(quoted(name)) == sf.lit(NULL_PARTITION)
        yield sf.when(taken, sf.lit(f"partition column {name}: {NULL_PARTITION} is the partition of nulls"))
    for name in texts:
        # On S3 as well: such a table could be copied to no file system.
        said = f"partition column {name}: longer than {_LONGEST_NAME} bytes in a path"
        yield sf.when(_longer([name], _LONGEST_NAME + 1), sf.lit(said))
    if texts:
        longest = (_LONGEST_PATH if path.scheme is Scheme.FOLDER else _LONGEST_KEY) - len(path.key.encode()) - reserve
        columns = "column" if len(partition_by) == 1 else "columns"
        said = f"partition {columns} {', '.join(partition_by)}: longer than {longest} bytes in a path"
        yield sf.when(_longer(partition_by, longest), sf.lit(said))


def _longer(columns: Sequence[str], limit: int) -> Column:
    """Whether `/name=value/name=value` is longer than so many bytes."""

    def length(escaped: Callable[[Column], Column]) -> Column:
        return reduce(add, [_length(name, escaped) for name in columns])

    # To look for what is escaped is dear, and hardly ever needed: counted are all bytes first.
    return (length(sf.octet_length) > limit) & (length(_escaped) > limit)


def _length(name: str, escaped: Callable[[Column], Column]) -> Column:
    value = sf.nullif(sf.col(quoted(name)).cast("string"), sf.lit(""))  # which has the folder of nulls
    names = len(escape(name).encode()) + len("/=")
    return names + sf.coalesce(sf.octet_length(value) + 2 * escaped(value), sf.lit(len(NULL_PARTITION)))


def _escaped(value: Column) -> Column:
    return sf.length(value) - sf.length(sf.translate(value, ESCAPED, ""))
