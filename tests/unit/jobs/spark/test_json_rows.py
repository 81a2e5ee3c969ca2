"""Rows of Arrow as events: each value comes out equal, or the record is refused."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import types as spark

from lakestream.spark.events import EventReader
from lakestream.spark.json_rows import doubled_column, json_rows, unreadable_column

instants = st.datetimes(datetime(1970, 1, 2), datetime(9998, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
local = st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1))  # noqa: DTZ001
CASES: list[tuple[pa.DataType, spark.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), spark.LongType(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), spark.LongType(), st.integers(0, 2**64 - 1)),
    (pa.int64(), spark.IntegerType(), st.integers(-(2**40), 2**40)),
    (pa.float64(), spark.DoubleType(), st.floats()),
    (pa.float32(), spark.FloatType(), st.floats(width=32)),
    (pa.float32(), spark.DoubleType(), st.floats(width=32)),
    (pa.bool_(), spark.BooleanType(), st.booleans()),
    (pa.string(), spark.StringType(), st.text()),
    (pa.large_string(), spark.StringType(), st.text()),
    (pa.dictionary(pa.int32(), pa.string()), spark.StringType(), st.sampled_from(["a", "b"])),
    (pa.binary(), spark.BinaryType(), st.binary()),
    (pa.decimal128(38, 10), spark.DecimalType(38, 10), st.decimals(-(10**20), 10**20, places=10)),
    (pa.decimal128(20, 4), spark.DecimalType(10, 2), st.decimals(-(10**9), 10**9, places=4)),
    (pa.timestamp("us", "UTC"), spark.TimestampType(), instants),
    (pa.timestamp("us", "Europe/Berlin"), spark.TimestampType(), instants),
    (pa.timestamp("ms", "UTC"), spark.TimestampType(), instants.map(lambda one: one.replace(microsecond=7000))),
    (pa.timestamp("us"), spark.TimestampNTZType(), local),
    (pa.date32(), spark.DateType(), st.dates(date(1, 1, 2), date(9999, 12, 30))),
    (pa.time64("us"), spark.StringType(), st.times().map(lambda one: one.replace(microsecond=1))),
    (
        pa.list_(pa.struct([("t", pa.timestamp("us", "UTC")), ("d", pa.decimal128(9, 2))])),
        spark.ArrayType(
            spark.StructType(
                [spark.StructField("t", spark.TimestampType()), spark.StructField("d", spark.DecimalType(9, 2))]
            )
        ),
        st.lists(
            st.none()
            | st.fixed_dictionaries({"t": st.none() | instants, "d": st.none() | st.decimals(-9, 9, places=2)}),
            max_size=3,
        ),
    ),
    (
        pa.map_(pa.string(), pa.list_(pa.float64())),
        spark.MapType(spark.StringType(), spark.ArrayType(spark.DoubleType())),
        st.dictionaries(st.text(max_size=2), st.none() | st.lists(st.none() | st.floats(), max_size=2), max_size=3),
    ),
]


def plain(value: Any) -> Any:
    """As values of any type compare; of maps the entries are in no order."""
    match value:
        case list() if value and all(isinstance(entry, tuple) for entry in value):
            return {key: plain(item) for key, item in value}
        case list():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case time():
            return value.isoformat()
        case datetime():
            return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
    return value


@pytest.mark.parametrize(("arrow", "type", "values"), CASES, ids=lambda case: str(case)[:40])
@given(data=st.data(), skipped=st.integers(0, 2))
def test_a_value_comes_out_equal_or_the_record_is_refused(
    arrow: pa.DataType, type: spark.DataType, values: st.SearchStrategy[Any], data: st.DataObject, skipped: int
) -> None:
    given_values = data.draw(st.lists(st.none() | values, min_size=1, max_size=6))
    rows = pa.record_batch({"c": pa.array(given_values, pa.large_string() if arrow == pa.large_string() else arrow)})
    rows = rows.slice(skipped)
    events = EventReader(spark.StructType([spark.StructField("c", type)])).read(list(json_rows(rows)))
    assert events.rescued.null_count == len(events.rescued)
    found, reasons = events.columns[0].to_pylist(), events.reasons.to_pylist()
    for sent, read, reason in zip(rows["c"].to_pylist(), found, reasons, strict=True):
        if reason is None:
            assert plain(read) == ([] if sent == [] else plain(sent))
        else:
            assert not can_be_held(sent, type), reason


def can_be_held(value: Any, type: spark.DataType) -> bool:
    """Whether a column of the type can hold a value."""
    match value, type:
        case list(), _:
            return all(can_be_held(item, type) for item in value)
        case tuple(), _:
            return all(can_be_held(item, type) for item in value)
        case dict(), _:
            return all(can_be_held(item, type) for item in value.values())
        case float(), _:
            return math.isfinite(value)
        case bool(), _:
            return True
        case int(), spark.IntegerType():
            return -(2**31) <= value < 2**31
        case int(), _:
            return -(2**63) <= value < 2**63
        case Decimal(), spark.DecimalType() if type.scale == 2 and type.precision == 10:
            return value == round(value, 2) and abs(value) < 10**8
    return True


def test_columns_that_are_null_are_left_out() -> None:
    rows = pa.record_batch({"a": [None, 1], "b": [{"x": None, "y": 1}, None]})
    assert list(json_rows(rows)) == [b'{"b":{"y":1}}', b'{"a":1}']


def test_digits_are_kept() -> None:
    (row,) = json_rows(pa.record_batch({"d": pa.array([Decimal("1.10")], pa.decimal128(9, 2))}))
    assert row == b'{"d":1.10}'


@pytest.mark.parametrize(
    ("type", "is_read"),
    [
        (pa.duration("s"), False),
        (pa.list_(pa.duration("s")), False),
        (pa.map_(pa.int32(), pa.string()), False),
        (pa.list_(pa.int32(), 3), False),
        (pa.struct([("a", pa.map_(pa.string(), pa.binary()))]), True),
        (pa.dictionary(pa.int32(), pa.string()), True),
    ],
)
def test_types_without_a_value_in_json_are_told(type: pa.DataType, is_read: bool) -> None:
    schema = pa.schema([("ok", pa.int64()), ("c", type)])
    assert unreadable_column(schema) == (None if is_read else f"c {type}")


def test_a_name_that_is_there_twice_is_told() -> None:
    twice = pa.struct([("x", pa.int64()), ("X", pa.int64()), ("x", pa.string())])
    maps = pa.map_(pa.string(), pa.list_(pa.field("element", twice)))
    assert (
        doubled_column(pa.schema([("a", pa.int64()), ("A", pa.int64()), ("b", pa.struct([("a", pa.int64())]))])) is None
    )
    assert doubled_column(pa.schema([("a", pa.int64()), ("b", pa.int64()), ("a", pa.string())])) == "a"
    assert doubled_column(pa.schema([("a", twice)])) == "a.x"
    assert (doubled_column(pa.schema([("m", maps)])) or "").endswith("element.x")
