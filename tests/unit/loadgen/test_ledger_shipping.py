"""Ledgers that are shipped while they grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakestream_loadgen.errors import LakeError, LedgerError
from lakestream_loadgen.ledger.outcomes import Outcome, Settled
from lakestream_loadgen.ledger.reader import read_ledger, read_ledgers
from lakestream_loadgen.ledger.shipping import PART_BYTES, LedgerShipper, join, parts_of
from lakestream_loadgen.ledger.writer import LedgerWriter
from lakestream_loadgen.records import Record
from lakestream_loadgen.storage import Folder

RECORDS = [Record(f"t-{number}", "k", b"data %d" % number, malformed=False) for number in range(6)]


@pytest.fixture
def target(tmp_path: Path) -> Folder:
    (tmp_path / "kept").mkdir()
    return Folder(str(tmp_path / "kept"))


def test_a_shipped_ledger_reads_like_the_one_it_is_of(tmp_path: Path, target: Folder) -> None:
    writer = LedgerWriter(tmp_path / "here", stream="orders", prefix="t-w0")
    shipper = LedgerShipper(tmp_path / "here", target)
    writer.sent(RECORDS[:3])
    shipper.ship()
    writer.sent(RECORDS[3:])
    writer.settled(Settled(Outcome.ACKNOWLEDGED, [0, 4], [1, 1], ["s", "s"], ["1", "2"]))
    writer.close()
    shipper.ship()
    assert read_ledger(target.location).equals(read_ledger(str(tmp_path / "here")))
    assert shipper.ship() == 0
    assert len(target.names()) == 2


def test_another_shipper_goes_on_where_the_parts_end(tmp_path: Path, target: Folder) -> None:
    writer = LedgerWriter(tmp_path / "here", stream="orders", prefix="t-w0")
    for record in RECORDS:
        writer.sent([record])
        LedgerShipper(tmp_path / "here", target).ship()
    writer.close()
    assert len(target.names()) == len(RECORDS)
    ledgers = read_ledgers(target.location)
    assert ledgers.entries["event_id"].to_pylist() == [record.event_id for record in RECORDS]
    assert [one.name for one in ledgers.open] == ["t-w0.ledger"], "its end was not shipped"
    LedgerShipper(tmp_path / "here", target).ship()
    assert read_ledgers(target.location).open == ()


@pytest.mark.parametrize("again", [False, True], ids=["the same shipper", "another one"])
@pytest.mark.parametrize("when", ["before", "behind"])
def test_a_part_that_a_store_writes_after_it_gave_no_answer_fits_to_what_follows(
    tmp_path: Path, target: Folder, when: str, again: bool
) -> None:
    class Late:
        """Carries out its first request before the second one, or behind all others, whatever it told of it."""

        def __init__(self) -> None:
            self.held: list[tuple[str, bytes]] = []
            self.sizes = target.sizes

        def add(self, name: str, data: bytes) -> int:
            if not self.held:
                self.held.append((name, data))
                raise LakeError("it does not answer")
            if when == "before":
                target.add(*self.held[0])
            return target.add(name, data)

    late = Late()
    writer = LedgerWriter(tmp_path / "here", stream="orders", prefix="t-w0")
    shipper = LedgerShipper(tmp_path / "here", late)  # type: ignore[arg-type]
    writer.sent(RECORDS[:3])
    with pytest.raises(LakeError):
        shipper.ship()
    writer.sent(RECORDS[3:])
    writer.close()
    if again:
        shipper = LedgerShipper(tmp_path / "here", late)  # type: ignore[arg-type]
    shipper.ship()
    target.add(*late.held[0])
    assert read_ledger(target.location).equals(read_ledger(str(tmp_path / "here")))


def test_much_is_shipped_in_small_parts_and_gone_on_with_where_it_failed(tmp_path: Path) -> None:
    class Failing:
        def __init__(self) -> None:
            self.parts: dict[str, int] = {}
            self.left = 2

        def sizes(self) -> dict[str, int]:
            return {}

        def add(self, name: str, data: bytes) -> int:
            if not self.left:
                raise LakeError("it is away")
            self.left -= 1
            self.parts[name] = len(data)
            return len(data)

    target = Failing()
    with (tmp_path / "t.ledger").open("wb") as ledger:
        ledger.truncate(3 * PART_BYTES + 17)
    shipper = LedgerShipper(tmp_path, target)  # type: ignore[arg-type]
    with pytest.raises(LakeError):
        shipper.ship()
    target.left = 9
    assert shipper.ship() == PART_BYTES + 17
    sizes = [PART_BYTES, PART_BYTES, PART_BYTES, 17]
    assert target.parts == {f"t.ledger/{number * PART_BYTES:020d}": size for number, size in enumerate(sizes)}


def test_what_is_appended_while_it_is_shipped_waits_for_the_next_time(tmp_path: Path) -> None:
    source = tmp_path / "t.ledger"
    source.write_bytes(b"sent")

    class Slow:
        def sizes(self) -> dict[str, int]:
            return {}

        def add(self, name: str, data: bytes) -> int:
            with source.open("ab") as growing:
                growing.write(b"more")
            return len(data)

    shipper = LedgerShipper(tmp_path, Slow())  # type: ignore[arg-type]
    assert [shipper.ship() for _ in range(3)] == [4, 4, 4]


def test_one_that_cannot_be_read_holds_up_no_other(tmp_path: Path, target: Folder) -> None:
    (tmp_path / "a.ledger").mkdir()
    for name in ("b.ledger", "c.ledger"):
        (tmp_path / name).write_bytes(b"sent")
    shipper = LedgerShipper(tmp_path, target)
    with pytest.raises(LedgerError, match=r"a\.ledger cannot be read: Is a directory$"):
        shipper.ship()
    assert sorted(parts_of(target.sizes())) == ["b.ledger", "c.ledger"]
    (tmp_path / "a.ledger").rmdir()
    (tmp_path / "a.ledger").write_bytes(b"at last")
    assert shipper.ship() == len(b"at last")


def test_a_missing_part_is_an_error_that_names_it(tmp_path: Path, target: Folder) -> None:
    for offset, data in ((0, b"abc"), (5, b"f")):
        target.add(f"t.ledger/{offset:020d}", data)
    with pytest.raises(LedgerError, match="from byte 3 to 5 is missing"):
        join(target, "t.ledger", parts_of(target.sizes())["t.ledger"])


@given(st.lists(st.binary(min_size=1, max_size=5), min_size=1))
def test_parts_of_any_sizes_join_to_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, data: list[bytes]
) -> None:
    here, kept = tmp_path_factory.mktemp("here"), tmp_path_factory.mktemp("kept")
    shipper = LedgerShipper(here, Folder(str(kept)))
    with (here / "t.ledger").open("ab", buffering=0) as file:
        for piece in data:
            file.write(piece)
            shipper.ship()
    folder = Folder(str(kept))
    assert join(folder, "t.ledger", parts_of(folder.sizes())["t.ledger"]) == b"".join(data)
