"""Whether a table that exists is the one that the settings describe: pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakestream.errors import SettingsChangedError, SettingsError
from lakestream.sinks.hudi.deletes import IS_DELETED
from lakestream.sinks.hudi.options import KEY_GENERATORS, PARTITION_PATHS, key_generator, merge_mode
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.structs import Part, parts_of, require_structs
from lakestream_api import TableVersion

LAYOUT = "lakestream.layout"
"""Our property of the table: its bucket count, which Hudi does not keep, and which nobody may change."""

UNIQUE = "lakestream.unique"
"""Our property: `partition` of a table that an index has written which takes a key as unique in its partition only."""

_ORDERING = "hoodie.table.ordering.fields"
_ORDERED_BY = "hoodie.table.precombine.field"
"""The ordering field, as releases of Hudi before 1.1 call it. Without it Hudi 0.15 merges log files by the order in
which they were written; Hudi 1.2.0 writes the new name alone, also to tables that are for the old ones."""

_BOOTSTRAPPED_FROM, _HAS_BOOTSTRAP = "hoodie.bootstrap.base.path", "hoodie.bootstrap.index.enable"
"""Whether base files may be in another place that the table was made from. Hudi's default is yes: it looks for an index
of them whenever it looks at the table, several times a commit, with two requests to S3 each."""

_VERSION, _FIRST_VERSION = "hoodie.table.version", "hoodie.table.initial.version"
"""The version now; and the one that Hudi 1.0 or later has made the table with, which is not kept of all below 9."""

_GENERATOR, _GENERATOR_CLASS = "hoodie.table.keygenerator.type", "hoodie.table.keygenerator.class"
"""The key generator; and the same in Java, as releases of Hudi before 1.0 keep it."""
_OF_AVRO = re.compile(r"_AVRO$|Avro(?=KeyGenerator$)")
"""Those of Flink and of Hudi's own tools, to which the others leave all records in Avro: they make the same keys."""

_MERGE_MODE = "hoodie.record.merge.mode"
_PAYLOAD = "hoodie.compaction.payload.class"
"""The class, in Java, by which tables before version 9 say the same."""
_PAYLOADS = {
    "EVENT_TIME_ORDERING": ("DefaultHoodieRecordPayload", "EventTimeAvroPayload"),
    "COMMIT_TIME_ORDERING": ("OverwriteWithLatestAvroPayload",),
}
"""Those that Hudi takes for each mode (`HoodieTableConfig.inferRecordMergeModeFromPayloadClass`)."""

_ANEW = "Set it back; or, to write a new table, give another path and another spec.checkpoint"


def kept_properties(settings: HudiSettings, found: Mapping[str, str]) -> dict[str, str]:
    """Properties (`hoodie.properties`) that Hudi itself does not write, but for those that a table has."""
    properties = {LAYOUT: settings.layout}
    if settings.upserts and settings.partition_by and not (settings.has_buckets or settings.is_global):
        properties[UNIQUE] = "partition"
    if _BOOTSTRAPPED_FROM not in found:
        properties[_HAS_BOOTSTRAP] = "false"
    if settings.version is TableVersion.SIX and settings.ordering_field is not None:
        properties[_ORDERED_BY] = settings.ordering_field
    return {name: value for name, value in properties.items() if name not in found}


def with_version(found: Mapping[str, str], settings: HudiSettings) -> HudiSettings:
    """The settings with the version of a table that exists, if they leave it open.

    Args:
        found: the table's properties (`hoodie.properties`).
        settings: of the document.

    Raises:
        SettingsChangedError: nobody can write that version here.
    """
    has = found[_VERSION]
    if has not in {str(version.value) for version in TableVersion}:
        raise SettingsChangedError(
            f"hudi.path: the table at {settings.path} is of Hudi's table version {has}, and LakeStream writes "
            f"{' and '.join(str(version.value) for version in TableVersion)}. Give another path and another "
            "spec.checkpoint, or bring the table to one of them with Hudi's own tool (upgrade_table)."
        )
    return settings if settings.table_version else replace(settings, table_version=TableVersion(int(has)))


def require_same_table(found: Mapping[str, str], settings: HudiSettings) -> None:
    """Compare a table's properties (`hoodie.properties`) with the settings.

    Raises:
        SettingsChangedError: names the field or property, what the table has, and what to do.
    """
    wanted = {
        "tableVersion": (_VERSION, str(settings.version.value)),
        "tableType": ("hoodie.table.type", settings.table_type.value),
        "recordKey": ("hoodie.table.recordkey.fields", ",".join(settings.record_key)),
        "partitionBy": ("hoodie.table.partition.fields", ",".join(settings.partition_by)),
        "orderingField": (_ordering(found, settings), settings.ordering_field or ""),
        "index": (LAYOUT, settings.layout),
    }
    for field, (name, value) in wanted.items():
        # A table that somebody else made has no layout of ours: then it is what the settings say from now on.
        has = found.get(name, value if name == LAYOUT else "")
        if has != value:
            raise SettingsChangedError(
                f"hudi.{field}: the table at {settings.path} has {has or 'none'!r}, the document says "
                f"{value or 'none'!r}; this cannot change once a table exists. {_ANEW}."
            )
    _require_unique(found, settings)
    _require_same_places(found, settings)
    _require_same_keys(found, settings)
    _require_same_order(found, settings)


def _require_unique(found: Mapping[str, str], settings: HudiSettings) -> None:
    """Of a key that is in two partitions, a global index of Hudi 1.2.0 takes the next version into the table twice."""
    if settings.is_global and found.get(UNIQUE) == "partition":
        raise SettingsChangedError(
            f"hudi.index: the table at {settings.path} was written by an index that takes a key as unique in its "
            f"partition only, and the document says {settings.index.value}: a key that is in two partitions would get "
            f"two rows in one. {_ANEW}."
        )


def _ordering(found: Mapping[str, str], settings: HudiSettings) -> str:
    """The property that tells the ordering field. Without one the rows that were written last count, and the field that
    older releases name all the same decides nothing."""
    return _ORDERED_BY if settings.ordering_field is not None and _ORDERING not in found else _ORDERING


def _require_same_places(found: Mapping[str, str], settings: HudiSettings) -> None:
    """A table that somebody else made must have a key where LakeStream puts it: elsewhere it would be a second row."""
    generator = key_generator(settings)
    wanted = {_GENERATOR: generator, _GENERATOR_CLASS: KEY_GENERATORS[generator]}
    if settings.partition_by:
        wanted |= PARTITION_PATHS
    for name, value in wanted.items():
        # Hudi takes partition paths that nobody spoke of for plain ones; the generator it keeps by one of its names.
        has = found.get(name, "false" if name in PARTITION_PATHS else value)
        if _OF_AVRO.sub("", has) != value:
            raise SettingsChangedError(
                f"hudi.path: the table at {settings.path} was made with {name}={has}, and LakeStream writes with "
                f"{value}: a key that is there would get a second row. Give another path and another spec.checkpoint."
            )


def _require_same_keys(found: Mapping[str, str], settings: HudiSettings) -> None:
    """A key of one column, in partitions of several, is `order_id:1` to some releases of Hudi, LakeStream's among them,
    and `1` to others (0.14.1 to 1.0.2; HUDI-7001); nothing in the properties says which."""
    is_told_apart = key_generator(settings) != "COMPLEX" or len(settings.record_key) > 1
    if is_told_apart or not settings.upserts or (_GENERATOR_CLASS not in found and _is_of_later_release(found)):
        return
    raise SettingsChangedError(
        f"hudi.path: the table at {settings.path} may have been written by a release of Hudi that leaves the column's "
        "name out of a key of one column in partitions of several, and LakeStream writes it, as "
        f"{settings.record_key[0]}:1: a key that is there would get a second row. Give another path and another "
        "spec.checkpoint."
    )


def _is_of_later_release(found: Mapping[str, str]) -> bool:
    """Whether a table is LakeStream's, or was made by Hudi 1.1 or later; as those are that a kill has left without our
    layout."""
    has_new_names = found[_VERSION] == "6" and _ORDERING in found
    return LAYOUT in found or has_new_names or found.get(_FIRST_VERSION) == "9"


def _require_same_order(found: Mapping[str, str], settings: HudiSettings) -> None:
    """A table that somebody else made must take the same one of two versions of a key: readers merge by its word."""
    mode = merge_mode(settings)
    for name, right in ((_MERGE_MODE, (mode,)), (_PAYLOAD, _PAYLOADS[mode])):
        has = found.get(name, right[0])
        if has.rpartition(".")[2] not in right:
            raise SettingsChangedError(
                f"hudi.path: the table at {settings.path} was made with {name}={has}, and LakeStream writes with "
                f"{right[0]}: readers would take another version of a key than it does. Give another path and another "
                "spec.checkpoint."
            )


def require_columns(output: StructType, settings: HudiSettings) -> None:
    """Check that the columns that the settings name are there, and of one value each; and that Hudi takes all of them.

    Raises:
        SettingsError: names the field and the column.
    """
    ordering = () if settings.ordering_field is None else (settings.ordering_field,)
    fields = {"recordKey": settings.record_key, "orderingField": ordering, "partitionBy": settings.partition_by}
    for field, columns in fields.items():
        for column in columns:
            if column not in output.names:
                raise SettingsError(f"hudi.{field}: there is no column {column}; there are {', '.join(output.names)}")
            if isinstance(output[column].dataType, StructType | ArrayType | MapType):
                raise SettingsError(
                    f"hudi.{field}: column {column} is a {output[column].dataType.simpleString()}; a column of "
                    "spec.transform can have its fields as text"
                )
    if reserved := [name for name in output.names if name.startswith("_hoodie_")]:
        raise SettingsError(
            f"column {reserved[0]}: names that begin with _hoodie_ are Hudi's; rename it in spec.transform"
        )
    require_structs(output)
    for part in parts_of(output):
        if (why := _untaken(part)) is not None:
            raise SettingsError(f"column {part.path}: {why} in spec.transform")


def require_partitions(output: StructType, settings: HudiSettings) -> None:
    """Check that readers of a new table will find what its partitions are of.

    Hudi 1.2.0 names them by the microseconds of a time and the digits of bytes, and Spark takes the name for the value:
    it reads each timestamp as null, fails at those without a zone, and has the digits for the bytes.

    Raises:
        SettingsError: names the column.
    """
    for column in settings.partition_by:
        match output[column].dataType:
            case TimestampType() | TimestampNTZType() | BinaryType() as type:
                raise SettingsError(
                    f"hudi.partitionBy: column {column} is a {type.simpleString()}, which Spark does not read back "
                    "from a partition's name. Make a DATE or a text of it in spec.transform, as "
                    f"date_format({column}, 'yyyy-MM-dd-HH')"
                )


def _untaken(part: Part) -> str | None:
    """Why Hudi fails at it, and what to do; None: it does not. It goes by Avro's schemas, and writes Parquet."""
    if part.name is not None and not _is_name(part.name):
        return f"names in a Hudi table {_NAMES}; rename it"
    match part.type:
        case StructType(names=names) if (alike := _alike(names)) is not None:
            return f"a struct with fields {alike[0]} and {alike[1]}, and no Spark reads a table with both; rename one"
        case StructType() | ArrayType() | MapType(keyType=StringType()):
            return None
        case MapType(keyType=key):
            return f"keys of a map are texts in a Hudi table, and not {key.simpleString()}; CAST them"
        case NullType():
            return "a NULL without a type; CAST it AS the type that it may have one day"
    return None if isinstance(part.type, _TAKEN) else f"a Hudi table has no {part.type.simpleString()}; CAST it"


def _alike(names: Iterable[str]) -> tuple[str, str] | None:
    """Two names that differ in case alone."""
    seen: dict[str, str] = {}
    return next(((first, name) for name in names if (first := seen.setdefault(name.lower(), name)) != name), None)


_NAMES = "have letters, digits and _ alone, and no digit in front"
_TAKEN = (BinaryType, BooleanType, DateType, NumericType, StringType, TimestampNTZType, TimestampType)


def _is_name(text: str) -> bool:
    """As `Schema.validateName` of Avro 1.11, which goes by Java's letters: those of any language, of 16 bits."""
    taken = all((char == "_" or char.isalpha() or char.isdecimal()) and char <= "\uffff" for char in text)
    return taken and not text[:1].isdecimal() and text != ""


def require_evolution(table: StructType, output: StructType, settings: HudiSettings) -> None:
    """Check that the rows only add columns to those of the table, or widen them (see `widens`).

    Both are as Hudi gives types back, without its own columns.

    Raises:
        SettingsChangedError: a column is gone, or has another type.
    """
    types = {field.name: field.dataType for field in output.fields}
    placing = {*settings.record_key, *settings.partition_by, settings.ordering_field}
    # A delete in a log file keeps the version as what it was. Hudi 1.2.0 casts it to the new type where it merges the
    # two, and fails: readers and compaction alike, for good.
    fixed = settings.ordering_field if settings.merges_on_read and marks_deletes(table, settings) else None
    for field in table.fields:
        has, now = field.dataType, types.get(field.name)
        if now is None:
            raise SettingsChangedError(
                f"column {field.name} of the table at {settings.path} is not in the output any more, and a table only "
                f"gains columns. Bring it back, as CAST(NULL AS {has.simpleString()}) AS {field.name} in "
                "spec.transform if need be."
            )
        if field.name == fixed:
            taken = _same(has, now)
        else:
            taken = _widens_in_place(has, now) if field.name in placing else widens(has, now)
        if not taken:
            raise SettingsChangedError(
                f"column {field.name} of the table at {settings.path} is a {has.simpleString()}, and the output has a "
                f"{now.simpleString()}, which a table cannot take over. CAST it AS {has.simpleString()} in "
                "spec.transform, or give the new one another name."
            )


def _widens_in_place(has: DataType, now: DataType) -> bool:
    """Whether values are the same, and are written the same, in both types: keys and partitions are made of their text,
    and the order of versions of their values."""
    return _same(has, now) or (isinstance(has, IntegerType) and isinstance(now, LongType))


def widens(has: DataType, now: DataType) -> bool:
    """Whether a table can take a column over into another type: every value of the old one is one of the new one, Hudi
    1.2.0 merges and compacts files of both, and Spark reads a table with both (tests/spark/test_hudi_sink.py).

    A number may become a wider one, and a struct, also one in a struct, may gain fields. Of what Hudi itself takes as
    well, int to float and bigint to double lose digits, date to timestamp is read back wrong, Spark's vectorized reader
    fails at numbers within structs, arrays and maps that are of several types, and Hudi at structs in arrays.
    """
    match has, now:
        case DecimalType(), DecimalType():
            return now.scale >= has.scale and now.precision - now.scale >= has.precision - has.scale
        case (IntegerType(), LongType() | DoubleType()) | (FloatType(), DoubleType()):
            return True
    return _gains_fields(has, now)


def _gains_fields(has: DataType, now: DataType) -> bool:
    match has, now:
        case StructType(), StructType():
            types = {field.name: field.dataType for field in now.fields}
            return all(field.name in types and _gains_fields(field.dataType, types[field.name]) for field in has.fields)
    return _same(has, now)


def _same(has: DataType, now: DataType) -> bool:
    return has.simpleString() == now.simpleString()


def marks_deletes(table: StructType | None, settings: HudiSettings) -> bool:
    """Whether rows get the column `_hoodie_is_deleted`: once a table has it, it is there to stay."""
    return settings.delete_when is not None or (table is not None and IS_DELETED in table.names)


def with_meta_columns(columns: StructType) -> StructType:
    """Columns behind those that Hudi adds to each table."""
    meta = ("commit_time", "commit_seqno", "record_key", "partition_path", "file_name")
    return StructType([*(StructField(f"_hoodie_{name}", StringType()) for name in meta), *columns.fields])
