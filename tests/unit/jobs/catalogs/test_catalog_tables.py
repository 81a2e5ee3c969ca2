"""Tables in Hive's terms, of those that the sinks write."""

from __future__ import annotations

import json

import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from lakestream.catalogs.tables import Column, JsonSerde, hive_type, hudi_tables, json_table, values_of
from lakestream.sinks.hive_paths import NULL_PARTITION, partition_path
from lakestream_api import TableType

COLUMNS = (
    StructType()
    .add("_hoodie_commit_time", StringType())
    .add("order_id", StringType())
    .add("Shop", LongType())
    .add("at", TimestampType())
    .add("dt", StringType())
)
PATH = "s3://lake/orders"


@pytest.mark.parametrize(
    ("type", "expected", "as_text"),
    [
        (LongType(), "bigint", "bigint"),
        (DecimalType(10, 2), "decimal(10,2)", "decimal(10,2)"),
        (DateType(), "date", "date"),
        (TimestampType(), "timestamp", "string"),
        (TimestampNTZType(), "timestamp", "string"),
        (BinaryType(), "binary", "string"),
        (DayTimeIntervalType(), "interval day to second", "string"),
        (YearMonthIntervalType(), "interval year to month", "string"),
        (ArrayType(TimestampType()), "array<timestamp>", "array<string>"),
        (MapType(StringType(), BinaryType()), "map<string,binary>", "map<string,string>"),
        (StructType().add("A", StructType().add("b", TimestampNTZType())), "struct<a:struct<b:timestamp>>",
         "struct<a:struct<b:string>>"),
    ],
    ids=lambda type: type.simpleString() if isinstance(type, DataType) else "",
)  # fmt: skip
def test_types_are_written_as_hive_does(type: DataType, expected: str, as_text: str) -> None:
    assert hive_type(type, as_text=False) == expected
    assert hive_type(type, as_text=True) == as_text


def test_a_merge_on_read_table_is_there_with_all_rows_and_with_the_compacted_ones() -> None:
    plain, read_optimized, realtime = hudi_tables("orders", PATH, TableType.MERGE_ON_READ, COLUMNS, ("dt",))
    assert [table.name for table in (plain, read_optimized, realtime)] == ["orders", "orders_ro", "orders_rt"]
    assert plain.format == realtime.format
    assert plain.format.input == "org.apache.hudi.hadoop.realtime.HoodieParquetRealtimeInputFormat"
    assert read_optimized.format.input == "org.apache.hudi.hadoop.HoodieParquetInputFormat"
    assert [table.format.serde_properties["hoodie.query.as.ro.table"] for table in (plain, read_optimized)] == [
        "false",
        "true",
    ]
    for table in (plain, read_optimized, realtime):
        assert table.location == "s3://lake/orders"
        assert table.location_of("dt=2026-01-31") == "s3://lake/orders/dt=2026-01-31"
        assert [column.name for column in table.columns] == ["_hoodie_commit_time", "order_id", "shop", "at"]
        assert table.partition_keys == (Column("dt", "string"),)


def test_a_copy_on_write_table_is_there_once() -> None:
    (table,) = hudi_tables("orders", PATH, TableType.COPY_ON_WRITE, COLUMNS, ())
    assert (table.name, table.partition_keys) == ("orders", ())
    assert Column("dt", "string") in table.columns
    assert table.properties["spark.sql.sources.provider"] == "hudi"
    assert "spark.sql.sources.schema.numPartCols" not in table.properties


def test_spark_finds_the_schema_in_parts_with_the_partition_columns_last() -> None:
    wide = StructType(COLUMNS.fields)
    for number in range(200):
        wide = wide.add(f"a_column_of_a_longer_name_{number}", LongType())
    (table,) = hudi_tables("orders", PATH, TableType.COPY_ON_WRITE, wide, ("dt",))
    prefix = "spark.sql.sources.schema"
    parts = [
        table.properties[f"{prefix}.part.{number}"] for number in range(int(table.properties[f"{prefix}.numParts"]))
    ]
    assert len(parts) > 1
    assert max(map(len, parts)) <= 4000
    fields = [field["name"] for field in json.loads("".join(parts))["fields"]]
    assert fields == [*(name for name in wide.names if name != "dt"), "dt"]
    assert (table.properties[f"{prefix}.numPartCols"], table.properties[f"{prefix}.partCol.0"]) == ("1", "dt")


def test_texts_of_json_are_texts_of_the_table() -> None:
    table = json_table("orders", "s3://lake/orders_json", COLUMNS, ("dt", "Shop"), JsonSerde.HCATALOG)
    assert table.format.serde == "org.apache.hive.hcatalog.data.JsonSerDe"
    assert Column("at", "string") in table.columns
    assert table.partition_keys == (Column("dt", "string"), Column("shop", "bigint"))
    assert table.properties["classification"] == "json"
    # Spark's own JSON takes both.
    assert table.properties["spark.sql.sources.provider"] == "json"
    assert '"type":"timestamp"' in table.properties["spark.sql.sources.schema.part.0"]


def test_keys_of_maps_are_texts_for_spark_at_any_depth() -> None:
    """Its JSON reader makes such of them, whatever it is told."""

    def columns(key: DataType) -> StructType:
        counts = MapType(key, ArrayType(StructType().add("n", MapType(key, LongType(), False), nullable=False)))
        return StructType().add("counts", counts, metadata={"comment": "by size"})

    table = json_table("t", PATH, columns(IntegerType()), (), JsonSerde.HCATALOG)
    assert json.loads(table.properties["spark.sql.sources.schema.part.0"]) == columns(StringType()).jsonValue()
    # The SerDes know them.
    assert table.columns == (Column("counts", "map<int,array<struct<n:map<int,bigint>>>>"),)


def test_keys_of_partitions_are_whole_numbers_or_texts() -> None:
    columns = StructType().add("n", ByteType()).add("d", DateType()).add("t", TimestampType()).add("x", LongType())
    table = json_table("t", PATH, columns, ("n", "d", "t"), JsonSerde.OPENX)
    assert [key.type for key in table.partition_keys] == ["tinyint", "string", "string"]


@pytest.mark.parametrize("values", [("2026-01-31",), ("a/b c%", "é=ü:"), (NULL_PARTITION, "100%25")])
def test_values_of_a_partition_come_back_from_its_path(values: tuple[str, ...]) -> None:
    assert values_of(partition_path(["dt", "kind"][: len(values)], values)) == values
