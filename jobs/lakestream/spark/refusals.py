"""Why rows are refused: by columns that are null, or the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import or_
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from lakestream.spark.quoting import quoted

Find: TypeAlias = Callable[[Column, DataType], Column | None]
"""Of a value that is no struct, array or map, and its type: whether it is refused, true, false or null; None: no value
of that type is."""


def first_reason(reasons: Iterable[Column]) -> Column | None:
    """The first that is not null; None if there is none to be."""
    found = tuple(reasons)
    return sf.coalesce(*found) if found else None


def refusals(output: StructType, find: Find, why: str) -> Iterator[Column]:
    """By column with such a value in it, at any depth: null, or `why` and the column's name.

    Args:
        output: columns of the rows.
        find: which values.
        why: what is said of them.
    """
    for field in output.fields:
        found = _anywhere(sf.col(quoted(field.name)), field.dataType, find)
        if found is not None:
            yield sf.when(found, sf.lit(f"{why}: {field.name}"))


def _anywhere(value: Column, type: DataType, find: Find) -> Column | None:
    match type:
        case ArrayType():
            return _among(value, type.elementType, find)
        case MapType():
            keys, values = sf.map_keys(value), sf.map_values(value)
            return _either(_among(keys, type.keyType, find), _among(values, type.valueType, find))
        case StructType():
            return _either(*(_anywhere(value.getField(field.name), field.dataType, find) for field in type.fields))
    return find(value, type)


def _among(values: Column, type: DataType, find: Find) -> Column | None:
    if _anywhere(sf.lit(None), type, find) is None:
        return None

    def is_found(value: Column) -> Column:
        found = _anywhere(value, type, find)
        assert found is not None
        return found

    return sf.exists(values, is_found)


def _either(*found: Column | None) -> Column | None:
    conditions = [condition for condition in found if condition is not None]
    return reduce(or_, conditions) if conditions else None
