"""The two encodings of the Kinesis protocol: bytes to fields, answers to bytes. No sockets, no state.

JSON 1.1 is the form that the operations know; CBOR is translated from and to it. Blobs: base64 text in JSON,
byte strings in CBOR. Times: seconds in JSON, in CBOR tag 1 over *milliseconds* (AWS's variant of RFC 8949, which
says seconds).
"""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any

import cbor2
import orjson
import pybase64

from lakestream_localkinesis.errors import ApiError, SerializationException

BLOBS = frozenset({"Data"})
TIMES = frozenset({"ApproximateArrivalTimestamp", "ConsumerCreationTimestamp", "StreamCreationTimestamp", "Timestamp"})
_EPOCH_TAG = 1


class WireFormat(StrEnum):
    """The content types of requests and answers."""

    JSON = "application/x-amz-json-1.1"
    CBOR = "application/x-amz-cbor-1.1"

    @classmethod
    def of(cls, content_type: str) -> WireFormat:
        """The format of a request; what does not say CBOR is read as JSON."""
        return cls.CBOR if "cbor" in content_type else cls.JSON


def decode_fields(wire: WireFormat, body: bytes) -> dict[str, Any]:
    """The fields of a request's body, in JSON's form."""
    try:
        if wire is WireFormat.JSON:
            fields = orjson.loads(body)
        else:
            fields = _from_cbor(cbor2.loads(body, semantic_decoders={_EPOCH_TAG: _epoch_seconds}))
    except (orjson.JSONDecodeError, cbor2.CBORDecodeError, OverflowError, RecursionError) as error:
        raise SerializationException(f"The body is not valid {wire.name}: {error}") from error
    if not isinstance(fields, dict):
        raise SerializationException("The body is not a structure.")
    return fields


def encode_answer(wire: WireFormat, answer: dict[str, Any] | bytes) -> bytes:
    """The body for an operation's output; one without members is empty in JSON, as Kinesis sends it."""
    if isinstance(answer, bytes):
        return answer if wire is WireFormat.JSON else encode_structure(wire, orjson.loads(answer))
    return encode_structure(wire, answer) if answer or wire is WireFormat.CBOR else b""


def encode_structure(wire: WireFormat, fields: dict[str, Any]) -> bytes:
    """A structure, also if it has no members."""
    return orjson.dumps(fields) if wire is WireFormat.JSON else cbor2.dumps(_to_cbor("", fields))


def encode_error(wire: WireFormat, error: ApiError) -> bytes:
    """The body for an error."""
    # What refuses a body that it cannot read is another part of Kinesis, with another name for the member.
    name = "Message" if isinstance(error, SerializationException) else "message"
    return encode_structure(wire, {"__type": error.code, name: str(error)})


def _epoch_seconds(value: Any, _immutable: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SerializationException("A timestamp is not a number.")
    # Integers are AWS's milliseconds; floats are seconds, as in the RFC and in Smithy's own CBOR protocol.
    return value / 1000 if isinstance(value, int) else value


def _from_cbor(value: Any) -> Any:
    match value:
        case bytes():
            return pybase64.b64encode(value).decode()
        case dict():
            if not all(isinstance(name, str) for name in value):
                raise SerializationException("The name of a member is not text.")
            return {name: _from_cbor(member) for name, member in value.items()}
        case list():
            return [_from_cbor(member) for member in value]
        case float() if not math.isfinite(value):
            # As JSON, which has none.
            raise SerializationException(f"{value} is no number.")
        case _:
            return value


def _to_cbor(name: str, value: Any) -> Any:
    match value:
        case dict():
            return {key: _to_cbor(key, member) for key, member in value.items()}
        case list():
            return [_to_cbor(name, member) for member in value]
        case str() if name in BLOBS:
            return pybase64.b64decode(value)
        case float() | int() if name in TIMES:
            return cbor2.CBORTag(_EPOCH_TAG, round(value * 1000))
        case _:
            return value
