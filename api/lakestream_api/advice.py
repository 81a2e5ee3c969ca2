"""What a valid document may still suffer from: told, and not refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import timedelta

from lakestream_api.quantities import format_duration
from lakestream_api.resource import LakeStream
from lakestream_api.writers import LEAST_HOURS_RETAINED, Compression, HudiOutput, IndexType, Operation, TableType

READS_PER_SECOND = 5
"""GetRecords calls that a shard answers, all polling consumers together (a quota of Kinesis that cannot be raised)."""

READS_PER_BATCH = 2
"""GetRecords calls that a writer makes of a shard for a batch: to plan it, and to read it; one more per 10 MB."""

SUBSCRIBED = timedelta(seconds=5)
"""For so long a consumer of enhanced fan-out has a shard's subscription for itself (a limit of SubscribeToShard). A
batch of a writer that has one is planned by asking, and pushed."""

MANY_COMMITS = 900
"""With more, batches of a Hudi table take twice as long as with a few, or longer (measured; docs/hudi.md)."""

FEW_COMMITS = 360
"""An hour of batches of 10 s."""

SOON = timedelta(seconds=30)
"""From one compaction to the next: of 10 s they slow batches down, of a minute far less (measured; docs/hudi.md)."""

LATER = timedelta(minutes=1)
"""The same, as it is advised."""

_SMALL_FILES = "hoodie.parquet.small.file.limit"


def advice(document: LakeStream) -> Iterator[str]:
    """One sentence or two for each, with the field that it is about."""
    yield from _throttled_reads(document)
    yield from _rare_subscriptions(document)
    yield from _many_commits(document)
    yield from _many_compactions(document)
    yield from _without_effect(document)
    yield from _codecs_that_few_read(document)
    yield from _windows_that_never_come(document)


def _throttled_reads(document: LakeStream) -> Iterator[str]:
    trigger, writers = document.spec.trigger, document.spec.writers
    pushed = [writer for writer in writers if writer.consumer_arn is not None and trigger.interval >= SUBSCRIBED]
    reads = READS_PER_BATCH * len(writers) - len(pushed)
    least = timedelta(seconds=reads / READS_PER_SECOND)
    if trigger.interval < least:
        asking = _count(len(writers))
        yield (
            f"spec.trigger.interval: a shard answers {READS_PER_SECOND} reads a second, of all consumers together, and "
            f"{asking} may ask {READS_PER_BATCH} each in {format_duration(trigger.interval)}: some will be "
            f"throttled, and batches come later than asked for. Give it {format_duration(least)} or more."
        )


def _rare_subscriptions(document: LakeStream) -> Iterator[str]:
    interval = document.spec.trigger.interval
    for index, writer in enumerate(document.spec.writers):
        if writer.consumer_arn is not None and interval < SUBSCRIBED:
            yield (
                f"spec.writers[{index}].consumerArn: a consumer may subscribe to a shard once in "
                f"{format_duration(SUBSCRIBED)}: of batches every {format_duration(interval)} the others ask for their "
                f"records, as without it. Give spec.trigger.interval {format_duration(SUBSCRIBED)} or more."
            )


def _many_commits(document: LakeStream) -> Iterator[str]:
    interval = document.spec.trigger.interval
    few = max(LEAST_HOURS_RETAINED, round(FEW_COMMITS * interval / timedelta(hours=1), 2))
    for here, table in _tables(document):
        hours = table.cleaning.retain_hours
        if (commits := round(timedelta(hours=hours) / interval)) > MANY_COMMITS:
            yield (
                f"{here}.cleaning.retainHours: {hours:g} at a batch every "
                f"{format_duration(interval)} are {commits:,} commits to keep, and with them each batch takes longer. "
                f"Give it {few:g}, if queries take no longer; or spec.trigger.interval more."
            )


def _many_compactions(document: LakeStream) -> Iterator[str]:
    interval = document.spec.trigger.interval
    for here, table in _tables(document):
        commits = table.compaction.every_commits
        if table.table_type is TableType.MERGE_ON_READ and (every := commits * interval) < SOON:
            yield (
                f"{here}.compaction.everyCommits: {commits} at a batch every "
                f"{format_duration(interval)} are a compaction every {format_duration(every)}, each of which writes "
                f"the files anew that batches have touched. Give it {math.ceil(LATER / interval)}."
            )


def _without_effect(document: LakeStream) -> Iterator[str]:
    for here, table in _tables(document):
        index, inserts = table.index, table.operation is Operation.INSERT
        if inserts or index.type is not IndexType.BUCKET:
            why = "inserts look no key up" if inserts else f"the index {index.type.value} has no buckets"
            for name, given in (("buckets", index.buckets), ("expectedPartitionSize", index.expected_partition_size)):
                if given is not None:
                    yield f"{here}.index.{name}: has no effect, since {why}. Remove it."
        if table.clustering is not None and _SMALL_FILES in table.options:
            yield (
                f"{here}.options[{_SMALL_FILES}]: has no effect with clustering, where batches add to no file that is "
                "there. Remove it; clustering.targetFileSize says which files are merged."
            )


def _codecs_that_few_read(document: LakeStream) -> Iterator[str]:
    for number, writer in enumerate(document.spec.writers):
        files = writer.json_files
        if files is not None and files.catalog is not None and files.compression is Compression.ZSTD:
            yield (
                f"spec.writers[{number}].json.compression: JSON lines with zstd, a stock Spark does not read (it needs "
                "Hadoop's native libraries), nor does Redshift Spectrum's documentation name it. Give it gzip, unless "
                "neither of them reads the table of the catalog."
            )


def _windows_that_never_come(document: LakeStream) -> Iterator[str]:
    scaling = document.spec.scaling
    for name, windows in (("excludedWindows", scaling.excluded_windows), ("schedule", scaling.schedule)):
        for number, window in enumerate(windows):
            if not window.comes:
                yield (
                    f"spec.scaling.{name}[{number}].cron: {window.cron!r} names a day that none of its months has: the "
                    "window never begins. Fields are minute, hour, day of month, month and day of week."
                )


def _tables(document: LakeStream) -> Iterator[tuple[str, HudiOutput]]:
    """The Hudi tables, each with its field."""
    for number, writer in enumerate(document.spec.writers):
        if writer.hudi is not None:
            yield f"spec.writers[{number}].hudi", writer.hudi


def _count(writers: int) -> str:
    return "one writer" if writers == 1 else f"{writers} writers"
