"""JSON for what the log keeps: orjson bytes, a version first, times as ISO 8601, sequence numbers as strings.

Sequence numbers have up to 56 digits, beyond any JSON number. Every document is one line without
blanks, and what occurs once per shard is a short array instead of an object: a plan with a range
in each of 10,000 shards is 4.4 MB, and 0.23 MB once compressed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson

from lakestream.errors import CorruptLogError, InvalidValueError

VERSION = 8
"""Newest version of the log's JSON. A reader refuses a higher one: it was written by a newer release. A document has
the lowest whose readers understand all of it: 2 says that records of the quarantine have been
replayed, 3 that other files are taken, 4 that part of the stream is read once more, 5 that the table is taken back,
6 that there are filters, 7 that records are texts, 8 that they are in Avro or of several objects."""
FILTERED = 6
"""Of plans and commits: a release that knows no filters would write the records of other tables from there on."""
OF_TEXTS, OF_OTHERS = 7, 8
"""Of plans: a release that knows JSON alone would have in quarantine what part of the batch has in the table."""

T = TypeVar("T")


def require_utc(name: str, value: datetime | None) -> None:
    """Refuse times without a zone or in another one than UTC: comparisons would depend on the machine."""
    # Mostly it is the very object, and there are several in each of thousands of ranges.
    if value is not None and value.tzinfo is not UTC and value.utcoffset() != timedelta(0):
        raise InvalidValueError(f"{name} must be a time in UTC, got {value!r}")


def require_count(name: str, value: int) -> None:
    """Refuse negative counts."""
    if value < 0:
        raise InvalidValueError(f"{name} must not be negative, got {value}")


def require_text(name: str, *values: str) -> None:
    """Refuse what is no text, as JSON may have in its place: it would fail where a text is looked up, far from here."""
    if wrong := [value for value in values if not isinstance(value, str)]:
        raise InvalidValueError(f"{name} must be a text, got {wrong[0]!r}")


def time_to_json(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def time_from_json(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value).astimezone(UTC)


def required_time(value: str | None) -> datetime:
    time = time_from_json(value)
    if time is None:
        raise InvalidValueError("a time is missing")
    return time


def encode(kind: str, body: dict[str, Any], version: int = 1) -> bytes:
    """One document: `{"version":1,"kind":…,…body}`."""
    return orjson.dumps({"version": version, "kind": kind, **body})


def decode(kind: str, content: bytes, build: Callable[[dict[str, Any]], T]) -> T:
    """Check version and kind of a document, and build the value from its fields.

    Raises:
        CorruptLogError: not JSON, another kind, a newer version, or a field missing or invalid.
    """
    try:
        document = orjson.loads(content)
        found = document["kind"], document["version"]
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptLogError(f"not a {kind} document: {content[:80]!r}") from error
    if found[0] != kind:
        raise CorruptLogError(f"expected a {kind} document, found a {found[0]!r}")
    if found[1] not in range(1, VERSION + 1):
        raise CorruptLogError(f"{kind} document has version {found[1]!r}; this release reads versions up to {VERSION}")
    try:
        return build(document)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptLogError(f"{kind} document is damaged: {error!r}") from error
