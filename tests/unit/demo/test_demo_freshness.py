from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from lakestream.testing.progress import progress_with
from lakestream_api import Progress, ShardProgress
from lakestream_demo.freshness import caught_up_at, freshness
from lakestream_demo.result import Freshness

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def times(*seconds: float) -> npt.NDArray[np.int64]:
    return np.array([round(at(second).timestamp() * 1e6) for second in seconds], np.int64)


def batch(number: int, finished: float, covered: dict[str, float | None], *, caught_up: bool = True) -> Progress:
    return progress_with(
        writer="json",
        batch=number,
        finished_at=at(finished),
        shards=tuple(
            ShardProgress(
                shard_id=shard_id,
                last_arrival=None if last is None else at(last),
                tip_reached=caught_up,
                lag_seconds=0,
                records=1,
                bytes=1,
            )
            for shard_id, last in covered.items()
        ),
        caught_up=caught_up,
    )


def test_a_record_is_visible_with_the_first_batch_that_covers_it() -> None:
    batches = [batch(0, 1.0, {"a": None}), batch(1, 5.0, {"a": 3.0}), batch(2, 9.0, {"a": 8.0})]
    seen = freshness({"a": times(2.0, 3.0, 3.5, 8.0)}, batches, START)
    # 5 - 2, 5 - 3, 9 - 3.5, 9 - 8
    assert seen == Freshness(p50_seconds=2.5, p99_seconds=5.425, records=4)


def test_shards_are_covered_each_for_itself() -> None:
    batches = [batch(0, 0.0, {}), batch(1, 4.0, {"a": 3.0, "b": None}), batch(2, 8.0, {"a": 3.0, "b": 3.0})]
    seen = freshness({"a": times(2.0), "b": times(2.0)}, batches, START)
    assert seen == Freshness(p50_seconds=4.0, p99_seconds=5.96, records=2)


def test_what_arrived_earlier_is_left_out() -> None:
    batches = [batch(0, 10.0, {"a": 5.0}), batch(1, 12.0, {"a": 11.0}), batch(2, 14.0, {"a": 13.0})]
    seen = freshness({"a": times(1.0, 11.0, 13.0)}, batches, at(12.0))
    assert seen == Freshness(p50_seconds=1.0, p99_seconds=1.0, records=1)


def test_where_nothing_arrived_or_the_time_never_came_nothing_is_said() -> None:
    assert freshness({"a": times(1.0)}, [batch(0, 10.0, {"a": 5.0})], None) is None
    assert freshness({"a": times(1.0)}, [batch(0, 10.0, {"a": 5.0})], at(2.0)) is None
    assert freshness({}, [batch(0, 10.0, {"a": 5.0})], START) is None


def test_a_writer_has_caught_up_with_its_first_batch_that_reached_the_tip() -> None:
    behind = batch(0, 10.0, {"a": 5.0}, caught_up=False)
    assert caught_up_at([behind]) is None
    assert caught_up_at([behind, batch(1, 12.0, {"a": 11.0}), batch(2, 14.0, {"a": 13.0})]) == at(12.0)
