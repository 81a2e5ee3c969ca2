"""The JSON of a record with all its digits, read and written.

Numbers are kept as they were written (`Raw`); null is None, and of a name that occurs twice in an object the last value
counts. What is no JSON is refused: constants such as NaN, bytes that are not UTF-8, half of a pair of surrogates.
"""

import json
import re
from decimal import Decimal
from typing import Any, NoReturn, TypeAlias

import msgspec
from msgspec import Raw

from lakestream.kinesis.frames import is_framed
from lakestream.kinesis.texts import MOST_MEBIBYTES, is_compressed

EMPTY = "empty"
NOT_UTF8 = "not UTF-8"
NOT_EXPANDED = f"gzip that is damaged, or more than {MOST_MEBIBYTES} MiB of text"
FRAMED = "in a frame of the Glue Schema Registry, and not JSON"
NOT_JSON = "not JSON"
MORE_BEHIND = "JSON with more behind it"
TOO_DEEP = "nested too deeply"

Value: TypeAlias = Any
"""Of JSON: str, bool, None, list, dict; of a number its digits."""

BLANKS = " \t\r\n"
# Each text matches in one way only: or else a megabyte of digits that is none would be looked at for hours.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class RecordError(Exception):
    """A record cannot be used; the text says why, and names the field."""

    def __init__(self, reason: str, path: str | None = None) -> None:
        super().__init__(reason)
        self._reason = reason
        self._path = path

    def within(self, step: str) -> "RecordError":
        """The same, told of the value that the field is in."""
        return RecordError(self._reason, step + (self._path or ""))

    def __str__(self) -> str:
        return self._reason if self._path is None else f"{self._reason}: {self._path.removeprefix('.')}"


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError  # NaN and Infinity are no JSON


_DECODER = json.JSONDecoder(parse_int=Raw, parse_float=Raw, parse_constant=_refuse_constant)


def decoded(data: bytes) -> Value:
    """The value that bytes are the JSON of.

    Raises:
        RecordError: they are none.
    """
    text = text_in_utf8(data).strip(BLANKS)
    try:
        record, end = _DECODER.raw_decode(text)
        if end < len(text):
            raise RecordError(MORE_BEHIND)
        if b"\\u" in data:
            text_of(record)  # there may be half of a pair of surrogates
    except RecursionError as error:
        raise RecordError(TOO_DEEP) from error
    except ValueError as error:
        raise RecordError(FRAMED if is_framed(data) else NOT_JSON) from error
    return record


def text_in_utf8(data: bytes) -> str:
    """A record's text, to the last blank.

    Raises:
        RecordError: it has none.
    """
    if not data:
        raise RecordError(EMPTY)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if is_compressed(data):
            raise RecordError(NOT_EXPANDED) from error
        raise RecordError(FRAMED if is_framed(data) else NOT_UTF8) from error


def text_of(value: Value) -> str:
    """The JSON of a value, without blanks and escapes that it does not need.

    Raises:
        RecordError: it has half of a pair of surrogates, or is nested too deeply.
    """
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError as error:
        raise RecordError(TOO_DEEP) from error
    except UnicodeEncodeError as error:
        raise RecordError(NOT_JSON) from error


def compact(value: Raw) -> Raw:
    """The JSON of a value as `text_of` has it.

    Args:
        value: in UTF-8; of it, a decoder has looked at the syntax.

    Raises:
        ValueError: it is to be read with the rest of its record, to tell what is wrong with it.
    """
    text = bytes(value)
    return Raw(_anew(text).encode()) if text.startswith(_OPENING) or b"\\" in text else value


def text_in(value: Raw) -> str | None:
    """What a column of STRING has of a value: the letters of a string, nothing of null, of all others their JSON.

    Args and errors are those of `compact`.
    """
    text = bytes(value)
    if text.startswith(b'"'):
        return msgspec.json.decode(text, type=str) if b"\\" in text else text[1:-1].decode()
    if text == b"null":
        return None
    return _anew(text) if text.startswith(_OPENING) else text.decode()


def decimal_in(text: str) -> Decimal | None:
    """The number that a text has the digits of, all of them; None: it has something else.

    Raises:
        InvalidOperation: its exponent is out of all bounds.
    """
    text = text.strip(BLANKS)
    return Decimal(text) if _DECIMAL.fullmatch(text) else None


_OPENING = (b"{", b"[")


def _anew(text: bytes) -> str:
    try:
        return text_of(decoded(text))
    except RecordError as error:
        raise ValueError from error
