"""Files into parts that a task can read: what is in them is looked at, but for their records."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import obstore
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from lakestream.backfill.find import Found
from lakestream.errors import RequestError
from lakestream.kinesis.objects import objects
from lakestream.model import FilePart, Format
from lakestream.rejected import DAMAGED, MARK
from lakestream.spark.json_rows import doubled_column, unreadable_column
from lakestream.storage import open_store, translated

_HEAD = _FOOT = 64 * 1024
"""Bytes that are read of a file to know what it is…"""
_HEAD_OF_ZSTD = 160 * 1024
"""…and of what is unpacked by whole blocks, which may have 128 KiB."""
_UNPACKED = 4 * 1024
"""That are unpacked at once: of what ends in its middle, as a head does, Arrow gives nothing of the last ones."""
_LOOKED_AT = 100
"""Lines of them, at most."""
_PART_BYTES, _PART_ROWS = 4 * 1024 * 1024, 25_000
"""Of JSON lines, and of Parquet."""
_MOST_COMPRESSED = 128 * 1024 * 1024
"""Of a compressed file, which one task has to read as a whole."""
_MAGIC = {b"PAR1": Format.PARQUET, b"\x1f\x8b": Format.JSON_GZIP, b"\x28\xb5\x2f\xfd": Format.JSON_ZSTD}


_Cut = tuple[int, int, int, int]
"""Start, end, records, bytes."""


def parts_of(
    file: Found, columns: Collection[str] | None, *, is_table: bool, several: bool = False
) -> tuple[FilePart, ...]:
    """The parts of a file, in order; none of one without records.

    Args:
        file: what to look at.
        columns: of which its records have to have one at least, to be of this table at all; None: nobody knows.
        is_table: its rows are those of a table, as they stand there.
        several: a line may have several objects.

    Raises:
        RequestError: it is neither JSON lines nor Parquet, or cannot be read.
        StorageError, StorageUnavailableError: of the store.
    """
    if file.size == 0:
        return ()
    kind, head = _begin(file)
    if kind is Format.PARQUET:
        return _parts(file, kind, _of_parquet(file, columns), is_table=is_table)
    text = _text(file, kind, head)
    whole = _whole_lines(file, head, text)
    _require_objects(file, [part for line in whole for part in objects(line)] if several else whole, columns)
    if not whole and not text.lstrip().startswith(b"{"):
        raise RequestError(
            f"{file.path} is neither Parquet nor JSON lines: each line has to be a JSON object, and the first one, of "
            f"{len(text):,} bytes or more, begins with {text[:80].decode(errors='backslashreplace')!r}"
        )
    return _parts(file, kind, _of_lines(file, kind, head, text), is_table=is_table)


def parts_of_texts(file: Found) -> tuple[FilePart, ...]:
    """The parts of a file of which each line is an event that is a text, as by `parts_of`.

    Raises:
        RequestError: it is Parquet or no text, or cannot be read.
        StorageError, StorageUnavailableError: of the store.
    """
    if file.size == 0:
        return ()
    kind, head = _begin(file)
    if kind is Format.PARQUET:
        raise RequestError(f"{file.path} is Parquet, and by spec.format an event is a text: give files of lines")
    text = _text(file, kind, head)
    some = _whole_lines(file, head, text)[:_LOOKED_AT]
    if 2 * sum(line == line.decode(errors="ignore").encode() for line in some) < len(some):
        raise RequestError(f"{file.path} is no text: most of its first {len(some)} lines are not UTF-8")
    return _parts(file, kind, _of_lines(file, kind, head, text), is_table=False)


def _begin(file: Found) -> tuple[Format, bytes]:
    """What a file is, and its first bytes."""
    head = _range(file, 0, min(_HEAD, file.size))
    kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), Format.JSON)
    if kind is Format.JSON_ZSTD and len(head) < file.size:
        head = _range(file, 0, min(_HEAD_OF_ZSTD, file.size))
    return kind, head


def _text(file: Found, kind: Format, head: bytes) -> bytes:
    return (head if kind is Format.JSON else _unpacked(file, kind, head)).removeprefix(MARK)


def _whole_lines(file: Found, head: bytes, text: bytes) -> list[bytes]:
    lines = text.split(b"\n")
    return lines if len(head) == file.size else lines[:-1]


def _parts(file: Found, kind: Format, cut: Iterable[_Cut], *, is_table: bool) -> tuple[FilePart, ...]:
    return tuple(
        FilePart(
            path=file.path,
            format=kind,
            start=start,
            end=end,
            rows=rows,
            bytes=size,
            etag=file.etag,
            modified=file.modified,
            folders=file.folders,
            is_table=is_table,
        )
        for start, end, rows, size in cut
    )


def _of_lines(file: Found, kind: Format, head: bytes, text: bytes) -> Iterator[_Cut]:
    lengths = [len(line) + 1 for line in text.split(b"\n")[:-1]] or [max(len(text), 1)]
    mean = sum(lengths) / len(lengths)
    if kind is not Format.JSON:
        if file.size > _MOST_COMPRESSED:
            raise RequestError(
                f"{file.path} has {file.size:,} bytes, compressed, and one task would have to read them all: unpack "
                f"it, or make files of up to {_MOST_COMPRESSED:,} bytes of it"
            )
        rows = file.table_rows or math.ceil(file.size * len(text) / len(head) / mean)
        yield 0, file.size, rows, file.size
        return
    for start in range(0, file.size, _PART_BYTES):
        end = min(start + _PART_BYTES, file.size)
        yield start, end, math.ceil((end - start) / mean), end - start


def _unpacked(file: Found, kind: Format, head: bytes) -> bytes:
    """What the first bytes of a compressed file are."""
    chunks = []
    try:
        with pa.CompressedInputStream(pa.BufferReader(head), kind.codec) as stream:
            while chunk := stream.read(_UNPACKED):
                chunks.append(chunk)
    except DAMAGED as error:
        if not chunks:
            raise RequestError(f"{file.path} is damaged: {error}") from error
    return b"".join(chunks)


def _require_objects(file: Found, lines: list[bytes], columns: Collection[str] | None) -> None:
    """Most of the first lines are JSON objects; the others are damaged, which the quarantine is for."""
    some = [line for line in lines if line.strip()][:_LOOKED_AT]
    found = [one for line in some if (one := _object(line)) is not None]
    if len(found) * 2 < len(some):
        raise RequestError(
            f"{file.path} is neither Parquet nor JSON lines: each line has to be a JSON object, and of the first "
            f"{len(some)} lines {len(some) - len(found)} are none: "
            f"{next(line for line in some if _object(line) is None)[:80].decode(errors='backslashreplace').strip()!r}"
        )
    _require_columns(file, list(dict.fromkeys(name for one in found for name in one)), columns)


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        found = orjson.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _require_columns(file: Found, names: Collection[str], columns: Collection[str] | None) -> None:
    if columns is not None and names and not set(columns) & set(names):
        raise RequestError(
            f"{file.path} is of another table: spec.schema has {', '.join(columns)}; the file has {', '.join(names)}"
        )


def _of_parquet(file: Found, columns: Collection[str] | None) -> Iterator[_Cut]:
    end = _end(file)
    try:
        yield from _row_groups(file, pq.read_metadata(pa.BufferReader(end)), columns)
    except DAMAGED as error:
        raise RequestError(f"{file.path} is damaged: {error}") from error


def _row_groups(file: Found, footer: pq.FileMetaData, columns: Collection[str] | None) -> Iterator[_Cut]:
    schema = footer.schema.to_arrow_schema()
    if (column := unreadable_column(schema)) is not None:
        raise RequestError(f"{file.path}: column {column} has a type that JSON has no value for; leave it out")
    if (column := doubled_column(schema)) is not None:
        raise RequestError(f"{file.path} has column {column} twice, and a record has one value by a name; rename one")
    _require_columns(file, schema.names, columns)
    groups = [footer.row_group(number).num_rows for number in range(footer.num_row_groups)]
    if sum(groups) != footer.num_rows:
        raise ValueError(f"its row groups have {sum(groups)} rows, and the file {footer.num_rows}")
    first = 0
    for count in groups:
        for start in range(0, count, _PART_ROWS):
            rows = min(_PART_ROWS, count - start)
            # Of the columns' own sizes, where they contradict the schema, Arrow ends the process.
            yield first + start, first + start + rows, rows, file.size * rows // footer.num_rows
        first += count


def _end(file: Found) -> bytes:
    """Its footer, and what tells the length of that."""
    end = _range(file, max(file.size - _FOOT, 0), file.size)
    length = int.from_bytes(end[-8:-4], "little") + 8
    if len(end) < length <= file.size:
        end = _range(file, file.size - length, file.size)
    return end


def _range(file: Found, start: int, end: int) -> bytes:
    with translated(f"read {file.path}"):
        return bytes(obstore.get_range(open_store(file.place.root), file.place.path.key, start=start, end=end))
