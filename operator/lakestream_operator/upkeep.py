"""What a driver tells of its table: whether the work beside its batches gets done. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lakestream_api import DriverReport, TableService

TWICE = 2
"""Failures in a row from which on a service is said to fail: a single one may have met an outage of a minute."""

MOST_BYTES = 2 * 2**30
"""Of a file that each compaction, or each copy-on-write commit, writes anew with one task."""

_SERVICES = {
    "compaction": (
        "CompactionFailing",
        "log files pile up, queries become slower, and each batch waits for up to 30 s, to leave fewer",
    ),
    "clustering": ("ClusteringFailing", "small files pile up, and queries become slower"),
    "cleaning": ("CleaningFailing", "files that newer ones have replaced stay, and cost storage"),
    "archiving": ("ArchivingFailing", "the table's timeline grows, and each commit becomes slower"),
    "catalog": ("CatalogFailing", "engines that go by the catalog see neither new partitions nor new columns"),
}
"""Reasons, and what comes of it."""
_OTHER = ("TableServiceFailing", "the table suffers")


@dataclass(frozen=True, slots=True)
class Failing:
    """A service that keeps failing, or files that have grown too large for it."""

    reason: str
    """In one word."""
    message: str
    """In a sentence: since when, what it does to the table, why, what to do."""


def failing(report: DriverReport) -> tuple[Failing, ...]:
    """The services of a table that keep failing, and buckets that have grown too large."""
    services = tuple(_service(one) for one in report.table_services if one.failing >= TWICE)
    return (*services, _outgrown(report.largest_file)) if report.largest_file > MOST_BYTES else services


def _outgrown(largest: int) -> Failing:
    return Failing(
        "BucketsOutgrown",
        f"a bucket of the table has grown to {largest / 2**30:.1f} GiB, and is written anew as a whole, by one task, "
        "whenever it is compacted, or by each copy-on-write commit that touches it: batches and compactions take ever "
        "longer. The number of buckets is for the table's life: write it anew by another writer with another path, and "
        "with hudi.index.expectedPartitionSize as large as a full partition is (a bucket for each GiB).",
    )


def _service(one: TableService) -> Failing:
    reason, consequence = _SERVICES.get(one.name, _OTHER)
    since = f" since {one.failing_since:%F %R} UTC" if one.failing_since else ""
    return Failing(
        reason,
        f"{one.name} has failed {one.failing} times in a row{since}, {one.behind_commits:,} commits wait for it: "
        f"{consequence}. Batches go on. Mend what the error names; it is tried again within ten minutes, the catalog "
        f"within five. The error: {one.error}",
    )
