"""When a shard gives again, told from what it has given."""

from __future__ import annotations

import math

import pytest

from lakestream.kinesis import busy
from lakestream.kinesis.busy import BusyShards
from lakestream.kinesis.port import RecordPage


def page(size: int, following: str | None) -> RecordPage:
    return RecordPage(["1"], [0], ["k"], [bytes(size)], following, 1)


def test_all_iterators_of_a_shard_know_when_it_gives_again() -> None:
    shards = BusyShards()
    for iterator, shard in (("a", "s-1"), ("b", "s-1"), ("c", "s-2")):
        shards.of(iterator, shard)
    shards.gave("a", page(4 << 20, "a2"), began=10.0)
    assert (shards.free_at("a2"), shards.free_at("b")) == (12.0, 12.0)
    assert shards.free_at("a") == shards.free_at("c") == shards.free_at("nobody's") == -math.inf
    # A small page blocks nobody, and the last one of a closed shard has no iterator behind it.
    shards.gave("b", page(1000, "b2"), began=12.0)
    assert shards.free_at("b2") == 12.0
    shards.gave("b2", page(8 << 20, None), began=13.0)
    assert shards.free_at("a2") == 17.0


def test_iterators_that_nobody_uses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(busy, "_MOST", 3)
    shards = BusyShards()
    for number in range(9):
        shards.of(f"i{number}", "s")
        shards.gave(f"i{number}", page(2 << 20, f"j{number}"), began=float(number))
    assert shards.free_at("j8") == 9.0
    assert shards.free_at("j0") == -math.inf
