"""Which options of Hudi's writer a document may give, and why not the others: the one list of it.

An option is allowed if it may change at any time, for any table, without a row being lost, doubled or altered: sizes,
memory, parallelism, what compaction picks, the metadata table, storage, metrics. Names are those of Hudi 1.2.0; a test
with Hudi itself knows them all.
"""

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import Enum
from types import MappingProxyType


class Kind(Enum):
    """What a value has to be: of others Hudi tells at the first batch, without the option, or takes them for false."""

    SWITCH = ("true or false", r"(?i:true|false)")
    WHOLE = ("a whole number", r"[+-]?[0-9]{1,18}")
    NUMBER = ("a number", r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
    CODEC = ("uncompressed, snappy, gzip, zstd or lz4_raw", r"(?i:uncompressed|snappy|gzip|zstd|lz4_raw)")
    TEXT = ("a text", r"(?s:.*)")


ALLOWED: Mapping[str, Mapping[str, Kind]] = MappingProxyType(
    {
        "Size and content of files": {
            "hoodie.copyonwrite.insert.auto.split": Kind.SWITCH,
            "hoodie.copyonwrite.insert.split.size": Kind.WHOLE,
            "hoodie.copyonwrite.record.size.estimate": Kind.WHOLE,
            "hoodie.logfile.data.block.max.size": Kind.WHOLE,
            "hoodie.logfile.max.size": Kind.WHOLE,
            "hoodie.logfile.to.parquet.compression.ratio": Kind.NUMBER,
            "hoodie.merge.small.file.group.candidates.limit": Kind.WHOLE,
            "hoodie.parquet.block.size": Kind.WHOLE,
            "hoodie.parquet.compression.codec": Kind.CODEC,
            "hoodie.parquet.compression.ratio": Kind.NUMBER,
            "hoodie.parquet.dictionary.enabled": Kind.SWITCH,
            "hoodie.parquet.field_id.write.enabled": Kind.SWITCH,
            "hoodie.parquet.max.file.size": Kind.WHOLE,
            "hoodie.parquet.page.size": Kind.WHOLE,
            "hoodie.parquet.small.file.limit": Kind.WHOLE,
            "hoodie.parquet.writelegacyformat.enabled": Kind.SWITCH,
            "hoodie.record.size.estimation.threshold": Kind.NUMBER,
        },
        "Work of the `simple` and `bloom` indexes": {
            "hoodie.bloom.index.bucketized.checking": Kind.SWITCH,
            "hoodie.bloom.index.bucketized.checking.enable.dynamic.parallelism": Kind.SWITCH,
            "hoodie.bloom.index.fileid.key.sorting.enable": Kind.SWITCH,
            "hoodie.bloom.index.filter.dynamic.max.entries": Kind.WHOLE,
            "hoodie.bloom.index.filter.type": Kind.TEXT,
            "hoodie.bloom.index.input.storage.level": Kind.TEXT,
            "hoodie.bloom.index.keys.per.bucket": Kind.WHOLE,
            "hoodie.bloom.index.parallelism": Kind.WHOLE,
            "hoodie.bloom.index.prune.by.ranges": Kind.SWITCH,
            "hoodie.bloom.index.use.caching": Kind.SWITCH,
            "hoodie.bloom.index.use.treebased.filter": Kind.SWITCH,
            "hoodie.global.index.reconcile.parallelism": Kind.WHOLE,
            "hoodie.global.simple.index.parallelism": Kind.WHOLE,
            "hoodie.index.bloom.fpp": Kind.NUMBER,
            "hoodie.index.bloom.num_entries": Kind.WHOLE,
            "hoodie.simple.index.input.storage.level": Kind.TEXT,
            "hoodie.simple.index.parallelism": Kind.WHOLE,
            "hoodie.simple.index.use.caching": Kind.SWITCH,
        },
        "What compaction, cleaning and archiving pick": {
            "hoodie.archive.delete.parallelism": Kind.WHOLE,
            "hoodie.clean.incremental.enabled": Kind.SWITCH,
            "hoodie.clean.parallelism": Kind.WHOLE,
            "hoodie.cleaner.incremental.mode": Kind.SWITCH,
            "hoodie.cleaner.parallelism": Kind.WHOLE,
            "hoodie.commits.archival.batch": Kind.WHOLE,
            "hoodie.compaction.daybased.target.partitions": Kind.WHOLE,
            "hoodie.compaction.logfile.num.threshold": Kind.WHOLE,
            "hoodie.compaction.logfile.size.threshold": Kind.WHOLE,
            "hoodie.compaction.strategy": Kind.TEXT,
            "hoodie.compaction.target.io": Kind.WHOLE,
            "hoodie.timeline.compaction.batch.size": Kind.WHOLE,
            "hoodie.timeline.compaction.target.file.max.bytes": Kind.WHOLE,
        },
        "Memory and parallelism": {
            "hoodie.common.diskmap.compression.enabled": Kind.SWITCH,
            "hoodie.common.spillable.diskmap.type": Kind.TEXT,
            "hoodie.file.listing.parallelism": Kind.WHOLE,
            "hoodie.filesystem.view.spillable.dir": Kind.TEXT,
            "hoodie.filesystem.view.spillable.mem": Kind.WHOLE,
            "hoodie.filesystem.view.type": Kind.TEXT,
            "hoodie.finalize.write.parallelism": Kind.WHOLE,
            "hoodie.markers.delete.parallelism": Kind.WHOLE,
            "hoodie.memory.compaction.fraction": Kind.NUMBER,
            "hoodie.memory.compaction.max.size": Kind.WHOLE,
            "hoodie.memory.dfs.buffer.max.size": Kind.WHOLE,
            "hoodie.memory.merge.fraction": Kind.NUMBER,
            "hoodie.memory.merge.max.size": Kind.WHOLE,
            "hoodie.memory.spillable.map.path": Kind.TEXT,
            "hoodie.rollback.parallelism": Kind.WHOLE,
            "hoodie.write.buffer.limit.bytes": Kind.WHOLE,
            "hoodie.write.buffer.record.cache.limit": Kind.WHOLE,
            "hoodie.write.buffer.record.sampling.rate": Kind.WHOLE,
            "hoodie.write.executor.disruptor.buffer.limit.bytes": Kind.WHOLE,
            "hoodie.write.executor.disruptor.wait.strategy": Kind.TEXT,
            "hoodie.write.executor.type": Kind.TEXT,
            "hoodie.write.status.storage.level": Kind.TEXT,
            "hoodie.write.tagged.record.storage.level": Kind.TEXT,
        },
        "The metadata table": {
            "hoodie.metadata.compact.max.delta.commits": Kind.WHOLE,
            "hoodie.metadata.enable": Kind.SWITCH,
            "hoodie.metadata.index.bloom.filter.column.list": Kind.TEXT,
            "hoodie.metadata.index.bloom.filter.enable": Kind.SWITCH,
            "hoodie.metadata.index.bloom.filter.file.group.count": Kind.WHOLE,
            "hoodie.metadata.index.bloom.filter.parallelism": Kind.WHOLE,
            "hoodie.metadata.index.column.stats.column.list": Kind.TEXT,
            "hoodie.metadata.index.column.stats.enable": Kind.SWITCH,
            "hoodie.metadata.index.column.stats.file.group.count": Kind.WHOLE,
            "hoodie.metadata.index.column.stats.max.columns.to.index": Kind.WHOLE,
            "hoodie.metadata.index.column.stats.parallelism": Kind.WHOLE,
            "hoodie.metadata.max.init.parallelism": Kind.WHOLE,
            "hoodie.metadata.max.logfile.size": Kind.WHOLE,
            "hoodie.metadata.max.reader.buffer.size": Kind.WHOLE,
            "hoodie.metadata.max.reader.memory": Kind.WHOLE,
            "hoodie.metadata.metrics.enable": Kind.SWITCH,
            "hoodie.metadata.optimized.log.blocks.scan.enable": Kind.SWITCH,
            "hoodie.metadata.spillable.map.path": Kind.TEXT,
        },
        "Storage and markers": {
            "hoodie.consistency.check.enabled": Kind.SWITCH,
            "hoodie.consistency.check.initial_interval_ms": Kind.WHOLE,
            "hoodie.consistency.check.max_checks": Kind.WHOLE,
            "hoodie.consistency.check.max_interval_ms": Kind.WHOLE,
            "hoodie.embed.timeline.server": Kind.SWITCH,
            "hoodie.embed.timeline.server.gzip": Kind.SWITCH,
            "hoodie.embed.timeline.server.port": Kind.WHOLE,
            "hoodie.embed.timeline.server.threads": Kind.WHOLE,
            "hoodie.filesystem.operation.retry.enable": Kind.SWITCH,
            "hoodie.filesystem.operation.retry.exceptions": Kind.TEXT,
            "hoodie.filesystem.operation.retry.initial_interval_ms": Kind.WHOLE,
            "hoodie.filesystem.operation.retry.max_interval_ms": Kind.WHOLE,
            "hoodie.filesystem.operation.retry.max_numbers": Kind.WHOLE,
            "hoodie.markers.timeline_server_based.batch.interval_ms": Kind.WHOLE,
            "hoodie.markers.timeline_server_based.batch.num_threads": Kind.WHOLE,
            "hoodie.write.markers.type": Kind.TEXT,
        },
        "Metrics and callbacks": {
            "hoodie.metrics.executor.enable": Kind.SWITCH,
            "hoodie.metrics.graphite.host": Kind.TEXT,
            "hoodie.metrics.graphite.metric.prefix": Kind.TEXT,
            "hoodie.metrics.graphite.port": Kind.WHOLE,
            "hoodie.metrics.graphite.report.period.seconds": Kind.WHOLE,
            "hoodie.metrics.jmx.host": Kind.TEXT,
            "hoodie.metrics.jmx.port": Kind.WHOLE,
            "hoodie.metrics.lock.enable": Kind.SWITCH,
            "hoodie.metrics.on": Kind.SWITCH,
            "hoodie.metrics.prometheus.port": Kind.WHOLE,
            "hoodie.metrics.pushgateway.delete.on.shutdown": Kind.SWITCH,
            "hoodie.metrics.pushgateway.host": Kind.TEXT,
            "hoodie.metrics.pushgateway.job.name": Kind.TEXT,
            "hoodie.metrics.pushgateway.port": Kind.WHOLE,
            "hoodie.metrics.pushgateway.random.job.name.suffix": Kind.SWITCH,
            "hoodie.metrics.pushgateway.report.labels": Kind.TEXT,
            "hoodie.metrics.pushgateway.report.period.seconds": Kind.WHOLE,
            "hoodie.metrics.reporter.metricsname.prefix": Kind.TEXT,
            "hoodie.metrics.reporter.type": Kind.TEXT,
            "hoodie.write.commit.callback.http.api.key": Kind.TEXT,
            "hoodie.write.commit.callback.http.custom.headers": Kind.TEXT,
            "hoodie.write.commit.callback.http.timeout.seconds": Kind.WHOLE,
            "hoodie.write.commit.callback.http.url": Kind.TEXT,
            "hoodie.write.commit.callback.on": Kind.SWITCH,
        },
    }
)
"""By what they are about, and with what may be given."""

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

_KINDS = {name: kind for kinds in ALLOWED.values() for name, kind in kinds.items()}

NAMES = frozenset(_KINDS)
"""All that are allowed."""


def problem_of_value(name: str, value: str) -> str | None:
    """Why an option that is allowed cannot have a value, and what to do; None: it can."""
    what, pattern = _KINDS[name].value
    return None if re.fullmatch(pattern, value) else f"{name!r} cannot be {value!r}; give {what}"


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
