"""What readers make of our Hudi tables, held against the fold of what was written: hudi-rs and Spark, in each state."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import hudi_orders
from lakestream.errors import SettingsError
from lakestream.query.errors import UnreadableError
from lakestream.query.hudi_folder import HudiFolder
from lakestream.query.hudi_rs import HudiRs
from lakestream.query.hudi_spark import HudiSpark, HudiSparkChanges
from lakestream.query.moments import Commit
from lakestream.query.net_changes import HudiRsChanges
from lakestream.query.question import Asked, Changes, NetChanges, Question, ReadOptimized, Snapshot, SparkRun
from lakestream.query.spans import comparison_of, span_of
from lakestream.query.target import Kind, Target
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi import HudiSettings, HudiSink
from lakestream.sinks.hudi.client import HudiClient
from lakestream.sinks.hudi.client import Written as Files
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.table.look import look
from lakestream.table.report import HudiReport
from lakestream_api import Operation, TableType, TableVersion

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("interpreted")]

TABLE_TYPES = pytest.mark.parametrize("table_type", list(TableType), ids=["cow", "mor"])
COLUMNS = "order_id string, version long, dt string, op string, amount float, at timestamp"
WIDER = (
    "order_id string, version long, dt string, op string, amount double, at timestamp, cents decimal(38,18), "
    "tags array<string>, part struct<x:int,y:struct<z:string>>, counts map<string,int>, raw binary, day date"
)

Row = dict[str, Any]
Read = Callable[[Question], list[Row]]


@dataclass
class Written:
    """A table, and what was written to it."""

    spark: SparkSession
    settings: HudiSettings
    batches: list[list[Row]] = field(default_factory=list)
    instants: list[str] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    """When each batch was over."""

    @contextmanager
    def opened(self, columns: str) -> Iterator[Callable[[Sequence[Row]], None]]:
        sink = HudiSink(self.spark, self.settings)

        def write(rows: Sequence[Row]) -> None:
            frame = self.spark.createDataFrame([tuple(row.values()) for row in rows], columns).coalesce(1)
            commit = sink.write(BatchRef(len(self.batches), str(uuid.UUID(int=7))), frame, replay=False)
            self.times.append(datetime.now(UTC))
            sink.finish_services()
            assert not [one for one in sink.services if one.failed]
            assert commit.instant is not None
            self.batches.append(list(rows))
            self.instants.append(commit.instant)

        try:
            sink.prepare(self.spark.createDataFrame([], columns).schema)
            yield write
        finally:
            sink.close()

    def folded(self, batches: int) -> dict[str, Row]:
        """The newest version of each order after so many batches; of equal ones the last."""
        newest: dict[str, Row] = {}
        for row in (row for batch in self.batches[:batches] for row in batch):
            if row["order_id"] not in newest or newest[row["order_id"]]["version"] <= row["version"]:
                newest[row["order_id"]] = row
        return {key: row for key, row in newest.items() if row["op"] != "d"}

    @property
    def folder(self) -> HudiFolder:
        return HudiFolder.look(StoreSettings(LakePath.parse(self.settings.path), S3Settings("")))

    def readers(self) -> dict[str, Read]:
        """Of the table as it is now."""
        folder, now = self.folder, datetime.now(UTC)

        def by_hudi_rs(question: Question) -> list[Row]:
            table: HudiRs | HudiRsChanges
            if isinstance(question, NetChanges):
                found = comparison_of(question, folder.history, now)
                table = HudiRsChanges(folder, found, Asked(question, None, None, now))
            else:
                table = HudiRs(folder, span_of(question, folder.history, now), Asked(question, None, None, now))
            with table.answered(None, None) as rows:
                return rows.read_all().to_pylist(maps_as_pydicts="lossy")

        def by_spark(question: Question) -> list[Row]:
            if isinstance(question, NetChanges):
                found = comparison_of(question, folder.history, now)
                table: HudiSpark = HudiSparkChanges(folder, found, Asked(question, None, None, now), SparkRun())
            else:
                table = HudiSpark(
                    folder, span_of(question, folder.history, now), Asked(question, None, None, now), SparkRun()
                )
            return [row.asDict(recursive=True) for row in table.rows(self.spark).collect()]

        return {"hudi-rs": by_hudi_rs, "Spark": by_spark}


def order(key: str, version: int, op: str = "u", **more: Any) -> Row:
    dt = "" if key == "nowhere" else f"2026-01-0{ord(key[0]) % 2 + 1}"
    return {
        "order_id": key,
        "version": version,
        "dt": dt,
        "op": op,
        "amount": version / 4,
        "at": datetime(2026, 1, 31, 12, 0, version, 123456),
        **more,
    }


def wide(key: str, version: int, *, full: bool = True) -> Row:
    more = (Decimal("12345678901234567890.123456789012345678"), ["a", None], (1, ("ü",)), {"k": 1}, b"\0\xff")
    day = datetime(2026, 1, 31, tzinfo=UTC).date()
    names = ("cents", "tags", "part", "counts", "raw", "day")
    return order(key, version, **dict(zip(names, (*more, day) if full else [None] * 6, strict=True)))


def as_read(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """Rows in a form in which they can be compared, whoever read them: without Hudi's columns, and in order."""
    names = ("order_id", "version", "dt", "op", "amount", "at", "cents", "tags", "part", "counts", "raw", "day")
    return sorted((tuple(_plain(row.get(name)) for name in names) for row in rows), key=repr)


def _plain(value: Any) -> Any:
    match value:
        case datetime():
            return value.replace(tzinfo=None)
        case dict():
            # What was written as a tuple is read as a struct.
            return tuple(map(_plain, value.values()))
        case tuple() | list():
            return tuple(map(_plain, value))
        case bytearray():
            return bytes(value)
        case "":
            return None  # the partition of the empty text is that of null
    return value


def upserts(
    path: Path, table_type: TableType, *, version: TableVersion | None = None, retain: timedelta = timedelta(hours=1)
) -> HudiSettings:
    return replace(hudi_orders.upserts(path, table_type, version, retain), buckets=1, compact_every=3)


def require_all_versions(written: Written) -> None:
    """All that is kept is read right, as of each commit and time, and between any two."""
    history = written.folder.history
    done = range(history.first_kept, len(written.batches))
    for name, read in written.readers().items():
        assert as_read(read(Snapshot())) == as_read(written.folded(len(written.batches)).values()), name
        for last in done if name == "hudi-rs" else done[:1]:
            expected = written.folded(last + 1)
            assert as_read(read(Snapshot(Commit(written.instants[last])))) == as_read(expected.values()), (name, last)
            assert as_read(read(Snapshot(written.times[last]))) == as_read(expected.values()), (name, last)
        for last in done[-2:]:
            for first in range(last) if name == "hudi-rs" else [0]:
                came = {
                    (row["order_id"], row["version"]) for one in written.batches[first + 1 : last + 1] for row in one
                }
                changed = [row for key, row in written.folded(last + 1).items() if (key, row["version"]) in came]
                span = Changes(written.times[first], Commit(written.instants[last]))
                assert as_read(read(span)) == as_read(changed), (name, first, last)
                if first in done:
                    found = read(NetChanges(written.times[first], Commit(written.instants[last])))
                    assert as_changes(found) == net_changes(written, first + 1, last + 1), (name, first, last)
        if history.first_kept == 0:
            found = read(NetChanges(written.times[0] - timedelta(days=1)))
            assert as_changes(found) == net_changes(written, 0, len(written.batches)), name


def net_changes(written: Written, before: int, after: int) -> dict[str, Any]:
    """Of each order that is another one after so many batches: what was done to it, and both rows."""
    old, new = written.folded(before), written.folded(after)
    ops = {(False, True): "insert", (True, True): "update", (True, False): "delete"}
    return {
        key: (ops[key in old, key in new], *(as_read([rows[key]]) if key in rows else None for rows in (old, new)))
        for key in {*old, *new}
        if old.get(key) != new.get(key)
    }


def as_changes(found: Sequence[Row]) -> dict[str, Any]:
    """Changes in that form."""
    changes = {
        row["key"]: (
            row["op"],
            *(None if row[image] is None else as_read([row[image]]) for image in ("before", "after")),
        )
        for row in found
    }
    assert len(changes) == len(found), "a key has two"
    return changes


@pytest.mark.parametrize(
    ("table_type", "version"),
    [
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.SIX, id="cow-v6"),
        pytest.param(TableType.MERGE_ON_READ, TableVersion.SIX, id="mor-v6"),
        pytest.param(TableType.MERGE_ON_READ, TableVersion.NINE, id="mor-v9"),
        pytest.param(TableType.COPY_ON_WRITE, TableVersion.NINE, id="cow-v9", marks=pytest.mark.slow),
    ],
)
def test_readers_give_the_fold_in_every_state(
    spark: SparkSession, tmp_path: Path, table_type: TableType, version: TableVersion
) -> None:
    written = Written(spark, upserts(tmp_path, table_type, version=version))
    with written.opened(COLUMNS) as write:
        write([order("a", 2), order("b", 1), order("c", 5), order("d", 3), order("nowhere", 1)])
        # Updates, one that comes late, a delete, one that comes late, and one of what was never there.
        write([order("a", 3), order("b", 2, "d"), order("c", 4), order("d", 1, "d"), order("e", 9, "d"), order("f", 1)])
        if table_type is TableType.MERGE_ON_READ:
            require_all_versions(written)  # two log files, and no compaction yet
        # Late versions of what was deleted.
        write([order("b", 1), order("e", 8), order("a", 4), order("nowhere", 2)])
        write([order("g", 1)])
        require_all_versions(written)
    assert len(written.folder.timeline.compactions) == (table_type is TableType.MERGE_ON_READ)


def test_a_compaction_that_is_planned_and_not_done_hides_no_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In version 6 log files belong to the base file that it has not written yet."""
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ), table_version=TableVersion.SIX, compact_every=2)
    written = Written(spark, settings)
    monkeypatch.setattr(HudiSink, "_compact", lambda sink, every: None)
    with written.opened(COLUMNS) as write:
        for version in range(1, 6):
            write([order(key, version) for key in "abc"[: 1 + version % 3]])
    (pending,) = written.folder.timeline.pending
    before = sum(instant < pending.requested for instant in written.instants)
    assert 0 < before < 5
    readers = written.readers()
    assert as_read(readers["Spark"](Snapshot())) == as_read(written.folded(5).values())
    with pytest.raises(UnreadableError, match=r"a compaction .* is under way .*--engine spark"):
        readers["hudi-rs"](Snapshot())
    past = Snapshot(Commit(written.instants[before - 1]))
    assert as_read(readers["hudi-rs"](past)) == as_read(written.folded(before).values())


@pytest.mark.parametrize("done", [False, True], ids=["planned", "done"])
def test_a_compaction_that_is_planned_while_a_batch_is_under_way_hides_no_row(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """The batch is completed later: its log files belong on top of the compaction, whose instant is later than its."""
    settings = replace(upserts(tmp_path, TableType.MERGE_ON_READ, version=TableVersion.NINE), compact_every=50)
    written = Written(spark, settings)

    def compact_beside(sink: HudiSink, client: HudiClient, instant: str, rows: DataFrame) -> Files:
        if len(written.batches) == 2:
            other = hudi_orders.client_of(spark, settings)
            planned = other.schedule_compaction(1)
            assert planned is not None
            if done:
                other.compact(planned)
            other.close()
        return write_files(sink, client, instant, rows)

    write_files = HudiSink._written
    monkeypatch.setattr(HudiSink, "_written", compact_beside)
    with written.opened(COLUMNS) as write:
        write([order("a", 1), order("b", 1), order("c", 1), order("d", 1), order("y", 1)])
        write([order("a", 2), order("b", 5), order("c", 2, "d")])
        write([order("a", 3), order("b", 4), order("d", 2), order("c", 1), order("e", 1)])
        write([order("b", 6), order("d", 3, "d"), order("f", 1)])
        require_all_versions(written)
    assert len(written.folder.timeline.compactions) == done
    readers = written.readers()
    for last, instant in enumerate(written.instants, 1):
        assert as_read(readers["Spark"](Snapshot(Commit(instant)))) == as_read(written.folded(last).values()), last
    for name, read in readers.items():
        assert as_read(read(ReadOptimized())) == as_read(written.folded(2 if done else 1).values()), name


@TABLE_TYPES
def test_added_and_widened_columns_are_read_once_all_files_have_them(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    written = Written(spark, upserts(tmp_path, table_type))
    with written.opened(COLUMNS) as write:
        write([order("a", 1), order("b", 1), order("c", 1)])
    with written.opened(WIDER) as write:
        write([wide("a", 2), wide("b", 2, full=False), wide("d", 1)])
        write([wide("a", 3), order("c", 2, "d", **dict.fromkeys(list(wide("c", 1))[6:]))])
        # Those that were not written again have none of the new columns.
        expected = written.folded(3)
        for name, read in written.readers().items():
            assert as_read(read(Snapshot())) == as_read(expected.values()), name
            found = read(NetChanges(Commit(written.instants[0])))
            assert as_changes(found) == net_changes(written, 1, 3), name


def test_what_hudi_rs_cannot_merge_is_an_error_and_no_answer(spark: SparkSession, tmp_path: Path) -> None:
    written = Written(spark, replace(upserts(tmp_path, TableType.MERGE_ON_READ), delete_when=None))
    with written.opened(
        "order_id string, version long, dt string, items array<struct<q:decimal(10,3),at:timestamp>>"
    ) as write:
        # One row in the base file alone, and one in the log.
        for keys, version in (("ab", 1), ("a", 2)):
            row = {"version": version, "dt": "2026-01-01", "items": [(Decimal(version), datetime(2026, 1, version))]}
            write([{"order_id": key, **row} for key in keys])
    with pytest.raises(UnreadableError, match=r"hudi-rs .* cannot read the table at .*--engine spark"):
        written.readers()["hudi-rs"](Snapshot())
    found = {row["order_id"]: row["items"] for row in written.readers()["Spark"](Snapshot())}
    assert {key: row["q"] for key, (row,) in found.items()} == {"a": 2, "b": 1}


def test_times_without_a_zone_are_left_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    written = Written(spark, replace(upserts(tmp_path, TableType.MERGE_ON_READ), delete_when=None))
    with written.opened("order_id string, version long, dt string, at timestamp_ntz") as write:
        # One row in the base file alone, and one in the log.
        for keys, version in (("ab", 1), ("a", 2)):
            row = {"version": version, "dt": "2026-01-01", "at": datetime(2026, 1, version, 12, 0, 0, 123456)}
            write([{"order_id": key, **row} for key in keys])
    with pytest.raises(UnreadableError, match=r"has a timestamp_ntz column \(at\), which hudi-rs .* does not read"):
        written.readers()["hudi-rs"](Snapshot())
    found = {row["order_id"]: row["at"] for row in written.readers()["Spark"](Snapshot())}
    assert found == {key: datetime(2026, 1, day, 12, 0, 0, 123456) for key, day in (("a", 2), ("b", 1))}


@pytest.mark.parametrize(
    "table_type",
    [
        pytest.param(TableType.COPY_ON_WRITE, id="cow", marks=pytest.mark.slow),
        pytest.param(TableType.MERGE_ON_READ, id="mor"),
    ],
)
def test_what_was_cleaned_is_refused_and_the_rest_is_right(
    spark: SparkSession, tmp_path: Path, table_type: TableType
) -> None:
    written = Written(spark, replace(upserts(tmp_path, table_type, retain=timedelta(0)), compact_every=2))
    with written.opened(COLUMNS) as write:
        for batch in range(6):
            write([order(key, batch + 1) for key in "abc"])
    history = written.folder.history
    assert 0 < history.first_kept < len(written.batches), "nothing was cleaned, or all"
    for name, read in written.readers().items():
        with pytest.raises(SettingsError, match="cleaned; the table can be read as of"):
            read(Snapshot(written.times[history.first_kept - 1]))
        # What changed since needs none of the old files.
        assert len(read(Changes(written.times[0]))) == 3, name
    require_all_versions(written)
    # By its plan a clean deletes before it is completed.
    kept = written.folder.kept_from
    for clean in Path(written.settings.path.removeprefix("file://"), ".hoodie").glob("*.clean"):
        clean.unlink()
    assert not written.folder.timeline.completed("clean")
    assert written.folder.kept_from == kept


def test_what_somebody_cleaned_by_file_versions_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    """Such a clean names no instant from which on files are kept."""
    written = Written(spark, upserts(tmp_path, TableType.COPY_ON_WRITE))
    with written.opened(COLUMNS) as write:
        for version in (1, 2):
            write([order("a", version)])
    spark.sql(f"CREATE TABLE cleaned_by_hand USING hudi LOCATION '{written.settings.path}'")
    policy = "clean_policy => 'KEEP_LATEST_FILE_VERSIONS', file_versions_retained => 1"
    spark.sql(f"CALL run_clean(table => 'cleaned_by_hand', {policy})").collect()
    spark.sql("DROP TABLE cleaned_by_hand")
    assert written.folder.timeline.completed("clean")
    for read in written.readers().values():
        with pytest.raises(SettingsError, match="were cleaned; the only instant that can be read is"):
            read(Snapshot(written.times[0]))
    require_all_versions(written)


def test_base_files_only_are_as_old_as_the_last_compaction(spark: SparkSession, tmp_path: Path) -> None:
    written = Written(spark, upserts(tmp_path, TableType.MERGE_ON_READ))
    with written.opened(COLUMNS) as write:
        for version in range(1, 6):
            write([order("a", version), order("b", version)])
    folder = written.folder
    (compaction,) = folder.timeline.compactions
    compacted = sum(instant < compaction.requested for instant in written.instants)
    assert 0 < compacted < 5
    for name, read in written.readers().items():
        assert as_read(read(ReadOptimized())) == as_read(written.folded(compacted).values()), name
    told = look(Target(Kind.HUDI, folder.place, None), 20)
    assert isinstance(told, HudiReport)
    assert told.slices.waiting.count == 2 * (5 - compacted)
    assert (told.slices.base.count, told.slices.replaced.count) == (2, 2 + 2 * (compacted - 1))
    assert [action.batch for action in told.timeline if action.action == "deltacommit"] == [0, 1, 2, 3, 4]
    assert [action.rows for action in told.timeline if action.action == "compaction"] == [None]
    now = datetime.now(UTC)
    asked = Asked(ReadOptimized(), None, None, now)
    told = HudiRs(folder, span_of(ReadOptimized(), folder.history, now), asked).about
    waiting = 2 * (5 - compacted)
    assert f"base files only: {waiting} log files are left out, of commits since 20" in told


@pytest.mark.parametrize("version", list(TableVersion))
def test_a_clustering_beside_batches_moves_no_time(spark: SparkSession, tmp_path: Path, version: TableVersion) -> None:
    """It is begun before a batch, and completed behind that."""
    settings = replace(
        upserts(tmp_path, TableType.COPY_ON_WRITE, version=version),
        operation=Operation.INSERT,
        ordering_field=None,
        delete_when=None,
        cluster_into=64 << 20,
        compact_every=50,
    )
    written = Written(spark, settings)
    with written.opened(COLUMNS) as write:
        for batch in range(3):
            write([order("a", batch), order("b", batch)])
        client = hudi_orders.client_of(spark, settings)
        planned = client.schedule_clustering()
        assert planned is not None
        for batch in (3, 4):
            write([order("a", batch), order("b", batch)])
        client.cluster(planned)
        client.close()
        write([order("a", 5), order("b", 5)])
    assert [one.name for one in written.folder.history.versions] == written.instants
    moments = [
        (batch, moment) for batch in range(6) for moment in (written.times[batch], Commit(written.instants[batch]))
    ]
    for name, read in written.readers().items():
        for last, moment in [*moments, (2, Commit(planned))]:
            assert sorted(row["version"] for row in read(Snapshot(moment))) == sorted([*range(last + 1)] * 2), (
                name,
                last,
            )
        assert sorted(row["version"] for row in read(Changes(written.times[2]))) == [3, 3, 4, 4, 5, 5], name
        changed = [row["after"]["version"] for row in read(NetChanges(written.times[2], written.times[3]))]
        assert changed == [3, 3], name
