"""Tables as a catalog has them, in Hive's terms: pure.

Names, formats and properties are those that Hudi's own HiveSyncTool writes, so that engines know what a table is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    YearMonthIntervalType,
)

from lakestream.sinks.hive_paths import NULL_PARTITION, partition_values
from lakestream_api import TableType

_PROPERTY_LENGTH = 4_000
"""Characters that a property of a Hive metastore may have; a longer schema is put in parts."""


@dataclass(frozen=True)
class Column:
    """A column, with its type as Hive writes it."""

    name: str
    type: str


@dataclass(frozen=True)
class Format:
    """The classes that read and write files, and what they are told."""

    input: str
    output: str
    serde: str
    serde_properties: Mapping[str, str]

    def is_told_by(self, found: Format) -> bool:
        """Whether a catalog says all this."""
        return self.serde_properties.items() <= found.serde_properties.items() and self == replace(
            found, serde_properties=self.serde_properties
        )


@dataclass(frozen=True)
class CatalogTable:
    """An external table."""

    name: str
    location: str
    """Of its files, without a slash at the end."""
    columns: tuple[Column, ...]
    """Without those of the partitions."""
    partition_keys: tuple[Column, ...]
    """From the outermost."""
    format: Format
    properties: Mapping[str, str]

    def location_of(self, partition: str) -> str:
        """Of a partition, by its path."""
        return f"{self.location}/{partition}"

    def in_order_of(self, found: CatalogTable) -> CatalogTable:
        """With its columns in the order that a catalog has them in, and new ones last: a Hive metastore compares types
        by place, and refuses others."""
        places = {column.name: place for place, column in enumerate(found.columns)}
        return replace(
            self, columns=tuple(sorted(self.columns, key=lambda column: places.get(column.name, len(places))))
        )

    def is_told_by(self, found: CatalogTable) -> bool:
        """Whether a catalog says all this of it; others keep properties of a table, and of its SerDe, as well."""
        return (
            found.columns == self.columns
            and self.format.is_told_by(found.format)
            and self.properties.items() <= found.properties.items()
        )


def values_of(partition: str) -> tuple[str, ...]:
    """A catalog's values of a partition, by its path."""
    return tuple(NULL_PARTITION if value is None else value for value in partition_values(partition).values())


def hudi_tables(
    name: str, location: str, table_type: TableType, columns: StructType, partition_by: Sequence[str]
) -> tuple[CatalogTable, ...]:
    """The tables by which engines query a Hudi table.

    A merge-on-read table is there three times: under its name and as `_rt`, with all rows, and as `_ro`, with those of
    base files alone (read-optimized).

    Args:
        name: of the table.
        location: of its files.
        table_type: copy-on-write or merge-on-read.
        columns: as they are stored, Hudi's own and those of the partitions included.
        partition_by: names of those of the partitions, from the outermost.
    """

    def table(name: str, *, merges: bool, reads_bases_alone: bool) -> CatalogTable:
        input_format = "realtime.HoodieParquetRealtimeInputFormat" if merges else "HoodieParquetInputFormat"
        return _table(
            name,
            location,
            columns,
            partition_by,
            Format(
                f"org.apache.hudi.hadoop.{input_format}",
                "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
                "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
                MappingProxyType({
                    "serialization.format": "1",
                    "hoodie.query.as.ro.table": str(reads_bases_alone).lower(),
                    "path": location,
                }),
            ),
            _properties("hudi", columns, partition_by),
        )  # fmt: skip

    if table_type is TableType.COPY_ON_WRITE:
        return (table(name, merges=False, reads_bases_alone=False),)
    return (
        table(name, merges=True, reads_bases_alone=False),
        table(f"{name}_ro", merges=False, reads_bases_alone=True),
        table(f"{name}_rt", merges=True, reads_bases_alone=False),
    )


class JsonSerde(StrEnum):
    """What reads JSON lines."""

    OPENX = "org.openx.data.jsonserde.JsonSerDe"
    """Athena's."""
    HCATALOG = "org.apache.hive.hcatalog.data.JsonSerDe"
    """Hive's own."""


def json_table(
    name: str, location: str, columns: StructType, partition_by: Sequence[str], serde: JsonSerde
) -> CatalogTable:
    """A table of JSON lines.

    In the files a timestamp is a text (ISO 8601), which the SerDes do not take for one, and so are bytes (base64) and
    intervals: so they are in the table. Spark reads it by its own JSON, which takes all of these; but the keys of maps
    it leaves as the texts that they are, whatever the schema says.
    """
    return _table(
        name,
        location,
        columns,
        partition_by,
        Format(
            "org.apache.hadoop.mapred.TextInputFormat",
            "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
            serde,
            MappingProxyType({"serialization.format": "1", "case.insensitive": "true", "path": location}),
        ),
        {
            "classification": "json",
            # Else it would list the folders at each query.
            "spark.sql.partitionProvider": "catalog",
            **_properties("json", _with_text_keys(columns), partition_by),
        },
        as_text=True,
    )


def _table(
    name: str,
    location: str,
    columns: StructType,
    partition_by: Sequence[str],
    read_by: Format,
    properties: Mapping[str, str],
    *,
    as_text: bool = False,
) -> CatalogTable:
    return CatalogTable(
        name=name,
        location=location,
        columns=tuple(
            Column(field.name.lower(), hive_type(field.dataType, as_text=as_text))
            for field in columns.fields
            if field.name not in partition_by
        ),
        partition_keys=tuple(Column(key.lower(), _key_type(columns[key].dataType)) for key in partition_by),
        format=read_by,
        properties=MappingProxyType(dict(properties)),
    )


def hive_type(type: DataType, *, as_text: bool) -> str:
    """A type as Hive writes it.

    Args:
        type: the type.
        as_text: timestamps, intervals and bytes are texts in the files.
    """
    match type:
        case TimestampType() | TimestampNTZType():
            return "string" if as_text else "timestamp"
        case BinaryType() | DayTimeIntervalType() | YearMonthIntervalType() if as_text:
            return "string"
        case ArrayType():
            return f"array<{hive_type(type.elementType, as_text=as_text)}>"
        case MapType():
            values = (hive_type(part, as_text=as_text) for part in (type.keyType, type.valueType))
            return f"map<{','.join(values)}>"
        case StructType():
            fields = (f"{field.name.lower()}:{hive_type(field.dataType, as_text=as_text)}" for field in type.fields)
            return f"struct<{','.join(fields)}>"
    return type.simpleString()


def _with_text_keys(columns: StructType) -> StructType:
    """With the keys of maps, at any depth, as texts."""

    def read(type: DataType) -> DataType:
        match type:
            case ArrayType():
                return ArrayType(read(type.elementType), type.containsNull)
            case MapType():
                return MapType(StringType(), read(type.valueType), type.valueContainsNull)
            case StructType():
                return _with_text_keys(type)
        return type

    return StructType([
        StructField(field.name, read(field.dataType), field.nullable, field.metadata) for field in columns.fields
    ])  # fmt: skip


def _key_type(type: DataType) -> str:
    """Of a partition's column, whose values are texts in the catalog: whole numbers, and texts for all else."""
    is_whole = isinstance(type, ByteType | ShortType | IntegerType | LongType)
    return type.simpleString() if is_whole else "string"


def _properties(provider: str, columns: StructType, partition_by: Sequence[str]) -> dict[str, str]:
    """By which Spark reads the table with a data source of its own, and not with Hive's classes."""
    data = [field for field in columns.fields if field.name not in partition_by]
    schema = StructType([*data, *(columns[name] for name in partition_by)]).json()
    parts = [schema[at : at + _PROPERTY_LENGTH] for at in range(0, len(schema), _PROPERTY_LENGTH)]
    properties = {
        "EXTERNAL": "TRUE",
        "spark.sql.sources.provider": provider,
        "spark.sql.sources.schema.numParts": str(len(parts)),
    }
    properties |= {f"spark.sql.sources.schema.part.{number}": part for number, part in enumerate(parts)}
    if partition_by:
        properties["spark.sql.sources.schema.numPartCols"] = str(len(partition_by))
        properties |= {f"spark.sql.sources.schema.partCol.{number}": name for number, name in enumerate(partition_by)}
    return properties
