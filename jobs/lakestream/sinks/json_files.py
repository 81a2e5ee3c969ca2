"""The JSON sink: one object per task and partition, lines of JSON, written once however often it is written.

Readers who must not see a batch before it is committed go by the manifests in the log; whoever lists the folder sees
the files of the batch in hand a moment earlier, and never one in part: until it is whole it is in `_lakestream`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from isal import igzip_lib
from pyspark.sql import Column, DataFrame
from pyspark.sql.types import ArrayType, BinaryType, BooleanType, MapType, NumericType, StringType, StructType

from lakestream.errors import SettingsError
from lakestream.faults import reach
from lakestream.model import FileEntry, ServiceStatus, SinkCommit
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hive_paths import partition_path
from lakestream.sinks.objects import discard_unfinished, folders_of, object_name, write_objects
from lakestream.sinks.partitions import partition_refusals
from lakestream.sinks.structs import parts_of, require_structs
from lakestream.spark.quoting import quoted
from lakestream.spark.refusals import first_reason
from lakestream.storage import StoreSettings

if TYPE_CHECKING:
    from lakestream.sinks.leftovers import Leftovers
    from lakestream.sinks.objects import Content

_TIMES = """map(
    'timestampFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    'timestampNTZFormat', "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
)"""
"""Spark's default writes milliseconds only."""
_LINE = "_lakestream_line"

_NAME_BYTES = 64
"""That the name of an object takes in a path, at most."""


class Compression(StrEnum):
    """How the files are compressed; several members or frames in a file are one file to all readers."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


def _gzip(lines: pa.Buffer) -> bytes:
    # Order events of 344 bytes, one core: isal level 1 takes 1,020 MB/s at a ratio of 7.0, zlib level 1 195 at 6.2,
    # zlib level 6 73 at 7.2. The header has no time in it, so the same rows are the same bytes.
    compressed: bytes = igzip_lib.compress(lines, 1, igzip_lib.COMP_GZIP)
    return compressed


def _zstd(lines: pa.Buffer) -> bytes:
    # The same events: level 1 takes 657 MB/s at a ratio of 8.0, level 3 318 at 7.1.
    compressed: bytes = pa.Codec("zstd", compression_level=1).compress(lines, asbytes=True)
    return compressed


def _plain(lines: pa.Buffer) -> memoryview:
    return memoryview(lines).cast("B")  # obstore takes no other elements than unsigned bytes


_COMPRESS: Mapping[Compression, tuple[str, Callable[[pa.Buffer], Content]]] = {
    Compression.NONE: ("json", _plain),
    Compression.GZIP: ("json.gz", _gzip),
    Compression.ZSTD: ("json.zst", _zstd),
}
SUFFIXES = tuple(f".{suffix}" for suffix, _ in _COMPRESS.values())
"""How the names of files end."""


@dataclass(frozen=True)
class JsonSettings:
    """Where and how JSON is written."""

    store: StoreSettings
    """The folder of the files; partitions are folders below it."""
    partition_by: tuple[str, ...] = ()
    """Columns that become folders, from the outermost, and are left out of the lines, as Spark does."""
    compression: Compression = Compression.GZIP
    """Of the names as well, so that of one batch it stays."""


class JsonSink:
    """Writes batches as files of JSON lines; a `Sink`."""

    name = "json"
    services: tuple[ServiceStatus, ...] = ()

    def __init__(self, settings: JsonSettings, leftovers: Leftovers | None = None) -> None:
        """`leftovers`: removes what attempts have left; None: nobody does."""
        self._settings = settings
        self._columns: StructType | None = None
        self._leftovers = leftovers

    @property
    def remembered_deletes(self) -> int:
        """None: each record is a line, and stays."""
        return 0

    @property
    def largest_file(self) -> int:
        """None grows: each batch writes its own."""
        return 0

    def tend(self) -> None:
        """Remove what earlier attempts have left at batches that are committed."""
        if self._leftovers is not None:
            self._leftovers.tend()

    def refusal(self, output: StructType) -> Column | None:
        """Why a row can be in no partition; None without partitions.

        Raises:
            SettingsError: as `prepare`.
        """
        self._require(output)
        reasons = partition_refusals(self._settings.store.path, output, self._settings.partition_by, _NAME_BYTES)
        return first_reason(reasons)

    def prepare(self, output: StructType) -> None:
        """Check that the partition columns exist, and are no structs, arrays or maps, and that others can be lines."""
        self._require(output)
        self._columns = output

    @property
    def columns(self) -> StructType:
        """Those of the last `prepare`."""
        assert self._columns is not None
        return self._columns

    def partitions(self) -> Iterator[str]:
        """Lists the folders of the table."""
        return folders_of(self._settings.store, self._settings.partition_by)

    def _require(self, output: StructType) -> None:
        types = {field.name: field.dataType for field in output.fields}
        for column in self._settings.partition_by:
            if column not in types:
                raise SettingsError(f"json.partitionBy: there is no column {column}; there are {', '.join(types)}")
            if isinstance(types[column], StructType | ArrayType | MapType | BinaryType):
                raise SettingsError(f"json.partitionBy: column {column} is a {types[column].simpleString()}")
        if len(types) == len(self._settings.partition_by):
            raise SettingsError("json.partitionBy: all columns are in it, which leaves none for the lines")
        require_structs(output)
        for part in parts_of(output):
            key = part.type.keyType if isinstance(part.type, MapType) else None
            # Of others Spark writes what it has for itself: days, microseconds, the address of an array.
            if key is not None and not isinstance(key, StringType | NumericType | BooleanType):
                raise SettingsError(
                    f"column {part.path}: a map with keys of type {key.simpleString()}, which are texts in JSON; have "
                    "spec.transform make texts of them, by transform_keys and CAST"
                )

    def find(self, ref: BatchRef) -> SinkCommit | None:
        """Always None: writing a batch again is the cheapest way to know that it is there."""
        return None

    def write(self, ref: BatchRef, rows: DataFrame, *, replay: bool) -> SinkCommit:
        """Write the batch's files.

        Each task puts its files, in the place of those of the same name. A kill leaves files of a batch without a
        commit; the replay writes them again, and deletes those in part. What earlier attempts left and it did not write
        is removed once it is committed: the commit of a dead driver may still come, and name it.
        """
        began = time.monotonic()
        files_of = partial(task_files, ref, self._settings.partition_by, self._settings.compression)
        files = write_objects(_to_lines(rows, self._settings.partition_by), self._settings.store, files_of)
        reach("written")
        if replay:
            discard_unfinished(self._settings.store, ref)
            if self._leftovers is not None:
                self._leftovers.expect()
        seconds = {"write": time.monotonic() - began}
        return SinkCommit(sum(f.rows for f in files), sum(f.bytes for f in files), files, seconds=seconds)

    def close(self) -> None:
        """End what goes on beside the batches."""
        if self._leftovers is not None:
            self._leftovers.close()


def _to_lines(rows: DataFrame, partition_by: tuple[str, ...]) -> DataFrame:
    """`_line`: the row as JSON with its newline, without its nulls and partition columns; and these, as strings."""
    # As text, since each column that is made in Python is some calls to the JVM.
    content = ", ".join(quoted(name) for name in rows.columns if name not in partition_by)
    line = f"concat(to_json(struct({content}), {_TIMES}), char(10)) AS {_LINE}"
    return rows.selectExpr(line, *(f"CAST({quoted(name)} AS string) AS {quoted(name)}" for name in partition_by))


@dataclass
class _Part:
    """What a task has so far for one partition."""

    rows: int = 0
    chunks: list[Content] = field(default_factory=list)


def task_files(
    ref: BatchRef,
    partition_by: tuple[str, ...],
    compression: Compression,
    task: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[tuple[FileEntry, Content]]:
    suffix, compress = _COMPRESS[compression]
    parts: defaultdict[str, _Part] = defaultdict(_Part)
    for batch in batches:
        for partition, lines in _split(batch, partition_by):
            parts[partition].rows += len(lines)
            parts[partition].chunks.append(compress(text_of(lines)))
    name = object_name(ref, task, suffix)
    for partition, part in parts.items():
        content = part.chunks[0] if len(part.chunks) == 1 else b"".join(part.chunks)
        path = f"{partition}/{name}" if partition else name
        yield FileEntry(path, part.rows, len(content), partition), content


def _split(batch: pa.RecordBatch, partition_by: tuple[str, ...]) -> Iterator[tuple[str, pa.StringArray]]:
    """The lines of each partition in a batch, in the order in which the rows came."""
    lines = batch.column(_LINE)
    if not partition_by:
        if len(lines):
            yield "", lines
        return
    table = pa.Table.from_batches([batch.drop_columns([_LINE])])
    keys = table.group_by(list(partition_by)).aggregate([])
    for key in keys.to_pylist():
        values = [key[column] for column in partition_by]
        if keys.num_rows == 1:
            selected = lines
        else:
            masks = [_equals(batch.column(column), value) for column, value in zip(partition_by, values, strict=True)]
            mask = masks[0]
            for other in masks[1:]:
                mask = pc.and_(mask, other)
            selected = lines.filter(mask)
        yield partition_path(partition_by, values), selected


def _equals(column: pa.Array, value: str | None) -> pa.BooleanArray:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)


def text_of(lines: pa.StringArray) -> pa.Buffer:
    """All strings of an array one after the other: a slice of the array's own buffer, nothing is copied."""
    _, offsets, data = lines.buffers()
    width = pa.types.is_large_string(lines.type)
    bounds = memoryview(offsets).cast("q" if width else "i")
    start, end = bounds[lines.offset], bounds[lines.offset + len(lines)]
    return data.slice(start, end - start)
