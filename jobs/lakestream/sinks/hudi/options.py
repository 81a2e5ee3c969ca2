"""The options that Hudi is given: pure."""

from __future__ import annotations

from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
)

from lakestream.sinks.hudi.settings import HudiSettings
from lakestream_api import IndexType, merged_below

KEY_GENERATORS = {
    "NON_PARTITION": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    "SIMPLE": "org.apache.hudi.keygen.SimpleKeyGenerator",
    "COMPLEX": "org.apache.hudi.keygen.ComplexKeyGenerator",
}

PARTITION_PATHS = {
    "hoodie.datasource.write.hive_style_partitioning": "true",
    # A value with a slash in it would be two folders.
    "hoodie.datasource.write.partitionpath.urlencode": "true",
}
"""How partition paths are made of values; options, and properties of the table."""

MARKED_COMMITS = 20
"""Commits that stay in the active timeline at least, with our marks in them. Two plans at most are without a commit
when a driver starts; the rest is for writers beside us (a backfill, a compaction by hand)."""


def write_options(settings: HudiSettings) -> dict[str, str]:
    """Everything that the table is written with. Of the document's own options, `lakestream_api` has let through those
    that can do no harm."""
    return {
        **TUNED,
        **_table(settings),
        **_version(settings),
        **_index(settings),
        **retention(0),
        **settings.options,
        **_clustering(settings),
        **_REQUIRED,
    }


def key_generator(settings: HudiSettings) -> str:
    """Type of the key generator: the cheapest that can make the record key and the partition path."""
    if not settings.partition_by:
        return "NON_PARTITION"
    single = len(settings.record_key) == 1 and len(settings.partition_by) == 1
    return "SIMPLE" if single else "COMPLEX"


TUNED = {
    # Measured with 1,000 rows a batch: the metadata table doubles to triples the time of a commit. It pays with very
    # many files per partition, on a store that lists slowly; then hudi.options can turn it on before the first start.
    "hoodie.metadata.enable": "false",
    # Markers by a server need one started for each commit; plain files cost one small object per file written.
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    # Hudi 1.2.0 takes gzip, which needs more CPU for files of the same size. Later releases take zstd as well, with
    # Spark 3.5 and newer (Hudi's issue 19684).
    "hoodie.parquet.compression.codec": "zstd",
}
"""What a document may set otherwise."""

FAILED_WRITES = "hoodie.clean.failed.writes.policy"

_REQUIRED = {
    # Compaction commits from a second thread of this process.
    "hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL",
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider",
    # Whether a writer is alive Hudi tells by its heartbeat, an object with the time of the store, whose age is told by
    # this machine's clock: with two minutes' difference cleaning undoes the very commit that is being written. Who may
    # write is up to our log, and what a dead driver has begun is undone by the sink. Not EAGER either: that refuses to
    # undo what others have followed, and every start would fail once a request of a dead driver has come late.
    FAILED_WRITES: "NEVER",
    # Nobody else writes, so nobody changes columns meanwhile. To find that out, each commit reads how the clusterings
    # before it began, and fails where an archiving was cut off that had removed this already.
    "hoodie.write.concurrency.schema.conflict.resolution.enable": "false",
    # A batch whose rows were all overtaken still leaves its mark.
    "hoodie.allow.empty.commit": "true",
    "hoodie.combine.before.upsert": "true",
    "hoodie.combine.before.insert": "false",
    "hoodie.merge.allow.duplicate.on.inserts": "true",
    # Not `hoodie.table.services.enabled=false`: Hudi logs a warning for each service on each commit.
    "hoodie.compact.inline": "false",
    "hoodie.compact.schedule.inline": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}

ALONE = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
"""For who knows that nobody else writes: a rollback that was cut off is gone on with, whatever its heartbeat says."""


def _table(settings: HudiSettings) -> dict[str, str]:
    options = {
        "hoodie.table.name": settings.table,
        "hoodie.datasource.write.table.type": settings.table_type.value,
        "hoodie.datasource.write.operation": settings.operation.value,
        "hoodie.datasource.write.recordkey.field": ",".join(settings.record_key),
        "hoodie.datasource.write.partitionpath.field": ",".join(settings.partition_by),
        "hoodie.datasource.write.keygenerator.class": KEY_GENERATORS[key_generator(settings)],
        **PARTITION_PATHS,
        "hoodie.record.merge.mode": merge_mode(settings),
    }
    if settings.ordering_field is not None:
        options["hoodie.table.ordering.fields"] = settings.ordering_field
        options["hoodie.datasource.write.precombine.field"] = settings.ordering_field
    return options


def _version(settings: HudiSettings) -> dict[str, str]:
    return {
        "hoodie.write.table.version": str(settings.version.value),
        # By itself, a writer of a later version makes one of its own of any table.
        "hoodie.write.auto.upgrade": "false",
        # Of keys of one column in partitions of several, which Hudi wrote in two ways; this is the one writer here.
        "hoodie.write.complex.keygen.validation.enable": "false",
    }


_SPARK_MERGERS = ("org.apache.hudi.DefaultSparkRecordMerger", "org.apache.hudi.OverwriteWithLatestSparkRecordMerger")
"""Hudi takes the one of its table's merge mode."""

_SAME_NAMES = (StringType, ByteType, ShortType, IntegerType, LongType, BooleanType, DateType)
"""Types of whose values Hudi makes the same keys and partitions, whichever kind of records it has. Of a timestamp it
makes microseconds or a time in milliseconds, of bytes their digits or the address of a Java object."""


def record_options(settings: HudiSettings, columns: StructType) -> dict[str, str]:
    """As what rows go through Hudi: as Avro, or as Spark has them.

    To be made Avro and back is much of the CPU of a batch that rewrites its partition (docs/benchmarks.md). Log files
    would have their rows as Parquet otherwise, which not all readers of version 6 take. If a global index finds a key
    in another partition, Hudi 1.2.0 reads the new one from the wrong place of a row of Spark's: a folder of some bytes.
    """
    named = [columns[name].dataType for name in (*settings.record_key, *settings.partition_by)]
    if settings.merges_on_read or settings.is_global or not all(isinstance(type, _SAME_NAMES) for type in named):
        return {}
    return {"hoodie.write.record.merge.custom.implementation.classes": ",".join(_SPARK_MERGERS)}


def merge_mode(settings: HudiSettings) -> str:
    """Which of two versions of a key wins: the one with the higher ordering value, whichever was written first."""
    return "COMMIT_TIME_ORDERING" if settings.ordering_field is None else "EVENT_TIME_ORDERING"


def _clustering(settings: HudiSettings) -> dict[str, str]:
    if settings.cluster_into is None:
        return {}
    return {
        # A batch adds to no file that is there. So what is clustered beside it is never what it writes, and none of its
        # rows can be lost behind a plan that was made meanwhile.
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.clustering.plan.strategy.target.file.max.bytes": str(settings.cluster_into),
        "hoodie.clustering.plan.strategy.small.file.limit": str(merged_below(settings.cluster_into)),
        "hoodie.clustering.plan.strategy.single.group.clustering.enabled": "false",
        "hoodie.clustering.async.max.commits": "1",
        "hoodie.clustering.inline.max.commits": "1",
    }


def _index(settings: HudiSettings) -> dict[str, str]:
    if not settings.upserts:
        # Inserts look nothing up. Not the bucket index: it would put them into log files, which are merged by key.
        return {"hoodie.index.type": "SIMPLE"}
    if settings.index is not IndexType.BUCKET:
        return {"hoodie.index.type": settings.index.value.upper()}
    return {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.num.buckets": str(settings.buckets),
        # Nobody asks it, and it adds 430 KB to each base file, however few rows that has.
        "hoodie.parquet.bloom.filter.enabled": "false",
    }


def retention(commits: int) -> dict[str, str]:
    """Options by which cleaning keeps what readers of any of the last commits need, and archiving these commits.

    Cleaning is by count because Hudi's own policy by hours (`KEEP_LATEST_BY_HOURS`) tells the time by the JVM's zone.
    So commits are counted before each of the two.

    Args:
        commits: how many; at least the last one is kept in any case.
    """
    commits = max(commits, 1)
    # Hudi wants the active timeline to reach further back than the cleaner.
    keep = max(commits + 10, MARKED_COMMITS)
    return {
        "hoodie.clean.policy": "KEEP_LATEST_COMMITS",
        "hoodie.clean.commits.retained": str(commits),
        "hoodie.keep.min.commits": str(keep),
        "hoodie.keep.max.commits": str(keep + 10),
    }


def kept(commits: int) -> dict[str, str]:
    """Options by which archiving leaves fewer than so many commits, whatever cleaning keeps; Hudi takes one more along
    than it has to."""
    return {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": str(commits - 1),
        "hoodie.keep.max.commits": str(commits),
    }
