"""The store's clock takes part in what readers see of a table of version 6: it may be behind the driver's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_orders import Order, fold, opened, ref, rows_of, snapshot, upserts
from lakestream.errors import SinkError
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream_api import TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

FIRST = [[Order(f"k{number}", version) for number in range(8)] for version in (1, 2, 3)]
"""Behind the third one comes a compaction."""
LAST = [Order("k0", 4), Order("k1", 4), Order("new", 1)]
ALL = [*chain.from_iterable(FIRST), *LAST]


def write(spark: SparkSession, sink: HudiSink, batches: Sequence[Sequence[Order]], first: int = 0) -> None:
    for batch, orders in enumerate(batches, first):
        sink.write(ref(batch), rows_of(spark, orders), replay=False)
        sink.finish_services()


def twelve_minutes_behind(table: HudiTable) -> datetime:
    """The store's time, by that of the compaction that is planned, so that it does not go on while a test runs."""
    return table.time_of(table.pending_compactions()[0]) - timedelta(minutes=12)


def make_early(spark: SparkSession, settings: HudiSettings) -> Path:
    """As if the machine's clock had been ahead of the store's by more than the compaction took; its commit."""
    (commit,) = Path(settings.path.removeprefix("file://"), ".hoodie").glob("*.commit")
    completed = HudiTable(spark, settings).time_of(commit.stem).timestamp() - 0.001
    os.utime(commit, (completed, completed))
    return commit


def test_no_compaction_is_completed_before_its_store_has_come_to_its_time(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ, TableVersion.SIX)
    with opened(spark, settings) as sink:
        with monkeypatch.context() as behind:
            behind.setattr(HudiTable, "store_time", twelve_minutes_behind)
            write(spark, sink, [*FIRST, LAST])
            (compaction,) = (one for one in sink.services if one.name == "compaction")
            assert compaction.failing
            assert "by the clock of its store it is 720 s before that" in compaction.error
            assert len(HudiTable(spark, settings).pending_compactions()) == 1
            assert snapshot(spark, settings) == fold(ALL)
        more = [[Order("new", version)] for version in (2, 3)]
        write(spark, sink, more, 4)
        assert not any(one.failing for one in sink.services)
        assert sink.services[0].completed
    assert snapshot(spark, settings) == fold([*ALL, *chain.from_iterable(more)])


def test_a_compaction_that_hides_what_comes_after_it_is_refused_until_its_object_has_another_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ, TableVersion.SIX)
    with opened(spark, settings) as sink:
        write(spark, sink, FIRST)
    commit = make_early(spark, settings)
    with pytest.raises(SinkError, match=rf"were completed before they began: \.hoodie/{commit.name}\. "):
        opened(spark, settings).__enter__()
    commit.touch()
    with opened(spark, settings) as sink:
        write(spark, sink, [LAST], 3)
    assert snapshot(spark, settings) == fold(ALL)


def test_readers_tell_by_the_time_of_a_compactions_object_what_came_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Were it not so, there would be nothing to wait for."""
    settings = upserts(tmp_path, TableType.MERGE_ON_READ, TableVersion.SIX)
    with opened(spark, settings) as sink:
        write(spark, sink, [*FIRST, LAST])
    commit = make_early(spark, settings)
    assert snapshot(spark, settings) == fold(chain.from_iterable(FIRST))
    commit.touch()
    assert snapshot(spark, settings) == fold(ALL)
