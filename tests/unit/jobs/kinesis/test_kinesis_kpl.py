"""KPL aggregates are unpacked, and what merely looks like one is left alone."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakestream.kinesis.kpl import MAGIC, UserRecord, deaggregate, placed
from lakestream.model import HashKeys
from lakestream.testing.kpl import aggregate, field, sealed, varint


@given(
    st.lists(
        st.tuples(st.text(max_size=256), st.none() | st.just("170141"), st.binary(max_size=300)),
        min_size=1,
        max_size=20,
    )
)
def test_all_user_records_in_order(records: list[tuple[str, str | None, bytes]]) -> None:
    assert deaggregate(aggregate(records)) == [UserRecord(key, data, hash_key) for key, hash_key, data in records]


def test_known_bytes() -> None:
    """Field for field as in the format's description, with a tag that we skip."""
    tag = field(1, b"name") + field(2, b"value")
    message = bytes.fromhex("0a01610a0162120131") + field(3, bytes.fromhex("080110001a0178") + field(4, tag))
    assert deaggregate(sealed(message)) == [UserRecord("b", b"x", "1")]


GOOD = aggregate([("a", None, b"one"), ("b", "7", b"two")])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"plain",
        MAGIC,
        MAGIC + bytes(15),
        sealed(b""),
        GOOD[:-1],
        GOOD[:-16] + bytes(16),
        GOOD[1:],
        sealed(field(3, field(1, 0) + field(3, b"x"))),
        sealed(field(1, b"a") + field(3, field(1, 1) + field(3, b"x"))),
        sealed(field(1, b"a") + field(3, field(1, 0) + field(2, 0) + field(3, b"x"))),
        sealed(field(1, b"a") + field(3, field(1, 0))),
        sealed(field(1, b"a") + field(3, field(3, b"x"))),
        sealed(field(1, b"\xff") + field(3, field(1, 0) + field(3, b"x"))),
        # Of a key that Kinesis takes from nobody: so long a one, named by many records, would be gigabytes.
        sealed(field(1, b"k" * 257) + field(3, field(1, 0) + field(3, b"x"))),
        sealed(field(1, 5)),
        sealed(field(3, 5)),
        sealed(b"\x0a\x05ab"),
        sealed(b"\x0b"),
        sealed(b"\x80"),
        sealed(b"\x80" * 10 + b"\x01"),
        sealed(b"\x0d\x00\x00\x00"),
    ],
)
def test_anything_else_is_an_ordinary_record(data: bytes) -> None:
    assert deaggregate(data) is None


def test_unknown_fields_are_skipped() -> None:
    extra = field(9, 300) + varint(10 << 3 | 1) + bytes(8) + varint(11 << 3 | 5) + bytes(4) + field(12, b"new")
    message = GOOD[4:-16] + extra
    assert deaggregate(sealed(message)) == [UserRecord("a", b"one"), UserRecord("b", b"two", "7")]


@given(st.binary(max_size=100))
@example(b"")
def test_no_message_breaks_it(message: bytes) -> None:
    found = deaggregate(sealed(message))
    assert found is None or isinstance(found, list)


def test_the_hash_key_of_a_user_record() -> None:
    """As Kinesis has it: the explicit one, else the MD5 of the partition key. Who gives none that is a number stays."""
    assert UserRecord("a", b"").hash_key == 0x0CC175B9C0F1B6A831C399E269772661
    assert UserRecord("a", b"", "7").hash_key == 7
    assert UserRecord("a", b"", "x").hash_key is None
    assert UserRecord("a", b"", str(2**128 - 1)).hash_key == 2**128 - 1
    assert UserRecord("a", b"", str(2**128)).hash_key is None, "no shard has it, so nobody sent it again to another one"
    records = [UserRecord("a", b""), UserRecord("a", b"", "7"), UserRecord("a", b"", "x"), UserRecord("a", b"", "-7")]
    assert list(placed(records, HashKeys(7, 7))) == [1, 2, 3]
    assert list(placed(records, None)) == [0, 1, 2, 3]
