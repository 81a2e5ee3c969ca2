"""Records that producers have wrapped, and the texts that they are read as."""

from __future__ import annotations

import gzip
import zlib
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis.texts import MOST, TEXT, expanded, text_of, texts
from lakestream.testing.avro import framed
from lakestream.testing.raw import raw

ZIPPED = gzip.compress(b'{"id":1}')


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


VERSION = UUID("123e4567-e89b-12d3-a456-426614174000")


@pytest.mark.parametrize("compressed", [False, True])
def test_json_in_a_frame_of_the_schema_registry_is_the_text(compressed: bool) -> None:
    assert text_of(framed(VERSION, b'{"id":1}', compressed=compressed)) == b'{"id":1}'


@pytest.mark.parametrize(
    "data",
    [
        framed(VERSION, b"\x02a"),
        framed(VERSION, b""),
        framed(VERSION, b"{}")[:17],
        framed(VERSION, b"{}", compressed=True)[:-1],
        framed(VERSION, b"{}", compressed=True) + b"{}",
        b"\x03\x05" + framed(VERSION, b"{}")[2:],
        b"\x03\x01" + framed(VERSION, b"{}")[2:],
        framed(VERSION, b"{" + bytes(MOST), compressed=True),
        b"\x03{}",
    ],
    ids=["Avro", "empty", "short", "cut off", "more behind", "not zlib", "of another kind", "too much", "no frame"],
)
def test_what_is_no_json_in_a_frame_stays_as_it_is(data: bytes) -> None:
    assert text_of(data) == data


def test_as_much_as_is_taken_is_taken() -> None:
    assert text_of(gzip.compress(bytes(MOST))) == bytes(MOST)


def test_a_batch_without_compressed_records_is_as_it_was() -> None:
    batch = raw(b"{}", b"", b"\x1f\x8b", b"\x00\x03\x00")
    (found,) = expanded([batch])
    assert found is batch
    assert texts(found) == [b"{}", b"", b"\x1f\x8b", b"\x00\x03\x00"]
    assert [*expanded([raw()])] == [raw()]


def test_a_batch_keeps_the_bytes_beside_the_texts() -> None:
    datas = b"{}", ZIPPED, framed(VERSION, b'{"id":2}')
    (found,) = expanded([raw(*datas)])
    assert texts(found) == [b"{}", b'{"id":1}', b'{"id":2}']
    assert found.drop_columns([TEXT]) == raw(*datas)
    (found,) = expanded([raw(datas[2])])
    assert texts(found) == [b'{"id":2}']


def test_a_batch_is_parted_where_its_texts_are_too_many_for_a_task() -> None:
    large = gzip.compress(bytes(MOST))
    parts = [*expanded([raw(large, b"{}", large, ZIPPED, large)])]
    assert [part.column("sequence_number").to_pylist() for part in parts] == [["0", "1"], ["2", "3"], ["4"]]
    assert [len(text) for part in parts for text in texts(part)] == [MOST, 2, MOST, 8, MOST]
