"""Aggregates as the Kinesis Producer Library makes them: MAGIC, a protobuf message, its MD5.

Source: github.com/awslabs/amazon-kinesis-producer, aggregation-format.md. The hash keys of all user records of one have
to be in the range of the shard that it comes into, which a KPL that does not know yet of a split gets wrong.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_MAGIC = b"\xf3\x89\x9a\xc2"


def hash_key(partition_key: str) -> int:
    """What decides the shard of a record."""
    return int.from_bytes(hashlib.md5(partition_key.encode(), usedforsecurity=False).digest())


def aggregate(records: Sequence[tuple[str, bytes]]) -> bytes:
    """One Kinesis record of several user records, each a partition key and data."""
    keys = list(dict.fromkeys(key for key, _ in records))
    message = b"".join(_text(1, key.encode()) for key in keys)
    for key, data in records:
        message += _text(3, b"\x08" + _varint(keys.index(key)) + _text(3, data))
    return _MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


def _text(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(written) + bytes([number])
