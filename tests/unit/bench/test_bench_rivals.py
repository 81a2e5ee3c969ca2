"""What is made of the batches of a contender."""

from __future__ import annotations

import pytest

from lakestream_bench._rival import in_batches
from lakestream_bench.rivals import Mark, figure


def test_batches_behind_the_warm_up_count() -> None:
    marks = [Mark(10.0, 90, 50.0), Mark(12.0, 210, 60.0), Mark(13.0, 310, 61.0), Mark(15.0, 410, 62.0)]
    found = figure("ours", marks, warm_up=200)
    assert (found.events_per_second, found.batch_seconds) == (pytest.approx(200 / 3), pytest.approx(1.5))
    assert found.cpu_microseconds == pytest.approx(10_000)


def test_batches_are_full() -> None:
    assert list(in_batches(iter([b"a", b"b", b"c", b"d", b"e"]), 2)) == [[b"a", b"b"], [b"c", b"d"]]
