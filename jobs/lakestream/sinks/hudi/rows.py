"""Rows that Hudi cannot write, or would take for another row.

A record's key in Hudi is a text. With one column it is the value, unless the partition has several; else it has the
columns' names, as `order:1,shop:2`, where a null is
`__null__` and an empty value `__empty__` (`KeyGenerator.constructRecordKey`), and nothing is escaped: two rows can have
one text. Keys are not ours to escape: other engines make them of the columns too, and so did the rows that are there.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import DoubleType, FloatType, StringType, StructType

from lakestream.sinks.hudi.ancient import ancient
from lakestream.sinks.hudi.options import key_generator
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.partitions import partition_refusals
from lakestream.spark.exact import MISSING
from lakestream.spark.quoting import quoted
from lakestream.spark.refusals import first_reason
from lakestream.storage import LakePath
from lakestream_api import IndexType

_PLACEHOLDERS = ("__null__", "__empty__")

_FILE_BYTES = 200
"""More than a path has beside the partition where it is longest: the marker of a log file in `.hoodie/.temp`."""

_ENDLESS_VALUE = r"(?s)^(?=.*,)(?:[^:]*|[^:]*:.*,[^,:]*):[^,:]*:[^,]*(?:,[^:]*)?$"
_ENDLESS_LAST = r"(?s),[^,:]*:[^,:]*:[^,]*(?:,[^:]*)?$"
"""The key that is one value, and the last value of one with names, for which the bucket index of Hudi 1.2.0 never ends:
`KeyGenUtils.extractRecordKeysByFields` takes a text with a comma and a colon for several columns, and looks for the
comma before the next column's colon, for ever if there is none: `http://shop:80/a,b`."""


def refusal(settings: HudiSettings, output: StructType) -> Column | None:
    """Why a row cannot be written: null, or the reason."""
    path = LakePath.parse(settings.path)
    return first_reason(
        (
            *_keys(settings, output),
            *_ordering(settings, output),
            *partition_refusals(path, output, settings.partition_by, _FILE_BYTES),
            *ancient(output),
        )
    )


def _keys(settings: HudiSettings, output: StructType) -> Iterator[Column]:
    keys = settings.record_key
    texts = [name for name in keys if isinstance(output[name].dataType, StringType)]
    for name in keys:
        yield _when(sf.col(quoted(name)).isNull(), f"{MISSING}: {name}")
    if len(keys) == 1:
        for name in texts:
            yield _when(sf.col(quoted(name)) == "", f"empty: {name}")
    elif texts == [*keys]:
        # Hudi refuses a key of nothing but empty values.
        yield _when(sf.concat(*(sf.col(quoted(name)) for name in keys)) == "", f"empty: {', '.join(keys)}")
    if settings.upserts:
        yield from _mistaken(keys, texts)
        if settings.index is IndexType.BUCKET and keys[-1] in texts:
            named = len(keys) > 1 or key_generator(settings) == "COMPLEX"
            endless = sf.col(quoted(keys[-1])).rlike(_ENDLESS_LAST if named else _ENDLESS_VALUE)
            yield _when(
                _has(keys[-1], ",") & _has(keys[-1], ":") & endless,
                f"key {keys[-1]}: Hudi's bucket index does not end on its commas and colons",
            )


def _mistaken(keys: tuple[str, ...], texts: list[str]) -> Iterator[Column]:
    """Of several columns, values by which one key would be another's."""
    if len(keys) == 1:
        return
    for name in texts:
        value = sf.col(quoted(name))
        for other in keys[1:]:
            yield _when(_has(name, f",{other}:"), f"key {name}: has ,{other}: in it, as if column {other} began there")
        for placeholder in _PLACEHOLDERS:
            yield _when(value == placeholder, f"key {name}: is {placeholder}, which Hudi writes for no value")


def _ordering(settings: HudiSettings, output: StructType) -> Iterator[Column]:
    if settings.ordering_field is None:
        return
    column = sf.col(quoted(settings.ordering_field))
    # Hudi takes null for the oldest version in one place and for the newest in another.
    yield _when(column.isNull(), f"{MISSING}: {settings.ordering_field}")
    if isinstance(output[settings.ordering_field].dataType, DoubleType | FloatType):
        # It is above all numbers: no later version would ever be newer.
        yield _when(sf.isnan(column), f"not a number: {settings.ordering_field}")


def _has(name: str, text: str) -> Column:
    return sf.instr(sf.col(quoted(name)), text) > 0


def _when(condition: Column, reason: str) -> Column:
    return sf.when(condition, sf.lit(reason))
