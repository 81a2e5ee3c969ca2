"""Pages as Arrow."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from lakestream.kinesis.batches import SCHEMA, record_batches, stored_bytes
from lakestream.kinesis.pages import arrival_micros
from lakestream.kinesis.port import RecordPage
from lakestream.model import HashKeys
from lakestream.testing.kpl import aggregate

NOW = datetime(2026, 1, 31, 12, 0, 0, 123000, tzinfo=UTC)
# Made by the format's description: keys "a", "b"; records (b, "x"), (a, "").
MESSAGE = bytes.fromhex("0a01610a0162" + "1a0508011a0178" + "1a0408001a00")
AGGREGATE = bytes.fromhex("f3899ac2") + MESSAGE + hashlib.md5(MESSAGE, usedforsecurity=False).digest()


def page(*data: bytes) -> RecordPage:
    return RecordPage(
        sequences=[str(100 + i) for i in range(len(data))],
        arrivals=[arrival_micros(NOW)] * len(data),
        partition_keys=[f"k{i}" for i in range(len(data))],
        data=list(data),
        next_iterator=None,
        millis_behind=0,
    )


def test_records_without_a_partition_key() -> None:
    ((batch, _),) = record_batches("s-0", replace(page(b"one", AGGREGATE), partition_keys=[None, None]), 2)
    assert [row["partition_key"] for row in batch.to_pylist()] == [None, "b", "a"]


def test_plain_records() -> None:
    ((batch, _),) = record_batches("s-0", page(b"one", b"\xff\x00", b""), 2)
    assert batch.schema == SCHEMA
    assert stored_bytes(batch) == len(b"one\xff\x00k0k1")
    assert batch.to_pylist() == [
        {
            "data": data,
            "partition_key": key,
            "sequence_number": sequence,
            "sub_sequence": 0,
            "shard_id": "s-0",
            "arrival": NOW,
        }
        for data, key, sequence in ((b"one", "k0", "100"), (b"\xff\x00", "k1", "101"))
    ]


def test_aggregates_among_plain_records() -> None:
    ((batch, _),) = record_batches("s-0", page(b"one", AGGREGATE, b"two"), 3)
    columns = batch.select(["data", "partition_key", "sequence_number", "sub_sequence"]).to_pydict()
    assert columns == {
        "data": [b"one", b"x", b"", b"two"],
        "partition_key": ["k0", "b", "a", "k2"],
        "sequence_number": ["100", "101", "101", "102"],
        "sub_sequence": [0, 0, 1, 0],
    }
    assert batch.column("arrival").to_pylist() == [NOW] * 4


def test_an_aggregate_behind_the_end_is_left() -> None:
    ((batch, _),) = record_batches("s-0", page(b"one", AGGREGATE), 1)
    assert batch.num_rows == 1


@pytest.mark.parametrize("hash_keys", [None, HashKeys(0, 2**128 - 1), HashKeys(2**127, 2**128 - 1)])
def test_an_aggregate_of_many_is_read_in_parts(hash_keys: HashKeys | None) -> None:
    """A page of ten megabytes would be two gigabytes: an aggregate has a key's number, a row the key."""
    many = aggregate([("a😀" * 128, None, b"%d" % number) for number in range(25_000)])
    found = list(record_batches("s-0", page(b"one", many, many, b"two"), 4, hash_keys))
    assert all(0 < batch.num_rows < 20_000 for batch, _ in found)
    table = pa.Table.from_batches([batch for batch, _ in found])
    of_many = 0 if hash_keys and hash_keys.first else 25_000
    assert table.num_rows + sum(misplaced for _, misplaced in found) == 50_002
    assert table["sub_sequence"].to_pylist() == [0, *range(of_many), *range(of_many), 0]
    assert table["data"].to_pylist()[1 : 1 + of_many] == [b"%d" % number for number in range(of_many)]
    # All that Kinesis counts, once, whatever is left out.
    assert sum(stored_bytes(batch) for batch, _ in found) == 2 * len(many) + len(b"onetwo") + len("k0k1k2k3")
    assert set(table["sequence_number"].to_pylist()) == ({"100", "101", "102", "103"} if of_many else {"100", "103"})


def test_a_malformed_aggregate_is_one_record() -> None:
    ((batch, _),) = record_batches("s-0", page(AGGREGATE[:-1]), 1)
    assert batch.column("data").to_pylist() == [AGGREGATE[:-1]]
    assert batch.column("partition_key").to_pylist() == ["k0"]


def test_user_records_of_other_shards_are_left_out_and_counted() -> None:
    """Of "a" the MD5 begins with 0c, of "b" with 92."""
    low, high = HashKeys(0, 2**127 - 1), HashKeys(2**127, 2**128 - 1)
    for keys, kept in ((low, [(b"", 1)]), (high, [(b"x", 0)]), (HashKeys(0, 2**128 - 1), [(b"x", 0), (b"", 1)])):
        ((batch, misplaced),) = record_batches("s-0", page(b"one", AGGREGATE), 2, keys)
        plain, *unpacked = [(row["data"], row["sub_sequence"]) for row in batch.to_pylist()]
        assert (plain, unpacked, misplaced) == ((b"one", 0), kept, 2 - len(kept))
    ((batch, misplaced),) = record_batches("s-0", page(AGGREGATE), 1, HashKeys(5, 5))
    assert (batch.num_rows, misplaced) == (0, 2)
