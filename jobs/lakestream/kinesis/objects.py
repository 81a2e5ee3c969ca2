"""Records that have the JSON of several objects, one after the other: each is an event of its own. Pure.

Producers that fill records with lines of JSON pay for fewer of them; Data Firehose takes these apart as well (its
"multi record deaggregation"). There is a line feed between two objects, or any blanks, or nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc

from lakestream.kinesis.batches import REASON, SCHEMA
from lakestream.kinesis.texts import text_of

_BLANKS = b" \t\r\n"
_ROWS, _BYTES = 10_000, 32 << 20
"""Of a batch of objects, at most; one that is larger is alone."""
STEP = 1 << 32
"""What each object of a record adds to the record's own number within an aggregate, of which these have less: by
`sub_sequence % STEP` and then by the rest they are in their order."""

_TWO_OF_A_LINE = re.compile(rb"\}[ \t\r]*\{")
_BEHIND = re.compile(r"[ \t\r\n]*")
_ANY_BYTES = "surrogateescape"
_decode = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode
"""Of numbers it makes none: Python's have 4,300 digits at most, JSON's any number."""


def objects(text: bytes) -> Iterator[bytes]:
    """The parts of a record: an object each; and, as one part, what is none, to its line's end or to the next line that
    is objects.

    A part has one part: itself. There are no blanks around it. A record without any part is one.
    """
    lines = [line for whole in text.split(b"\n") if (line := whole.strip(_BLANKS))]
    if all(map(_is_whole, lines)) and _TWO_OF_A_LINE.search(text) is None:
        # No object has a line's end behind a brace that ends it and before one that opens the next.
        yield from lines or [text]
    else:
        yield from _one_by_one(text)


def _is_whole(line: bytes) -> bool:
    """Whether a line is an object, by its ends."""
    return line.startswith(b"{") and line.endswith(b"}")


def _one_by_one(text: bytes) -> Iterator[bytes]:
    rest = text.decode(errors=_ANY_BYTES).strip(_BLANKS.decode())
    if not rest:
        yield text
    at = 0
    while at < len(rest):
        stop = _object_end(rest, at)
        if stop is None:
            stop = _unusable_end(rest, at)
        yield rest[at:stop].encode(errors=_ANY_BYTES).rstrip(_BLANKS)
        at = _behind(rest, stop)


def _object_end(text: str, at: int) -> int | None:
    """The end of the object that begins there; None: there is none."""
    try:
        found, stop = _decode(text, at)
        text[at:stop].encode()
    except (ValueError, RecursionError):  # a UnicodeEncodeError is one
        return None
    return stop if isinstance(found, dict) else None


def _unusable_end(text: str, at: int) -> int:
    """Where that ends which is no object. What is indented may be part of one that was cut off, and is no event."""
    end = _line_end(text, at)
    if _is_whole(text[at:end].rstrip(_BLANKS.decode()).encode(errors=_ANY_BYTES)):
        return end
    while end < len(text):
        start, end = end + 1, _line_end(text, end + 1)
        if _is_objects(text[start:end]):
            return start
    return len(text)


def _is_objects(line: str) -> bool:
    """Whether a line is objects from its first character to its end."""
    at: int | None = 0
    while at is not None and at < len(line):
        at = _object_end(line, at)
        at = at and _behind(line, at)
    return bool(at)


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _behind(text: str, at: int) -> int:
    """The place of what comes behind blanks."""
    return next(_BEHIND.finditer(text, at)).end()


def parted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of raw records (`batches.SCHEMA`) with a row for each object.

    The data of a row are its object's, and its `sub_sequence` says which of the record's it is: the first one's is the
    record's. What is known to be unusable, and has a reason, stays as it is.
    """
    for batch in batches:
        if REASON in batch.schema.names:
            yield batch
        else:
            yield from _parted(batch)


def _parted(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    rows: list[int] = []
    datas: list[bytes] = []
    steps: list[int] = []
    size = 0
    for row, data in enumerate(batch.column("data").to_pylist()):
        for number, part in enumerate(_parts(data)):
            if rows and (len(rows) == _ROWS or size + len(part) > _BYTES):
                yield _taken(batch, rows, datas, steps)
                rows, datas, steps, size = [], [], [], 0
            rows.append(row)
            datas.append(part)
            steps.append(number * STEP)
            size += len(part)
    yield _taken(batch, rows, datas, steps)


def _parts(data: bytes) -> Iterator[bytes]:
    """Of a record; one of a single part is left as its producer has wrapped it."""
    parts = objects(text_of(data))
    first, second = next(parts), next(parts, None)
    return iter((data,)) if second is None else chain((first, second), parts)


def _taken(batch: pa.RecordBatch, rows: list[int], datas: list[bytes], steps: list[int]) -> pa.RecordBatch:
    columns = {name: batch.column(name).take(pa.array(rows, pa.int64())) for name in SCHEMA.names}
    columns["data"] = pa.array(datas, pa.binary())
    columns["sub_sequence"] = pc.add(columns["sub_sequence"], pa.array(steps, pa.int64()))
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)
