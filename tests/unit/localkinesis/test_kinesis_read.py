"""Shard iterators and GetRecords."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from lakestream_localkinesis.core.limits import MIB
from lakestream_localkinesis.core.shard import SCAN_SPAN_MS

if TYPE_CHECKING:
    from tests.unit.localkinesis.conftest import Api

SHARD = "shardId-000000000000"


@pytest.fixture
def spaced(api: Api) -> tuple[Api, list[str]]:
    """Five records a second apart, and their sequence numbers; now is the arrival of the last."""
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    numbers = []
    for index in range(5):
        api.clock.advance(1000)
        numbers.append(api.put("orders", b"%d" % index)["SequenceNumber"])
    return api, numbers


def test_the_five_types(spaced: tuple[Api, list[str]]):
    api, numbers = spaced

    def start(kind: str, **fields: object) -> list[bytes]:
        return api.payloads(api.read(api.iterator("orders", SHARD, kind, **fields)))

    assert start("TRIM_HORIZON") == [b"0", b"1", b"2", b"3", b"4"]
    assert start("AT_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[2]) == [b"2", b"3", b"4"]
    assert start("AFTER_SEQUENCE_NUMBER", StartingSequenceNumber=numbers[2]) == [b"3", b"4"]
    assert start("AT_TIMESTAMP", Timestamp=1_700_000_003) == [b"2", b"3", b"4"]
    assert start("AT_TIMESTAMP", Timestamp=1_700_000_003.001) == [b"3", b"4"]
    assert start("AT_TIMESTAMP", Timestamp=0) == [b"0", b"1", b"2", b"3", b"4"]
    assert start("LATEST") == []


@pytest.mark.parametrize("kind", ["LATEST", "AT_TIMESTAMP"])
def test_at_the_tip_only_later_records_are_read(spaced: tuple[Api, list[str]], kind: str):
    api, _ = spaced
    api.clock.advance(1)
    fields = {"Timestamp": 1_700_000_005.001} if kind == "AT_TIMESTAMP" else {}
    iterator = api.iterator("orders", SHARD, kind, **fields)
    empty = api.read(iterator)
    api.put("orders", b"later")

    assert (empty["Records"], empty["MillisBehindLatest"]) == ([], 0)
    assert api.payloads(api.read(iterator)) == [b"later"]
    assert api.payloads(api.read(empty["NextShardIterator"])) == [b"later"]


def test_a_shards_own_first_number_is_a_place_too(spaced: tuple[Api, list[str]]):
    api, _ = spaced
    first = api.shards("orders")[0]["SequenceNumberRange"]["StartingSequenceNumber"]
    iterator = api.iterator("orders", SHARD, "AT_SEQUENCE_NUMBER", StartingSequenceNumber=first)

    assert len(api.read(iterator)["Records"]) == 5


def test_pages_and_how_far_they_are_behind(spaced: tuple[Api, list[str]]):
    api, _ = spaced
    page = api.read(api.iterator("orders", SHARD), Limit=2)
    assert (api.payloads(page), page["MillisBehindLatest"]) == ([b"0", b"1"], 3000)
    page = api.read(page["NextShardIterator"], Limit=2)
    assert (api.payloads(page), page["MillisBehindLatest"]) == ([b"2", b"3"], 1000)
    page = api.read(page["NextShardIterator"], Limit=2)
    assert (api.payloads(page), page["MillisBehindLatest"]) == ([b"4"], 0)
    page = api.read(page["NextShardIterator"])
    assert (api.payloads(page), page["MillisBehindLatest"]) == ([], 0)


def test_a_record_shows_when_it_arrived(spaced: tuple[Api, list[str]]):
    api, numbers = spaced
    record = api.read(api.iterator("orders", SHARD))["Records"][0]

    assert record == {
        "SequenceNumber": numbers[0],
        "ApproximateArrivalTimestamp": 1_700_000_001.0,
        "Data": "MA==",
        "PartitionKey": "key",
    }


def test_a_page_has_10_mebibytes_at_most(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(3):
        api.put_many("orders", *((b"x" * (MIB - 1), "k") for _ in range(7)))
    iterator = api.iterator("orders", SHARD)
    sizes = []
    while iterator:
        page = api.read(iterator)
        sizes.append(len(page["Records"]))
        iterator = page["NextShardIterator"] if page["MillisBehindLatest"] else None

    assert sizes == [10, 10, 1]


def test_a_page_has_10_000_records_at_most(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(21):
        api.put_many("orders", *((b"x", "k") for _ in range(500)))
    page = api.read(api.iterator("orders", SHARD))

    assert len(page["Records"]) == 10_000
    assert len(api.read(page["NextShardIterator"])["Records"]) == 500
    assert api.refused("GetRecords", ShardIterator="x", Limit=10_001).code == "ValidationException"


def test_a_stretch_without_records_is_crossed_in_empty_pages(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.put("orders", b"before")
    api.clock.advance(3 * SCAN_SPAN_MS + 1)
    api.put("orders", b"after")
    page = api.read(api.iterator("orders", SHARD))
    seen = [(api.payloads(page), page["MillisBehindLatest"])]
    while page["MillisBehindLatest"]:
        page = api.read(page["NextShardIterator"])
        seen.append((api.payloads(page), page["MillisBehindLatest"]))

    assert seen == [
        ([b"before"], 3 * SCAN_SPAN_MS + 1),
        ([], 2 * SCAN_SPAN_MS + 1),
        ([], SCAN_SPAN_MS + 1),
        ([], 1),
        ([b"after"], 0),
    ]


def test_an_iterator_lives_five_minutes(spaced: tuple[Api, list[str]]):
    api, _ = spaced
    iterator = api.iterator("orders", SHARD)
    api.clock.advance(300_000)
    assert len(api.read(iterator)["Records"]) == 5
    api.clock.advance(1)

    refused = api.refused("GetRecords", ShardIterator=iterator)

    assert refused.code == "ExpiredIteratorException"
    assert refused.message == (
        "Iterator expired. The iterator was created at time Tue Nov 14 22:13:25 UTC 2023 while right now it is "
        "Tue Nov 14 22:18:25 UTC 2023 which is further in the future than the tolerated delay of 300000 milliseconds."
    )


def test_a_forged_iterator_is_refused(spaced: tuple[Api, list[str]]):
    api, _ = spaced
    raw = bytearray(base64.b64decode(api.iterator("orders", SHARD)))
    raw[-1] ^= 1
    for token in ("forged", "AAAA", base64.b64encode(raw).decode(), "é"):
        refused = api.refused("GetRecords", ShardIterator=token)
        assert (refused.code, refused.message) == ("InvalidArgumentException", "Invalid ShardIterator.")


def test_the_longest_names_fit_an_iterator(api: Api):
    name = "n" * 128
    api.call("CreateStream", StreamName=name, ShardCount=1)

    assert len(api.iterator(name, SHARD, "LATEST")) <= 512


def test_an_iterator_of_a_deleted_stream_does_not_read_its_successor(spaced: tuple[Api, list[str]]):
    api, _ = spaced
    iterator = api.iterator("orders", SHARD)
    api.call("DeleteStream", StreamName="orders")
    assert api.refused("GetRecords", ShardIterator=iterator).code == "ResourceNotFoundException"
    api.call("CreateStream", StreamName="orders", ShardCount=1)

    assert api.refused("GetRecords", ShardIterator=iterator).code == "ResourceNotFoundException"


def test_places_that_are_refused(spaced: tuple[Api, list[str]]):
    api, numbers = spaced
    api.call("CreateStream", StreamName="other", ShardCount=2)
    api.clock.advance(5000)
    api.call("CreateStream", StreamName="young", ShardCount=1)

    def message(stream: str, shard: str, kind: str, **fields: object) -> str:
        refused = api.refused("GetShardIterator", StreamName=stream, ShardId=shard, ShardIteratorType=kind, **fields)
        return f"{refused.code}: {refused.message}"

    at = "AT_SEQUENCE_NUMBER"
    assert "ResourceNotFoundException: Shard shardId-000000000007" in message(
        "orders", "shardId-000000000007", "LATEST"
    )
    assert "Could not find shard nonsense" in message("orders", "nonsense", "LATEST")
    assert "Request specified LATEST and also a" in message(
        "orders", SHARD, "LATEST", StartingSequenceNumber=numbers[0]
    )
    assert f"Request specified {at} and no" in message("orders", SHARD, at)
    assert "Must specify timestampInMillis" in message("orders", SHARD, "AT_TIMESTAMP")
    assert "cannot be greater than the currentTimestampInMillis" in message(
        "orders", SHARD, "AT_TIMESTAMP", Timestamp=1_700_000_010.001
    )
    assert "is invalid." in message("orders", SHARD, at, StartingSequenceNumber="12345")
    assert "It encodes shardId-000000000000, while it was used in a call to a shard with shardId-000000000001" in (
        message("other", "shardId-000000000001", at, StartingSequenceNumber=numbers[0])
    )
    assert "did not come from this stream" in message("young", SHARD, at, StartingSequenceNumber=numbers[0])


def test_five_reads_and_five_iterators_a_second(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=1)
    iterators = [limited.iterator("orders", SHARD) for _ in range(5)]
    sixth = limited.refused("GetShardIterator", StreamName="orders", ShardId=SHARD, ShardIteratorType="LATEST")
    for iterator in iterators:
        limited.read(iterator)
    read = limited.refused("GetRecords", ShardIterator=iterators[0])

    assert sixth.code == read.code == "ProvisionedThroughputExceededException"
    assert read.message == "Rate exceeded for shard shardId-000000000000 in stream orders under account 000000000000."
    limited.clock.advance(1000)
    limited.read(limited.iterator("orders", SHARD))


def test_ten_mebibytes_read_block_the_shard_for_five_seconds(limited: Api):
    limited.call("CreateStream", StreamName="orders", ShardCount=1)
    for _ in range(11):
        limited.put("orders", b"x" * (MIB - 3))
        limited.clock.advance(1000)
    page = limited.read(limited.iterator("orders", SHARD))
    assert len(page["Records"]) == 10

    limited.clock.advance(4999)
    assert limited.refused("GetRecords", ShardIterator=page["NextShardIterator"]).code == (
        "ProvisionedThroughputExceededException"
    )
    limited.clock.advance(1)
    assert len(limited.read(page["NextShardIterator"])["Records"]) == 1


def test_an_iterator_in_quotes_is_read_like_one_without(api: Api):
    api.call("CreateStream", StreamName="orders", ShardCount=1)
    api.put("orders", b"x")
    iterator = api.iterator("orders", "shardId-000000000000")

    assert api.payloads(api.read(f'"{iterator}"')) == [b"x"]
    assert api.refused("GetRecords", ShardIterator='""').code == "InvalidArgumentException"


def test_an_iterator_of_another_stream_than_the_arn_names_is_refused(api: Api):
    for name in ("orders", "others"):
        api.call("CreateStream", StreamName=name, ShardCount=1)
    iterator = api.iterator("orders", "shardId-000000000000")
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/"

    assert api.read(iterator, StreamARN=f"{arn}orders")["Records"] == []
    assert (
        api.refused("GetRecords", ShardIterator=iterator, StreamARN=f"{arn}others").code == "InvalidArgumentException"
    )
