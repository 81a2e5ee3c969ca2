"""Arrival times of a batch from those of its shards."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from lakestream.spark.fetch import merge_quantiles

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def steps(first: int, last: int) -> list[int]:
    return [first + (last - first) * step // 20 for step in range(21)]


def test_one_shard_keeps_its_own() -> None:
    merged = merge_quantiles([(1000, steps(0, 2000))])
    assert merged == tuple(EPOCH + timedelta(microseconds=micros) for micros in steps(0, 2000))


def test_a_shard_weighs_as_much_as_it_has_records() -> None:
    merged = merge_quantiles([(1000, steps(0, 20)), (9000, steps(1000, 1020))])
    assert merged[0] == EPOCH
    assert merged[-1] == EPOCH + timedelta(microseconds=1020)
    # A tenth of the records are the first shard's, so about a tenth of the quantiles are.
    assert sum(time < EPOCH + timedelta(microseconds=1000) for time in merged) == 3


def test_nothing_read_has_no_arrivals() -> None:
    assert merge_quantiles([]) == ()
