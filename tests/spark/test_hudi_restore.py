"""Tables that are taken back to one of their commits, and go on from there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from hudi_orders import (
    CHECKPOINT,
    COLUMNS,
    TABLES,
    Order,
    all_rows,
    all_rows_by_hudi_rs,
    fold,
    opened,
    ref,
    rows_of,
    upserts,
)
from lakestream.errors import RestoreError
from lakestream.log import ServiceRequest, Work
from lakestream.query.hudi_folder import HudiFolder
from lakestream.sinks.hudi import HudiSettings, HudiSink, RestorableTable, delete_files
from lakestream.sinks.hudi.clock import ClockBehindError
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.logs import EPOCH_TIME
from lakestream_api import Operation, TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

COMMENT = "for the restore of request 3"


def settings_of(folder: Path, table_type: TableType, version: TableVersion) -> HudiSettings:
    return upserts(folder, table_type, version, retain=timedelta(hours=1))


def write(spark: SparkSession, sink: HudiSink, first: int, batches: Sequence[Sequence[Order]], more: str = "") -> None:
    for batch, orders in enumerate(batches, start=first):
        rows = rows_of(spark, orders)
        sink.write(ref(batch), rows.selectExpr("*", more) if more else rows, replay=False)
        sink.finish_services()


def instant_of(sink: HudiSink, batch: int) -> str:
    found = sink.find(ref(batch))
    assert found is not None
    assert found.instant is not None
    return found.instant


def seen(spark: SparkSession, settings: HudiSettings) -> list[tuple[str, int]]:
    """The rows, which Spark and hudi-rs agree on."""
    rows = all_rows(spark, settings)
    assert rows == all_rows_by_hudi_rs(settings)
    return rows


def state(batches: Iterable[Sequence[Order]]) -> list[tuple[str, int]]:
    return sorted(fold(chain.from_iterable(batches)).items())


BEFORE = (
    [Order("a", 1), Order("b", 1), Order("c", 1), Order("d", 1)],
    [Order("a", 2), Order("b", 2, "d"), Order("e", 1)],
    [Order("a", 3), Order("c", 2)],
)
AFTER = (
    [Order("a", 4), Order("f", 1)],
    # Deleted by mistake: the transform took the updates for deletes.
    [Order("c", 5, "d"), Order("d", 7, "d")],
    [Order("a", 5, "d"), Order("e", 2)],
    [Order("g", 1), Order("e", 3)],
    [Order("g", 2), Order("h", 3)],
)


@TABLES
def test_a_table_that_is_taken_back_is_as_it_was_and_goes_on(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = settings_of(tmp_path, table_type, version)
    place = StoreSettings(LakePath.parse(settings.path), S3Settings(""))
    with opened(spark, settings) as sink:
        write(spark, sink, 0, BEFORE)
        instant = instant_of(sink, 2)
    with opened(spark, settings, f"{COLUMNS}, added long") as sink:
        write(spark, sink, 3, AFTER, "version AS added")
    assert seen(spark, settings) == state([*BEFORE, *AFTER])
    table = RestorableTable(spark, settings)
    for _ in range(2):  # as after a kill before the outcome was kept
        table.require(instant, 2, CHECKPOINT, COMMENT)
    for _ in range(2):
        table.restore(instant)
    for _ in range(2):
        table.release(instant, COMMENT)
    assert seen(spark, settings) == state(BEFORE)
    assert "added" not in spark.read.format("hudi").load(settings.path).columns
    folder = HudiFolder.look(place)
    assert [one.requested for one in folder.timeline.batches][-1] == instant
    assert not folder.timeline.pending
    assert not folder.timeline.completed("savepoint"), "it was for the restore alone"
    mended = ([Order("c", 4), Order("a", 4)], [Order("d", 6), Order("b", 1)], [Order("e", 2)], [Order("a", 5, "d")])
    with opened(spark, settings) as sink:
        assert sink.find(ref(4)) is None
        write(spark, sink, 9, mended)
        # c and d stay: their deletes were undone. b does not come back: its delete was not.
        assert seen(spark, settings) == state([*BEFORE, *mended])
        assert [sink.find(ref(batch)) is not None for batch in (2, 8, 9, 12)] == [
            True,
            False,
            True,
            True,
        ]
        assert not [one for one in sink.services if one.failed]


INSERTS = [[Order("a", batch), Order("b", batch)] for batch in range(6)]
EVERY = sorted((order.key, order.version) for orders in INSERTS for order in orders)


def clustered(spark: SparkSession, settings: HudiSettings, behind: int) -> tuple[str, str]:
    """Write three batches, a clustering, and so many batches; instants of the second batch and of the clustering."""
    with opened(spark, settings) as sink:
        write(spark, sink, 0, INSERTS[:3])
        instant = instant_of(sink, 1)
        begun = sink.begin(ServiceRequest(1, EPOCH_TIME, Work.CLUSTERING))
        assert begun is not None
        begun.result()
        write(spark, sink, 3, INSERTS[3 : 3 + behind])
    place = StoreSettings(LakePath.parse(settings.path), S3Settings(""))
    return instant, HudiFolder.look(place).timeline.completed("replacecommit")[-1].requested


def inserts(folder: Path, table_type: TableType, version: TableVersion) -> HudiSettings:
    return replace(
        settings_of(folder, table_type, version),
        operation=Operation.INSERT,
        ordering_field=None,
        delete_when=None,
        cluster_into=64 << 20,
    )


def nothing_pending(settings: HudiSettings) -> bool:
    """Whether the timeline has no plan of which the files may be gone."""
    return not HudiFolder.look(StoreSettings(LakePath.parse(settings.path), S3Settings(""))).timeline.pending


def test_a_delete_of_before_is_remembered_though_its_key_was_deleted_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes of many batches are merged, those of batches that are undone with those of before."""
    monkeypatch.setattr(delete_files, "_MOST", 1)
    settings = settings_of(tmp_path, TableType.COPY_ON_WRITE, TableVersion.SIX)
    before = [[Order("a", 5, "d"), Order("b", 2, "d"), Order("c", 1)]]
    after = [[Order("a", 2, "d"), Order("b", 5, "d")], [Order("a", 5, "d")], [Order("c", 2, "d")], [Order("d", 1)]]
    again = [[Order("a", 4), Order("b", 1), Order("d", 2)], [Order("b", 3)]]
    with opened(spark, settings) as sink:
        write(spark, sink, 0, before)
        instant = instant_of(sink, 0)
        write(spark, sink, 1, after)
    table = RestorableTable(spark, settings)
    table.require(instant, 0, CHECKPOINT, COMMENT)
    table.restore(instant)
    table.release(instant, COMMENT)
    with opened(spark, settings) as sink:
        write(spark, sink, 5, again)
    assert seen(spark, settings) == state([*before, *again])


@pytest.mark.parametrize(
    ("table_type", "version"),
    [
        (TableType.MERGE_ON_READ, TableVersion.SIX),
        (TableType.MERGE_ON_READ, TableVersion.NINE),
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.SIX, marks=pytest.mark.slow),
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.NINE, marks=pytest.mark.slow),
    ],
)
def test_a_clustering_is_undone_with_the_batches(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = inserts(tmp_path, table_type, version)
    instant, _ = clustered(spark, settings, behind=3)
    assert seen(spark, settings) == EVERY
    table = RestorableTable(spark, settings)
    table.require(instant, 1, CHECKPOINT, COMMENT)
    table.restore(instant)
    table.release(instant, COMMENT)
    assert seen(spark, settings) == [pair for pair in EVERY if pair[1] < 2]
    assert nothing_pending(settings)
    with opened(spark, settings) as sink:
        write(spark, sink, 7, INSERTS[2:])
    assert seen(spark, settings) == EVERY


def die_undoing(spark: SparkSession, settings: HudiSettings, savepoint: str, instant: str) -> None:
    """Leave a table as a driver does that dies when Hudi, restoring, has begun to undo an instant.

    The plans of both are there, the instant is no completed one any more, and one of its files is gone.
    """
    table = HudiTable(spark, settings)
    hudi, client = table.hudi, table.meta_client()
    config = hudi.config.HoodieWriteConfig.newBuilder().withPath(settings.path)
    engine = hudi.client.common.HoodieSparkEngineContext(spark._jsc)
    writer = hudi.table.HoodieSparkTable.create(config.withProps(client.getTableConfig().getProps()).build(), engine)
    now = datetime.now(UTC)
    restore, rollback = (f"{now + timedelta(milliseconds=later):%Y%m%d%H%M%S%f}"[:17] for later in range(2))
    writer.scheduleRestore(engine, restore, savepoint)
    timeline = client.reloadActiveTimeline()
    timeline.transitionRestoreRequestedToInflight(timeline.getRestoreTimeline().lastInstant().get())
    (found,) = [one for one in timeline.getInstants() if one.requestedTime() == instant]
    writer.scheduleRollback(engine, rollback, found, False, False, True)
    timeline = client.reloadActiveTimeline()
    timeline.transitionRollbackRequestedToInflight(timeline.getRollbackTimeline().lastInstant().get())
    timeline.revertToInflight(found)
    one, _other = Path(settings.path.removeprefix("file://")).rglob(f"*_{instant}.parquet")
    one.unlink()


@pytest.mark.parametrize("version", list(TableVersion))
def test_a_clustering_that_is_half_undone_is_undone(spark: SparkSession, tmp_path: Path, version: TableVersion) -> None:
    settings = inserts(tmp_path, TableType.MERGE_ON_READ, version)
    instant, clustering = clustered(spark, settings, behind=0)
    table = RestorableTable(spark, settings)
    table.require(instant, 1, CHECKPOINT, COMMENT)
    die_undoing(spark, settings, instant, clustering)
    table.restore(instant)
    table.release(instant, COMMENT)
    assert seen(spark, settings) == [pair for pair in EVERY if pair[1] < 2]
    assert nothing_pending(settings)
    assert not list(Path(settings.path.removeprefix("file://")).rglob(f"*_{clustering}.parquet"))
    with opened(spark, settings) as sink:
        write(spark, sink, 7, INSERTS[2:])
        begun = sink.begin(ServiceRequest(2, EPOCH_TIME, Work.CLUSTERING))
        assert begun is not None
        begun.result()
        assert not [one for one in sink.services if one.failed]
    assert seen(spark, settings) == EVERY


def test_where_a_table_cannot_go_back_to_is_told_and_nothing_is_undone(spark: SparkSession, tmp_path: Path) -> None:
    settings = replace(settings_of(tmp_path, TableType.MERGE_ON_READ, TableVersion.SIX), retain=timedelta(0))
    with opened(spark, settings) as sink:
        write(spark, sink, 0, BEFORE[:1])
        first = instant_of(sink, 0)
        write(spark, sink, 1, [*BEFORE[1:], *AFTER])
        before, last = instant_of(sink, 6), instant_of(sink, 7)
        begun = sink.begin(ServiceRequest(1, EPOCH_TIME, Work.SAVEPOINT))
        assert begun is not None
        assert sink.newest_batch(CHECKPOINT) == (last, 7)
    table = RestorableTable(spark, settings)
    for instant, batch, checkpoint, reason in (
        ("20260101000000000", 3, CHECKPOINT, "has no completed commit 20260101000000000 of this checkpoint"),
        (last, 7, CHECKPOINT.replace("7", "8"), "of this checkpoint"),
        (last, 6, CHECKPOINT, "of this checkpoint"),
        (before, 6, CHECKPOINT, f"a later commit has a savepoint, {last}: delete that first"),
    ):
        with pytest.raises(RestoreError, match=reason):
            table.require(instant, batch, checkpoint, COMMENT)
    with opened(spark, settings) as sink:
        begun = sink.begin(ServiceRequest(2, EPOCH_TIME, Work.SAVEPOINT_DELETION, last))
        assert begun is not None
    with pytest.raises(RestoreError, match=f"files of {first} may have been cleaned: .*beyond the lookup window"):
        table.require(first, 0, CHECKPOINT, COMMENT)
    assert seen(spark, settings) == state([*BEFORE, *AFTER])


def test_a_table_is_not_taken_back_by_a_clock_that_is_behind(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi would wait for the time of its newest instant, without a word, or put what it does before that."""
    settings = settings_of(tmp_path, TableType.COPY_ON_WRITE, TableVersion.NINE)
    with opened(spark, settings) as sink:
        write(spark, sink, 0, BEFORE)
        instant = instant_of(sink, 1)
    table = RestorableTable(spark, settings, lambda: datetime.now(UTC) - timedelta(hours=1))
    with pytest.raises(ClockBehindError, match="s behind"):
        table.require(instant, 1, CHECKPOINT, COMMENT)
    RestorableTable(spark, settings).require(instant, 1, CHECKPOINT, COMMENT)
    with pytest.raises(ClockBehindError, match="s behind"):
        table.restore(instant)
    assert seen(spark, settings) == state(BEFORE)
