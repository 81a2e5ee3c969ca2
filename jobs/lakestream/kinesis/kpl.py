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

After a reshard an aggregate may be put into a shard to which not all of its user records belong. The KPL then sends
those again that do not (1.0, retrier.cc); but all of them, if it does not know that shard yet. KCL drops the whole
aggregate (3.x, AggregatorUtil): right in the second case, but in the first it loses what was not sent again. We leave
out just the user records that belong elsewhere, which the KPL sends again in both.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from lakestream.model import HashKeys

MAGIC = b"\xf3\x89\x9a\xc2"
_DIGEST = 16

_KEY_CHARACTERS = 256
"""Of a partition key, at most (Kinesis's limit). Records name their key by its number, so that a megabyte with one long
key and many records would be gigabytes."""
_NUMBER = re.compile(r"[0-9]{1,39}")
_HASH_KEYS = 2**128
"""So many there are, from 0, as of MD5s: those of all shards together."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_Field: TypeAlias = tuple[int, int | bytes]


@dataclass(frozen=True, slots=True)
class UserRecord:
    """One record as the producer's application put it."""

    partition_key: str
    data: bytes
    explicit_hash_key: str | None = None

    @property
    def hash_key(self) -> int | None:
        """What decides its shard; None: an explicit hash key that is none, for no shard has it."""
        if self.explicit_hash_key is None:
            digest = hashlib.md5(self.partition_key.encode(), usedforsecurity=False).digest()
            return int.from_bytes(digest, "big")
        key = int(self.explicit_hash_key) if _NUMBER.fullmatch(self.explicit_hash_key) else _HASH_KEYS
        return key if key < _HASH_KEYS else None


class _MalformedError(Exception):
    """Not an aggregate after all."""


def deaggregate(data: bytes) -> list[UserRecord] | None:
    """The user records of an aggregate, in order; their index is the sub-sequence number.

    None if the data is no aggregate, or a malformed one: as in KCL it is then an ordinary record.
    """
    if not data.startswith(MAGIC) or len(data) <= len(MAGIC) + _DIGEST:
        return None
    message = data[len(MAGIC) : -_DIGEST]
    if hashlib.md5(message, usedforsecurity=False).digest() != data[-_DIGEST:]:
        return None
    try:
        return _user_records(message)
    except (_MalformedError, UnicodeDecodeError):
        return None


def placed(records: Sequence[UserRecord], hash_keys: HashKeys | None) -> Sequence[int]:
    """The indexes of the user records that belong to the shard with these hash keys, or of all."""
    if hash_keys is None:
        return range(len(records))
    # Of one whose place cannot be told nobody knows that it was sent again.
    return [i for i, record in enumerate(records) if (key := record.hash_key) is None or key in hash_keys]


def _user_records(message: bytes) -> list[UserRecord]:
    keys: list[str] = []
    hash_keys: list[str] = []
    records: list[tuple[int, int | None, bytes]] = []
    for number, value in _fields(message):
        if number == 1:
            keys.append(_bytes(value).decode())
            if len(keys[-1]) > _KEY_CHARACTERS:
                raise _MalformedError
        elif number == 2:
            hash_keys.append(_bytes(value).decode())
        elif number == 3:
            records.append(_record(_bytes(value)))
    for key, hash_key, _ in records:
        if key >= len(keys) or (hash_key is not None and hash_key >= len(hash_keys)):
            raise _MalformedError
    return [
        UserRecord(keys[key], data, None if hash_key is None else hash_keys[hash_key])
        for key, hash_key, data in records
    ]


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
