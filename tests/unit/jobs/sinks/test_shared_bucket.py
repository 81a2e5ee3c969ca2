"""What a person reads when a bucket has two file groups."""

from __future__ import annotations

import pytest

from lakestream.sinks.hudi.buckets import SharedBucket

# As Hudi 1.2.0 says it, in the middle of what Py4J tells.
REFUSAL = (
    "Caused by: org.apache.hudi.exception.HoodieIOException: Find multiple files at partition path={} that belong to "
    "the same bucket id = 3, these instants need to rollback: [], you can use 'rollback_to_instant' procedure to "
    "revert the conflicts.\n\tat org.apache.hudi"
)
OLDER, YOUNGER = "00000003-052e-4a9c-b004-bea8a573603d-0", "00000003-011c-4444-aaaa-bea8a573603d-0"


@pytest.mark.parametrize("partition", ["dt=2026-01-01", "a=1/b=2", ""])
def test_hudis_refusal_names_partition_and_bucket(partition: str) -> None:
    assert SharedBucket.found_in(REFUSAL.format(partition)) == SharedBucket(partition, 3)


def test_other_failures_are_none() -> None:
    assert SharedBucket.found_in("Caused by: java.io.IOException: disk full") is None


def test_the_two_are_told_in_the_order_in_which_they_were_begun() -> None:
    names = [
        f"{YOUNGER}_0-20-0_20260101000200000.parquet",
        f"{OLDER}_0-20-0_20260101000300000.parquet",
        f".{OLDER}_20260101000100000.log.1_0-1-0",
        "00000004-052e-4a9c-b004-bea8a573603d-0_0-20-0_20260101000000000.parquet",
        ".hoodie_partition_metadata",
    ]
    told = SharedBucket("dt=2026-01-01", 3).told("s3a://lake/orders", names)
    assert told.startswith("the table s3a://lake/orders has two file groups in bucket 3 of partition dt=2026-01-01 (")
    assert f"({OLDER} since 20260101000100000, {YOUNGER} since 20260101000200000)" in told
    assert "another path and another spec.checkpoint" in told


def test_without_names_it_is_told_all_the_same() -> None:
    assert "in bucket 3 of partition (none): two processes" in SharedBucket("", 3).told("file:///lake", [])
