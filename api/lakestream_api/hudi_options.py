"""Which options of Hudi's writer a document may give, and why not the others: the one list of it.

An option is allowed if it may change at any time, for any table, without a row being lost, doubled or altered: sizes,
memory, parallelism, what compaction picks, the metadata table, storage, metrics. Names are those of Hudi 1.2.0; a test
with Hudi itself knows them all.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType

ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Size and content of files": (
            "hoodie.copyonwrite.insert.auto.split",
            "hoodie.copyonwrite.insert.split.size",
            "hoodie.copyonwrite.record.size.estimate",
            "hoodie.logfile.data.block.max.size",
            "hoodie.logfile.max.size",
            "hoodie.logfile.to.parquet.compression.ratio",
            "hoodie.merge.small.file.group.candidates.limit",
            "hoodie.parquet.block.size",
            "hoodie.parquet.compression.codec",
            "hoodie.parquet.compression.ratio",
            "hoodie.parquet.dictionary.enabled",
            "hoodie.parquet.field_id.write.enabled",
            "hoodie.parquet.max.file.size",
            "hoodie.parquet.page.size",
            "hoodie.parquet.small.file.limit",
            "hoodie.parquet.writelegacyformat.enabled",
            "hoodie.record.size.estimation.threshold",
        ),
        "Work of the `simple` and `bloom` indexes": (
            "hoodie.bloom.index.bucketized.checking",
            "hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism",
            "hoodie.bloom.index.fileid.key.sorting.enable",
            "hoodie.bloom.index.filter.dynamic.max.entries",
            "hoodie.bloom.index.filter.type",
            "hoodie.bloom.index.input.storage.level",
            "hoodie.bloom.index.keys.per.bucket",
            "hoodie.bloom.index.parallelism",
            "hoodie.bloom.index.prune.by.ranges",
            "hoodie.bloom.index.use.caching",
            "hoodie.bloom.index.use.treebased.filter",
            "hoodie.global.index.reconcile.parallelism",
            "hoodie.global.simple.index.parallelism",
            "hoodie.index.bloom.fpp",
            "hoodie.index.bloom.num_entries",
            "hoodie.simple.index.input.storage.level",
            "hoodie.simple.index.parallelism",
            "hoodie.simple.index.use.caching",
        ),
        "What compaction, cleaning and archiving pick": (
            "hoodie.archive.delete.parallelism",
            "hoodie.clean.incremental.enabled",
            "hoodie.clean.parallelism",
            "hoodie.cleaner.incremental.mode",
            "hoodie.cleaner.parallelism",
            "hoodie.commits.archival.batch",
            "hoodie.compaction.daybased.target.partitions",
            "hoodie.compaction.logfile.num.threshold",
            "hoodie.compaction.logfile.size.threshold",
            "hoodie.compaction.strategy",
            "hoodie.compaction.target.io",
            "hoodie.timeline.compaction.batch.size",
            "hoodie.timeline.compaction.target.file.max.bytes",
        ),
        "Memory and parallelism": (
            "hoodie.common.diskmap.compression.enabled",
            "hoodie.common.spillable.diskmap.type",
            "hoodie.file.listing.parallelism",
            "hoodie.filesystem.view.spillable.dir",
            "hoodie.filesystem.view.spillable.mem",
            "hoodie.filesystem.view.type",
            "hoodie.finalize.write.parallelism",
            "hoodie.markers.delete.parallelism",
            "hoodie.memory.compaction.fraction",
            "hoodie.memory.compaction.max.size",
            "hoodie.memory.dfs.buffer.max.size",
            "hoodie.memory.merge.fraction",
            "hoodie.memory.merge.max.size",
            "hoodie.memory.spillable.map.path",
            "hoodie.rollback.parallelism",
            "hoodie.write.buffer.limit.bytes",
            "hoodie.write.buffer.record.cache.limit",
            "hoodie.write.buffer.record.sampling.rate",
            "hoodie.write.executor.disruptor.buffer.limit.bytes",
            "hoodie.write.executor.disruptor.wait.strategy",
            "hoodie.write.executor.type",
            "hoodie.write.status.storage.level",
            "hoodie.write.tagged.record.storage.level",
        ),
        "The metadata table": (
            "hoodie.metadata.compact.max.delta.commits",
            "hoodie.metadata.enable",
            "hoodie.metadata.index.bloom.filter.column.list",
            "hoodie.metadata.index.bloom.filter.enable",
            "hoodie.metadata.index.bloom.filter.file.group.count",
            "hoodie.metadata.index.bloom.filter.parallelism",
            "hoodie.metadata.index.column.stats.column.list",
            "hoodie.metadata.index.column.stats.enable",
            "hoodie.metadata.index.column.stats.file.group.count",
            "hoodie.metadata.index.column.stats.max.columns.to.index",
            "hoodie.metadata.index.column.stats.parallelism",
            "hoodie.metadata.max.init.parallelism",
            "hoodie.metadata.max.logfile.size",
            "hoodie.metadata.max.reader.buffer.size",
            "hoodie.metadata.max.reader.memory",
            "hoodie.metadata.metrics.enable",
            "hoodie.metadata.optimized.log.blocks.scan.enable",
            "hoodie.metadata.spillable.map.path",
        ),
        "Storage and markers": (
            "hoodie.consistency.check.enabled",
            "hoodie.consistency.check.initial_interval_ms",
            "hoodie.consistency.check.max_checks",
            "hoodie.consistency.check.max_interval_ms",
            "hoodie.embed.timeline.server",
            "hoodie.embed.timeline.server.gzip",
            "hoodie.embed.timeline.server.port",
            "hoodie.embed.timeline.server.threads",
            "hoodie.filesystem.operation.retry.enable",
            "hoodie.filesystem.operation.retry.exceptions",
            "hoodie.filesystem.operation.retry.initial_interval_ms",
            "hoodie.filesystem.operation.retry.max_interval_ms",
            "hoodie.filesystem.operation.retry.max_numbers",
            "hoodie.markers.timeline_server_based.batch.interval_ms",
            "hoodie.markers.timeline_server_based.batch.num_threads",
            "hoodie.write.markers.type",
        ),
        "Metrics and callbacks": (
            "hoodie.metrics.executor.enable",
            "hoodie.metrics.graphite.host",
            "hoodie.metrics.graphite.metric.prefix",
            "hoodie.metrics.graphite.port",
            "hoodie.metrics.graphite.report.period.seconds",
            "hoodie.metrics.jmx.host",
            "hoodie.metrics.jmx.port",
            "hoodie.metrics.lock.enable",
            "hoodie.metrics.on",
            "hoodie.metrics.prometheus.port",
            "hoodie.metrics.pushgateway.delete.on.shutdown",
            "hoodie.metrics.pushgateway.host",
            "hoodie.metrics.pushgateway.job.name",
            "hoodie.metrics.pushgateway.port",
            "hoodie.metrics.pushgateway.random.job.name.suffix",
            "hoodie.metrics.pushgateway.report.labels",
            "hoodie.metrics.pushgateway.report.period.seconds",
            "hoodie.metrics.reporter.metricsname.prefix",
            "hoodie.metrics.reporter.type",
            "hoodie.write.commit.callback.http.api.key",
            "hoodie.write.commit.callback.http.custom.headers",
            "hoodie.write.commit.callback.http.timeout.seconds",
            "hoodie.write.commit.callback.http.url",
            "hoodie.write.commit.callback.on",
        ),
    }
)
"""By what they are about."""

OWNED: Mapping[str, str] = MappingProxyType(
    {
        "hoodie.table.type": "tableType",
        "hoodie.datasource.write.table.type": "tableType",
        "hoodie.datasource.write.operation": "operation",
        "hoodie.table.recordkey.fields": "recordKey",
        "hoodie.datasource.write.recordkey.field": "recordKey",
        "hoodie.table.precombine.field": "orderingField",
        "hoodie.table.ordering.fields": "orderingField",
        "hoodie.datasource.write.precombine.field": "orderingField",
        "hoodie.table.partition.fields": "partitionBy",
        "hoodie.datasource.write.partitionpath.field": "partitionBy",
        "hoodie.index.type": "index.type",
        "hoodie.bucket.index.num.buckets": "index.buckets",
        "hoodie.compact.inline.max.delta.commits": "compaction.everyCommits",
        "hoodie.clean.policy": "cleaning.retainHours",
        "hoodie.cleaner.policy": "cleaning.retainHours",
        "hoodie.clean.commits.retained": "cleaning.retainHours",
        "hoodie.cleaner.commits.retained": "cleaning.retainHours",
        "hoodie.clean.hours.retained": "cleaning.retainHours",
        "hoodie.cleaner.hours.retained": "cleaning.retainHours",
    }
)
"""Options that say the same as a field: two truths could contradict each other."""

_FINDS = "by it LakeStream finds a batch that is visible already"
_LOCKS = "ingestion and the compaction beside it could undo each other's commits"
_ONE_ROW = "the newest version of a key, and only that, would not be kept any more"
_ONE_EACH = "a record could be dropped, or written twice"
_BESIDE = "LakeStream runs compaction, cleaning and archiving itself, beside the batches"
_PLACE = (
    "it decides in which file a key is, and a key that is in two files is two rows (a table that was made with it has "
    "to be written anew, with another path and checkpoint)"
)
_SLOTS = "LakeStream sets it to the task slots of each batch"
_DATASOURCE = "only Hudi's Spark data source and its tools heed it, and LakeStream writes through Hudi's client"
_SYNC = f"{_DATASOURCE}; set catalog.glue or catalog.hive instead, which keep a catalog up to date"
_SYNC_BY_TOOL = f"{_DATASOURCE}; sync the table with such a catalog by a tool of Hudi's"
_REMOVES = "it removes or rewrites data beside the batches, which LakeStream knows nothing of"
_CLUSTERS = "LakeStream merges the small files of tables of inserts itself, by clustering.targetFileSize"
_OTHER = "LakeStream does not use what it is about"
_TABLE = "it is a property of the table, which LakeStream makes"
_ALTERS = "values would come out of the table other than they went in"

REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "hoodie.allow.empty.commit": _FINDS,
        "hoodie.datasource.write.commitmeta.key.prefix": _FINDS,
        "hoodie.keep.max.commits": f"{_FINDS}; it follows from cleaning.retainHours",
        "hoodie.keep.min.commits": f"{_FINDS}; it follows from cleaning.retainHours",
        "hoodie.clean.failed.writes.policy": _LOCKS,
        "hoodie.cleaner.policy.failed.writes": _LOCKS,
        "hoodie.client.heartbeat.": _LOCKS,
        "hoodie.auto.adjust.lock.configs": _LOCKS,
        "hoodie.write.concurrency.": _LOCKS,
        "hoodie.write.lock.": _LOCKS,
        "hoodie.metadata.write.concurrency.mode": _LOCKS,
        "hoodie.combine.before.upsert": _ONE_ROW,
        "hoodie.compaction.payload.class": _ONE_ROW,
        "hoodie.compaction.record.merger.strategy": _ONE_ROW,
        "hoodie.datasource.write.payload.class": _ONE_ROW,
        "hoodie.datasource.write.record.merger.": _ONE_ROW,
        "hoodie.payload.": _ONE_ROW,
        "hoodie.record.merge.": _ONE_ROW,
        "hoodie.write.record.merge.": _ONE_ROW,
        "hoodie.combine.before.": _ONE_EACH,
        "hoodie.datasource.insert.dup.policy": _ONE_EACH,
        "hoodie.datasource.write.insert.drop.duplicates": _ONE_EACH,
        "hoodie.merge.allow.duplicate.on.inserts": _ONE_EACH,
        "hoodie.write.ignore.failed": _ONE_EACH,
        "hoodie.memory.writestatus.failure.fraction": _ONE_EACH,
        "hoodie.archive.automatic": _BESIDE,
        "hoodie.archive.async": _BESIDE,
        "hoodie.clean.automatic": _BESIDE,
        "hoodie.clean.async": _BESIDE,
        "hoodie.compact.inline": _BESIDE,
        "hoodie.compact.schedule.inline": _BESIDE,
        "hoodie.datasource.compaction.async.enable": _BESIDE,
        "hoodie.table.services.": _BESIDE,
        "hoodie.table.service.manager.": _BESIDE,
        "hoodie.bloom.index.update.partition.path": _PLACE,
        "hoodie.bucket.index.": _PLACE,
        "hoodie.datasource.write.drop.partition.columns": _PLACE,
        "hoodie.datasource.write.hive_style_partitioning": _PLACE,
        "hoodie.datasource.write.keygenerator.": _PLACE,
        "hoodie.datasource.write.partitionpath.": _PLACE,
        "hoodie.datasource.write.slash.separated.date.partitioning": _PLACE,
        "hoodie.deltastreamer.keygen.": _PLACE,
        "hoodie.fileid.prefix.provider.class": _PLACE,
        "hoodie.index.": _PLACE,
        "hoodie.keygen.": _PLACE,
        "hoodie.record.index.update.partition.path": _PLACE,
        "hoodie.simple.index.update.partition.path": _PLACE,
        "hoodie.storage.layout.": _PLACE,
        "hoodie.table.keygenerator.": _PLACE,
        "hoodie.write.complex.keygen.": _PLACE,
        "hoodie.parquet.bloom.filter.enabled": "it follows from index.type, which needs these filters or does not",
        "hoodie.populate.meta.fields": "compaction and time travel need these columns",
        "hoodie.parquet.outputtimestamptype": _ALTERS,
        "hoodie.parquet.write.utc-timezone.enabled": _ALTERS,
        "hoodie.insert.shuffle.parallelism": _SLOTS,
        "hoodie.upsert.shuffle.parallelism": _SLOTS,
        "hoodie.datasource.hive_sync.": _SYNC,
        "hoodie.datasource.meta.sync.": _SYNC,
        "hoodie.datasource.meta_sync.": _SYNC,
        "hoodie.gcp.bigquery.": _SYNC_BY_TOOL,
        "hoodie.meta.sync.": _SYNC,
        "hoodie.meta_sync.": _SYNC,
        "hoodie.datasource.": _DATASOURCE,
        "hoodie.deltastreamer.": _DATASOURCE,
        "hoodie.streamer.": _DATASOURCE,
        "hoodie.errortable.": _DATASOURCE,
        "hoodie.clustering.": _CLUSTERS,
        "hoodie.layout.optimize.": _REMOVES,
        "hoodie.log.compaction.": _REMOVES,
        "hoodie.partition.ttl.": _REMOVES,
        "hoodie.bootstrap.": _OTHER,
        "hoodie.bulkinsert.": _OTHER,
        "hoodie.metaserver.": _OTHER,
        "hoodie.orc.": _OTHER,
        "hoodie.table.": _TABLE,
        "hoodie.timeline.layout.version": _TABLE,
        "hoodie.write.table.version": _TABLE,
    }
)
"""Why others are not allowed: by their names, or, with a dot at the end, by what these begin with; the first one
counts, and `ALLOWED` and `OWNED` come before. Of what is in no list nobody has made sure that it is safe."""

NAMES = frozenset(name for names in ALLOWED.values() for name in names)
"""All that are allowed."""


def problem_of_option(name: str) -> str | None:
    """Why an option cannot be given, and what to do; None: it can."""
    if not name.startswith("hoodie."):
        return f"{name!r} is not an option of Hudi; their names begin with 'hoodie.'"
    if name in NAMES:
        return None
    if (field := OWNED.get(name)) is not None:
        return f"{name!r} has a field of its own; set {field} instead"
    if (why := REFUSED.get(name)) is None:
        why = next((why for key, why in REFUSED.items() if key.endswith(".") and name.startswith(key)), None)
        # Of a family that is refused, only what is hardly anything but a slip.
        if near := get_close_matches(name, (*NAMES, *OWNED), n=1, cutoff=0.9 if why is None else 0.95):
            return f"{name!r} is not an option that can be given; did you mean {near[0]!r}?"
    if why is None:
        return f"{name!r} is not one of the options that can be given, which docs/hudi.md lists; remove it"
    return f"{name!r} cannot be given, because {why}; remove it"
