"""The record in PutRecord and PutRecords: its fields, checked."""

from __future__ import annotations

import binascii
from typing import Any, NamedTuple

import orjson
import pybase64

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.errors import SerializationException, ValidationException
from lakestream_localkinesis.fields import read_hash_key

RECORD_BYTES = 1 * MIB
KEY_CHARACTERS = 256


class Entry(NamedTuple):
    """A record to be put."""

    data: str
    """Base64, as received."""
    partition_key: bytes
    key_json: str
    """The partition key as JSON, with its quotes."""
    explicit_hash_key: int | None
    size: int
    """Bytes of data and partition key, which is what limits count."""


def read_entry(values: dict[str, Any], path: str = "") -> Entry:
    """Check a record's fields; `path` says where it stands in the request."""
    data = values.get("Data")
    key = values.get("PartitionKey")
    if not (isinstance(data, str) and isinstance(key, str)):
        raise _not_text(data, key, path)
    if not 0 < len(key) <= KEY_CHARACTERS:
        side = f"less than or equal to {KEY_CHARACTERS}" if key else "greater than or equal to 1"
        raise _violation(f"'{key}'", f"{path}partitionKey", f"Member must have length {side}")
    try:
        size = len(pybase64.b64decode(data, validate=True))
    except (binascii.Error, ValueError) as error:
        raise SerializationException(f"'{data[:64]}' can not be converted to a Blob: {error}") from error
    if size > RECORD_BYTES:
        shown = f"'java.nio.HeapByteBuffer[pos=0 lim={size} cap={size}]'"
        raise _violation(shown, f"{path}data", f"Member must have length less than or equal to {RECORD_BYTES}")
    encoded = key.encode()
    explicit = values.get("ExplicitHashKey")
    return Entry(
        data,
        encoded,
        orjson.dumps(key).decode(),
        None if explicit is None else read_hash_key("ExplicitHashKey", explicit),
        size + len(encoded),
    )


def _not_text(data: object, key: object, path: str) -> SerializationException | ValidationException:
    for name, value in (("data", data), ("partitionKey", key)):
        if value is None:
            return _violation("null", f"{path}{name}", "Member must not be null")
    wrong = "Blob" if not isinstance(data, str) else "String"
    return SerializationException(f"{path}: a value that is not text can not be converted to a {wrong}")


def _violation(shown: str, member: str, constraint: str) -> ValidationException:
    return ValidationException(
        f"1 validation error detected: Value {shown} at '{member}' failed to satisfy constraint: {constraint}"
    )
