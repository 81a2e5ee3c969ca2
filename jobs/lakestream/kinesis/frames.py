"""The frame in which the serializers of the AWS Glue Schema Registry send a record. Pure.

| offset | bytes | |
|---|---|---|
| 0 | 1 | version of the frame, 3 |
| 1 | 1 | 0: the payload is as it is; 5: it is compressed by zlib (RFC 1950) |
| 2 | 16 | the UUID of the version of the schema |
| 18 | | the payload: Avro's binary encoding without a header, JSON, or Protobuf |

(`AWSSchemaRegistryConstants` of awslabs/aws-glue-schema-registry.)
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from uuid import UUID

VERSION = b"\x03"
"""The first byte of a frame: no JSON begins so, nor any text of letters."""

_AS_IT_IS, _COMPRESSED = VERSION + b"\x00", VERSION + b"\x05"
_HEADER = 18


@dataclass(frozen=True, slots=True)
class Frame:
    """A record without its frame."""

    key: bytes
    """The version of its schema, as the frame has it."""
    payload: bytes

    @property
    def version(self) -> UUID:
        """Of the schema."""
        return UUID(bytes=self.key)


def is_framed(data: bytes) -> bool:
    """Whether a record begins as a frame does."""
    return data.startswith((_AS_IT_IS, _COMPRESSED))


def frame_of(data: bytes, most: int) -> Frame | None:
    """What a record has in its frame; None: it has none, or one that is damaged, or more than `most` bytes in it."""
    if not is_framed(data) or len(data) < _HEADER:
        return None
    payload: bytes | None = data[_HEADER:]
    if data.startswith(_COMPRESSED):
        payload = _inflated(data[_HEADER:], most)
    if payload is None or len(payload) > most:
        return None
    return Frame(data[2:_HEADER], payload)


def _inflated(data: bytes, most: int) -> bytes | None:
    """All of what is compressed; None: it is not, or something is behind it, or it is more than is taken."""
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(data, most + 1)
    except zlib.error:
        return None
    return text if stream.eof and not stream.unused_data else None
