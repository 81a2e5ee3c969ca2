"""What a valid document may still suffer from: told, and not refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from lakestream_api.quantities import format_duration
from lakestream_api.resource import LakeStream

READS_PER_SECOND = 5
"""GetRecords calls that a shard answers, all polling consumers together (a quota of Kinesis that cannot be raised)."""

READS_PER_BATCH = 2
"""GetRecords calls that a writer makes of a shard for a batch: to plan it, and to read it; one more per 10 MB."""


def advice(document: LakeStream) -> Iterator[str]:
    """One sentence for each, with the field that it is about."""
    trigger, writers = document.spec.trigger, len(document.spec.writers)
    least = timedelta(seconds=writers * READS_PER_BATCH / READS_PER_SECOND)
    if trigger.interval < least:
        yield (
            f"spec.trigger.interval: a shard answers {READS_PER_SECOND} reads a second, of all consumers together, and "
            f"{_count(writers)} may ask {READS_PER_BATCH} each in {format_duration(trigger.interval)}: some will be "
            f"throttled, and batches come later than asked for. Give it {format_duration(least)} or more."
        )


def _count(writers: int) -> str:
    return "one writer" if writers == 1 else f"{writers} writers"
