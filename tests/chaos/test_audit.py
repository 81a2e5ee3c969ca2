"""The auditor finds nothing in a lake that is right, and tells whatever is done to it."""

from __future__ import annotations

import ast
import gzip
import json
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet
import pytest

import chaos
from chaos.audit import (
    Found,
    Named,
    Reject,
    Verdict,
    judge,
    lines_of,
    misnamed,
    read_json,
    read_named,
    read_quarantine,
    rows_of,
    services_of,
)
from chaos.events import Digits, Events, Fate, Row, Sent, epoch_micros
from chaos.ledger import Truth, Where
from chaos.poison import landed, poison
from chaos.setting import Sink

ARRIVED = datetime(2026, 1, 31, 12, tzinfo=UTC)


def _arrival(sequence: int) -> datetime:
    return ARRIVED + timedelta(microseconds=sequence)


def _truth(events: int) -> Truth:
    chance = Random(7)
    supply = Events(chance)
    records = list(supply.take(events, datetime.now(UTC))) + [
        poison(kind, chance, supply.fresh(), Sink.JSON) for kind in landed(sql=True)
    ]
    sent = {("shardId-0", 100 + number, 0): sent for number, sent in enumerate(records)}
    origins: dict[Where, Row] = {
        where: {"_arrival": epoch_micros(_arrival(where[1])), "_partition_key": one.partition_key}
        for where, one in sent.items()
    }
    return Truth(sent, (), origins=origins)


TRUTH = _truth(300)


def _lake(folder: Path) -> None:
    """What a JSON writer would make of it: in quarantine is all that may be."""
    for (shard, sequence, sub), sent in TRUTH.sent.items():
        if sent.fate is Fate.LEFT_OUT:
            continue
        if sent.fate is not Fate.ROW:
            _quarantine(folder, (shard, sequence, sub), sent)
            continue
        assert sent.row is not None
        data = _text_of(sent)
        fields = json.loads(data)
        row = {name: sent.row[name] for name in ("id", "site", "version", "op", "note")} | {"at": fields["at"]}
        row |= {name: sent.row[name] for name in ("place", "tags") if sent.row[name] is not None}
        row |= {"_shard_id": shard, "_sequence_number": str(sequence), "_sub_sequence": sub}
        row |= {"_arrival": _arrival(sequence).isoformat(), "_partition_key": sent.partition_key}
        if unknown := _unknown(data):
            row["_rescued"] = unknown
        line = json.dumps(row)[:-1] + f', "amount": {sent.row["amount"]}}}'
        day = sent.row["day"]
        assert day is None or isinstance(day, str)
        partition = folder / "table" / f"day={'__HIVE_DEFAULT_PARTITION__' if day is None else quote(day, safe='')}"
        partition.mkdir(parents=True, exist_ok=True)
        (partition / f"b{sequence}.json.gz").write_bytes(gzip.compress(line.encode() + b"\n"))


def _text_of(sent: Sent) -> bytes:
    """Without what wraps it."""
    match sent.kind:
        case "a compressed record":
            return gzip.decompress(sent.data)
        case "a framed record":
            return zlib.decompress(sent.data[18:])
    return sent.data


def _unknown(data: bytes) -> str:
    """As JSON, in the record's own text, what the schema does not have; empty if that is nothing."""
    fields: dict[str, object] = json.loads(data, parse_float=Digits)
    known = {"id", "site", "day", "version", "op", "amount", "at", "place", "tags", "note"}
    unknown = {name: value for name, value in fields.items() if name not in known}
    place = fields.get("place")
    if isinstance(place, dict) and (more := {name: place[name] for name in place.keys() - {"room", "open", "names"}}):
        unknown["place"] = more
    return _text(unknown) if unknown else ""


def _text(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name)}:{_text(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_text, value)) + "]"
    return repr(value) if isinstance(value, Digits) else json.dumps(value)


def _quarantine(folder: Path, where: Where, sent: Sent) -> None:
    shard, sequence, sub = where
    row = {"shard_id": shard, "sequence_number": str(sequence), "sub_sequence": sub, "data": sent.data}
    row |= {"arrival": _arrival(sequence), "partition_key": sent.partition_key}
    (folder / "quarantine").mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pa.Table.from_pylist([row]), folder / "quarantine" / f"b{sequence}.parquet")


def _judged(folder: Path) -> Verdict:
    return judge(TRUTH, Found(read_json(folder / "table"), read_quarantine(folder / "quarantine")), keyed=False)


def _a_file(folder: Path) -> Path:
    return sorted((folder / "table").rglob("*.gz"))[20]


def _drop_a_row(folder: Path) -> None:
    _a_file(folder).unlink()


def _double_a_row(folder: Path) -> None:
    file = _a_file(folder)
    file.with_name("copy.json.gz").write_bytes(file.read_bytes())


def _change(name: str, value: object, folder: Path) -> None:
    file = _a_file(folder)
    row = json.loads(gzip.decompress(file.read_bytes()))
    file.write_bytes(gzip.compress(json.dumps({**row, name: value}).encode() + b"\n"))


def _round_a_nested_number(folder: Path) -> None:
    """As who reads it as a double."""
    for file in sorted((folder / "table").rglob("*.gz")):
        content = gzip.decompress(file.read_bytes())
        if (exact := str(2**53 + 1).encode()) in content:
            file.write_bytes(gzip.compress(content.replace(exact, str(2**53).encode())))
            return


def _move_to_another_day(folder: Path) -> None:
    file = _a_file(folder)
    other = folder / "table" / "day=2020-01-01"
    other.mkdir()
    file.rename(other / file.name)


def _drop_a_quarantine_file(folder: Path) -> None:
    sorted((folder / "quarantine").iterdir())[0].unlink()


def _double_a_quarantine_file(folder: Path) -> None:
    file = sorted((folder / "quarantine").iterdir())[0]
    file.with_name("copy.parquet").write_bytes(file.read_bytes())


def _change_bytes_in_quarantine(folder: Path) -> None:
    where, sent = _rejected()
    _quarantine(folder, where, replace(sent, data=b"other"))


def _keep_another_key_in_quarantine(folder: Path) -> None:
    where, sent = _rejected()
    _quarantine(folder, where, replace(sent, partition_key="other"))


def _rejected() -> tuple[Where, Sent]:
    return next((where, sent) for where, sent in TRUTH.sent.items() if sent.fate is Fate.QUARANTINE)


def _keep_a_good_one_in_quarantine(folder: Path) -> None:
    where, sent = next(iter(TRUTH.sent.items()))
    _quarantine(folder, where, sent)


def _hide(folder: Path) -> None:
    file = _a_file(folder)
    (folder / "table" / "_lakestream").mkdir()
    file.rename(folder / "table" / "_lakestream" / file.name)


def _copy_to_another_name(folder: Path) -> None:
    file = _a_file(folder)
    file.with_name(f"{file.name}#1").write_bytes(file.read_bytes())


def _rescue_otherwise(old: str, new: str, folder: Path) -> None:
    """In the file of one record alone, of which several fields are rescued."""
    where = next(where for where, sent in TRUTH.sent.items() if sent.kind == "several unknown fields")
    (file,) = (folder / "table").rglob(f"b{where[1]}.json.gz")
    content = gzip.decompress(file.read_bytes())
    assert content.count(old.encode()) == 1
    file.write_bytes(gzip.compress(content.replace(old.encode(), new.encode())))


def test_a_lake_that_is_right_is_found_right(tmp_path: Path) -> None:
    _lake(tmp_path)
    verdict = _judged(tmp_path)
    assert verdict.ok, verdict.samples
    assert verdict.records == len(TRUTH.sent)
    assert verdict.quarantined > 10


@pytest.mark.parametrize(
    ("doctor", "kind"),
    [
        (_drop_a_row, "lost"),
        (_hide, "lost"),
        (_double_a_row, "doubled"),
        (_copy_to_another_name, "doubled"),
        (partial(_change, "version", 77), "altered"),
        (partial(_change, "_arrival", "2026-01-31T12:00:00.1Z"), "altered"),
        (partial(_change, "_partition_key", None), "altered"),
        (_round_a_nested_number, "altered"),
        (_move_to_another_day, "altered"),
        (partial(_rescue_otherwise, "[0.70", "[0.7"), "altered"),
        (partial(_rescue_otherwise, r"\"one\":null,", ""), "altered"),
        (_drop_a_quarantine_file, "lost"),
        (_double_a_quarantine_file, "doubled"),
        (_change_bytes_in_quarantine, "altered"),
        (_keep_another_key_in_quarantine, "altered"),
        (_keep_a_good_one_in_quarantine, "foreign"),
    ],
)
def test_a_doctored_lake_is_told(tmp_path: Path, doctor: Callable[[Path], None], kind: str) -> None:
    _lake(tmp_path)
    doctor(tmp_path)
    verdict = _judged(tmp_path)
    assert getattr(verdict, kind) == 1, verdict.samples


def _tear(folder: Path) -> None:
    file = _a_file(folder)
    file.with_name(f"{file.name}#1").write_bytes(file.read_bytes()[:-9])


def _leave_half_a_line(folder: Path) -> None:
    file = _a_file(folder)
    file.write_bytes(gzip.compress(gzip.decompress(file.read_bytes()) + b'{"id":"t'))


def _make_text_of(name: str, folder: Path) -> None:
    file = _a_file(folder)
    row = json.loads(gzip.decompress(file.read_bytes()))
    file.write_bytes(gzip.compress(json.dumps({**row, name: str(row[name])}).encode() + b"\n"))


@pytest.mark.parametrize(
    "doctor", [_tear, _leave_half_a_line, partial(_make_text_of, "amount"), partial(_make_text_of, "version")]
)
def test_what_readers_of_files_fail_at_is_told(tmp_path: Path, doctor: Callable[[Path], None]) -> None:
    _lake(tmp_path)
    doctor(tmp_path)
    with pytest.raises(ValueError, match=r"readers take .*/day=.*\.json\.gz"):
        _judged(tmp_path)


def _version(version: int, op: str = "u") -> Sent:
    row: Row = {"id": "t1", "site": "north", "version": version, "op": op, "amount": "1.10"}
    return Sent("event", "t1", f"{version}{op}".encode(), Fate.ROW, row)


def _keyed(sent: dict[Where, Sent], *rows: tuple[Where, Row]) -> Verdict:
    return judge(Truth(sent, ()), Found(list(rows), []), keyed=True)


OLD, NEW, DELETE = ("s", 2, 0), ("s", 1, 0), ("s", 3, 0)


def test_of_a_key_the_newest_version_is_wanted_whenever_it_came() -> None:
    sent = {NEW: _version(2), OLD: _version(1)}
    rows = {where: record.row for where, record in sent.items() if record.row}
    assert _keyed(sent, (NEW, {**rows[NEW], "amount": "1.1"})).ok
    assert _keyed(sent, (OLD, rows[OLD])).altered == 1
    assert _keyed(sent).lost == 1
    assert _keyed(sent, (NEW, rows[NEW]), (OLD, rows[OLD])).doubled == 1


def test_a_deleted_key_must_not_come_back() -> None:
    sent = {NEW: _version(2), OLD: _version(1), DELETE: _version(3, "d")}
    row = sent[OLD].row
    assert row is not None
    assert _keyed(sent).ok
    assert _keyed(sent, (OLD, row)).foreign == 1


def test_a_late_delete_deletes_nothing_newer() -> None:
    sent = {NEW: _version(4), DELETE: _version(3, "d")}
    row = sent[NEW].row
    assert row is not None
    assert _keyed(sent, (NEW, row)).ok
    assert _keyed(sent).lost == 1


def test_of_equal_versions_the_last_of_its_shard_is_wanted() -> None:
    sent = {("s", 1, 0): _version(2), ("s", 2, 0): _version(2), ("s", 2, 1): _version(2), ("r", 9, 0): _version(1)}
    row = sent["s", 1, 0].row
    assert row is not None
    first, last = ((("s", 1, 0), row), (("s", 2, 1), row))
    assert _keyed(sent, last).ok
    assert _keyed(sent, first).altered == 1
    assert _keyed(sent, (("s", 2, 0), row)).altered == 1
    # Of another shard, nobody knows which came later.
    across = {**sent, ("r", 1, 0): _version(2)}
    assert _keyed(across, last).ok
    assert _keyed(across, (("r", 1, 0), row)).ok
    assert _keyed(across, first).altered == 1
    # What was read once more, may have come behind the other one.
    assert judge(Truth(sent, (), is_in_order=False), Found([first], []), keyed=True).ok


def test_what_may_be_either_has_to_be_one_of_both() -> None:
    record = Sent("no note", "t1", b"{}", Fate.EITHER, _version(1).row)
    row = record.row
    assert row is not None
    truth = Truth({NEW: record}, ())
    for rows, quarantine, ok in (
        ([(NEW, row)], [], True),
        ([], [Reject(NEW, b"{}")], True),
        ([], [], False),
        ([(NEW, row)], [Reject(NEW, b"{}")], False),
    ):
        assert judge(truth, Found(rows, quarantine), keyed=False).ok is ok


def test_the_harness_shares_no_code_with_what_it_judges() -> None:
    imported = set()
    for module in Path(chaos.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    assert "pyarrow" in imported
    assert imported & {"lakestream", "lakestream_api", "lakestream_loadgen", "lab"} == set()


def test_what_was_read_again_may_be_in_quarantine_again(tmp_path: Path) -> None:
    _lake(tmp_path)
    where, sent = _rejected()
    quarantine = [*read_quarantine(tmp_path / "quarantine"), Reject(where, sent.data, TRUTH.origin(where))]
    found = Found(read_json(tmp_path / "table"), quarantine)
    assert judge(TRUTH, found, keyed=False).doubled == 1
    assert judge(replace(TRUTH, readings=2), found, keyed=False).ok


def test_what_a_span_had_to_read_again_is_in_quarantine_again() -> None:
    record = Sent("noise", "t1", b"noise", Fate.QUARANTINE, None)
    for copies, again, kind in ((1, 0, None), (1, 1, "lost"), (2, 1, None), (2, 2, "lost"), (3, 1, "doubled")):
        truth = Truth({NEW: record}, (), readings=2, again={NEW[:2]: again})
        verdict = judge(truth, Found([], [Reject(NEW, b"noise")] * copies), keyed=True)
        assert [name for name in ("lost", "doubled") if getattr(verdict, name)] == ([kind] if kind else [])


def _packed(file: Path, fields: dict[str, object]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(json.dumps(fields).encode()))


def test_files_and_what_the_log_says_of_them_are_held_against_each_other(tmp_path: Path) -> None:
    _lake(tmp_path)
    files, rejects = lines_of(tmp_path / "table"), rows_of(tmp_path / "quarantine")
    half = len(files) // 2
    rows = [[name, count, 100, ""] for name, count in files.items()]
    refused = [[name, count, 100, ""] for name, count in rejects.items()]
    _packed(tmp_path / "manifests" / "1.json.gz", {"batches": [[1, "2026", rows[:half], []]]})
    _packed(tmp_path / "commits" / "2.json.gz", {"batch": 2, "sink": {"files": rows[half:]}, "rejects": refused})
    _packed(tmp_path / "commits" / "3.json.gz", {"batch": 3, "sink": None, "rejects": []})
    assert read_named(tmp_path) == Named(files, rejects, frozenset())
    name = rows[0][0]
    assert misnamed(files, files) == []
    assert misnamed(files, {**files, name: 2}) == [f"{name} has 2 rows, by the log 1"]
    assert misnamed(files, {**files, "more": 1}) == ["more has 1 rows, by the log None"]
    assert misnamed({**files, "more": 1}, files) == ["more has None rows, by the log 1"]


@pytest.mark.parametrize("is_old", [True, False])
def test_what_a_replay_took_out_of_the_quarantine_is_in_it_no_more(tmp_path: Path, is_old: bool) -> None:
    _lake(tmp_path)
    rejects = rows_of(tmp_path / "quarantine")
    rows = [[name, count, 100, ""] for name, count in rejects.items()]
    first = rows[0][0]
    _packed(tmp_path / "commits" / "1.json.gz", {"batch": 1, "sink": None, "rejects": rows})
    if is_old:
        replayed = {"batches": [[2, "2026", [], []]], "readmits": {"2": [first]}}
        _packed(tmp_path / "manifests" / "2.json.gz", replayed)
    else:
        _packed(tmp_path / "commits" / "2.json.gz", {"batch": 2, "sink": None, "rejects": [], "readmits": [first]})
    named = read_named(tmp_path)
    rest = {name: count for name, count in rejects.items() if name != first}
    assert named == Named({}, rest, frozenset({first}))
    assert rows_of(tmp_path / "quarantine", named.taken) == rest
    assert len(read_quarantine(tmp_path / "quarantine", named.taken)) == sum(rest.values())


def test_what_services_have_done_is_told_by_the_timeline(tmp_path: Path) -> None:
    table = tmp_path / "table"
    timeline = table / ".hoodie" / "timeline"
    timeline.mkdir(parents=True)
    for name in (
        "1.deltacommit",
        "2.commit",
        "3_4.commit",
        "5.commit.inflight",
        "6_7.clean",
        "8.replacecommit.requested",
    ):
        (timeline.parent if "_" not in name else timeline).joinpath(f"2{name}").touch()
    assert services_of(table, is_merge_on_read=True) == {"compactions": 2, "clusterings": 0, "cleanings": 1}
    assert services_of(table, is_merge_on_read=False)["compactions"] == 0


@pytest.mark.parametrize(("rereads", "there"), [(True, True), (False, False)])
def test_what_an_undone_replay_took_is_there_again_if_it_is_read_again(
    tmp_path: Path, rereads: bool, there: bool
) -> None:
    _lake(tmp_path)
    rows = [[name, count, 100, ""] for name, count in rows_of(tmp_path / "quarantine").items()]
    first, second = rows[0][0], rows[1][0]
    nothing = {"sink": None, "rejects": []}
    _packed(tmp_path / "manifests" / "1.json.gz", {"batches": [[1, "2026", [], rows]]})
    _packed(tmp_path / "commits" / "2.json.gz", {**nothing, "batch": 2, "readmits": [first]})
    # Behind it, what the undone batches have rejected is forgotten, as it is read again.
    restore = {"batch": 3, "restore": [1, "20261122083213548", 1, rereads], "readmits": [second]}
    _packed(tmp_path / "commits" / "3.json.gz", nothing | restore)
    assert read_named(tmp_path).taken == ({second} if there else {first, second})
