"""Aggregates as the Kinesis Producer Library makes them: MAGIC, a protobuf message, its MD5.

Source: github.com/awslabs/amazon-kinesis-producer, aggregation-format.md. All user records of one aggregate bear its
own partition key, as the hash keys of all must be in the range of one shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_MAGIC = b"\xf3\x89\x9a\xc2"


def aggregate(partition_key: str, records: Sequence[bytes]) -> bytes:
    """One Kinesis record of several user records."""
    message = _text(1, partition_key.encode())
    for data in records:
        message += _text(3, b"\x08\x00" + _text(3, data))
    return _MAGIC + message + hashlib.md5(message, usedforsecurity=False).digest()


def _text(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(written) + bytes([number])
