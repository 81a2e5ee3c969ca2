"""The crash point in a task: after half of its records, and at its end at the latest."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakestream.spark import read


def handed_on_before(monkeypatch: pytest.MonkeyPatch, expected: int, batches: list[int]) -> list[int]:
    """How many records had been handed on, each time that the crash point was passed."""
    passed: list[int] = []
    handed_on = 0
    with monkeypatch.context() as patch:
        patch.setattr(read, "reach", lambda step: passed.append(handed_on) if step == "half_read" else None)
        for batch in read.past_half((pa.record_batch({"data": ["x"] * rows}) for rows in batches), expected):
            handed_on += batch.num_rows
    assert handed_on == sum(batches)
    return passed


@pytest.mark.parametrize(
    ("expected", "batches", "passed"),
    [
        pytest.param(8, [4, 4], [4], id="between two batches"),
        pytest.param(10, [2, 2, 2, 2, 2], [6], id="in the middle"),
        pytest.param(0, [3, 3], [3], id="nobody knows how many there are"),
        pytest.param(100, [3, 3], [6], id="fewer than expected"),
        pytest.param(5, [], [0], id="none at all"),
    ],
)
def test_it_is_passed_once(
    monkeypatch: pytest.MonkeyPatch, expected: int, batches: list[int], passed: list[int]
) -> None:
    assert handed_on_before(monkeypatch, expected, batches) == passed
