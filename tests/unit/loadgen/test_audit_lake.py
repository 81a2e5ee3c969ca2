"""Files of a lake, as the writers leave them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from lakestream_loadgen.audit import read_json_lake, read_parquet, read_quarantine
from lakestream_loadgen.audit.lake import QUARANTINE_SCHEMA
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.errors import LakeError
from lakestream_loadgen.events import EventMix, OrderEvents

RECORDS = OrderEvents(seed=1, worker=0, prefix="t", mix=EventMix(malformed=0.0)).take(9, 1.79e9)


def lines(start: int, end: int) -> bytes:
    rows = []
    for number, record in enumerate(RECORDS[start:end], start):
        place = {"_shard_id": "s0", "_sequence_number": str(number), "_sub_sequence": 0, "_arrival": "2026"}
        rows.append({**json.loads(record.data), **place, "dt": "2026-01-01", "_rescued": None})
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def test_plain_gzip_and_zstd_are_read_and_the_rest_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path / "dt=2026-01-01" / "b0-0.json", lines(0, 3))
    put(tmp_path / "dt=2026-01-02" / "b1-0.json.gz", gzip.compress(lines(3, 6)))
    put(tmp_path / "b2-0.json.zst", pa.Codec("zstd").compress(lines(6, 9), asbytes=True))
    put(tmp_path / "b3-0.json", b"")
    put(tmp_path / "_manifest" / "x.json", b"{}")
    put(tmp_path / ".b2-0.json.crc", b"crc")
    put(tmp_path / "b2-0.txt", b"notes")
    table = read_json_lake(str(tmp_path))
    assert sorted(table["event_id"].to_pylist()) == sorted(record.event_id for record in RECORDS)
    assert sorted(table["_sequence_number"].to_pylist()) == [str(number) for number in range(9)]


def test_a_partition_by_a_column_of_ours_is_no_hidden_folder(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in lines(0, 2).splitlines()]
    for row in rows:
        del row["_shard_id"]
    put(tmp_path / "_shard_id=s0" / "a.json", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert read_json_lake(str(tmp_path))["_shard_id"].to_pylist() == ["s0", "s0"]


def test_only_the_files_of_a_list_count_and_all_must_be_there(tmp_path: Path) -> None:
    put(tmp_path / "a.json", lines(0, 3))
    put(tmp_path / "b.json", lines(3, 6))
    assert len(read_json_lake(str(tmp_path), ["b.json"])) == 3
    with pytest.raises(LakeError, match=r"c\.json"):
        read_json_lake(str(tmp_path), ["b.json", "c.json"])


def test_columns_that_only_the_folders_hold_come_from_there(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in lines(0, 2).splitlines()]
    for row in rows:
        del row["status"], row["version"]
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    put(tmp_path / "status=so%20so" / "version=7" / "a.json", data)
    put(tmp_path / "status=__HIVE_DEFAULT_PARTITION__" / "version=8" / "a.json", data)
    table = read_json_lake(str(tmp_path))
    assert sorted(zip(table["status"].to_pylist(), table["version"].to_pylist(), strict=True), key=str) == [
        ("so so", 7),
        ("so so", 7),
        (None, 8),
        (None, 8),
    ]


@pytest.mark.parametrize("data", [b"not json\n", b"7\n", b'{"_sub_sequence": "one"}\n', lines(0, 1)[:-40]])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, data: bytes) -> None:
    put(tmp_path / "bad.json", data)
    with pytest.raises(LakeError, match=r"bad\.json"):
        read_json_lake(str(tmp_path))


def test_a_value_that_is_none_of_its_column_is_null(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in lines(0, 6).splitlines()]
    expected = [row["amount"] for row in rows]
    wrong = {"amount": "NaN", "version": "one", "status": 7, "created_at": 17, "note": ["x"], "customer_id": None}
    for row, (column, value) in zip(rows, wrong.items(), strict=True):
        row[column] = value
    rows[1]["amount"], expected[1] = 12, 12.0
    put(tmp_path / "a.json", b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    table = read_json_lake(str(tmp_path))
    assert table["amount"].to_pylist() == [None, *expected[1:]]
    for row, column in enumerate(wrong):
        assert [at for at, value in enumerate(table[column].to_pylist()) if value is None] == [row]
    assert table["_sequence_number"].to_pylist() == list("012345")


def test_a_damaged_parquet_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "part.parquet"
    pyarrow.parquet.write_table(pa.table({"event_id": ["a"]}), file)
    whole = file.read_bytes()
    footer = int.from_bytes(whole[-8:-4], "little") + 8
    file.write_bytes(whole[:-footer] + b"\xff" * 4 + whole[-footer + 4 :])
    with pytest.raises(LakeError, match=r"part\.parquet: .*Couldn't deserialize thrift"):
        read_parquet(str(tmp_path))


def test_a_damaged_archive_is_named(tmp_path: Path) -> None:
    put(tmp_path / "bad.json.gz", gzip.compress(lines(0, 9))[:-30])
    with pytest.raises(LakeError, match=r"bad\.json\.gz"):
        read_json_lake(str(tmp_path))


def test_a_file_that_begins_with_null_is_named(tmp_path: Path) -> None:
    """Arrow crashes at it, and the audit ended by SIGSEGV."""
    put(tmp_path / "odd.json", b"\n null\n" + lines(0, 1))
    with pytest.raises(LakeError, match=r"odd\.json: its first line is no object"):
        read_json_lake(str(tmp_path))


def test_no_files_are_no_rows(tmp_path: Path) -> None:
    assert len(read_json_lake(str(tmp_path))) == 0
    assert len(read_quarantine(str(tmp_path))) == 0
    assert read_parquet(str(tmp_path)).column_names == EVENT_SCHEMA.names


def test_quarantine_keeps_the_raw_bytes(tmp_path: Path) -> None:
    row = {
        "data": b"\xff\x00",
        "partition_key": "k",
        "shard_id": "s0",
        "sequence_number": "5",
        "sub_sequence": 0,
        "reason": "not UTF-8",
    }
    arrival = pa.array([0], pa.timestamp("us", "UTC"))
    table = pa.Table.from_pylist([row], schema=QUARANTINE_SCHEMA).append_column("arrival", arrival)
    pyarrow.parquet.write_table(table, tmp_path / "q.parquet")
    assert read_quarantine(str(tmp_path)).to_pylist() == [row]


def test_a_quarantine_without_a_column_is_named(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"data": [b""]}), tmp_path / "q.parquet")
    with pytest.raises(LakeError, match=r"q\.parquet lacks .*shard_id"):
        read_quarantine(str(tmp_path))


@pytest.mark.parametrize("location", ["ftp://host/x", "/no/such/folder"])
def test_other_places_are_refused(location: str) -> None:
    with pytest.raises(LakeError, match=location):
        read_json_lake(location)
