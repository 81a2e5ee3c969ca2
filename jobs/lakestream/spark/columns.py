"""Columns of Arrow from values as `plain` and `exact` give them, all of a column at a time.

Times are taken as they are written, and read here by Arrow: some 0.03 µs each, where a regular expression in Python
takes 0.5. Of what Arrow takes for a time, only that is taken which `exact` would read as the same one.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import astuple
from pyspark.sql import types as st

from lakestream.spark.plain import FIRST_SECOND, INSTANT, LAST_SECOND, LOCAL, OFFSET

Column: TypeAlias = Callable[[Sequence[Any]], pa.Array]
"""From the values of a column, None for null, to Arrow.

Raises:
    NotPlain (of `plain`): one of them cannot be told to be exact. Never of values that `exact` has read.
"""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST, _LAST = FIRST_SECOND * 1_000_000, LAST_SECOND * 1_000_000 + 999_999

_HALF, _LOWEST_BITS, _SMALLEST_NORMAL = 1 << 28, (1 << 29) - 1, 2.0**-126
"""Of a double, in the bits that a float has not; and of floats."""


_SCALARS: dict[type[st.DataType], pa.DataType] = {
    st.StringType: pa.string(),
    st.BooleanType: pa.bool_(),
    st.ByteType: pa.int8(),
    st.ShortType: pa.int16(),
    st.IntegerType: pa.int32(),
    st.LongType: pa.int64(),
    st.FloatType: pa.float32(),
    st.DoubleType: pa.float64(),
    st.BinaryType: pa.binary(),
    st.DateType: pa.date32(),
    st.TimestampType: pa.timestamp("us", tz="UTC"),
    st.TimestampNTZType: pa.timestamp("us"),
}


def arrow_type(type: st.DataType) -> pa.DataType:
    """The type of a column, with which Spark takes it for its own."""
    match type:
        case st.DecimalType():
            return pa.decimal128(type.precision, type.scale)
        case st.ArrayType():
            return pa.list_(pa.field("element", arrow_type(type.elementType), type.containsNull))
        case st.MapType():
            return pa.map_(
                pa.field("key", arrow_type(type.keyType), nullable=False),
                pa.field("value", arrow_type(type.valueType), type.valueContainsNull),
            )
        case st.StructType():
            return pa.struct(
                [pa.field(field.name, arrow_type(field.dataType), field.nullable) for field in type.fields]
            )
    return _SCALARS[type.__class__]


def column_of(type: st.DataType) -> Column:
    """How a column of a type is made."""
    match type:
        case st.ArrayType():
            return _array(type)
        case st.MapType():
            return _map(type)
        case st.StructType():
            return _struct(type)
        case st.FloatType():
            return _floats
        case st.TimestampType():
            return _times(arrow_type(type), re.compile(INSTANT))
        case st.TimestampNTZType():
            return _times(arrow_type(type), re.compile(LOCAL))
    arrow = arrow_type(type)
    return lambda values: pa.array(values, arrow)


def columns_of(types: Sequence[Column], rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    """The columns of rows.

    Raises:
        NotPlain: as `Column`.
    """
    values = zip(*rows, strict=True) if rows else ((),) * len(types)
    return [column(each) for column, each in zip(types, values, strict=True)]


def _array(type: st.ArrayType) -> Column:
    element, arrow = column_of(type.elementType), arrow_type(type)

    def arrays(values: Sequence[Any]) -> pa.Array:
        inner = element([*chain.from_iterable(value for value in values if value is not None)])
        return pa.ListArray.from_arrays(_offsets(values), inner, type=arrow)

    return arrays


def _map(type: st.MapType) -> Column:
    key, element, arrow = column_of(type.keyType), column_of(type.valueType), arrow_type(type)

    def maps(values: Sequence[Any]) -> pa.Array:
        there = [value for value in values if value is not None]
        keys, inner = key([*chain.from_iterable(there)]), element([*chain.from_iterable(v.values() for v in there)])
        return pa.MapArray.from_arrays(_offsets(values), keys, inner, type=arrow)

    return maps


def _offsets(values: Sequence[Any]) -> pa.Array:
    """Where each begins, null for those that are null; and the end."""
    offsets: list[int | None] = []
    end = 0
    for value in values:
        offsets.append(None if value is None else end)
        end += 0 if value is None else len(value)
    return pa.array([*offsets, end], pa.int32())


def _struct(type: st.StructType) -> Column:
    columns, arrow = [column_of(field.dataType) for field in type.fields], arrow_type(type)
    fields = [arrow.field(position) for position in range(arrow.num_fields)]
    nothing = (None,) * len(columns)

    def structs(values: Sequence[Any]) -> pa.Array:
        rows = [nothing if v is None else astuple(v) if isinstance(v, Struct) else v for v in values]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(columns_of(columns, rows), fields=fields, mask=mask)

    return structs


def _floats(values: Sequence[Any]) -> pa.Array:
    """A float is the nearest one of the digits, but for those that have been rounded to the middle of two floats."""
    doubles = pa.array(values, pa.float64())
    floats = doubles.cast(pa.float32(), safe=False)
    in_middle = pc.equal(pc.bit_wise_and(doubles.view(pa.int64()), _LOWEST_BITS), _HALF)
    subnormal = pc.less(pc.abs(doubles), _SMALLEST_NORMAL)
    altered = pc.not_equal(floats.cast(pa.float64()), doubles)
    if pc.any(pc.and_(altered, pc.or_(in_middle, subnormal))).as_py():
        raise ValueError
    return floats


def _times(type: pa.TimestampType, plain: re.Pattern[str]) -> Column:
    def times(values: Sequence[Any]) -> pa.Array:
        with suppress(pa.ArrowInvalid, pa.ArrowTypeError):
            found = pa.array(values)  # of one kind, or it raises
            if pa.types.is_integer(found.type):
                return pc.multiply_checked(found, 1_000_000).cast(type)
            if pa.types.is_string(found.type) and (at_once := _at_once(found, type)) is not None:
                return at_once
        micros = [None if value is None else _micros(value, plain) for value in values]
        return pa.array(micros, pa.int64()).cast(type)

    return times


def _at_once(texts: pa.StringArray, type: pa.TimestampType) -> pa.TimestampArray | None:
    """Of texts that all have an offset, or all have none; None: there is one that `exact` might not read as the same.

    Raises:
        ArrowInvalid: they do not all have one, or all none; or one is no time to Arrow.
    """
    try:
        found = texts.cast(type)
        has_offsets = type.tz is not None
    except pa.ArrowInvalid:
        found, has_offsets = texts.cast(pa.timestamp("us")).cast(type), False
    # Arrow knows offsets of up to 24 hours.
    if has_offsets and not (_all(pc.ends_with(texts, "Z")) or _all(pc.match_substring_regex(texts, f"{OFFSET}$"))):
        return None
    bounds = pc.min_max(found.cast(pa.int64())).as_py()
    is_within = bounds["min"] is None or (bounds["min"] >= _FIRST and bounds["max"] <= _LAST)
    return found if is_within else None


def _all(found: pa.BooleanArray) -> bool:
    return bool(pc.all(found).as_py())


def _micros(value: str | int | datetime, plain: re.Pattern[str]) -> int:
    """Since the epoch."""
    if isinstance(value, int):
        return value * 1_000_000
    if isinstance(value, str):
        if not plain.match(value):
            raise ValueError
        value = datetime.fromisoformat(value)
    return ((value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
