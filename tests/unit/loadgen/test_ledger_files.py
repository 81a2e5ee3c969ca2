"""Ledger files: written, read, torn and damaged."""

from __future__ import annotations

import resource
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakestream_loadgen.errors import LakeError, LedgerError
from lakestream_loadgen.ledger.format import LEDGER_SCHEMA
from lakestream_loadgen.ledger.outcomes import Outcome, Settled
from lakestream_loadgen.ledger.reader import read_ledger, read_ledgers
from lakestream_loadgen.ledger.writer import LedgerWriter
from lakestream_loadgen.records import Record

HEAD_BYTES = 17
RECORDS = [Record(f"t-{number}", "k", b"data %d" % number, malformed=number == 1) for number in range(4)]


def write(folder: Path, prefix: str = "t-w0", stream: str = "orders") -> Path:
    writer = LedgerWriter(folder, stream=stream, prefix=prefix)
    first = writer.sent(RECORDS[:3])
    second = writer.sent(RECORDS[3:])
    assert (first, second) == (0, 3)
    writer.settled(Settled(Outcome.ACKNOWLEDGED, range(1, 3), [1, 2], ["s0", "s1"], ["11", "12"]))
    writer.settled(Settled(Outcome.FAILED, [0], [0]))
    writer.close()
    return writer.path


def test_outcomes_meet_the_records_they_are_of(tmp_path: Path) -> None:
    write(tmp_path)
    assert read_ledger(str(tmp_path)).to_pylist() == [
        entry("t-0", 0, Outcome.FAILED, None, None, 0),
        entry("t-1", 1, Outcome.ACKNOWLEDGED, "s0", "11", 1),
        entry("t-2", 2, Outcome.ACKNOWLEDGED, "s1", "12", 2),
        entry("t-3", 3, Outcome.UNKNOWN, None, None, -1),
    ]


def entry(
    event_id: str, number: int, outcome: Outcome, shard: str | None, sequence: str | None, attempts: int
) -> dict[str, object]:
    return {
        "event_id": event_id,
        "checksum": crc32(RECORDS[number].data),
        "malformed": number == 1,
        "outcome": outcome,
        "shard_id": shard,
        "sequence_number": sequence,
        "attempts": attempts,
    }


def test_each_frame_is_in_the_file_as_soon_as_it_is_written(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path, stream="orders", prefix="t")
    writer.sent(RECORDS)
    assert read_ledger(str(tmp_path))["event_id"].to_pylist() == ["t-0", "t-1", "t-2", "t-3"]
    writer.close()


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_cut_file_keeps_its_whole_frames(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    path = write(folder)
    whole = path.read_bytes()
    cut = data.draw(st.integers(header_end(whole), len(whole)))
    path.write_bytes(whole[:cut])
    ledgers = read_ledgers(str(folder))
    ids = ledgers.entries["event_id"].to_pylist()
    assert ids in ([], ["t-0", "t-1", "t-2"], ["t-0", "t-1", "t-2", "t-3"])
    assert cut < len(whole) or len(ids) == 4
    assert [(one.name, one.prefix, one.rows) for one in ledgers.open] == (
        [("t-w0.ledger", "t-w0", range(len(ids)))] if cut < len(whole) else []
    )


def header_end(whole: bytes) -> int:
    return whole.index(b'"prefix":"t-w0"}') + len(b'"prefix":"t-w0"}')


@pytest.mark.parametrize("stream", [None, "orders"])
def test_a_file_that_ends_within_its_header_has_no_entries(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, stream: str | None
) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    cut = tmp_path / "t-w1.ledger"
    for length in range(header_end(whole)):
        cut.write_bytes(whole[:length])
        caplog.clear()
        assert len(read_ledger(str(tmp_path), stream=stream)) == 4
        assert f"t-w1.ledger ends within its header, after {length} bytes: it has no entries" in caplog.text
    path.unlink()
    assert read_ledger(str(tmp_path)) == LEDGER_SCHEMA.empty_table()


def test_a_shipped_file_that_ends_within_its_header_has_no_entries(tmp_path: Path) -> None:
    part = write(tmp_path).read_bytes()[:10]
    (tmp_path / "t-w1.ledger").mkdir()
    (tmp_path / "t-w1.ledger" / f"{0:020d}").write_bytes(part)
    assert len(read_ledger(str(tmp_path))) == 4


def test_a_header_that_is_not_merely_short_is_damaged(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    length_at, body_at = 8, 16
    for damaged in (
        whole[:length_at] + b"\xff\xff" + whole[length_at + 2 :],  # longer than the file
        whole[:body_at] + b"[" + whole[body_at + 1 : header_end(whole) - 1],  # short too, but of something else
        whole[:body_at] + b"[" + whole[body_at + 1 :],
        b"LSL?",
        bytes(4),
    ):
        path.write_bytes(damaged)
        with pytest.raises(LedgerError, match=r"not a ledger file|header is damaged"):
            read_ledger(str(tmp_path))


@pytest.mark.parametrize("free", [0, 5])
def test_a_writer_that_cannot_begin_leaves_no_file(tmp_path: Path, free: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free, limits[1]))
    try:
        with pytest.raises((OSError, LedgerError)):
            LedgerWriter(tmp_path, stream="orders", prefix="t-w0")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
    write(tmp_path)


def test_nothing_comes_behind_half_a_frame_when_a_disk_has_room_again(tmp_path: Path) -> None:
    """Or the file would be damaged in its middle, and all the run with it. Nor does an end, as if all were there."""
    writer = LedgerWriter(tmp_path, stream="orders", prefix="t-w0")
    writer.sent(RECORDS[:1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (writer.path.stat().st_size + 20, limits[1]))
    try:
        with pytest.raises(LedgerError, match="only 20 of"):
            writer.sent(RECORDS[1:])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with pytest.raises(LedgerError, match="t-w0"):
        writer.settled(Settled(Outcome.FAILED, [0], [0]))
    writer.close()
    ledgers = read_ledgers(str(tmp_path))
    assert ledgers.entries.to_pylist() == [entry("t-0", 0, Outcome.UNKNOWN, None, None, -1)]
    assert len(ledgers.open) == 1


def test_an_outcome_that_could_not_be_noted_leaves_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a disk that is full between two frames, and has room when the ledger is closed."""
    writer = LedgerWriter(tmp_path, stream="orders", prefix="t-w0")
    writer.sent(RECORDS[:1])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (writer.path.stat().st_size, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            writer.settled(Settled(Outcome.ACKNOWLEDGED, [0], [1], ["s0"], ["11"]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    writer.close()
    assert len(read_ledgers(str(tmp_path)).open) == 1


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_is_found(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    path = write(folder)
    whole = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(whole)
    with pytest.raises(LedgerError):
        read_ledger(str(folder))


def frames_of(whole: bytes) -> list[int]:
    """Where the frames begin, and the last ends."""
    starts = [header_end(whole)]
    while starts[-1] < len(whole):
        starts.append(starts[-1] + HEAD_BYTES + int.from_bytes(whole[starts[-1] + 1 : starts[-1] + 5], "little"))
    return starts


def test_a_last_frame_that_is_damaged_is_told_where_the_end_is_marked_and_torn_where_it_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    *_, last, end, size = frames_of(whole)
    for damaged in (last + HEAD_BYTES, end + HEAD_BYTES):
        path.write_bytes(whole[:damaged] + bytes([whole[damaged] ^ 1]) + whole[damaged + 1 :])
        with pytest.raises(LedgerError, match=r"bytes follow it|marks its end"):
            read_ledger(str(tmp_path))
    path.write_bytes(whole[: last + HEAD_BYTES] + bytes(1) + whole[last + HEAD_BYTES + 1 : end])
    assert [one.rows for one in read_ledgers(str(tmp_path)).open] == [range(4)]
    assert f"t-w0.ledger: its last {end - last} bytes were not written whole" in caplog.text
    path.write_bytes(whole + b"more")
    with pytest.raises(LedgerError, match="4 bytes follow its end"):
        read_ledger(str(tmp_path))
    assert size == len(whole)


def test_zeros_behind_what_was_written_are_a_torn_tail(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As a machine leaves them that lost its power: the file was longer by then, and its blocks were not written."""
    path = write(tmp_path)
    whole = path.read_bytes()
    _, second, *_, end, size = frames_of(whole)
    for cut in (second, second + 5, second + HEAD_BYTES, second + HEAD_BYTES + 3, end, end + HEAD_BYTES):
        path.write_bytes(whole[:cut] + bytes(4096))
        caplog.clear()
        ledgers = read_ledgers(str(tmp_path))
        assert ledgers.entries["event_id"].to_pylist() == [f"t-{n}" for n in range(3 if cut < end else 4)]
        assert len(ledgers.open) == 1
        assert "were not written whole, and are left out" in caplog.text
    path.write_bytes(whole + bytes(4096))
    assert read_ledgers(str(tmp_path)).open == ()
    path.write_bytes(whole[:second] + bytes(second) + whole[second:size])
    with pytest.raises(LedgerError, match="head of the frame"):
        read_ledger(str(tmp_path))


def test_a_ledger_of_the_version_before_is_read_and_has_no_end(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    body = b'{"version":1,"stream":"orders","prefix":"t-w0"}'
    head = whole[:8] + len(body).to_bytes(4, "little") + crc32(body).to_bytes(4, "little")
    path.write_bytes(head + body + whole[header_end(whole) : frames_of(whole)[-2]])
    ledgers = read_ledgers(str(tmp_path))
    assert ledgers.entries["event_id"].to_pylist() == ["t-0", "t-1", "t-2", "t-3"]
    assert [one.name for one in ledgers.open] == ["t-w0.ledger"]


def test_an_end_that_tells_of_other_records_is_damage(tmp_path: Path) -> None:
    path = write(tmp_path)
    whole = path.read_bytes()
    starts = frames_of(whole)
    path.write_bytes(whole[: starts[3]] + whole[starts[4] :])
    with pytest.raises(LedgerError, match="its end tells of other records"):
        read_ledger(str(tmp_path))


def test_the_files_of_all_workers_are_read_and_streams_told_apart(tmp_path: Path) -> None:
    write(tmp_path, "t-w0", "orders")
    write(tmp_path / "deeper", "t-w1", "returns")
    (tmp_path / "other.txt").write_text("not ours")
    assert len(read_ledger(str(tmp_path))) == 8
    assert len(read_ledger(f"file://{tmp_path}", stream="returns")) == 4
    with pytest.raises(LedgerError, match="'none'"):
        read_ledger(str(tmp_path), stream="none")


def test_two_workers_of_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    with pytest.raises(LedgerError, match="two workers"):
        LedgerWriter(tmp_path, stream="orders", prefix="t-w0")


def test_an_outcome_of_nothing_is_damage(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path, stream="orders", prefix="t")
    writer.settled(Settled(Outcome.FAILED, [0], [0]))
    writer.close()
    with pytest.raises(LedgerError, match="never sent"):
        read_ledger(str(tmp_path))


def test_no_ledger_and_no_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no \*\.ledger"):
        read_ledger(str(tmp_path))
    with pytest.raises(LakeError, match="not a folder"):
        read_ledger(str(tmp_path / "none"))
    (tmp_path / "x.ledger").write_bytes(b"something else")
    with pytest.raises(LedgerError, match="not a ledger"):
        read_ledger(str(tmp_path))
