"""Records in the frames of a Glue Schema Registry, in Avro or in JSON: the encodings as their specifications have them.

(avro.apache.org/docs/1.12.0/specification; `AWSSchemaRegistryConstants` of awslabs/aws-glue-schema-registry.)
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from random import Random
from typing import Any

from chaos.events import Event, Fate, Sent, micros

_NEW_VERSION = 0.03
"""Of the records: how many are by a version that no worker has asked for yet."""
_BEYOND_TIMES = 2**62
"""Microseconds: later than the year 9999."""


class Frames:
    """Puts records into frames. The same for the same chance."""

    def __init__(self, chance: Random, register: Callable[[bytes, str, str], None]) -> None:
        """Nothing is registered yet.

        Args:
            chance: which encoding a record gets.
            register: takes the id of a version, its format and its definition.
        """
        self._chance = chance
        self._register = register
        self._versions: dict[str, bytes] = {}

    def event(self, event: Event) -> bytes:
        """A good record of it."""
        return self.json(event.json()) if self._chance.random() < 0.2 else self._avro(event, encoded(event))

    def json(self, text: bytes) -> bytes:
        """What is sent as JSON, whether it is any."""
        return self._framed("JSON", '{"type":"object"}', text)

    def damaged(self, thing: Event) -> Sent:
        """Something that nobody can use, or not as what it is."""
        good = encoded(thing)
        kind, data = self._chance.choice(
            (
                ("no frame", thing.json()),
                ("Avro that is cut off", self._avro(thing, good[: self._chance.randrange(len(good))])),
                ("Avro with more behind it", self._avro(thing, good + b"\0")),
                ("Avro with no UTF-8 in it", self._avro(thing, sized(b"\xff") + good[len(text(thing.id)) :])),
                ("Avro with a time that is none", self._avro(thing, encoded(thing, at=_BEYOND_TIMES))),
                ("another schema", self._framed("AVRO", '"long"', long(7))),
            )
        )
        return Sent(kind, thing.id, data, Fate.QUARANTINE, None)

    def _avro(self, event: Event, payload: bytes) -> bytes:
        return self._framed("AVRO", json.dumps(schema_of(event)), payload)

    def _framed(self, data_format: str, definition: str, payload: bytes) -> bytes:
        if definition not in self._versions or self._chance.random() < _NEW_VERSION:
            self._versions[definition] = self._chance.randbytes(16)
            self._register(self._versions[definition], data_format, definition)
        packed = self._chance.random() < 0.3
        return (
            b"\x03"
            + (b"\x05" if packed else b"\0")
            + self._versions[definition]
            + (zlib.compress(payload) if packed else payload)
        )


def schema_of(event: Event) -> Mapping[str, Any]:
    """The schema that a producer has for it: one that knows `extra`, or one that does not."""
    optional = {"day": "string", "place": _PLACE, "tags": {"type": "array", "items": "string"}, "extra": "string"}
    fields: dict[str, Any] = {
        "id": "string",
        "site": "string",
        "version": "long",
        "op": {"type": "enum", "name": "Op", "symbols": list(_OPS)},
        "amount": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
        "at": {"type": "long", "logicalType": "timestamp-micros"},
        "note": "string",
        **{name: ["null", kind] for name, kind in optional.items() if name != "extra" or event.extra is not None},
    }
    return _record("Thing", fields)


def encoded(event: Event, at: int | None = None) -> bytes:
    """An event by `schema_of`.

    Args:
        event: to be sent.
        at: microseconds since the epoch, instead of its own time.
    """
    parts = [
        text(event.id),
        text(event.site),
        long(event.version),
        long(_OPS.index(event.op)),
        _decimal(event.amount),
        long(micros(event.at) if at is None else at),
        text(event.note),
        _optional(event.day, text),
        _optional(event.place, _place),
        _optional(event.tags, lambda tags: _block([text(tag) for tag in tags])),
        *([] if event.extra is None else [_optional(event.extra, text)]),
    ]
    return b"".join(parts)


def long(number: int) -> bytes:
    """Zigzag, then seven bits a byte, the low ones first."""
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    found = bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def text(value: str) -> bytes:
    return sized(value.encode())


_OPS = ("c", "u", "d")


def _record(name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


_PLACE = _record(
    "Place",
    {"room": ["null", "long"], "open": ["null", "boolean"], "names": ["null", {"type": "map", "values": "string"}]},
)


def _place(place: Mapping[str, Any]) -> bytes:
    room = _optional(place.get("room"), long)
    is_open = _optional(place.get("open"), lambda value: bytes([value]))
    return room + is_open + _optional(place.get("names"), _names)


def _names(names: Mapping[str, str]) -> bytes:
    return _block([text(name) + text(value) for name, value in names.items()])


def _optional(value: Any, encode: Callable[[Any], bytes]) -> bytes:
    """Of a union with null, which comes first."""
    return long(0) if value is None else long(1) + encode(value)


def _block(items: list[bytes]) -> bytes:
    """All items of an array or a map."""
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)


def _decimal(digits: str) -> bytes:
    """Of two decimal places."""
    unscaled = int(Decimal(digits).scaleb(2))
    return sized(unscaled.to_bytes(unscaled.bit_length() // 8 + 1, signed=True))
