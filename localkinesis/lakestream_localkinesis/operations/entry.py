"""The record in PutRecord and PutRecords: its fields, checked."""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Any

import orjson
from pybase64 import b64decode

from lakestream_localkinesis.core.hashing import key_bytes
from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.stream import Stream
from lakestream_localkinesis.errors import InvalidArgumentException, SerializationException, ValidationException
from lakestream_localkinesis.fields import read_hash_key, violation

RECORD_BYTES = 10 * MIB
"""Of data alone, in any stream; what a stream takes of data and key together may be less."""
KEY_CHARACTERS = 256


# A plain tuple: a class costs as much to build as the partition key's MD5, and there are 500 to a request.
Entry = tuple[str, bytes, str, bytes | None, int]
"""A record to be put: data (base64, as received), partition key (UTF-8), the same as JSON with its quotes (both empty
if there is none), explicit hash key (16 bytes), and the bytes of data and partition key, which is what limits count."""


def read_entry(values: dict[str, Any], place: int | None = None) -> Entry:
    """Check a record's fields; `place` is where it stands in a PutRecords, from 1."""
    data = values.get("Data")
    key = values.get("PartitionKey")
    if not (isinstance(data, str) and (isinstance(key, str) or key is None)):
        raise _not_text(data, _path(place))
    if key is not None and not 0 < len(key) <= KEY_CHARACTERS:
        side = f"less than or equal to {KEY_CHARACTERS}" if key else "greater than or equal to 1"
        raise _violation(f"'{key}'", f"{_path(place)}partitionKey", f"Member must have length {side}")
    try:
        size = len(b64decode(data, validate=True))
    except (binascii.Error, ValueError) as error:
        raise SerializationException(f"'{data[:64]}' can not be converted to a Blob: {error}") from error
    if size > RECORD_BYTES:
        shown = f"'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]'"
        raise _violation(shown, f"{_path(place)}data", f"Member must have length less than or equal to {RECORD_BYTES}")
    explicit = values.get("ExplicitHashKey")
    digest = None if explicit is None else key_bytes(read_hash_key("ExplicitHashKey", explicit, _path(place)))
    if key is None:
        return data, b"", "", digest, size
    encoded = key.encode()
    return data, encoded, orjson.dumps(key).decode(), digest, size + len(encoded)


def missing_keys(places: Sequence[int | None]) -> ValidationException:
    """The error for records without a partition key in a stream that goes by them."""
    return ValidationException.of(
        [violation("null", f"{_path(place)}partitionKey", "Member must not be null") for place in places]
    )


def oversized(stream: Stream, size: int, place: int | None = None) -> InvalidArgumentException:
    """The error for a record above what its stream takes."""
    return InvalidArgumentException(
        f"{_path(place) or 'record: '}{size} bytes of data and partition key exceed the maximum record size of "
        f"{stream.max_record_bytes} bytes of stream {stream.name}; UpdateMaxRecordSize changes it."
    )


def _path(place: int | None) -> str:
    return "" if place is None else f"records.{place}.member."


def _not_text(data: object, path: str) -> SerializationException | ValidationException:
    if data is None:
        return _violation("null", f"{path}data", "Member must not be null")
    wrong = "Blob" if not isinstance(data, str) else "String"
    return SerializationException(f"{path}: a value that is not text can not be converted to a {wrong}")


def _violation(shown: str, member: str, constraint: str) -> ValidationException:
    return ValidationException.of([violation(shown, member, constraint)])
