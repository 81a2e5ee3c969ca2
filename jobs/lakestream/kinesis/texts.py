"""The texts of records that producers have wrapped. Pure.

They are compressed by gzip (RFC 1952), as CloudWatch Logs does it, or are the JSON that a serializer of the Glue Schema
Registry has put into its frame. No JSON begins as these do: nobody has to say of a stream that its records are wrapped,
and a stream may have all kinds. What becomes of a record is what becomes of its text; in quarantine are its bytes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakestream.kinesis.batches import REASON
from lakestream.kinesis.frames import VERSION, frame_of, is_framed

TEXT = "_lakestream_text"
"""A column of batches of which some record is wrapped: each record's text."""

MOST_MEBIBYTES = 16
"""Of a record's text: a record of 10 MiB may be one of 10 GiB."""

MOST = MOST_MEBIBYTES << 20

_MAGIC = b"\x1f\x8b\x08"
_WRAPPED = (_MAGIC, VERSION)
_BATCH = 32 << 20
"""Of the texts of a batch."""
_WITH_HEADER = 16 + zlib.MAX_WBITS
_DAMAGED = (OSError, EOFError, zlib.error)
"""What `gzip` raises."""


def is_compressed(data: bytes) -> bool:
    """Whether a record is compressed, or says so."""
    return data.startswith(_MAGIC)


def text_of(data: bytes) -> bytes:
    """A record without what wraps it; as it is, if nothing does, it is damaged, or has more text than is taken, or no
    JSON is in its frame."""
    if is_framed(data):
        frame = frame_of(data, MOST)
        return frame.payload if frame is not None and frame.payload.startswith(b"{") else data
    if not is_compressed(data):
        return data
    try:
        member = zlib.decompressobj(_WITH_HEADER)
        text = member.decompress(data, MOST + 1)
        if member.unused_data:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as members:
                text = members.read(MOST + 1)
        elif not member.eof:
            return data
    except _DAMAGED:
        return data
    return text if len(text) <= MOST else data


def expanded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of raw records (`batches.SCHEMA`), those with `TEXT` of which a record is wrapped.

    They are parted where their texts would be too many for the memory of a task.
    """
    for batch in batches:
        data = batch.column("data")
        if any(pc.any(pc.starts_with(data, pattern=beginning)).as_py() for beginning in _WRAPPED):
            yield from with_texts(batch, ((text_of(record), None) for record in data.to_pylist()))
        else:
            yield batch


def texts(batch: pa.RecordBatch) -> list[bytes]:
    """Those of its records, which may be wrapped if it comes from `expanded`."""
    found: list[bytes] = batch.column(TEXT if TEXT in batch.schema.names else "data").to_pylist()
    return found


def with_texts(batch: pa.RecordBatch, found: Iterable[tuple[bytes, str | None]]) -> Iterator[pa.RecordBatch]:
    """Parts of a batch of raw records, with `TEXT`, and with `REASON` where a record has none.

    Args:
        batch: has no reasons yet.
        found: of each of its records the text, or nothing and why; taken one by one.
    """
    part: list[tuple[bytes, str | None]] = []
    start = size = 0
    for at, (text, reason) in enumerate(found):
        if part and size + len(text) > _BATCH:
            yield _part(batch, start, part)
            part, start, size = [], at, 0
        part.append((text, reason))
        size += len(text)
    yield _part(batch, start, part)


def _part(batch: pa.RecordBatch, start: int, found: Sequence[tuple[bytes, str | None]]) -> pa.RecordBatch:
    part = batch.slice(start, len(found)).append_column(TEXT, pa.array((text for text, _ in found), pa.binary()))
    if any(reason is not None for _, reason in found):
        part = part.append_column(REASON, pa.array((reason for _, reason in found), pa.string()))
    return part
