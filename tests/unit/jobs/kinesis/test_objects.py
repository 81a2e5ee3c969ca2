"""Records of several objects, and the parts that they are read as."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.kinesis import objects as module
from lakestream.kinesis.batches import REASON, SCHEMA
from lakestream.kinesis.objects import objects, parted
from lakestream.testing.raw import raw

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('{}"\\ \n,:ü'), max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab{}"), inner, max_size=2),
    max_leaves=4,
)
OBJECTS = st.dictionaries(st.sampled_from(["a", "}{", "\n"]), VALUES, max_size=2)
WRITTEN = st.builds(
    lambda value, indent: json.dumps(value, indent=indent, ensure_ascii=False), OBJECTS, st.sampled_from([None, 0, 1])
)
BETWEEN = st.sampled_from(["", "\n", "\r\n", " ", "\t", "\n\n"])


@given(st.lists(st.tuples(WRITTEN, BETWEEN), min_size=1, max_size=4), BETWEEN)
def test_each_object_is_a_part_however_they_are_written(written: list[tuple[str, str]], before: str) -> None:
    text = before + "".join(one + blank for one, blank in written)
    found = [part.decode() for part in objects(text.encode())]
    assert found == [one for one, _ in written]


PIECES = st.sampled_from(
    ["{", "}", '{"a":1}', '\n{"a":1}\n', '\n{"a":}\n', '{"a":', "[1]", "7", '"', "\n", " ", ",", "{}", "x", '{"a":{}}']
)


@given(st.lists(PIECES, max_size=9).map("".join).map(str.encode) | st.binary(max_size=9))
def test_nothing_is_lost_and_a_part_is_its_only_part(text: bytes) -> None:
    """Whatever else a record has: its parts may be read again, out of quarantine."""
    parts = [*objects(text)]
    assert b"".join(b"".join(parts).split()) == b"".join(text.split())
    assert [[*objects(part)] for part in parts] == [[part] for part in parts]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (b"", [b""]),
        (b" \n", [b" \n"]),
        (b'{"a":1}\n{"a":2}\n', [b'{"a":1}', b'{"a":2}']),
        (b'{"a":1} {"a":2}', [b'{"a":1}', b'{"a":2}']),
        (b'{"a":1}\n{"a":}\n{"a":3}', [b'{"a":1}', b'{"a":}', b'{"a":3}']),
        (
            b'{"a":1}{"a":' + b"1" * 5000 + b'}{"a":-0.5e-9}',
            [b'{"a":1}', b'{"a":' + b"1" * 5000 + b"}", b'{"a":-0.5e-9}'],
        ),
        (b'{"a":1}\n{"a":\n{"a":3}\r\n{}{}', [b'{"a":1}', b'{"a":', b'{"a":3}', b"{}", b"{}"]),
        (
            b'{"a":1}\n{"a":[\n  {"b":1},\n  {"b":2}\n{"a":3}',
            [b'{"a":1}', b'{"a":[\n  {"b":1},\n  {"b":2}', b'{"a":3}'],
        ),
        (b'x\n{"a":}\n{"a":}\n{"a":3}\n{"a":}', [b'x\n{"a":}\n{"a":}', b'{"a":3}', b'{"a":}']),
        (b'{"a":}\n{"a":}\n{"a":3}\nx', [b'{"a":}', b'{"a":}', b'{"a":3}', b"x"]),
        (b'{"a":1}{"a":2', [b'{"a":1}', b'{"a":2']),
        (b'{"a":1},{"a":2}', [b'{"a":1},{"a":2}']),
        (b'{"a":1}\n[2]\n{"a":3}', [b'{"a":1}', b"[2]", b'{"a":3}']),
        (b'{"a":1}\n\xff\n{"a":"\xff"}\n{"a":4}\n', [b'{"a":1}', b'\xff\n{"a":"\xff"}', b'{"a":4}']),
    ],
)
def test_what_is_no_object_is_a_part_too(text: bytes, parts: list[bytes]) -> None:
    """A line that looks like one, or all to the next line that is objects."""
    assert [*objects(text)] == parts


@pytest.mark.parametrize("bad", [b'{"a":3', b'{"a":"cut', b"garbage", b"[3]", b"null", b'{"a":"\xff', b"\xff", b"}"])
def test_a_line_that_is_no_object_takes_no_other_with_it(bad: bytes) -> None:
    lines = [*[b'{"a":1}'] * 3, bad, *[b'{"a":2}'] * 5]
    assert [*objects(b"\n".join(lines) + b"\n")] == lines


def test_a_row_is_an_object_with_a_place_of_its_own() -> None:
    batch = raw(b'{"a":1}', b'{"a":2}\n{"a":3}\n', gzip.compress(b'{"a":4}{"a":5}'), sub=7)
    (found,) = parted([batch])
    assert found.schema == SCHEMA
    assert found.column("data").to_pylist() == [f'{{"a":{n}}}'.encode() for n in range(1, 6)]
    assert found.column("sequence_number").to_pylist() == ["0", "1", "1", "2", "2"]
    assert found.column("sub_sequence").to_pylist() == [7, 7, 7 + 2**32, 7, 7 + 2**32]
    assert [*parted([found])] == [found], "as it is read out of quarantine"


@pytest.mark.parametrize(
    "data",
    [gzip.compress(b'{"a":1}\n'), gzip.compress(b"{}")[:-1], b' {"a": ', b"\n", b""],
    ids=["compressed", "damaged", "cut off", "blank", "empty"],
)
def test_a_record_of_one_part_keeps_its_bytes(data: bytes) -> None:
    assert [*parted([raw(data)])] == [raw(data)]


def test_many_objects_come_in_batches_that_fit_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS", 3)
    monkeypatch.setattr(module, "_BYTES", 20)
    found = [*parted([raw(b"{}\n" * 7, b'{"note":"' + b"n" * 30 + b'"}', b"{}", b"{}")])]
    assert [batch.num_rows for batch in found] == [3, 3, 1, 1, 2]


def test_marks_and_empty_batches_stay_as_they_are() -> None:
    marks = raw(b'{"a":1}{"a":2}').append_column(REASON, pa.array(["file not read: it is gone"]))
    assert [*parted([marks, raw()])] == [marks, raw()]
