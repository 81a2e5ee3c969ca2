"""Entries of a journal as bytes, and back. No files.

A frame is a header (length and CRC-32 of the payload, CRC-32 of these two) and the payload: a letter for its kind, and

    H    JSON: where a segment begins, all streams and what their shards were given so far
    S    JSON: streams that changed, streams that are gone, the time
    R    records that arrived in one shard at one time, as they go into answers
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from lakestream_localkinesis.core.shard import Batch
from lakestream_localkinesis.core.state import State

VERSION = 2
READ = (1, 2)
"""Before 2, the indices of a shard's records had no gaps: who reads it so gives those behind one other numbers."""

_HEADER = struct.Struct("<III")
_SUMMED = struct.Struct("<II")
# Shard, records it had been given before, arrival, records here, bytes of the stream's id.
_RECORDS = struct.Struct("<IQQIB")


class FrameError(Exception):
    """The bytes from here on are no frame."""

    def __init__(self, offset: int, *, is_tail: bool) -> None:
        super().__init__(f"no entry at byte {offset}")
        self.offset = offset
        self.is_tail = is_tail
        """Nothing whole comes after it: so a write ends that was cut short."""


@dataclass(frozen=True, slots=True)
class Head:
    """The beginning of a segment: what came before is not needed, but for its records."""

    account: str
    region: str
    at_ms: int
    streams: list[State]
    counts: dict[str, dict[int, tuple[int, int]]]
    """By stream and shard: records and bytes given so far."""
    version: int = VERSION


@dataclass(frozen=True, slots=True)
class Changed:
    """What became of streams, and when; neither, and it tells the time."""

    at_ms: int
    streams: list[State] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    """By their ids."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """Records of one shard."""

    stream: str
    """Its id."""
    shard: int
    batch: Batch

    @property
    def at_ms(self) -> int:
        """When they arrived."""
        return self.batch.arrival_ms


Entry = Head | Changed | Arrived


def frame(entry: Entry) -> bytes:
    """The bytes of an entry."""
    payload = _payload(entry)
    summed = _SUMMED.pack(len(payload), zlib.crc32(payload))
    return b"".join((summed, zlib.crc32(summed).to_bytes(4, "little"), payload))


def read_entries(file: BinaryIO, size: int) -> Iterator[tuple[int, Entry]]:
    """The entries of a file of so many bytes, each with where it ends.

    Raises:
        FrameError: what follows the last one is none.
    """
    offset = 0
    while offset < size:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            raise FrameError(offset, is_tail=True)
        length, checksum, header_checksum = _HEADER.unpack(header)
        if zlib.crc32(header[: _SUMMED.size]) != header_checksum:
            raise FrameError(offset, is_tail=_all_zeros(file))
        end = offset + _HEADER.size + length
        payload = file.read(length)
        if zlib.crc32(payload) != checksum:
            raise FrameError(offset, is_tail=_all_zeros(file))
        yield end, _entry(payload)
        offset = end


def _all_zeros(file: BinaryIO) -> bool:
    """Whether nothing else follows: blocks that a machine without power did not write, which begin in any entry."""
    while block := file.read(1 << 20):
        if any(block):
            return False
    return True


def _payload(entry: Entry) -> bytes:
    if isinstance(entry, Arrived):
        batch = entry.batch
        name = entry.stream.encode()
        head = _RECORDS.pack(entry.shard, batch.before, batch.arrival_ms, len(batch.records), len(name))
        sizes = struct.pack(f"<{len(batch.sizes_before)}Q", *batch.sizes_before)
        # No record has a line's end in it: its texts are base64 and JSON.
        return b"".join((b"R", head, name, sizes, b"\n".join(batch.records)))
    kind = b"H" if isinstance(entry, Head) else b"S"
    # orjson has no hash keys of 128 bits.
    return kind + json.dumps({name: getattr(entry, name) for name in type(entry).__slots__}).encode()


def _entry(payload: bytes) -> Entry:
    match payload[:1]:
        case b"R":
            return _arrived(payload)
        case b"S":
            return Changed(**json.loads(payload[1:]))
        case _:
            values = json.loads(payload[1:])
            counts = {
                stream: {int(shard): (records, size) for shard, (records, size) in shards.items()}
                for stream, shards in values.pop("counts").items()
            }
            return Head(**values, counts=counts)


def _arrived(payload: bytes) -> Arrived:
    shard, before, arrival_ms, count, name_bytes = _RECORDS.unpack_from(payload, 1)
    sizes_at = 1 + _RECORDS.size + name_bytes
    name = payload[sizes_at - name_bytes : sizes_at].decode()
    sizes = struct.Struct(f"<{count + 1}Q")
    records = payload[sizes_at + sizes.size :].split(b"\n")
    return Arrived(name, shard, Batch(before, arrival_ms, sizes.unpack_from(payload, sizes_at), records))
