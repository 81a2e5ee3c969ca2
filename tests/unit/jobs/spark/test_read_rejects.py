"""The quarantine's files as records of the stream."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakestream.errors import PermanentError
from lakestream.kinesis.batches import SCHEMA
from lakestream.model import FileEntry
from lakestream.spark.rejects import read_rejects
from lakestream.storage import LakePath, S3Settings, StoreSettings
from lakestream.testing.damage import damaged

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def place_of(folder: Path) -> StoreSettings:
    return StoreSettings(LakePath.parse(str(folder)), S3Settings("eu-west-1"))


def a_file(folder: Path, name: str, *records: tuple[str, int, bytes]) -> FileEntry:
    rows = [
        {"reason": "not JSON", "shard_id": shard, "sequence_number": str(number), "sub_sequence": 0, "data": data}
        | {"partition_key": None, "arrival": NOW}
        for shard, number, data in records
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / name)
    return FileEntry(name, len(rows), (folder / name).stat().st_size, "")


def test_records_come_as_from_the_stream_each_batch_of_one_shard(tmp_path: Path) -> None:
    files = [
        a_file(tmp_path, "a.parquet", ("shard-2", 5, b"e"), ("shard-1", 9, b"\xff"), ("shard-2", 6, b"f")),
        a_file(tmp_path, "b.parquet", ("shard-1", 10, b"")),
    ]
    found = list(read_rejects(place_of(tmp_path), files))
    assert {batch.schema for batch in found} == {SCHEMA}
    assert [(batch["shard_id"].to_pylist(), batch["data"].to_pylist()) for batch in found] == [
        (["shard-1"], [b"\xff"]),
        (["shard-2", "shard-2"], [b"e", b"f"]),
        (["shard-1"], [b""]),
    ]


def test_a_file_that_was_removed_is_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    gone, there = FileEntry("gone.parquet", 7, 100, ""), a_file(tmp_path, "a.parquet", ("shard-1", 9, b"{}"))
    with caplog.at_level(logging.WARNING):
        (found,) = read_rejects(place_of(tmp_path), [gone, there])
    assert found["data"].to_pylist() == [b"{}"]
    assert "gone.parquet" in caplog.text
    assert "its 7 records are not read" in caplog.text


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more"])
def test_a_damaged_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(PermanentError, match=r"a\.parquet under .* is no file of the quarantine any more"):
        list(read_rejects(place_of(tmp_path), [FileEntry("a.parquet", 1, len(content), "")]))


def test_one_that_lacks_a_bit_is_read_or_named(tmp_path: Path) -> None:
    entry = a_file(tmp_path, "a.parquet", *((f"shard-{number % 2}", number, b"{") for number in range(50)))
    refused = 0
    for content in damaged((tmp_path / entry.path).read_bytes()):
        (tmp_path / entry.path).write_bytes(content)
        try:
            list(read_rejects(place_of(tmp_path), [entry]))
        except PermanentError as error:
            refused += "a.parquet under" in str(error)
    assert refused > 50


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    rows = pa.table({name: pa.array([None], field.type) for name, field in zip(SCHEMA.names, SCHEMA, strict=True)})
    pq.write_table(rows, tmp_path / "a.parquet")
    with pytest.raises(PermanentError, match="no file of the quarantine"):
        list(read_rejects(place_of(tmp_path), [FileEntry("a.parquet", 1, 1, "")]))
