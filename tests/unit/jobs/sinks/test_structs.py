"""Structs that Spark makes, and no sink can write."""

from __future__ import annotations

import re

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from lakestream.errors import SettingsError
from lakestream.sinks.json_files import JsonSettings, JsonSink
from lakestream.sinks.structs import require_structs
from lakestream.storage import LakePath, S3Settings, StoreSettings

PLACE = StoreSettings(LakePath.parse("/lake/json"), S3Settings("eu-west-1"))
EMPTY = StructType()
TWICE = StructType().add("a", LongType()).add("a", StringType())


@pytest.mark.parametrize(
    ("type", "said"),
    [
        (EMPTY, "column new: a struct without fields; leave it out in spec.transform"),
        (TWICE, "column new: a struct with field a twice; rename one in spec.transform"),
        (StructType().add("in", ArrayType(EMPTY)), r"column new\.in: a struct without fields"),
        (MapType(StringType(), StructType().add("in", TWICE)), r"column new\.in: a struct with field a twice"),
    ],
)
def test_json_files_have_none_of_them(type: DataType, said: str) -> None:
    """`struct()` and `named_struct('a', 1, 'a', 2)` failed in each batch, tried again and again."""
    sink = JsonSink(JsonSettings(PLACE))
    with pytest.raises(SettingsError, match=said):
        sink.prepare(StructType().add("id", LongType()).add("new", type))


@pytest.mark.parametrize("key", [BinaryType(), DateType(), TimestampType(), StructType().add("a", LongType())])
def test_keys_of_maps_in_json_are_texts(key: DataType) -> None:
    """Spark writes the days since 1970, or the address of an array, which is another one each time."""
    sink = JsonSink(JsonSettings(PLACE))
    said = rf"column in\.map: a map with keys of type {re.escape(key.simpleString())}, which are texts in JSON"
    with pytest.raises(SettingsError, match=said):
        sink.prepare(StructType().add("in", StructType().add("map", MapType(key, LongType()))))
    for harmless in (StringType(), LongType(), DecimalType(9, 2), BooleanType()):
        sink.prepare(StructType().add("map", MapType(harmless, LongType())))


def test_json_has_no_folders_of_bytes() -> None:
    """Which may be no text."""
    sink = JsonSink(JsonSettings(PLACE, partition_by=("b",)))
    with pytest.raises(SettingsError, match=r"json\.partitionBy: column b is a binary"):
        sink.prepare(StructType().add("id", LongType()).add("b", BinaryType()))


def test_fields_of_two_structs_may_have_one_name() -> None:
    one = StructType().add("a", LongType())
    require_structs(StructType().add("a", StructType().add("a", one).add("b", one)))


def test_fields_that_differ_in_case_alone_are_two_in_json() -> None:
    require_structs(StructType().add("a", StructType().add("a", LongType()).add("A", LongType())))
