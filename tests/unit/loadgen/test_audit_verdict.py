"""The verdict on two histories: each fault put into an intact lake is found, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from zlib import crc32

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakestream_loadgen.audit import AuditVerdict, Kind, OpenLedgerSeen, audit
from lakestream_loadgen.audit.lake import QUARANTINE_SCHEMA
from lakestream_loadgen.content import EVENT_SCHEMA
from lakestream_loadgen.errors import LedgerError
from lakestream_loadgen.events import EventMix, OrderEvents
from lakestream_loadgen.ledger.format import LEDGER_SCHEMA
from lakestream_loadgen.ledger.outcomes import Outcome
from lakestream_loadgen.ledger.reader import OpenLedger
from lakestream_loadgen.records import Record

RECORDS = OrderEvents(seed=5, worker=0, prefix="t", mix=EventMix(malformed=0.2, inserts=0.5)).take(60, 1.79e9)
GOOD = next(number for number, record in enumerate(RECORDS) if not record.malformed)
BAD = next(number for number, record in enumerate(RECORDS) if record.malformed)


@dataclass(frozen=True)
class Arrived:
    """A record in the lake."""

    record: Record
    sequence: int
    shard: str = "s0"
    sub: int = 0
    quarantined: bool | None = None  # None: as it should be


def entry(record: Record, sequence: int | None, outcome: Outcome = Outcome.ACKNOWLEDGED, attempts: int = 1):  # type: ignore[no-untyped-def]
    acknowledged = outcome is Outcome.ACKNOWLEDGED
    return {
        "event_id": record.event_id,
        "checksum": crc32(record.data),
        "malformed": record.malformed,
        "outcome": int(outcome),
        "shard_id": "s0" if acknowledged else None,
        "sequence_number": str(sequence) if acknowledged else None,
        "attempts": attempts,
    }


def judge(
    entries: list[dict[str, object]], arrived: list[Arrived], opened: OpenLedger | None = None, *, allow: bool = False
) -> AuditVerdict:
    lake, quarantine = [], []
    for item in arrived:
        place = {"shard_id": item.shard, "sequence_number": str(item.sequence), "sub_sequence": item.sub}
        if item.record.malformed if item.quarantined is None else item.quarantined:
            quarantine.append({"data": item.record.data, "partition_key": "k", "reason": "bad", **place})
        else:
            lake.append({**json.loads(item.record.data), **{f"_{name}": value for name, value in place.items()}})
    places = [("_shard_id", pa.string()), ("_sequence_number", pa.string()), ("_sub_sequence", pa.int64())]
    times = {"created_at", "updated_at"}
    fields = [pa.field(f.name, pa.string() if f.name in times else f.type) for f in EVENT_SCHEMA]
    rows = pa.Table.from_pylist(lake, schema=pa.schema([*fields, *places]))
    return audit(
        pa.Table.from_pylist(entries, schema=LEDGER_SCHEMA),
        rows,
        pa.Table.from_pylist(quarantine, schema=QUARANTINE_SCHEMA),
        open_ledgers=[opened] if opened else [],
        allow_open_ledgers=allow,
    )


def intact() -> tuple[list[dict[str, object]], list[Arrived]]:
    entries = [entry(record, number) for number, record in enumerate(RECORDS)]
    return entries, [Arrived(record, number) for number, record in enumerate(RECORDS)]


def wrong(verdict: AuditVerdict) -> dict[Kind, int]:
    return {kind: getattr(verdict, kind) for kind in Kind if getattr(verdict, kind)}


def test_an_intact_lake_passes() -> None:
    verdict = judge(*intact())
    assert verdict.ok
    assert verdict.findings == ()
    assert (verdict.acknowledged, verdict.rows) == (60, 60)
    assert verdict.quarantined == sum(record.malformed for record in RECORDS) > 0


def test_an_empty_lake_of_no_load_passes() -> None:
    assert judge([], []).ok


@given(st.sets(st.integers(0, 59)))
@settings(max_examples=settings().max_examples // 4)
def test_what_is_missing_is_counted_where_it_belongs(lost: set[int]) -> None:
    entries, arrived = intact()
    verdict = judge(entries, [item for number, item in enumerate(arrived) if number not in lost])
    bad = sum(RECORDS[number].malformed for number in lost)
    assert (verdict.missing, verdict.quarantine_missing) == (len(lost) - bad, bad)
    assert verdict.ok == (not lost)


@given(st.lists(st.integers(0, 59), max_size=20))
@settings(max_examples=settings().max_examples // 4)
def test_a_repeated_place_is_doubled(again: list[int]) -> None:
    entries, arrived = intact()
    verdict = judge(entries, arrived + [arrived[number] for number in again])
    assert wrong(verdict) == ({Kind.DOUBLED: len(again)} if again else {})


@pytest.mark.parametrize("number", [GOOD, BAD])
def test_altered_content_is_found(number: int) -> None:
    entries, arrived = intact()
    entries[number]["checksum"] = 1
    verdict = judge(entries, arrived)
    assert wrong(verdict) == {Kind.ALTERED: 1}
    assert [finding.event_id for finding in verdict.findings] == [RECORDS[number].event_id]


def test_the_right_event_at_a_wrong_place_is_missing_and_one_too_many() -> None:
    entries, arrived = intact()
    arrived[GOOD] = replace(arrived[GOOD], sequence=999)
    assert wrong(judge(entries, arrived)) == {Kind.MISSING: 1}
    arrived[GOOD] = replace(arrived[GOOD], sequence=GOOD, shard="s1")
    assert wrong(judge(entries, arrived)) == {Kind.MISSING: 1}


def test_a_good_event_in_quarantine_is_misplaced() -> None:
    entries, arrived = intact()
    arrived[GOOD] = replace(arrived[GOOD], quarantined=True)
    assert wrong(judge(entries, arrived)) == {Kind.MISPLACED: 1}


def test_a_malformed_event_in_quarantine_and_among_the_rows_is_doubled() -> None:
    entries, arrived = intact()
    twin = Arrived(RECORDS[GOOD]._replace(event_id=RECORDS[BAD].event_id), BAD, quarantined=False)
    assert wrong(judge(entries, [*arrived, twin]))[Kind.DOUBLED] == 1


def test_events_of_nobody_are_unexpected() -> None:
    entries, arrived = intact()
    del entries[GOOD]
    verdict = judge(entries, arrived)
    assert wrong(verdict) == {Kind.UNEXPECTED: 1}
    nothing = Arrived(Record("x", "k", b"\xff no id at all", malformed=True), 500)
    assert wrong(judge(intact()[0], [*arrived, nothing])) == {Kind.UNEXPECTED: 1}
    assert wrong(judge([], arrived)) == {Kind.UNEXPECTED: 60}


def test_an_id_that_is_not_utf_8_is_nobodys() -> None:
    entries, arrived = intact()
    record = Record("größe", "k", '{"event_id":"größe", cut'.encode(), malformed=True)
    entries.append(entry(record, 400))
    arrived.append(Arrived(record, 400))
    assert judge(entries, arrived).ok
    strange = Arrived(Record("x", "k", b'{"event_id":"t-\xff"}', malformed=True), 500)
    verdict = judge(entries, [*arrived, strange])
    assert wrong(verdict) == {Kind.UNEXPECTED: 1}
    assert [(finding.event_id, finding.sequence_number) for finding in verdict.findings] == [(None, "500")]


def test_retries_of_the_producer_are_not_ours() -> None:
    entries, arrived = intact()
    entries[GOOD]["attempts"] = 3
    copies = [Arrived(RECORDS[GOOD], 200 + number) for number in range(3)]
    verdict = judge(entries, arrived + copies[:2])
    assert verdict.ok
    assert verdict.producer_duplicates == 2
    assert wrong(judge(entries, arrived + copies)) == {Kind.UNEXPECTED: 1}
    assert wrong(judge(entries, arrived + copies[:2] + copies[:1])) == {Kind.DOUBLED: 1}


def test_records_of_one_aggregate_are_told_apart() -> None:
    entries, arrived = intact()
    entries[GOOD]["attempts"] = 2
    verdict = judge(entries, [*arrived, replace(arrived[GOOD], sub=1)])
    assert verdict.ok
    assert verdict.producer_duplicates == 1


def test_unknown_outcomes_may_have_arrived_or_not() -> None:
    entries, arrived = intact()
    entries[GOOD] = entry(RECORDS[GOOD], None, Outcome.UNKNOWN, attempts=2)
    entries[BAD] = entry(RECORDS[BAD], None, Outcome.UNKNOWN, attempts=-1)
    more = [Arrived(RECORDS[BAD], 300 + number) for number in range(5)]
    without = [item for number, item in enumerate(arrived) if number != GOOD]
    verdict = judge(entries, without + more)
    assert verdict.ok
    assert (verdict.unknown, verdict.unknown_arrived, verdict.producer_duplicates) == (2, 1, 5)
    assert judge(entries, arrived).unknown_arrived == 2


def test_what_was_given_up_unwritten_must_not_be_there() -> None:
    entries, arrived = intact()
    entries[GOOD] = entry(RECORDS[GOOD], None, Outcome.FAILED, attempts=0)
    verdict = judge(entries, arrived)
    assert verdict.failed == 1
    assert wrong(verdict) == {Kind.UNEXPECTED: 1}
    assert judge(entries, [item for item in arrived if item.record is not RECORDS[GOOD]]).ok


def cut_ledger(rows: int, settled: int) -> tuple[list[dict[str, object]], OpenLedger]:
    """All that is left is that `rows` events were sent, and what became of the first ones."""
    entries = [
        entry(record, number) if number < settled else entry(record, None, Outcome.UNKNOWN, attempts=-1)
        for number, record in enumerate(RECORDS[:rows])
    ]
    return entries, OpenLedger("t.ledger", "t", range(rows))


def test_what_a_cut_ledger_would_have_shown_is_no_pass() -> None:
    """Events 40 to 49 were acknowledged, in the part that is gone, and two of them are not in the lake."""
    entries, opened = cut_ledger(50, 40)
    _, arrived = intact()
    verdict = judge(entries, [item for number, item in enumerate(arrived[:50]) if number not in (44, 45)], opened)
    assert wrong(verdict) == {}
    assert verdict.faultless
    assert not verdict.complete
    assert not verdict.ok
    assert verdict.open_ledgers == (OpenLedgerSeen("t.ledger", unsettled=10, absent=2, sent_after=0),)
    assert judge(entries, arrived[:45], opened, allow=True).ok


def test_a_ledger_without_an_end_whose_events_all_arrived_passes() -> None:
    entries, opened = cut_ledger(50, 40)
    verdict = judge(entries, intact()[1][:50], opened)
    assert verdict.ok
    assert verdict.open_ledgers == (OpenLedgerSeen("t.ledger", unsettled=10, absent=0, sent_after=0),)


def test_what_was_sent_after_a_ledger_ends_is_not_unexpected() -> None:
    """Late events and deletes too, whose numbers are below those of others that were sent before them."""
    entries, opened = cut_ledger(50, 50)
    del entries[7]
    _, arrived = intact()
    verdict = judge(entries, arrived, OpenLedger("t.ledger", "t", range(49)))
    assert wrong(verdict) == {}
    assert verdict.open_ledgers == (OpenLedgerSeen("t.ledger", unsettled=0, absent=0, sent_after=11),)
    assert not verdict.ok
    assert judge(entries, arrived, OpenLedger("t.ledger", "t", range(49)), allow=True).ok
    strangers = [
        Arrived(
            arrived[GOOD].record._replace(event_id=event_id, data=renamed(arrived[GOOD].record, event_id)), 500 + at
        )
        for at, event_id in enumerate(["u-1", "t", "t-", "t-x", "", "t-o9-1"])
    ]
    assert wrong(judge(entries, [*arrived, *strangers], opened)) == {Kind.UNEXPECTED: 6}
    twice = [*arrived, arrived[-1]]
    assert wrong(judge(entries, twice, OpenLedger("t.ledger", "t", range(49)))) == {Kind.DOUBLED: 1}
    assert wrong(judge([], arrived, OpenLedger("t.ledger", "t", range(0)), allow=True)) == {}


def renamed(record: Record, event_id: str) -> bytes:
    return record.data.replace(f'"event_id":"{record.event_id}"'.encode(), f'"event_id":"{event_id}"'.encode())


def test_findings_are_examples_not_lists() -> None:
    verdict = judge(intact()[0], [])
    assert verdict.missing > 10
    assert sum(finding.kind is Kind.MISSING for finding in verdict.findings) == 10


def test_a_ledger_copied_twice_is_refused() -> None:
    entries, arrived = intact()
    with pytest.raises(LedgerError, match="twice"):
        judge(entries + entries[:1], arrived)
