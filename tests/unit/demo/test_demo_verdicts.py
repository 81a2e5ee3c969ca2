from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lakestream_demo.inspection import arrivals_by_shard
from lakestream_demo.verdicts import ledger_check, quarantine_check, snapshot_check
from lakestream_loadgen.audit import AuditVerdict, OpenLedgerSeen, SnapshotVerdict
from lakestream_loadgen.audit.lake import QUARANTINE_SCHEMA

LEDGER = AuditVerdict(
    missing=0,
    quarantine_missing=0,
    doubled=0,
    altered=0,
    misplaced=0,
    unexpected=0,
    acknowledged=100,
    failed=3,
    unknown=2,
    unknown_arrived=1,
    producer_duplicates=4,
    rows=105,
    quarantined=1,
    findings=(),
)
SNAPSHOT = SnapshotVerdict(missing=0, unexpected=0, different=0, doubled=0, rows=60, samples=())


def quarantine(*records: tuple[str, bytes]) -> pa.Table:
    rows = [
        {
            "data": data,
            "partition_key": "k",
            "shard_id": "s0",
            "sequence_number": sequence,
            "sub_sequence": 0,
            "reason": "not JSON",
        }
        for sequence, data in records
    ]
    return pa.Table.from_pylist(rows, schema=QUARANTINE_SCHEMA)


def test_what_may_be_in_the_stream_unacknowledged_is_expected_if_it_is_there() -> None:
    check = ledger_check(LEDGER)
    assert check.passed
    assert check.expected == check.found == 105


@pytest.mark.parametrize("field", ["missing", "quarantine_missing", "doubled", "altered", "misplaced", "unexpected"])
def test_each_finding_of_the_ledger_audit_fails_the_check(field: str) -> None:
    assert not ledger_check(replace(LEDGER, **{field: 1})).passed  # type: ignore[arg-type]


def test_what_a_ledger_without_its_end_does_not_account_for_fails_the_check() -> None:
    seen = OpenLedgerSeen("a.ledger", unsettled=3, absent=2, sent_after=0)
    check = ledger_check(replace(LEDGER, open_ledgers=(seen,)))
    assert (check.passed, check.missing, check.expected) == (False, 2, 107)
    check = ledger_check(replace(LEDGER, open_ledgers=(replace(seen, absent=0, sent_after=4),)))
    assert (check.passed, check.unexpected, check.expected) == (False, 4, 105)
    assert ledger_check(replace(LEDGER, open_ledgers=(replace(seen, absent=0),))).passed


@pytest.mark.parametrize("field", ["missing", "unexpected", "different", "doubled"])
def test_each_finding_of_the_snapshot_audit_fails_the_check(field: str) -> None:
    assert snapshot_check(SNAPSHOT, 60).passed
    assert not snapshot_check(replace(SNAPSHOT, **{field: 1}), 60).passed  # type: ignore[arg-type]


def test_quarantines_that_agree_pass_in_any_order() -> None:
    check = quarantine_check(quarantine(("1", b"a"), ("2", b"b")), quarantine(("2", b"b"), ("1", b"a")))
    assert check.passed
    assert check.expected == check.found == 2


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ([("1", b"a")], "missing"),
        ([("1", b"a"), ("2", b"b"), ("2", b"b")], "doubled"),
        ([("1", b"a"), ("2", b"B")], "altered"),
        ([("1", b"a"), ("2", b"b"), ("3", b"c")], "unexpected"),
    ],
)
def test_quarantines_that_differ_say_how(found: list[tuple[str, bytes]], field: str) -> None:
    check = quarantine_check(quarantine(("1", b"a"), ("2", b"b")), quarantine(*found))
    assert getattr(check, field) == 1
    assert not check.passed


def test_arrivals_are_read_as_json_writes_them() -> None:
    rows = pa.table(
        {
            "_shard_id": ["s1", "s0", "s1"],
            "_arrival": ["1970-01-01T00:00:01.500Z", "1970-01-01T00:00:02.000Z", "1970-01-01T00:00:03Z"],
        }
    )
    arrivals = arrivals_by_shard(rows)
    assert {shard: times.tolist() for shard, times in arrivals.items()} == {
        "s0": [2_000_000],
        "s1": [1_500_000, 3_000_000],
    }
