"""Records as the world sends them, and what has to become of each.

To add a kind: one more entry in `POISON`. Its function gets chance and a fresh thing that no other record touches, and
returns the bytes; the entry says what has to become of them, for each family of sinks. A kind that the product does
not handle yet has `landed=False`: it is in the table, and no schedule draws it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from chaos.events import Digits, Event, Fate, Row, Sent, encoded
from chaos.setting import Sink

FAILS = "no result"
"""A note that Spark has no result for, by the transform of `world`."""

Bytes: TypeAlias = Callable[[Random, Event], bytes]


@dataclass(frozen=True)
class Poison:
    """A kind of record."""

    make: Bytes
    in_json: Fate = Fate.QUARANTINE
    in_hudi: Fate = Fate.QUARANTINE
    change: Callable[[Row], Row] = lambda row: row
    """What a table shows of it, made of what it shows of the thing itself; where it may be a row."""
    in_inserts: Fate | None = None
    """In a Hudi table that keeps every record, whatever its key; None: as in one kept by key."""
    landed: bool = True
    fails: bool = False
    """Whether only a transform is in its way, which fails at it."""
    bare: bool = False
    """Whether it is read as it is alone, and not in a frame."""

    def fate(self, sink: Sink) -> Fate:
        if not sink.is_hudi:
            return self.in_json
        return self.in_hudi if sink.is_keyed else self.in_inserts or self.in_hudi


def poison(kind: str, chance: Random, thing: Event, sink: Sink) -> Sent:
    """One record of a kind."""
    entry = POISON[kind]
    fate = entry.fate(sink)
    row = entry.change(thing.row()) if fate.may_be_row else None
    return Sent(kind, thing.id, entry.make(chance, thing), fate, row)


def _constant(data: bytes) -> Bytes:
    return lambda chance, thing: data


def _with(**fields: object) -> Bytes:
    return lambda chance, thing: encoded({**thing.fields(), **fields})


def _raw(name: str, text: str) -> Bytes:
    """A field with a value that is written by hand."""

    def make(chance: Random, thing: Event) -> bytes:
        rest = {key: value for key, value in thing.fields().items() if key != name}
        return encoded(rest)[:-1] + f',"{name}":{text}}}'.encode()

    return make


def _without(name: str) -> Bytes:
    return lambda chance, thing: encoded({key: value for key, value in thing.fields().items() if key != name})


def _noise(chance: Random, thing: Event) -> bytes:
    return chance.randbytes(chance.randrange(1, 3000))


def _cut(chance: Random, thing: Event) -> bytes:
    data = encoded(thing.fields())
    return data[: chance.randrange(1, len(data) - 1)]


def _false_aggregate(chance: Random, thing: Event) -> bytes:
    """The KPL's mark, and no message behind it."""
    return b"\xf3\x89\x9a\xc2" + chance.randbytes(60)


def _compressed(chance: Random, thing: Event) -> bytes:
    return gzip.compress(encoded(thing.fields()), mtime=0)


def _cut_gzip(chance: Random, thing: Event) -> bytes:
    data = _compressed(chance, thing)
    return data[: chance.randrange(3, len(data) - 1)]


def _bomb(chance: Random, thing: Event) -> bytes:
    """Some 16 KiB that are 17 MiB of text."""
    return gzip.compress(encoded(replace(thing, note="n" * (17 << 20)).fields()), mtime=0)


def _framed(chance: Random, thing: Event) -> bytes:
    """JSON as a serializer of the Glue Schema Registry sends it, compressed by zlib."""
    return b"\x03\x05" + chance.randbytes(16) + zlib.compress(encoded(thing.fields()))


def _cut_frame(chance: Random, thing: Event) -> bytes:
    data = _framed(chance, thing)
    return data[: chance.randrange(2, len(data) - 1)]


def _avro(chance: Random, thing: Event) -> bytes:
    """A text, in a frame of the same."""
    return b"\x03\x00" + chance.randbytes(16) + b"\x0cpoison"


def _doubled_name(chance: Random, thing: Event) -> bytes:
    return b'{"note":"first",' + encoded(thing.fields())[1:]


def _set(**values: object) -> Callable[[Row], Row]:
    return lambda row: {**row, **values}


def _row(make: Bytes, change: Callable[[Row], Row] = lambda row: row) -> Poison:
    return Poison(make, Fate.ROW, Fate.ROW, change)


def _left_out(make: Bytes) -> Poison:
    return Poison(make, Fate.LEFT_OUT, Fate.LEFT_OUT)


def _either(make: Bytes, change: Callable[[Row], Row]) -> Poison:
    return Poison(make, Fate.EITHER, Fate.EITHER, change)


TWO_VALUES = "two values"
"""Two records of one event, where records are taken apart."""
_UNKNOWN = '{"list":[0.70,{"e":1E-5}],"whole":12345678901234567890123,"no":false,"text":"0.70"}'
_PARSED = json.loads(_UNKNOWN, parse_float=Digits)

POISON: Mapping[str, Poison] = {
    # Not JSON, or not an object.
    "empty": Poison(_constant(b"")),
    "noise": Poison(_noise),
    "latin-1": Poison(_constant("Grüße".encode("latin-1"))),
    "a list": Poison(_constant(b"[1,2]")),
    "null": Poison(_constant(b"null")),
    "cut": Poison(_cut),
    TWO_VALUES: Poison(lambda chance, thing: encoded(thing.fields()) * 2),
    "a BOM": Poison(lambda chance, thing: b"\xef\xbb\xbf" + encoded(thing.fields())),
    "deep nesting": Poison(_raw("note", "[" * 5000 + "]" * 5000)),
    "a lone surrogate": Poison(_raw("note", '"\\ud800"')),
    "a false aggregate": Poison(_false_aggregate),
    # Values that the schema has no room for.
    "no version": Poison(_without("version")),
    "no id": Poison(_without("id")),
    "text for a number": Poison(_raw("version", '"7"')),
    "a fraction for a whole number": Poison(_raw("version", "1.5")),
    "a number above 64 bits": Poison(_raw("version", str(2**63))),
    "NaN": Poison(_raw("amount", "NaN")),
    "no time": Poison(_raw("at", '"soon"')),
    "a time without a date": Poison(_raw("at", '"12:30"')),
    "text for a struct": Poison(_raw("place", '"here"')),
    "text for a flag in a struct": Poison(_raw("place", '{"room":1,"open":"yes"}')),
    "an object for an array": Poison(_raw("tags", '{"0":"x"}')),
    "too large for the decimal": Poison(_raw("amount", "123456789012.5")),
    # A person may relax the schema while these are on their way.
    "no note": _either(_without("note"), _set(note=None)),
    # Of other tables, by the filter of `world`; whatever else is in them.
    "null op": _left_out(_raw("op", "null")),
    "no op": _left_out(_without("op")),
    "another table": _left_out(_with(op="visit", id=[1], version="none", amount={}, more=[0.70])),
    "another op that counts": _left_out(_raw("unknown", '1,"op":"c","op":{"c":"c"}')),
    # Good, though they do not look it.
    "an op with escapes": _row(
        lambda chance, thing: encoded(thing.fields()).replace(b'"op":"c"', b'"o\\u0070":"\\u0063"')
    ),
    "a name twice": _row(_doubled_name),
    "no day": _row(_without("day"), _set(day=None)),
    "unknown fields": _row(_raw("unknown", _UNKNOWN), _set(rescued={"unknown": _PARSED})),
    "several unknown fields": _row(
        lambda chance, thing: encoded(thing.fields())[:-1] + f',"one":null,"two":{_UNKNOWN},"":"three"}}'.encode(),
        _set(rescued={"one": None, "two": _PARSED, "": "three"}),
    ),
    "an unknown field in a struct": _row(
        _raw("place", f'{{"room":7,"more":{_UNKNOWN},"names":{{"de":"Flur"}}}}'),
        _set(place={"room": 7, "names": {"de": "Flur"}}, rescued={"place": {"more": _PARSED}}),
    ),
    "a number for a nested text": _row(_raw("place", '{"names":{"a":1.10}}'), _set(place={"names": {"a": "1.10"}})),
    "a number for text": _row(_raw("note", "12.50"), _set(note="12.50")),
    "a compressed record": Poison(_compressed, Fate.ROW, Fate.ROW, bare=True),
    "gzip that is cut off": Poison(_cut_gzip),
    "gzip of too much": Poison(_bomb),
    "a framed record": Poison(_framed, Fate.ROW, Fate.ROW, bare=True),
    "a frame that is cut off": Poison(_cut_frame),
    "Avro in a frame": Poison(_avro),
    "a large record": _row(_with(note="n" * 200_000), _set(note="n" * 200_000)),
    # Hudi cannot take these, and one of them must not stop it.
    "an empty key": Poison(_with(id="", site=""), in_json=Fate.ROW, change=_set(id="", site="")),
    "a key that says null": Poison(
        _with(id="__null__"), in_json=Fate.ROW, in_inserts=Fate.ROW, change=_set(id="__null__")
    ),
    "a key with separators": Poison(
        lambda chance, thing: encoded(replace(thing, id=f"{thing.id},site:x", site="y:z,").fields()),
        Fate.ROW,
        Fate.EITHER,
        lambda row: {**row, "id": f"{row['id']},site:x", "site": "y:z,"},
    ),
    "a partition of 300 characters": Poison(_with(day="d" * 300)),
    "a partition with NUL": _row(_with(day="a\0b"), _set(day="a\0b")),
    "a partition that leads out": _row(_with(day=".."), _set(day="..")),
    # Values that would be altered.
    "an inexact decimal": Poison(_raw("amount", "1.239")),
    "a tiny decimal": Poison(_raw("amount", "1E-5")),
    "microseconds for seconds": Poison(_raw("at", "1769860800123456")),
    "milliseconds for seconds": Poison(_raw("at", "1769860800123")),
    "the zero time": _either(_with(at="0001-01-01T00:00:00Z"), _set(at=-62135596800000000)),
    "a note at which the transform fails": Poison(_with(note=FAILS), fails=True),
    "the largest time": Poison(_raw("at", str(2**63 - 1))),
}


def landed(*, sql: bool, packed: bool = False, framed: bool = False) -> tuple[str, ...]:
    """The kinds that a schedule may draw, with a transform or without, and by how records are sent."""
    entries = {kind: entry for kind, entry in POISON.items() if entry.landed and not (framed and entry.bare)}
    kinds = (kind for kind, entry in entries.items() if sql or not entry.fails)
    return tuple(kind for kind in kinds if not packed or kind != TWO_VALUES)


def is_unusable_line(record: Sent) -> bool:
    """Whether it is a line, if not one of an object, of which nothing can be made."""
    return record.fate is Fate.QUARANTINE and b"\n" not in record.data and record.data.strip() == record.data != b""


def is_object(data: bytes) -> bool:
    """Whether it is the JSON of one object on a line, whatever is in it."""
    if not data.startswith(b"{") or b"\n" in data:
        return False
    try:
        json.loads(data.decode())
    except (ValueError, RecursionError):
        return False
    return True
