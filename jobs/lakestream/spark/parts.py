"""Parts of files as records, for a backfill. Runs on executors.

A file that cannot be read, or not any more, must not stop the stream, whose batches come behind; nor may its records be
lost unseen. So the place from which on it was not read is a record as well, with the reason, and goes to quarantine.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import obstore
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from obstore.exceptions import PreconditionError
from pyspark.sql import types as st

from lakestream.kinesis.batches import REASON, SCHEMA
from lakestream.kinesis.objects import objects
from lakestream.model import FilePart, Format
from lakestream.ranges import Ranges
from lakestream.rejected import DAMAGED, MARK, OF_TABLE, UNREAD
from lakestream.spark.json_rows import json_rows
from lakestream.storage import (
    LakePath,
    ObjectNotFoundError,
    S3Settings,
    StorageError,
    StorageUnavailableError,
    StoreSettings,
    open_store,
    translated,
)

_BLANKS = b" \t\r\n"
"""That JSON allows around an object."""
_WHOLE = re.compile(r"-?\d{1,100}", re.ASCII)
_REFUSED = re.compile(
    r"redirect without LOCATION|status code: (?:405|451) |status code: 400 [\w ]+: "
    r"(?:KMS\.(?!Throttl)|InvalidRequest|AuthorizationHeaderMalformed|PermanentRedirect)"
)
"""What a store answers that is there, and will answer again: the bucket is in another region, the key by which the file
is encrypted is disabled, or not given. What may pass is not among it, as that a token has expired."""
_RECORDS = 10_000
"""Of a batch, as from Kinesis at most."""
_BYTES = 16 * 1024 * 1024
"""Of a batch, but for its last record, which may be as long as a line: records of files are as long as they like."""
_CHUNK = 1024 * 1024
_LONGEST_LINE = 64 * 1024 * 1024


def literals_of(schema: st.StructType) -> dict[str, bool]:
    """The columns that may be those of a partition's folder; and whether their text is JSON as it is."""
    return {field.name: isinstance(field.dataType, st.NumericType | st.BooleanType) for field in schema.fields}


class UnreadableError(Exception):
    """The file cannot be read from here on; the message says why."""


def read_parts(
    s3: S3Settings, parts: Iterable[FilePart], literals: Mapping[str, bool], *, several: bool = False
) -> Iterator[pa.RecordBatch]:
    """The records of parts, in their order, by the schema of what comes from Kinesis; each batch is of one file.

    In the place of the shard is the file; in that of the sequence number, the line's first byte in the file (unpacked,
    if it is compressed) or the row's number, from 0.

    Args:
        s3: how to reach S3.
        parts: what to read.
        literals: as `literals_of` the schema.
        several: a line may have several objects, each of which is a record to come (`kinesis.objects`).

    Raises:
        StorageUnavailableError: of the store.
    """
    for part in parts:
        place = part.start
        try:
            for places, data in _grouped(_rows(s3, part) if part.format is Format.PARQUET else _lines(s3, part)):
                yield _batch(part, places, _with_folders(part, data, literals, several=several))
                place = places[-1] + 1
        except UnreadableError as error:
            yield _unread(part, str(error), place)


def _unread(part: FilePart, why: str, place: int) -> pa.RecordBatch:
    """What stands for the part from a place on, in quarantine."""
    end = "the end" if part.format.codec else part.end
    what = f"{'rows' if part.format is Format.PARQUET else 'bytes'} {place} to {end}"
    records = _batch(part, [place], [what.encode()], UNREAD)
    return records.append_column(REASON, pa.array([f"file not read: {why}"], pa.string()))


def _batch(part: FilePart, places: list[int], data: list[bytes], sub_sequence: int | None = None) -> pa.RecordBatch:
    count = len(places)
    sub = (OF_TABLE if part.is_table else 0) if sub_sequence is None else sub_sequence
    columns = [
        pa.array(data, pa.binary()),
        pa.nulls(count, pa.string()),
        pa.array(map(str, places), pa.string()),
        pa.repeat(pa.scalar(sub, pa.int64()), count),
        pa.repeat(pa.scalar(part.path, pa.string()), count),
        pa.repeat(pa.scalar(part.modified, pa.timestamp("us", tz="UTC")), count),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


def _grouped(records: Iterator[tuple[int, bytes]]) -> Iterator[tuple[list[int], list[bytes]]]:
    """In groups; what was read before an error is handed on before it."""
    places: list[int] = []
    data: list[bytes] = []
    size = 0
    failed: UnreadableError | None = None
    try:
        for place, record in records:
            places.append(place)
            data.append(record)
            size += len(record)
            if len(places) >= _RECORDS or size >= _BYTES:
                yield places, data
                places, data, size = [], [], 0
    except UnreadableError as error:
        failed = error
    if places:
        yield places, data
    if failed is not None:
        raise failed


def _with_folders(part: FilePart, data: list[bytes], literals: Mapping[str, bool], *, several: bool) -> list[bytes]:
    """The records with the columns of the file's folder; a column of its own comes behind, and counts."""
    given = [
        orjson.dumps(name) + b":" + (_literal(value) if literals[name] else orjson.dumps(value))
        for name, value in part.folders
        if name in literals
    ]
    if not given:
        return data
    front = b"{" + b",".join(given)
    if several:
        return [b"\n".join(_behind(front, one) for one in objects(record)) for record in data]
    return [_behind(front, record) for record in data]


def _literal(value: str) -> bytes:
    """A folder's text as JSON, of a column of numbers or booleans; what is none is a text, which the schema refuses."""
    if _WHOLE.fullmatch(value):
        return str(int(value)).encode()  # month=07
    try:
        orjson.loads(value)
    except orjson.JSONDecodeError:
        return orjson.dumps(value)
    return value.encode()


def _behind(front: bytes, record: bytes) -> bytes:
    """An object with all of its own behind what is in front of it; what is none stays as it is."""
    bare = record.lstrip(_BLANKS)
    if not bare.startswith(b"{"):
        return record
    return front + (bare[1:] if bare[1:].lstrip(_BLANKS).startswith(b"}") else b"," + bare[1:])


@dataclass(frozen=True)
class _Object:
    """A file, as it was when it was asked for."""

    s3: S3Settings
    part: FilePart

    def read(self, start: int, end: int) -> bytes:
        return b"".join(self.chunks(start, end))

    def chunks(self, start: int, end: int) -> Iterator[bytes]:
        """Raises UnreadableError; StorageUnavailableError if it may pass."""
        with self._explained():
            options: obstore.GetOptions = {"range": (start, end), "if_match": self.part.etag}
            for chunk in obstore.get(open_store(self._place.root), self._key, options=options).stream(_CHUNK):
                yield bytes(chunk)

    def size(self) -> int:
        """In bytes; raises as `chunks`."""
        with self._explained():
            # To a HEAD a store does not say why it refuses it.
            options: obstore.GetOptions = {"range": (0, 1), "if_match": self.part.etag}
            return obstore.get(open_store(self._place.root), self._key, options=options).meta["size"]

    @property
    def _place(self) -> StoreSettings:
        return StoreSettings(LakePath.parse(self.part.path), self.s3)

    @property
    def _key(self) -> str:
        return self._place.path.key

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            with translated(f"read {self.part.path}"):
                try:
                    yield
                except PreconditionError as error:
                    raise UnreadableError("it was changed since the backfill was asked for") from error
        except ObjectNotFoundError as error:
            raise UnreadableError("it is not there any more") from error
        except StorageError as error:
            raise UnreadableError(str(error)) from error
        except StorageUnavailableError as error:
            if _REFUSED.search(str(error)) is None:
                raise
            raise UnreadableError(str(error)) from error


def _lines(s3: S3Settings, part: FilePart) -> Iterator[tuple[int, bytes]]:
    """The lines that begin in the part, each with its first byte; blank ones are none, and a mark is part of none."""
    for place, line in _lines_as_stored(s3, part):
        if place > 0:
            yield place, line
        elif (first := line.removeprefix(MARK)).strip():
            yield place, first


def _lines_as_stored(s3: S3Settings, part: FilePart) -> Iterator[tuple[int, bytes]]:
    file = _Object(s3, part)
    if part.format.codec:
        yield from _split(_unpacked(file), 0, None)
    elif part.start == 0:
        yield from _split(file.chunks(0, _file_end(part)), 0, part.end)
    else:
        # The line that the byte before belongs to is another part's, if that byte does not end it.
        chunks = file.chunks(part.start - 1, _file_end(part))
        yield from _split(chunks, part.start - 1, part.end, skips_first=True)


def _file_end(part: FilePart) -> int:
    """So far a line may go on that begins in the part; the store ends with the file."""
    return part.end + _LONGEST_LINE


def _split(
    chunks: Iterator[bytes], begin: int, end: int | None, *, skips_first: bool = False
) -> Iterator[tuple[int, bytes]]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if end is not None and begin >= end:
                return
            if not skips_first and line.strip():
                yield begin, line
            skips_first = False
            begin += len(line) + 1
        if end is not None and begin >= end:
            return
        if len(rest) >= _LONGEST_LINE:
            raise UnreadableError(f"a line of more than {_LONGEST_LINE} bytes")
    if not skips_first and rest.strip():
        yield begin, rest


def _unpacked(file: _Object) -> Iterator[bytes]:
    content = file.read(0, file.part.end)
    try:
        with pa.CompressedInputStream(pa.BufferReader(content), file.part.format.codec) as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except DAMAGED as error:
        raise UnreadableError(f"it is damaged: {error}") from error


def _rows(s3: S3Settings, part: FilePart) -> Iterator[tuple[int, bytes]]:
    """The rows of a part, each with its number in the file."""
    file = _Object(s3, part)
    number, first, ranges = part.start, 0, Ranges(file.read, file.size())
    try:
        # Left to itself, Arrow reads INT96 as nanoseconds, and years beyond 1677 to 2262 as others.
        file = pq.ParquetFile(pa.PythonFile(ranges, mode="r"), pre_buffer=True, coerce_int96_timestamp_unit="us")
        for group in range(file.num_row_groups):
            described = file.metadata.row_group(group)
            rows = described.num_rows
            if first < part.end and first + rows > part.start:
                position = first
                at_once = max(1, min(_RECORDS, _BYTES * rows // max(described.total_byte_size, 1)))
                for batch in file.iter_batches(at_once, row_groups=[group]):
                    begin, end = (min(max(at - position, 0), batch.num_rows) for at in (part.start, part.end))
                    for row in json_rows(batch.slice(begin, end - begin)):
                        yield number, row
                        number += 1
                    position += batch.num_rows
                    if position >= part.end:
                        break
            first += rows
    except DAMAGED as error:
        if ranges.failed is not None:
            raise ranges.failed from error
        raise UnreadableError(f"it is damaged: {error}") from error
