"""Threads that share out questions."""

from __future__ import annotations

import threading

import pytest

from lakestream.kinesis.crew import Crew


def test_answers_come_in_the_order_of_the_keys() -> None:
    crew = Crew(4, "test")
    assert crew.ask(str, range(1_000)) == [str(number) for number in range(1_000)]
    assert crew.ask(str, ()) == []
    crew.close()


def test_all_threads_ask_at_the_same_time() -> None:
    crew, together = Crew(4, "test"), threading.Barrier(4, timeout=60)
    crew.ask(lambda _: together.wait(), range(8))
    crew.close()


def test_an_error_ends_the_asking() -> None:
    crew = Crew(1, "test")
    asked: list[int] = []

    def question(number: int) -> int:
        asked.append(number)
        if number == 2:
            raise LookupError("2")
        return number

    with pytest.raises(LookupError):
        crew.ask(question, range(1_000))
    assert asked == [0, 1, 2]
    crew.close()
