"""Bytes of a ledger file: a header, then frames.

    header: b"LSLEDGER" | u32 length | u32 crc32 | JSON {"version", "stream", "prefix"}
    frame:  head: u8 kind | u32 length | u32 plain length | u32 crc32(payload) | u32 crc32(head so far)
            payload: an Arrow record batch, zstd

Integers are little-endian. SENT rows are numbered through the file from 0; SETTLED rows refer to them. Whoever closes a
ledger writes an END frame, behind which there is nothing: a file without one may lack more than it shows.
A file may end within a frame or the header (the writer was killed), or in zeros (the machine lost its power); a bad
checksum anywhere else is damage. Files of version 1 have no END.
"""

from __future__ import annotations

import json
import logging
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from zlib import crc32

import orjson
import pyarrow as pa

from lakestream_loadgen.errors import LedgerError

logger = logging.getLogger(__name__)

_MAGIC = b"LSLEDGER"
_VERSION = 2
_READ = (1, 2)
_HEADER = struct.Struct("<8sII")
_HEAD = struct.Struct("<BIII")
_CRC = struct.Struct("<I")
_BODY_START = b'{"version":'
_CODEC = pa.Codec("zstd", compression_level=1)


@dataclass(frozen=True)
class LedgerHeader:
    """What all entries of a file have in common."""

    stream: str
    prefix: str


class FrameKind(IntEnum):
    SENT = 1
    SETTLED = 2
    END = 3


SENT_SCHEMA = pa.schema([("event_id", pa.string()), ("checksum", pa.uint32()), ("malformed", pa.bool_())])
SETTLED_SCHEMA = pa.schema(
    [
        ("row", pa.uint64()),
        ("outcome", pa.uint8()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("attempts", pa.int32()),
    ]
)
END_SCHEMA = pa.schema([("rows", pa.uint64()), ("settled", pa.uint64())])
"""One row: how many were sent, and of how many the outcome is noted."""
LEDGER_SCHEMA = pa.schema(
    [
        *SENT_SCHEMA,
        ("outcome", pa.uint8()),
        ("shard_id", pa.string()),
        ("sequence_number", pa.string()),
        ("attempts", pa.int32()),
    ]
)
"""Columns of a ledger that has been read: ``outcome`` as in Outcome; ``shard_id`` and ``sequence_number``
are null unless acknowledged; ``attempts`` is -1 for a record whose writer was killed before it was settled."""

_SCHEMAS = {FrameKind.SENT: SENT_SCHEMA, FrameKind.SETTLED: SETTLED_SCHEMA, FrameKind.END: END_SCHEMA}


def encode_header(header: LedgerHeader) -> bytes:
    body = orjson.dumps({"version": _VERSION, "stream": header.stream, "prefix": header.prefix})
    return _HEADER.pack(_MAGIC, len(body), crc32(body)) + body


def encode_frame(kind: FrameKind, batch: pa.RecordBatch) -> bytes:
    plain = batch.serialize()
    payload: bytes = _CODEC.compress(plain, asbytes=True)
    head = _HEAD.pack(kind, len(payload), plain.size, crc32(payload))
    return head + _CRC.pack(crc32(head)) + payload


def ends_in_header(data: bytes) -> bool:
    """Whether a file ends before its header does: nothing was noted in it."""
    if len(data) < _HEADER.size:
        return _MAGIC.startswith(data[: len(_MAGIC)])
    magic, length, _ = _HEADER.unpack_from(data)
    body = data[_HEADER.size :]
    if magic != _MAGIC or len(body) >= length or body[: len(_BODY_START)] != _BODY_START[: len(body)]:
        return False
    try:
        json.JSONDecoder().raw_decode(body.decode(errors="replace"))
    except ValueError:
        return True
    # All of it is there, so the length is wrong.
    return False


def decode_header(data: bytes, name: str) -> tuple[LedgerHeader, int]:
    """The header of the file ``name`` and where the frames begin.

    Raises:
        LedgerError: no ledger, of another version, or with a damaged header.
    """
    if len(data) < _HEADER.size or not data.startswith(_MAGIC):
        raise LedgerError(f"{name}: not a ledger file")
    _, length, checksum = _HEADER.unpack_from(data)
    body = data[_HEADER.size : _HEADER.size + length]
    if len(body) < length or crc32(body) != checksum:
        raise LedgerError(f"{name}: the header is damaged")
    fields = orjson.loads(body)
    if fields["version"] not in _READ:
        raise LedgerError(f"{name}: ledger version {fields['version']}, this program reads {_VERSION} at most")
    return LedgerHeader(fields["stream"], fields["prefix"]), _HEADER.size + length


def decode_frames(data: bytes, start: int, name: str) -> Iterator[tuple[FrameKind, pa.RecordBatch]]:
    """The whole frames from ``start`` on; a torn one at the very end is left out.

    Raises:
        LedgerError: a frame is damaged that is not the last, or is the end that was marked.
    """
    view = memoryview(data)
    at = start
    while at + _HEAD.size + _CRC.size <= len(data):
        kind, length, plain_length, checksum = _HEAD.unpack_from(data, at)
        body = at + _HEAD.size + _CRC.size
        end = body + length
        # Checked apart: a wrong length would make whatever follows look like a torn tail.
        if crc32(view[at : at + _HEAD.size]) != _CRC.unpack_from(data, at + _HEAD.size)[0]:
            if _is_zeros(data, body):
                _warn_of_tail(data, at, name)
                return
            raise LedgerError(f"{name}: the head of the frame at byte {at} is damaged")
        if end > len(data):
            return
        payload = view[body:end]
        if crc32(payload) != checksum:
            if _is_zeros(data, body if kind == FrameKind.END else end):
                _warn_of_tail(data, at, name)
                return
            follows = "marks its end" if kind == FrameKind.END else f"{len(data) - end} bytes follow it"
            raise LedgerError(f"{name}: the frame at byte {at} is damaged, and {follows}")
        plain = _CODEC.decompress(payload, decompressed_size=plain_length)
        yield FrameKind(kind), pa.ipc.read_record_batch(plain, _SCHEMAS[FrameKind(kind)])
        if kind == FrameKind.END and not _is_zeros(data, end):
            raise LedgerError(f"{name}: {len(data) - end} bytes follow its end")
        at = end


def _is_zeros(data: bytes, start: int) -> bool:
    """Whether nothing else follows: what a machine that loses its power leaves of what it had not written yet."""
    return data.count(0, start) == len(data) - start


def _warn_of_tail(data: bytes, at: int, name: str) -> None:
    logger.warning("%s: its last %d bytes were not written whole, and are left out", name, len(data) - at)
