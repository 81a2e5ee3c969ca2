"""The crash point in a task: after half of its records, and at its end at the latest."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakestream.model import ShardRange, after, at
from lakestream.spark import read

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def a_range(shard: int, expected: int) -> ShardRange:
    return ShardRange(
        shard_id=f"shardId-{shard:012d}",
        start=at(1),
        end=after(9),
        first=1,
        first_arrival=NOW,
        end_arrival=NOW,
        closes_shard=False,
        expected_records=expected,
        task=0,
    )


def handed_on_before(monkeypatch: pytest.MonkeyPatch, expected: list[int], batches: list[int]) -> list[int]:
    """How many records had been handed on, each time that the crash point was passed."""
    passed: list[int] = []
    handed_on = 0
    with monkeypatch.context() as patch:
        patch.setattr(read, "reach", lambda step: passed.append(handed_on) if step == "half_read" else None)
        ranges = [a_range(shard, records) for shard, records in enumerate(expected)]
        for batch in read.past_half((pa.record_batch({"data": ["x"] * rows}) for rows in batches), ranges):
            handed_on += batch.num_rows
    assert handed_on == sum(batches)
    return passed


@pytest.mark.parametrize(
    ("expected", "batches", "passed"),
    [
        pytest.param([4, 4], [4, 4], [4], id="between the two ranges"),
        pytest.param([10], [2, 2, 2, 2, 2], [6], id="in the middle of a range"),
        pytest.param([0, 0], [3, 3], [3], id="nobody knows how many there are"),
        pytest.param([100], [3, 3], [6], id="fewer than expected"),
        pytest.param([5], [], [0], id="none at all"),
    ],
)
def test_it_is_passed_once(
    monkeypatch: pytest.MonkeyPatch, expected: list[int], batches: list[int], passed: list[int]
) -> None:
    assert handed_on_before(monkeypatch, expected, batches) == passed
