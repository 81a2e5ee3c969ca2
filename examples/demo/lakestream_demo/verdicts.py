"""The audit's verdicts as the demo shows them. Pure."""

from __future__ import annotations

import pyarrow as pa

from lakestream_demo.result import CheckResult
from lakestream_loadgen.audit import AuditVerdict, SnapshotVerdict


def ledger_check(verdict: AuditVerdict) -> CheckResult:
    """JSON rows and quarantine against what Kinesis acknowledged.

    Nobody kills a load of the demo, so what a ledger without its end does not account for counts against it.
    """
    absent = sum(seen.absent for seen in verdict.open_ledgers)
    return CheckResult(
        name="ledger → JSON files, quarantine",
        # Records whose acknowledgement was lost on the way, and the producer's own repetitions, are in the stream too.
        expected=verdict.acknowledged + verdict.unknown_arrived + verdict.producer_duplicates + absent,
        found=verdict.rows,
        missing=verdict.missing + verdict.quarantine_missing + absent,
        doubled=verdict.doubled,
        altered=verdict.altered + verdict.misplaced,
        unexpected=verdict.unexpected + sum(seen.sent_after for seen in verdict.open_ledgers),
    )


def snapshot_check(verdict: SnapshotVerdict, expected: int) -> CheckResult:
    """The Hudi table against the state that the JSON files lead to, which has `expected` rows."""
    return CheckResult(
        name="JSON files, folded → Hudi table",
        expected=expected,
        found=verdict.rows,
        missing=verdict.missing,
        doubled=verdict.doubled,
        altered=verdict.different,
        unexpected=verdict.unexpected,
    )


def quarantine_check(expected: pa.Table, found: pa.Table) -> CheckResult:
    """One writer's quarantine against the other's: both read the same stream, so the same records are unusable."""
    wanted, present = _records(expected), _records(found)
    shared = wanted.keys() & present.keys()
    return CheckResult(
        name="quarantine of JSON → of Hudi",
        expected=len(wanted),
        found=len(found),
        missing=len(wanted.keys() - present.keys()),
        doubled=len(found) - len(present),
        altered=sum(wanted[place] != present[place] for place in shared),
        unexpected=len(present.keys() - wanted.keys()),
    )


def _records(quarantine: pa.Table) -> dict[tuple[str, str, int], bytes]:
    columns = ("shard_id", "sequence_number", "sub_sequence", "data")
    rows = zip(*(quarantine[column].to_pylist() for column in columns), strict=True)
    return {(shard, sequence, sub): data for shard, sequence, sub, data in rows}
