"""Leaves out the records of other tables, before they are read by this one's schema. Runs on executors.

A record is left out only if it is the JSON of an object, and lacks what a filter asks for: of what is no JSON nobody
can say whose it is, and it goes to quarantine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

import msgspec
import pyarrow as pa
from msgspec import Raw

from lakestream.kinesis.batches import REASON
from lakestream.kinesis.texts import texts
from lakestream.model import Filter
from lakestream.spark.digits import RecordError, decoded
from lakestream.spark.plain import NotPlain

Takes: TypeAlias = Callable[[bytes], bool]

_Tree: TypeAlias = "dict[str, _Tree | None]"
"""The fields that filters ask for, by name; None: the value itself."""

_BARE = tuple("-0123456789tf")
"""How numbers and booleans begin."""


def taken(batches: Iterable[pa.RecordBatch], filters: Sequence[Filter]) -> Iterator[pa.RecordBatch]:
    """Batches of raw records, as `lakestream.kinesis.texts.expanded` or `lakestream.avro.in_json` leaves them, without
    those that some filter does not take.

    What has a `REASON` stays: a record of which nobody can say whose it is, or a mark of what could not be read.
    """
    takes = taker(filters) if filters else None
    for batch in batches:
        if takes is None:
            yield batch
            continue
        keeps: Iterable[bool] = map(takes, texts(batch))
        if REASON in batch.schema.names:
            reasons = batch.column(REASON).to_pylist()
            keeps = (why is not None or takes(text) for text, why in zip(texts(batch), reasons, strict=True))
        yield batch.filter(pa.array(keeps, pa.bool_()))


def taker(filters: Sequence[Filter]) -> Takes:
    """A function that says whether a record is taken.

    Most are told by one pass of a decoder in C that skips all other fields; the others as `exact` reads them.
    """
    exactly = _exactly(filters)
    tree: _Tree = {}
    for one in filters:
        _plant(tree, one.steps)
    try:
        decode = msgspec.json.Decoder(_kind(tree)).decode
    except ValueError:
        # A name with a quote, a backslash or a control character, which msgspec does not look for.
        return exactly
    looks = [(attrgetter(_place(tree, one.steps)), one.values, _written(one.values)) for one in filters]

    def takes(data: bytes) -> bool:
        try:
            record = decode(data)
        except NotPlain:
            return exactly(data)
        try:
            for look, values, written in looks:
                text = bytes(look(record) or b"")
                if text not in written and not _is_with_escapes(text, values):
                    return not _is_utf8(data)  # the decoder skips that as well
        except AttributeError:  # of an object that is not there
            return not _is_utf8(data)
        return True

    return takes


def _plant(tree: _Tree, steps: Sequence[str]) -> None:
    *outer, last = steps
    for step in outer:
        below = tree.setdefault(step, {})
        assert below is not None, "no filter is within another"
        tree = below
    tree[last] = None


def _kind(tree: _Tree) -> Any:
    fields: list[Any] = [
        (f"f{at}", Raw if below is None else _kind(below) | None, None) for at, below in enumerate(tree.values())
    ]
    return msgspec.defstruct("Kind", fields, rename={f"f{at}": name for at, name in enumerate(tree)}, gc=False)


def _place(tree: _Tree, steps: Sequence[str]) -> str:
    """A path as the structs of `_kind` name its fields."""
    named: list[str] = []
    below: _Tree | None = tree
    for step in steps:
        assert below is not None
        named.append(f"f{list(below).index(step)}")
        below = below[step]
    return ".".join(named)


def _written(values: Iterable[str]) -> frozenset[bytes]:
    """How JSON has them without escapes it does not need."""
    return frozenset(map(msgspec.json.encode, values)) | {value.encode() for value in values if _is_bare(value)}


def _is_bare(value: str) -> bool:
    """Whether it is the JSON of a number or boolean."""
    if not value.startswith(_BARE):
        return False
    try:
        msgspec.json.decode(value, type=Raw)
    except msgspec.DecodeError:
        return False
    return True


def _is_with_escapes(text: bytes, values: frozenset[str]) -> bool:
    return b"\\" in text and text.startswith(b'"') and msgspec.json.decode(text, type=str) in values


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _exactly(filters: Sequence[Filter]) -> Takes:
    def takes(data: bytes) -> bool:
        try:
            record = decoded(data)
        except RecordError:
            return True
        return not isinstance(record, dict) or all(_text(record, one.steps) in one.values for one in filters)

    return takes


def _text(record: Any, steps: Sequence[str]) -> str | None:
    for step in steps:
        record = record.get(step) if isinstance(record, dict) else None
    match record:
        case str():
            return record
        case bool():
            return "true" if record else "false"
        case Raw():
            return bytes(record).decode()
    return None
