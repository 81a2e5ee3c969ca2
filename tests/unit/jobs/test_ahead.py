"""Answers come in order, and not too far ahead."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lakestream.ahead import answers


def test_each_key_has_its_answer_in_order() -> None:
    assert list(answers(lambda key: -key, range(50))) == [(key, -key) for key in range(50)]
    assert list(answers(str, ())) == []


def test_no_more_are_asked_for_than_are_held() -> None:
    taken: list[int] = []

    def keys() -> Iterator[int]:
        for key in range(100):
            taken.append(key)
            yield key

    found = answers(str, keys())
    assert next(found) == (0, "0")
    assert len(taken) == 16


def test_what_an_answer_fails_with_is_raised_in_its_place() -> None:
    def ask(key: int) -> int:
        if key == 20:
            raise KeyError(key)
        return key

    found = answers(ask, range(100))
    assert [key for key, _ in (next(found) for _ in range(20))] == list(range(20))
    with pytest.raises(KeyError, match="20"):
        next(found)
