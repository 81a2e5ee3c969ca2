"""Where a partition key goes: the MD5 of the key as an integer, and ranges of such integers."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from itertools import pairwise

KEY_SPACE = 1 << 128


@dataclass(frozen=True, slots=True)
class HashRange:
    """The hash keys from `start` to `end`, both included."""

    start: int
    end: int


def key_digest(partition_key: bytes) -> bytes:
    """The hash key of a partition key (UTF-8), as 16 bytes, which order as the integer does."""
    return hashlib.md5(partition_key, usedforsecurity=False).digest()


def key_bytes(hash_key: int) -> bytes:
    """A hash key as 16 bytes."""
    return hash_key.to_bytes(16)


def even_ranges(count: int) -> list[HashRange]:
    """The whole key space in `count` ranges of equal width."""
    bounds = [KEY_SPACE * i // count for i in range(count + 1)]
    return [HashRange(start, following - 1) for start, following in pairwise(bounds)]
