"""What tasks have read, counted without Spark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark.accumulators import Accumulator
from pyspark.sql import types as st

from lakestream.kinesis import SCHEMA, RecordPage
from lakestream.kinesis.batches import record_batches
from lakestream.model import Filter
from lakestream.spark.events import typed
from lakestream.spark.filters import taken
from lakestream.spark.tallies import QUANTILES, Tallies, Tally
from lakestream.testing.kpl import aggregate

FIELDS = st.StructType([st.StructField("id", st.StringType())])
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MICROS = int(NOON.timestamp()) * 1_000_000


@pytest.fixture
def tallies() -> Tallies:
    context = SimpleNamespace(accumulator=lambda value, param: Accumulator(7_000, value, param))
    return Tallies(cast("Any", SimpleNamespace(sparkContext=context)))


def records(shard: str, datas: Sequence[bytes], first: int = 0, sub: Sequence[int] | None = None) -> pa.RecordBatch:
    """Of one shard, arriving a second apart."""
    raw = [
        {
            "data": data,
            "sequence_number": str(first + number),
            "sub_sequence": sub[number] if sub else 0,
            "shard_id": shard,
            "arrival": NOON + timedelta(seconds=first + number),
        }
        for number, data in enumerate(datas)
    ]
    return pa.RecordBatch.from_pylist(raw, SCHEMA)


def read(raw: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return typed(raw, FIELDS)


def test_each_shard_of_a_task_is_counted(tallies: Tallies) -> None:
    parts = [records("b", [b"{}"] * 2), records("a", [b"{}", b"bad"]), records("b", [b"{}"] * 19, first=2)]
    assert [*tallies.kept(5, 0, parts, iter, read)] == [*read(iter(parts))]
    a, b = tallies.of(5)[0]
    assert (a.shard_id, a.records, a.kinesis_records, a.bytes, a.rejected) == ("a", 2, 2, 5, 1)
    assert (b.shard_id, b.records, b.bytes, b.rejected) == ("b", 21, 42, 0)
    assert b.arrivals == tuple(MICROS + 1_000_000 * second for second in range(21))
    assert len(QUANTILES) == 21


def test_what_is_left_out_is_counted_as_read(tallies: Tallies) -> None:
    """Of a batch of which nothing is left, too: its bytes were read, and its shard's rate is that of all of them."""

    def become(raw: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return read(taken(raw, [Filter(("t",), frozenset({"orders"}))]))

    parts = [records("a", [b'{"t":"orders"}', b"bad", b'{"t":"x"}'], sub=[0, 0, 1]), records("b", [b"{}"] * 2)]
    assert [part.num_rows for part in tallies.kept(5, 0, parts, iter, become)] == [2, 0]
    a, b = tallies.of(5)[0]
    assert (a.records, a.kinesis_records, a.bytes, a.filtered, a.rejected) == (3, 2, 26, 1, 1)
    assert (b.records, b.bytes, b.filtered, b.arrivals[-1]) == (2, 4, 2, MICROS + 1_000_000)


def test_bytes_are_told_as_kinesis_counts_them_too(tallies: Tallies) -> None:
    """By user data alone shards full of small records in aggregates would seem half empty."""
    whole = aggregate([(f"key-{number}", None, b"{}") for number in range(100)])
    page = RecordPage(["1", "2"], [MICROS] * 2, ["é", "b"], [whole, b"{}"], None, 0)
    raw = [batch for batch, _ in record_batches("a", page, 2)]
    list(tallies.kept(5, 0, raw, iter, read))
    (tally,) = tallies.of(5)[0]
    assert (tally.records, tally.bytes, tally.kinesis_bytes) == (101, 202, len(whole) + 2 + 3)


def test_an_aggregate_is_one_record_to_kinesis(tallies: Tallies) -> None:
    list(tallies.kept(5, 0, [records("a", [b"{}"] * 3, sub=[0, 1, 2])], iter, read))
    (tally,) = tallies.of(5)[0]
    assert (tally.records, tally.kinesis_records) == (3, 1)


def test_a_task_that_is_run_twice_counts_once_and_one_without_records_is_known(tallies: Tallies) -> None:
    for _ in range(2):
        list(tallies.kept(5, 0, [records("a", [b"{}"])], iter, read))
    list(tallies.kept(5, 1, [records("a", [])], iter, read))
    assert tallies.of(5) == {0: (Tally("a", 1, 1, 2, 2, 0, 0, (MICROS,) * 21),), 1: ()}


def test_a_task_that_is_cut_off_tells_nothing(tallies: Tallies) -> None:
    next(tallies.kept(5, 0, [records("a", [b"{}"])], iter, read))
    assert tallies.of(5) == {}


def test_the_newest_batches_are_remembered(tallies: Tallies) -> None:
    for batch in range(10):
        list(tallies.kept(batch, 0, [], iter, read))
    assert [batch for batch in range(10) if tallies.of(batch)] == [6, 7, 8, 9]
