"""Aggregates as the Kinesis Producer Library makes them; the format is described in `lakestream.kinesis.kpl`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from lakestream.kinesis.kpl import MAGIC


def aggregate(records: Sequence[tuple[str, str | None, bytes]]) -> bytes:
    """One Kinesis record of many user records: tables of keys, then records that refer to them.

    Args:
        records: partition key, explicit hash key or None, and data of each.
    """
    keys = sorted({key for key, _, _ in records})
    hashes = sorted({key for _, key, _ in records if key is not None})
    message = b"".join(field(1, key.encode()) for key in keys) + b"".join(field(2, h.encode()) for h in hashes)
    for key, hash_key, data in records:
        inner = field(1, keys.index(key))
        if hash_key is not None:
            inner += field(2, hashes.index(hash_key))
        message += field(3, inner + field(3, data))
    return sealed(message)


def sealed(message: bytes) -> bytes:
    """A message with what marks it as an aggregate, whatever is in it."""
    return MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


def field(number: int, content: bytes | int) -> bytes:
    """A field of a protobuf message."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """A number as protobuf writes it."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])
