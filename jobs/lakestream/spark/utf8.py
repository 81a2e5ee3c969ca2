"""Texts that are none. A record's are UTF-8, but SQL makes texts of any bytes: `CAST(unbase64(x) AS STRING)` keeps them
as they are. Readers by Arrow fail at such a column, and Hudi takes two keys of such bytes for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from operator import or_

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from lakestream.spark.parse import quoted

_MAKES_BYTES = re.compile(r"binary|unbase64|unhex|encode|aes_|\bx'|\bx\"|sketch|bitmap", re.IGNORECASE)
"""In SQL that makes bytes, or might: to look costs a fifth of a microsecond a text."""


def not_texts(schema: StructType, sql: str | None, output: StructType) -> Iterator[Column]:
    """Why a row has something for a text that is none, by column; each is null if there is nothing to say.

    Args:
        schema: of the events.
        sql: `spec.transform`.
        output: columns of the rows.
    """
    if sql is None or not (_MAKES_BYTES.search(sql) or _has(schema, BinaryType)):
        return
    for field in output.fields:
        if _has(field.dataType, StringType):
            yield sf.when(_is_none(sf.col(quoted(field.name)), field.dataType), sf.lit(f"not UTF-8: {field.name}"))


def _has(type: DataType, wanted: type[DataType]) -> bool:
    match type:
        case StructType():
            return any(_has(field.dataType, wanted) for field in type.fields)
        case ArrayType():
            return _has(type.elementType, wanted)
        case MapType():
            return _has(type.keyType, wanted) or _has(type.valueType, wanted)
    return isinstance(type, wanted)


def _is_none(value: Column, type: DataType) -> Column:
    """Whether a value has a text in it that is none; never null."""
    match type:
        case StringType():
            content = value.cast("binary")
            return sf.coalesce(content != sf.encode(sf.decode(content, "UTF-8"), "UTF-8"), sf.lit(False))
        case StructType():
            texts = [field for field in type.fields if _has(field.dataType, StringType)]
            return reduce(or_, (_is_none(value.getField(field.name), field.dataType) for field in texts), sf.lit(False))
        case ArrayType() if _has(type.elementType, StringType):
            inner = type.elementType
            return sf.coalesce(sf.exists(value, lambda one: _is_none(one, inner)), sf.lit(False))
        case MapType():
            keys, values = ArrayType(type.keyType), ArrayType(type.valueType)
            return _is_none(sf.map_keys(value), keys) | _is_none(sf.map_values(value), values)
    return sf.lit(False)
