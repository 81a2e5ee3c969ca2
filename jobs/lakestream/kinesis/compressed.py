"""Records that producers have compressed by gzip (RFC 1952), as CloudWatch Logs does, and their texts. Pure.

No JSON begins with gzip's first bytes: nobody has to say of a stream that its records are compressed, and a stream may
have both kinds. What becomes of a record is what becomes of its text; in quarantine are its bytes.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

TEXT = "_lakestream_text"
"""A column of batches of which some record is compressed: each record's text."""

MOST_MEBIBYTES = 16
"""Of a record's text: a record of 10 MiB may be one of 10 GiB."""

_MAGIC = b"\x1f\x8b\x08"
_MOST = MOST_MEBIBYTES << 20
_BATCH = 32 << 20
"""Of the texts of a batch."""
_WITH_HEADER = 16 + zlib.MAX_WBITS
_DAMAGED = (OSError, EOFError, zlib.error)
"""What `gzip` raises."""


def is_compressed(data: bytes) -> bool:
    """Whether a record is compressed, or says so."""
    return data.startswith(_MAGIC)


def text_of(data: bytes) -> bytes:
    """A record without its compression; as it is, if it has none, is damaged, or has more text than is taken."""
    if not is_compressed(data):
        return data
    try:
        member = zlib.decompressobj(_WITH_HEADER)
        text = member.decompress(data, _MOST + 1)
        if member.unused_data:
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as members:
                text = members.read(_MOST + 1)
        elif not member.eof:
            return data
    except _DAMAGED:
        return data
    return text if len(text) <= _MOST else data


def expanded(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of raw records (`batches.SCHEMA`), those with `TEXT` of which a record is compressed.

    They are parted where their texts would be too many for the memory of a task.
    """
    for batch in batches:
        if pc.any(pc.starts_with(batch.column("data"), pattern=_MAGIC)).as_py():
            yield from _with_texts(batch)
        else:
            yield batch


def texts(batch: pa.RecordBatch) -> list[bytes]:
    """Those of its records, which may be compressed if it comes from `expanded`."""
    found: list[bytes] = batch.column(TEXT if TEXT in batch.schema.names else "data").to_pylist()
    return found


def _with_texts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    found: list[bytes] = []
    start = size = 0
    for at, data in enumerate(batch.column("data").to_pylist()):
        text = text_of(data)
        if found and size + len(text) > _BATCH:
            yield _part(batch, start, found)
            found, start, size = [], at, 0
        found.append(text)
        size += len(text)
    yield _part(batch, start, found)


def _part(batch: pa.RecordBatch, start: int, found: Sequence[bytes]) -> pa.RecordBatch:
    return batch.slice(start, len(found)).append_column(TEXT, pa.array(found, pa.binary()))
