"""The files of one task of the JSON sink, from Arrow batches as Spark hands them over."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from lakestream.sinks.contract import BatchRef, FileEntry
from lakestream.sinks.json_files import Compression, task_files, text_of
from lakestream.sinks.objects import name_pattern, object_name

REF = BatchRef(batch=12, checkpoint="5e0c11aa-1111-4222-8333-444455556666")


def batches(*rows: tuple[str, str | None], size: int = 2) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        yield pa.RecordBatch.from_pydict(
            {"_lakestream_line": pa.array([r[0] for r in part]), "dt": pa.array([r[1] for r in part], pa.string())}
        )


def plain(files: Iterator[tuple[FileEntry, bytes | memoryview]]) -> dict[str, bytes]:
    return {entry.path: bytes(content) for entry, content in files}


def test_text_is_the_slice_of_the_arrays_own_buffer() -> None:
    lines = pa.array(["a\n", "bb\n", "", "ccc\n", "d\n"])
    assert text_of(lines).to_pybytes() == b"a\nbb\nccc\nd\n"
    assert text_of(lines.slice(1, 3)).to_pybytes() == b"bb\nccc\n"
    assert text_of(lines.slice(5)).to_pybytes() == b""
    assert text_of(lines.cast(pa.large_string()).slice(1, 1)).to_pybytes() == b"bb\n"
    assert text_of(lines).address == lines.buffers()[2].address


def test_one_file_without_partitions() -> None:
    rows = batches(("1\n", None), ("2\n", None), ("3\n", None))
    files = list(task_files(REF, (), Compression.NONE, 3, (batch.select(["_lakestream_line"]) for batch in rows)))
    ((entry, content),) = files
    assert (entry.path, entry.rows, entry.bytes, entry.partition) == ("b000000000012-00003-5e0c11aa.json", 3, 6, "")
    assert bytes(content) == b"1\n2\n3\n"


def test_a_file_for_each_partition_with_its_rows_in_order() -> None:
    rows = batches(("1\n", "a"), ("2\n", None), ("3\n", "b"), ("4\n", "a"), ("5\n", ""), ("6\n", "a"), size=3)
    assert plain(task_files(REF, ("dt",), Compression.NONE, 0, rows)) == {
        "dt=a/b000000000012-00000-5e0c11aa.json": b"1\n4\n6\n",
        "dt=b/b000000000012-00000-5e0c11aa.json": b"3\n",
        # Null and the empty string are one partition.
        "dt=__HIVE_DEFAULT_PARTITION__/b000000000012-00000-5e0c11aa.json": b"2\n5\n",
    }


def test_two_partition_columns() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"_lakestream_line": ["1\n", "2\n", "3\n"], "a": ["x", "x", None], "b": ["1", "2", "1"]},
    )
    files = plain(task_files(REF, ("a", "b"), Compression.NONE, 0, iter([batch])))
    assert {path.rsplit("/", 1)[0]: content for path, content in files.items()} == {
        "a=x/b=1": b"1\n",
        "a=x/b=2": b"2\n",
        "a=__HIVE_DEFAULT_PARTITION__/b=1": b"3\n",
    }


@pytest.mark.parametrize("compression", list(Compression))
def test_the_same_rows_are_the_same_bytes(compression: Compression) -> None:
    rows = [(f'{{"n":{n}}}\n', "ab"[n % 2]) for n in range(100)]
    once = plain(task_files(REF, ("dt",), compression, 0, batches(*rows, size=30)))
    assert plain(task_files(REF, ("dt",), compression, 0, batches(*rows, size=30))) == once


def test_a_file_of_several_gzip_members_is_one_file() -> None:
    rows = [(f'{{"n":{n}}}\n', "a") for n in range(100)]
    (content,) = plain(task_files(REF, ("dt",), Compression.GZIP, 0, batches(*rows, size=30))).values()
    assert gzip.decompress(content).decode() == "".join(line for line, _ in rows)


def test_a_file_of_several_zstd_frames_is_one_file() -> None:
    rows = [(f'{{"n":{n}}}\n', "a") for n in range(100)]
    (content,) = plain(task_files(REF, ("dt",), Compression.ZSTD, 0, batches(*rows, size=30))).values()
    with pa.CompressedInputStream(pa.BufferReader(content), "zstd") as stream:
        assert stream.read().decode() == "".join(line for line, _ in rows)


def test_a_task_without_rows_has_no_file() -> None:
    assert list(task_files(REF, (), Compression.GZIP, 0, iter([]))) == []
    assert list(task_files(REF, (), Compression.GZIP, 0, batches(("1\n", None)))) != []
    empty = pa.RecordBatch.from_pydict({"_lakestream_line": pa.array([], pa.string())})
    assert list(task_files(REF, (), Compression.GZIP, 0, iter([empty]))) == []


def test_names_of_the_checkpoint_are_told_from_others_and_tell_their_batch() -> None:
    pattern = name_pattern(REF.checkpoint)
    for path in (
        object_name(REF, 3, "json"),
        "dt=a/" + object_name(REF, 123456, "json.gz"),
        "dt=a/" + object_name(replace(REF, attempt="5e0c11ab"), 3, "json.gz"),
    ):
        found = pattern.fullmatch(path)
        assert found is not None
        assert int(found["batch"]) == REF.batch
    assert not pattern.fullmatch("dt=a/" + object_name(BatchRef(12, "00000000-1"), 3, "json"))
    assert not pattern.fullmatch("dt=a/" + object_name(REF, 3, "json") + "/other")
