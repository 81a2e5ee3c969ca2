"""KPL de-aggregation: one Kinesis record that the Kinesis Producer Library filled with many user records. Pure.

Source of the format: awslabs/amazon-kinesis-producer, aggregation-format.md:
magic F3 89 9A C2, a protobuf message AggregatedRecord, the MD5 of that message.

    message AggregatedRecord {
      repeated string partition_key_table = 1;
      repeated string explicit_hash_key_table = 2;
      repeated Record records = 3;
    }
    message Record {
      required uint64 partition_key_index = 1;
      optional uint64 explicit_hash_key_index = 2;
      required bytes data = 3;
      repeated Tag tags = 4;
    }

Unlike KCL we keep user records whose hash key belongs to another shard: KCL takes them for
doubles that the KPL sent again after a reshard, but other aggregating producers make such records
too, and with KCL theirs are lost.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Field: TypeAlias = tuple[int, int | bytes]


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One record as the producer's application put it."""

    partition_key: str
    data: bytes


class _MalformedError(Exception):
    """Not an aggregate after all."""


def deaggregate(data: bytes) -> list[UserRecord] | None:
    """The user records of an aggregate, in order; their index is the sub-sequence number.

    None if the data is no aggregate, or a malformed one: as in KCL it is then an ordinary record.
    """
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + _DIGEST:
        return None
    message = data[len(MAGIC) : -_DIGEST]
    if hashlib.md5(message, usedforsecurity=False).digest() != data[-_DIGEST:]:
        return None
    try:
        return _user_records(message)
    except (_MalformedError, UnicodeDecodeError):
        return None


def _user_records(message: bytes) -> list[UserRecord]:
    keys: list[str] = []
    hash_keys = 0
    records: list[tuple[int, int | None, bytes]] = []
    for number, value in _fields(message):
        if number == 1:
            keys.append(_bytes(value).decode())
        elif number == 2:
            hash_keys += 1
        elif number == 3:
            records.append(_record(_bytes(value)))
    for key, hash_key, _ in records:
        if key >= len(keys) or (hash_key is not None and hash_key >= hash_keys):
            raise _MalformedError
    return [UserRecord(keys[key], data) for key, _, data in records]


def _record(message: bytes) -> tuple[int, int | None, bytes]:
    key: int | None = None
    hash_key: int | None = None
    data: bytes | None = None
    for number, value in _fields(message):
        if number == 1:
            key = _int(value)
        elif number == 2:
            hash_key = _int(value)
        elif number == 3:
            data = _bytes(value)
    if key is None or data is None:
        raise _MalformedError
    return key, hash_key, data


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise _MalformedError
    return value


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise _MalformedError
    return value


def _fields(message: bytes) -> Iterator[_Field]:
    """Field numbers and values of a protobuf message. Source: protobuf.dev, "Encoding"."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = _varint(message, at)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise _MalformedError
        if at + length > len(message):
            raise _MalformedError
        yield tag >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """The number that begins at an offset, and the offset behind it."""
    number = shift = 0
    while shift < 64:
        if at == len(message):
            raise _MalformedError
        byte = message[at]
        number |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return number, at
        shift += 7
    raise _MalformedError
