"""Reads what the writers left: JSON files, quarantine, dumps of a snapshot."""

from __future__ import annotations

import io
import posixpath
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import unquote

import orjson
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet

from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.storage import Folder, is_absent

PLACE_SCHEMA = pa.schema(
    [
        ("_shard_id", pa.string()),
        ("_sequence_number", pa.string()),
        ("_sub_sequence", pa.int64()),
        ("_arrival", pa.string()),
    ]
)
"""Where in the stream a row comes from; ``_arrival`` is ISO-8601 in UTC."""

QUARANTINE_SCHEMA = pa.schema(
    [
        ("data", pa.binary()),
        ("partition_key", pa.string()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("sub_sequence", pa.int64()),
        ("reason", pa.string()),
    ]
)

# Times stay text until their content is compared: an unreadable one is a finding, not a failure to read.
_JSON_SCHEMA = pa.schema(
    [
        *(field.with_type(pa.string()) if pa.types.is_timestamp(field.type) else field for field in EVENT_SCHEMA),
        *PLACE_SCHEMA,
    ]
)
_COMPRESSIONS = {".json": None, ".gz": "gzip", ".zst": "zstd"}
JSON_FILES = tuple(_COMPRESSIONS)
"""What the names of files end with that are read; likewise:"""
_PARQUET_FILES = (".parquet",)
_HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
_HUDI = ".hoodie/hoodie.properties"
_THREADS = 8


def read_json_lake(location: str, files: Sequence[str] | None = None) -> pa.Table:
    """Events and their places from JSON lines files (plain, ``.gz``, ``.zst``) under a folder or s3:// prefix.

    A column that Hive-style folders (``dt=…``) hold is taken from there if the rows lack it.

    Args:
        files: Only these, relative to the location, all of which must exist; None reads all there are.

    Raises:
        LakeError: a file cannot be read, or is not JSON lines, or its places are not of the expected types.
    """
    folder = Folder(location)
    names = folder.names() if files is None else list(files)
    names = [name for name in names if posixpath.splitext(name)[1] in _COMPRESSIONS]
    return _read_all(names, lambda name: _read_json_file(folder, name), _JSON_SCHEMA)


def read_quarantine(location: str, files: Sequence[str] | None = None) -> pa.Table:
    """Quarantined records, as QUARANTINE_SCHEMA, from the Parquet files under a location.

    A writer makes the folder with the first record: one that is not there is empty.

    Args:
        location: a folder or an s3:// prefix.
        files: their paths below it; None: all that are there.
    """
    if is_absent(location) and not files:
        return QUARANTINE_SCHEMA.empty_table()
    return _read_parquet_files(location, QUARANTINE_SCHEMA.names, files).cast(QUARANTINE_SCHEMA)


def read_parquet(location: str) -> pa.Table:
    """The event columns of the Parquet files under a location, e.g. the dump of a table's snapshot.

    Raises:
        LakeError: a file cannot be read, or they are those of a Hudi table itself.
    """
    if Folder(location).has(_HUDI):
        raise LakeError(
            f"{location} is a Hudi table, whose files have rows of the past too, and not all of the present: give a "
            f"folder with a dump of it, as by `lakestream query {location} -o parquet > DUMP/rows.parquet`"
        )
    return _read_parquet_files(location, EVENT_SCHEMA.names)


def require_files(
    location: str | None, listed: object | None, missing: int, endings: tuple[str, ...] = _PARQUET_FILES
) -> None:
    """What is missing may be somewhere else: also a prefix on S3 that is none can be listed.

    Raises:
        LakeError: something is missing, and there is no file, nor a list of those that should be.
    """
    if location is None or listed is not None or not missing:
        return
    if is_absent(location) or not any(name.endswith(endings) for name in Folder(location).names()):
        kinds = ", ".join(f"*{ending}" for ending in endings)
        raise LakeError(f"{location} has no file ({kinds}), where some should be: is the path right?")


def _read_parquet_files(location: str, columns: Sequence[str], files: Sequence[str] | None = None) -> pa.Table:
    folder = Folder(location)
    names = [name for name in folder.names() if name.endswith(_PARQUET_FILES)] if files is None else sorted(files)

    def read(name: str) -> pa.Table:
        content = io.BytesIO(folder.read(name))
        try:
            table = pa.parquet.read_table(content, partitioning=None)
        except (pa.ArrowException, OSError, ValueError) as error:  # the last two of most kinds of damage
            raise LakeError(f"{location}/{name}: {error}") from error
        missing = [column for column in columns if column not in table.column_names]
        if missing:
            raise LakeError(f"{location}/{name} lacks the columns {', '.join(missing)}")
        return table.select(columns)

    empty = QUARANTINE_SCHEMA if columns == QUARANTINE_SCHEMA.names else EVENT_SCHEMA
    return _read_all(names, read, empty)


def _read_all(names: Sequence[str], read: Callable[[str], pa.Table], schema: pa.Schema) -> pa.Table:
    with ThreadPoolExecutor(_THREADS) as pool:
        tables = list(pool.map(read, names))
    return pa.concat_tables(tables) if tables else schema.empty_table()


def _read_json_file(folder: Folder, name: str) -> pa.Table:
    data = folder.read(name)
    if not data:
        return _JSON_SCHEMA.empty_table()
    compression = _COMPRESSIONS[posixpath.splitext(name)[1]]
    try:
        with pa.input_stream(pa.py_buffer(data), compression=compression) as stream:
            plain = stream.read()
        if not plain:
            return _JSON_SCHEMA.empty_table()
        table = _parse(plain)
    except (pa.ArrowException, OSError) as error:
        raise LakeError(f"{folder.location}/{name}: {error}") from error
    return _with_partitions(table.select(_JSON_SCHEMA.names), name)


def _parse(plain: bytes) -> pa.Table:
    if plain.lstrip().startswith(b"null"):
        # Arrow would end the process.
        raise pa.ArrowInvalid("its first line is no object")
    try:
        return pa.json.read_json(
            io.BytesIO(plain),
            # A block must hold the longest line; a file is in memory anyway.
            read_options=pa.json.ReadOptions(block_size=max(len(plain), 1 << 20)),
            parse_options=pa.json.ParseOptions(explicit_schema=_JSON_SCHEMA, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid as error:
        try:
            return _parse_rows(plain)
        except (ValueError, AttributeError):
            raise error from None


def _parse_rows(plain: bytes) -> pa.Table:
    """One by one, where some value is not of its column's type, as a number that Spark writes as "NaN".

    It is null then, which no producer writes, and so its event altered; that of a place is an error.
    """
    rows = [orjson.loads(line) for line in plain.splitlines() if line]
    columns = []
    for field in _JSON_SCHEMA:
        values = [row.get(field.name) for row in rows]
        read = [_typed(value, field.type) for value in values]
        if field.name in PLACE_SCHEMA.names and read != values:
            raise ValueError(field.name)
        columns.append(pa.array(read, field.type))
    return pa.Table.from_arrays(columns, schema=_JSON_SCHEMA)


def _typed(value: object, wanted: pa.DataType) -> str | int | float | None:
    if pa.types.is_string(wanted):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if pa.types.is_floating(wanted):
        return float(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def _with_partitions(table: pa.Table, name: str) -> pa.Table:
    for part in posixpath.dirname(name).split("/"):
        column, equals, value = part.partition("=")
        if not equals or column not in table.column_names or table[column].null_count < len(table):
            continue
        text = None if value == _HIVE_NULL else unquote(value)
        index = table.schema.get_field_index(column)
        field = table.schema.field(index)
        table = table.set_column(index, field, pa.array([text] * len(table), pa.string()).cast(field.type))
    return table
