"""The JSON of a record with all its digits, read and written.

Numbers are kept as they were written (`Raw`); null is None, and of a name that occurs twice in an object the last value
counts. What is no JSON is refused: constants such as NaN, bytes that are not UTF-8, half of a pair of surrogates.
"""

import json
from typing import Any, NoReturn, TypeAlias

import msgspec
from msgspec import Raw

EMPTY = "empty"
NOT_UTF8 = "not UTF-8"
NOT_JSON = "not JSON"
TOO_DEEP = "nested too deeply"

Value: TypeAlias = Any
"""Of JSON: str, bool, None, list, dict; of a number its digits."""


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
    if not data:
        raise RecordError(EMPTY)
    try:
        record = _DECODER.decode(data.decode())
        if b"\\u" in data:
            text_of(record)  # there may be half of a pair of surrogates
    except UnicodeDecodeError as error:
        raise RecordError(NOT_UTF8) from error
    except RecursionError as error:
        raise RecordError(TOO_DEEP) from error
    except ValueError as error:
        raise RecordError(NOT_JSON) from error
    return record


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
