"""Parquet files of which one bit is another, as of a disk or a copy that has failed."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator


def damaged(parquet: bytes, count: int = 200) -> Iterator[bytes]:
    """So many, the same ones every time: half of them in the pages, and half in the footer."""
    chosen = random.Random(1)
    footer = len(parquet) - 8 - int.from_bytes(parquet[-8:-4], "little")
    places = (range(4, footer), range(footer, len(parquet)))
    yield from _flipped(parquet, ((chosen.choice(places[n % 2]), chosen.randrange(8)) for n in range(count)))


def damaged_at_the_end(parquet: bytes) -> Iterator[bytes]:
    """In the length of the footer, or the mark behind it. Arrow ends a process that asks for what a footer says of
    columns, where that is impossible."""
    yield from _flipped(parquet, ((len(parquet) - 8 + n // 8, n % 8) for n in range(64)))


def _flipped(content: bytes, places: Iterable[tuple[int, int]]) -> Iterator[bytes]:
    for at, bit in places:
        yield content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]
