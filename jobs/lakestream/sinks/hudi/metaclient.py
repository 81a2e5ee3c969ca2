"""The table as it is: properties, schema and timeline, through Hudi's HoodieTableMetaClient (py4j)."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import UTC, datetime, tzinfo
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from lakestream.places import PROPERTIES
from lakestream.sinks.hudi.archiving import behind_half_archived
from lakestream.sinks.hudi.clock import newest_time
from lakestream.sinks.hudi.options import key_generator, merge_mode
from lakestream.sinks.hudi.settings import HudiSettings
from lakestream.sinks.hudi.stats import BATCH, CHECKPOINT, WriteStat, batch_of
from lakestream.spark.failures import SPARK_ERRORS, in_our_words
from lakestream_api import TableVersion

logger = logging.getLogger(__name__)

_INSTANT = re.compile(r"\[(?:==>)?(\d+)__")
_NAME = re.compile(r"([^/]+), length=\d+, isDirectory=")
_TIMELINES = {TableVersion.SIX: ".hoodie", TableVersion.NINE: ".hoodie/timeline"}


class HudiTable:
    """One table; every call reads it anew."""

    def __init__(self, spark: SparkSession, settings: HudiSettings) -> None:
        self.spark = spark
        self.settings = settings
        jvm: Any = spark._jvm
        assert jvm is not None  # a session that runs has one
        self.jvm = jvm
        self.hudi = jvm.org.apache.hudi
        self._conf = self.hudi.hadoop.fs.HadoopFSUtils.getStorageConf(spark._jsc.hadoopConfiguration())

    def exists(self) -> bool:
        """Whether there is a table; its properties are brought back if a kill has left but the copy of them."""
        storage, found = self.storage(), [self.path(f".hoodie/{name}") for name in PROPERTIES]
        if storage.exists(found[0]):
            return True
        if not storage.exists(found[1]):
            return False
        self.hudi.common.table.HoodieTableConfig.recover(storage, self.path(".hoodie"))
        return True

    def create(self, columns: StructType, kept: Mapping[str, str]) -> None:
        """Make an empty table, whose columns readers see before the first commit.

        With these properties beside Hudi's from the start: to add them Hudi would delete `hoodie.properties` first, and
        that request may land when its driver is dead and a successor has begun.
        """
        settings = self.settings
        version = self.hudi.common.table.HoodieTableVersion.fromVersionCode(settings.version.value)
        properties = (
            self.hudi.common.table.HoodieTableMetaClient.newTableBuilder()
            .setTableType(settings.table_type.value)
            .setTableVersion(version)
            .setTableName(settings.table)
            .setRecordKeyFields(",".join(settings.record_key))
            .setPartitionFields(",".join(settings.partition_by))
            .setOrderingFields(settings.ordering_field)
            .setRecordMergeMode(getattr(self.hudi.common.config.RecordMergeMode, merge_mode(settings)))
            .setKeyGeneratorType(key_generator(settings))
            .setArchiveLogFolder("history" if settings.version is TableVersion.NINE else "archived")
            .setHiveStylePartitioningEnable(True)
            .setUrlEncodePartitioning(True)
            # Instants are compared as text: drivers in two time zones would disagree on what came first.
            .setCommitTimezone(self.hudi.common.model.HoodieTimelineTimeZone.UTC)
            .setTableCreateSchema(self.hudi_schema(columns).toString())
            .build()
        )
        properties.putAll(dict(kept))
        self.hudi.common.table.HoodieTableMetaClient.createTableLayoutOnStorage(
            self._conf, self.path(""), properties, version.getTimelineLayoutVersion().getVersion(), True
        )

    def properties(self) -> dict[str, str]:
        """`hoodie.properties`."""
        return dict(self.meta_client().getTableConfig().getProps())

    def keep(self, kept: Mapping[str, str]) -> None:
        """Write these into the table's properties."""
        properties = self.jvm.java.util.Properties()
        properties.putAll(dict(kept))
        self.hudi.common.table.HoodieTableConfig.update(self.storage(), self.path(".hoodie"), properties)

    def columns(self) -> StructType | None:
        """The table's columns without Hudi's own, or None if it has none yet."""
        found = self.hudi.common.table.TableSchemaResolver(self.meta_client()).getTableSchemaIfPresent(False)
        return self._to_spark(found.get()) if found.isPresent() else None

    def as_stored(self, columns: StructType) -> StructType:
        """Columns as they would come back from a table: a short is an int there."""
        return self._to_spark(self.hudi_schema(columns))

    def hudi_schema(self, columns: StructType) -> Any:
        """The columns as a HoodieSchema. All may be null, as a column that is added later must."""
        nullable = StructType([field.__class__(field.name, field.dataType, True) for field in columns.fields])
        java = self.spark._jsparkSession.parseDataType(nullable.json())
        return self.hudi.HoodieSchemaConversionUtils.convertStructTypeToHoodieSchema(java, *self.record_name())

    def record_name(self) -> tuple[str, str]:
        """Name and namespace of the table's records in Avro."""
        names = self.hudi.HoodieSchemaConversionUtils.getRecordNameAndNamespace(self.settings.table)
        return names._1(), names._2()

    def find(self, batch: int, checkpoint: str, undone: Set[str]) -> tuple[str, list[WriteStat]] | None:
        """Instant and write statistics of the completed commit that was made for a batch, or None.

        Those in `undone` are passed over.

        A checkpoint's batches are committed in their order, and the oldest are archived first. So the first older
        batch that is met says that this one is not there, and the archive is only read if none is met.
        """
        client = self.meta_client()
        for metadata, instant in self._completed(client.getActiveTimeline(), undone):
            marked = _marked(metadata, checkpoint)
            if marked == batch:
                return instant, _write_stats(metadata)
            if marked is not None and marked < batch:
                return None
        archived = client.getArchivedTimeline()
        archived.loadCompletedInstantDetailsInMemory()
        for metadata, instant in self._completed(archived, undone):
            if _marked(metadata, checkpoint) == batch:
                return instant, _write_stats(metadata)
        return None

    def partitions(self) -> list[str]:
        """Paths of all partitions; lists the table."""
        engine = self.hudi.client.common.HoodieSparkEngineContext(self.spark._jsc)
        found = self.hudi.common.fs.FSUtils.getAllPartitionPaths(engine, self.meta_client(), False)
        return [str(path) for path in found if path]

    def names_in(self, partition: str) -> list[str]:
        """Names of all files of a partition, also those that readers do not see (yet); none if there is no such one."""
        storage, folder = self.storage(), self.path(partition)
        # By one call, as `instants_in`.
        return _NAME.findall(storage.listDirectEntries(folder).toString()) if storage.exists(folder) else []

    def behind_half_archived(self) -> int | None:
        """How many commits are newer than clusterings that an archiving has left, cut off; None: it has left none."""
        return behind_half_archived(self.names_in(_TIMELINES[self.settings.version]))

    def create_empty(self, file: str) -> None:
        """An empty file, by its path in the table, if there is none."""
        self._create(self.path(file))

    def create_in_timeline(self, name: str) -> None:
        """An empty file of the active timeline, if there is none of that name."""
        self._create(self.hudi.storage.StoragePath(self.meta_client().getTimelinePath(), name))

    def _create(self, path: Any) -> None:
        storage = self.storage()
        if not storage.exists(path):
            storage.create(path, True).close()

    def delete(self, file: str) -> None:
        """The file, by its path in the table; none is no error."""
        self.storage().deleteFile(self.path(file))

    def commits_since(self, time: datetime) -> int:
        """How many commits, compactions included, have begun since the first one that was completed at that time or
        later: readers of the table as it was then may need what these have replaced."""
        client = self.meta_client()
        zone = client.getTableConfig().getTimelineTimezone().getZoneId()
        form = self.jvm.java.time.format.DateTimeFormatter.ofPattern("yyyyMMddHHmmssSSS").withZone(zone)
        instant = form.format(self.jvm.java.time.Instant.ofEpochMilli(round(time.timestamp() * 1000) - 1))
        commits = client.getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        first = commits.findInstantsModifiedAfterByCompletionTime(instant).firstInstant()
        if not first.isPresent():
            return 0
        return int(commits.findInstantsAfterOrEquals(first.get().requestedTime()).countInstants())

    def newest_time(self, client: Any) -> datetime | None:
        """When the newest instant in the timeline of a meta client, of any state, was begun or completed.

        In version 6 no commit is ordered by completion, which is the time of the object, by the clock of the store; see
        `early_compactions`.
        """
        instants = client.getActiveTimeline()
        begun = " ".join(instants_in(instants))
        times = begun if self.settings.version is TableVersion.SIX else instants.getInstants().toString()
        return newest_time(times, _zone(client))

    def time_of(self, instant: str, client: Any = None) -> datetime:
        """When it was begun. `client`: a meta client of the table, if one is at hand."""
        time = newest_time(instant, _zone(client or self.meta_client()))
        assert time is not None  # an instant is a time
        return time

    def store_time(self) -> datetime:
        """What the store's clock says: the time of an object that is written for it."""
        probe = self.path(".hoodie/lakestream/clock")
        self.storage().create(probe, True).close()
        return datetime.fromtimestamp(self.storage().getPathInfo(probe).getModificationTime() / 1000, UTC)

    def early_compactions(self) -> list[str]:
        """Compactions in the timeline that were completed before they began, by the store's clock."""
        done = self.meta_client().getActiveTimeline().getCommitTimeline().filterCompletedInstants().getInstants()
        return [one.requestedTime() for one in done if one.getCompletionTime() < one.requestedTime()]

    def pending_commits(self, timeline: Any) -> list[str]:
        """Instants of commits of batches in an active timeline that were begun, but not completed; oldest first."""
        return sorted(instants_in(self._commits(timeline).filterInflightsAndRequested()))

    def pending_rollbacks(self, client: Any) -> set[str]:
        """Instants of rollbacks that were begun, but not completed."""
        return instants_in(client.getActiveTimeline().filterPendingRollbackTimeline())

    def forget_markers(self, instants: Iterable[str]) -> None:
        """Delete the markers of what instants have written."""
        for instant in instants:
            self.storage().deleteDirectory(self.path(f".hoodie/.temp/{instant}"))

    def pending_compactions(self) -> list[str]:
        """Instants of compactions that were planned, and perhaps begun, but not completed; oldest first."""
        pending = self.meta_client().getActiveTimeline().filterPendingCompactionTimeline()
        return [instant.requestedTime() for instant in pending.getInstants()]

    def pending_clusterings(self) -> list[str]:
        """The same of clusterings."""
        pending = self.hudi.common.util.ClusteringUtils.getPendingClusteringInstantTimes(self.meta_client())
        return sorted(instant.requestedTime() for instant in pending)

    def batches(self, after: str = "") -> list[str]:
        """Instants of the completed commits of batches in the active timeline that began after one, oldest first."""
        commits = self._commits(self.meta_client().getActiveTimeline())
        return sorted(one for one in instants_in(commits.filterCompletedInstants()) if one > after)

    def newest_batch(self, checkpoint: str) -> tuple[str, int] | None:
        """Instant and number of the newest completed commit of a batch in the active timeline; None: there is none, or
        it is not the checkpoint's."""
        timeline = self.meta_client().getActiveTimeline()
        newest = self._commits(timeline).filterCompletedInstants().getReverseOrderedInstants().findFirst()
        if not newest.isPresent():
            return None
        batch = _marked(timeline.readCommitMetadata(newest.get()), checkpoint)
        return None if batch is None else (newest.get().requestedTime(), batch)

    def batch_at(self, instant: str, checkpoint: str) -> int | None:
        """The batch of a completed commit in the active timeline; None: there is no such commit of the checkpoint."""
        timeline = self.meta_client().getActiveTimeline()
        for found in timeline.getCommitsTimeline().filterCompletedInstants().getInstants():
            if found.requestedTime() == instant:
                return _marked(timeline.readCommitMetadata(found), checkpoint)
        return None

    def savepoints(self) -> dict[str, str]:
        """The comment of each, by the instant of its commit."""
        timeline = self.meta_client().getActiveTimeline()
        saved = timeline.getSavePointTimeline().filterCompletedInstants().getInstants()
        return {one.requestedTime(): str(timeline.readSavepointMetadata(one).getComments()) for one in saved}

    def undoing(self) -> set[str] | None:
        """The completed commits and compactions that a restore is to undo which was begun, and is not completed; None:
        there is none."""
        client = self.meta_client()
        begun = client.getActiveTimeline().getRestoreTimeline().filterInflightsAndRequested().lastInstant()
        if not begun.isPresent():
            return None
        plan = self.hudi.table.action.restore.RestoreUtils.getRestorePlan(client, begun.get())
        return {str(one.getCommitTime()) for one in plan.getInstantsToRollback() if one.getAction() != "compaction"}

    def forget_compactions(self, instants: Iterable[str]) -> None:
        """Take pending compactions out of the timeline. Their files are not touched."""
        client, named = self.meta_client(), set(instants)
        timeline = client.getActiveTimeline()
        for pending in timeline.filterPendingCompactionTimeline().getInstants():
            if (name := pending.requestedTime()) in named:
                timeline.deletePending(pending)
                timeline.deleteInstantFileIfExists(client.getInstantGenerator().getCompactionRequestedInstant(name))

    def meta_client(self) -> Any:
        builder = self.hudi.common.table.HoodieTableMetaClient.builder()
        return builder.setConf(self._conf).setBasePath(self.settings.path).build()

    def storage(self) -> Any:
        """Hudi's file system, with the table's credentials."""
        return self.hudi.storage.HoodieStorageUtils.getStorage(self.path(""), self._conf)

    def path(self, below: str) -> Any:
        """A StoragePath in the table's folder."""
        base = self.settings.path
        return self.hudi.storage.StoragePath(f"{base}/{below}" if below else base)

    def _commits(self, timeline: Any) -> Any:
        """Those of batches; of a merge-on-read table, a `commit` is a compaction."""
        return timeline.getDeltaCommitTimeline() if self.settings.merges_on_read else timeline.getCommitTimeline()

    def _completed(self, timeline: Any, undone: Set[str]) -> Iterator[tuple[Any, str]]:
        commits = timeline.getCommitsTimeline().filterCompletedInstants()
        for instant in commits.getReverseOrderedInstants().toList():
            if instant.requestedTime() not in undone:
                yield timeline.readCommitMetadata(instant), instant.requestedTime()

    def _to_spark(self, schema: Any) -> StructType:
        converted = self.hudi.HoodieSchemaConversionUtils.convertHoodieSchemaToStructType(schema)
        return StructType.fromJson(json.loads(converted.json()))


class SideFiles:
    """Files in a folder of the table's `.hoodie`, where neither readers nor the cleaner look."""

    def __init__(self, table: HudiTable, folder: str) -> None:
        self._table = table
        self._folder = f".hoodie/lakestream/{folder}"

    def put(self, name: str, content: bytes) -> None:
        stream = self._table.storage().create(self._path(name), True)
        try:
            stream.write(content)
        finally:
            stream.close()

    def get(self, name: str) -> bytes:
        stream = self._table.storage().open(self._path(name))
        try:
            return bytes(stream.readAllBytes())
        except Py4JJavaError as error:
            # On a folder Hadoop keeps a checksum beside each file; a killed writer leaves one without the other.
            if error.java_exception.getClass().getSimpleName() != "ChecksumException":
                raise
            logger.warning("%s is cut short; the batch that it belongs to will be written again", name)
            return b""
        finally:
            stream.close()

    def list(self) -> list[str]:
        storage, folder = self._table.storage(), self._table.path(self._folder)
        if not storage.exists(folder):
            return []
        return [entry.getPath().getName() for entry in storage.listDirectEntries(folder)]

    def delete(self, name: str) -> None:
        self._table.storage().deleteFile(self._path(name))

    def clear(self, name: str) -> None:
        self._table.storage().deleteDirectory(self._path(name))

    @property
    def uri(self) -> str:
        """The folder, by the name that Spark knows it by."""
        return f"{self._table.settings.path}/{self._folder}"

    def _path(self, name: str) -> Any:
        return self._table.path(f"{self._folder}/{name}")


def keep_newest(names: SideFiles, most: int) -> list[str]:
    """The newest of files that are named after instants, oldest first; those before them are deleted."""
    found = sorted(names.list())
    for name in found[:-most]:
        forget(names, name)
    return found[-most:]


def forget(names: SideFiles, name: str) -> None:
    """Delete a file that is not needed any more. What stays, where nobody may, stops nothing."""
    try:
        names.delete(name)
    except SPARK_ERRORS as error:
        logger.warning("%s, which is not needed any more, cannot be deleted: %s", name, in_our_words(error))


def instants_in(timeline: Any) -> set[str]:
    """The instants of a timeline, of any state, by one call: with a call for each it would take 50 ms and more."""
    return set(_INSTANT.findall(timeline.getInstants().toString()))


def _marked(metadata: Any, checkpoint: str) -> int | None:
    marks = {key: metadata.getMetadata(key) for key in (BATCH, CHECKPOINT)}
    return batch_of(marks, checkpoint)


def _write_stats(metadata: Any) -> list[WriteStat]:
    by_partition = json.loads(metadata.toJsonString())["partitionToWriteStats"]
    return [stat for stats in by_partition.values() for stat in stats]


def _zone(client: Any) -> tzinfo | None:
    """Of the instants of a meta client's table; None: of whoever writes them."""
    return UTC if client.getTableConfig().getTimelineTimezone().name() == "UTC" else None
