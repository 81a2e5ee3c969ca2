"""Which keys were deleted, and at which version: pure.

Hudi forgets a key that it deletes (a copy-on-write table at once, a merge-on-read table when it compacts), and an older
version of the key that arrives later would be inserted as a new row. So the sink remembers deletes for a while.

A version that is older than a delete of its key never counts, in whatever order the two arrive. That makes the filter
safe to apply at any time, any number of times, also on a replay.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import orjson

Ordering: TypeAlias = int | float | str
"""A value of the ordering field; times are microseconds since 1970."""

_SLOTS_PER_KEY = 16
_MIN_SLOTS = 1 << 14
_HIT = 1


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A delete that was seen."""

    key: str
    """The columns that tell rows apart, as one JSON object."""
    hash: int
    """Spark's `xxhash64` of `key`."""
    ordering: Ordering
    """The version that deleted the key."""
    seen: float
    """Seconds since 1970, by the driver's clock."""


class Tombstones:
    """The newest tombstone of each deleted key, for as long as they are retained.

    `filter` is a Bloom filter over the keys with a byte per slot, so that Spark can look a key up with built-in
    functions: a key was perhaps deleted if the slots of both halves of its hash are set. With 16 slots per key, about
    one in 70 other keys looks deleted too, and is then looked up here.
    """

    def __init__(self, retain: float, limit: int = 500_000) -> None:
        """`retain` in seconds; above `limit` keys (some 300 bytes each) the oldest are forgotten early."""
        self._retain = retain
        self._limit = limit
        self._known: dict[str, Tombstone] = {}
        self.filter = bytearray(_MIN_SLOTS)

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Tombstone]:
        return iter(self._known.values())

    def add(self, tombstones: Iterable[Tombstone], now: float) -> None:
        """Remember deletes; forgets what is older than is retained."""
        for new in tombstones:
            old = self._known.get(new.key)
            if old is None or _newer(new, old):
                # Out and in again, so that the oldest come first.
                self._known.pop(new.key, None)
                self._known[new.key] = new
                self._mark(new.hash)
        self._expire(now)

    def overtakes(self, key: str, ordering: Ordering) -> bool:
        """Whether that version of the key is older than a delete of it."""
        known = self._known.get(key)
        return known is not None and _less(ordering, known.ordering)

    def deleted_at(self, key: str) -> Ordering:
        """The version that deleted the key, which must be known."""
        return self._known[key].ordering

    def _mark(self, key_hash: int) -> None:
        for slot in slots(key_hash, len(self.filter)):
            self.filter[slot] = _HIT

    def _expire(self, now: float) -> None:
        excess = len(self._known) - self._limit
        gone = []
        for position, tombstone in enumerate(self._known.values()):
            if position >= excess and tombstone.seen >= now - self._retain:
                break
            gone.append(tombstone.key)
        for key in gone:
            del self._known[key]
        wanted = max(_MIN_SLOTS, 1 << (len(self._known) * _SLOTS_PER_KEY).bit_length())
        # A quarter, so that it does not go to and fro between two sizes. Slots of forgotten keys stay set until then.
        if len(self.filter) < wanted or len(self.filter) > 4 * wanted:
            self.filter = bytearray(wanted)
            for tombstone in self._known.values():
                self._mark(tombstone.hash)


def slots(key_hash: int, size: int) -> tuple[int, int]:
    """The slots of a key in a filter of `size` bytes, a power of two. Spark's SQL has the same in deletes.py."""
    return key_hash & (size - 1), (key_hash >> 32) & (size - 1)


def encode(tombstones: Iterable[Tombstone]) -> bytes:
    """As the content of a file."""
    return zlib.compress(orjson.dumps([[t.key, t.hash, t.ordering, t.seen] for t in tombstones]), 1)


def decode(content: bytes) -> list[Tombstone]:
    """The tombstones of a file.

    A file that was cut short is as good as none: it is written before the batch is, so its batch is written again.
    """
    try:
        return [Tombstone(*row) for row in orjson.loads(zlib.decompress(content))]
    except (zlib.error, orjson.JSONDecodeError):
        return []


def _newer(new: Tombstone, old: Tombstone) -> bool:
    return _less(old.ordering, new.ordering)


def _less(left: Ordering, right: Ordering) -> bool:
    # The values of one column have one type; mypy cannot know that.
    return left < right  # type: ignore[operator]
