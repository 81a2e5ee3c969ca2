"""Ranges are read at once and given in order, and no more is held than may be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import repeat

import pytest

from lakestream.kinesis.prefetch import in_order

WAIT = 30


def given(*ranges: Iterator[bytes], at_once: int = 4, most: int = 100) -> Iterator[bytes]:
    return in_order(iter(ranges), at_once=at_once, size=len, most=most)


@pytest.mark.parametrize("at_once", [1, 2, 4, 20])
def test_ranges_come_one_after_the_other(at_once: int) -> None:
    ranges = [iter([b"%d" % number * 10] * number) for number in range(9)]
    assert list(given(*ranges, at_once=at_once)) == [b"%d" % number * 10 for number in range(9) for _ in range(number)]
    assert list(given(at_once=at_once)) == []


def test_the_ranges_behind_are_read_to_their_end_meanwhile() -> None:
    # A full shard gives its next answer seconds later: one wait for all of them, and not one after the other.
    barrier = threading.Barrier(3)

    def answers(name: bytes) -> Iterator[bytes]:
        for _ in range(3):
            barrier.wait(WAIT)
            yield name

    assert list(given(*map(answers, (b"a", b"b", b"c")))) == [b"a"] * 3 + [b"b"] * 3 + [b"c"] * 3


def test_no_range_holds_more_than_it_may() -> None:
    read, full = list[int](), threading.Event()

    def first() -> Iterator[bytes]:
        full.wait(WAIT)
        yield b"first"

    def second() -> Iterator[bytes]:
        for number in range(10):
            read.append(number)
            if number == 1:
                full.set()
            yield b"%d" % number * 40

    parts = given(first(), second())
    assert next(parts) == b"first"
    # Three of forty bytes would be more than a hundred.
    assert read == [0, 1]
    assert [part[:1] for part in parts] == [b"%d" % number for number in range(10)]


def test_what_alone_is_larger_than_may_be_held_goes_through() -> None:
    assert list(given(iter([b"x" * 500, b"y" * 500]), iter([b"z" * 500]))) == [b"x" * 500, b"y" * 500, b"z" * 500]


def test_an_error_comes_in_its_place() -> None:
    def broken() -> Iterator[bytes]:
        yield b"b"
        raise ValueError("at b")

    parts = given(iter([b"a"]), broken(), iter([b"c"]))
    assert [next(parts), next(parts)] == [b"a", b"b"]
    with pytest.raises(ValueError, match="at b"):
        next(parts)


def test_who_takes_no_more_leaves_no_thread_behind() -> None:
    before = {*threading.enumerate()}
    parts = given(iter([b"a"]), repeat(b"x" * 60), repeat(b"y" * 60))
    assert next(parts) == b"a"
    readers = {*threading.enumerate()} - before
    parts.close()  # type: ignore[attr-defined]
    for thread in readers:
        thread.join(WAIT)
    assert readers
    assert not any(thread.is_alive() for thread in readers)
