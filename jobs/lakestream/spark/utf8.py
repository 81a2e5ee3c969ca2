"""Texts that are none. A record's are UTF-8, but SQL makes texts of any bytes: `CAST(unbase64(x) AS STRING)` keeps them
as they are. Readers by Arrow fail at such a column, and Hudi takes two keys of such bytes for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StringType, StructType

from lakestream.spark.refusals import refusals

_MAKES_BYTES = re.compile(r"binary|unbase64|unhex|encode|aes_|\bx'|\bx\"|sketch|bitmap", re.IGNORECASE)
"""In SQL that makes bytes, or might: elsewhere nothing is looked at."""


def not_texts(schema: StructType, sql: str | None, output: StructType) -> Iterator[Column]:
    """Why a row has something for a text that is none, by column; each is null if there is nothing to say.

    Args:
        schema: of the events.
        sql: `spec.transform`.
        output: columns of the rows.
    """
    if sql is None or not (_MAKES_BYTES.search(sql) or "binary" in schema.json()):
        return iter(())
    return refusals(output, _is_no_text, "not UTF-8")


def _is_no_text(value: Column, type: DataType) -> Column | None:
    content = value.cast("binary")
    return content != sf.encode(sf.decode(content, "UTF-8"), "UTF-8") if isinstance(type, StringType) else None
