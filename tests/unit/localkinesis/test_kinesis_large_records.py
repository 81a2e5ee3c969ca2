"""Records of up to 10 MiB.

Source: UpdateMaxRecordSize and PutRecord in the API reference, "Handle large records" in the developer guide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakestream_localkinesis.core.hashing import HashRange
from lakestream_localkinesis.core.limits import MIB, Limits
from lakestream_localkinesis.core.shard import Arrival, Shard

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

ARN = "arn:aws:kinesis:us-east-1:000000000000:stream/orders"
SHARD = "shardId-000000000000"


def record_kib(api: Api) -> int:
    size: int = api.call("DescribeStreamSummary", StreamName="orders")["StreamDescriptionSummary"]["MaxRecordSizeInKiB"]
    return size


def test_data_and_key_together_keep_to_the_streams_maximum(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    assert record_kib(api) == 1024
    api.put("orders", b"x" * (MIB - 3), "key")

    refused = api.refused("PutRecord", StreamName="orders", Data=api.encoded(b"x" * (MIB - 2)), PartitionKey="key")

    assert refused.code == "InvalidArgumentException"
    assert "1048577 bytes of data and partition key exceed the maximum record size of 1048576" in refused.message


def test_a_stream_of_large_records_gives_them_back_one_to_a_page(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1, MaxRecordSizeInKiB=2048)
    assert record_kib(api) == 2048
    assert (
        api.refused("PutRecord", StreamName="orders", Data=api.encoded(b"x" * 3 * MIB), PartitionKey="k").status == 400
    )
    api.call("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=10240)
    assert record_kib(api) == 10240
    large = [bytes([number]) * (10 * MIB - 1) for number in range(3)]
    for data in large:
        assert api.put_many("orders", (data, "k"))["FailedRecordCount"] == 0
    api.put("orders", b"small")

    iterator = api.iterator("orders", SHARD)
    pages = []
    for _ in range(4):
        page = api.read(iterator)
        pages.append(api.payloads(page))
        iterator = page["NextShardIterator"]

    assert pages == [[large[0]], [large[1]], [large[2]], [b"small"]]
    # What is there stays readable, whatever is taken from now on.
    api.call("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=1024)
    assert api.read_all("orders", SHARD) == [*large, b"small"]


def test_the_maximum_is_one_to_ten_mebibytes(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)

    for kib in (1023, 10241):
        refused = api.refused("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=kib)
        assert refused.code == "ValidationException"
    assert api.refused("UpdateMaxRecordSize", MaxRecordSizeInKiB=1024).code == "ValidationException"


def test_the_maximum_changes_like_a_stream(slow: Api):
    slow.call("CreateStream", StreamName="orders", ShardCount=1)
    slow.clock.advance(10_000)
    slow.call("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=10240)

    assert record_kib(slow) == 1024
    assert slow.refused("UpdateMaxRecordSize", StreamARN=ARN, MaxRecordSizeInKiB=1024).code == "ResourceInUseException"
    slow.clock.advance(10_000)
    assert record_kib(slow) == 10240


def test_large_records_are_throttled_when_a_shard_has_no_burst_left(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=1, MaxRecordSizeInKiB=10240)
    data = b"x" * (10 * MIB - 1)
    assert limited.put_many("orders", (data, "k"))["FailedRecordCount"] == 0
    assert limited.put_many("orders", (b"small", "k"))["FailedRecordCount"] == 0
    assert limited.put_many("orders", (data, "k"))["FailedRecordCount"] == 1
    limited.clock.advance(11_000)
    assert limited.put_many("orders", (data, "k"))["FailedRecordCount"] == 0


def test_a_page_has_one_record_at_least():
    # As a shard may hold one that is larger than a page, with its key.
    shard = Shard(0, HashRange(0, 1), 0, 0, Limits.none())
    for _ in range(3):
        shard.append("", '"k"', 10 * MIB + 256, Arrival(0))

    cursor, sizes = shard.at_horizon(), []
    for _ in range(3):
        page = shard.read(cursor, 10_000, 0, 0)
        assert page.following is not None
        cursor = page.following
        sizes.append(len(page.records))

    assert sizes == [1, 1, 1]
