"""Avro's binary encoding and the frame around it, written down from their specifications: shares no code with what
reads them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID


def framed(version: UUID, payload: bytes, *, compressed: bool = False) -> bytes:
    return (
        b"\x03"
        + (b"\x05" if compressed else b"\x00")
        + version.bytes
        + (zlib.compress(payload) if compressed else payload)
    )


def long(number: int) -> bytes:
    """Zigzag, then seven bits a byte, the low ones first."""
    rest = (number << 1) ^ (number >> 63)
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def text(value: str) -> bytes:
    return sized(value.encode())


def double(value: float) -> bytes:
    return struct.pack("<d", value)


def blocks(*items: Sequence[bytes]) -> bytes:
    """Of an array or a map: blocks with the number of their items, some with their size."""
    found = b""
    for at, block in enumerate(items):
        joined = b"".join(block)
        if block:
            found += (long(-len(block)) + long(len(joined)) if at % 2 else long(len(block))) + joined
    return found + long(0)


def branch(number: int, value: bytes) -> bytes:
    """Of a union."""
    return long(number) + value


def decimal(unscaled: int) -> bytes:
    return sized(unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True))


def record(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of one."""
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}
