"""``lakestream audit`` as a script sees it: exit status, report, messages."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from lakestream_loadgen.audit import fold, read_json_lake
from lakestream_loadgen.audit.lake import QUARANTINE_SCHEMA
from lakestream_loadgen.cli import audit_app
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.events import EventMix, OrderEvents
from lakestream_loadgen.ledger.outcomes import Outcome, Settled
from lakestream_loadgen.ledger.writer import LedgerWriter

RECORDS = OrderEvents(seed=3, worker=0, prefix="t", mix=EventMix(malformed=0.0)).take(50, 1.79e9)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    ledger = LedgerWriter(tmp_path / "ledger", stream="orders", prefix="t")
    first = ledger.sent(RECORDS)
    numbers = [str(number) for number in range(50)]
    ledger.settled(Settled(Outcome.ACKNOWLEDGED, range(first, 50), [1] * 50, ["s0"] * 50, numbers))
    ledger.close()
    (tmp_path / "json").mkdir()
    rows = []
    for number, record in zip(numbers, RECORDS, strict=True):
        place = {"_shard_id": "s0", "_sequence_number": number, "_sub_sequence": 0, "_arrival": "2026"}
        rows.append(json.dumps({**json.loads(record.data), **place}))
    (tmp_path / "json" / "a.json").write_text("\n".join(rows[:25]) + "\n")
    (tmp_path / "json" / "b.json").write_text("\n".join(rows[25:]) + "\n")
    (tmp_path / "snapshot").mkdir()
    snapshot = fold(read_json_lake(str(tmp_path / "json"))).select(EVENT_SCHEMA.names).cast(EVENT_SCHEMA)
    pa.parquet.write_table(snapshot, tmp_path / "snapshot" / "s.parquet")
    return tmp_path


def run(lake: Path, *arguments: str) -> tuple[int, str]:
    command = ["--ledger", str(lake / "ledger"), "--json", str(lake / "json"), *arguments]
    result = CliRunner().invoke(audit_app, command)
    return result.exit_code, result.output


def test_an_intact_lake_exits_with_0_and_reports(lake: Path) -> None:
    report = lake / "report.json"
    status, output = run(lake, "--snapshot", str(lake / "snapshot"), "--report", str(report))
    assert (status, output.splitlines()[-1]) == (0, "audit passed")
    document = json.loads(report.read_text())
    assert document["ok"]
    assert document["audit"]["acknowledged"] == document["audit"]["rows"] == 50
    assert document["snapshot"]["ok"]


def test_where_nothing_was_written_there_is_nothing_to_audit(tmp_path: Path) -> None:
    LedgerWriter(tmp_path / "ledger", stream="orders", prefix="t").close()
    (tmp_path / "json").mkdir()
    status, output = run(tmp_path)
    told = (
        f"lakestream audit: by the ledgers under {tmp_path}/ledger no record was written: there is nothing to audit\n"
    )
    assert (status, output) == (2, told)


def test_of_the_ledgers_of_several_streams_one_has_to_be_chosen(lake: Path) -> None:
    """All records of the other streams were missing."""
    ledger = LedgerWriter(lake / "ledger", stream="clicks", prefix="u")
    row = ledger.sent([RECORDS[0]._replace(event_id="u-1")])
    ledger.settled(Settled(Outcome.ACKNOWLEDGED, [row], [1], ["s0"], ["99"]))
    ledger.close()
    status, output = run(lake)
    told = f"the ledgers under {lake / 'ledger'} are of several streams: say which by --stream (clicks, orders)\n"
    assert (status, output) == (2, f"lakestream audit: {told}")
    assert run(lake, "--stream", "orders")[0] == 0
    assert run(lake, "--stream", "clicks")[0] == 1


def test_a_lost_file_exits_with_1_and_says_which_events(lake: Path) -> None:
    (lake / "json" / "b.json").unlink()
    report = lake / "report.json"
    status, output = run(lake, "--report", str(report))
    assert status == 1
    assert f"missing: {RECORDS[25].event_id} at s0 25" in output
    assert "AUDIT FAILED" in output
    document = json.loads(report.read_text())
    assert (document["ok"], document["audit"]["missing"], document["snapshot"]) == (False, 25, None)


def test_a_ledger_whose_last_part_is_missing_is_named_and_does_not_pass(lake: Path) -> None:
    path = lake / "ledger" / "t.ledger"
    path.write_bytes(path.read_bytes()[:-400])
    (lake / "json" / "b.json").unlink()
    report = lake / "report.json"
    status, output = run(lake, "--report", str(report))
    assert status == 2
    assert "t.ledger has no end: 50 events without an outcome, 25 of which did not arrive; 0 rows" in output
    assert "AUDIT INCOMPLETE" in output
    assert "audit passed" not in output
    document = json.loads(report.read_text())
    assert (document["ok"], document["audit"]["missing"]) == (False, 0)
    seen = {"name": "t.ledger", "unsettled": 50, "absent": 25, "sent_after": 0}
    assert document["audit"]["open_ledgers"] == [seen]


def test_a_ledger_of_a_killed_worker_passes_if_one_says_that_it_is(lake: Path) -> None:
    ledger = LedgerWriter(lake / "ledger", stream="orders", prefix="u")
    ledger.sent([RECORDS[0]._replace(event_id="u-1")])
    assert run(lake)[0] == 2
    status, output = run(lake, "--allow-open-ledgers")
    assert status == 0
    assert "u.ledger has no end: 1 events without an outcome, 1 of which did not arrive" in output
    assert output.splitlines()[-1] == "audit passed"
    (lake / "json" / "b.json").unlink()
    assert run(lake, "--allow-open-ledgers")[0] == 1
    ledger.close()


@pytest.mark.parametrize("names", [["_shard_id"], ["_sequence_number"], ["_shard_id", "_sequence_number"]])
def test_a_table_without_the_places_of_its_records_cannot_be_audited(lake: Path, names: list[str]) -> None:
    """As of a transform that names its columns: all were missing, and all but one doubled."""
    for path in (lake / "json").iterdir():
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{name: value for name, value in row.items() if name not in names} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept))
    told = f"lakestream audit: the rows lack {', '.join(names)}: the transform of an audited table must keep it\n"
    assert run(lake) == (2, told)


def test_what_cannot_be_read_of_a_row_is_altered(lake: Path) -> None:
    path = lake / "json" / "a.json"
    first, second, *others = (json.loads(line) for line in path.read_text().splitlines())
    changed = [first | {"created_at": "+10000-01-01T00:00:00.000Z"}, second | {"amount": "NaN"}, *others]
    path.write_text("".join(json.dumps(row) + "\n" for row in changed))
    report = lake / "report.json"
    status, output = run(lake, "--report", str(report))
    assert status == 1
    assert [f"altered: {record.event_id} at" in output for record in RECORDS[:3]] == [True, True, False]
    assert json.loads(report.read_text())["audit"]["altered"] == 2


def test_only_listed_files_count(lake: Path) -> None:
    (lake / "json" / "uncommitted.json").write_bytes((lake / "json" / "a.json").read_bytes())
    assert run(lake)[0] == 1
    (lake / "committed.txt").write_text("a.json\nb.json\n")
    assert run(lake, "--files", str(lake / "committed.txt"))[0] == 0
    # As `lakestream files` prints them.
    (lake / "committed.txt").write_text(f"file://{lake}/json/a.json\nfile://{lake}/json/b.json\n")
    assert run(lake, "--files", str(lake / "committed.txt"))[0] == 0
    (lake / "committed.txt").write_text("s3a://other/json/a.json\n")
    status, output = run(lake, "--files", str(lake / "committed.txt"))
    assert status == 2
    assert "s3a://other/json/a.json is listed, and is not below" in output


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_listed_file_may_have_any_name(lake: Path, end: str) -> None:
    """As of a partition by a text."""
    partition = lake / "json" / "note=a\u2028b\x85c"
    partition.mkdir()
    (lake / "json" / "b.json").rename(partition / "b.json")
    (lake / "committed.txt").write_bytes(f"file://{lake}/json/a.json{end}file://{partition}/b.json{end}".encode())
    status, output = run(lake, "--files", str(lake / "committed.txt"))
    assert status == 0, output


def test_only_listed_files_of_the_quarantine_count(lake: Path) -> None:
    """Those that were replayed are still there, and their records in the table."""
    (lake / "quarantine").mkdir()
    place = {"shard_id": "s0", "sequence_number": "3", "sub_sequence": 0}
    row = dict.fromkeys(QUARANTINE_SCHEMA.names) | {"data": RECORDS[3].data, **place}
    pa.parquet.write_table(pa.Table.from_pylist([row], QUARANTINE_SCHEMA), lake / "quarantine" / "replayed.parquet")
    quarantine = ("--quarantine", str(lake / "quarantine"))
    assert run(lake, *quarantine)[0] == 1
    (lake / "kept.txt").write_text("")
    assert run(lake, *quarantine, "--quarantine-files", str(lake / "kept.txt"))[0] == 0


def test_files_of_a_quarantine_that_is_not_named_are_refused(lake: Path) -> None:
    """Their records would count as missing."""
    (lake / "kept.txt").write_text("a.parquet\n")
    status, output = run(lake, "--quarantine-files", str(lake / "kept.txt"))
    told = "lakestream audit: --quarantine-files goes with --quarantine, the folder that these files are in\n"
    assert (status, output) == (2, told)


def test_a_snapshot_that_differs_exits_with_1(lake: Path) -> None:
    path = lake / "snapshot" / "s.parquet"
    pa.parquet.write_table(pa.parquet.read_table(path).slice(1), path)
    status, output = run(lake, "--snapshot", str(lake / "snapshot"))
    assert status == 1
    assert "missing 1, unexpected 0" in output


def test_a_quarantine_that_no_writer_made_is_empty(lake: Path) -> None:
    """A writer makes the folder with its first unusable record."""
    quarantine = ("--quarantine", str(lake / "checkpoint" / "json" / "quarantine"))
    assert run(lake, *quarantine)[0] == 0
    # As `lakestream files --quarantine` prints it.
    (lake / "kept.txt").write_text("")
    assert run(lake, *quarantine, "--quarantine-files", str(lake / "kept.txt"))[0] == 0
    (lake / "kept.txt").write_text("a.parquet\n")
    assert run(lake, *quarantine, "--quarantine-files", str(lake / "kept.txt"))[0] == 2


def test_what_cannot_be_audited_exits_with_2(lake: Path) -> None:
    ledger = LedgerWriter(lake / "ledger", stream="orders", prefix="u")
    malformed = RECORDS[0]._replace(event_id="u", data=b"", malformed=True)
    ledger.settled(Settled(Outcome.ACKNOWLEDGED, [ledger.sent([malformed])], [1], ["s0"], ["50"]))
    ledger.close()
    for place in ("none", "json"):
        status, output = run(lake, "--quarantine", str(lake / place))
        assert status == 2
        assert f"{lake / place} has no file (*.parquet), where some should be: is the path right?" in output
    (lake / "none").write_bytes(b"")
    status, output = run(lake, "--quarantine", str(lake / "none"))
    assert status == 2
    assert "none is not a folder" in output


@pytest.mark.parametrize("option", ["--json", "--snapshot"])
def test_a_place_without_files_is_no_lake_that_lost_all_of_them(lake: Path, option: str) -> None:
    """A prefix on S3 is one that was mistyped, as a rule: it said that all that is in the lake was missing."""
    (lake / "other").mkdir()
    (lake / "other" / "rows.csv").write_text("order_id\n")
    status, output = run(lake, option, str(lake / "other"))
    assert status == 2
    assert f"{lake / 'other'} has no file (*." in output
    assert "AUDIT FAILED" not in output


def test_a_list_without_files_is_a_lake_that_lost_all_of_them(lake: Path) -> None:
    (lake / "committed.txt").write_text("")
    status, output = run(lake, "--files", str(lake / "committed.txt"))
    assert (status, f"missing: {RECORDS[0].event_id} at s0 0" in output) == (1, True)


def test_what_could_not_be_done_is_no_verdict(lake: Path) -> None:
    """1 would say that the lake is wrong."""
    (lake / "binary.txt").write_bytes(b"\xff\xfe")
    (lake / "odd" / "version=abc").mkdir(parents=True)
    (lake / "odd" / "version=abc" / "a.json").write_text('{"event_id": "x"}\n')
    (lake / "mixed").mkdir()
    snapshot = pa.parquet.read_table(lake / "snapshot" / "s.parquet")
    pa.parquet.write_table(snapshot, lake / "mixed" / "a.parquet")
    other = snapshot.set_column(0, "event_id", pa.array(range(len(snapshot))))
    pa.parquet.write_table(other, lake / "mixed" / "b.parquet")
    for arguments in (
        ["--report", str(lake / "nowhere" / "report.json")],
        ["--files", str(lake / "binary.txt")],
        ["--json", str(lake / "odd")],
        ["--snapshot", str(lake / "mixed")],
    ):
        status, output = run(lake, *arguments)
        assert (status, "lakestream audit: " in output) == (2, True), arguments


def test_what_an_audit_cannot_use_is_named(lake: Path) -> None:
    (lake / "binary.txt").write_bytes(b"\xff\xfe")
    (lake / "snapshot" / ".hoodie").mkdir()
    (lake / "snapshot" / ".hoodie" / "hoodie.properties").write_text("")
    for arguments, told in (
        (["--report", str(lake)], f"--report {lake} cannot be written: Is a directory"),
        (["--files", str(lake / "none.txt")], "none.txt, the list of files, cannot be read: No such file or directory"),
        (["--files", str(lake / "binary.txt")], "binary.txt, the list of files, cannot be read: it is no text"),
        (["--json", ""], "'': give a folder"),
        (["--snapshot", str(lake / "snapshot")], f"`lakestream query {lake / 'snapshot'} -o parquet"),
    ):
        status, output = run(lake, *arguments)
        assert (status, told in output, "Traceback" in output) == (2, True, False), (arguments, output)
