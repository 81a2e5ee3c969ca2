"""Records that producers have compressed by gzip, and the texts that they are read as."""

from __future__ import annotations

import gzip
import zlib

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis.batches import SCHEMA
from lakestream.kinesis.compressed import MOST_MEBIBYTES, TEXT, expanded, text_of, texts

MOST = MOST_MEBIBYTES << 20
ZIPPED = gzip.compress(b'{"id":1}')


def raw(*datas: bytes) -> pa.RecordBatch:
    rows = [{"data": data, "shard_id": "a", "sequence_number": str(at)} for at, data in enumerate(datas)]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


@given(st.lists(st.binary(max_size=99), min_size=1, max_size=3))
def test_a_record_has_the_text_that_was_compressed(members: list[bytes]) -> None:
    """Also one of several members, as `cat a.gz b.gz` makes it."""
    assert text_of(b"".join(map(gzip.compress, members))) == b"".join(members)


@given(st.binary(max_size=99))
def test_what_does_not_say_so_is_not_compressed(data: bytes) -> None:
    assert text_of(b"{" + data) == b"{" + data


@pytest.mark.parametrize(
    "data",
    [
        b"\x1f\x8b\x08",
        ZIPPED[:-1],
        ZIPPED[:-9] + b"?" + ZIPPED[-8:],
        ZIPPED + b"{}",
        ZIPPED + ZIPPED[:-1],
        zlib.compress(b"{}"),
        gzip.compress(bytes(MOST + 1)),
        gzip.compress(b"{}") + gzip.compress(bytes(MOST - 1)),
    ],
    ids=["magic", "cut off", "damaged", "more behind", "cut off behind", "zlib", "too much", "too much in two"],
)
def test_what_cannot_be_expanded_stays_as_it_is(data: bytes) -> None:
    assert text_of(data) == data


def test_as_much_as_is_taken_is_taken() -> None:
    assert text_of(gzip.compress(bytes(MOST))) == bytes(MOST)


def test_a_batch_without_compressed_records_is_as_it_was() -> None:
    batch = raw(b"{}", b"", b"\x1f\x8b")
    (found,) = expanded([batch])
    assert found is batch
    assert texts(found) == [b"{}", b"", b"\x1f\x8b"]
    assert [*expanded([raw()])] == [raw()]


def test_a_batch_keeps_the_bytes_beside_the_texts() -> None:
    (found,) = expanded([raw(b"{}", ZIPPED)])
    assert texts(found) == [b"{}", b'{"id":1}']
    assert found.drop_columns([TEXT]) == raw(b"{}", ZIPPED)


def test_a_batch_is_parted_where_its_texts_are_too_many_for_a_task() -> None:
    large = gzip.compress(bytes(MOST))
    parts = [*expanded([raw(large, b"{}", large, ZIPPED, large)])]
    assert [part.column("sequence_number").to_pylist() for part in parts] == [["0", "1"], ["2", "3"], ["4"]]
    assert [len(text) for part in parts for text in texts(part)] == [MOST, 2, MOST, 8, MOST]
