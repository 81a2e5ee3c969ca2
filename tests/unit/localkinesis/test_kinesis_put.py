"""PutRecord and PutRecords: routing, sizes, partial failure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from lakestream_localkinesis.core.limits import MIB

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api


def test_a_partition_key_goes_where_its_md5_says(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=4)
    ranges = [
        (shard["ShardId"], int(shard["HashKeyRange"]["StartingHashKey"]), int(shard["HashKeyRange"]["EndingHashKey"]))
        for shard in api.shards("orders")
    ]
    for key in (f"clé-{i}" for i in range(100)):
        wanted = int(hashlib.md5(key.encode()).hexdigest(), 16)
        shard = api.put("orders", b"x", key)["ShardId"]
        assert [start <= wanted <= end for name, start, end in ranges if name == shard] == [True]


def test_an_explicit_hash_key_overrides_the_partition_key(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=2)

    assert api.put("orders", b"x", ExplicitHashKey="0")["ShardId"] == "shardId-000000000000"
    assert api.put("orders", b"x", ExplicitHashKey=str(2**127 - 1))["ShardId"] == "shardId-000000000000"
    assert api.put("orders", b"x", ExplicitHashKey=str(2**127))["ShardId"] == "shardId-000000000001"
    assert api.put("orders", b"x", ExplicitHashKey=str(2**128 - 1))["ShardId"] == "shardId-000000000001"
    beyond = api.refused("PutRecord", StreamName="orders", Data="", PartitionKey="k", ExplicitHashKey=str(2**128))
    assert beyond.code == "InvalidArgumentException"
    assert beyond.message == (
        f"Invalid ExplicitHashKey. ExplicitHashKey must be in the range: [0, 2^128-1]. Specified value was {2**128}"
    )


def test_data_comes_back_byte_for_byte(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    sent = [b"", b"\x00", bytes(range(256)), "naïve \u2028".encode(), b"x" * (MIB - len("new\nline"))]
    keys = ["k", '"quoted"', "back\\slash", "snow ☃ \U0001f600", "new\nline"]
    api.put_many("orders", *zip(sent, keys, strict=True))

    page = api.read(api.iterator("orders", "shardId-000000000000"))

    assert api.payloads(page) == sent
    assert [record["PartitionKey"] for record in page["Records"]] == keys


def test_sequence_numbers_increase_in_a_shard(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    answer = api.put_many("orders", *((b"x", "k") for _ in range(500)))
    numbers = [int(record["SequenceNumber"]) for record in answer["Records"]]
    shard = api.shards("orders")[0]

    assert answer["FailedRecordCount"] == 0
    assert numbers == sorted(set(numbers))
    assert int(shard["SequenceNumberRange"]["StartingSequenceNumber"]) < numbers[0]
    assert {len(str(number)) for number in numbers} == {56}


def test_records_over_the_shards_rate_fail_one_by_one(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=2)
    low, high = "0", str(2**128 - 1)

    def put(*hash_keys: str) -> dict:
        entries = [{"Data": "eA==", "PartitionKey": "k", "ExplicitHashKey": key} for key in hash_keys]
        return limited.call("PutRecords", StreamName="orders", Records=entries)

    assert put(*[low] * 500)["FailedRecordCount"] == 0
    assert put(*[low] * 499)["FailedRecordCount"] == 0
    answer = put(low, high, low, high)

    assert answer["FailedRecordCount"] == 1
    assert [record.get("ShardId") for record in answer["Records"]] == [
        "shardId-000000000000", "shardId-000000000001", None, "shardId-000000000001",
    ]  # fmt: skip
    assert answer["Records"][2] == {
        "ErrorCode": "ProvisionedThroughputExceededException",
        "ErrorMessage": "Rate exceeded for shard shardId-000000000000 in stream orders under account 000000000000.",
    }
    single = limited.refused("PutRecord", StreamName="orders", Data="", PartitionKey="k", ExplicitHashKey=low)
    assert single.code == "ProvisionedThroughputExceededException"
    limited.clock.advance(1000)
    assert put(low)["FailedRecordCount"] == 0
    assert len(limited.read_all("orders", "shardId-000000000000")) == 1001


def test_bytes_over_the_shards_rate_fail_one_by_one(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=1)
    answer = limited.put_many("orders", *((b"x" * (MIB // 4), "k") for _ in range(4)))

    # The keys count too: four quarters and four keys are more than the whole.
    assert answer["FailedRecordCount"] == 1
    assert "ErrorCode" in answer["Records"][3]


def test_a_bad_record_fails_the_request_before_any_is_added(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    good = {"Data": "eA==", "PartitionKey": "k"}
    cases = {
        "records.2.member.partitionKey": {"Data": "eA=="},
        "records.2.member.data": {"PartitionKey": "k"},
        "can not be converted to a Blob": {"Data": "e A==", "PartitionKey": "k"},
        "ExplicitHashKey": {**good, "ExplicitHashKey": str(2**128)},
        "records.2.member.explicitHashKey": {**good, "ExplicitHashKey": "0x10"},
        "less than or equal to 10485760": {"Data": api.encoded(b"x" * (10 * MIB + 1)), "PartitionKey": "k"},
        "records.2.member.1048577 bytes": {"Data": api.encoded(b"x" * MIB), "PartitionKey": "k"},
        "less than or equal to 256": {"Data": "eA==", "PartitionKey": "k" * 257},
        "greater than or equal to 1": {"Data": "eA==", "PartitionKey": ""},
    }
    for expected, bad in cases.items():
        refused = api.refused("PutRecords", StreamName="orders", Records=[good, bad])
        assert refused.status == 400
        assert expected in refused.message
    assert api.read_all("orders", "shardId-000000000000") == []


def test_all_bad_records_of_a_request_are_named_up_to_ten(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    good, keyless = {"Data": "eA==", "PartitionKey": "k"}, {"Data": "eA=="}
    for bad in ({"Data": "eA==", "PartitionKey": ""}, keyless):
        refused = api.refused("PutRecords", StreamName="orders", Records=[bad, good, bad])
        assert refused.code == "ValidationException"
        assert refused.message.startswith("2 validation errors detected: Value ")
        assert [f"records.{place}.member" in refused.message for place in (1, 2, 3)] == [True, False, True]
        refused = api.refused("PutRecords", StreamName="orders", Records=[good] + [bad] * 12)
        assert refused.message.startswith("10 validation errors detected: Value ")
        assert refused.message.count("; ") == 9
    unreadable = {"Data": "e A==", "PartitionKey": "k"}
    refused = api.refused("PutRecords", StreamName="orders", Records=[{"PartitionKey": "k"}, unreadable])
    assert refused.code == "SerializationException"


@pytest.mark.parametrize("count", [0, 501])
def test_a_request_has_1_to_500_records(api: Api, count: int):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    entries = [{"Data": "eA==", "PartitionKey": "k"}] * count

    refused = api.refused("PutRecords", StreamName="orders", Records=entries)

    assert refused.code == "ValidationException"
    assert "'records' failed to satisfy constraint: Member must have length" in refused.message


def test_a_request_has_10_mebibytes_at_most(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    megabyte = api.encoded(b"x" * (MIB - 1))
    exact = [{"Data": megabyte, "PartitionKey": "k"}] * 10

    assert api.call("PutRecords", StreamName="orders", Records=exact)["FailedRecordCount"] == 0
    refused = api.refused("PutRecords", StreamName="orders", Records=[*exact, {"Data": "", "PartitionKey": "k"}])
    assert refused.code == "InvalidArgumentException"
    assert refused.message == "Records size exceeds 10 MB limit"
