"""What answers come to that were given while a table was written."""

from __future__ import annotations

from lakestream_bench.compare.arms import JSON
from lakestream_bench.compare.beside import Given, judge
from lakestream_bench.compare.queries import Kind, queries
from lakestream_bench.compare.truth import Answer, State, subjects

from .test_truth import TRUTH

(ASKED,) = (one for one in queries(JSON, subjects(TRUTH, 3)) if one.kind is Kind.AGGREGATE)


def _given(answer: Answer | None, least: int, most: int, seconds: float = 1.0, error: str = "") -> Given:
    return Given(ASKED, "spark", seconds, answer, least, most, error)


def test_an_answer_is_that_of_batches_that_were_visible_meanwhile() -> None:
    first, second, third = (TRUTH.until(batches).aggregate() for batches in (1, 2, 3))
    right = [_given(first, 1, 1), _given(second, 1, 2), _given(third, 2, 3), _given(first, 1, 3)]
    (found,) = judge(right, TRUTH)
    assert (found.asked, found.torn, found.failed, found.seconds) == (4, 0, 0, 1.0)
    # One more may have been visible, and the writer not told of it yet; older than what was committed is wrong.
    (found,) = judge([_given(second, 1, 1), _given(third, 1, 1), _given(first, 2, 3)], TRUTH)
    assert found.torn == 2


def test_an_answer_from_a_part_of_a_batch_is_of_none() -> None:
    part = State(TRUTH.until(3).rows.slice(1, 1)).aggregate()
    (found,) = judge([_given(part, 0, 3)], TRUTH)
    assert found.torn == 1


def test_a_reader_that_fails_is_counted_and_quoted_and_has_no_time() -> None:
    (found,) = judge([_given(None, 1, 1, error="FileNotFound: x"), _given(None, 1, 1, error="y")], TRUTH)
    assert (found.failed, found.torn, found.seconds, found.error) == (2, 0, None, "FileNotFound: x")


def test_questions_are_told_by_kind_and_engine() -> None:
    native = Given(ASKED, "native", 3.0, TRUTH.until(1).aggregate(), 1, 1)
    found = judge([_given(TRUTH.until(1).aggregate(), 1, 1), native], TRUTH)
    assert {(one.engine, one.seconds) for one in found} == {("spark", 1.0), ("native", 3.0)}
