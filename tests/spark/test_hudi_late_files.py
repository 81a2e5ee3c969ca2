"""Files that come when their commit was rolled back: a request was long on its way, or a process was frozen."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_orders import (
    Order,
    TakenAway,
    all_rows,
    all_rows_by_hudi_rs,
    client_of,
    opened,
    ref,
    rows_of,
    snapshot,
    upserts,
)
from lakestream.errors import SinkError
from lakestream.log import ServiceRequest, Work
from lakestream.sinks.hudi import HudiSettings, late_files
from lakestream.sinks.hudi import client as client_module
from lakestream.sinks.hudi.options import retention
from lakestream_api import Operation, TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

QUICK_ONES = {
    (TableType.COPY_ON_WRITE, TableVersion.NINE, Operation.INSERT),
    (TableType.MERGE_ON_READ, TableVersion.SIX, Operation.UPSERT),
}
"""Both types, versions and operations; the rest is for the slow tests."""


class OnTheirWay(TakenAway):
    """The files of a commit whose driver dies before it has completed it, and before they arrive."""

    def __init__(self, spark: SparkSession, settings: HudiSettings, orders: list[Order]) -> None:
        self._folder = Path(settings.path.removeprefix("file://"))
        client = client_of(spark, settings)
        before = {*self._data()}
        client.write(client.start(), rows_of(spark, orders))
        client.close()
        super().__init__({*self._data()} - before)

    def _data(self) -> Iterator[Path]:
        return (path for path in self._folder.glob("dt=*/*") if path.name != ".hoodie_partition_metadata")


def test_a_late_log_file_does_not_take_the_place_of_a_committed_one(spark: SparkSession, tmp_path: Path) -> None:
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ, TableVersion.SIX), delete_when=None, compact_every=9)
    batches = [[Order("a", 1)], [Order("a", 2)], [Order("a", 3)], [Order("a", 4)]]
    with opened(spark, settings) as sink:
        for number in (0, 1):
            sink.write(ref(number), rows_of(spark, batches[number]), replay=False)
    late = OnTheirWay(spark, settings, batches[2])
    with opened(spark, settings) as sink:
        sink.write(ref(2), rows_of(spark, [*batches[2], *batches[3]]), replay=True)
        # With a file that is empty, and then with one whose rows are rolled back.
        assert snapshot(spark, settings) == {"a": 4}
        assert all_rows_by_hudi_rs(settings) == [("a", 4)]
        late.land()
        assert snapshot(spark, settings) == {"a": 4}
        assert all_rows_by_hudi_rs(settings) == [("a", 4)]
        sink.finish_services()
        # Compacted, and read behind the block that rolls back what is in the late file.
        sink.begin(ServiceRequest(1, datetime.now(UTC), Work.COMPACTION))
        sink.finish_services()
        assert not [one for one in sink.services if one.failed]
        sink.write(ref(3), rows_of(spark, [Order("b", 1)]), replay=False)
        assert snapshot(spark, settings) == {"a": 4, "b": 1}


@pytest.mark.parametrize(
    ("table_type", "version", "operation"),
    [
        pytest.param(*case, marks=() if case in QUICK_ONES else pytest.mark.slow)
        for case in itertools.product(TableType, TableVersion, Operation)
    ],
)
def test_files_that_come_after_their_rollback_are_deleted(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    table_type: TableType,
    version: TableVersion,
    operation: Operation,
) -> None:
    settings = replace(upserts(tmp_path, table_type, version), delete_when=None, operation=operation)
    with opened(spark, settings):
        pass
    # Nothing was committed before, so that readers take these files for committed at once, and not only when the
    # commits of their time are archived.
    late = OnTheirWay(spark, settings, [Order("a", 1), Order("b", 1)])
    with opened(spark, settings) as sink:
        monkeypatch.setattr(late_files, "_LATER", 1_000_000)
        sink.write(ref(0), rows_of(spark, [Order("a", 1), Order("b", 1)]), replay=True)
        sink.finish_services()
        late.land()
        assert all_rows(spark, settings) == [("a", 1), ("a", 1), ("b", 1), ("b", 1)]
        monkeypatch.setattr(late_files, "_LATER", 0)
        sink.begin(ServiceRequest(1, datetime.now(UTC), Work.CLEANING))
        sink.finish_services()
        assert not late.are_there
        assert "came after its commit was rolled back" in caplog.text
        assert all_rows(spark, settings) == [("a", 1), ("b", 1)]
    late.land()
    with opened(spark, settings) as sink:
        assert not late.are_there
        sink.write(ref(1), rows_of(spark, [Order("a", 2), Order("b", 2)]), replay=False)
    kept = [("a", 2), ("b", 2)] if settings.upserts else [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert all_rows(spark, settings) == kept


@pytest.mark.parametrize("version", list(TableVersion), ids=["v6", "v9"])
def test_a_file_that_comes_soon_is_never_read_however_few_commits_are_kept(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: TableVersion
) -> None:
    settings = replace(
        upserts(tmp_path, TableType.COPY_ON_WRITE, version),
        delete_when=None,
        operation=Operation.INSERT,
        ordering_field=None,
        compact_every=1,
    )
    monkeypatch.setattr(late_files, "_LATER", 1_000_000)
    monkeypatch.setattr(client_module, "retention", few_commits)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("b", 0)]), replay=False)
    late = OnTheirWay(spark, settings, [Order("a", 1)])  # into a partition that later batches do not write to
    with opened(spark, settings) as sink:
        sink.write(ref(1), rows_of(spark, [Order("a", 1)]), replay=True)
        for batch in range(2, 8):
            sink.write(ref(batch), rows_of(spark, [Order("b", batch)]), replay=False)
            sink.finish_services()
        assert not [one for one in sink.services if one.failed]
        late.land()
        expected = [("a", 1), ("b", 0), *(("b", batch) for batch in range(2, 8))]
        assert all_rows(spark, settings) == expected
        assert all_rows_by_hudi_rs(settings) == expected


def few_commits(commits: int) -> dict[str, str]:
    """As `retention`, with hardly more in the active timeline than are to be kept."""
    kept = {"hoodie.keep.min.commits": str(commits + 2), "hoodie.keep.max.commits": str(commits + 3)}
    return {**retention(commits), **kept}


def test_a_batch_that_is_refused_for_a_late_file_is_written_by_the_next_start(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(upserts(tmp_path, TableType.COPY_ON_WRITE), delete_when=None, buckets=1)
    with opened(spark, settings):
        pass
    late = OnTheirWay(spark, settings, [Order("a", 1)])
    with opened(spark, settings) as sink:
        monkeypatch.setattr(late_files, "_LATER", 1_000_000)
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=True)
        late.land()
        with pytest.raises(SinkError, match=r"a file came after its commit was rolled back.*the next start writes"):
            sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=False)
    with opened(spark, settings) as sink:
        assert sink.find(ref(1)) is None
        sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=True)
    assert snapshot(spark, settings) == {"a": 2}
