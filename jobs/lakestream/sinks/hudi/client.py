"""Writing to the table, through Hudi's SparkRDDWriteClient (py4j).

The DataFrame writer (`df.write.format("hudi")`) makes a client for each batch, reads the table's properties and schema
several times, and commits in the same call. A client that is kept does that once, can be stopped between writing and
committing, and hands over the write statistics. The classes are those of Hudi 1.2.0, which ivy.xml pins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from lakestream.errors import SinkError
from lakestream.sinks.hudi.metaclient import HudiTable
from lakestream.sinks.hudi.newest import nullable
from lakestream.sinks.hudi.options import FAILED_WRITES, kept, record_options, retention
from lakestream.sinks.hudi.stats import WriteStat

_RECORDS = "org.apache.hudi.HoodieCreateRecordUtils$"


@dataclass(frozen=True)
class Written:
    """Files that are there, and that no reader sees yet."""

    instant: str
    java_stats: Any
    stats: list[WriteStat]


class HudiClient:
    """A write client with its options, for rows of one schema. Each thread needs one of its own."""

    def __init__(self, table: HudiTable, options: Mapping[str, str], columns: StructType) -> None:
        self._table = table
        self._hudi = table.hudi
        self._spark = table.spark
        self._schema = table.hudi_schema(columns)
        self._name, self._namespace = table.record_name()
        self._table_config = table.meta_client().getTableConfig()
        self._action = "deltacommit" if table.settings.merges_on_read else "commit"
        operation = table.settings.operation.value.upper()
        self._operation = getattr(self._hudi.common.model.WriteOperationType, operation)
        given = {**record_options(table.settings, columns), **options, "path": table.settings.path}
        scala = table.jvm.org.apache.spark.api.python.PythonUtils.toScalaMap(given)
        self._parameters = self._hudi.HoodieWriterUtils.parametersWithWriteDefaults(scala)
        java = table.jvm.scala.collection.JavaConverters.mapAsJavaMapConverter(self._parameters).asJava()
        self._client = self._hudi.DataSourceUtils.createHoodieClient(
            table.spark._jsc, self._schema.toString(), table.settings.path, table.settings.table, java
        )
        config = self._client.getConfig()
        # For records, whose ordering value the parameters ask for; but to find the newest of a key is done by then.
        config.setValue("hoodie.combine.before.upsert", "false")
        # The builder makes it LAZY of any other, for writers that share a table.
        config.setValue(FAILED_WRITES, given[FAILED_WRITES])

    def start(self) -> str:
        """Begin a commit; returns its instant."""
        return str(self._client.startCommit(self._action))

    def write(self, instant: str, rows: DataFrame) -> Written:
        """Write the files of a commit.

        Args:
            instant: of the commit.
            rows: if they are upserts, one for each key.

        Raises:
            SinkError: a row could not be written; the message has the first one's key.
        """
        self._set_parallelism()
        records = self._records(instant, rows)
        self._client.setOperationType(self._operation)
        write = self._client.upsert if self._table.settings.upserts else self._client.insert
        stats = self._table.jvm.java.util.ArrayList()
        for status in write(records, instant).collect():
            _require_written(status)
            stats.add(status.getStat())
        return Written(instant, stats, self._as_json(stats))

    def commit(self, written: Written, marks: Mapping[str, str]) -> None:
        """Make a commit visible, with marks in its metadata.

        Raises:
            SinkError: Hudi says no without saying why.
        """
        extra = self._hudi.common.util.Option.of(self._table.jvm.java.util.HashMap(dict(marks)))
        if not self._client.commitStats(written.instant, written.java_stats, extra, self._action):
            raise SinkError(f"Hudi did not commit {written.instant}")

    def schedule_compaction(self, every: int) -> str | None:
        """Plan a compaction if so many delta commits have come since the last one; returns its instant."""
        self._client.getConfig().setValue("hoodie.compact.inline.max.delta.commits", str(every))
        planned = self._client.scheduleCompaction(self._hudi.common.util.Option.empty())
        return str(planned.get()) if planned.isPresent() else None

    def compact(self, instant: str) -> list[WriteStat]:
        """Run a planned compaction, also one that was begun by a driver that died, and commit it; what it wrote.

        To Hudi that driver is alive for as long as its heartbeat is new, and the compaction would be refused.
        """
        self._table.delete(f".hoodie/.heartbeat/{instant}")
        metadata = self._client.compact(instant, True).getCommitMetadata()
        return self._as_json(metadata.get().getWriteStats()) if metadata.isPresent() else []

    def schedule_clustering(self) -> str | None:
        """Plan which small files are merged, if there are any; returns the instant."""
        planned = self._client.scheduleClustering(self._hudi.common.util.Option.empty())
        return str(planned.get()) if planned.isPresent() else None

    def cluster(self, instant: str) -> None:
        """Run a planned clustering, also one that was begun by a driver that died, and commit it."""
        self._client.cluster(instant, True)

    def savepoint(self, comment: str, instant: str) -> None:
        """Have cleaning keep the files of a commit until its savepoint is deleted. Hudi refuses a commit of which
        files may have been cleaned."""
        self._client.savepoint(instant, "lakestream", comment)

    def restore(self, instant: str) -> None:
        """Undo all that came after a commit that has a savepoint. One that was cut off is gone on with."""
        self._client.restoreToSavepoint(instant)

    def delete_savepoint(self, instant: str) -> None:
        """Let cleaning remove what only that savepoint has kept; none of that instant is no error."""
        self._client.deleteSavepoint(instant)

    def clean(self, since: datetime) -> None:
        """Delete what readers of the table as it was at that time or later do not need, and what failed writes left."""
        self._retain(since)
        self._client.clean()

    def archive(self, since: datetime, shown_since: datetime) -> None:
        """Move instants out of the active timeline that are older than two times.

        So do clusterings that an archiving was moving when it was cut off, be they newer than the first by now:
        until then nothing can be clustered, as Hudi misses how they began.

        Args:
            since: readers need commits from then on.
            shown_since: the same time, or an earlier one from which on none may go in any case.
        """
        self._retain(shown_since)
        clusters = self._table.settings.cluster_into is not None
        if clusters and since == shown_since and (newer := self._table.behind_half_archived()) is not None:
            self._configure(kept(newer))
        self._client.archive()

    def end_rollbacks(self) -> list[str]:
        """Go on with rollbacks that were cut off. Only for a client that is alone.

        Returns:
            The commits that were begun and not completed, as it found them; those that it has undone among them.
        """
        self._hold_log_names()
        meta_client = self._table.meta_client()
        pending = self._table.pending_commits(meta_client.getActiveTimeline())
        # Hudi looks on the local disk for what a rollback had written when it was cut off, and fails at each start
        # if the table is on S3. They undo what they undo in any case: only its own index would need to know of them.
        self._table.forget_markers(self._table.pending_rollbacks(meta_client))
        # By the policy NEVER these are all.
        self._client.rollbackFailedWrites(meta_client)
        return pending

    def roll_back_pending(self) -> None:
        """Undo the commits that were begun and not completed, the newest first. Only for a client that is alone."""
        # A start that finds none, as most do, looks through the timeline no second time.
        if self.end_rollbacks():
            for instant in reversed(self._table.pending_commits(self._table.meta_client().getActiveTimeline())):
                self.roll_back(instant)

    def roll_back(self, instant: str) -> None:
        """Undo the commit of a batch, also a completed one that others followed, or one of a driver that died."""
        # Of what came late there may be the beginning alone, and Hudi fails to delete a request that is not there.
        self._table.create_in_timeline(f"{instant}.{self._action}.requested")
        self.undo(instant)

    def undo(self, instant: str) -> None:
        """Undo what has begun at an instant, whatever it is.

        Raises:
            SinkError: there is nothing of that instant.
        """
        self._hold_log_names()
        if not self._client.rollback(instant):
            raise SinkError(f"Hudi did not roll back {instant}")

    def close(self) -> None:
        """Give up what the client holds."""
        self._client.close()

    def _retain(self, since: datetime) -> None:
        """Each counts for itself: one may fail, and must not have the other go by what it has not counted."""
        self._configure(retention(self._table.commits_since(since)))

    def _configure(self, options: Mapping[str, str]) -> None:
        for name, value in options.items():
            self._client.getConfig().setValue(name, value)

    def _hold_log_names(self) -> None:
        """Make the log files that pending commits may have written, or may yet, and that are not there.

        Their names tell their number, and not their commit. The next commit would give one of its files the name of
        one that is missing, and lose it when that one comes, late. Of a file that is there Hudi has a block tell that
        its commit was rolled back, in a file behind it; and that holds for what comes in its place.
        """
        if not self._table.settings.counts_log_files:
            return
        meta_client = self._table.meta_client()
        if not (pending := self._table.pending_commits(meta_client.getActiveTimeline())):
            return
        config, markers = self._client.getConfig(), self._hudi.table.marker
        engine = self._hudi.client.common.HoodieSparkEngineContext(self._spark._jsc)
        table = self._hudi.table.HoodieSparkTable.create(config, engine, meta_client)
        for instant in pending:
            found = markers.MarkerBasedRollbackUtils.getAllMarkerPaths(
                table, engine, instant, config.getRollbackParallelism()
            )
            for marker in found:
                file = markers.WriteMarkers.stripMarkerSuffix(marker)
                if self._hudi.common.fs.FSUtils.isLogFile(self._table.path(file)):
                    self._table.create_empty(file)

    def _as_json(self, stats: Any) -> list[WriteStat]:
        found: list[WriteStat] = json.loads(self._hudi.common.util.JsonUtils.toString(stats))
        return found

    def _records(self, instant: str, rows: DataFrame) -> Any:
        # Names with a $ are Scala's: an object, and a case class within it.
        module = getattr(getattr(self._table.jvm, _RECORDS), "MODULE$")
        arguments = getattr(self._table.jvm, f"{_RECORDS}createHoodieRecordRddArgs")
        return module.createHoodieRecordRdd(
            arguments(
                nullable(rows)._jdf,
                self._client.getConfig(),
                self._parameters,
                self._name,
                self._namespace,
                self._schema,
                self._schema,
                self._operation,
                instant,
                False,  # not prepared by Spark SQL,
                False,  # by MERGE INTO,
                False,  # or by anyone else
                self._table_config,
            )
        )

    def _set_parallelism(self) -> None:
        # Left alone, Hudi takes spark.sql.shuffle.partitions: eight tasks of a few rows for each of three stages. The
        # number of slots changes with the executors, so it is asked for each time.
        slots = str(self._spark.sparkContext.defaultParallelism)
        for shuffle in ("upsert", "insert"):
            self._client.getConfig().setValue(f"hoodie.{shuffle}.shuffle.parallelism", slots)


def _require_written(status: Any) -> None:
    if status.hasErrors():
        errors = dict(status.getErrors())
        key, error = next(iter(errors.items()), ("", status.getGlobalError()))
        raise SinkError(f"Hudi could not write {status.getTotalErrorRecords()} rows, the first being {key}: {error}")
