"""The Hudi sink: each batch is one commit of the table, with the batch's number in its metadata."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, StructType

from lakestream.errors import SettingsError, SinkError
from lakestream.faults import reach
from lakestream.log import ServiceRequest, Work
from lakestream.model import ServiceStatus, SinkCommit
from lakestream.sinks.contract import BatchRef
from lakestream.sinks.hudi.buckets import SharedBucket
from lakestream.sinks.hudi.client import HudiClient, Written
from lakestream.sinks.hudi.clock import CommitClock, require_seen
from lakestream.sinks.hudi.deletes import IS_DELETED, DeleteGuard, comparable, is_deleted, require_predicate
from lakestream.sinks.hudi.metaclient import HudiTable, SideFiles
from lakestream.sinks.hudi.newest import newest
from lakestream.sinks.hudi.options import ALONE, write_options
from lakestream.sinks.hudi.rollbacks import Rollbacks
from lakestream.sinks.hudi.rows import refusal
from lakestream.sinks.hudi.services import Service, TableServices
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.hudi.stats import WriteStat, largest_file, marks, sink_commit
from lakestream.sinks.hudi.stopclock import StopClock
from lakestream.sinks.hudi.table import (
    kept_properties,
    marks_deletes,
    require_columns,
    require_evolution,
    require_partitions,
    require_same_table,
    with_meta_columns,
    with_version,
)
from lakestream.spark.failures import SPARK_ERRORS, spark_errors_in_our_words
from lakestream.spark.tasktime import SERVICES_POOL

logger = logging.getLogger(__name__)


class HudiSink:
    """Writes batches to a Hudi table; a `Sink`."""

    name = "hudi"

    def __init__(self, spark: SparkSession, settings: HudiSettings) -> None:
        self._spark = spark
        self._settings = settings
        self._rule = settings.delete_rule
        self._table = HudiTable(spark, settings)
        self._clock = CommitClock(settings.path)
        self._guard: DeleteGuard | None = None
        self._client: HudiClient | None = None
        self._beside: HudiClient | None = None
        self._services: TableServices | None = None
        self._rollbacks: Rollbacks | None = None
        self._marks_deletes = False
        self._columns: StructType | None = None
        self._largest_file = 0

    def refusal(self, output: StructType) -> Column | None:
        """Why Hudi cannot write a row, or would take it for another one.

        Raises:
            SettingsError: a column that a setting names does not exist.
        """
        require_columns(output, self._settings)
        return refusal(self._settings, output)

    def prepare(self, output: StructType) -> None:
        """Create the table, or check it; then undo what a driver that died has left.

        1. The table is made, with its layout.        A kill leaves a table without commits, of this same kind.
        2. Of one that somebody else made, the layout is written down.
        3. Commits that were begun and not completed are rolled back; the engine has made sure that no other driver
           is still writing them. Those that were completed after their rollback are rolled back once more, and files
           that came after it are deleted.

        Raises:
            SettingsError: a column that a setting names does not exist, or is of no type for it; or `deleteWhen` is no
                condition.
            SettingsChangedError: the table is of another kind.
            ClockBehindError: the table has a commit of a time that this machine's clock has not reached.
            SinkError: readers do not see what was written after a compaction.
        """
        settings = self._settings
        require_columns(output, settings)
        if self._rule is not None:
            require_predicate(self._spark, output, self._rule.predicate)
        if settings.ordering_field is not None:
            comparable(settings.ordering_field, output[settings.ordering_field].dataType)
        exists = self._table.exists()
        properties = self._table.properties() if exists else {}
        if exists:
            settings = self._settings = with_version(properties, settings)
        table = self._table = HudiTable(self._spark, settings)
        self._options = write_options(settings)
        found = table.columns() if exists else None
        self._marks_deletes = marks_deletes(found, settings)
        columns = self._with_mark(output)
        self._columns = with_meta_columns(table.as_stored(columns))
        if exists:
            require_same_table(properties, settings)
            if found is not None:
                require_evolution(found, table.as_stored(columns), settings)
            self._clock.require_after(table.newest_time(table.meta_client()))
            if settings.completes_by_store_time:
                require_seen(settings.path, table.early_compactions())
            if kept := kept_properties(settings, properties):
                table.keep(kept)
        else:
            require_partitions(output, settings)
            table.create(columns, kept_properties(settings, {}))
            logger.info("created the %s table %s", settings.table_type.value, settings.path)
        self._roll_back(columns)
        self._open(columns)

    def find(self, ref: BatchRef) -> SinkCommit | None:
        """The commit that was made for the batch, found by its mark in the timeline; none that was rolled back."""
        assert self._rollbacks is not None  # prepare comes first
        self._rollbacks.look()
        found = self._table.find(ref.batch, ref.checkpoint, self._rollbacks.instants)
        return None if found is None else sink_commit(*found)

    def write(self, ref: BatchRef, rows: DataFrame, *, replay: bool) -> SinkCommit:
        """Write the batch as one commit.

        1. Deletes are remembered; versions older than a delete are left out.
        2. An instant is begun.
        3. Files are written. A kill leaves an instant that readers do not see, and `prepare` rolls it back.
        4. The instant is completed, with the batch in its metadata: now it is visible, and `find` finds it.
        5. Instants that dead drivers have begun or, after their rollback, completed meanwhile are rolled back.
        6. Compaction and cleaning begin if they are due.

        Raises:
            ClockBehindError: the clock has been set back.
            SinkError: a row could not be written; or a bucket has two file groups; or somebody has rolled the commit
                back, and the next start writes the batch again.
        """
        assert self._client is not None  # prepare comes first
        assert self._services is not None
        assert self._rollbacks is not None
        clock = StopClock()
        clock.seconds["wait"] = self._services.throttle()
        clock.seconds["pause"] = self._services.pause()
        clock.lap()
        kept = self._guard.apply(rows, ref) if self._guard else rows
        clock.lap("deletes")
        self._clock.require_after(self._rollbacks.newest)
        instant = self._client.start()
        clock.lap("start")
        written = self._written(self._client, instant, self._marked(newest(kept, self._settings)))
        clock.lap("write")
        reach("written")
        # It may have been set back meanwhile. Hudi waits, without a word, until it has come to its own last instant.
        self._clock.require_after(self._rollbacks.time_of(instant))
        self._client.commit(written, marks(ref.batch, ref.checkpoint))
        clock.lap("commit")
        self._require_kept(ref, instant)
        clock.lap("check")
        self._services.committed()
        clock.lap("plan")
        self._measure(written.stats)
        return sink_commit(instant, written.stats, clock.seconds)

    def begin(self, request: ServiceRequest) -> Future[None] | None:
        """Begin work on the table that somebody has asked for; None: not now, a round of such work runs.

        Between two batches, by the thread that writes them. Compaction and cleaning go on beside the batches, as in
        any round; a savepoint is done at once.
        """
        assert self._services is not None  # prepare comes first
        match request.work:
            case Work.COMPACTION:
                return self._services.begin(self._compaction(every=1))
            case Work.CLUSTERING:
                if self._settings.cluster_into is None:
                    raise SettingsError("hudi.clustering is not set: batches add to the very files that it would merge")
                return self._services.begin(self._clustering())
            case Work.CLEANING:
                return self._services.begin(self._cleaning())
            case Work.SAVEPOINT:
                spark_errors_in_our_words()(lambda: self._save(request.comment))()
            case Work.SAVEPOINT_DELETION:
                assert self._client is not None
                spark_errors_in_our_words()(partial(self._client.delete_savepoint, request.instant))()
            case Work.RESTORE:
                return None  # done while no sink is open
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def close(self) -> None:
        """End compaction and cleaning after the round that runs."""
        ended = self._services is None or self._services.close()
        for part in (self._guard, self._client, self._beside if ended else None):
            if part is not None:
                part.close()

    def tend(self) -> None:
        """Try again what failed beside the batches."""
        if self._services is not None:
            self._services.tend()

    @property
    def services(self) -> tuple[ServiceStatus, ...]:
        """How compaction, cleaning and archiving go, which never fail a batch."""
        return () if self._services is None else self._services.status

    @property
    def remembered_deletes(self) -> int:
        """Deletes that an older version of their key is held against."""
        return 0 if self._guard is None else self._guard.remembered

    @property
    def largest_file(self) -> int:
        """Of the buckets of the bucket index: Hudi bounds the files of others itself."""
        return self._largest_file

    @property
    def columns(self) -> StructType:
        """Those of the last `prepare`, behind Hudi's own."""
        assert self._columns is not None
        return self._columns

    def partitions(self) -> list[str]:
        """Lists the table."""
        return self._table.partitions()

    def newest_batch(self, checkpoint: str) -> tuple[str, int] | None:
        """Instant and number of the newest batch in the table; None: there is none of the checkpoint."""
        return self._table.newest_batch(checkpoint)

    def finish_services(self) -> None:
        """Wait until compaction and cleaning have nothing to do."""
        if self._services is not None:
            self._services.drain()

    def _with_mark(self, output: StructType) -> StructType:
        return StructType([*output.fields]).add(IS_DELETED, BooleanType()) if self._marks_deletes else output

    def _marked(self, rows: DataFrame) -> DataFrame:
        """The rows with Hudi's delete mark."""
        if not self._marks_deletes:
            return rows
        deleted = sf.lit(False) if self._rule is None else sf.expr(is_deleted(self._rule.predicate))
        return rows.withColumn(IS_DELETED, deleted)

    def _roll_back(self, columns: StructType) -> None:
        client = HudiClient(self._table, {**self._options, **ALONE}, columns)
        try:
            client.roll_back_pending()
        finally:
            client.close()

    def _written(self, client: HudiClient, instant: str, rows: DataFrame) -> Written:
        try:
            return client.write(instant, rows)
        except SPARK_ERRORS as error:
            shared = SharedBucket.found_in(str(error))
            if shared is None:
                raise
            assert self._rollbacks is not None
            if late := self._rollbacks.late.sweep(all_of_them=True):
                raise SinkError(
                    f"a file came after its commit was rolled back, and Hudi has refused the batch because of it: "
                    f"{', '.join(late)} of the table {self._settings.path}. It is deleted, and the next start writes "
                    "the batch again"
                ) from error
            raise SinkError(shared.told(self._settings.path, self._table.names_in(shared.partition))) from error

    def _require_kept(self, ref: BatchRef, instant: str) -> None:
        self._bury()
        assert self._rollbacks is not None
        if instant in self._rollbacks.instants:
            raise SinkError(
                f"the commit {instant} of batch {ref.batch} to {self._settings.path} was rolled back by another "
                "process while it was being completed; the next start writes the batch again. Run one writer per table."
            )

    def _bury(self) -> None:
        """Roll back once more what was completed after its rollback; and what a dead driver has begun."""
        assert self._client is not None
        assert self._rollbacks is not None
        for instant in self._rollbacks.look():
            logger.error(
                "the commit %s of the table %s was begun, or completed after its rollback, by a request of a driver "
                "that is no more. It is rolled back; its batch has another commit, or gets one",
                instant,
                self._settings.path,
            )
            self._client.roll_back(instant)

    def _open(self, columns: StructType) -> None:
        if self._rule is not None:
            self._guard = DeleteGuard(self._rule, SideFiles(self._table, "deletes"))
            self._guard.load(self._spark, SideFiles(self._table, "tombstones"))
        self._client = HudiClient(self._table, self._options, columns)
        self._beside = HudiClient(self._table, self._options, columns)
        rollbacks = self._rollbacks = Rollbacks(self._table)
        self._bury()
        self._rollbacks.late.sweep()
        services = [self._cleaning(), Service("archiving", self._in_pool(self._archive))]
        if self._settings.merges_on_read:
            services.insert(0, self._compaction(self._settings.compact_every))
        # One that was begun is completed, also where the document does not say any more that there are any: until then
        # nothing that is later can be archived.
        if self._settings.cluster_into is not None or self._table.pending_clusterings():
            services.insert(0, self._clustering())
        self._services = TableServices(
            services, self._settings.compact_every, goes_on=lambda: not self._clock.is_behind(rollbacks.newest)
        )

    def _compaction(self, every: int) -> Service:
        run = self._in_pool(partial(self._compact, every))
        if not self._settings.plans_between_commits:
            return Service("compaction", run, slows=True)
        assert self._client is not None
        plan = self._in_time(partial(self._client.schedule_compaction, every))
        return Service("compaction", run, slows=True, plan=plan)

    def _clustering(self) -> Service:
        return Service("clustering", self._in_pool(self._cluster))

    def _cleaning(self) -> Service:
        return Service("cleaning", self._in_pool(self._clean))

    def _save(self, comment: str) -> None:
        """Keep the newest batch. One that has a savepoint got it by the same request, before its driver was killed; or
        by another one, and two are as good as one."""
        assert self._client is not None
        if not (batches := self._table.batches()):
            raise SinkError("the table has no commit yet")
        if batches[-1] not in self._table.savepoints():
            self._client.savepoint(comment, batches[-1])

    def _in_pool(self, work: Callable[[], None]) -> Callable[[], None]:
        in_time = self._in_time(work)

        def run() -> None:
            # A property of the thread.
            self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", SERVICES_POOL)
            in_time()

        return run

    def _in_time(self, work: Callable[[], object]) -> Callable[[], None]:
        """Work that makes instants, with a clock that is fit for it."""

        def run() -> None:
            assert self._rollbacks is not None
            self._clock.require_after(self._rollbacks.newest)
            work()

        return spark_errors_in_our_words()(run)

    def _clean(self) -> None:
        """Delete what came after its rollback, and what was replaced longer ago than it is to be kept."""
        assert self._beside is not None
        assert self._rollbacks is not None
        self._rollbacks.late.sweep()
        self._beside.clean(datetime.now(UTC) - self._settings.retain)

    def _archive(self) -> None:
        assert self._beside is not None
        assert self._rollbacks is not None
        since = datetime.now(UTC) - self._settings.retain
        self._beside.archive(since, self._rollbacks.late.shown_since(since))

    def _compact(self, every: int) -> None:
        """Compact what has been planned, also by a driver that died; then what is due, if it may be planned here."""
        assert self._beside is not None
        for instant in self._table.pending_compactions():
            if self._settings.completes_by_store_time:
                self._clock.require_stored_after(self._table.time_of(instant), self._table.store_time)
            self._measure(self._beside.compact(instant))
        if self._settings.plans_between_commits:
            return
        if (planned := self._beside.schedule_compaction(every)) is not None:
            self._measure(self._beside.compact(planned))

    def _cluster(self) -> None:
        """Complete what has been planned, also by a driver that died; then merge what is small."""
        assert self._beside is not None
        for instant in self._table.pending_clusterings():
            self._beside.cluster(instant)
        if self._settings.cluster_into is not None and (planned := self._beside.schedule_clustering()) is not None:
            self._beside.cluster(planned)

    def _measure(self, stats: Iterable[WriteStat]) -> None:
        if self._settings.has_buckets:
            self._largest_file = max(self._largest_file, largest_file(stats))
