"""The Hudi sink on real tables, held against the fold of what was written."""

from __future__ import annotations

import random
import re
import shutil
import time
import uuid
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any, NoReturn

import hudi
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from hudi_orders import (
    CHECKPOINT,
    COLUMNS,
    TABLES,
    Order,
    TakenAway,
    all_rows,
    all_rows_by_hudi_rs,
    client_of,
    fold,
    opened,
    ref,
    rows_of,
    snapshot,
    upserts,
)
from lakestream.errors import SettingsChangedError, SettingsError, SinkError
from lakestream.log import ServiceRequest, Work
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.moments import Commit
from lakestream.query.net_changes import HudiRsChanges
from lakestream.query.question import Asked, NetChanges
from lakestream.query.spans import comparison_of
from lakestream.query.target import Kind, Target
from lakestream.sinks.contract import Arrived, BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink, delete_files, deletes, services
from lakestream.sinks.hudi import client as client_module
from lakestream.sinks.hudi import options as options_module
from lakestream.sinks.hudi.client import HudiClient, Written
from lakestream.sinks.hudi.clock import ClockBehindError, CommitClock
from lakestream.sinks.hudi.delete_files import Chunk
from lakestream.sinks.hudi.late_files import LateFiles
from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles, instants_in
from lakestream.sinks.hudi.options import write_options
from lakestream.sinks.hudi.stats import marks
from lakestream.sinks.hudi.table import kept_properties
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.table.look import look
from lakestream.table.report import HudiReport, Savepoint, savepoints_of
from lakestream_api import IndexType, Operation, TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

VERSIONS = pytest.mark.parametrize("version", list(TableVersion), ids=["v6", "v9"])
TABLE_TYPES = pytest.mark.parametrize("table_type", list(TableType), ids=["cow", "mor"])


@TABLES
def test_the_newest_version_wins_in_whatever_order_versions_come(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = upserts(tmp_path, table_type, version)
    batches = [
        # Several versions in one batch; a delete that is the newest, the oldest, and alone.
        [Order("a", 3), Order("a", 5), Order("a", 4), Order("b", 2), Order("b", 3, "d"), Order("c", 1, "d"),
         Order("c", 2), Order("d", 4, "d"), Order("e", 5)],
        # Late updates, late deletes, and updates that come after a delete and are older than it.
        [Order("a", 1), Order("b", 1), Order("c", 1, "d"), Order("d", 3), Order("e", 4, "d"), Order("f", 1)],
        [Order("e", 6, "d"), Order("f", 2, "d"), Order("b", 4)],
        [Order("e", 3), Order("e", 5), Order("f", 1), Order("d", 2)],
        # All of it overtaken: a commit with no rows.
        [Order("e", 2), Order("f", 1)],
    ]  # fmt: skip
    with opened(spark, settings) as sink:
        for batch, orders in enumerate(batches):
            sink.write(ref(batch), rows_of(spark, orders), replay=False)
            sink.finish_services()  # after a compaction, Hudi itself knows no deletes any more
            assert snapshot(spark, settings) == fold(order for done in batches[: batch + 1] for order in done)
        assert not [one for one in sink.services if one.failed]
        assert sink.find(ref(4)) is not None


@TABLES
def test_any_history_with_restarts_and_replays_gives_the_fold(
    spark: SparkSession,
    tmp_path: Path,
    table_type: TableType,
    version: TableVersion,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delete_files, "_MOST", 2)
    chance = random.Random(20260131)
    settings = upserts(tmp_path, table_type, version)
    written: list[Order] = []
    batch = 0
    for _ in range(2):
        with opened(spark, settings) as sink:
            # A driver that died between the sink's commit and the log's looks for the batch first.
            if batch:
                found = sink.find(ref(batch - 1))
                assert found is not None
                assert found.instant is not None
            for _ in range(4):
                orders = [
                    Order(f"k{chance.randrange(40)}", chance.randrange(1, 60), "d" if chance.random() < 0.2 else "u")
                    for _ in range(60)
                ]
                # One event per version of a key, as in a real log.
                known = {(order.key, order.version): order for order in reversed(written + orders)}
                orders = [known[order.key, order.version] for order in orders]
                assert sink.find(ref(batch)) is None
                sink.write(ref(batch), rows_of(spark, orders).persist(), replay=False)
                written += orders
                batch += 1
            assert snapshot(spark, settings) == fold(written)
            sink.finish_services()
            assert not [one for one in sink.services if one.failed]
            assert snapshot(spark, settings) == fold(written)
    actions = {name.rsplit(".", 1)[-1] for name in timeline(tmp_path)}
    assert "clean" in actions
    if table_type is TableType.MERGE_ON_READ:
        assert {"commit", "deltacommit"} <= actions, "nothing was compacted"


@TABLE_TYPES
def test_inserts_keep_every_record(spark: SparkSession, tmp_path: Path, table_type: TableType) -> None:
    settings = replace(upserts(tmp_path, table_type), operation=Operation.INSERT, ordering_field=None, delete_when=None)
    orders = [Order("a", 1), Order("a", 1), Order("a", 2), Order("b", 1, "d")]
    with opened(spark, settings) as sink:
        for batch in range(3):
            commit = sink.write(ref(batch), rows_of(spark, orders), replay=False)
            assert commit.rows == 4
        sink.finish_services()
        found = sink.find(ref(1))
    rows = spark.read.format("hudi").load(settings.path).select("order_id", "version").collect()
    assert sorted(map(tuple, rows)) == sorted((order.key, order.version) for order in orders * 3)
    assert found is not None
    assert found.rows == 4


@TABLE_TYPES
def test_a_commit_says_what_it_wrote_and_is_found_as_the_same(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    settings = upserts(tmp_path, table_type)
    with opened(spark, settings) as sink:
        first = sink.write(ref(0), rows_of(spark, [Order("a", 1), Order("b", 1), Order("b", 2)]), replay=False)
        second = sink.write(ref(1), rows_of(spark, [Order("a", 2), Order("c", 1)]), replay=False)
        assert (first.rows, second.rows) == (2, 2)
        for commit, batch in ((first, 0), (second, 1)):
            assert sink.find(ref(batch)) == replace(commit, seconds={})
            for entry in commit.files:
                assert (tmp_path / "orders" / entry.path).stat().st_size >= entry.bytes > 0
                assert entry.path.startswith(f"{entry.partition}/")
            assert set(commit.seconds) == {"wait", "pause", "deletes", "start", "write", "commit", "check", "plan"}
        assert sorted(sink.partitions()) == ["dt=2026-01-01", "dt=2026-01-02"]
        read = spark.read.format("hudi").load(settings.path)
        assert {field.name: field.dataType for field in sink.columns} == dict(
            zip(read.columns, [field.dataType for field in read.schema], strict=True)
        )
        assert sink.find(ref(2)) is None
        assert sink.find(BatchRef(1, str(uuid.UUID(int=8)))) is None


@TABLES
def test_what_a_dead_driver_had_not_committed_is_undone(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = upserts(tmp_path, table_type, version)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
    table = HudiTable(spark, replace(settings, delete_when=None))
    columns = rows_of(spark, []).schema.add("_hoodie_is_deleted", "boolean")
    dead = HudiClient(table, write_options(settings), columns)
    dead.start()
    marked = rows_of(spark, [Order("a", 2), Order("z", 1)]).selectExpr("*", "false as _hoodie_is_deleted")
    instant = dead.start()
    dead.write(instant, marked)
    assert snapshot(spark, settings) == {"a": 1}
    with opened(spark, settings) as sink:
        assert not [name for name in timeline(tmp_path) if name.startswith(instant)]
        assert sink.find(ref(1)) is None
        assert snapshot(spark, settings) == {"a": 1}
        sink.write(ref(1), rows_of(spark, [Order("a", 2), Order("z", 1)]), replay=True)
        assert snapshot(spark, settings) == {"a": 2, "z": 1}
    dead.close()


class LateCommit(TakenAway):
    """A commit whose last request arrives late; all else of it is there."""

    def __init__(self, settings: HudiSettings, instant: str, commit: Callable[[], None]) -> None:
        folder = Path(settings.path.removeprefix("file://")) / ".hoodie"
        # Hudi removes these once it has committed; a rollback goes by them.
        markers = folder / ".temp"
        kept = shutil.copytree(markers, folder.parent.parent / "markers")
        commit()
        shutil.copytree(kept, markers, dirs_exist_ok=True)
        self.instant = instant
        names = re.compile(rf"{instant}(_\d+)?\.(delta)?commit")
        files = timeline_folder(folder.parent).iterdir()
        super().__init__(path for path in files if names.fullmatch(path.name))


@TABLES
def test_a_commit_that_lands_after_its_rollback_is_none(
    spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    table_type: TableType,
    version: TableVersion,
) -> None:
    operation = Operation.INSERT if table_type is TableType.COPY_ON_WRITE else Operation.UPSERT
    settings = replace(upserts(tmp_path, table_type, version), delete_when=None, operation=operation)
    batches = [[Order("a", 1), Order("b", 1)], [Order("a", 2), Order("z", 1)], [Order("b", 2)], [Order("c", 1)]]

    def require(done: int) -> None:
        written = [order for orders in batches[:done] for order in orders]
        rows = spark.read.format("hudi").load(settings.path).select("order_id", "version").collect()
        kept = fold(written).items() if settings.upserts else [(order.key, order.version) for order in written]
        assert sorted(map(tuple, rows)) == sorted(kept)
        # Files that are named and gone end queries of a span of time.
        table = HudiTable(spark, settings)
        completed = table.meta_client().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        assert late.instant not in instants_in(completed)
        assert not late.are_there

    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, batches[0]), replay=False)
    frozen = client_of(spark, settings)
    written = frozen.write(frozen.start(), rows_of(spark, batches[1]))
    late = LateCommit(settings, written.instant, lambda: frozen.commit(written, marks(1, CHECKPOINT)))
    frozen.close()
    with opened(spark, settings) as sink:
        # Between the rollback and the look for the batch.
        late.land()
        assert sink.find(ref(1)) is None
        sink.write(ref(1), rows_of(spark, batches[1]), replay=True)
        assert f"the commit {late.instant} of the table" in caplog.text
        require(2)
        # After it; the compaction beside it has been through.
        sink.finish_services()
        late.land()
        sink.write(ref(2), rows_of(spark, batches[2]), replay=False)
        require(3)
    # The driver dies as it rolls that back, which others have followed.
    max(timeline_folder(tmp_path / "orders").glob("*.rollback")).unlink()
    late.land()
    with opened(spark, settings):
        require(3)
    # When there is no driver, and Hudi has archived the rollbacks.
    for path in timeline_folder(tmp_path / "orders").glob("*rollback*"):
        path.unlink()
    late.land()
    with opened(spark, settings) as sink:
        require(3)
        found = sink.find(ref(1))
        assert found is not None
        assert found.instant != late.instant
        sink.write(ref(3), rows_of(spark, batches[3]), replay=False)
        sink.finish_services()
        assert not [one for one in sink.services if one.failed]
        require(4)


def _beside_a_batch(spark: SparkSession, settings: HudiSettings) -> HudiClient:
    """Another driver's client of a table that has a batch."""
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
    return client_of(spark, settings)


@TABLES
def test_a_commit_that_a_dead_driver_begins_late_does_not_stay_begun(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    """Nothing after it could be cleaned or archived, and in version 6 nothing compacted."""
    settings = replace(upserts(tmp_path, table_type, version), delete_when=None)
    dead = _beside_a_batch(spark, settings)
    instant = dead.start()
    dead.close()
    late = TakenAway(path for path in timeline_folder(tmp_path / "orders").iterdir() if path.name.startswith(instant))
    with opened(spark, settings) as sink:
        late.land()
        for batch in range(1, 4):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch + 1)]), replay=False)
            sink.finish_services()
        assert not late.are_there
        assert not [one for one in sink.services if one.failed]
    # Its successor has died, too.
    late.land()
    with opened(spark, settings):
        assert not late.are_there
    assert snapshot(spark, settings) == {"a": 4}


@TABLES
def test_the_beginning_of_a_commit_that_comes_after_its_rollback_does_not_stay(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = replace(upserts(tmp_path, table_type, version), delete_when=None)
    dead = _beside_a_batch(spark, settings)
    instant = dead.start()
    dead.write(instant, rows_of(spark, [Order("a", 2)]))
    dead.close()
    files = timeline_folder(tmp_path / "orders").iterdir()
    late = TakenAway(path for path in files if path.name.startswith(instant) and path.suffix == ".inflight")
    with opened(spark, settings) as sink:
        late.land()
        sink.write(ref(1), rows_of(spark, [Order("a", 3)]), replay=False)
        assert not late.are_there
    late.land()
    with opened(spark, settings):
        assert not late.are_there
    assert snapshot(spark, settings) == {"a": 3}


@VERSIONS
def test_a_compaction_that_a_dead_driver_has_begun_is_done_at_once(
    spark: SparkSession, tmp_path: Path, version: TableVersion
) -> None:
    """Hudi refuses it for as long as that driver's heartbeat is new."""
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ, version), delete_when=None, compact_every=9)
    with opened(spark, settings) as sink:
        for batch in range(2):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch + 1)]), replay=False)
    dead = client_of(spark, settings)
    instant = dead.schedule_compaction(every=1)
    assert instant is not None
    dead.close()
    (timeline_folder(tmp_path / "orders") / f"{instant}.compaction.inflight").touch()
    heartbeat = tmp_path / "orders" / ".hoodie" / ".heartbeat" / instant
    heartbeat.parent.mkdir(exist_ok=True)
    heartbeat.touch()
    with opened(spark, settings) as sink:
        sink.write(ref(2), rows_of(spark, [Order("a", 3)]), replay=False)
        sink.finish_services()
        assert not [one for one in sink.services if one.failed]
        assert not HudiTable(spark, settings).pending_compactions()
    assert snapshot(spark, settings) == {"a": 3}


def test_a_batch_whose_commit_somebody_rolls_back_is_not_taken_for_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(upserts(tmp_path, TableType.COPY_ON_WRITE), delete_when=None)
    complete = HudiClient.commit

    def commit(client: HudiClient, written: Written, batch: dict[str, str]) -> None:
        late = LateCommit(settings, written.instant, lambda: complete(client, written, batch))
        with opened(spark, settings):
            late.land()

    with opened(spark, settings) as sink, monkeypatch.context() as patch:
        patch.setattr(HudiClient, "commit", commit)
        with pytest.raises(SinkError, match=r"of batch 0 .* was rolled back by another process"):
            sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
    with opened(spark, settings) as sink:
        assert sink.find(ref(0)) is None


def test_services_that_wait_for_a_clock_that_was_set_back_keep_nobody_from_ending(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi waits in the middle of a cleaning until the time of its last instant has come."""
    settings = upserts(tmp_path, TableType.COPY_ON_WRITE)
    ahead, cleaning, waits = timedelta(0), Event(), Event()

    def clean(_client: HudiClient, _since: datetime) -> None:
        cleaning.set()
        waits.wait()

    with monkeypatch.context() as patch, opened(spark, settings) as sink:
        patch.setattr(HudiClient, "clean", clean)
        patch.setattr(sink, "_clock", CommitClock(settings.path, lambda: datetime.now(UTC) + ahead))
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        assert cleaning.wait(60)
        ahead = timedelta(hours=-4)
        with pytest.raises(ClockBehindError, match="s behind"):
            sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=False)
    waits.set()
    with opened(spark, settings) as sink:
        sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=True)
    assert snapshot(spark, settings) == {"a": 2}


@VERSIONS
def test_a_clock_that_is_set_back_amidst_a_batch_ends_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: TableVersion
) -> None:
    """Hudi itself would wait until the time of its last instant has come, and say nothing."""
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ, version), delete_when=None)
    ahead = timedelta(0)
    with opened(spark, settings) as sink, monkeypatch.context() as patch:
        patch.setattr(sink, "_clock", CommitClock(settings.path, lambda: datetime.now(UTC) + ahead))
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        sink.finish_services()
        write = HudiClient.write

        def set_back(client: HudiClient, instant: str, rows: DataFrame) -> Written:
            nonlocal ahead
            written = write(client, instant, rows)
            ahead = timedelta(hours=-6)
            return written

        patch.setattr(HudiClient, "write", set_back)
        with pytest.raises(ClockBehindError, match="s behind"):
            sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=False)
        asked = sink.begin(ServiceRequest(1, datetime.now(UTC), Work.CLEANING))
        assert asked is not None
        with pytest.raises(ClockBehindError, match="s behind"):
            asked.result()
    with opened(spark, settings) as sink:
        assert sink.find(ref(1)) is None
        sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=True)
    assert snapshot(spark, settings) == {"a": 2}


@TABLES
def test_a_clock_that_is_ahead_of_the_stores_does_not_undo_what_is_being_written(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table_type: TableType,
    version: TableVersion,
) -> None:
    """Cleaning would do so: to Hudi a writer lives for as long as an object is new, by the clock of this machine."""
    settings = replace(upserts(tmp_path, table_type, version), delete_when=None)
    complete = HudiClient.commit

    def commit(client: HudiClient, written: Written, batch: dict[str, str]) -> None:
        heartbeat = tmp_path / "orders" / ".hoodie" / ".heartbeat" / written.instant
        assert not heartbeat.exists()
        sink.begin(ServiceRequest(1, datetime.now(UTC), Work.CLEANING))
        sink.finish_services()
        complete(client, written, batch)

    with opened(spark, settings) as sink, monkeypatch.context() as patch:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        sink.finish_services()
        patch.setattr(HudiClient, "commit", commit)
        sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=False)
        assert not [one for one in sink.services if one.failed]
    assert snapshot(spark, settings) == {"a": 2}


@TABLES
def test_two_file_groups_in_a_bucket_are_told_with_the_way_out(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = replace(upserts(tmp_path, table_type, version), buckets=1, delete_when=None)
    orders = [Order("b", number) for number in (1, 2)]
    with opened(spark, settings):
        pass
    # Two writers that know nothing of each other: ours compare at the end what they have written.
    alone = {**write_options(settings), "hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    written = []
    for order in orders:
        client = HudiClient(HudiTable(spark, settings), alone, rows_of(spark, []).schema)
        written.append((client, client.write(client.start(), rows_of(spark, [order]))))
    for client, files in written:
        client.commit(files, marks(0, "other"))
        client.close()

    with opened(spark, settings) as sink, pytest.raises(SinkError) as told:
        sink.write(ref(0), rows_of(spark, [Order("b", 3)]), replay=False)

    message = str(told.value)
    assert f"the table {settings.path} has two file groups in bucket 0 of partition dt={orders[0].row[3]} (" in message
    # The younger comes second.
    assert re.findall(r"since (\d{17})", message) == [files.instant for _, files in written]
    assert "another path and another spec.checkpoint" in message
    # The way to the rows that are there, of docs/hudi.md.
    spark.read.format("hudi").load(settings.path).createOrReplaceTempView("lake")
    newest = "row_number() OVER (PARTITION BY order_id ORDER BY version DESC)"
    assert spark.table("lake").count() == 2
    (row,) = spark.sql(f"SELECT version FROM (SELECT *, {newest} AS n FROM lake) WHERE n = 1").collect()
    assert row.version == 2


@VERSIONS
def test_a_clock_that_is_behind_the_newest_commit_writes_nothing(
    spark: SparkSession, tmp_path: Path, version: TableVersion
) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ, version)

    def set_back() -> None:
        """As if the clock that made the newest commit had been twelve minutes ahead."""
        newest = max(timeline_folder(tmp_path / "orders").glob("*.deltacommit"))
        begun, *_ = newest.stem.split("_")
        later = datetime.strptime(begun, "%Y%m%d%H%M%S%f") + timedelta(minutes=12)  # noqa: DTZ007
        if version is TableVersion.NINE:
            newest.rename(newest.with_stem(f"{begun}_{later:%Y%m%d%H%M%S}000"))
        else:
            for path in newest.parent.glob(f"{begun}.*"):
                path.rename(path.with_name(path.name.replace(begun, f"{later:%Y%m%d%H%M%S}000")))

    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        set_back()
        assert sink.find(ref(0)) is not None
        with pytest.raises(ClockBehindError, match="s behind"):
            sink.write(ref(1), rows_of(spark, [Order("a", 2)]), replay=False)
    before = timeline(tmp_path)
    with pytest.raises(ClockBehindError, match="s behind"), opened(spark, settings):
        pass
    assert timeline(tmp_path) == before
    assert snapshot(spark, settings) == {"a": 1}


def test_a_failing_compaction_is_told_and_keeps_neither_batches_nor_cleaning_from_going_on(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "_FIRST_RETRY", timedelta(0))
    settings = replace(
        upserts(tmp_path, TableType.MERGE_ON_READ), partition_by=(), delete_when=None, buckets=1, compact_every=1
    )
    with opened(spark, settings) as sink:

        def write(batch: int) -> None:
            sink.write(ref(batch), rows_of(spark, [Order("a", batch), Order(f"k{batch}", 1)]), replay=False)
            sink.finish_services()

        for batch in range(2):
            write(batch)
        base = max((tmp_path / "orders").glob("*.parquet"), key=lambda path: path.stat().st_mtime)
        content = base.read_bytes()
        base.write_bytes(b"not Parquet any more")
        for batch in range(2, 4):
            write(batch)
        compaction, cleaning, archiving = sink.services
        assert (compaction.name, compaction.failing, compaction.behind) == ("compaction", 2, 2)
        assert base.name in compaction.error or "parquet" in compaction.error.lower()
        assert (cleaning.failing, cleaning.completed, archiving.failing, archiving.completed) == (0, 4, 0, 4)
        base.write_bytes(content)
        # No batch comes, and it is mended nevertheless.
        sink.tend()
        sink.finish_services()
        compaction, cleaning, _ = sink.services
        assert (compaction.failing, compaction.failed, compaction.behind) == (0, 2, 0)
        assert cleaning.completed == 4
        write(4)
        assert snapshot(spark, settings) == {"a": 4, **{f"k{batch}": 1 for batch in range(5)}}
        # Only the compaction knows how large a bucket has become.
        sink.write(ref(5), rows_of(spark, [Order(f"n{n}", 1) for n in range(1_000)]), replay=False)
        sink.finish_services()
        assert sink.largest_file == max(path.stat().st_size for path in (tmp_path / "orders").glob("*.parquet"))


def test_a_table_with_times_of_the_year_1_is_compacted_and_then_read_by_anyone(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark fails at them in files that do not say who wrote them, as Hudi's do not if no compaction made them."""
    settings = replace(
        upserts(tmp_path, TableType.MERGE_ON_READ), partition_by=(), delete_when=None, buckets=1, compact_every=2
    )
    # Other settings of SQL than ours: Spark's own.
    stock = spark.newSession()
    stock.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION")

    def rows() -> list[Row]:
        found = stock.read.format("hudi").load(settings.path)
        return found.selectExpr("version", "cast(at as string)", "cast(days as string)").collect()

    with opened(spark, settings, "order_id string, version long, at timestamp, days array<date>") as sink:
        for batch in range(3):
            row = f"'a' as order_id, {batch}L as version, timestamp'0001-01-01' as at, array(date'0001-01-01') as days"
            sink.write(ref(batch), spark.sql(f"select {row}"), replay=False)
            if batch == 0:
                with pytest.raises(Exception, match="READ_ANCIENT_DATETIME"):
                    rows()
            sink.finish_services()
        assert (sink.services[0].name, sink.services[0].completed, sink.services[0].failed) == ("compaction", 2, 0)
    assert [tuple(row) for row in rows()] == [(2, "0001-01-01 00:00:00", "[0001-01-01]")]


def test_replaced_files_stay_for_as_long_as_they_are_to_be_kept(spark: SparkSession, tmp_path: Path) -> None:
    settings = replace(
        upserts(tmp_path, TableType.COPY_ON_WRITE), partition_by=(), delete_when=None, buckets=1, compact_every=1
    )
    table, began = HudiTable(spark, settings), datetime.now(UTC)

    def sizes() -> dict[str, int]:
        return {path.name: path.stat().st_size for path in (tmp_path / "orders").glob("*.parquet")}

    def write(retain: timedelta, batches: range) -> None:
        before = sizes()
        with opened(spark, replace(settings, retain=retain)) as sink:
            for batch in batches:
                sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
                sink.finish_services()
            assert not [one for one in sink.services if one.failed]
            assert sink.largest_file == max(size for name, size in sizes().items() if name not in before)

    write(timedelta(hours=1), range(4))
    assert len(sizes()) == 4
    assert (table.commits_since(began), table.commits_since(datetime.now(UTC))) == (4, 0)
    write(timedelta(0), range(4, 5))
    assert len(sizes()) == 2, "the last version, and the one that a reader of the commit before it has"


@VERSIONS
def test_commits_that_are_to_be_kept_are_not_archived_where_cleaning_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: TableVersion
) -> None:
    """They could not be asked for, nor be gone back to, though all of their files are there."""
    settings = replace(
        upserts(tmp_path, TableType.COPY_ON_WRITE, version, timedelta(hours=1)),
        partition_by=(),
        delete_when=None,
        buckets=1,
        compact_every=100,
    )
    monkeypatch.setattr(options_module, "MARKED_COMMITS", 2)
    written: list[str | None] = []
    with opened(spark, settings) as sink:
        for batch in range(24):
            written.append(sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False).instant)
        sink.finish_services()
    with opened(spark, settings) as sink:
        with monkeypatch.context() as away:
            away.setattr(LateFiles, "sweep", fails)
            sink.write(ref(24), rows_of(spark, [Order("a", 24)]), replay=False)
            sink.finish_services()
        assert [(one.name, one.failed, one.completed) for one in sink.services] == [
            ("cleaning", 1, 0),
            ("archiving", 0, 1),
        ]
    assert HudiTable(spark, settings).batches()[:-1] == written


def fails(*_: object) -> NoReturn:
    raise RuntimeError("503")


@VERSIONS
def test_a_batch_is_found_in_the_archive(spark: SparkSession, tmp_path: Path, version: TableVersion) -> None:
    settings = replace(upserts(tmp_path, TableType.COPY_ON_WRITE, version), delete_when=None)
    with opened(spark, settings) as sink:
        commit = sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        # Somebody else's commits, so many that ours leaves the active timeline.
        table = HudiTable(spark, settings)
        archives = {
            "hoodie.keep.min.commits": "3",
            "hoodie.keep.max.commits": "4",
            "hoodie.clean.commits.retained": "1",
        }
        other = HudiClient(table, {**write_options(settings), **archives}, rows_of(spark, []).schema)
        for number in range(6):
            other.commit(other.write(other.start(), rows_of(spark, [Order("b", number)])), marks(number, "other"))
        other._client.archive()
        other.close()
        assert commit.instant is not None
        assert not [name for name in timeline(tmp_path) if name.startswith(commit.instant)]
        assert sink.find(ref(0)) == replace(commit, seconds={})
        assert sink.find(ref(1)) is None


def test_deletes_outlive_the_driver_and_are_forgotten_in_time(spark: SparkSession, tmp_path: Path) -> None:
    settings = upserts(tmp_path, TableType.COPY_ON_WRITE)
    late = [Order("a", 4), Order("c", 1), Order("old", 4)]
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 5), Order("a", 6, "d")]), replay=False)
        sink.write(ref(1), rows_of(spark, [Order("c", 2, "d")]), replay=False)
        assert sink.remembered_deletes == 2
    # Of a driver that was killed while it put down the deletes of a batch, and of the release before.
    kept = tmp_path / "orders" / ".hoodie" / "lakestream" / "deletes"
    (kept / "0000000001.000-half").mkdir()
    (kept / "0000000001.000-half.json").write_bytes(b'{"name":"000')
    (kept / "0000000002.000-data").mkdir()
    # And of one whose request was so long on its way that its data was removed meanwhile.
    (kept / "0000000003.000-late.json").write_bytes(orjson.dumps(Chunk("0000000003.000-late", 7, time.time(), False)))
    earlier = kept.parent / "tombstones"
    earlier.mkdir()
    tombstone = orjson.dumps({"order_id": "old", "dt": Order("old", 1).row[3]}).decode()
    content = zlib.compress(orjson.dumps([[tombstone, 1, 5, time.time()]]))
    (earlier / "b000000000000-00000000").write_bytes(content)
    with opened(spark, settings) as sink:
        assert len(list(kept.glob("[0-9]*"))) == 2 * 3
        assert not list(earlier.glob("b*"))
        assert sink.remembered_deletes == 3
        sink.write(ref(2), rows_of(spark, [*late, Order("b", 1, "d")]), replay=True)
        assert snapshot(spark, settings) == {}
        assert sink.remembered_deletes == 4
    with opened(spark, replace(settings, tombstones=timedelta(0))) as sink:
        sink.write(
            replace(ref(3), arrived=Arrived(datetime.now(UTC), datetime.now(UTC))), rows_of(spark, late), replay=False
        )
        assert snapshot(spark, settings) == {"a": 4, "c": 1, "old": 4}
        assert sink.remembered_deletes == 0


def test_deletes_are_remembered_in_a_folder_of_any_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark would look for wildcards in it, and find nothing, or what is in another folder."""
    settings = upserts(tmp_path / "my [old] {a} what?\\", TableType.COPY_ON_WRITE)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 5, "d"), Order("b", 1)]), replay=False)
        before = time.time()
        sink.write(ref(1), rows_of(spark, [Order("c", 2, "d")]), replay=False)
    with opened(spark, settings) as sink:
        sink.write(ref(2), rows_of(spark, [Order("a", 4), Order("c", 1)]), replay=False)
        assert snapshot(spark, settings) == {"b": 1}
    files = SideFiles(HudiTable(spark, settings), "deletes")
    deletes.forget_since(spark, files, before)
    known = delete_files.DeleteFiles(files)
    known.load()
    assert [(chunk.keys, chunk.merged) for chunk in known.chunks] == [(1, True)]
    with opened(spark, settings) as sink:
        sink.write(ref(3), rows_of(spark, [Order("a", 4), Order("c", 1)]), replay=False)
        assert snapshot(spark, settings) == {"b": 1, "c": 1}


@TABLE_TYPES
def test_a_batch_of_which_no_record_can_be_used_is_a_commit_without_rows(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    settings = upserts(tmp_path, table_type)
    with opened(spark, settings) as sink:
        assert sink.write(ref(0), rows_of(spark, []), replay=False).instant
        sink.write(ref(1), rows_of(spark, [Order("a", 1), Order("b", 1, "d")]), replay=False)
        sink.write(ref(2), rows_of(spark, []), replay=False)
        assert sink.find(ref(2))
        assert snapshot(spark, settings) == {"a": 1}
        assert sink.remembered_deletes == 1


@TABLE_TYPES
def test_a_batch_that_is_read_late_is_held_against_the_deletes_of_its_time(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    """Behind a driver that was suspended for hours an old version may come minutes after its delete."""
    settings = replace(upserts(tmp_path, table_type), compact_every=1)
    now = datetime.now(UTC)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 5), Order("b", 1)]), replay=False)
        sink.write(ref(1), rows_of(spark, [Order("a", 6, "d")]), replay=False)
        sink.finish_services()
    later = now.timestamp() + 2 * 3600
    with opened(spark, settings) as sink:
        assert sink._guard is not None
        sink._guard._clock = lambda: later
        sink.write(ref(2), rows_of(spark, [Order("c", 1)]), replay=False)  # of no stream
        minutes = timedelta(minutes=2)
        came = replace(ref(3), arrived=Arrived(now + minutes, now + 2 * minutes))
        sink.write(came, rows_of(spark, [Order("a", 4)]), replay=False)
        assert snapshot(spark, settings) == {"b": 1, "c": 1}
        assert sink.remembered_deletes == 1
        came = replace(ref(4), arrived=Arrived(now + timedelta(hours=2), now + timedelta(hours=2)))
        sink.write(came, rows_of(spark, [Order("c", 2)]), replay=False)
        assert sink.remembered_deletes == 0


def test_deletes_of_a_driver_whose_clock_is_behind_are_remembered_for_as_long(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = upserts(tmp_path, TableType.COPY_ON_WRITE)
    now = datetime.now(UTC)

    def write(sink: HudiSink, batch: int, came: datetime, clock: datetime, orders: list[Order]) -> None:
        assert sink._guard is not None
        sink._guard._clock = clock.timestamp
        arrived = Arrived(came - timedelta(seconds=1), came)
        sink.write(replace(ref(batch), arrived=arrived), rows_of(spark, orders), replay=False)

    behind = now - timedelta(minutes=12)
    with opened(spark, settings) as sink:
        write(sink, 0, now, behind, [Order("a", 6, "d"), Order("b", 1)])
        write(sink, 1, now, behind + timedelta(seconds=9), [Order("c", 6, "d")])
    # A restore to the first batch, whose commit has its time by the same clock.
    deletes.forget_since(
        spark, SideFiles(HudiTable(spark, settings), "deletes"), (behind + timedelta(seconds=1)).timestamp()
    )
    with opened(spark, settings) as sink:
        later = now + timedelta(minutes=59)
        write(sink, 2, later, later, [Order("a", 5), Order("c", 5)])
        assert snapshot(spark, settings) == {"b": 1, "c": 5}
        later = now + timedelta(minutes=61)
        write(sink, 3, later, later, [])
        assert sink.remembered_deletes == 0


@TABLES
def test_a_table_is_made_with_all_its_properties(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To add some, Hudi deletes their file: on S3 it may be gone long after its driver was killed, and with it what a
    successor has made."""
    monkeypatch.delattr(HudiTable, "keep")
    settings = upserts(tmp_path, table_type, version)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
        assert snapshot(spark, settings) == {"a": 1}
    found = HudiTable(spark, settings).properties()
    assert found.items() >= kept_properties(settings, {}).items()
    with opened(spark, settings):
        assert HudiTable(spark, settings).properties() == found


@TABLE_TYPES
def test_a_table_whose_properties_were_being_updated_is_the_same_table(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    """Hudi copies them, deletes them and writes them anew, and may be killed before the last."""
    settings = replace(upserts(tmp_path, table_type), table_version=TableVersion.NINE)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1)]), replay=False)
    properties = tmp_path / "orders" / ".hoodie" / "hoodie.properties"
    properties.rename(properties.with_suffix(".properties.backup"))
    with opened(spark, replace(settings, table_version=None)) as sink:
        assert sink.newest_batch(ref(0).checkpoint) is not None
        sink.write(ref(1), rows_of(spark, [Order("b", 1)]), replay=False)
    assert properties.exists()
    assert all_rows_by_hudi_rs(settings) == [("a", 1), ("b", 1)]


def test_many_remembered_deletes_stay_with_the_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And out of the plans that Spark keeps of its queries: texts of some ten megabytes a batch would fill the driver's
    memory in minutes."""
    monkeypatch.setattr(deletes, "_COLLECTED", 5_000)
    with opened(spark, upserts(tmp_path, TableType.MERGE_ON_READ)) as sink:
        many = [Order(f"key-{number}", 5, "d") for number in range(20_000)]
        sink.write(ref(0), rows_of(spark, many), replay=False)
        # Older than its delete, newer, and of the same version beside an older one: what came last has the say.
        late = [Order("key-7", 4), Order("key-8", 6), Order("key-9", 4), Order("key-9", 5), Order("other", 1)]
        sink.write(ref(1), rows_of(spark, late), replay=False)
        assert snapshot(spark, upserts(tmp_path, TableType.MERGE_ON_READ)) == {"key-8": 6, "key-9": 5, "other": 1}
    queries = spark._jsparkSession.sharedState().statusStore().executionsList()
    kept = [queries.apply(number).physicalPlanDescription() for number in range(queries.size())]
    assert max(map(len, kept)) < 1_000_000


@TABLE_TYPES
def test_columns_can_be_added_and_not_taken_away(spark: SparkSession, tmp_path: Path, table_type: TableType) -> None:
    settings = upserts(tmp_path, table_type)
    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 1), Order("b", 1)]), replay=False)
    wider = f"{COLUMNS}, amount double"
    with opened(spark, settings, wider) as sink:
        rows = rows_of(spark, [Order("a", 2)]).selectExpr("*", "1.5D as amount")
        sink.write(ref(1), rows, replay=False)
        sink.finish_services()
        found = spark.read.format("hudi").load(settings.path).select("order_id", "amount").collect()
        assert sorted(map(tuple, found)) == [("a", 1.5), ("b", None)]
    sink = HudiSink(spark, settings)
    with pytest.raises(SettingsChangedError, match="column amount of the table"):
        sink.prepare(rows_of(spark, []).schema)
    with pytest.raises(SettingsChangedError, match=r"column amount .* is a double, and the output has a string"):
        sink.prepare(rows_of(spark, [], wider.replace("double", "string")).schema)
    sink.close()


WIDENED = {
    "order_id": ("int", "bigint"),
    "version": ("int", "bigint"),
    "dt": ("int", "bigint"),
    "l": ("int", "bigint"),
    "d": ("int", "double"),
    "f": ("float", "double"),
    "n": ("decimal(10,2)", "decimal(14,4)"),
    "s": ("struct<a:bigint,s:struct<b:int>>", "struct<a:bigint,s:struct<c:string,b:int>,z:string>"),
}


@TABLE_TYPES
def test_columns_can_be_widened_and_all_queries_read_old_and_new_files(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    settings = replace(upserts(tmp_path, table_type), delete_when=None, buckets=1)
    batches = [
        # Day 1 gets no more rows once it is wide; day 2 is compacted in both forms, and merged from both.
        (0, [(1, 1, 1), (2, 5, 2), (3, 5, 2)]),
        (0, [(3, 6, 2)]),
        (1, [(2, 4, 2), (4, 7, 2)]),
        (1, [(3, 2**33, 2), (5, 1, 3)]),
        (1, [(2, 8, 2), (3, 7, 2)]),
    ]
    newest: dict[int, tuple[int, int, int]] = {}
    for number, (wide, orders) in enumerate(batches):
        cells = {
            "l": "version",
            "d": "version + 0.5D" if wide else "version",
            "f": "0.25",
            "n": "1.25",
            "s": "named_struct('a', version, 's', named_struct('b', 7))",
        }
        if wide:
            cells["s"] = "named_struct('a', version, 's', named_struct('c', 'x', 'b', 7), 'z', 'y')"
        rows = spark.createDataFrame(orders, "order_id long, version long, dt long")
        rows = rows.selectExpr(
            *(f"CAST({cells.get(name, name)} AS {WIDENED[name][wide]}) AS {name}" for name in WIDENED)
        )
        with opened(spark, settings, rows.schema.simpleString()) as sink:
            sink.write(ref(number), rows.coalesce(1), replay=False)
            sink.finish_services()
            assert not [one for one in sink.services if one.failed]
        for key, version, day in orders:
            newest[key] = max((version, wide, day), newest.get(key, (-1, 0, 0)))
    queries = [{}, {"hoodie.datasource.query.type": "incremental", "hoodie.datasource.read.begin.instanttime": "000"}]
    for query in queries:
        found = spark.read.format("hudi").options(**query).load(settings.path)
        assert {name: found.schema[name].dataType.simpleString() for name in ("order_id", "s")} == {
            "order_id": "bigint",
            "s": "struct<a:bigint,s:struct<c:string,b:int>,z:string>",
        }
        assert {row.order_id: (row.version, row.dt) for row in found.collect()} == {
            key: (version, day) for key, (version, _, day) in newest.items()
        }
        for row in found.collect():
            version, wide, _ = newest[row.order_id]
            assert (row.l, row.d, row.f, float(row.n)) == (version, version + wide * 0.5, 0.25, 1.25)
            assert (row.s.a, row.s.s.b, row.s.z) == (version, 7, "y" if wide else None)
        for column in ("l", "s.a", "version"):
            assert found.where(f"{column} = 1").count() == 2, column
            assert found.where(f"{column} = {2**33}").count() == 1, column


def test_settings_that_a_table_cannot_change_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ)
    with opened(spark, settings):
        pass  # a table without commits is a table
    for field, changed in (
        ("tableVersion", replace(settings, table_version=TableVersion.NINE)),
        ("tableType", replace(settings, table_type=TableType.COPY_ON_WRITE)),
        ("recordKey", replace(settings, record_key=("order_id", "note"))),
        ("partitionBy", replace(settings, partition_by=())),
        ("orderingField", replace(settings, ordering_field="note")),
        ("index", replace(settings, buckets=3)),
        ("index", replace(settings, index=IndexType.SIMPLE)),
    ):
        with pytest.raises(SettingsChangedError, match=f"hudi.{field}: the table at"):
            HudiSink(spark, changed).prepare(rows_of(spark, []).schema)


def test_predicates_and_ordering_fields_are_checked_before_anything_is_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    settings = upserts(tmp_path, TableType.MERGE_ON_READ)
    output = rows_of(spark, []).schema
    with pytest.raises(SettingsError, match=r"hudi.deleteWhen: .*UNRESOLVED_COLUMN"):
        HudiSink(spark, replace(settings, delete_when="operation = 'd'")).prepare(output)
    with pytest.raises(SettingsError, match=r"hudi.deleteWhen: 'version' is not a condition"):
        HudiSink(spark, replace(settings, delete_when="version")).prepare(output)
    for type in ("decimal(20,0)", "date"):
        columns = COLUMNS.replace("version long", f"version {type}")
        with pytest.raises(SettingsError, match=rf"hudi.orderingField: column version is a {type[:4]}"):
            HudiSink(spark, settings).prepare(rows_of(spark, [], columns).schema)
    assert not (tmp_path / "orders").exists()


@pytest.mark.parametrize(
    ("table_type", "type", "value"),
    [
        (TableType.MERGE_ON_READ, "int", "{n}"),
        (TableType.MERGE_ON_READ, "string", "lpad('{n}', 4, '0')"),
        (TableType.MERGE_ON_READ, "timestamp", "timestamp_micros({n})"),
        (TableType.COPY_ON_WRITE, "timestamp_ntz", "cast(timestamp_micros({n}) as timestamp_ntz)"),
        (TableType.COPY_ON_WRITE, "double", "{n} + 0.5D"),
    ],
)
def test_versions_are_ordered_by_any_type_that_is_accepted(
    spark: SparkSession, tmp_path: Path, table_type: TableType, type: str, value: str
) -> None:
    settings = replace(upserts(tmp_path, table_type), partition_by=())
    columns = f"order_id string, version {type}, number int, op string"
    history = [
        ({"a": (9, "u")}, {"a": 9}),
        ({"a": (12, "u"), "b": (12, "u")}, {"a": 12, "b": 12}),
        # Behind this one comes a compaction, after which Hudi itself knows no deletes any more.
        ({"a": (10, "u"), "b": (13, "d")}, {"a": 12}),
        ({"a": (11, "d"), "b": (8, "u")}, {"a": 12}),
        ({"b": (14, "u")}, {"a": 12, "b": 14}),
    ]
    with opened(spark, settings, columns) as sink:
        for batch, (orders, expected) in enumerate(history):
            rows = " union all ".join(
                f"select '{key}' as order_id, {value.format(n=number)} as version, {number} as number, '{op}' as op"
                for key, (number, op) in orders.items()
            )
            sink.write(ref(batch), spark.sql(rows), replay=False)
            found = spark.read.format("hudi").load(settings.path).select("order_id", "number").collect()
            assert {row.order_id: row.number for row in found} == expected
            assert len(found) == len(expected)
            sink.finish_services()
        assert not [one for one in sink.services if one.failed]


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        ("timestamp", [f"timestamp_micros({1769860800123000 + n})" for n in range(4)]),
        ("double", ["0D", "-0D", "1e20D", "1.00000000000000001e20D + 20000D"]),
        ("string", ["'1'", "'1,b:'", "'1\"'", "'\\\\u0031'"]),
    ],
)
def test_a_delete_names_the_rows_that_hudi_takes_for_one(
    spark: SparkSession, tmp_path: Path, type: str, keys: list[str]
) -> None:
    """Of keys that differ in their last digit, one is deleted; then older versions of all come. The same in partitions
    that are one to Hudi, and ones that are not."""
    settings = replace(upserts(tmp_path, TableType.COPY_ON_WRITE), record_key=("at",), partition_by=("dt",), buckets=1)
    columns = f"at {type}, version long, dt string, op string"
    rows = " union all ".join(
        f"select {key} as at, {{version}}L as version, {dt} as dt, '{{op}}' as op"
        for key in keys
        for dt in ("''", "'x'")
    )
    with opened(spark, replace(settings, ordering_field="version"), columns) as sink:
        deleted = f"select {keys[0]} as at, 5L as version, cast(null as string) as dt, 'd' as op"
        sink.write(ref(0), spark.sql(deleted), replay=False)
        sink.write(ref(1), spark.sql(rows.format(version=4, op="u")), replay=False)
        found = spark.read.format("hudi").load(settings.path)
        kept = {(row["_hoodie_record_key"], row.dt) for row in found.collect()}
    wanted = spark.sql(rows.format(version=4, op="u")).selectExpr("cast(at as string) as at", "nullif(dt, '') as dt")
    assert found.count() == wanted.distinct().count() - 1
    assert len({key for key, dt in kept if dt is None}) == len({key for key, dt in kept if dt == "x"}) - 1


@TABLE_TYPES
@pytest.mark.parametrize(
    "index", [IndexType.GLOBAL_SIMPLE, pytest.param(IndexType.GLOBAL_BLOOM, marks=pytest.mark.slow)]
)
def test_a_key_moves_to_the_partition_of_its_newest_version(
    spark: SparkSession, tmp_path: Path, table_type: TableType, index: IndexType
) -> None:
    """Also back, by a late version not at all; and it is deleted wherever it is."""
    settings = replace(upserts(tmp_path, table_type), index=index)
    batches = [
        [("a", 5, "x", "u"), ("b", 5, "x", "u"), ("c", 5, "x", "u"), ("d", 5, "x", "u"), ("e", 5, "x", "u")],
        [("a", 6, "y", "u"), ("b", 4, "y", "u"), ("c", 6, "y", "d"), ("d", 4, "y", "d"), ("e", 6, "y", "u")],
        [("a", 7, "x", "u"), ("c", 5, "x", "u"), ("e", 5, "x", "u")],
    ]
    with opened(spark, settings) as sink:
        for number, rows in enumerate(batches):
            orders = [(key, version, None, dt, op) for key, version, dt, op in rows]
            sink.write(ref(number), spark.createDataFrame(orders, COLUMNS), replay=False)
        sink.finish_services()
        assert not [one for one in sink.services if one.failed]
        assert sink.partitions() == ["dt=x", "dt=y"]
    found = spark.read.format("hudi").load(settings.path).select("order_id", "version", "dt").collect()
    assert sorted(map(tuple, found)) == [("a", 7, "x"), ("b", 5, "x"), ("d", 5, "x"), ("e", 6, "y")]


def test_a_table_that_was_begun_with_records_of_avro_has_the_same_keys(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All types that keys may have of which a copy-on-write table's records are not made Avro."""
    settings = replace(
        upserts(tmp_path, TableType.COPY_ON_WRITE), record_key=("a", "b", "c", "d"), partition_by=("e", "f", "g"),
        delete_when=None,
    )  # fmt: skip
    keys = (
        "'a b/c,d' as a, 9007199254740993L as b, cast(-7 as smallint) as c, date'1850-01-31' as d, "
        "date'2026-01-31' as e, true as f, cast(null as int) as g"
    )

    def orders(version: int) -> DataFrame:
        more = "array(named_struct('sku', 's', 'price', 1.10)) as items, map('k', timestamp'1900-01-01') as times"
        return spark.sql(f"select {keys}, {version}L as version, {more}")

    def write(number: int) -> list[Row]:
        with closing(HudiSink(spark, settings)) as sink:
            sink.prepare(orders(0).schema)
            sink.write(ref(number), orders(number), replay=False)
        return spark.read.format("hudi").load(settings.path).collect()

    with monkeypatch.context() as patch:
        patch.setattr(client_module, "record_options", lambda *_: {})
        (before,) = write(1)
    (after,) = write(2)
    assert (before.version, after.version) == (1, 2)
    assert after["_hoodie_record_key"] == before["_hoodie_record_key"]
    assert (after.items, after.times) == (before.items, before.times)


def test_odd_partitions_and_keys_of_several_columns(spark: SparkSession, tmp_path: Path) -> None:
    settings = replace(
        upserts(tmp_path, TableType.MERGE_ON_READ), record_key=("order_id", "note"), partition_by=("dt", "op"),
        delete_when=None,
    )  # fmt: skip
    rows = [("a", 1, "x", "a/b c", "é"), ("a", 2, "y", "a/b c", "é"), ("a", 3, "x", None, "é")]
    with opened(spark, settings) as sink:
        for batch in range(2):
            sink.write(ref(batch), spark.createDataFrame(rows, COLUMNS), replay=False)
    found = spark.read.format("hudi").load(settings.path).select("order_id", "version", "note", "dt", "op").collect()
    assert sorted(map(tuple, found), key=lambda row: row[1])[:2] == rows[:2]
    assert len(found) == 3


def timeline_folder(table: Path) -> Path:
    """Of version 9 a folder of its own; before, Hudi's folder itself."""
    own = table / ".hoodie" / "timeline"
    return own if own.exists() else own.parent


def timeline(path: Path) -> list[str]:
    return [entry.name for entry in timeline_folder(path / "orders").iterdir()]


def require_done(sink: HudiSink, work: Work, instant: str = "") -> None:
    """Ask for work between two batches, and wait until it is done."""
    sink.finish_services()
    done = sink.begin(ServiceRequest(1, datetime.now(UTC), work, instant, "by a test"))
    assert done is not None
    done.result(timeout=120)


def codec(file: Path) -> str:
    return str(pq.read_metadata(file).row_group(0).column(0).compression)


@VERSIONS
def test_log_files_are_compacted_and_replaced_files_cleaned_when_somebody_asks(
    spark: SparkSession, tmp_path: Path, version: TableVersion
) -> None:
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ, version), compact_every=50)
    folder = Path(settings.path.removeprefix("file://"))
    with opened(spark, settings) as sink:
        for batch in range(3):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
        require_done(sink, Work.COMPACTION)
        assert HudiTable(spark, settings).pending_compactions() == []
        written, compacted = folder.rglob("*.parquet")
        assert {codec(written), codec(compacted)} == {"ZSTD"}
        assert snapshot(spark, settings) == {"a": 2}
        sink.write(ref(3), rows_of(spark, [Order("a", 3)]), replay=False)
        require_done(sink, Work.CLEANING)
        assert len(list(folder.rglob("*.parquet"))) == 1
        # Rounds go by the document again.
        assert HudiTable(spark, settings).pending_compactions() == []
        assert snapshot(spark, settings) == {"a": 3}
        assert not [one for one in sink.services if one.failed]


@TABLES
def test_a_savepoint_keeps_files_until_it_is_deleted(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = upserts(tmp_path, table_type, version)
    place = StoreSettings(LakePath.parse(settings.path), S3Settings(""))

    def savepoints() -> tuple[Savepoint, ...]:
        return savepoints_of(HudiFolder.look(place))

    def as_of(instant: str) -> list[int]:
        # Spark refuses what is before the last clean, without a look at savepoints.
        options = hudi.HudiReadOptions().with_as_of_timestamp(instant)
        found = pa.Table.from_batches(hudi.HudiTable(settings.path).read(options))
        return found["version"].to_pylist()

    with opened(spark, settings) as sink:
        sink.write(ref(0), rows_of(spark, [Order("a", 0)]), replay=False)
        for _ in range(2):  # as after a kill before the outcome was kept
            require_done(sink, Work.SAVEPOINT)
        (savepoint,) = savepoints()
        assert savepoint.comment == "by a test"
        for batch in range(1, 8):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        assert as_of(savepoint.instant) == [0]
        for _ in range(2):
            require_done(sink, Work.SAVEPOINT_DELETION, savepoint.instant)
        assert savepoints() == ()
        kept = len(list(Path(settings.path.removeprefix("file://")).rglob("*.parquet")))
        require_done(sink, Work.CLEANING)
        assert len(list(Path(settings.path.removeprefix("file://")).rglob("*.parquet"))) < kept
        assert snapshot(spark, settings) == {"a": 7}
        assert sink.find(ref(7)) is not None
        assert not [one for one in sink.services if one.failed]


def inserts(path: Path, table_type: TableType, version: TableVersion, **more: Any) -> HudiSettings:
    settings = upserts(path, table_type, version)
    return replace(
        settings, operation=Operation.INSERT, ordering_field=None, delete_when=None, cluster_into=64 << 20, **more
    )


@TABLES
def test_small_files_of_a_table_of_inserts_are_merged_beside_the_batches(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    settings = inserts(tmp_path, table_type, version, retain=timedelta(hours=1))
    place = StoreSettings(LakePath.parse(settings.path), S3Settings(""))
    written: list[Order] = []
    with opened(spark, settings) as sink:
        for batch in range(5):
            # A key that is there before is a row of its own.
            orders = [Order(key, batch) for key in "abab"]
            sink.write(ref(batch), rows_of(spark, orders), replay=False)
            written += orders
        sink.finish_services()
        require_done(sink, Work.CLUSTERING)
        expected = sorted((order.key, order.version) for order in written)
        assert all_rows(spark, settings) == expected
        told = look(Target(Kind.HUDI, place, None), 20)
        assert isinstance(told, HudiReport)
        assert told.slices.base.count == told.slices.partitions == 2, "one file each"
        assert "clustering" in {action.action for action in told.timeline}
        assert {action.rows for action in told.timeline if action.action == "clustering"} == {None}
        # All that goes by batches passes over it.
        assert [sink.find(ref(batch)) is not None for batch in range(6)] == [True] * 5 + [False]
        options = hudi.HudiReadOptions()
        rows = pa.Table.from_batches(hudi.HudiTable(settings.path).read(options)).to_pylist()
        assert sorted((row["order_id"], row["version"]) for row in rows) == expected
        assert not [one for one in sink.services if one.failed]
    folder, now = HudiFolder.look(place), datetime.now(UTC)
    question = NetChanges(Commit(folder.timeline.batches[0].requested))
    changes = HudiRsChanges(folder, comparison_of(question, folder.history, now), Asked(question, None, None, now))
    with changes.answered(None, None) as found:
        made = [(row["op"], row["after"]["version"]) for row in found.read_all().to_pylist()]
    assert sorted(made) == sorted(("insert", order.version) for order in written[4:])


@TABLES
def test_a_clustering_that_a_driver_left_is_completed_and_no_row_lost(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = inserts(tmp_path, table_type, version, retain=timedelta(hours=1), compact_every=50)
    with opened(spark, settings) as sink:
        for batch in range(3):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        # Files are written, and the driver dies before they count.
        with monkeypatch.context() as dying:
            dying.setattr(HudiClient, "cluster", killed_while_clustering)
            with pytest.raises(RuntimeError, match="killed"):
                require_done(sink, Work.CLUSTERING)
        assert len(HudiTable(spark, settings).pending_clusterings()) == 1
        # Batches go on meanwhile, and no cleaning or archiving is hurt by it.
        sink.write(ref(3), rows_of(spark, [Order("a", 3)]), replay=False)
        sink.finish_services()
    # Also if the document does not ask for it any more: batches add to small files then, but not to those.
    with opened(spark, replace(settings, cluster_into=None)) as sink:
        assert all_rows(spark, settings) == [("a", version) for version in range(4)]
        for batch in (4, 5):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        assert HudiTable(spark, settings).pending_clusterings() == []
        assert all_rows(spark, settings) == [("a", version) for version in range(6)]
        assert not [one for one in sink.services if one.failed]


@TABLES
def test_an_archiving_that_a_driver_left_stops_no_batch_and_is_ended(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    """Of all instants, Hudi deletes what they began with before what completed them."""
    settings = inserts(tmp_path, table_type, version, retain=timedelta(0), compact_every=2)
    with opened(spark, settings) as sink:
        for batch in range(3):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        require_done(sink, Work.CLUSTERING)
    with opened(spark, replace(settings, cluster_into=None)) as sink:
        for batch in range(3, 7):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        require_done(sink, Work.CLEANING)
    folder = timeline_folder(tmp_path / "orders")
    clustered = max(path.name[:17] for path in folder.glob("*.replacecommit"))
    left = [path for path in folder.glob("[0-9]*") if path.name[:17] <= clustered]
    for path in left:
        if path.suffix in (".requested", ".inflight"):
            path.unlink()
    with opened(spark, settings) as sink:
        for batch in range(7, 11):
            sink.write(ref(batch), rows_of(spark, [Order("a", batch)]), replay=False)
            sink.finish_services()
        require_done(sink, Work.CLUSTERING)
        assert all_rows(spark, settings) == [("a", version) for version in range(11)]
        assert [one.name for one in sink.services if one.failing] == []
        assert [sink.find(ref(batch)) is not None for batch in range(12)] == [True] * 11 + [False]
    assert not any(path.exists() for path in left)


def killed_while_clustering(client: HudiClient, instant: str) -> None:
    """Begin a clustering for good, and leave it there."""
    client._client.getConfig().setValue("hoodie.auto.commit", "false")
    client._client.cluster(instant, False)
    raise RuntimeError("killed")
