"""Parts of files as records: each line and row once, whatever the parts are; and what cannot be read is told."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream.backfill import cut
from lakestream.backfill.find import find_files
from lakestream.errors import RequestError
from lakestream.kinesis.batches import REASON
from lakestream.kinesis.objects import parted
from lakestream.model import FilePart
from lakestream.spark import parts as parts_module
from lakestream.spark.parts import read_parts
from lakestream.storage import LakePath, S3Settings, StorageUnavailableError, StoreSettings
from lakestream.testing.damage import damaged as damaged_by_a_bit

S3 = S3Settings("eu-west-1")


def parts_of(path: Path, *, is_table: bool = False) -> list[FilePart]:
    found = find_files(StoreSettings(LakePath.parse(str(path)), S3), LakePath.parse("/elsewhere"))
    return [part for file in found for part in cut.parts_of(file, None, is_table=is_table)]


def records(parts: Iterable[FilePart], **literals: bool) -> list[tuple[int, bytes, str | None]]:
    """Place, data and reason."""
    found = []
    for batch in read_parts(S3, parts, literals):
        reasons = batch[REASON].to_pylist() if REASON in batch.schema.names else [None] * batch.num_rows
        places = map(int, batch["sequence_number"].to_pylist())
        found += zip(places, batch["data"].to_pylist(), reasons, strict=True)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts, chunks and batches that cut everything."""
    for module, name, value in (
        (cut, "_PART_BYTES", 7),
        (cut, "_PART_ROWS", 3),
        (parts_module, "_CHUNK", 5),
        (parts_module, "_RECORDS", 2),
    ):
        monkeypatch.setattr(module, name, value)


lines = st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), min_size=1)


@pytest.mark.parametrize("pack", [None, gzip.compress, lambda content: pa.compress(content, "zstd", asbytes=True)])
@pytest.mark.usefixtures("small")
@given(found=lines, ends=st.booleans())
def test_each_line_is_read_once_with_its_first_byte(found: list[bytes], ends: bool, pack: object) -> None:
    found = [*[b"{}"] * len(found), *found]
    content = b"\n".join(found) + (b"\n" if ends else b"")
    expected, at = [], 0
    for line in found:
        if line.strip():
            expected.append((at, line, None))
        at += len(line) + 1
    with TemporaryDirectory() as folder:
        path = Path(folder) / "events"
        path.write_bytes(pack(content) if callable(pack) else content)
        parts = parts_of(path)
        assert records(parts) == expected
        if pack is None:
            assert [(part.start, part.end) for part in parts] == [
                (start, min(start + 7, len(content))) for start in range(0, len(content), 7)
            ]


@pytest.mark.usefixtures("small")
@given(groups=st.lists(st.integers(0, 8), max_size=4))
def test_each_row_of_parquet_is_read_once_with_its_number(groups: list[int]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        with pq.ParquetWriter(path, pa.schema([("n", pa.int64())])) as writer:
            for number, rows in enumerate(groups):
                writer.write_table(pa.table({"n": pa.array([100 * number + row for row in range(rows)], pa.int64())}))
        parts = parts_of(path)
        assert all(part.rows <= 3 for part in parts)
        expected = [100 * number + row for number, rows in enumerate(groups) for row in range(rows)]
        assert records(parts) == [(at, b'{"n":%d}' % n, None) for at, n in enumerate(expected)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_mark_of_utf_8_is_no_part_of_the_first_record(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """As PowerShell, .NET and Excel begin a file."""
    for number, lines in enumerate((b'{"a":1}\r\n{"a":2}\r\n', b'{"a":1}', b"\r\n")):
        (tmp_path / f"{number}.json").write_bytes(pack(b"\xef\xbb\xbf" + lines))
    found = [[line for _, line, reason in records([part]) if reason is None] for part in parts_of(tmp_path)]
    assert found == [[b'{"a":1}\r', b'{"a":2}\r'], [b'{"a":1}'], []]


def test_a_record_says_where_it_is_from(tmp_path: Path) -> None:
    path = tmp_path / "a b%3A.json"
    path.write_bytes(b'{"a":1}\n')
    os.utime(path, (0, 1_769_860_800.25))
    (batch,) = read_parts(S3, parts_of(path), {})
    assert batch.to_pylist() == [
        {
            "data": b'{"a":1}',
            "partition_key": None,
            "sequence_number": "0",
            "sub_sequence": 0,
            "shard_id": str(path),
            "arrival": datetime(2026, 1, 31, 12, 0, 0, 250000, UTC),
        }
    ]
    (batch,) = read_parts(S3, parts_of(path, is_table=True), {})
    assert batch["sub_sequence"].to_pylist() == [-2]


def test_a_folder_gives_the_columns_that_records_have_not(tmp_path: Path) -> None:
    folder = tmp_path / "dt=2026-01-31" / "n=7" / "s=7%2F" / "other=x"
    folder.mkdir(parents=True)
    (folder / "a.json").write_bytes(b'{"a":1}\n{}\n{"n":8}\nno object\n')
    found = [data for _, data, _ in records(parts_of(tmp_path), dt=False, n=True, s=False)]
    assert found == [
        b'{"dt":"2026-01-31","n":7,"s":"7/","a":1}',
        b'{"dt":"2026-01-31","n":7,"s":"7/"}',
        b'{"dt":"2026-01-31","n":7,"s":"7/","n":8}',
        b"no object",
    ]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        (b'{"id":1}{} {"id":3}', [b'{"dt":"x","id":1}', b'{"dt":"x"}', b'{"dt":"x","id":3}']),
        (b'{"id":1}{"id":', [b'{"dt":"x","id":1}', b'{"dt":"x","id":']),
        (b"no object", [b"no object"]),
    ],
)
def test_each_object_of_a_line_has_the_columns_of_its_folder(tmp_path: Path, line: bytes, parts: list[bytes]) -> None:
    """As Data Firehose delivers them: behind one another, with nothing between."""
    (tmp_path / "dt=x").mkdir()
    (tmp_path / "dt=x" / "delivery").write_bytes(line + b"\n" + b"{}\n" * 3)
    found = parted(read_parts(S3, parts_of(tmp_path), {"dt": False}, several=True))
    assert [data for batch in found for data in batch["data"].to_pylist()] == [*parts, *[b'{"dt":"x"}'] * 3]


def test_numbers_of_folders_have_leading_zeros_and_objects_blanks_before_them(tmp_path: Path) -> None:
    folder = tmp_path / "month=07" / "n=-012" / "x=1.50" / "ok=true" / "bad=0x7"
    folder.mkdir(parents=True)
    (folder / "a.json").write_bytes(b'{"a":1}\n \t{"a":2}\n')
    found = [data for _, data, _ in records(parts_of(tmp_path), month=True, n=True, x=True, ok=True, bad=True)]
    front = b'{"month":7,"n":-12,"x":1.50,"ok":true,"bad":"0x7",'
    assert found == [front + b'"a":1}', front + b'"a":2}']


def changed(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"1", b"2"))


def damaged(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def unlinked(path: Path) -> None:
    path.unlink()


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("kind", ["json", "parquet"])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (changed, "it was changed since the backfill was asked for"),
        (damaged, "it was changed since the backfill was asked for"),
        (unlinked, "it is not there any more"),
        (replaced_by_a_folder, "it is not there any more"),
    ],
)
def test_a_file_that_is_another_one_by_now_is_not_read(tmp_path: Path, kind: str, change: object, why: str) -> None:
    path, other = tmp_path / "x", tmp_path / "y"
    for one in (path, other):
        one.write_bytes(b'{"n":1}\n') if kind == "json" else pq.write_table(pa.table({"n": [1]}), one)
    parts = parts_of(tmp_path)
    assert callable(change)
    change(path)
    first, second = records(parts)
    assert first[2] == f"file not read: {why}"
    assert first[1].split()[:2] == [b"bytes" if kind == "json" else b"rows", b"0"]
    assert second == (0, b'{"n":1}', None), "the next one is read"


@pytest.mark.usefixtures("small")
def test_what_could_be_read_of_a_damaged_file_is(tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    content = gzip.compress(b"".join(b'{"n":%d}\n' % n for n in range(20_000)))
    path.write_bytes(content[:-9])
    *good, (place, mark, reason) = records(parts_of(path))
    assert [orjson.loads(data)["n"] for _, data, _ in good] == list(range(len(good)))
    assert len(good) > 1000
    assert reason is not None
    assert reason.startswith("file not read: it is damaged: ")
    assert mark == b"bytes %d to the end" % place
    assert place == good[-1][0] + 1


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_long_records_come_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(parts_module, "_BYTES", 1000)
    texts = [f"{n:0200d}" for n in range(100)]
    if kind == "parquet":
        pq.write_table(pa.table({"t": texts}), tmp_path / "x", use_dictionary=False)
    else:
        lines = b"".join(b'{"t":"%s"}\n' % text.encode() for text in texts)
        (tmp_path / "x").write_bytes(gzip.compress(lines))
    found = list(read_parts(S3, parts_of(tmp_path), {}))
    assert max(batch.num_rows for batch in found) == 5
    assert [orjson.loads(data)["t"] for batch in found for data in batch["data"].to_pylist()] == texts


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_text_that_is_not_utf_8_is_a_matter_of_its_row(tmp_path: Path, kind: pa.DataType) -> None:
    given = pa.array([b"a", None, b'"\xff\\', "ü".encode()], pa.binary())
    given = given if kind == pa.string() else given.cast(pa.large_binary())
    texts = pa.Array.from_buffers(kind, len(given), given.buffers())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), texts)
    pq.write_table(pa.table({"t": texts, "l": lists}), tmp_path / "x")
    found = [data for _, data, _ in records(parts_of(tmp_path))]
    assert found == [
        b'{"t":"a","l":["a"]}',
        b'{"l":[null]}',
        b'{"t":"\\"\xff\\\\","l":["\\"\xff\\\\"]}',
        '{"t":"ü","l":["ü"]}'.encode(),
    ]


def test_times_as_spark_writes_them_are_those_of_any_year(tmp_path: Path) -> None:
    times = ["0001-01-01 00:00:00.000000", "1582-10-15 01:00:00.000000", "9999-12-31 23:59:59.999999"]
    written = pa.table({"t": pa.array(times).cast(pa.timestamp("us"))})
    pq.write_table(written, tmp_path / "x", use_deprecated_int96_timestamps=True)
    assert [orjson.loads(data)["t"] for _, data, _ in records(parts_of(tmp_path))] == times


def test_parquet_that_is_damaged_within_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path, compression="none", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:40] = b"\xff" * 36
    path.write_bytes(content)
    ((_, mark, reason),) = records(parts_of(path))
    assert mark == b"rows 0 to 1000"
    assert reason is not None
    assert reason.startswith("file not read: it is damaged")


def test_parquet_that_lacks_a_bit_is_read_or_told(tmp_path: Path) -> None:
    path, refused, read = tmp_path / "x.parquet", 0, 0
    pq.write_table(
        pa.table({"order_id": [f"order {n}" for n in range(50)], "number_of_items": list(range(50))}),
        path,
        row_group_size=20,
    )
    whole, found = path.read_bytes(), parts_of(path)
    for content in damaged_by_a_bit(whole):
        path.write_bytes(content)
        try:
            parts_of(path)
        except RequestError as error:
            refused += f"{path} is damaged" in str(error)
        # Behind the request, and where the store does not tell.
        (file,) = find_files(StoreSettings(LakePath.parse(str(path)), S3), LakePath.parse("/elsewhere"))
        read += len(records(replace(part, etag=file.etag) for part in found)) > 0
    assert (refused > 20, read) == (True, 200)


def test_parquet_whose_footer_contradicts_itself_is_told(tmp_path: Path) -> None:
    """Of as many rows as it may name, parts would be made until the memory is full."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"n": list(range(50))}), path)
    content = path.read_bytes()
    at = content.rindex(b"\x16\x64", 0, content.rindex(b"ARROW:schema"))  # 50 as a varint, by zigzag
    path.write_bytes(content[:at] + b"\x16\x66" + content[at + 2 :])
    with pytest.raises(RequestError, match=r"x\.parquet is damaged: its row groups have"):
        parts_of(path)


def test_a_line_without_an_end_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"n":1}\n' + b"x" * 5000)
    monkeypatch.setattr(parts_module, "_CHUNK", 10)
    monkeypatch.setattr(parts_module, "_LONGEST_LINE", 100)
    first, (_, _, reason) = records(parts_of(path))
    assert first == (0, b'{"n":1}', None)
    assert reason is not None
    assert "a line of more than 100 bytes" in reason


def test_a_store_that_does_not_answer_is_no_fault_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b'{"n":1}\n')
    (part,) = parts_of(path)

    def fails(*_: object, **__: object) -> Iterator[bytes]:
        raise OSError("connection reset")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts_module.obstore, "get", fails)
        with pytest.raises(StorageUnavailableError, match="connection reset"):
            list(read_parts(S3, [part], {}))
